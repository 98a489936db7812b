"""Accumulates gradients over several backward passes."""

from collections.abc import Mapping
from typing import Any

from emberharmony import Buffer, Parameter, ops
from emberharmony.core.errors import ArgumentError
from emberharmony.core.state.commits import Step, assignment
from emberharmony.core.types import Tensor
from emberharmony.optim.groups import State
from emberharmony.optim.optimizer import Optimizer
from emberharmony.optim.stepping import StepPlan
from emberharmony.optim.terms import at_least_float32
from emberharmony.optim.wrappers.wrapper import Wrapper, choose_tree


class Accumulate(Wrapper):
    """Makes a step of an optimizer with the mean of the gradients of `n` backward passes.

    If the losses are means over batches of one size, it is the step of one batch n times as large. Call `step` after
    each backward pass: n - 1 calls add the gradients to sums, and the nth makes a step. Gradients of 16 bits are added
    in float32. In the pure form `update` does the same.

    Args:
        optimizer: an optimizer with a rule, or another wrapper of one.
        n: the number of backward passes in a step.

    Attributes:
        passes: how many passes are in the sums.
        sums: the sum of the gradients of each parameter, in buffers, so they follow the active backend.

    Raises:
        ArgumentError: if `n` is not a positive integer.
        ArgumentTypeError: if the optimizer is not one with a rule.

    Example:
        >>> from emberharmony import Parameter, ops, optim
        >>> weight = Parameter([1.0])
        >>> optimizer = optim.Accumulate(optim.SGD([weight], lr=0.5), 2)
        >>> for gradient in (1.0, 3.0):
        ...     weight.grad = ops.convert_to_tensor([gradient])
        ...     optimizer.step()
        ...     print(weight.value.tolist())
        [1.0]
        [0.0]
    """

    def __init__(self, optimizer: Optimizer | Wrapper, n: int) -> None:
        super().__init__(optimizer)
        if not isinstance(n, int) or n < 1:
            raise ArgumentError(f"{self._head}n is {n!r}, expected an integer >= 1")
        self.n, self.passes = n, 0
        self.sums: dict[Parameter, Buffer] = {}

    def plan(self, gradients: Mapping[Parameter, Any], *, clear: bool = True) -> StepPlan:
        """Returns the plan that adds the gradients to the sums, and after `n` passes makes a step with their means."""
        self.check_gradients(gradients)
        sum_by_cell = {cell: buffer.value for cell, buffer in self.sums.items()}
        for cell, gradient in gradients.items():
            sum_by_cell[cell] = (
                ops.add(sum_by_cell[cell], at_least_float32(gradient))
                if cell in sum_by_cell
                else at_least_float32(gradient)
            )
        if self.passes + 1 == self.n:
            mean_by_cell = {cell: _mean(x, self.n, cell.value) for cell, x in sum_by_cell.items()}
            plan = self.optimizer.plan(mean_by_cell, clear=clear)
            plan.steps += [(self.sums.clear,), assignment(self, "passes", 0)]
            return plan
        steps: list[Step] = [assignment(self, "passes", self.passes + 1)]
        for cell, x in sum_by_cell.items():
            if cell in self.sums:
                steps.append(self.sums[cell].replace_step(x))
            else:
                steps.append((self.sums.__setitem__, cell, Buffer(x)))
        if clear:
            steps += [cell.clear_grad_step() for cell in self.parameters()]
        return StepPlan(values={}, tensors=list(sum_by_cell.values()), steps=steps)

    def first_wrapper_entries(self, leaves: list[Tensor]) -> State:
        """Returns the entries of the wrapper in the state of the pure form for these parameters."""
        return {
            "passes": ops.convert_to_tensor(0, "int32"),
            "sums": [ops.zeros_like(at_least_float32(leaf)) for leaf in leaves],
        }

    def step_results(self, grads: Any, state: State, params: Any) -> tuple[Any, State, State]:
        """Returns the parameters, the state of the wrapped optimizer, and the entries of the wrapper after a step."""
        gradients, tree_structure = ops.tree_flatten(grads)
        leaves = [ops.convert_to_tensor(leaf) for leaf in ops.tree_leaves(params)]
        if len(gradients) != len(state["sums"]):
            raise ArgumentError(f"{self._head}{len(gradients)} gradients are given, expected {len(state['sums'])}")
        gradient_sums = [
            ops.add(x, at_least_float32(ops.convert_to_tensor(g)))
            for x, g in zip(state["sums"], gradients, strict=True)
        ]
        gradient_means = [_mean(x, self.n, leaf) for x, leaf in zip(gradient_sums, leaves, strict=True)]
        new_params, inner_state = self.optimizer.update(
            ops.tree_unflatten(tree_structure, gradient_means), state["optimizer"], params
        )
        pass_count = ops.add(state["passes"], 1)
        is_full = ops.equal(pass_count, self.n)
        own_state = {
            "passes": ops.where(is_full, ops.zeros_like(pass_count), pass_count),
            "sums": [ops.where(is_full, ops.zeros_like(x), x) for x in gradient_sums],
        }
        old_values = ops.tree_map(ops.convert_to_tensor, params)
        return (
            choose_tree(is_full, new_params, old_values),
            choose_tree(is_full, inner_state, state["optimizer"]),
            own_state,
        )

    def wrapper_state(self, host: bool) -> dict[str, Any]:
        """Returns the sums of gradients by the index of their parameter, and the number of passes in the sums."""
        index_by_cell = {cell: i for i, cell in enumerate(self.parameters())}
        sum_by_index = {index_by_cell[cell]: buffer.value for cell, buffer in self.sums.items()}
        return {"sums": {i: ops.to_numpy(x) if host else x for i, x in sum_by_index.items()}, "passes": self.passes}

    def wrapper_loading_steps(self, state_dict: Mapping[str, Any]) -> list[Step]:
        """Returns the assignments that replace the sums of gradients and the number of passes by saved ones.

        Raises:
            ArgumentError: if they do not fit the parameters.
        """
        sum_by_parameter = self.buffer_by_parameter("sums", state_dict["sums"])
        return [
            (self.sums.clear,),
            (self.sums.update, sum_by_parameter),
            assignment(self, "passes", int(state_dict["passes"])),
        ]


def _mean(gradient_sum: Any, n: int, value: Any) -> Any:
    return ops.cast(ops.divide(gradient_sum, n), ops.dtype(value))
