"""Writes into the tensors of cells that nothing else refers to, instead of giving the cells new tensors.

A cell alone holds its tensor if the counts of references to it and to its memory say so. Whoever reads a cell loads
what it holds, and then looks whether somebody is writing into the tensor. So either the writer finds the reference
that the reader has, and writes nothing, or the reader finds the writer, and waits until it has finished.

On PyTorch the storage must have one user, be made by PyTorch and not be shared with a process; an array of NumPy must
own its memory and be writable. A view, an array that shares the memory, a graph or a variable of the user raises a
count, and the step then makes new tensors, with the same bits. A signal handler runs in the thread of the step and
cannot wait, so if it reads a cell the step makes new tensors. All calls that write are C functions in one call of
`commit`, so an interruption comes before or after all of them. Without the global interpreter lock counts are not
exact, and nothing is written over.
"""

import sys
from _thread import RLock  # threading.RLock, without the import of threading
from collections.abc import Callable, Iterable, Sequence
from operator import attrgetter
from typing import TYPE_CHECKING, Any

from emberharmony.core import selection
from emberharmony.core.state.commits import Step, commit

if TYPE_CHECKING:
    from emberharmony.core.cells.cell import Cell

WATCHES: list[Any] = []
"""Not empty while reads of cells must look further than into the cell: for a block that is open, or for a writer."""

OVERWRITINGS: "list[Overwriting]" = []
"""Those that write at this moment, which are in `WATCHES` too."""

COUNTED = getattr(sys, "_is_gil_enabled", lambda: True)()
"""Whether counts of references are exact: without the global interpreter lock, each thread has a count of its own."""


def _most_references(objects: Sequence[Any]) -> int:
    """Returns the largest number of references to any of the objects in a list."""
    return max(map(sys.getrefcount, objects))


_TWICE = _most_references([object()]) + 1
"""What `_most_references` returns if one thing beside the list holds each of the objects."""


class Overwriting:
    """Writes into the tensors of cells, if they alone hold them.

    Args:
        cells: the cells.
    """

    def __init__(self, cells: "Sequence[Cell]") -> None:
        self._cells = cells
        self._lock = RLock()
        self._permit: list[None] = [None]
        self._withdrawn = False

    def try_writing(
        self, writes: Callable[[Sequence[Any]], list[Iterable[Step]] | None], steps: Iterable[Step]
    ) -> bool:
        """Runs the steps that write into the tensors, and returns True; False if they cannot be written to.

        Args:
            writes: returns the steps that write into the tensors, which are its argument and nobody else holds; None if
                somebody else can see their memory, or there are no such steps.
            steps: what to do after them.
        """
        backend = selection.active().backend
        with self._lock:
            commit([(WATCHES.append, self), (OVERWRITINGS.append, self)])
            try:
                held_pairs = list(map(attrgetter("_held"), self._cells))
                tensors, homes = zip(*held_pairs, strict=True)
                is_sole_owner = _most_references(held_pairs) <= _TWICE and homes.count(backend.home) == len(homes)
                write_steps = writes(tensors) if is_sole_owner and _most_references(tensors) <= _TWICE else None
                if write_steps is None:
                    return False
                with backend.writing_scope():
                    commit([(self._permit.pop,)], *write_steps, steps)
            except IndexError:
                if not self._withdrawn:
                    raise
                return False
            finally:
                self._close()
        return True

    def _close(self) -> None:
        commit([(registry.remove, self) for registry in (OVERWRITINGS, WATCHES) if self in registry])

    def await_end(self, cells: "Iterable[Cell]") -> None:
        """Waits until the writing has ended, if it writes into one of these cells.

        A signal handler that reads one in the thread of the writer cannot wait. It withdraws the permit to write.
        """
        if not {*self._cells}.isdisjoint(cells):
            with self._lock:
                self._withdrawn = True
                self._permit.clear()
                self._close()


def await_end(cells: "Sequence[Cell]") -> None:
    """Waits until no other thread writes into the tensors of these cells."""
    for overwriting in tuple(OVERWRITINGS):
        overwriting.await_end(cells)
