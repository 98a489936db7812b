"""Forms: tensors rearranged as a kernel reads them, which cells hold in place of the tensors themselves.

A form stands where a cell can hold `HostBits`. Whoever reads the cell gets the tensor, and the cell holds it from then
on; so there is one copy in memory at any time, and everything else that reads cells need not know of forms.
"""

from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any

from emberharmony.core.cells.blocks import OBSERVED, THREAD
from emberharmony.core.cells.cell import Cell
from emberharmony.core.cells.moves import HostBits
from emberharmony.core.cells.overwriting import OVERWRITINGS
from emberharmony.core.state.commits import Step, assignment, commit, steps_if_unchanged


class Form:
    """A tensor in the layout that a kernel reads; nobody changes it.

    Args:
        layout: the native tensor that the kernel reads.
        home: the `Bound` of its backend.
        restore: returns the bits of the tensor itself.
    """

    __slots__ = ("home", "layout", "restore")

    def __init__(self, layout: Any, home: Any, restore: Callable[[], HostBits]) -> None:
        self.layout, self.home, self.restore = layout, home, restore

    @property
    def bits(self) -> Any:
        """The bits of the tensor."""
        return self.restore().bits

    @property
    def dtype(self) -> str:
        """The neutral name of the dtype of the tensor."""
        return self.restore().dtype

    def __iter__(self) -> Iterator[Any]:
        return iter(self.restore())


def layout_of(cells: Sequence[Cell], home: Any) -> Any:
    """Returns the native tensor of the `Form` that the first of some cells holds on a backend, else None.

    It is None if the cell holds a tensor, or if a block observes or replaces one of the cells.
    """
    form = cells[0]._held[0]
    return form.layout if isinstance(form, Form) and form.home is home and _are_unobserved(cells) else None


def hold_forms(cells: Sequence[Cell], make: Callable[..., Sequence[Any] | None]) -> None:
    """Makes cells hold what `make` returns for their tensors, unless something is assigned to one meanwhile.

    Args:
        cells: the cells; a block that observes or replaces one leaves all as they are.
        make: returns, for the tensors of the cells, what they shall hold: forms, and tensors of the active backend; or
            None, which changes nothing.
    """
    if not _are_unobserved(cells):
        return
    tensors = [cell.value for cell in cells]
    pairs_before = [cell._held for cell in cells]
    new_values = make(*tensors)
    if new_values is None or any(
        held_pair[0] is not tensor for held_pair, tensor in zip(pairs_before, tensors, strict=True)
    ):
        return
    steps: list[Iterable[Step]] = []
    for cell, tensor_and_home, new_value in zip(cells, pairs_before, new_values, strict=True):
        home_ops = None if isinstance(new_value, Form) else tensor_and_home[1]
        steps.append(
            steps_if_unchanged(cell, "_held", tensor_and_home, [assignment(cell, "_held", (new_value, home_ops))])
        )
    commit(*steps)


def _are_unobserved(cells: Sequence[Cell]) -> bool:
    """Returns whether no block observes or replaces one of the cells, and no step is writing into tensors."""
    return not OBSERVED and not OVERWRITINGS and not any(cell in THREAD.values for cell in cells)
