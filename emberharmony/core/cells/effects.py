"""Notes what a recorded function does with the gradients of cells, so that each run of its program repeats it.

A program of `ops.compile` computes tensors. Gradients that `ops.backward` adds, and steps of optimizers, are effects:
they happen after everything is computed, in each call, by the same code as in the function itself. While the function
is recorded, the cells keep the gradients that they have; the function sees the ones that it would have given them.
"""

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

from emberharmony.core import selection
from emberharmony.core.cells.blocks import Held
from emberharmony.core.cells.cell import Cell, accumulate_steps
from emberharmony.core.state.commits import Step, commit
from emberharmony.core.state.draws import NotNowError

Made = Callable[[dict[Any, Any], bool], None]
"""Makes a step of an optimizer: takes the gradients by cell, and whether the cells lose theirs."""


class _Step(NamedTuple):
    """A recorded step of an optimizer, which is made after the program has computed its tensors.

    Attributes:
        make: makes the step.
        gradients: what it takes, by cell.
        clear: whether the cells lose their gradients.
    """

    make: Made
    gradients: dict[Any, Any]
    clear: bool


class _Part(NamedTuple):
    """The recorded changes of gradients up to a step of an optimizer, and that step.

    Attributes:
        added: what is added to the gradients of cells.
        exchanged: the new gradients of other cells, or None.
        step: the step; None at the end.
    """

    added: dict[Cell, Any]
    exchanged: dict[Cell, Any]
    step: _Step | None


class Effects:
    """The gradients that one run of a recorded function adds or sets, and the optimizer steps that it takes.

    Attributes:
        changing: the cells that a step will change; the function cannot use their values after it.
    """

    def __init__(self) -> None:
        self.changing: set[Cell] = set()
        self._gradients: dict[Cell, Any] = {}
        self._added: dict[Cell, Any] = {}
        self._exchanged: dict[Cell, Any] = {}
        self._none_before: set[Cell] = set()
        self._parts: list[_Part] = []

    def gradient(self, cell: Cell) -> Any:
        """Returns the gradient of a cell; None if it has none.

        Raises:
            NotNowError: if it depends on one that the cell had before the function ran.
        """
        if cell not in self._gradients or cell in self._added:
            if cell._grad is not None:
                raise NotNowError(f"the gradient that {cell!r} has had before would be used")
            self._none_before.add(cell)
        return self._gradients.get(cell)

    def set_gradient(self, cell: Cell, held: Held | None) -> None:
        """Notes that a cell gets another gradient, or none if `held` is None."""
        self._gradients[cell] = self._exchanged[cell] = None if held is None else held[0]
        self._added.pop(cell, None)

    def add_gradient(self, cell: Cell, gradient: Any) -> None:
        """Notes that a gradient is added to that of a cell.

        Raises:
            NotNowError: if it depends on one that the cell had before the function ran.
        """
        if cell not in self._gradients:
            self._gradients[cell] = self._added[cell] = gradient
            return
        old_gradient, home_ops = self.gradient(cell), selection.active().backend.home
        self.set_gradient(
            cell, (gradient if old_gradient is None else selection.active().add(old_gradient, gradient), home_ops)
        )

    def postpone_step(self, make: Made, gradients: dict[Any, Any], cells: Sequence[Cell], clear: bool) -> None:
        """Notes a step of an optimizer that changes these cells; see `optim.stepping.perform_step`."""
        self.end_part(_Step(make, gradients, clear))
        self.changing.update(cells)
        if clear:
            self._gradients.update(dict.fromkeys(cells))

    def end_part(self, step: _Step | None = None) -> None:
        """Appends the changes of gradients since the last step, and this step, to the list of parts."""
        if self._added or self._exchanged or step:
            self._parts.append(_Part(self._added, self._exchanged, step))
        self._added, self._exchanged = {}, {}

    def replay_inputs(self) -> list[Any]:
        """Returns the noted gradients, in the order in which `replay` takes their new values."""
        tensors: list[Any] = []
        for added, exchanged, step in self._parts:
            tensors += added.values()
            tensors += [x for x in exchanged.values() if x is not None]
            tensors += step.gradients.values() if step else ()
        return tensors

    @property
    def has_effects(self) -> bool:
        """Whether the function changed gradients or took optimizer steps, which `replay` has to repeat."""
        return bool(self._parts)

    def cells_lack_gradients(self) -> bool:
        """Returns whether the cells that had no gradient when the function was recorded have none now."""
        return all(cell._grad is None for cell in self._none_before)

    def replay(self, tensors: Sequence[Any]) -> None:
        """Repeats the noted changes and optimizer steps on the cells, with new values of the `replay_inputs()`."""
        home_ops, remaining_tensors = selection.current().home, iter(tensors)
        for added, exchanged, step in self._parts:
            steps: list[Step] = accumulate_steps(
                list(added), [home_ops.backend.detach(next(remaining_tensors)) for _ in added]
            )
            for cell, x in exchanged.items():
                steps.append((setattr, cell, "_grad", None if x is None else (next(remaining_tensors), home_ops)))
            commit(steps)
            if step:
                step.make({cell: next(remaining_tensors) for cell in step.gradients}, step.clear)
