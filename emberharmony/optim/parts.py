"""The parts of a group of parameters: separate parameters, and small ones that are joined into vectors.

A rule that works element by element gives the same bits for a vector as for the tensors in it. The state of joined
parameters stays in vectors from step to step.

The states must be the very dicts, buffers and numbers that the step before left, which compares identities, and
`Backend.traits_of(columns).match` says of all tensors by one call whether each has the class, shape, dtype and device
of the one in its place: on PyTorch guards of compiled functions, in 28 µs for 200 tensors where reads in Python take
280.
"""

import operator
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import chain, repeat
from typing import Any, TypeAlias

from emberharmony import Buffer, Parameter
from emberharmony.core.cells.cell import replace_steps, values_of
from emberharmony.core.state.commits import Step, assignment
from emberharmony.optim import numbers
from emberharmony.optim.groups import State
from emberharmony.optim.stepping import Columns, GroupStep, Updates, storing_steps
from emberharmony.optim.vectors import SharedBuffer, Vectors
from emberharmony.transforms.program import Program, Update

_HELD = operator.attrgetter("_held")

Work: TypeAlias = tuple[Update | None, State, Columns | None]
"""A program or None, the state before the step, and the columns; None if the step may be written over tensors."""


class GroupPart:
    """Parameters of a group that are computed together.

    Args:
        cells: the parameters.
        places: their places among the parameters that change.

    Attributes:
        entries: their states after the last step; None before the first one, and if they are not alike.
        state: what these states had by name: a list of buffers, or a number.
        traits: says whether tensors are like those of the first step; see `Backend.traits_of`.
    """

    __slots__ = ("cells", "entries", "places", "state", "traits")

    def __init__(self, cells: list[Parameter], places: list[int]) -> None:
        self.cells, self.places = cells, places
        self.entries: list[State] | None = None
        self.state: State = {}
        self.traits: Any = None

    def own_entries(self, column: list[Any]) -> list[Any]:
        """Returns the entries of this part's parameters, from a list with one entry for each parameter that changes."""
        return column if len(column) == len(self.places) else list(map(column.__getitem__, self.places))

    def has_unchanged_states(self, held_states: Mapping[Parameter, State]) -> bool:
        """Returns whether the states still contain the same numbers and buffers as after the last step."""
        current_entries: list[Any] = list(map(held_states.get, self.cells))
        entries, expected_entries = self.entries, [*(self.entries or ())]
        try:
            if entries is None or {*map(len, current_entries)} != {len(self.state)}:
                return False
            for name, x in self.state.items():
                expected_entries += x if x.__class__ is list else repeat(x, len(entries))
                current_entries += map(operator.itemgetter(name), current_entries[: len(entries)])
        except (KeyError, TypeError):  # a state is missing or has other names
            return False
        return have_same_objects(current_entries, expected_entries)

    def has_first_traits(self, backend: Any, columns: Columns) -> bool:
        """Returns whether tensors have the traits of those in the first step; the first call records these traits."""
        if self.traits is None:
            self.traits = backend.traits_of(columns)
            return True
        return bool(self.traits.match(*chain.from_iterable(columns)))

    def recorded_update(self, step: GroupStep, state: State) -> Update | None:
        """Returns the recorded update of the rule; None if it has no program, or if a watcher needs each op."""
        if not (self.traits.fit_programs and step.backend.runs_programs):
            return None
        update = step.updates.update_for(state, step.hyper)
        if update is not None and not self.traits.fit_kernels:
            update.kernel = ""
        return update

    def number_steps(self, name: str, number: Any) -> Iterable[Step]:
        """Returns the assignments that put a number into the states of all parameters."""
        return zip(repeat(operator.setitem), (self.state, *(self.entries or ())), repeat(name), repeat(number))


