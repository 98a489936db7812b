"""The pure form of an optimizer: its state before the first step, and a step as a function of tensors.

The numbers in the state, such as the count of steps, are equal for all parameters, so the state holds them once, as
tensors. A compiler could not know that they are equal. The parameters stay apart: one vector of all would compile in
half of the time on PyTorch (37 instead of 72 s for the update of a small GPT), and then take 2.2 times as long.

Some functions here are loops, because `torch.compile` (PyTorch 2.13) gave old entries for a comprehension that closes
over an argument, once it had compiled `update` of several optimizers; a test compiles two in one process.
"""

from collections.abc import Callable
from typing import Any, Literal, TypeAlias

from emberharmony import ops
from emberharmony.optim import numbers
from emberharmony.optim.groups import State

Wide: TypeAlias = Literal["float32", "float64"]
"""The dtypes in which the numbers of a step are computed: float32 or float64."""

Applied: TypeAlias = Callable[[Any, Any, State, Any], tuple[Any, State]]
"""A function of gradient, parameter, state and count of steps that returns the new parameter and state."""


def first_state(values: list[Any], states: list[State]) -> State:
    """Returns the state of the pure form before the first step, with numbers common to all parameters stored once.

    Args:
        values: the parameters.
        states: the state of each.
    """
    wide_dtype = _state_dtype(values)
    number_by_name = {name: number for state in states for name, number in state.items() if numbers.is_python(number)}
    return {
        "count": ops.convert_to_tensor(0, "int32"),
        "numbers": {
            name: ops.convert_to_tensor(number, "int32" if isinstance(number, int) else wide_dtype)
            for name, number in number_by_name.items()
        },
        "parameters": [{name: x for name, x in state.items() if name not in number_by_name} for state in states],
    }


def step(applied: Applied, values: list[Any], gradients: list[Any], state: State) -> tuple[list[Any], State]:
    """Returns the parameters and the state of the pure form after one step.

    Args:
        applied: computes a step for one parameter.
        values, gradients: the parameters and their gradients.
        state: the state before.
    """
    shared_numbers, latest_numbers = state["numbers"], state["numbers"]
    new_parameters, new_states = [], []
    state_dtype = _state_dtype(values)
    for value, gradient, old_state in zip(values, gradients, state["parameters"], strict=True):
        wide_dtype = _computing_dtype(value)
        new_value, new_state = applied(
            gradient, value, _cast_numbers(shared_numbers, wide_dtype) | old_state, ops.cast(state["count"], wide_dtype)
        )
        if wide_dtype == state_dtype:  # all parameters of this dtype have equal numbers
            latest_numbers = new_state
        new_parameters.append(new_value)
        new_states.append(_state_without_numbers(new_state, shared_numbers))
    return new_parameters, {
        "count": ops.add(state["count"], 1),
        "numbers": _cast_like(shared_numbers, latest_numbers),
        "parameters": new_states,
    }


def _computing_dtype(value: Any) -> Wide:
    """Returns the dtype in which the numbers of a step are computed for a parameter."""
    return "float64" if ops.dtype(value) == "float64" else "float32"


def _state_dtype(values: list[Any]) -> Wide:
    """Returns the dtype in which the state of the pure form stores its common numbers."""
    return "float64" if any(_computing_dtype(value) == "float64" for value in values) else "float32"


def _cast_numbers(shared_numbers: State, dtype: Wide) -> State:
    """Returns the common numbers of a state cast to the dtype in which a rule computes them."""
    cast_state = {}
    for name, number in shared_numbers.items():
        cast_state[name] = ops.cast(number, dtype)
    return cast_state


def _cast_like(shared_numbers: State, new: State) -> State:
    """Returns the new common numbers of a state cast to the dtypes of the old ones."""
    cast_state = {}
    for name, number in shared_numbers.items():
        cast_state[name] = ops.cast(new[name], ops.dtype(number))
    return cast_state


def _state_without_numbers(state: State, shared_numbers: State) -> State:
    """Returns the state of a parameter without the numbers that are common to all parameters."""
    remaining_state = {}
    for name, x in state.items():
        if name not in shared_numbers:
            remaining_state[name] = x  # noqa: PERF403  (see above)
    return remaining_state
