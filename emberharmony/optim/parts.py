"""The parts of a group of parameters: those that have memory of their own, and small ones that are joined in vectors.

A rule that works element by element gives the same bits for a vector as for the tensors in it. The state of joined
parameters stays in vectors from step to step.
"""

import operator
from collections.abc import Mapping, Sequence
from functools import partial
from itertools import repeat
from typing import Any

from emberharmony import Buffer, Parameter
from emberharmony.core import selection
from emberharmony.core.cells.cell import replacing, values_of
from emberharmony.core.state.commits import Step, assigned
from emberharmony.optim import numbers
from emberharmony.optim.groups import State
from emberharmony.optim.plan import Overwritten, Plan, exchanging, together
from emberharmony.optim.updates import Planned, Updates, is_elementwise
from emberharmony.optim.vectors import Share, Vectors

_SHAPE = operator.attrgetter("shape")

Columns = Sequence[Sequence[Any]]


class Stepping:
    """One step of a group of parameters.

    Args:
        optimizer: the optimizer.
        plan: what the parts add to.
        updates: the programs of the rule.
        hyper: the options for this step.
        gradients: the gradients of the parameters that change.
        values: the values of these.
    """

    __slots__ = ("backend", "gradients", "held", "hyper", "optimizer", "plan", "updates", "values")

    def __init__(
        self,
        optimizer: Any,
        plan: Plan,
        updates: Updates,
        hyper: Mapping[str, Any],
        gradients: list[Any],
        values: list[Any],
    ) -> None:
        self.optimizer, self.plan, self.updates, self.hyper = optimizer, plan, updates, hyper
        self.gradients, self.values = gradients, values
        self.backend, self.held = selection.current(), optimizer._state

    def initial(self, value: Any) -> State:
        """Returns the state of a parameter before its first step."""
        found: State = self.optimizer.initial(value, self.hyper)
        return found

    def planned(self, state: State) -> Planned | None:
        """Returns what the rule computes; None if it has no program, or somebody wants the calls of its ops."""
        return self.updates.planned(state, self.hyper) if self.backend.runs_programs else None

    def computed(
        self, state: State, columns: Columns, planned: Planned | None
    ) -> tuple[Sequence[Any], Sequence[State]]:
        """Returns the parameters and their states after the step.

        Args:
            state: the numbers in the state by name; anything else stands for tensors.
            columns: the gradients, the parameters, and the tensors of the state in the order of their names.
            planned: what `updates` has found for the state.
        """
        made = None if planned is None else self.backend.computed(planned.update, columns)
        if made is not None and planned is not None:
            names = [name for name, x in planned.state.items() if x is None]
            rows = zip(*made[1:], strict=True) if names else repeat((), len(made[0]))
            return made[0], [{**planned.state, **dict(zip(names, row, strict=True))} for row in rows]
        names = [name for name, x in state.items() if not numbers.is_python(x)]
        found, apply = [], self.optimizer._applied
        if is_elementwise(self.optimizer.rule):
            apply = partial(self.backend.applied, apply)  # one call that watchers see, if they want that
        for gradient, value, *tensors in zip(*columns, strict=True):
            own = {**state, **dict(zip(names, tensors, strict=True))}
            found.append(apply(gradient, value, own, self.hyper))
        return [after for after, _ in found], [new for _, new in found]


class Rows:
    """Parameters with equal numbers in their states, each of which has memory of its own.

    Args:
        cells: the parameters.
        places: their places among the parameters that change.
        shapes: their shapes, which the tensors of their states have too; None if the rule does not say so.
    """

    __slots__ = ("cells", "places", "shapes")

    def __init__(self, cells: Sequence[Parameter], places: Sequence[int], shapes: list[Any] | None) -> None:
        self.cells, self.places, self.shapes = cells, places, shapes

    def state(self, held: Mapping[Parameter, State], home: Any) -> State | None:
        """Returns a list of tensors, or a number, for each name in the states; None if the states differ in more."""
        entries: list[Any] = list(map(held.get, self.cells))
        first = entries[0]
        if not first:
            return {} if all(entry == first for entry in entries) else None
        if entries.count(None) or any(entry.keys() != first.keys() for entry in entries):
            return None
        found: State = {}
        for name, x in first.items():
            column = list(map(operator.itemgetter(name), entries))
            tensors = [isinstance(y, Buffer) for y in column]
            if not any(tensors) and column.count(x) == len(column):
                found[name] = x
                continue
            if not all(tensors):
                return None
            found[name] = values_of(column)
            if self.shapes is not None and list(map(_SHAPE, found[name])) != self.shapes:
                return None
        return found

    def add(self, step: Stepping, state: State) -> None:
        """Adds a step of the parameters to a plan, written over their tensors if nobody else can see these."""
        begins = not state and self.cells[0] not in step.held
        gradients, values = ([column[i] for i in self.places] for column in (step.gradients, step.values))
        if begins:
            first = list(map(step.initial, values))
            state = {
                name: x if numbers.is_python(x) else [each[name] for each in first] for name, x in first[0].items()
            }
        planned = None if self.shapes is None else step.planned(state)
        if planned is not None and not begins and self._add_overwriting(step, state, gradients, planned):
            return
        columns = [gradients, values, *(x for x in state.values() if not numbers.is_python(x))]
        after, states = step.computed(state, columns, planned)
        step.plan.values.update(zip(self.cells, after, strict=True))
        step.plan.tensors += zip(after, states, strict=True)  # so that a library that computes later takes one by one
        step.plan.steps += [*together(self.cells, after), *exchanging(self.cells, step.held, states)]

    def _add_overwriting(self, step: Stepping, state: State, gradients: list[Any], planned: Planned) -> bool:
        """Adds what writes over the tensors of the parameters; returns whether anything may.

        Raises:
            TracedTensorError: if a running transform holds the values.
        """
        backend, count = step.backend, len(self.cells)
        names = [name for name, x in state.items() if not numbers.is_python(x)]
        made = [name for name, x in planned.state.items() if x is None]
        alike = made == names and planned.state.keys() == state.keys()
        if step.plan.overwritten is None or not alike or not backend.overwrites(planned.update):
            return False
        shapes = list(map(_SHAPE, gradients))
        self.cells[0].replacing(self.cells[0].value)

        def calls(tensors: Sequence[Any]) -> Any:
            # Another thread may have assigned to the parameters since the optimizer looked at them.
            columns = [gradients, *(tensors[i : i + count] for i in range(0, len(tensors), count))]
            fits = list(map(_SHAPE, tensors)) == shapes * (len(columns) - 1)
            return backend.overwriting(planned.update, columns) if fits and backend.owns(tensors) else None

        buffers = [step.held[cell][name] for name in names for cell in self.cells]
        step.plan.overwritten.append(Overwritten([*self.cells, *buffers], calls))
        new = [(name, x) for name, x in planned.state.items() if x is not None]
        step.plan.steps += [(operator.setitem, step.held[cell], name, x) for name, x in new for cell in self.cells]
        return True


