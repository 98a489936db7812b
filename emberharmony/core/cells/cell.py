"""Cells: containers of one tensor each, which moves to the active backend when it is read.

A cell holds its tensor together with the backend that the tensor belongs to, as one tuple, so that a reader never sees
the tensor of one backend with the name of another. A read under another backend converts the tensor exactly, through
the host, and puts the result back only if nothing was assigned meanwhile: an assignment is never overwritten by an
older value. Each of two threads that use a cell on two backends thus gets an exact copy on its own backend.
"""

import warnings
from collections.abc import Callable, Iterable, Sequence
from itertools import repeat
from operator import attrgetter, itemgetter
from typing import Any, Self, TypeVar

from emberharmony.core import op_globals, selection
from emberharmony.core.cells.blocks import OBSERVED as _OBSERVED
from emberharmony.core.cells.blocks import THREAD as _THREAD
from emberharmony.core.cells.blocks import Held, refuse_changing
from emberharmony.core.cells.moves import Journey, Movable
from emberharmony.core.cells.overwriting import OVERWRITINGS, await_end
from emberharmony.core.cells.overwriting import WATCHES as _WATCHES
from emberharmony.core.cells.tensor_methods import TensorMethods
from emberharmony.core.errors import DTypeError, TracedTensorError, TrainingWarning
from emberharmony.core.registry import OPS
from emberharmony.core.selection import _PROCESS
from emberharmony.core.state.commits import Step, assignment, commit
from emberharmony.core.state.draws import OPEN, current_recording, refuse_effect
from emberharmony.core.tracing import Substitute, TensorProxy

_HELD, _GRAD, _TENSOR, _HOME = attrgetter("_held"), attrgetter("_grad"), itemgetter(0), itemgetter(1)

_OF_THE_LIBRARY = frozenset(
    "convert_held current_tensor exchange_grad_step copy_holding is_temporary kind refusal "  # noqa: SIM905
    "replace_step run ops_provider steps_of_change tensor_on "
    "tensor_and_home with_tensor clear_grad_step".split()
)
"""The methods and attributes of cells that are no concern of users."""

C = TypeVar("C", bound="Cell")


