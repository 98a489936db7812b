"""A step that is computed, or that is to be written over tensors, and not yet made."""

import operator
from collections.abc import Callable, Iterable, Sequence
from itertools import chain
from typing import Any, TypeAlias

from emberharmony import Buffer, Parameter
from emberharmony.core import selection
from emberharmony.core.cells.cell import Cell, replacing
from emberharmony.core.cells.overwriting import Overwriting
from emberharmony.core.state.commits import Step, commit
from emberharmony.optim import numbers
from emberharmony.optim.groups import State

Overwritten: TypeAlias = tuple[list[Cell], Callable[[Sequence[Any]], Sequence[Iterable[Step]] | None]]
"""Parameters and the buffers of their states, and a function of the list of their tensors.

It returns the calls of C functions that write a step over these tensors, or None if nothing may.
"""


_CELLS = operator.itemgetter(0)


class Plan:
    """A step that is computed and not yet made.

    Args:
        values: the new values of the parameters that change.
        tensors: all new tensors.
        steps: what makes the step.
        counted: whether it is a step of the optimizer, rather than of a wrapper that only takes gradients.
        overwritten: what writes the rest of the step over tensors; None if everything is computed.
    """

    __slots__ = ("counted", "overwritten", "steps", "tensors", "values")

    def __init__(
        self,
        values: dict[Parameter, Any],
        tensors: list[Any],
        steps: list[Step],
        counted: bool = False,
        overwritten: list[Overwritten] | None = None,
    ) -> None:
        self.values, self.tensors, self.steps = values, tensors, steps
        self.counted, self.overwritten = counted, overwritten

    def make(self) -> bool:
        """Makes the step, and returns whether it has; it has not if tensors to write over are seen by others."""
        if self.tensors:
            selection.active().backend.evaluate(self.tensors)
        if not self.overwritten:
            commit(self.steps)
            return True
        cells = [*chain.from_iterable(map(_CELLS, self.overwritten))]
        return Overwriting(cells).make(self._calls, self.steps)

    def _calls(self, tensors: Sequence[Any]) -> list[Iterable[Step]] | None:
        """Returns the calls that write over the tensors of all cells."""
        steps: list[Iterable[Step]] = []
        start = 0
        for cells, calls in self.overwritten or ():
            made = calls(tensors[start : start + len(cells)])
            if made is None:
                return None
            steps += made
            start += len(cells)
        return steps


def exchanging(cells: Sequence[Parameter], held: dict[Parameter, State], states: Sequence[State]) -> list[Step]:
    """Returns the steps that make tensors and numbers the states of parameters.

    Args:
        cells: the parameters.
        held: the states of parameters.
        states: the new state of each.
    """
    steps: list[Step] = []
    columns: dict[str, list[tuple[Any, Any]]] = {}
    for cell, state in zip(cells, states, strict=True):
        entry = held.get(cell)
        if entry is None or entry.keys() != state.keys():
            made = {name: x if numbers.is_python(x) else Buffer(x) for name, x in state.items()}
            steps.append((operator.setitem, held, cell, made))
            continue
        for name, x in state.items():
            if isinstance(entry[name], Buffer):
                columns.setdefault(name, []).append((entry[name], x))
            else:
                steps.append((operator.setitem, entry, name, x))
    for pairs in columns.values():
        steps += replacing(*zip(*pairs, strict=True))
    return steps