class SeparatePart(GroupPart):
    """Parameters of a group that are computed together, while each keeps tensors of its own.

    Args:
        cells: the parameters.
        places: their places among the parameters that change.
        fits: whether a program may compute them: the tensors of the states have the shapes of the parameters.
    """

    __slots__ = ("_fits", "_kept", "_overwritten")

    def __init__(self, cells: list[Parameter], places: list[int], fits: bool) -> None:
        super().__init__(cells, places)
        self._fits = fits
        self._kept: dict[Any, Any] = {}
        self._overwritten: tuple[Program | None, Any, bool] = None, None, False

    def first_work(self, step: GroupStep, states: Sequence[State | None]) -> Work:
        """Returns the work for `add_to_plan` in a layout's first step, from the states, which may still be None."""
        values = values_of(self.cells)
        entries: list[Any] = list(map(step.held.get, self.cells))
        if states[0] is None:
            states = list(map(step.initial, values))
        elif all(entry is not None and all(map(_is_in_stored_form, entry.values())) for entry in entries):
            self.entries = entries
            first_entry: State = entries[0]
            self.state = {
                name: x if numbers.is_python(x) else list(map(operator.itemgetter(name), entries))
                for name, x in first_entry.items()
            }
        state = columns_of(states)
        assert state is not None, "the states have the same names and numbers"
        columns = [self.own_entries(step.gradients), values, *(x for x in state.values() if x.__class__ is list)]
        self.has_first_traits(step.backend, columns)
        update = self.recorded_update(step, state) if self._fits else None
        return update, state, None if self._may_overwrite(step, update) else columns

    def work(self, step: GroupStep) -> Work | None:
        """Returns the work for `add_to_plan` in a later step; None if states were changed since the last step."""
        if not self.has_unchanged_states(step.held):
            return None
        update = self.recorded_update(step, self.state) if self._fits else None
        if self._may_overwrite(step, update):
            return update, self.state, None
        state = {name: values_of(x) if x.__class__ is list else x for name, x in self.state.items()}
        columns = [
            self.own_entries(step.gradients),
            values_of(self.cells),
            *(x for x in state.values() if x.__class__ is list),
        ]
        return (update, state, columns) if self.has_first_traits(step.backend, columns) else None

    def _may_overwrite(self, step: GroupStep, update: Update | None) -> bool:
        """Returns whether the step may write the update into the old tensors instead of making new ones."""
        if update is None or step.plan.overwritten is None or self.entries is None:
            return False
        program, backend, can_overwrite = self._overwritten
        if program is not update.program or backend is not step.backend:
            tensor_names = [name for name, x in self.state.items() if x.__class__ is list]
            covers_state = update.tensors == tensor_names and update.after.keys() == self.state.keys()
            can_overwrite = covers_state and bool(step.backend.can_overwrite(update))
            self._overwritten = update.program, step.backend, can_overwrite
        return can_overwrite

    def add_to_plan(self, step: GroupStep, work: Work) -> None:
        """Computes the step of this part's parameters, and adds its results to the plan."""
        update, state, columns = work
        if columns is None:
            assert update is not None, "a step without a program is not written over tensors"
            self._add_overwriting_calls(step, update)
            return
        output_columns = None if update is None else step.backend.run_update(update, columns)
        new_state: State | None
        if output_columns is not None and update is not None:
            new_parameters, state_tensors = output_columns[0], iter(output_columns[1:])
            new_state = {name: list(next(state_tensors)) if x is None else x for name, x in update.after.items()}
            step.plan.tensors += chain.from_iterable(
                zip(*output_columns, strict=True)
            )  # a lazy library evaluates one parameter after the other
            states: Sequence[State] = ()
        else:
            new_parameters, states = step.apply_rule(state, columns)
            new_state = columns_of(states)
            step.plan.tensors += chain.from_iterable(map(_state_tensors, new_parameters, states))
        step.plan.values.update(zip(self.cells, new_parameters, strict=True))
        step.plan.steps += replace_steps(self.cells, new_parameters)
        step.plan.steps += self._storing_steps(step.held, new_state, states)

    def _storing_steps(
        self, held_states: dict[Parameter, State], new_state: State | None, states: Sequence[State]
    ) -> Iterable[Step]:
        """Returns the assignments that store the new states of the parameters, given as columns or one by one."""
        if new_state is None or (self.entries is None and any(cell in held_states for cell in self.cells)):
            states = states or _states_by_parameter(new_state or {}, len(self.cells))
            return [*storing_steps(self.cells, held_states, states), assignment(self, "entries", None)]
        if self.entries is None:
            return self._first_storing_steps(held_states, new_state)
        if _is_list_by_name(new_state) != _is_list_by_name(self.state):
            return [
                *storing_steps(self.cells, held_states, _states_by_parameter(new_state, len(self.cells))),
                assignment(self, "entries", None),
            ]
        steps: list[Step] = []
        for name, x in new_state.items():
            steps += replace_steps(self.state[name], x) if x.__class__ is list else self.number_steps(name, x)
        return steps

    def _first_storing_steps(self, held_states: dict[Parameter, State], new_state: State) -> list[Step]:
        """Returns the assignments that store the first states of the parameters."""
        column_by_name = {name: list(map(Buffer, x)) if x.__class__ is list else x for name, x in new_state.items()}
        entries = _states_by_parameter(column_by_name, len(self.cells))
        steps: list[Step] = list(zip(repeat(operator.setitem), repeat(held_states), self.cells, entries))
        return [*steps, assignment(self, "entries", entries), assignment(self, "state", column_by_name)]

    def _add_overwriting_calls(self, step: GroupStep, update: Update) -> None:
        """Adds to the plan the calls that overwrite the tensors of the parameters and their states."""
        backend, parameter_count, gradients = step.backend, len(self.cells), self.own_entries(step.gradients)

        def overwriting_calls(tensors: Sequence[Any]) -> Any:
            # The tensors are checked only here, because another thread may have assigned new ones.
            if not (self.traits.match(*gradients, *tensors) and backend.owns_memory(tensors)):
                return None
            columns = map(list, zip(*repeat(iter(tensors), parameter_count), strict=True))
            return backend.overwriting_calls(update, [gradients, *columns], self._kept)

        cells: list[Any] = list(self.cells)
        for name, x in self.state.items():
            if x.__class__ is list:
                cells += x
            else:
                step.plan.steps += self.number_steps(name, update.after[name])
        assert step.plan.overwritten is not None, "only a plan with a list for it is written over tensors"
        step.plan.overwritten.append((cells, overwriting_calls))


