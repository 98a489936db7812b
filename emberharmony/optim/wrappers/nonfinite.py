"""`SkipNonfinite`, a wrapper of an optimizer that skips steps whose gradients are not finite."""

from collections.abc import Mapping
from typing import Any

from emberharmony import Parameter, ops
from emberharmony.core.errors import ArgumentError
from emberharmony.core.state.commits import Step, assignment
from emberharmony.core.types import Tensor
from emberharmony.optim.clipping import NonFiniteGradientError
from emberharmony.optim.groups import State
from emberharmony.optim.optimizer import Optimizer
from emberharmony.optim.stepping import StepPlan
from emberharmony.optim.terms import all_finite
from emberharmony.optim.wrappers.wrapper import Wrapper, choose_tree

_STATE = ("skipped", "in_a_row")


class SkipNonfinite(Wrapper):
    """Makes the steps of an optimizer, but those whose gradients have a NaN or an infinity, which change nothing.

    Args:
        optimizer: an optimizer with a rule, or another wrapper of one.
        limit: how many steps in a row may be left out; one more raises an error. None for no limit. The pure form,
            which cannot raise an error, counts them only.

    Attributes:
        skipped: how many steps have been left out.
        in_a_row: how many of them since the last step that was made.

    Raises:
        ArgumentError: if `limit` is negative.
        ArgumentTypeError: if the optimizer is not one with a rule.

    Example:
        >>> from emberharmony import Parameter, ops, optim
        >>> weight = Parameter([1.0])
        >>> optimizer = optim.SkipNonfinite(optim.SGD([weight], lr=0.5))
        >>> for gradient in (1.0, float("nan"), 1.0):
        ...     optimizer.step({weight: [gradient]})
        >>> weight.value.tolist(), optimizer.skipped
        ([0.0], 1)
    """

    def __init__(self, optimizer: Optimizer | Wrapper, limit: int | None = 10) -> None:
        super().__init__(optimizer)
        if limit is not None and not limit >= 0:
            raise ArgumentError(f"{self._head}limit is {limit!r}, expected an integer >= 0 or None")
        self.limit = limit
        self.skipped = self.in_a_row = 0

    def plan(self, gradients: Mapping[Parameter, Any], *, clear: bool = True) -> StepPlan:
        """Returns the plan of the optimizer's step, or one that only counts a skipped step if gradients are not finite.

        Raises:
            NonFiniteGradientError: if more than `limit` steps in a row would be left out.
        """
        self.check_gradients(gradients)
        if bool(ops.to_numpy(all_finite(list(gradients.values())))):
            plan = self.optimizer.plan(gradients, clear=clear)
            plan.steps.append(assignment(self, "in_a_row", 0))
            return plan
        if self.limit is not None and self.in_a_row >= self.limit:
            parameter_texts = [
                repr(cell) for cell, gradient in gradients.items() if not bool(ops.to_numpy(all_finite([gradient])))
            ]
            raise NonFiniteGradientError(
                f"{self._head}the gradients of {', '.join(parameter_texts[:5])} are not finite, after "
                f"{self.in_a_row} steps in a "
                f"row that were left out: lower the learning rate, or raise limit"
            )
        steps = [assignment(self, name, getattr(self, name) + 1) for name in _STATE]
        if clear:
            steps += [cell.clear_grad_step() for cell in self.parameters()]
        return StepPlan(values={}, tensors=[], steps=steps)

    def first_wrapper_entries(self, leaves: list[Tensor]) -> State:
        """Returns the entries of the wrapper in the state of the pure form for these parameters."""
        return {name: ops.convert_to_tensor(0, "int32") for name in _STATE}

    def step_results(self, grads: Any, state: State, params: Any) -> tuple[Any, State, State]:
        """Returns the parameters, the state of the wrapped optimizer, and the entries of the wrapper after a step."""
        all_are_finite = all_finite([ops.convert_to_tensor(leaf) for leaf in ops.tree_leaves(grads)])
        new_params, inner_state = self.optimizer.update(grads, state["optimizer"], params)
        skipped_count, in_a_row_count = (ops.add(state[name], 1) for name in _STATE)
        own_state = {
            "skipped": ops.where(all_are_finite, state["skipped"], skipped_count),
            "in_a_row": ops.where(all_are_finite, ops.zeros_like(in_a_row_count), in_a_row_count),
        }
        old_values = ops.tree_map(ops.convert_to_tensor, params)
        return (
            choose_tree(all_are_finite, new_params, old_values),
            choose_tree(all_are_finite, inner_state, state["optimizer"]),
            own_state,
        )

    def wrapper_state(self, host: bool) -> dict[str, Any]:
        """Returns the numbers of steps that were skipped, in all and in a row."""
        return {name: getattr(self, name) for name in _STATE}

    def wrapper_loading_steps(self, state_dict: Mapping[str, Any]) -> list[Step]:
        """Returns the assignments that replace the numbers of skipped steps by saved ones."""
        return [assignment(self, name, int(state_dict[name])) for name in _STATE]
