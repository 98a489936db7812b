"""One step of an optimizer: the plan of its assignments, the step of a group, and the programs of its rule.

The objects of a step are made in each step, so they are plain namespaces, which C makes.
"""

import operator
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import partial
from itertools import chain, repeat
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any, NamedTuple, TypeAlias

from emberharmony import Buffer, Parameter
from emberharmony.core import selection
from emberharmony.core.cells.cell import Cell, replace_steps
from emberharmony.core.cells.overwriting import WATCHES, Overwriting
from emberharmony.core.deferred import Deferred
from emberharmony.core.state.commits import Step, commit
from emberharmony.core.state.draws import current_recording
from emberharmony.optim import numbers
from emberharmony.optim.declarations import is_elementwise, kernel_name_of
from emberharmony.optim.groups import State
from emberharmony.transforms.program import Number, Update

if TYPE_CHECKING:
    from emberharmony.transforms import recorder
    from emberharmony.transforms.recorder import RuleProgram
else:
    recorder = Deferred("emberharmony.transforms.recorder")

_PYTHON = (int, float)
_UNRECORDED = ("params", "param_names", "lr")
"""The names of options that may differ between calls of a recorded program."""

Columns: TypeAlias = Sequence[Sequence[Any]]
"""The gradients, the parameters, and the tensors of the states in the order of their names."""

Overwritten: TypeAlias = tuple[list[Cell], Callable[[Sequence[Any]], Sequence[Iterable[Step]] | None]]
"""Parameters and the buffers of their states, and a function of the list of their tensors.

It returns the calls of C functions that write a step over these tensors, or None if nothing may.
"""


_CELLS = operator.itemgetter(0)


class StepPlan(SimpleNamespace):
    """The plan of a step: new values that are computed and not yet assigned, or calls that overwrite tensors.

    Attributes:
        values: the new values of the parameters that change.
        tensors: all new tensors.
        steps: what makes the step.
        counted: whether it is a step of the optimizer, rather than of a wrapper that only takes gradients.
        overwritten: what writes the rest of the step over tensors; None if everything is computed.
    """

    values: dict[Parameter, Any]
    tensors: list[Any]
    steps: list[Step]
    counted: bool = False
    overwritten: list[Overwritten] | None = None

    def make(self) -> bool:
        """Makes the planned step, and returns False if it could not overwrite tensors because others use them."""
        if self.tensors:
            selection.active().backend.evaluate(self.tensors)
        if not self.overwritten:
            commit(self.steps)
            return True
        cells = [*chain.from_iterable(map(_CELLS, self.overwritten))]
        return Overwriting(cells).try_writing(self._overwriting_calls, self.steps)

    def _overwriting_calls(self, tensors: Sequence[Any]) -> list[Iterable[Step]] | None:
        """Returns the calls that overwrite the tensors of all cells, or None if one part refuses."""
        all_calls: list[Iterable[Step]] = []
        start_index = 0
        for cells, make_calls in self.overwritten or ():
            cell_calls = make_calls(tensors[start_index : start_index + len(cells)])
            if cell_calls is None:
                return None
            all_calls += cell_calls
            start_index += len(cells)
        return all_calls


def perform_step(
    make: Callable[[dict[Any, Any], bool], None],
    gradients: dict[Any, Any],
    cells: Callable[[], Sequence[Cell]],
    clear: bool,
) -> None:
    """Makes a step of an optimizer now, or after the end of a function that is being recorded.

    Args:
        make: makes the step: it takes the gradients by cell, and whether the cells lose theirs.
        gradients: the gradients that the step takes, by cell.
        cells: returns the cells that it may change.
        clear: whether these lose their gradients.
    """
    recorded_block = current_recording() if WATCHES else None
    if recorded_block is not None:
        recorded_block.effects.postpone_step(make, gradients, cells(), clear)
    else:
        run_uncompiled = selection.active().backend.run_uncompiled
        make(gradients, clear) if run_uncompiled is None else run_uncompiled(make, gradients, clear)


def storing_steps(
    cells: Sequence[Parameter], held_states: dict[Parameter, State], states: Sequence[State]
) -> list[Step]:
    """Returns the assignments that store new states, tensors and numbers, for parameters.

    Args:
        cells: the parameters.
        held_states: the states of parameters.
        states: the new state of each.
    """
    steps: list[Step] = []
    assignments_by_name: dict[str, list[tuple[Any, Any]]] = {}
    for cell, state in zip(cells, states, strict=True):
        entry = held_states.get(cell)
        if entry is None or entry.keys() != state.keys():
            new_entry = {name: x if numbers.is_python(x) else Buffer(x) for name, x in state.items()}
            steps.append((operator.setitem, held_states, cell, new_entry))
            continue
        for name, x in state.items():
            if isinstance(entry[name], Buffer):
                assignments_by_name.setdefault(name, []).append((entry[name], x))
            else:
                steps.append((operator.setitem, entry, name, x))
    for buffers_and_tensors in assignments_by_name.values():
        steps += replace_steps(*zip(*buffers_and_tensors, strict=True))
    return steps