class JoinedPart(GroupPart):
    """Small parameters of a group that are joined into one vector for the computation.

    Args:
        cells: the parameters.
        places: their places among the parameters that change.
        shapes: their shapes.
    """

    __slots__ = ("_held", "_places", "_shares", "shapes", "vectors")

    def __init__(self, cells: list[Parameter], places: list[int], shapes: Sequence[tuple[int, ...]]) -> None:
        super().__init__(cells, places)
        self.shapes = shapes
        self.vectors = Vectors(tensors={}, shapes=(), home=None)
        self._places: list[tuple[str, int]] = []
        self._shares: list[SharedBuffer] = []
        self._held: list[Any] = []

    def first_work(self, step: GroupStep, states: Sequence[State | None]) -> Work:
        """Returns the work for `add_to_plan` in a layout's first step, from the states, which may still be None."""
        values, first_state = values_of(self.cells), states[0]
        if first_state is None:
            state = step.initial(step.backend.as_vector(values))
        else:
            join_tensors = step.backend.as_vector
            state = {
                name: x if numbers.is_python(x) else join_tensors([entry[name] for entry in states if entry])
                for name, x in first_state.items()
            }
        columns = [self.own_entries(step.gradients), values, *([x] for x in state.values() if not numbers.is_python(x))]
        self.has_first_traits(step.backend, columns)
        return self.recorded_update(step, state), state, columns

    def work(self, step: GroupStep) -> Work | None:
        """Returns the work for `add_to_plan` in a later step; None if states were changed or read meanwhile."""
        vectors = self.vectors
        if vectors.home is not step.backend.home or not self.has_unchanged_states(step.held):
            return None
        if not have_same_objects(list(map(_HELD, self._shares)), self._held):
            return None
        state = {**self.state, **vectors.tensors}
        columns = [
            self.own_entries(step.gradients),
            values_of(self.cells),
            *map(list, zip(vectors.tensors.values(), strict=True)),
        ]
        return (
            (self.recorded_update(step, state), state, columns)
            if self.has_first_traits(step.backend, columns)
            else None
        )

    def add_to_plan(self, step: GroupStep, work: Work) -> None:
        """Computes the step of this part's parameters, and adds its results to the plan."""
        update, state, columns = work
        assert columns is not None, "vectors are not written over"
        backend, (gradients, parameter_tensors, *state_tensors) = step.backend, columns
        vectors = [[backend.as_vector(gradients)], [backend.as_vector(parameter_tensors)], *state_tensors]
        output_vectors = None if update is None else backend.run_update(update, vectors)
        if output_vectors is not None and update is not None:
            ((new_parameter,), *state_tensors), new_state = output_vectors, dict(update.after)
            for name, (x,) in zip(update.tensors, state_tensors, strict=True):
                new_state[name] = x
                step.plan.tensors.append(x)
        else:
            (new_parameter,), (new_state,) = step.apply_rule(state, vectors)
            step.plan.tensors += [x for x in new_state.values() if not numbers.is_python(x)]
        new_values = backend.split_vector(new_parameter, parameter_tensors)
        step.plan.values.update(zip(self.cells, new_values, strict=True))
        step.plan.tensors += new_values
        step.plan.steps += replace_steps(self.cells, new_values)
        if self.entries is not None and new_state.keys() == self.state.keys():
            step.plan.steps += self._storing_steps(new_state, backend.home)
        else:
            step.plan.steps += self._first_storing_steps(
                new_state, step.held, backend.home, new_state.keys() == state.keys()
            )

    def _storing_steps(self, state: State, home: Any) -> Iterable[Step]:
        """Returns the assignments that store `state` as the new state of the joined parameters."""
        steps: list[Step] = []
        tensor_by_name = dict(state)
        for name in state:
            if name not in self.vectors.tensors:
                steps += self.number_steps(name, tensor_by_name.pop(name))
        if self._shares:
            vectors = Vectors(tensors=tensor_by_name, shapes=self.shapes, home=home)
            places_and_vectors = list(zip(self._places, repeat(vectors)))
            steps += zip(repeat(setattr), self._shares, repeat("_held"), places_and_vectors)
            steps += [(setattr, self, "vectors", vectors), (setattr, self, "_held", places_and_vectors)]
        return steps

    def _first_storing_steps(
        self, state: State, held_states: dict[Parameter, State], home: Any, is_same_step: bool
    ) -> list[Step]:
        """Returns the assignments that store `state` as the first state of the joined parameters.

        Args:
            state: the state.
            held_states: the states of parameters.
            home: the ops of the backend.
            is_same_step: whether it has the names of the state before; the next step has a new layout if not.
        """
        tensor_by_name = {name: x for name, x in state.items() if not numbers.is_python(x)}
        vectors = Vectors(tensors=tensor_by_name, shapes=self.shapes, home=home)
        entries: list[State] = []
        column_by_name: dict[str, list[SharedBuffer]] = {name: [] for name in tensor_by_name}
        steps: list[Step] = []
        for cell in self.cells:
            entry = held_states.get(cell)
            if entry is None or entry.keys() != state.keys():
                entry = {}
                steps.append((operator.setitem, held_states, cell, entry))
            for name, x in state.items():
                if name in column_by_name:
                    existing_cell = entry.get(name)
                    x = existing_cell if existing_cell.__class__ is SharedBuffer else SharedBuffer()
                    column_by_name[name].append(x)
                steps.append((operator.setitem, entry, name, x))
            entries.append(entry)
        names_and_indices = [(name, cell_index) for name in column_by_name for cell_index in range(len(self.cells))]
        shared_buffers, places_and_vectors = (
            [*chain.from_iterable(column_by_name.values())],
            [(name_and_index, vectors) for name_and_index in names_and_indices],
        )
        steps += zip(repeat(setattr), shared_buffers, repeat("_held"), places_and_vectors)
        state_attributes = {
            "entries": entries if is_same_step else None,
            "state": {**state, **column_by_name},
            "vectors": vectors,
        }
        buffer_attributes = {"_places": names_and_indices, "_shares": shared_buffers, "_held": places_and_vectors}
        return [*steps, *(assignment(self, name, x) for name, x in {**state_attributes, **buffer_attributes}.items())]


