"""`to_backend`: the tensors of models, optimizers and trees are moved to another backend, all of them or none."""

import copy
from collections.abc import Iterable, Iterator
from itertools import chain
from typing import TYPE_CHECKING, Any, TypeVar, cast

import numpy as np

from emberharmony.backend.base import Backend
from emberharmony.backend.choice import owning_backend_of
from emberharmony.backend.discovery import BUILTIN, OPTIONAL, load
from emberharmony.core.cells.cell import Cell
from emberharmony.core.cells.moves import steps_of_move
from emberharmony.core.errors import ArgumentError, EmberError, TracedTensorError
from emberharmony.core.state.commits import Step, commit
from emberharmony.core.tracing import LEAVES, TensorProxy
from emberharmony.core.trees.objects import ENTERED, SLOTS
from emberharmony.core.types import BackendLike

if TYPE_CHECKING:
    from emberharmony.backend.protocol import TensorBackend

T = TypeVar("T")
_PLAIN = frozenset((type(None), bool, int, float, complex, str, bytes, bytearray, range, slice, type, type(Ellipsis)))
_LIBRARIES = frozenset(module.partition(".")[0] for module in (BUILTIN | OPTIONAL).values()) | {"jaxlib"}


def to_backend(obj: T, name: "BackendLike | Backend | TensorBackend") -> T:
    """Moves all tensors in an object to a backend, and returns the object.

    It walks dicts, lists, tuples, named tuples, dataclasses, and the attributes of any object whose class is not from
    the standard library or an array library: models, optimizers, generators. Parameters and buffers stay the same
    objects. Plain tensors, NumPy arrays included, are replaced in the dict, list or object that holds them; only
    tuples and frozen dataclasses that hold some are made anew. A tensor in several places is converted once.

    All is converted first and then exchanged in one step, so an error, such as full memory, or an interruption leaves
    everything where it was. The active backend does not change.

    Args:
        obj: a model, an optimizer, a tree, a parameter or a tensor.
        name: a backend's name, or a backend object.

    Raises:
        ArgumentError: if the object is nested too deeply.
        BackendNotFoundError: if the name is unknown.
        BackendUnavailableError: if the backend's library is missing.
        DTypeError: if the backend lacks the dtype of a tensor; the message has its place.
        TracedTensorError: if a tensor is being differentiated.

    Example:
        >>> from emberharmony import Parameter, to_backend
        >>> model = {"weight": Parameter([1.0, 2.0]), "steps": ops.array([3])}
        >>> type(to_backend(model, "numpy")["steps"]).__module__
        'numpy'
    """
    backend = name if isinstance(name, Backend) else load(cast("BackendLike", name))
    mover = _Move(backend.home)
    try:
        moved_object = mover.move_value(obj, type(obj).__name__)
    except RecursionError as error:
        raise ArgumentError("an object is nested too deeply to be walked; move its parts one by one") from error
    commit(mover.steps())
    return cast(T, moved_object)


class _Move:
    """The move of all tensors in an object to another backend: it converts them, and collects the assignments.

    Args:
        home: the ops of the backend to move to.
    """

    def __init__(self, home: Any) -> None:
        self._home = home
        self._exchanges: list[Step] = []
        self._cells: list[Iterable[Step]] = []
        self._done: dict[int, Any] = {}
        self._kept_objects: list[Any] = []  # keeps what was met, so that no other object gets its id

    def steps(self) -> Iterator[Step]:
        """Returns the steps that assign the moved tensors, of all parameters and other objects."""
        return chain(self._exchanges, *self._cells)

    def move_value(self, value: Any, place: str) -> Any:
        """Returns a value with its tensors moved: a new object, or itself if it can be changed or has no tensors.

        Args:
            value: anything.
            place: where it is, for messages.
        """
        if value.__class__ in _PLAIN:
            return value
        if id(value) not in self._done:
            self._kept_objects.append(value)
            self._done[id(value)] = value  # for cycles
            self._done[id(value)] = self._move_by_kind(value, place)
        return self._done[id(value)]

    def _move_by_kind(self, value: Any, place: str) -> Any:
        if isinstance(value, Cell):
            self._cells += steps_of_move(value, self._home)
            return value
        if hasattr(value, "dtype") and hasattr(value, "shape") and not isinstance(value, np.generic):
            backend = owning_backend_of(value)
            if backend is not None:
                return self._move_tensor(value, backend, place)
        if isinstance(value, dict):
            self._move_items(value, dict.__setitem__, [(key, item, f"{place}[{key!r}]") for key, item in value.items()])
        elif isinstance(value, list):
            self._move_items(value, list.__setitem__, [(i, item, f"{place}[{i}]") for i, item in enumerate(value)])
        elif isinstance(value, tuple):
            moved_items = [self.move_value(item, f"{place}[{i}]") for i, item in enumerate(value)]
            if any(new_item is not old_item for new_item, old_item in zip(moved_items, value, strict=True)):
                return value._make(moved_items) if hasattr(value, "_make") else tuple(moved_items)
            return value
        return self._move_object(value, place) if _is_walked(value.__class__) else value

    def _move_tensor(self, tensor: Any, source: Backend, place: str) -> Any:
        if isinstance(tensor, TensorProxy) or source.is_traced(tensor):
            raise TracedTensorError(f"{place} cannot move to backend {self._home.backend.name!r}: {LEAVES}")
        if source.home is self._home or (isinstance(tensor, np.ndarray) and tensor.dtype.kind not in "biufcV"):
            return tensor
        try:
            return self._home.backend.unpack(source.pack(tensor))
        except EmberError as error:
            error_class = type(error)
            raise error_class(f"{place} cannot move to backend {self._home.backend.name!r}: {error}") from error

    def _move_items(self, holder: Any, assign: Any, items: Iterable[tuple[Any, Any, str]]) -> None:
        """Notes an assignment to a dict, list or object for each item that is replaced by a moved one."""
        for key, item, target in items:
            new_item = self.move_value(item, target)
            if new_item is not item:
                self._exchanges.append((assign, holder, key, new_item))

    def _move_object(self, value: Any, place: str) -> Any:
        """Moves the tensors in the attributes of an object; returns a copy of a frozen dataclass that changes."""
        placed_attributes = [(name, item, f"{place}.{name}") for name, item in getattr(value, "__dict__", {}).items()]
        slot_attributes = [
            (name, getattr(value, name), f"{place}.{name}") for name in SLOTS[value.__class__] if hasattr(value, name)
        ]
        dataclass_params = getattr(value, "__dataclass_params__", None)
        if dataclass_params is not None and dataclass_params.frozen:
            moved_attributes = [
                (name, item, self.move_value(item, attribute_place))
                for name, item, attribute_place in (*placed_attributes, *slot_attributes)
            ]
            if all(new_item is item for _, item, new_item in moved_attributes):
                return value
            value = copy.copy(value)
            for name, _, new_item in moved_attributes:
                object.__setattr__(value, name, new_item)
            return value
        # Not by `setattr`: a `__setattr__` of the class could run Python code between two steps.
        if placed_attributes:
            self._move_items(value.__dict__, dict.__setitem__, placed_attributes)
        self._move_items(value, object.__setattr__, slot_attributes)
        return value


def _is_walked(cls: type) -> bool:
    """Returns whether the attributes of objects of a class are looked at; those of a `torch.nn.Module` are not."""
    if any(base.__module__.partition(".")[0] in _LIBRARIES for base in cls.__mro__):
        return False
    return ENTERED[cls] or issubclass(cls, (dict, list))
