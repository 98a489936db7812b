"""Context managers that collect the cells read in a block, or give cells other values for one thread.

A transform that puts traced tensors into cells (`ops.backward`) does so in an `Assignments` block. Only the thread of
the block sees them, and the cells keep their plain tensors.

The values are in one dict for each thread, in a `threading.local`: Dynamo (PyTorch 2.13) cannot trace a `ContextVar`,
and compiles a function that reads a cell again for each new dict. A list that is empty unless such a block is open
anywhere guards the look-up.
"""

from collections.abc import Collection, Iterable
from operator import is_
from typing import TYPE_CHECKING, Any

from emberharmony.core import selection
from emberharmony.core.cells.overwriting import WATCHES
from emberharmony.core.state.commits import Step
from emberharmony.core.state.draws import HostDrawError, WithoutDraws, current_recording
from emberharmony.core.state.scopes import Entry, Scope, ThreadStack, blocks_of

if TYPE_CHECKING:
    from emberharmony.core.cells.cell import Cell

Held = tuple[Any, Any]
"""A tensor, and the `Bound` of its backend; or `HostBits` and None."""

OBSERVED: "list[ReadCells]" = []
"""The `ReadCells` blocks that are open."""


def refuse_changing(cell: "Cell") -> None:
    """Raises an error if a step of an optimizer that is recorded, but not made yet, will change a cell.

    Raises:
        HostDrawError: if one will, because it has not been made yet.
    """
    recorder = current_recording()
    if recorder is not None and cell in recorder.effects.changing:
        raise HostDrawError(f"{cell!r} would be used before the step that changes it is made")


class ReadCells:
    """A context manager that collects the cells whose values are read in its block, each with its value.

    `with ReadCells() as read:` gives the dict from cell to value. It also contains the cells that other threads read
    meanwhile.
    """

    def __enter__(self) -> "dict[Cell, Any]":
        self._read: dict[Cell, Any] = {}
        OBSERVED.append(self)
        WATCHES.append(self)
        return self._read

    def __exit__(self, *raised: object) -> None:
        OBSERVED[:] = [block for block in OBSERVED if block is not self]
        WATCHES.remove(self)

    def note_new_cell(self, cell: "Cell") -> None:
        """Notes that a cell is made."""

    def add_read(self, cell: "Cell", held: "Held | None", tensor: Any) -> None:
        """Stores the tensor that was read from a cell; `held` is what an `Assignments` block makes the cell hold."""
        self._read[cell] = tensor


class ReadFromOutside(ReadCells):
    """A context manager that collects the cells read in its block, except those that are made in it.

    It leaves out cells that are made in the block, and what `Assignments` blocks inside of it make cells hold.
    """

    def __enter__(self) -> "dict[Cell, Any]":
        self._before = dict(THREAD.values)
        self._own_cells: set[Cell] = set()
        return super().__enter__()

    def note_new_cell(self, cell: "Cell") -> None:
        """Notes that a cell is made."""
        self._own_cells.add(cell)

    def has_made(self, cell: "Cell") -> bool:
        """Returns whether a cell was made in the block."""
        return cell in self._own_cells

    def add_read(self, cell: "Cell", held: "Held | None", tensor: Any) -> None:
        """Stores the tensor that was read from a cell, unless the block has made the cell or assigned the tensor."""
        refuse_changing(cell)
        if cell not in self._own_cells and (held is None or held is self._before.get(cell)):
            super().add_read(cell, held, tensor)


class _Thread(ThreadStack):
    """The open `Assignments` blocks of this thread, and what the innermost one makes the cells hold.

    `values` is the same dict as long as the thread lives, because `torch.compile` would compile a function that reads a
    cell again for each other dict, and cannot trace the read of a `ContextVar` at all (PyTorch 2.13).
    """

    def __init__(self, opened: list[Any]) -> None:
        super().__init__(opened)
        self.values: dict[Cell, Held] = {}

    def effect_steps(self, entry: Entry | None) -> Iterable[Step]:
        """Returns the steps that replace the content of the dict `values` by that of the innermost block's dict."""
        held_by_cell = self.values
        return [(held_by_cell.clear,)] if entry is None else [(held_by_cell.clear,), (held_by_cell.update, entry[0])]


THREAD = _Thread(WATCHES)
WithoutDraws.holder = staticmethod(THREAD.get)


class Assignments(Scope):
    """A block in which cells hold other values, for this thread only; the cells themselves do not change.

    `with Assignments(tensors) as assigned:` gives the dict from cell to the pair of value and backend. It also gets the
    assignments made in the block.

    Args:
        tensors: the tensors of the active backend, possibly traced, that cells hold at first.
    """

    __slots__ = ("_tensors",)

    _stack: Any = THREAD

    def __init__(self, tensors: "dict[Cell, Any]") -> None:
        self._watch, self._tensors = None, tensors  # what `Scope` does, without a further call

    def __enter__(self) -> "dict[Cell, Held]":
        home_ops = selection.active().backend.home
        outer_entry = THREAD.entry
        value_by_cell = {} if outer_entry is None else dict(outer_entry[0])
        for cell, tensor in self._tensors.items():
            value_by_cell[cell] = tensor, home_ops
        THREAD.set((value_by_cell, outer_entry, self, self._watch))
        return value_by_cell


def newly_assigned_tensors(
    assigned: "dict[Cell, Held]", before: "dict[Cell, Held]", own_cells: "Collection[Cell]" = ()
) -> "dict[Cell, Any]":
    """Returns the tensors that cells, except `own_cells`, got in an `Assignments` block since its dict was `before`."""
    if len(assigned) == len(before) and all(map(is_, assigned.values(), before.values())):
        return {}
    excluded_cells = {*own_cells}  # a list would compare the cells, whose `==` compares elements
    return {
        cell: tensor_and_home[0]
        for cell, tensor_and_home in assigned.items()
        if tensor_and_home is not before.get(cell) and cell not in excluded_cells
    }


def cells_of_open_blocks() -> "list[Cell]":
    """Returns the cells that the open `Assignments` blocks of this thread began with."""
    return list({cell: None for block in blocks_of(THREAD.entry) for cell in block._tensors})
