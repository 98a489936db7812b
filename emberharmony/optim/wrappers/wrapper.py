"""`Wrapper`, the base of wrappers that change the steps of an optimizer, such as `Accumulate` and `Lookahead`."""

from collections.abc import Mapping
from typing import Any

from emberharmony import Buffer, Parameter, ops
from emberharmony.core.errors import ArgumentError, ArgumentTypeError, brief
from emberharmony.core.state.commits import Step, commit
from emberharmony.core.types import Tensor
from emberharmony.optim.groups import State, require_matching_gradient
from emberharmony.optim.optimizer import Optimizer
from emberharmony.optim.saved import to_active_backend
from emberharmony.optim.stepping import StepPlan, perform_step


class Wrapper:
    """The base of wrappers, which are used in the place of an optimizer and change its steps.

    A subclass defines `plan` for the object form, and `first_wrapper_entries` and `step_results` for the pure form.
    Its own state is in `wrapper_state` and `wrapper_loading_steps`.

    Args:
        optimizer: an optimizer with a rule, or another wrapper of one.

    Attributes:
        optimizer: the wrapped optimizer.

    Raises:
        ArgumentTypeError: if the optimizer is not one with a rule, as `LBFGS`.
    """

    def __init__(self, optimizer: "Optimizer | Wrapper") -> None:
        self._head = f"{type(self).__name__}(): "
        if not isinstance(optimizer, (Optimizer, Wrapper)):
            raise ArgumentTypeError(f"{self._head}expected an optimizer with a rule, such as AdamW, not {optimizer!r}")
        self.optimizer = optimizer

    @property
    def param_groups(self) -> list[dict[str, Any]]:
        """The options of each group, with its parameters as `"params"`."""
        return self.optimizer.param_groups

    @property
    def state(self) -> dict[Parameter, State]:
        """The state of each parameter that a step has changed."""
        return self.optimizer.state

    @property
    def count(self) -> int:
        """How many steps the innermost optimizer has made."""
        return self.optimizer.count

    def add_param_group(self, group: Mapping[str, Any]) -> None:
        """Adds a group of parameters; see `Optimizer.add_param_group`."""
        self.optimizer.add_param_group(group)

    def learning_rates(self) -> list[float]:
        """Returns the learning rate of each group for the next step."""
        return self.optimizer.learning_rates()

    def zero_grad(self) -> None:
        """Sets the `grad` of all parameters to None."""
        self.optimizer.zero_grad()

    def step(self, grads: Mapping[Any, Any] | None = None, *, clear: bool = True) -> None:
        """Uses the gradients for the next step in the way of the wrapper; raises the errors of `Optimizer.step`.

        Args:
            grads: gradients by `Parameter` or by the name of a parameter; without it `grad` is read.
            clear: whether `grad` becomes None.
        """
        perform_step(self._make_step, self.gradients(grads), self.parameters, clear)

    def _make_step(self, gradients: dict[Parameter, Any], clear: bool) -> None:
        """Plans and makes a step with the given gradients."""
        self.plan(gradients, clear=clear).make()

    def gradients(self, grads: Mapping[Any, Any] | None = None) -> dict[Parameter, Any]:
        """Returns the gradients that the next step takes, by parameter; see `Optimizer.gradients`."""
        return self.optimizer.gradients(grads)

    def plan(self, gradients: Mapping[Parameter, Any], *, clear: bool = True) -> StepPlan:
        """Returns the plan of a step with the given gradients, not yet made; subclasses define it.

        Args:
            gradients: a gradient for each parameter that shall change, in its shape and dtype.
            clear: whether `grad` becomes None with the step.
        """
        raise NotImplementedError

    def init(self, params: Any) -> State:
        """Returns the state of the pure form before the first step.

        Args:
            params: a tree of tensors.

        Returns:
            A tree: `"count"`, how many steps the innermost optimizer has made, `"optimizer"`, the state of the wrapped
            one, and the entries of the wrapper itself.
        """
        inner_state = self.optimizer.init(params)
        leaves = [ops.convert_to_tensor(leaf) for leaf in ops.tree_leaves(params)]
        return {"count": inner_state["count"], "optimizer": inner_state, **self.first_wrapper_entries(leaves)}

    def update(self, grads: Any, state: State, params: Any) -> tuple[Any, State]:
        """Returns the parameters and the state after one step in the pure form; see `Optimizer.update`."""
        new_params, inner_state, own_state = self.step_results(grads, state, params)
        return new_params, {"count": inner_state["count"], "optimizer": inner_state, **own_state}

    def first_wrapper_entries(self, leaves: list[Tensor]) -> State:
        """Returns the entries of the wrapper in the state of the pure form for these parameters.

        Args:
            leaves: the tensors of the parameters, in the order of the tree.
        """
        raise NotImplementedError

    def step_results(self, grads: Any, state: State, params: Any) -> tuple[Any, State, State]:
        """Returns the parameters, the state of the wrapped optimizer, and the entries of the wrapper after a step.

        Args:
            grads: a tree of gradients like `params`.
            state: what `init`, or the step before, returned.
            params: a tree of tensors.
        """
        raise NotImplementedError

    def state_dict(self, *, host: bool = False) -> dict[str, Any]:
        """Returns the state of the wrapped optimizer as `"optimizer"`, and that of the wrapper.

        Args:
            host: whether the tensors become NumPy arrays; see `Optimizer.state_dict`.
        """
        return {"optimizer": self.optimizer.state_dict(host=host), **self.wrapper_state(host)}

    def load_state_dict(self, state_dict: Mapping[str, Any]) -> None:
        """Replaces the state by that of a state dict.

        Raises:
            ArgumentError: if anything is missing, unexpected or has another shape; nothing is changed then.
        """
        commit(self.loading_steps(state_dict))

    def loading_steps(self, state_dict: Mapping[str, Any]) -> list[Step]:
        """Returns the assignments that `load_state_dict` makes, without making them."""
        expected_keys = {"optimizer", *self.wrapper_state(False)}
        if not isinstance(state_dict, Mapping) or state_dict.keys() != expected_keys:
            given_keys = sorted(state_dict) if isinstance(state_dict, Mapping) else brief(state_dict)
            raise ArgumentError(
                f"{type(self).__name__}.load_state_dict(): the state has {given_keys}, expected {sorted(expected_keys)}"
            )
        return [*self.optimizer.loading_steps(state_dict["optimizer"]), *self.wrapper_loading_steps(state_dict)]

    def wrapper_state(self, host: bool) -> dict[str, Any]:
        """Returns the part of the state dict that belongs to the wrapper itself; subclasses define it.

        Args:
            host: whether tensors become NumPy arrays; else they stay tensors of the backend.
        """
        raise NotImplementedError

    def wrapper_loading_steps(self, state_dict: Mapping[str, Any]) -> list[Step]:
        """Returns the assignments that load the wrapper's own part of a state dict; subclasses define it."""
        raise NotImplementedError

    def buffer_by_parameter(self, what: str, values: Mapping[int, Any]) -> dict[Parameter, Buffer]:
        """Returns new buffers by parameter, made of a state dict's tensors by the index of their parameter.

        Args:
            what: the name of the entry, for messages.
            values: the tensors, of any backend.

        Raises:
            ArgumentError: if there is no such parameter, or it has another shape.
        """
        cells, buffer_by_parameter = self.parameters(), {}
        for i, x in values.items():
            is_known_index = isinstance(i, int) and 0 <= i < len(cells)
            expected_shape = tuple(cells[i].value.shape) if is_known_index else "no such entry"
            if tuple(x.shape) != expected_shape:
                raise ArgumentError(
                    f"{type(self).__name__}.load_state_dict(): {what}[{i!r}] has shape {tuple(x.shape)}, expected "
                    f"{expected_shape}"
                )
            buffer_by_parameter[cells[i]] = Buffer(
                ops.convert_to_tensor(to_active_backend(x), device=ops.get_device(cells[i].value), copy=True)
            )
        return buffer_by_parameter

    def check_gradients(self, gradients: Mapping[Parameter, Any]) -> None:
        """Checks that gradients fit their parameters; see `Optimizer.step`, whose errors it raises."""
        for cell, gradient in gradients.items():
            require_matching_gradient(self._head, gradient, cell.value, cell)

    def parameters(self) -> list[Parameter]:
        """Returns all parameters, in the order of the groups."""
        return self.optimizer.parameters()


def choose_tree(condition: Tensor, x: Any, y: Any) -> Any:
    """Returns the tree `x` if a boolean tensor without axes is true, else the tree `y`, without reading the tensor."""
    return ops.tree_map(lambda a, b: ops.where(condition, a, b), x, y)
