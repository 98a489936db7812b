"""Cells: places for a tensor that follows the active backend.

A cell holds its tensor together with the backend that the tensor belongs to, as one tuple, so that a reader never sees
the tensor of one backend with the name of another. A read under another backend converts the tensor exactly, through
the host, and puts the result back only if nothing was assigned meanwhile: an assignment is never overwritten by an
older value. Each of two threads that use a cell on two backends thus gets an exact copy on its own backend.

A typed error for the second thread would need an owner for each cell, which is wrong as soon as the owner's thread
ends, and would forbid reading a model for evaluation on another backend. A copy for each backend at once would make
moves cheap, and hold a second copy of a model that nobody may need. Tensors move as bits through the host: DLPack lacks
a dtype in each library (bfloat16, uint16, bool), and memory that two backends share would break the rule that each
thread has a copy of its own.
"""

import copy
import warnings
from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import count, repeat
from operator import attrgetter, itemgetter
from typing import Any, Self

from emberharmony.core import op_globals, selection
from emberharmony.core.cells.blocks import OBSERVED as _OBSERVED
from emberharmony.core.cells.blocks import THREAD as _THREAD
from emberharmony.core.cells.blocks import refuse_changing
from emberharmony.core.cells.overwriting import OVERWRITINGS, await_end
from emberharmony.core.cells.overwriting import WATCHES as _WATCHES
from emberharmony.core.cells.tensor_methods import TensorMethods
from emberharmony.core.errors import BackendSwitchWarning, DTypeError, EmberError, TracedTensorError
from emberharmony.core.named_tuple import Record
from emberharmony.core.registry import OPS
from emberharmony.core.selection import _PROCESS
from emberharmony.core.state.checked_mode import FEW_MOVES as FEW_MOVES
from emberharmony.core.state.checked_mode import moves_allowed
from emberharmony.core.state.commits import Step, assignment, commit, if_unchanged
from emberharmony.core.state.draws import OPEN, recording, refuse_effect
from emberharmony.core.tracing import Substitute, TensorProxy

_HELD, _TENSOR, _HOME = attrgetter("_held"), itemgetter(0), itemgetter(1)

_OF_THE_LIBRARY = frozenset(
    "changing convert_held exchanging_grad holding is_passing kind of on refusal replacing run runs_on "  # noqa: SIM905
    "tensor_and_home with_tensor without_grad".split()
)
"""The methods and attributes of cells that are no concern of users."""

Held = tuple[Any, Any]
"""A tensor, and the `Bound` of its backend; or `HostBits` and None."""


class HostBits(Record):
    """A tensor as bits on the host, which any backend can read: a NumPy array, and the neutral name of the dtype.

    The array is one of uint16 if the dtype is bfloat16, which NumPy lacks.
    """

    bits: Any
    dtype: str


class Journey:
    """What a cell remembers of its moves: their number, and the device that it had on each backend, by prefix."""

    __slots__ = ("devices", "moves")

    def __init__(self) -> None:
        self.moves: Iterator[int] = count(1)
        self.devices: dict[str, Any] = {}


