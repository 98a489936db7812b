"""The base of optimizers with a rule: the step that changes all parameters at once, and the pure form."""

import warnings
from collections.abc import Mapping
from itertools import chain
from typing import Any, ClassVar, TypeAlias
from weakref import WeakKeyDictionary

from emberharmony import Parameter, ops
from emberharmony.core import selection
from emberharmony.core.cells.cell import Cell, clear_grad_steps, gradients_of
from emberharmony.core.cells.models import MODELS, warn_of_new_parameters
from emberharmony.core.cells.overwriting import COUNTED, WATCHES
from emberharmony.core.errors import ArgumentError, ArgumentTypeError, TrainingWarning, brief
from emberharmony.core.state.draws import OPEN, current_recording, refuse_effect
from emberharmony.core.types import Tensor
from emberharmony.optim import numbers, pure
from emberharmony.optim.first_step import warn_of_gradients
from emberharmony.optim.groups import PARAMS, ParameterGroups, State, rate_at, require_matching_gradient
from emberharmony.optim.layout import layout_and_works
from emberharmony.optim.parts import Layout, have_same_objects
from emberharmony.optim.stepping import GroupStep, Overwritten, StepPlan, Updates, perform_step

Hyper: TypeAlias = Mapping[str, Any]
"""The options of a group for one step; `lr` is a number."""


_LAYOUTS: WeakKeyDictionary["Optimizer", dict[int, Layout]] = WeakKeyDictionary()
"""The layouts of parameter groups by optimizer, apart from the optimizers because they are no state."""


