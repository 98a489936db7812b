"""Computes the steps of many parameters by a program of the rule's ops, over lists of tensors or in blocks.

`recording.py` records the program, and `Backend.evaluated` runs it. The results are new tensors.
"""

import operator
from collections.abc import Callable, Iterable, Mapping, Sequence
from itertools import repeat
from typing import Any, NamedTuple

from emberharmony import Buffer, Parameter
from emberharmony.core import selection
from emberharmony.core.cells.cell import Cell, replacing, values_of
from emberharmony.core.state.commits import Step
from emberharmony.optim import numbers
from emberharmony.optim.groups import State
from emberharmony.optim.recording import Recorded, recorded

_SHAPE = operator.attrgetter("shape")


class Overwritten(NamedTuple):
    """What writes a step over the tensors of cells.

    Attributes:
        cells: the parameters, and the buffers of their states.
        calls: returns the calls that write into a list of their tensors, as `Backend.overwriting` does.
    """

    cells: list[Cell]
    calls: Callable[[Sequence[Any]], Sequence[Iterable[Step]] | None]


def are_same(one: Sequence[Any], other: Sequence[Any]) -> bool:
    """Returns whether two lists hold the same objects in one order; `==` of parameters compares their elements."""
    return len(one) == len(other) and all(map(operator.is_, one, other))