class Joined:
    """Parameters that are computed in one vector.

    Args:
        cells: the parameters.
        places: their places among the parameters that change.
        shapes: their shapes.
    """

    __slots__ = ("cells", "entries", "places", "shapes", "shares", "vectors")

    def __init__(self, cells: Sequence[Parameter], places: Sequence[int], shapes: Sequence[tuple[int, ...]]) -> None:
        self.cells, self.places, self.shapes = cells, places, shapes
        self.entries: list[State] = []
        self.shares: list[tuple[Share, tuple[str, int]]] = []
        self.vectors = Vectors({}, (), None)

    def state(self, held: Mapping[Parameter, State], home: Any) -> State | None:
        """Returns the state of the vector; None if anything but the last step changed it, or read it."""
        vectors = self.vectors
        if vectors.home is not home or not are_same(list(map(held.get, self.cells)), self.entries):
            return None
        first, tensors = self.entries[0], vectors.tensors
        for share, (name, place) in self.shares:
            if share._held[1] is not vectors or self.entries[place].get(name) is not share:
                return None
        if {*map(len, self.entries)} != {len(first)}:
            return None
        found = {}
        for name, x in first.items():
            found[name] = tensors.get(name, x)
            if name not in tensors and [entry.get(name) for entry in self.entries].count(x) != len(self.entries):
                return None
        return found

    def begun(self, states: Sequence[State]) -> State:
        """Returns the state of the vector that has the states of the parameters."""
        joined = selection.current().joined
        return {
            name: x if numbers.is_python(x) else joined([state[name] for state in states])
            for name, x in states[0].items()
        }

    def add(self, step: Stepping, state: State) -> None:
        """Adds a step of the parameters to a plan."""
        backend = step.backend
        likes = [step.values[i] for i in self.places]
        value = backend.joined(likes)
        gradient = backend.joined([step.gradients[i] for i in self.places])
        before = step.initial(value) if not state and self.cells[0] not in step.held else state
        columns = [[gradient], [value], *([x] for x in before.values() if not numbers.is_python(x))]
        (after,), (new,) = step.computed(before, columns, step.planned(before))
        parts = backend.parted(after, likes)
        step.plan.values.update(zip(self.cells, parts, strict=True))
        step.plan.tensors += [parts, new]
        step.plan.steps += replacing(self.cells, parts)
        if self.entries and before.keys() == new.keys():
            step.plan.steps += self._exchange(new, backend.home)
        else:
            step.plan.steps += self._begin(new, step.held, backend.home)

    def _exchange(self, state: State, home: Any) -> list[Step]:
        """Returns the steps that make `state` the state of the vector, after `state()` has found that of before."""
        if not state:
            return []
        tensors = {name: state[name] for name in self.vectors.tensors}
        vectors = Vectors(tensors, self.shapes, home)
        steps: list[Step] = [(setattr, share, "_held", (at, vectors)) for share, at in self.shares]
        for name, x in state.items():
            if name not in tensors:
                steps += [(operator.setitem, entry, name, x) for entry in self.entries]
        return [*steps, assigned(self, "vectors", vectors)]

    def _begin(self, state: State, held: dict[Parameter, State], home: Any) -> list[Step]:
        """Returns the steps that make `state` the state of the vector for the first time."""
        tensors = {name: x for name, x in state.items() if not numbers.is_python(x)}
        vectors = Vectors(tensors, self.shapes, home)
        entries: list[State] = []
        shares: list[tuple[Share, tuple[str, int]]] = []
        steps: list[Step] = []
        for place, cell in enumerate(self.cells):
            entry = held.get(cell)
            if entry is None or entry.keys() != state.keys():
                entry = {}
                steps.append((operator.setitem, held, cell, entry))
            for name, x in state.items():
                if name not in tensors:
                    steps.append((operator.setitem, entry, name, x))
                    continue
                share = entry.get(name)
                if share.__class__ is not Share:
                    share = Share()
                    steps.append((operator.setitem, entry, name, share))
                shares.append((share, (name, place)))
                steps.append((setattr, share, "_held", ((name, place), vectors)))
            entries.append(entry)
        made = {"vectors": vectors, "entries": entries, "shares": shares}
        return [*steps, *(assigned(self, name, x) for name, x in made.items())]


def are_same(one: Sequence[Any], other: Sequence[Any]) -> bool:
    """Returns whether two lists hold the same objects in one order; `==` of parameters compares their elements."""
    return len(one) == len(other) and all(map(operator.is_, one, other))