class Cell(Movable, TensorMethods, Substitute):
    """A place for a tensor that follows the active backend; in a tree it is a leaf, and elsewhere it is a tensor.

    Args:
        value: a tensor, number or list; becomes a tensor of the active backend.
        name: shown in messages.
    """

    __slots__ = ("__weakref__", "name")
    trainable: bool = False
    """Whether `ops.backward` gives it a gradient."""

    def __init__(self, value: Any, name: str = "") -> None:
        self.name = name
        self._journey = Journey()
        self._grad = None
        self._held = _detach_held(_tensor_and_home_of(value))
        for block in _OBSERVED:
            block.note_new_cell(self)

    @property
    def value(self) -> Any:
        """The current tensor, as one of the active backend."""
        tensor_and_home = self._held
        if _WATCHES:
            if OVERWRITINGS:
                await_end([self])
            id(self)  # as in `current_tensor`
            tensor_and_home = _THREAD.values.get(self, tensor_and_home)
        if not _OBSERVED:
            if not _PROCESS.overridden:
                if tensor_and_home[1] is _PROCESS.bound:
                    return tensor_and_home[0]
            else:
                override_entry = op_globals.override()
                if tensor_and_home[1] is (_PROCESS.bound if override_entry is None else override_entry[0]):
                    return tensor_and_home[0]
        return self.tensor_on(selection.active())

    @value.setter
    def value(self, value: Any) -> None:
        tensor_and_home = _tensor_and_home_of(value)
        if self._journey is not None:
            override_entry = _THREAD.entry if _WATCHES else None
            if override_entry is not None:
                if OPEN:
                    refuse_effect("a cell would be assigned", override_entry)
                    refuse_changing(self)
                override_entry[0][self] = _THREAD.values[self] = tensor_and_home
                return
            tensor_and_home = self._detach_to_keep(tensor_and_home)
        self._held = tensor_and_home

    @property
    def grad(self) -> Any:
        """The gradient that `ops.backward` has accumulated, on the active backend; None if there is none."""
        if _WATCHES and (recorder := current_recording()) is not None:
            return recorder.effects.gradient(self)
        gradient = self._grad
        if gradient is None:
            return None
        active_ops = selection.active()
        return gradient[0] if gradient[1] is active_ops.backend.home else self._move_slot("_grad", gradient, active_ops)

    @grad.setter
    def grad(self, value: Any) -> None:
        commit([self.exchange_grad_step(None if value is None else _detach_held(_tensor_and_home_of(value)))])

    def current_tensor(self, bound: Any) -> Any:
        """Returns the current tensor on the backend of `bound`; faster than `tensor_on` if it is there."""
        tensor_and_home = self._held
        if _WATCHES:
            if OVERWRITINGS:
                await_end([self])
            if _OBSERVED:  # which are in `_WATCHES` too
                return self.tensor_on(bound)
            id(self)  # torch.compile (PyTorch 2.13) guards a place in the dict, and by this that it is of this cell
            tensor_and_home = _THREAD.values.get(self, tensor_and_home)
        return tensor_and_home[0] if tensor_and_home[1] is bound else self.tensor_on(bound)

    def tensor_on(self, bound: Any) -> Any:
        """Returns the current tensor as one of the backend of `bound`, and moves the cell there.

        Raises:
            DTypeError: if the backend lacks the dtype; the cell stays where it was.
            TracedTensorError: if a running transform holds the tensor on another backend.
        """
        assigned_pair = _THREAD.values.get(self) if _WATCHES and id(self) else None  # as in `current_tensor`
        if assigned_pair is not None:
            tensor = self.convert_held(assigned_pair, bound.backend.home)
        else:
            tensor = self._move_slot("_held", self._held_after_writes(), bound)
        for block in _OBSERVED:
            block.add_read(self, assigned_pair, tensor)
        return tensor

    def to(self, dtype: Any) -> Self:
        """Casts the tensor, and the gradient if there is one, and returns the cell.

        Raises:
            DTypeError: if the active backend lacks the dtype.

        Example:
            >>> from emberharmony import Parameter, ops
            >>> Parameter([1.5, 2.0]).to("float16").value.dtype == ops.convert_to_tensor([0], "float16").dtype
            True
        """
        cast_op = selection.active().cast
        cast_tensor, cast_gradient = cast_op(self.value, dtype), self.grad
        cast_gradient = None if cast_gradient is None else cast_op(cast_gradient, dtype)
        self.value = cast_tensor
        self.grad = cast_gradient
        return self

    def steps_of_change(self, fn: Callable[[Any], Any]) -> list[Step]:
        """Returns the steps that replace the tensor by `fn(tensor)`, and likewise the gradient if there is one."""
        steps, grad = [self.replace_step(fn(self.value))], self.grad
        return steps if grad is None else [*steps, self.exchange_grad_step(_detach_held(_tensor_and_home_of(fn(grad))))]

    def with_tensor(self, tensor: Any) -> Self:
        """Returns a cell like this one that holds another tensor of the active backend; a traced one only in a call."""
        cell = self.copy_holding(tensor)
        if selection.active().backend.may_outlive_transforms(tensor):
            cell._journey, cell._held = Journey(), _detach_held(cell._held)
        return cell

    def run(self, backend: Any, op: str, arguments: tuple[Any, ...]) -> Any:
        """Calls an op with the tensor of each cell in place of the cell, and returns the result."""
        tensors = replace_cells(backend.bound, arguments)
        keyword_only_names = [p.name for p in OPS[op].parameters if p.keyword_only]
        if not keyword_only_names:
            return getattr(backend.bound, op)(*tensors)
        positional_count = len(tensors) - len(keyword_only_names)
        return getattr(backend.bound, op)(
            *tensors[:positional_count], **dict(zip(keyword_only_names, tensors[positional_count:], strict=True))
        )

    def replace_step(self, value: Any) -> Step:
        """Returns the step that assigns a tensor to the cell; `commit` can run it together with other steps.

        Raises:
            BackendMismatchError: if it is a tensor of another backend.
            HostDrawError: inside a transform that runs the function once for several results, which then runs it again.
            TracedTensorError: if the tensor is traced, or while a running transform holds the values of cells.
        """
        if _WATCHES and _THREAD.entry is not None:
            raise TracedTensorError(f"{self!r} cannot change in the loss function of ops.backward: leave it first")
        return assignment(self, "_held", self._detach_to_keep(_tensor_and_home_of(value)))

    def clear_grad_step(self) -> Step:
        """Returns the step that sets the gradient to None; `commit` can run it together with other steps."""
        return self.exchange_grad_step(None) if _WATCHES else (setattr, self, "_grad", None)

    def exchange_grad_step(self, held: "Held | None") -> Step:
        """Returns the step that gives the cell another gradient, a tensor with its backend, or none."""
        if _WATCHES and (recorder := current_recording()) is not None:
            return recorder.effects.set_gradient, self, held
        return setattr, self, "_grad", held

    def copy_holding(self, tensor: Any) -> Self:
        """Returns a cell like this one that holds another tensor of the active backend, which may be traced.

        A transform gives it to the function in the place of this cell. What the function assigns to it stays in it.
        """
        cell = self._empty_copy()
        cell._held = tensor, selection.current().home
        return cell

    @property
    def is_temporary(self) -> bool:
        """Whether a transform made the cell for one call of a function, by `copy_holding`."""
        return self._journey is None

    def tensor_and_home(self) -> "Held":
        """Returns the tensor and the `Bound` of its backend; the cell does not move to the active backend."""
        return self._held_after_writes()

    def _detach_to_keep(self, held: Held) -> Held:
        """Returns an assigned tensor detached from the library's graph, as the cell stores it.

        Raises:
            HostDrawError: inside a transform that runs the function once for several results, which then runs it again.
            TracedTensorError: if the tensor is traced.
        """
        refuse_effect("a cell would be assigned")
        if not held[1].backend.may_outlive_transforms(held[0]):
            raise TracedTensorError(
                f"{self!r} would keep a tensor that is being differentiated after the end of the transform: assign "
                f"ops.stop_gradient(x), return x from the function, or use ops.backward"
            )
        return _detach_held(held)

    def __repr__(self) -> str:
        tensor, home_ops = self._held
        shape = tuple((tensor if home_ops is not None else tensor.bits).shape)
        try:
            dtype = tensor.dtype if home_ops is None else home_ops.backend.dtype_of(tensor).name
        except DTypeError:  # an array of NumPy that was assigned may have any dtype
            dtype = tensor.dtype
        name_text = f"{self.name!r}, " if self.name else ""
        return f"{type(self).__name__}({name_text}shape={shape}, dtype={dtype}{self._extra_text()})"

    def _extra_text(self) -> str:
        return ""

    def __str__(self) -> str:
        tensor, home_ops = self._held
        if home_ops is None or isinstance(tensor, TensorProxy) or self in _THREAD.values:
            return repr(self)
        backend = home_ops.backend
        try:
            host_values = backend.to_numpy(tensor)
        except DTypeError:  # NumPy has bfloat16 by ml_dtypes only
            host_values = backend.to_numpy(backend.cast(tensor, backend.dtypes["float32"]))
        return f"{self!r}\n{host_values}"

    def _repr_pretty_(self, printer: Any, cycle: bool) -> None:
        """Shows the values in IPython and notebooks."""
        printer.text(str(self))

    def __dir__(self) -> list[str]:
        """Returns the names that users need, without those of the library itself."""
        return sorted(
            name for name in super().__dir__() if name not in _OF_THE_LIBRARY and (name[0] != "_" or name[:2] == "__")
        )