class Rows:
    """Parameters with equal options and equal numbers in their states, which one program computes.

    Args:
        cells: the parameters.
        places: their places among the parameters that change.
        shapes: their shapes.
        large: whether they are computed in blocks.

    Attributes:
        alike: says whether gradients and values are like those of the last step in which the optimizer looked at each
            of them; None if `Backend.likeness` has no function for them, and after a step that had to make new tensors
            because somebody had kept one.
    """

    __slots__ = ("_known", "_last", "_seen", "alike", "cells", "large", "overwrites", "places", "shapes")

    def __init__(self, cells: Sequence[Parameter], places: Sequence[int], shapes: list[Any], large: bool) -> None:
        self.cells, self.places, self.shapes, self.large = cells, places, shapes, large
        self.overwrites = True
        self.alike: Callable[..., bool] | None = None
        self._seen = False
        self._last: Recorded | None = None
        self._known: Any = None

    def learn(self, gradients: list[Any], values: list[Any]) -> None:
        """Prepares `alike` for gradients and values that the optimizer has looked at."""
        self.alike = selection.current().likeness([*self._own(gradients), *self._own(values)], self._seen)

    def state(self, held: Mapping[Parameter, State]) -> State | None:
        """Returns a list of tensors, or a number, for each name in the states; None if the states differ in more."""
        entries: list[Any] = list(map(held.get, self.cells))
        first = entries[0]
        if not first:
            return {} if entries.count(first) == len(entries) else None
        found: State = {}
        try:
            if entries.count(None) or {*map(len, entries)} != {len(first)}:
                return None
            for name, x in first.items():
                column = list(map(operator.itemgetter(name), entries))
                if not isinstance(x, Buffer):
                    found[name] = x
                    if Buffer in {*map(type, column)} or column.count(x) < len(column):
                        return None
                    continue
                found[name] = values_of(column)
                if list(map(_SHAPE, found[name])) != self.shapes:
                    return None
        except (AttributeError, KeyError):  # the names differ, or one has a number where another has a tensor
            return None
        return found

    def begun(self, initial: Callable[[Any], State], values: Sequence[Any]) -> State:
        """Returns what `state` would return before the first step; the rule works element by element, so does that."""
        states = list(map(initial, values))
        return {name: x if numbers.is_python(x) else [state[name] for state in states] for name, x in states[0].items()}

    def computed(
        self, rule: Callable[..., Any], state: State, hyper: Mapping[str, Any], gradients: list[Any], values: list[Any]
    ) -> tuple[list[Any], dict[str, Sequence[Any]], State] | None:
        """Returns the parameters, and the tensors and the numbers of the states, after a step; None without a program.

        Args:
            rule: the rule of the optimizer.
            state: what `state` or `begun` returned.
            hyper: the options for this step.
            gradients: the gradients of all parameters that change.
            values: the values of all of them.
        """
        found, backend = self._program(rule, state, hyper), selection.current()
        if found is None:
            return None
        inputs = [self._own(gradients), self._own(values), *(x for x in state.values() if not numbers.is_python(x))]
        if self.alike is not None and not self._seen:
            self._seen, self.alike = True, None
        made = backend.evaluated(found.program, inputs, self.large)
        if made is None:
            return None
        return list(made[0]), dict(zip(found.tensors, made[1:], strict=True)), found.numbers

    def overwriting(
        self,
        rule: Callable[..., Any],
        state: State,
        hyper: Mapping[str, Any],
        gradients: list[Any],
        held: Mapping[Parameter, State],
    ) -> tuple[Overwritten, list[Step]] | None:
        """Returns what writes a step over tensors, and the steps that exchange the numbers; None if nothing can.

        Args:
            rule: the rule of the optimizer.
            state: what `state` returned; before the first step there is nothing to write over.
            hyper: the options for this step.
            gradients: the gradients of all parameters that change.
            held: the states of parameters.
        """
        backend = selection.current()
        if not (self.overwrites and backend.overwrites) or (not state and self.cells[0] not in held):
            return None
        found = self._program(rule, state, hyper)
        names = [name for name, x in state.items() if not numbers.is_python(x)]
        self.overwrites = found is not None and found.tensors == names
        if found is None or not self.overwrites:
            return None
        given, count = self._own(gradients), len(self.cells)
        buffers = [held[cell][name] for name in names for cell in self.cells]

        def calls(tensors: Sequence[Any]) -> Sequence[Iterable[Step]] | None:
            # Another thread may have assigned to the parameters since the optimizer looked at them.
            alike = self.alike
            if not backend.owns(tensors, alike):
                return None
            if alike is not None and not alike(*given, *tensors[:count]):
                return None
            columns = [given, *(tensors[i : i + count] for i in range(0, len(tensors), count))]
            made = backend.overwriting(found.program, columns, self.large, alike)
            self.overwrites = made is not None
            if made is None or made.tensors is None:
                return None if made is None else made.calls
            return [*made.calls, replacing(self.cells, made.tensors)]

        exchanged = found.numbers.items()
        steps: list[Step] = [(operator.setitem, held[cell], name, x) for name, x in exchanged for cell in self.cells]
        return Overwritten([*self.cells, *buffers], calls), steps

    def _own(self, column: list[Any]) -> list[Any]:
        """Returns what belongs to these parameters of a list with something for each one that changes."""
        return column if len(column) == len(self.cells) else [column[i] for i in self.places]

    def _program(self, rule: Callable[..., Any], state: State, hyper: Mapping[str, Any]) -> Recorded | None:
        """Returns the program of a rule; None without one."""
        backend = selection.current()
        if not backend.runs_programs:
            return None
        known = rule, hyper, {name: x if numbers.is_python(x) else None for name, x in state.items()}
        if known != self._known:
            self._last, self._known = recorded(rule, state, hyper), known
        return self._last

    def exchange(
        self, held: dict[Parameter, State], before: State, tensors: Mapping[str, Sequence[Any]], new: State
    ) -> list[Step]:
        """Returns the steps that make lists of tensors and numbers the states of the parameters.

        Args:
            held: the states of parameters.
            before: what `state` returned.
            tensors: the lists, by name.
            new: the numbers, by name.
        """
        names = {*tensors, *new}
        if before.keys() != names or self.cells[0] not in held:
            columns = zip(*tensors.values(), strict=True) if tensors else repeat((), len(self.cells))
            made = [{**dict(zip(tensors, map(Buffer, column), strict=True)), **new} for column in columns]
            return [(operator.setitem, held, *pair) for pair in zip(self.cells, made, strict=True)]
        entries = [held[cell] for cell in self.cells] if names else []
        steps: list[Step] = []
        for name, column in tensors.items():
            steps += together([entry[name] for entry in entries], column)
        for name, x in new.items():
            steps += [(operator.setitem, entry, name, x) for entry in entries]
        return steps


def together(cells: Sequence[Cell], tensors: Sequence[Any]) -> list[Step]:
    """Returns the steps that assign a tensor to each cell.

    Raises:
        TracedTensorError: if a tensor is traced, or while a running transform holds the values of cells.
    """
    if selection.current().may_keep_all(tensors):
        return replacing(cells, tensors)
    return [cell.replacing(tensor) for cell, tensor in zip(cells, tensors, strict=True)]
