"""The links between arrays that share memory, and the stale tensors of views, which are read again when needed.

All arrays share one lock. Threads that write to slices of one array, as those of joblib do, lose no update. Without it
reading, setting and writing slices from several threads lost updates in 15 of 20 rounds.
"""

import threading
from collections.abc import Callable, Iterator
from typing import Any
from weakref import ref

from emberharmony.core.registry import OPS
from emberharmony.core.tracing import Standing
from emberharmony.xp.loans import Loan

LOCK = threading.RLock()
FEW = 64
"""The number of views of an array after which references to deleted views are removed."""
_new = object.__new__


class Links:
    """The relations of an array to arrays that share its memory: its parent, its views, and who owns the memory.

    Attributes:
        parent: the array that it is a view of, or None.
        key_or_call: the key, or the `Call`, by which it is read from its parent.
        is_element: whether it is an element, which lies in the memory of its parent, but must not see its next write.
        views: weak references to the views of it.
        most_views: how many of these there may be before those that are gone are forgotten.
        foreign: whether its memory belongs to somebody else, so that it is copied before the first write.
    """

    __slots__ = ("foreign", "is_element", "key_or_call", "most_views", "parent", "views")
    parent: Any
    key_or_call: Any
    is_element: bool
    views: list[Any]
    most_views: int
    foreign: bool


class Call:
    """How a view is read from its parent by a function of tensors that only chooses elements."""

    __slots__ = ("run",)

    def __init__(self, run: Callable[[Any], Any]) -> None:
        self.run = run


def new_links(foreign: bool = False) -> Links:
    """Returns new links for an array that is no view and has no views."""
    links = _new(Links)
    links.parent = links.key_or_call = None
    links.views, links.most_views, links.foreign, links.is_element = [], FEW, foreign, False
    return links


def is_element(array: Any, key_or_call: Any) -> bool:
    """Returns whether an array that was read from another at a key is an element, for which NumPy gives a scalar."""
    key_parts = key_or_call if key_or_call.__class__ is tuple else (key_or_call,)
    return bool(key_parts) and all(key_part.__class__ is int for key_part in key_parts) and not array._v.ndim


def links_of(array: Any) -> Any:
    """Returns the `Links` of an array, or None; for a new view they are made of the pair (parent, key)."""
    links = array._links
    if links.__class__ is tuple:
        with LOCK:
            links = array._links
            if links.__class__ is tuple:
                parent, key_or_call = links
                links = new_links()
                links.parent, links.key_or_call, links.is_element = parent, key_or_call, is_element(array, key_or_call)
                array._links = links
    return links


def tensor_of(array: Any) -> Any:
    """Returns the tensor of an array."""
    tensor = array._v
    return tensor.read_tensor() if tensor.__class__ is Stale else tensor


class Stale(Standing):
    """A tensor that is read when it is needed: of a view whose parent was written to, or of memory that NumPy has.

    Args:
        memory: the `views.Memory` that reads it.
        array: the array, whose tensor this stands for.
        loan: the memory that NumPy has, if it has it.
    """

    __slots__ = ("array", "loan", "memory", "parent")

    def __init__(self, memory: Any, array: Any, loan: Loan | None = None) -> None:
        self.memory, self.parent, self.array, self.loan = memory, links_of(array).parent, ref(array), loan

    def read_tensor(self) -> Any:
        """Returns the tensor, and puts it into the array, unless NumPy may still write into its memory."""
        with LOCK:
            array = self.array()
            if self.loan is not None:
                if array is not None and array._v is not self:  # another thread has read the loan already
                    return tensor_of(array)
                tensor = self.memory.read_loan(self.loan)
                if array is not None and not self.loan.is_open:
                    array._v = tensor
                return tensor
            # A transform may still refer to this object although the array has got its tensor already.
            if array is None or array._v is not self:
                raise RuntimeError("a view was read after it was deleted")
            tensor = self.memory.read_view(tensor_of(self.parent), links_of(array).key_or_call)
            if self.parent._v.__class__ is not Stale:
                array._v = tensor
            if self.memory.shares:
                self.memory._mark_kept_if_copied(tensor, self.parent)
            return tensor

    def tensor_on(self, bound: Any) -> Any:
        """Returns the tensor."""
        return self.read_tensor()

    def run(self, backend: Any, op: str, arguments: tuple[Any, ...]) -> Any:
        """Runs an op on the tensors that the outdated views among its arguments stand for."""
        return call_op(getattr(backend.bound, op), op, [resolve_stale(x) for x in arguments])

    def __getattr__(self, name: str) -> Any:
        known_attributes = {} if self.loan is None else self.loan.attributes
        return known_attributes[name] if name in known_attributes else getattr(self.read_tensor(), name)


def loan_of(array: Any) -> Loan | None:
    """Returns the `Loan` of an array whose memory was given to NumPy; None for other arrays."""
    return array._v.loan if array._v.__class__ is Stale else None


def resolve_stale(argument: Any) -> Any:
    """Returns an argument with the tensors of the outdated views in it, at any depth of lists and tuples."""
    cls = argument.__class__
    if cls is Stale:
        return argument.read_tensor()
    return cls(map(resolve_stale, argument)) if cls is list or cls is tuple else argument


def call_op(function: Callable[..., Any], op: str, arguments: Any) -> Any:
    """Calls an op with arguments in the order of its declaration."""
    keyword_names = [p.name for p in OPS[op].parameters if p.keyword_only]
    positional_count = len(arguments) - len(keyword_names)
    return function(
        *arguments[:positional_count], **dict(zip(keyword_names, arguments[positional_count:], strict=True))
    )


def view_chain(array: Any) -> Iterator[Any]:
    """Yields an array, the array that it is a view of, and so on up to the array that is no view."""
    while array is not None:
        yield array
        links = links_of(array)
        array = None if links is None else links.parent


def live_views(parent: Any) -> Iterator[Any]:
    """Yields the live views of an array; an element that got its own memory is no longer a view."""
    for reference in tuple(links_of(parent).views):
        array = reference()
        links = None if array is None else links_of(array)
        if links is not None and links.parent is parent:
            yield array