def values_of(cells: "Sequence[Cell]") -> list[Any]:
    """Returns the current tensor of each cell, as one of the active backend."""
    if _WATCHES:
        return [cell.value for cell in cells]
    home_ops, held_pairs = selection.active().backend.home, list(map(_HELD, cells))
    if OVERWRITINGS:
        await_end(cells)
    if list(map(_HOME, held_pairs)).count(home_ops) == len(held_pairs):
        return list(map(_TENSOR, held_pairs))
    return [cell.value for cell in cells]


def replace_steps(cells: "Sequence[Cell]", tensors: Sequence[Any]) -> list[Step]:
    """Returns the steps that assign a tensor of the active backend to each cell.

    Raises:
        HostDrawError: inside a transform that runs the function once for several results, which then runs it again.
        TracedTensorError: if a tensor is traced, or while a running transform holds the values of cells.
    """
    home_ops = selection.active().backend.home
    if OPEN:
        refuse_effect("a cell would be assigned")
    if _WATCHES or not home_ops.backend.may_all_outlive_transforms(tensors):
        return [cell.replace_step(tensor) for cell, tensor in zip(cells, tensors, strict=True)]
    return list(zip(repeat(setattr), cells, repeat("_held"), zip(tensors, repeat(home_ops))))


def gradients_of(cells: Sequence[C]) -> dict[C, Any]:
    """Returns the gradient of each cell that has one, as a tensor of the active backend."""
    if _WATCHES and (recorder := current_recording()) is not None:
        return {cell: x for cell in cells if (x := recorder.effects.gradient(cell)) is not None}
    home_ops, gradient_pairs = selection.active().backend.home, list(map(_GRAD, cells))
    if None not in gradient_pairs and list(map(_HOME, gradient_pairs)).count(home_ops) == len(gradient_pairs):
        return dict(zip(cells, map(_TENSOR, gradient_pairs), strict=True))
    return {
        cell: gradient[0] if gradient[1] is home_ops else cell.grad
        for cell in cells
        if (gradient := cell._grad) is not None
    }


