"""Views and writing in place, with NumPy's meaning on every backend.

An array that is a view, and the array that it is a view of, know each other (`Links`). Where the library has memory
that views share and nothing traces the tensors, a write goes into that memory. Elsewhere the array that is written to
gets a new tensor, so do those that it is a view of, and the other views are marked as outdated: their tensor becomes a
`Stale`, which the ops take in the place of a tensor, and which is read from the array that it is a view of when it is
needed. So views cost nothing where they are only read.

An element (`x[0]` of a vector) is no view, as in NumPy: PyTorch's gets memory of its own before the next write, or
`x[0], x[1] = x[1], x[0]` would lose a value. A result that is an argument itself, or lies in its memory (`view_test` of
the backend), is copied before the first write into it, and so are arrays that a tree or a transform made: under `vmap`
slices lie in the caller's memory. `x += y` gives the array the new tensor if nobody else has its memory, and writes
otherwise.
"""

import functools
import itertools
from collections.abc import Callable
from typing import Any
from weakref import ref

import numpy as np

from emberharmony.backend.shared.arrays.indexing import is_basic_key
from emberharmony.xp.links import (
    FEW,
    LOCK,
    Call,
    Links,
    Stale,
    links_of,
    live_views,
    loan_of,
    new_links,
    tensor_of,
    view_chain,
)
from emberharmony.xp.loans import Loan, elements_at, view_at

_RANKS = {"bool": 0, "unsigned": 1, "signed": 1, "float": 2, "complex": 3}
_NUMBERS = (bool, int, float, complex)