class Optimizer(ParameterGroups):
    """The base class of optimizers.

    A subclass defines `rule`, which computes one step for one parameter, and `initial`, which returns the state before
    the first step. `limits` says what each option may be. From these follow both forms of an optimizer. `step` changes
    `Parameter` objects by their gradients. `init` and `update` are pure functions of trees, which `ops.compile`,
    `ops.vmap` and the other transforms take; in their state the count of steps is a tensor.

    Args:
        params: a module, parameters, a tree with parameters, pairs of name and parameter, or a list of groups: dicts
            with `"params"` and the options that differ from those of the optimizer. None for the pure form alone.
        lr: the learning rate, or a schedule, which returns it for the number of steps made before.
        options: the options of groups that do not give their own.

    Attributes:
        param_groups: the options of each group, with its parameters as `"params"`.
        state: the state of each parameter that has been changed; tensors are in `Buffer` objects, so they follow the
            active backend.
        count: how many steps have been made.

    Raises:
        ArgumentError: if there is no parameter, a parameter is in two places, or an option has a wrong value.
        ArgumentTypeError: if something else than a `Parameter` is given.
        DTypeError: if a trainable parameter is not real and floating.
    """

    _needs_parameters: ClassVar[bool] = False
    unsaved: ClassVar[Mapping[str, float]] = {}
    """Default values of numbers in the state that torch does not save, by name."""

    @staticmethod
    def rule(gradient: Tensor, parameter: Tensor, state: State, hyper: Hyper) -> tuple[Tensor, State]:
        """Returns a parameter and its state after one step; subclasses define it.

        Args:
            gradient: the gradient of the loss, a tensor of the shape and dtype of the parameter.
            parameter: the tensor of the parameter before the step; the rule does not write into it.
            state: what `initial` or the last step returned for it, a dict from names to tensors.
            hyper: the options, with the learning rate of this step as `lr`.
        """
        raise NotImplementedError

    @staticmethod
    def initial(parameter: Tensor, hyper: Hyper) -> State:
        """Returns the state of a parameter before its first step; subclasses define it.

        Args:
            parameter: the tensor of the parameter, which gives shape and dtype.
            hyper: the options of its group by name, with numbers for schedules.
        """
        raise NotImplementedError

    def step(self, grads: Mapping[Any, Any] | None = None, *, clear: bool = True) -> None:
        """Changes all parameters that have a gradient.

        Everything is computed, then all tensors are exchanged in one step: after an error or an interruption all
        parameters and the whole state are as before. Where nothing but a parameter refers to its tensor, the step
        writes the new value into its memory, which no one can tell from an exchange.

        Args:
            grads: gradients by `Parameter` or by the name of a parameter; None reads `grad`.
            clear: whether `grad` becomes None.

        Raises:
            ArgumentError: if `grads` has a key that is no parameter of the optimizer.
            ArgumentTypeError: if `grads` is no mapping, or a gradient is sparse.
            ShapeError: if a gradient does not have the shape of its parameter.
            DTypeError: if a gradient does not have the dtype of its parameter.
            TracedTensorError: inside of a transform; use `update` there.
        """
        gradients = self.gradients(grads)
        if not gradients and grads is None:
            warnings.warn(
                f"{type(self).__name__}.step() changes nothing, because no parameter has a gradient: call "
                f"ops.backward(lambda: loss_fn(model(x), y), model) before each step, which clears the gradients, and "
                f"make a new optimizer for a new model",
                TrainingWarning,
                stacklevel=2,
            )
        perform_step(self._make_step, gradients, self.parameters, clear)

    def _make_step(self, gradients: dict[Parameter, Any], clear: bool) -> None:
        """Computes and makes a step with the given gradients."""
        if OPEN:
            refuse_effect("a cell would be assigned")
        if not self._plan(gradients, clear, [] if COUNTED and not WATCHES else None).make():
            self.plan(gradients, clear=clear).make()

    def gradients(self, grads: Mapping[Any, Any] | None = None) -> dict[Parameter, Any]:
        """Returns the gradients that the next step takes, by parameter.

        Args:
            grads: gradients by `Parameter` or by the name of a parameter; None reads `grad`.

        Raises:
            ArgumentError: if `grads` has a key that is no parameter of the optimizer.
            ArgumentTypeError: if `grads` is no mapping.
        """
        if grads is None:
            return gradients_of([*chain.from_iterable(map(PARAMS, self._param_groups))])
        if not isinstance(grads, Mapping):
            raise ArgumentTypeError(
                f"{self._head}grads is {brief(grads)} of type {type(grads).__name__}, expected a mapping from "
                f"parameters or their names to gradients, such as dict(zip(params, grads)){_gradients_hint(grads)}"
            )
        parameter_by_key = {cell: cell for cell in self.parameters()}
        parameter_by_name: dict[Any, Parameter] = {cell.name: cell for cell in parameter_by_key if cell.name}
        for group in self._param_groups:
            parameter_by_name.update(zip(group.get("param_names", ()), group["params"], strict=False))
        gradient_by_parameter = {}
        for key, gradient in grads.items():
            parameter = parameter_by_key.get(key, parameter_by_name.get(key))
            if parameter is None:
                raise ArgumentError(f"{self._head}grads has {brief(key)}, which is no parameter of the optimizer")
            gradient_by_parameter[parameter] = _tensor_of_leaf(gradient)
        return gradient_by_parameter

    def plan(self, gradients: Mapping[Parameter, Any], *, clear: bool = True) -> StepPlan:
        """Returns the plan of a step with the given gradients, whose results are computed but not yet assigned.

        Args:
            gradients: a gradient for each parameter that shall change, in its shape and dtype.
            clear: whether `grad` becomes None with the step.
        """
        return self._plan(gradients, clear, None)

    def _plan(self, gradients: Mapping[Parameter, Any], clear: bool, overwritten: list[Overwritten] | None) -> StepPlan:
        """Returns the plan of a step; with a list `overwritten` the step may write into the parameters' tensors."""
        plan = StepPlan(values={}, tensors=[], steps=[], counted=True, overwritten=overwritten)
        for group_index, group in enumerate(self._param_groups):
            cells, group_gradients = group["params"], list(gradients.values())
            if not have_same_objects(list(gradients), cells):
                cells = [cell for cell in cells if cell in gradients]
                group_gradients = [gradients[cell] for cell in cells]
            if cells:
                self._add_group_to_plan(plan, group_index, cells, group_gradients)
            if clear:
                plan.steps += clear_grad_steps(group["params"])
        plan.steps.append((setattr, self, "_count", self._count + 1))
        return plan

    def init(self, params: Any) -> State:
        """Returns the state of the pure form before the first step.

        Args:
            params: a tree of tensors.

        Returns:
            A tree: `"count"`, how many steps have been made, `"numbers"`, the numbers that the states of all parameters
            share, such as `step`, as tensors, and `"parameters"`, a list of the rest of the states in the order of
            `ops.tree_leaves(params)`.
        """
        hyper = self._hyper(self.defaults, 0)
        parameter_tensors = [_tensor_of_leaf(leaf) for leaf in ops.tree_leaves(params)]
        return pure.first_state(parameter_tensors, [self.initial(value, hyper) for value in parameter_tensors])

    def update(self, grads: Any, state: State, params: Any) -> tuple[Any, State]:
        """Returns the parameters and the state after one step; nothing is changed.

        Args:
            grads: a tree of gradients, like `params`.
            state: what `init` or `update` returned.
            params: a tree of tensors.

        Raises:
            ArgumentError: if the trees differ in structure.
            ShapeError: if a gradient does not have the shape of its parameter.
            DTypeError: if a gradient does not have the dtype of its parameter.

        Example:
            >>> from emberharmony import ops, optim
            >>> descent = optim.SGD(lr=0.5)
            >>> weights = {"w": ops.ones((2,))}
            >>> weights, state = descent.update({"w": ops.ones((2,))}, descent.init(weights), weights)
            >>> weights["w"].tolist(), int(state["count"])
            ([0.5, 0.5], 1)
        """
        if not (isinstance(state, dict) and "parameters" in state):
            raise ArgumentError(
                f"{self._head}state must be what init() or update() returned, not {type(state).__name__}; "
                "the order is update(gradients, state, parameters)"
            )
        leaves, tree_structure = ops.tree_flatten(params)
        gradients, wrong_structure = ops.tree_flatten(grads)
        if wrong_structure != tree_structure or len(state["parameters"]) != len(leaves):
            raise ArgumentError(
                f"{self._head}the gradients ({wrong_structure}) and the state ({len(state['parameters'])} leaves) "
                "must be those "
                f"of the parameters ({tree_structure})"
            )
        parameter_tensors = [_tensor_of_leaf(leaf) for leaf in leaves]
        gradient_tensors = [_tensor_of_leaf(leaf) for leaf in gradients]
        for gradient, value, leaf in zip(gradient_tensors, parameter_tensors, leaves, strict=True):
            require_matching_gradient(self._head, gradient, value, leaf)

        new_tensors, new_state = pure.step(self._apply_rule_at, parameter_tensors, gradient_tensors, state)
        return ops.tree_unflatten(tree_structure, new_tensors), new_state

    def _hyper(self, group: Mapping[str, Any], count: numbers.Number) -> Hyper:
        rate = group["lr"]
        return {**group, "lr": rate_at(rate, count)} if callable(rate) else group

    def _add_group_to_plan(self, plan: StepPlan, place: int, cells: list[Parameter], gradients: list[Any]) -> None:
        """Adds the new values and states of a group's parameters to the plan of a step.

        Raises:
            ArgumentTypeError: if a gradient is sparse.
            ShapeError: if it has not the shape of its parameter.
            DTypeError: if the dtypes differ, or are not real and floating.
        """
        layout_by_group = _LAYOUTS.setdefault(self, {})
        layout = layout_by_group.get(place)
        updates = Updates(self.rule) if layout is None or layout.updates.rule is not self.rule else layout.updates
        group_step = GroupStep(
            optimizer=self,
            backend=selection.active().backend,
            plan=plan,
            updates=updates,
            hyper=self._hyper(self._param_groups[place], self._count),
            held=self._state,
            cells=cells,
            gradients=gradients,
        )
        part_works = layout.work(group_step) if layout is not None and layout.updates is updates else None
        if layout is None or part_works is None:
            changed_layout, part_works = layout_and_works(group_step)
            self._warn_at_first_step([x for x, cell in zip(gradients, cells, strict=True) if cell.grad is not None])
            plan.steps += [] if layout is None else layout.release_steps(changed_layout, self._state)
            plan.steps.append((layout_by_group.__setitem__, place, changed_layout))
            layout = changed_layout
        for layout_part, part_work in zip(layout.parts, part_works, strict=True):
            layout_part.add_to_plan(group_step, part_work)

    def _warn_at_first_step(self, gradients: list[Any]) -> None:
        """Warns at the first step of zero or non-finite gradients, and of model parameters that the optimizer lacks.

        Args:
            gradients: those that `ops.backward` has made, rather than the caller of `step`.
        """
        if current_recording() is not None:
            return
        if not self._count and len(self._param_groups) == 1:
            warn_of_gradients(f"{type(self).__name__}.step()", gradients)
        model = MODELS.get(self, lambda: None)()
        if model is None:
            return
        known_parameters = {*self.parameters()}
        missing_names = [
            name
            for name, cell in model.named_parameters(True)
            if cell not in known_parameters and cell.grad is not None
        ]
        if missing_names:
            warn_of_new_parameters(self, f"{type(self).__name__}.step()", missing_names, 2)

    def _apply_rule(self, gradient: Any, value: Any, state: State, hyper: Hyper) -> tuple[Any, State]:
        """Calls the rule, and returns the new parameter and state in the dtypes of the old ones."""
        new_value, new_state = self.rule(gradient, value, state, hyper)
        return _cast_to_dtype_of(new_value, value), _cast_like(new_state, state)

    def _apply_rule_at(self, gradient: Any, value: Any, state: State, count: Tensor) -> tuple[Any, State]:
        """Calls the rule with the options that hold after a number of steps, for the pure form."""
        return self._apply_rule(gradient, value, state, self._hyper(self.defaults, count))