def accumulate_steps(cells: Sequence[Cell], gradients: Sequence[Any]) -> list[Step]:
    """Returns the steps that add a gradient, a constant tensor of the active backend, to that of each cell."""
    if _WATCHES and (recorder := current_recording()) is not None:
        return [(recorder.effects.add_gradient, *pair) for pair in zip(cells, gradients, strict=True)]
    active_ops = selection.active()
    home_ops = active_ops.backend.home
    steps: list[Step] = []
    old_gradient = None
    for cell, gradient in zip(cells, gradients, strict=True):
        old_gradient = None if cell._grad is None else cell.grad
        if old_gradient is not None:
            gradient = active_ops.add(old_gradient, gradient)
        steps.append((setattr, cell, "_grad", (gradient, home_ops)))
    _Sum.last = _NO_SUM if old_gradient is None else _id_and_count(cells[-1])
    return steps


_NO_SUM = (0, 0)


class _Sum:
    """The id of the cell to whose gradient gradients were added last, and how many in a row.

    Both are one value: threads that add to two cells must not take the other's number.
    """

    last = _NO_SUM


def _id_and_count(cell: Cell) -> tuple[int, int]:
    """Returns the id of a cell and how many gradients in a row, this one included, were added to it.

    It warns at `MANY`.
    """
    last_id, added_count = _Sum.last
    added_count = added_count + 1 if last_id == id(cell) else 1
    if added_count == MANY - 1:
        warnings.warn(
            f"ops.backward() has added {MANY} gradients for the same parameters, and no step has cleared them: call "
            f"optimizer.step() after it, or ops.zero_grad(model) to discard them",
            TrainingWarning,
            stacklevel=2,
        )
    return id(cell), added_count


MANY = 33
"""So many gradients are seldom added on purpose: those who accumulate add a power of 2 up to 32."""


def clear_grad_steps(cells: Iterable[Cell]) -> list[Step]:
    """Returns the steps that set the gradient of each cell to None."""
    if _WATCHES:
        return [cell.exchange_grad_step(None) for cell in cells]
    return list(zip(repeat(setattr), cells, repeat("_grad"), repeat(None)))


def replace_cells(bound: Any, values: Any) -> Any:
    """Returns a list or tuple with the tensors of the cells in it, at any depth, for the backend of `bound`."""
    if isinstance(values, Cell):
        return values.tensor_on(bound)
    cls = values.__class__
    if cls is not list and cls is not tuple:
        return values
    replaced_values = [replace_cells(bound, value) for value in values]
    return replaced_values if cls is list else tuple(replaced_values)


def _tensor_and_home_of(value: Any) -> Held:
    """Returns a tensor, number or list as a tensor of the active backend, with that backend.

    Raises:
        BackendMismatchError: if it is a tensor of another backend.
    """
    active_ops = selection.active()
    backend = active_ops.backend
    if value.__class__ is not backend.tensor_type:
        if isinstance(value, Cell):
            value = value.tensor_on(active_ops)
        if not isinstance(value, TensorProxy):
            value = active_ops.convert_to_tensor(value)
    return value, backend.home


def _detach_held(held: Held) -> Held:
    """Returns the tensor in a cell, detached from the graph of the user's own differentiation by the library."""
    tensor, home_ops = held
    detached_tensor = home_ops.backend.detach(tensor)
    return held if detached_tensor is tensor else (detached_tensor, home_ops)
