"""Moves the tensor of a cell to another backend, into a pickle, and into a copy.

A typed error for the second thread would need an owner for each cell, which is wrong as soon as the owner's thread
ends, and would forbid reading a model for evaluation on another backend. A copy for each backend at once would make
moves cheap, and hold a second copy of a model that nobody may need. Tensors move as bits through the host: DLPack lacks
a dtype in each library (bfloat16, uint16, bool), and memory that two backends share would break the rule that each
thread has a copy of its own.
"""

import warnings
from collections.abc import Iterable, Iterator
from itertools import count
from typing import TYPE_CHECKING, Any, Self, cast

from emberharmony.core.cells.blocks import OBSERVED, THREAD, Held
from emberharmony.core.cells.overwriting import OVERWRITINGS, await_end
from emberharmony.core.errors import BackendSwitchWarning, EmberError, TracedTensorError
from emberharmony.core.named_tuple import Record
from emberharmony.core.state.checked_mode import most_moves
from emberharmony.core.state.commits import Step, assignment, commit, steps_if_unchanged
from emberharmony.core.tracing import TensorProxy

if TYPE_CHECKING:
    from emberharmony.core.cells.cell import Cell


class HostBits(Record):
    """A tensor as bits on the host, which any backend can read: a NumPy array, and the neutral name of the dtype.

    The array is one of uint16 if the dtype is bfloat16, which NumPy lacks.
    """

    bits: Any
    dtype: str


class Journey:
    """The number of moves of a cell, and the device that it had on each backend, by the backend's prefix."""

    __slots__ = ("devices", "moves")

    def __init__(self) -> None:
        self.moves: Iterator[int] = count(1)
        self.devices: dict[str, Any] = {}


class Movable:
    """The base class of cells: methods that move, pickle and copy a cell with its tensor and gradient."""

    __slots__ = ("_grad", "_held", "_journey")
    _held: Held
    _grad: Held | None
    _journey: Journey | None

    def _held_after_writes(self) -> Held:
        """Returns the tensor and its backend, after a wait for a step that is writing into the tensor."""
        tensor_and_home = self._held
        if OVERWRITINGS:
            await_end([cast("Cell", self)])
        return tensor_and_home

    def _empty_copy(self) -> Self:
        """Returns a cell of the same class and attributes that holds nothing yet."""
        cell = self.__class__.__new__(self.__class__)
        cell._grad = cell._journey = None
        cell._set_attributes(self._attributes())
        for block in OBSERVED:
            block.note_new_cell(cast("Cell", cell))
        return cell

    def _attributes(self) -> dict[str, Any]:
        """Returns the attributes other than the tensor and its gradient, with those of subclasses."""
        slot_names = [name for cls in type(self).__mro__ for name in getattr(cls, "__slots__", ()) if name[0] != "_"]
        return {name: getattr(self, name) for name in slot_names if hasattr(self, name)} | getattr(self, "__dict__", {})

    def _set_attributes(self, attributes: dict[str, Any]) -> None:
        for name, value in attributes.items():
            setattr(self, name, value)

    def _move_slot(self, slot: str, held: Held, bound: Any) -> Any:
        """Returns the tensor of a slot on a backend, and stores it in the slot if nothing was assigned meanwhile."""
        home_ops = bound.backend.home
        if held[1] is home_ops:
            return held[0]
        tensor = self.convert_held(held, home_ops)
        commit(steps_if_unchanged(self, slot, held, [assignment(self, slot, (tensor, home_ops))]))
        return tensor

    def convert_held(self, held: Held, home: Any) -> Any:
        """Returns a held tensor as one of another backend.

        Raises:
            DTypeError: if the backend lacks the dtype.
            TracedTensorError: if the tensor is traced.
        """
        tensor, source_home = held
        if source_home is home:
            return tensor
        journey = self._journey or Journey()
        device = journey.devices.get(home.backend.prefix)
        try:
            if source_home is None:
                return home.backend.unpack(tensor, device)
            if isinstance(tensor, TensorProxy) or source_home.backend.is_traced(tensor):
                raise TracedTensorError("a running transform holds its tensor, so it cannot move; leave the transform")
            if home.backend.is_tensor(tensor):  # two backend objects may share a library
                return tensor
            moved_tensor = home.backend.unpack(source_home.backend.pack(tensor), device)
            device_of_source = source_home.get_device(tensor)
            if device_of_source != source_home.get_default_device():
                journey.devices[source_home.backend.prefix] = device_of_source
        except EmberError as error:
            error_class = type(error)
            source_text = "the host" if source_home is None else f"backend {source_home.backend.name!r}"
            raise error_class(
                f"{self!r} stays on {source_text} and cannot follow to {home.backend.name!r}: {error}"
            ) from error
        move_limit = most_moves()
        if move_limit is not None and next(journey.moves) == move_limit + 1:
            warnings.warn(
                f"{self!r} has changed its backend more than {move_limit} times, and each change copies it: read it "
                f"under one backend, or make a second cell",
                BackendSwitchWarning,
                stacklevel=2,
            )
        return moved_tensor

    def __getstate__(self) -> dict[str, Any]:
        grad = None if self._grad is None else _pack_on_host(self._grad)
        return {"value": _pack_on_host(self._held_after_writes()), "grad": grad, "attributes": self._attributes()}

    def __setstate__(self, state: dict[str, Any]) -> None:
        self._journey = Journey()
        self._held = HostBits(*state["value"]), None
        self._grad = None if state["grad"] is None else (HostBits(*state["grad"]), None)
        self._set_attributes(state["attributes"])

    def __deepcopy__(self, memo: dict[int, Any]) -> Self:
        cell = memo[id(self)] = self._empty_copy()
        cell._journey = Journey()
        cell._journey.devices.update((self._journey or cell._journey).devices)
        cell._held = _copy_of(self._held_after_writes())
        cell._grad = None if self._grad is None else _copy_of(self._grad)
        from copy import deepcopy  # imported here, because only copies need it

        cell._set_attributes(deepcopy(self._attributes(), memo))
        return cell


def steps_of_move(cell: "Cell", home: Any) -> list[Iterable[Step]]:
    """Returns the steps that move a cell and its gradient to a backend, if nothing is assigned to it before they run.

    Raises:
        DTypeError: if the backend lacks the dtype.
        TracedTensorError: if a running transform holds the tensor.
    """
    if cell in THREAD.values:
        raise TracedTensorError(f"{cell!r} cannot move, because a running transform holds its tensor; leave it first")
    steps: list[Iterable[Step]] = []
    for slot in ("_held", "_grad"):
        tensor_and_home = cell._held_after_writes() if slot == "_held" else cell._grad
        if tensor_and_home is not None and tensor_and_home[1] is not home:
            tensor = cell.convert_held(tensor_and_home, home)
            steps.append(steps_if_unchanged(cell, slot, tensor_and_home, [assignment(cell, slot, (tensor, home))]))
    return steps


def _pack_on_host(held: Held) -> tuple[Any, str]:
    tensor, home_ops = held
    return tuple(tensor if home_ops is None else home_ops.backend.pack(tensor))


def _copy_of(held: Held) -> Held:
    tensor, home_ops = held
    return (tensor, None) if home_ops is None else (home_ops.copy(tensor), home_ops)