@dataclass(slots=True)
class Layout:
    """The division of the parameters that change in a step into parts.

    Attributes:
        cells: the parameters that change.
        home: the ops of the backend.
        updates: the programs of the rule.
        parts: what computes them.
    """

    cells: list[Parameter]
    home: Any
    updates: Updates
    parts: list[SeparatePart | JoinedPart]

    def work(self, step: GroupStep) -> list[Work] | None:
        """Returns the work of all parts for a step, or None if a change makes a new layout necessary."""
        if self.home is not step.backend.home or not have_same_objects(self.cells, step.cells):
            return None
        part_works: list[Work] = []
        for layout_part in self.parts:
            work = layout_part.work(step)
            if work is None:
                return None
            part_works.append(work)
        return part_works

    def release_steps(self, other: "Layout", held_states: Mapping[Parameter, State]) -> list[Step]:
        """Returns the assignments that give parameters which the other layout does not join tensors of their own."""
        new_cells = {
            cell for layout_part in other.parts if isinstance(layout_part, JoinedPart) for cell in layout_part.cells
        }
        released_cells = [
            cell for part in self.parts if isinstance(part, JoinedPart) for cell in part.cells if cell not in new_cells
        ]
        shared_buffers = [
            x for cell in released_cells for x in held_states.get(cell, {}).values() if isinstance(x, SharedBuffer)
        ]
        return [(setattr, shared_cell, "_held", shared_cell.tensor_and_home()) for shared_cell in shared_buffers]