class GroupStep(SimpleNamespace):
    """The inputs of a step of one group of parameters: optimizer, options, states and gradients.

    Attributes:
        optimizer: the optimizer.
        backend: the active backend.
        plan: what the parts add to.
        updates: the programs of the rule.
        hyper: the options for this step.
        held: the states of parameters.
        cells: the parameters that change.
        gradients: the gradients of these.
    """

    optimizer: Any
    backend: Any
    plan: StepPlan
    updates: "Updates"
    hyper: Mapping[str, Any]
    held: dict[Parameter, State]
    cells: list[Parameter]
    gradients: list[Any]

    def initial(self, value: Any) -> State:
        """Returns the state of a parameter before its first step."""
        state: State = self.optimizer.initial(value, self.hyper)
        return state

    def apply_rule(self, state: State, columns: Columns) -> tuple[list[Any], list[State]]:
        """Returns the new parameters and states, computed by calling the rule for one parameter after the other.

        Args:
            state: the numbers in the state by name; anything else stands for tensors.
            columns: the tensors.
        """
        tensor_names = [name for name, x in state.items() if not numbers.is_python(x)]
        parameters_and_states, apply = [], self.optimizer._apply_rule
        if is_elementwise(self.optimizer.rule):
            apply = partial(self.backend.apply_rule, apply)  # watchers may see the rule as one call
        for gradient, value, *tensors in zip(*columns, strict=True):
            parameter_state = {**state, **dict(zip(tensor_names, tensors, strict=True))}
            parameters_and_states.append(apply(gradient, value, parameter_state, self.hyper))
        return [new_parameter for new_parameter, _ in parameters_and_states], [
            new_state for _, new_state in parameters_and_states
        ]


class _KnownProgram(NamedTuple):
    """A recorded program of a rule, with the options and numbers that it depends on.

    Attributes:
        chosen: returns the options that are constants of the program, in a tuple.
        number: how many options there are.
        options: these options.
        names: the names of the numbers in the state.
        given: the numbers that were given when it was made.
        recording: None if the rule has no program.
        tensors: the names of the tensors in the state that it makes.
    """

    chosen: Callable[[Mapping[str, Any]], Any]
    number: int
    options: Any
    names: list[str]
    given: list[Any]
    recording: "RuleProgram | None"
    tensors: list[str]

    def fits(self, hyper: Mapping[str, Any], arguments: list[Any]) -> bool:
        """Returns whether the program was recorded with these options and numbers."""
        if self.number != len(hyper) or self.options != self.chosen(hyper):
            return False
        # If recording failed for these numbers, it is not tried again until other numbers are given.
        return self.recording is None or bool(self.recording.given) or self.given == arguments


class Updates:
    """The programs that a rule calls for a group of parameters, which are recorded once for equal options.

    Args:
        rule: the rule.
    """

    def __init__(self, rule: Callable[..., Any]) -> None:
        self.rule, self._kernel = rule, kernel_name_of(rule)
        self._program_by_key: dict[Any, _KnownProgram] = {}

    def update_for(self, state: Mapping[str, Any], hyper: Mapping[str, Any]) -> Update | None:
        """Returns the update of a step by the rule's recorded program; None if the rule has no program.

        Args:
            state: the state of the parameters, in which anything but a number stands for tensors.
            hyper: the options for this step.
        """
        rate = hyper["lr"]
        if self._kernel is None or not isinstance(rate, _PYTHON):
            return None
        program_key = *state, *map(isinstance, state.values(), repeat(_PYTHON))
        program = self._program_by_key.get(program_key)
        number_names = (
            [name for name, x in state.items() if isinstance(x, _PYTHON)] if program is None else program.names
        )
        input_numbers = [*map(state.__getitem__, number_names), rate]
        if program is None or not program.fits(hyper, input_numbers):
            get_options = operator.itemgetter(*[name for name in hyper if name not in _UNRECORDED] or ["lr"])
            recording = recorder.record_rule(self.rule, state, hyper)
            tensor_names = [] if recording is None else [name for name, x in recording.made.items() if x is None]
            program = self._program_by_key[program_key] = _KnownProgram(
                get_options, len(hyper), get_options(hyper), number_names, input_numbers, recording, tensor_names
            )
        recording = program.recording
        if recording is None:
            return None
        try:
            hyper_numbers = recording.numbers(input_numbers)
        except (ArithmeticError, ValueError):
            return None  # the rule itself raises the same error
        value_by_register = dict(recording.made)
        for name, x in recording.made.items():
            if x.__class__ is Number:
                value_by_register[name] = hyper_numbers[x]
        return Update(
            program=recording.program,
            numbers=hyper_numbers,
            kernel=self._kernel,
            options=hyper,
            state=state,
            after=value_by_register,
            tensors=program.tensors,
        )