def _gradients_hint(grads: Any) -> str:
    """Returns a hint for messages on how to pass gradients as a mapping from parameters."""
    if hasattr(grads, "named_parameters"):
        return "; nn.value_and_grad(model, fn) returns the gradients of a model by name"
    if callable(grads):
        return "; call ops.backward(loss_fn, model) before step(), which LBFGS alone does by itself"
    if hasattr(grads, "shape"):
        return "; ops.backward returns the loss, and step() without an argument takes the gradients that it made"
    return ""


def _tensor_of_leaf(leaf: Any) -> Any:
    return leaf.value if isinstance(leaf, Cell) else ops.convert_to_tensor(leaf)


def _cast_to_dtype_of(x: Any, old_value: Any) -> Any:
    """Returns a tensor cast to the dtype of an earlier one; Python numbers are returned as they are."""
    if numbers.is_python(x) or numbers.is_python(old_value) or x.dtype == old_value.dtype:
        return x
    return ops.cast(x, ops.dtype(old_value))


def _cast_like(state: State, old_state: State) -> State:
    """Returns a state whose entries are cast to the dtypes of the same entries of an earlier state."""
    cast_state = {}
    for name, x in state.items():
        cast_state[name] = _cast_to_dtype_of(x, old_state[name]) if name in old_state else x
    return cast_state