def columns_of(states: Sequence[State | None]) -> State | None:
    """Returns for each name in the states a list of tensors, or the common number; None if that is impossible."""
    first_state = states[0]
    if first_state is None or any(state is None or state.keys() != first_state.keys() for state in states):
        return None
    column_by_name: State = {}
    for name, x in first_state.items():
        column = [state[name] for state in states if state is not None]
        if all(map(numbers.is_python, column)) and column.count(x) == len(column):
            column_by_name[name] = x
        elif any(map(numbers.is_python, column)):
            return None
        else:
            column_by_name[name] = column
    return column_by_name


def _states_by_parameter(columns: State, count: int) -> list[State]:
    """Returns a list with the state of each parameter, from columns by name."""
    return [{name: x[i] if x.__class__ is list else x for name, x in columns.items()} for i in range(count)]


def _is_list_by_name(state: State) -> dict[str, bool]:
    return {name: x.__class__ is list for name, x in state.items()}


def _state_tensors(after: Any, state: State) -> list[Any]:
    return [after, *(x for x in state.values() if not numbers.is_python(x))]


def _is_in_stored_form(x: Any) -> bool:
    """Returns whether an entry of a state is a buffer or Python number, as steps store it."""
    return isinstance(x, Buffer) or numbers.is_python(x)


def have_same_objects(objects: Sequence[Any], others: Sequence[Any]) -> bool:
    """Returns whether two lists hold the same objects in one order; `==` of parameters compares their elements."""
    return len(objects) == len(others) and all(map(operator.is_, objects, others))