class Cell(TensorMethods, Substitute):
    """A place for a tensor that follows the active backend; in a tree it is a leaf, and elsewhere it is a tensor.

    Args:
        value: a tensor, number or list; becomes a tensor of the active backend.
        name: shown in messages.
    """

    __slots__ = ("__weakref__", "_grad", "_held", "_journey", "name")
    trainable: bool = False
    """Whether `ops.backward` gives it a gradient."""

    def __init__(self, value: Any, name: str = "") -> None:
        self.name = name
        self._journey: Journey | None = Journey()
        self._grad: Held | None = None
        self._held: Held = _without_record(_held_of(value))
        for block in _OBSERVED:
            block.note_new_cell(self)

    @property
    def value(self) -> Any:
        """The current tensor, as one of the active backend."""
        tensor_and_home = self._held
        if _WATCHES:
            if OVERWRITINGS:
                await_end([self])
            tensor_and_home = _THREAD.values.get(self, tensor_and_home)
        if not _OBSERVED:
            if not _PROCESS.overridden:
                if tensor_and_home[1] is _PROCESS.bound:
                    return tensor_and_home[0]
            else:
                entry = op_globals.override()
                if tensor_and_home[1] is (_PROCESS.bound if entry is None else entry[0]):
                    return tensor_and_home[0]
        return self.on(selection.active())

    @value.setter
    def value(self, value: Any) -> None:
        tensor_and_home = _held_of(value)
        if self._journey is not None:
            entry = _THREAD.entry if _WATCHES else None
            if entry is not None:
                if OPEN:
                    refuse_effect("a cell would be assigned", entry)
                    refuse_changing(self)
                entry[0][self] = _THREAD.values[self] = tensor_and_home
                return
            tensor_and_home = self._held_to_keep(tensor_and_home)
        self._held = tensor_and_home

    @property
    def grad(self) -> Any:
        """The gradient that `ops.backward` has accumulated, on the active backend; None if there is none."""
        if _WATCHES and (block := recording()) is not None:
            return block.effects.gradient(self)
        gradient = self._grad
        if gradient is None:
            return None
        bound = selection.active()
        return gradient[0] if gradient[1] is bound.backend.home else self._following("_grad", gradient, bound)

    @grad.setter
    def grad(self, value: Any) -> None:
        commit([self.exchanging_grad(None if value is None else _without_record(_held_of(value)))])

    def of(self, bound: Any) -> Any:
        """Returns the current tensor as one of the backend of `bound`: `on` without its costs in the usual case."""
        tensor_and_home = self._held
        if _WATCHES:
            if OVERWRITINGS:
                await_end([self])
            if _OBSERVED:  # which are in `_WATCHES` too
                return self.on(bound)
            tensor_and_home = _THREAD.values.get(self, tensor_and_home)
        return tensor_and_home[0] if tensor_and_home[1] is bound else self.on(bound)

    def on(self, bound: Any) -> Any:
        """Returns the current tensor as one of the backend of `bound`, and moves the cell there.

        Raises:
            DTypeError: if the backend lacks the dtype; the cell stays where it was.
            TracedTensorError: if a running transform holds the tensor on another backend.
        """
        watched = _THREAD.values.get(self) if _WATCHES else None
        if watched is not None:
            tensor = self.convert_held(watched, bound.backend.home)
        else:
            tensor = self._following("_held", self._held_after_writes(), bound)
        for block in _OBSERVED:
            block.add(self, watched, tensor)
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
        cast = selection.active().cast
        value, grad = cast(self.value, dtype), self.grad
        grad = None if grad is None else cast(grad, dtype)
        self.value = value
        self.grad = grad
        return self

    def changing(self, fn: Callable[[Any], Any]) -> list[Step]:
        """Returns the steps that replace the tensor by `fn(tensor)`, and likewise the gradient if there is one."""
        steps, grad = [self.replacing(fn(self.value))], self.grad
        return steps if grad is None else [*steps, self.exchanging_grad(_without_record(_held_of(fn(grad))))]

    def with_tensor(self, tensor: Any) -> Self:
        """Returns a cell like this one that holds another tensor of the active backend; a traced one only in a call."""
        cell = self.holding(tensor)
        if selection.active().backend.may_keep(tensor):
            cell._journey, cell._held = Journey(), _without_record(cell._held)
        return cell

    def run(self, backend: Any, op: str, arguments: tuple[Any, ...]) -> Any:
        """Calls an op that has this cell among its arguments again, with the tensors of the cells."""
        tensors = replace_cells(backend.bound, arguments)
        names = [p.name for p in OPS[op].parameters if p.keyword_only]
        if not names:
            return getattr(backend.bound, op)(*tensors)
        cut = len(tensors) - len(names)
        return getattr(backend.bound, op)(*tensors[:cut], **dict(zip(names, tensors[cut:], strict=True)))

    def replacing(self, value: Any) -> Step:
        """Returns the step that assigns a tensor, for a caller that commits several assignments together.

        Raises:
            BackendMismatchError: if it is a tensor of another backend.
            HostDrawError: inside a transform that runs the function once for several results, which then runs it again.
            TracedTensorError: if the tensor is traced, or while a running transform holds the values of cells.
        """
        if _WATCHES and _THREAD.entry is not None:
            raise TracedTensorError(f"{self!r} cannot change in the loss function of ops.backward: leave it first")
        return assignment(self, "_held", self._held_to_keep(_held_of(value)))

    def without_grad(self) -> Step:
        """Returns the step that sets the gradient to None, for a caller that commits several assignments together."""
        return self.exchanging_grad(None) if _WATCHES else (setattr, self, "_grad", None)

    def exchanging_grad(self, held: "Held | None") -> Step:
        """Returns the step that gives the cell another gradient, a tensor with its backend, or none."""
        if _WATCHES and (block := recording()) is not None:
            return block.effects.exchange, self, held
        return setattr, self, "_grad", held

    def holding(self, tensor: Any) -> Self:
        """Returns a cell like this one that holds another tensor of the active backend, which may be traced.

        A transform gives it to the function in the place of this cell. What the function assigns to it stays in it.
        """
        cell = self._empty_copy()
        cell._held = tensor, selection.current().home
        return cell

    @property
    def is_passing(self) -> bool:
        """Whether a transform made the cell for one call of a function, by `holding`."""
        return self._journey is None

    def tensor_and_home(self) -> "Held":
        """Returns the tensor with its backend, without a move."""
        return self._held_after_writes()

    def _held_after_writes(self) -> "Held":
        """Returns what the cell holds, when no step is writing into the tensor."""
        tensor_and_home = self._held
        if OVERWRITINGS:
            await_end([self])
        return tensor_and_home

    def _empty_copy(self) -> Self:
        """Returns a cell of the same class and attributes that holds nothing yet."""
        cell = self.__class__.__new__(self.__class__)
        cell._grad = cell._journey = None
        cell._restore(self._attributes())
        for block in _OBSERVED:
            block.note_new_cell(cell)
        return cell

    def _attributes(self) -> dict[str, Any]:
        """Returns the attributes other than the tensor and its gradient, with those of subclasses."""
        slots = [name for kind in type(self).__mro__ for name in getattr(kind, "__slots__", ()) if name[0] != "_"]
        return {name: getattr(self, name) for name in slots if hasattr(self, name)} | getattr(self, "__dict__", {})

    def _restore(self, attributes: dict[str, Any]) -> None:
        for name, value in attributes.items():
            setattr(self, name, value)

    def _following(self, slot: str, held: Held, bound: Any) -> Any:
        """Returns what a slot holds as a tensor of a backend, and keeps it there if nothing was assigned meanwhile."""
        home = bound.backend.home
        if held[1] is home:
            return held[0]
        tensor = self.convert_held(held, home)
        commit(if_unchanged(self, slot, held, [assignment(self, slot, (tensor, home))]))
        return tensor

    def convert_held(self, held: Held, home: Any) -> Any:
        """Returns a held tensor as one of another backend.

        Raises:
            DTypeError: if the backend lacks the dtype.
            TracedTensorError: if the tensor is traced.
        """
        tensor, source = held
        if source is home:
            return tensor
        journey = self._journey or Journey()
        device = journey.devices.get(home.backend.prefix)
        try:
            if source is None:
                return home.backend.unpack(tensor, device)
            if _is_proxy(tensor) or source.backend.is_traced(tensor):
                raise TracedTensorError("a running transform holds its tensor, so it cannot move; leave the transform")
            if home.backend.is_tensor(tensor):  # two backend objects may share a library
                return tensor
            moved = home.backend.unpack(source.backend.pack(tensor), device)
            device_of_source = source.get_device(tensor)
            if device_of_source != source.get_default_device():
                journey.devices[source.backend.prefix] = device_of_source
        except EmberError as error:
            kind = type(error)
            there = "the host" if source is None else f"backend {source.backend.name!r}"
            raise kind(f"{self!r} stays on {there} and cannot follow to {home.backend.name!r}: {error}") from error
        few = moves_allowed()
        if few is not None and next(journey.moves) == few + 1:
            warnings.warn(
                f"{self!r} has changed its backend more than {few} times, and each change copies it: read it "
                f"under one backend, or make a second cell",
                BackendSwitchWarning,
                stacklevel=2,
            )
        return moved

    def _held_to_keep(self, held: Held) -> Held:
        """Returns what the cell keeps of a tensor after the running transform.

        Raises:
            HostDrawError: inside a transform that runs the function once for several results, which then runs it again.
            TracedTensorError: if the tensor is traced.
        """
        refuse_effect("a cell would be assigned")
        if not held[1].backend.may_keep(held[0]):
            raise TracedTensorError(
                f"{self!r} would keep a tensor that is being differentiated after the end of the transform: assign "
                f"ops.stop_gradient(x), return x from the function, or use ops.backward"
            )
        return _without_record(held)

    def __getstate__(self) -> dict[str, Any]:
        grad = None if self._grad is None else _on_host(self._grad)
        return {"value": _on_host(self._held_after_writes()), "grad": grad, "attributes": self._attributes()}

    def __setstate__(self, state: dict[str, Any]) -> None:
        self._journey = Journey()
        self._held = HostBits(*state["value"]), None
        self._grad = None if state["grad"] is None else (HostBits(*state["grad"]), None)
        self._restore(state["attributes"])

    def __deepcopy__(self, memo: dict[int, Any]) -> Self:
        cell = memo[id(self)] = self._empty_copy()
        cell._journey = Journey()
        cell._journey.devices.update((self._journey or cell._journey).devices)
        cell._held = _copy_of(self._held_after_writes())
        cell._grad = None if self._grad is None else _copy_of(self._grad)
        cell._restore(copy.deepcopy(self._attributes(), memo))
        return cell

    def __repr__(self) -> str:
        tensor, home = self._held
        shape = tuple((tensor if home is not None else tensor.bits).shape)
        try:
            dtype = tensor.dtype if home is None else home.backend.dtype_of(tensor).name
        except DTypeError:  # an array of NumPy that was assigned may have any dtype
            dtype = tensor.dtype
        name = f"{self.name!r}, " if self.name else ""
        return f"{type(self).__name__}({name}shape={shape}, dtype={dtype}{self._extra()})"

    def _extra(self) -> str:
        return ""

    def __str__(self) -> str:
        tensor, home = self._held
        if home is None or isinstance(tensor, TensorProxy) or self in _THREAD.values:
            return repr(self)
        backend = home.backend
        try:
            values = backend.to_numpy(tensor)
        except DTypeError:  # NumPy has bfloat16 by ml_dtypes only
            values = backend.to_numpy(backend.cast(tensor, backend.dtypes["float32"]))
        return f"{self!r}\n{values}"

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
    home, held_tensors = selection.active().backend.home, list(map(_HELD, cells))
    if OVERWRITINGS:
        await_end(cells)
    if list(map(_HOME, held_tensors)).count(home) == len(held_tensors):
        return list(map(_TENSOR, held_tensors))
    return [cell.value for cell in cells]