class Memory:
    """The views and writes of the arrays of one backend."""

    def __init__(self, kit: Any) -> None:
        self.kit, self.backend, self.ops = kit, kit.backend, kit.ops
        self.shares: bool = kit.backend.shares_memory

    def mark_kept(self, *arguments: Any) -> None:
        """Marks arrays, at any depth of containers, as kept by a transform: the next write into one copies it first."""
        for argument in arguments:
            if argument.__class__ in (list, tuple):
                self.mark_kept(*argument)
            elif argument.__class__ is dict:
                self.mark_kept(*argument.values())
            elif argument.__class__ is self.kit.array and not self.kit.is_stand_in(argument._v):
                *_, root = view_chain(argument)
                self._ensure_links(root).foreign = True

    def link(self, view: Any, parent: Any, key_or_call: Any, source: Any) -> None:
        """Makes an array a view of another.

        Args:
            view: the array.
            parent: the array that it is a view of.
            key_or_call: the key, or the `Call`, by which it was read.
            source: the tensor that it was read from.
        """
        links = parent._links
        if links.__class__ is not Links:
            links = self._ensure_links(parent)
        if links.is_element:
            links = self._give_own_memory(parent)
            source = parent._v
            view._v = self.read_view(source, key_or_call)
        if self.shares:
            self._mark_kept_if_copied(view._v, parent)
        view._links = parent, key_or_call
        views = links.views
        views.append(ref(view))
        if len(views) > links.most_views:
            self.forget_dead_views(links)
        if parent._v is not source or source.__class__ is Stale:
            self.mark_outdated(view)

    def lend(self, array: Any) -> np.ndarray:
        """Returns a NumPy array that shares the memory of an array, which from now on lies on the host.

        A view whose elements do not lie at equal distances in it is given as a copy that cannot be written to.
        """
        with LOCK:
            if self._ensure_links(array).is_element:
                self._give_own_memory(array)
            *views, root = view_chain(array)
            loan = loan_of(root)
            if loan is None:
                tensor = tensor_of(root)
                loan = Loan(np.array(self.ops.to_numpy(tensor), order="C"), tensor.dtype, self.ops.get_device(tensor))
                self._ensure_links(root)
                root._v = Stale(self, root, loan)
                self._outdate_views([root])
            lent_array = self._lent_view(loan.lent_array(), [links_of(view).key_or_call for view in reversed(views)])
            if lent_array is None:
                lent_array = self.ops.to_numpy(tensor_of(array)).view()
                lent_array.flags.writeable = False
            return lent_array

    def _lent_view(self, memory: np.ndarray, keys_and_calls: list[Any]) -> np.ndarray | None:
        """Returns the NumPy view of lent memory at a chain of keys and calls; None if it would have to be a copy."""
        if all(key_or_call.__class__ is not Call for key_or_call in keys_and_calls):
            return functools.reduce(view_at, keys_and_calls, memory)
        positions = np.arange(memory.size).reshape(memory.shape)
        for key_or_call in keys_and_calls:
            is_function_call = key_or_call.__class__ is Call
            positions = (
                self.ops.to_numpy(key_or_call.run(self.ops.asarray(positions)))
                if is_function_call
                else view_at(positions, key_or_call)
            )
        return elements_at(memory, positions)

    def read_loan(self, loan: Loan) -> Any:
        """Returns a native tensor with the present values of memory lent to NumPy, on the device of the array."""
        tensor = self.backend.from_numpy(loan.memory)
        return tensor if self.ops.get_device(tensor) == loan.device else self.ops.to_device(tensor, loan.device)

    def mark_outdated(self, view: Any) -> None:
        """Marks a view as outdated, so that it is read again from its parent."""
        if not links_of(view).is_element:
            view._v = Stale(self, view)

    def _mark_kept_if_copied(self, tensor: Any, parent: Any) -> None:
        """Marks the parent of a view as kept if the view has memory of its own, as `x[::-1]` on PyTorch."""
        if not self.kit.is_stand_in(tensor) and not self.backend.share_memory(tensor, tensor_of(parent)):
            self.mark_kept(parent)

    @staticmethod
    def _ensure_links(array: Any) -> Links:
        """Returns the links of an array, and creates them if it has none."""
        with LOCK:
            links: Links | None = links_of(array)
            if links is None:
                links = array._links = new_links()
        return links

    @staticmethod
    def forget_dead_views(links: Links) -> None:
        """Removes references to deleted views from the links of an array; other threads may add views meanwhile."""
        with LOCK:
            view_count = len(links.views)
            links.views[:view_count] = [reference for reference in links.views[:view_count] if reference() is not None]
            links.most_views = max(FEW, 2 * len(links.views))

    def _give_own_memory(self, array: Any) -> Links:
        """Copies an element of an array into memory of its own, and returns its new links."""
        with LOCK:
            array._v = self.ops.copy(tensor_of(array))
            array._links = separate_links = new_links()
        return separate_links

    def link_result(self, tensor: Any, parent: Any, source: Any, run: Callable[[Any], Any]) -> Any:
        """Returns the result of an op that only chooses elements of an array, as a view of it if it is one.

        Args:
            tensor: the result.
            parent: the array.
            source: the tensor of the array that the op got.
            run: the op.
        """
        if tensor.__class__ in (list, tuple):
            return tensor.__class__(
                [self.link_result(x, parent, source, lambda p, i=i: run(p)[i]) for i, x in enumerate(tensor)]  # type: ignore[misc]
            )
        if tensor.dtype != parent._v.dtype:  # the result of `real` has another dtype
            return self.kit.lift_shared(tensor)
        array = self.kit.lift(tensor)
        array._links = None
        if not self.shares or self.kit.is_stand_in(tensor) or self.backend.share_memory(tensor, tensor_of(parent)):
            self.link(array, parent, Call(run), source)
        return array

    def read_view(self, tensor: Any, key_or_call: Any) -> Any:
        """Returns the elements of a tensor at a key, or the result of a `Call` on it."""
        return key_or_call.run(tensor) if key_or_call.__class__ is Call else self.ops.get_item(tensor, key_or_call)

    def write(self, array: Any, key: Any, given: Any) -> bool:
        """Writes into an array, and returns whether into its memory; the caller holds the lock."""
        links = links_of(array)
        if links is not None and links.is_element:
            links = self._give_own_memory(array)
        old_tensor = tensor_of(array)
        new_value = self._value_to_write(given, old_tensor)
        if self.shares and self._may_write_in_place(array, old_tensor, new_value):
            if links is not None:
                self._copy_elements(array)
            try:
                self.backend.write_into(old_tensor, key, new_value)
                return True
            except (IndexError, ValueError, TypeError, RuntimeError):
                if not self._is_writable(old_tensor):
                    raise
            # `set_item` also takes keys that the library refuses, and raises the typed error.
            self.backend.write_into(
                old_tensor, ..., self.ops.set_item(old_tensor, key, self._cast(new_value, old_tensor))
            )
            return True
        new_value = self._cast(new_value, old_tensor)
        new_tensor = self._write_in_place(array, old_tensor, key, new_value)
        self._replace_tensor(array, self.ops.set_item(old_tensor, key, new_value) if new_tensor is None else new_tensor)
        return False

    def _write_in_place(self, array: Any, old_tensor: Any, key: Any, new_value: Any) -> Any:
        """Writes into the memory of an array that nobody shares, and returns the library's new tensor of that memory.

        Returns:
            None if somebody else may hold the tensor, or if only the op knows how to write.
        """
        links = links_of(array)
        if links is not None and (links.foreign or links.parent is not None):
            return None
        key_parts = key if key.__class__ is tuple else (key,)
        if (
            self.shares
            or self.kit.is_stand_in(old_tensor)
            or any(key_part is None for key_part in key_parts)
            or not is_basic_key(key, old_tensor.shape)
        ):
            return None
        if new_value.__class__ not in _NUMBERS and self.kit.is_stand_in(new_value):
            return None
        if not self.backend.may_write(old_tensor):
            return None
        return self.backend.write_into(old_tensor, key, self.ops.convert_to_tensor(new_value, old_tensor.dtype))

    def _is_writable(self, tensor: Any) -> bool:
        flags = getattr(tensor, "flags", None)
        return flags is None or flags.writeable

    def overwrite(self, array: Any, new_value: Any) -> None:
        """Replaces the elements of an array by the result of an operator such as `+=`; the caller holds the lock.

        Raises:
            ValueError: if the shape differs.
            TypeError: if the dtype of the array cannot hold the result.
        """
        old_tensor = tensor_of(array)
        if tuple(new_value.shape) != tuple(old_tensor.shape):
            raise ValueError(
                f"a result of shape {tuple(new_value.shape)} does not fit into an array of {tuple(old_tensor.shape)}"
            )
        new_value = self._cast(self._value_to_write(new_value, old_tensor), old_tensor)
        links = links_of(array)
        if links is None or links.is_element:
            array._v, array._links = new_value, None
        elif self.shares and self._may_write_in_place(array, old_tensor, new_value):
            self._copy_elements(array)
            self.backend.write_into(old_tensor, ..., new_value)
        else:
            self._replace_tensor(array, new_value)

    def _may_write_in_place(self, array: Any, old_tensor: Any, new_value: Any) -> bool:
        """Returns whether a write may change an array's memory: nobody else owns it and no transform records it."""
        tensors = [old_tensor] if new_value.__class__ in _NUMBERS else [old_tensor, new_value]
        links = links_of(array)
        while links is not None:
            if links.foreign:
                return False
            if links.parent is None:
                break
            tensors.append(links.parent._v)
            links = links_of(links.parent)
        return not any(map(self.kit.is_stand_in, tensors)) and self.backend.may_write(*tensors)

    def _copy_elements(self, array: Any) -> None:
        """Copies the elements that were read from an array, so that the next write into it does not change them."""
        arrays_to_visit = [*view_chain(array)][-1:]
        while arrays_to_visit:
            for view in live_views(arrays_to_visit.pop()):
                if links_of(view).is_element:
                    view._v, view._links = self.ops.copy(tensor_of(view)), None
                else:
                    arrays_to_visit.append(view)

    def _replace_tensor(self, array: Any, new_tensor: Any) -> None:
        """Gives an array a new tensor, writes it back into its parents, and marks all other views as outdated."""
        array_and_parents = list(view_chain(array))
        loan = loan_of(array_and_parents[-1])
        array._v = new_tensor
        for view, parent in itertools.pairwise(array_and_parents):
            parent._v = self._write_back(tensor_of(parent), links_of(view).key_or_call, view._v)
        root = array_and_parents[-1]
        if loan is not None and loan.is_open:
            np.copyto(loan.memory, self.ops.to_numpy(root._v))
            root._v = Stale(self, root, loan)
        if self.shares or root._v.__class__ is Stale:  # the views have to lie in the memory, which later writes go into
            array_and_parents = [root]
        if root._links is not None:
            links_of(root).foreign = False
            self._outdate_views(array_and_parents)

    def _outdate_views(self, current_arrays: list[Any]) -> None:
        """Marks the views of an array as outdated, except those that are given.

        Args:
            current_arrays: views that have their elements already, and last the array.
        """
        arrays_to_visit = current_arrays[-1:]
        while arrays_to_visit:
            for view in live_views(arrays_to_visit.pop()):
                if view._v.__class__ is Stale or links_of(view).is_element:
                    continue
                if all(view is not current_array for current_array in current_arrays):
                    view._v = Stale(self, view)
                arrays_to_visit.append(view)

    def _write_back(self, parent: Any, key_or_call: Any, view: Any) -> Any:
        """Returns the tensor of a parent with the new elements of one of its views in their places.

        Raises:
            ValueError: if elements of the parent stand at several places of the view.
        """
        if key_or_call.__class__ is not Call:
            return self.ops.set_item(parent, key_or_call, view)
        shape, size = tuple(parent.shape), self.kit.size(parent)
        flat_positions = self.ops.to_numpy(key_or_call.run(self.ops.reshape(self.ops.arange(size), shape))).reshape(-1)
        if len(flat_positions) == size and (flat_positions == np.arange(size)).all():
            return self.ops.reshape(view, shape)
        if len(np.unique(flat_positions)) < len(flat_positions):
            raise ValueError("a view in which elements are repeated, as of broadcast_to, cannot be written to")
        flat_view = self.ops.reshape(view, (-1,))
        if len(flat_positions) == size:
            return self.ops.reshape(self.ops.take(flat_view, self.ops.asarray(np.argsort(flat_positions)), 0), shape)
        new_parent = self.ops.set_item(self.ops.reshape(parent, (-1,)), self.ops.asarray(flat_positions), flat_view)
        return self.ops.reshape(new_parent, shape)

    def _value_to_write(self, given: Any, old_tensor: Any) -> Any:
        """Returns a value as a number or tensor after a check that its kind of dtype fits into an array.

        Raises:
            TypeError: if the dtype cannot hold values of its kind.
        """
        kind_by_dtype = self.backend.kinds
        if given.__class__ in _NUMBERS:
            # An integer has rank 0, because it may also be written into a boolean array.
            kind_rank = 0 if given.__class__ is int else _NUMBERS.index(given.__class__)
        else:
            if not self.kit.is_tensor(given):
                given = self.ops.convert_to_tensor(given)
            kind_rank = _RANKS[kind_by_dtype[given.dtype]]
        if kind_rank > _RANKS[kind_by_dtype[old_tensor.dtype]]:
            dtype_name = self.kit.dtypes[old_tensor.dtype]
            raise TypeError(f"a value of another kind does not fit into an array of {dtype_name}: use astype")
        return given

    def _cast(self, new_value: Any, old_tensor: Any) -> Any:
        if new_value.__class__ in _NUMBERS:
            return bool(new_value) if self.backend.kinds[old_tensor.dtype] == "bool" else new_value
        return new_value if new_value.dtype == old_tensor.dtype else self.ops.astype(new_value, old_tensor.dtype)
