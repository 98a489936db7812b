"""Lookahead: slow weights that follow the weights of another optimizer."""

from collections.abc import Mapping
from typing import Any

from emberharmony import Buffer, Parameter, ops
from emberharmony.core.errors import ArgumentError
from emberharmony.core.state.commits import Step
from emberharmony.core.types import Tensor
from emberharmony.optim.groups import State
from emberharmony.optim.optimizer import Optimizer
from emberharmony.optim.stepping import StepPlan
from emberharmony.optim.wrappers.wrapper import Wrapper, choose_tree


class Lookahead(Wrapper):
    """Makes the steps of an optimizer, and after each `k` steps moves the weights back towards the slow weights.

    The slow weights begin as the values of the parameters before their first step. After k steps they move to
    `slow + alpha * (parameter - slow)`, and the parameters are set to them.

    Args:
        optimizer: an optimizer with a rule, or another wrapper of one.
        k: the number of steps between two changes of the slow weights.
        alpha: the share of the way that the slow weights move.

    Attributes:
        slow: the slow weights of each parameter, in buffers, so they follow the active backend.

    Raises:
        ArgumentError: if an argument is out of range.
        ArgumentTypeError: if the optimizer is not one with a rule.

    Example:
        >>> from emberharmony import Parameter, ops, optim
        >>> weight = Parameter([1.0])
        >>> optimizer = optim.Lookahead(optim.SGD([weight], lr=0.25), k=2, alpha=0.5)
        >>> for _ in range(2):
        ...     optimizer.step({weight: ops.ones((1,))})
        ...     print(weight.value.tolist())
        [0.75]
        [0.75]

    Source: Zhang et al., "Lookahead Optimizer: k steps forward, 1 step back", 2019, algorithm 1.
    """

    def __init__(self, optimizer: Optimizer | Wrapper, k: int = 5, alpha: float = 0.5) -> None:
        super().__init__(optimizer)
        if not isinstance(k, int) or k < 1:
            raise ArgumentError(f"{self._head}k is {k!r}, expected an integer >= 1")
        if not 0 <= alpha <= 1:
            raise ArgumentError(f"{self._head}alpha is {alpha!r}, expected a number in [0, 1]")
        self.k, self.alpha = k, alpha
        self.slow: dict[Parameter, Buffer] = {}

    def plan(self, gradients: Mapping[Parameter, Any], *, clear: bool = True) -> StepPlan:
        """Returns the plan of the optimizer's step, extended after each `k` steps by the move of the slow weights."""
        plan = self.optimizer.plan(gradients, clear=clear)
        new_slow_by_cell = {cell: Buffer(cell.value) for cell in plan.values if cell not in self.slow}
        plan.steps.append((self.slow.update, new_slow_by_cell))
        if plan.counted and (self.count + 1) % self.k == 0:
            for cell, buffer in {**self.slow, **new_slow_by_cell}.items():
                slow_weights = buffer.value
                plan.values[cell] = moved_weights = self._moved_slow_weights(
                    slow_weights, plan.values.get(cell, cell.value)
                )
                plan.tensors.append(moved_weights)
                plan.steps += [buffer.replace_step(moved_weights), cell.replace_step(moved_weights)]
        return plan

    def first_wrapper_entries(self, leaves: list[Tensor]) -> State:
        """Returns the entries of the wrapper in the state of the pure form for these parameters."""
        return {"slow": leaves}

    def step_results(self, grads: Any, state: State, params: Any) -> tuple[Any, State, State]:
        """Returns the parameters, the state of the wrapped optimizer, and the entries of the wrapper after a step."""
        new_params, inner_state = self.optimizer.update(grads, state["optimizer"], params)
        fast_weights, tree_structure = ops.tree_flatten(new_params)
        step_count = inner_state["count"]
        is_slow_step = ops.logical_and(
            ops.equal(ops.remainder(step_count, self.k), 0), ops.greater(step_count, state["count"])
        )
        moved_slow_weights = [
            self._moved_slow_weights(new_slow_weights, x)
            for new_slow_weights, x in zip(state["slow"], fast_weights, strict=True)
        ]
        new_slow_weights = choose_tree(is_slow_step, moved_slow_weights, state["slow"])
        return (
            ops.tree_unflatten(tree_structure, choose_tree(is_slow_step, moved_slow_weights, fast_weights)),
            inner_state,
            {"slow": new_slow_weights},
        )

    def wrapper_state(self, host: bool) -> dict[str, Any]:
        """Returns the slow weights by the index of the parameter."""
        index_by_cell = {cell: i for i, cell in enumerate(self.parameters())}
        slow_by_index = {index_by_cell[cell]: buffer.value for cell, buffer in self.slow.items()}
        return {"slow": {i: ops.to_numpy(x) if host else x for i, x in slow_by_index.items()}}

    def wrapper_loading_steps(self, state_dict: Mapping[str, Any]) -> list[Step]:
        """Returns the assignments that replace the slow weights by saved ones.

        Raises:
            ArgumentError: if they do not fit the parameters.
        """
        return [(self.slow.clear,), (self.slow.update, self.buffer_by_parameter("slow", state_dict["slow"]))]

    def _moved_slow_weights(self, slow: Any, fast: Any) -> Any:
        """Returns the slow weights moved by the share `alpha` towards the fast weights."""
        return ops.add(slow, ops.multiply(ops.subtract(fast, slow), self.alpha))