def replacing(cells: "Sequence[Cell]", tensors: Sequence[Any]) -> list[Step]:
    """Returns the steps that assign a tensor of the active backend to each cell.

    Raises:
        HostDrawError: inside a transform that runs the function once for several results, which then runs it again.
        TracedTensorError: if a tensor is traced, or while a running transform holds the values of cells.
    """
    home = selection.active().backend.home
    if OPEN:
        refuse_effect("a cell would be assigned")
    if _WATCHES or not home.backend.may_keep_all(tensors):
        return [cell.replacing(tensor) for cell, tensor in zip(cells, tensors, strict=True)]
    return list(zip(repeat(setattr), cells, repeat("_held"), zip(tensors, repeat(home))))


def replace_cells(bound: Any, values: Any) -> Any:
    """Returns a list or tuple with the tensors of the cells in it, at any depth, for the backend of `bound`."""
    if isinstance(values, Cell):
        return values.on(bound)
    kind = values.__class__
    if kind is not list and kind is not tuple:
        return values
    replaced = [replace_cells(bound, value) for value in values]
    return replaced if kind is list else tuple(replaced)


def steps_of_move(cell: Cell, home: Any) -> list[Iterable[Step]]:
    """Returns the steps that move a cell and its gradient to a backend, if nothing is assigned to it before they run.

    Raises:
        DTypeError: if the backend lacks the dtype.
        TracedTensorError: if a running transform holds the tensor.
    """
    if cell in _THREAD.values:
        raise TracedTensorError(f"{cell!r} cannot move, because a running transform holds its tensor; leave it first")
    steps: list[Iterable[Step]] = []
    for slot in ("_held", "_grad"):
        tensor_and_home = cell._held_after_writes() if slot == "_held" else cell._grad
        if tensor_and_home is not None and tensor_and_home[1] is not home:
            tensor = cell.convert_held(tensor_and_home, home)
            steps.append(if_unchanged(cell, slot, tensor_and_home, [assignment(cell, slot, (tensor, home))]))
    return steps


def _held_of(value: Any) -> Held:
    """Returns a tensor, number or list as a tensor of the active backend, with that backend.

    Raises:
        BackendMismatchError: if it is a tensor of another backend.
    """
    bound = selection.active()
    backend = bound.backend
    if value.__class__ is not backend.tensor_type:
        if isinstance(value, Cell):
            value = value.on(bound)
        if not isinstance(value, TensorProxy):
            value = bound.convert_to_tensor(value)
    return value, backend.home


def _without_record(held: Held) -> Held:
    """Returns what a cell holds without the record that the user's own differentiation by the library keeps of it."""
    tensor, home = held
    plain = home.backend.plain(tensor)
    return held if plain is tensor else (plain, home)


def _is_proxy(tensor: Any) -> bool:
    return isinstance(tensor, TensorProxy)


def _on_host(held: Held) -> tuple[Any, str]:
    tensor, home = held
    return tuple(tensor if home is None else home.backend.pack(tensor))


def _copy_of(held: Held) -> Held:
    tensor, home = held
    return (tensor, None) if home is None else (home.copy(tensor), home)
