"""LBFGS: Newton's method with an inverse Hessian from the last changes of the gradient."""

from collections.abc import Callable, Mapping
from dataclasses import InitVar
from typing import Annotated, Any, ClassVar, cast

from emberharmony import Buffer, Parameter, ops
from emberharmony.core import selection
from emberharmony.core.errors import ArgumentError, ArgumentTypeError
from emberharmony.core.state.commits import Step, assignment, commit, steps_if_unchanged
from emberharmony.core.types import Tensor
from emberharmony.optim.groups import ParameterGroups, State, rate_at, require_matching_gradient
from emberharmony.optim.options import LearningRate, Limit, NotNegative, add_init_and_limits, limit_to_values
from emberharmony.optim.rules.line_search import Line, Point
from emberharmony.optim.saved import SavedState, to_active_backend

_COUNT = Limit("an integer >= 1", lambda value: int(value) == value >= 1)
_COUNT_OR_NONE = Limit("an integer >= 1, or None", lambda value: value is None or int(value) == value >= 1)
_LISTS = ("old_dirs", "old_stps", "ro")
_TENSORS = ("d", "H_diag", "prev_flat_grad")
_NUMBERS = {"func_evals": int, "n_iter": int, "t": float, "prev_loss": float}
_BEGUN = ("func_evals", "n_iter")


class SavedHistory(SavedState):
    """The loading of a state dict of LBFGS, in which the first parameter's entry has the state of all parameters."""

    def state_of_entry(
        self, what: str, entry: Mapping[str, Any], parameter: Parameter, hyper: Mapping[str, Any]
    ) -> State:
        """Returns the saved state of LBFGS with its history in new buffers."""
        field_names = {*_LISTS, *_TENSORS, *_NUMBERS}
        saved_fields = {name: x for name, x in entry.items() if x is not None and name != "al"}
        self.wrong += [f"unexpected {name!r} of {what}" for name in saved_fields if name not in field_names]
        expected_names = field_names if saved_fields.keys() - set(_BEGUN) else _BEGUN
        missing_names = [name for name in expected_names if name not in saved_fields]
        self.wrong += [f"missing {name!r} of {what}" for name in sorted(missing_names)]
        if missing_names or saved_fields.keys() - field_names:
            return {}
        cells = self.optimizer.param_groups[0]["params"]
        element_count = sum(int(ops.size(cell)) for cell in cells)
        tensors_by_name: State = {}
        for name, x in saved_fields.items():
            if name in _NUMBERS:
                tensors_by_name[name] = _NUMBERS[name](x)
                continue
            shape = () if name in ("ro", "H_diag") else (element_count,)
            tensors = [self._checked_buffer(f"{name!r} of {what}", item, shape, cells[0]) for item in _as_list(x)]
            tensors_by_name[name] = tensors if name in _LISTS else tensors[0]
        return tensors_by_name

    def _checked_buffer(self, what: str, x: Any, shape: tuple[int, ...], parameter: Parameter) -> Buffer:
        tensor = to_active_backend(x) if hasattr(x, "shape") else ops.convert_to_tensor(x, ops.dtype(parameter))
        if tuple(tensor.shape) != shape:
            self.wrong.append(f"{what} has shape {tuple(tensor.shape)}, expected {shape}")
        cast_tensor = ops.cast(tensor, ops.dtype(parameter))
        return Buffer(ops.convert_to_tensor(cast_tensor, device=ops.get_device(parameter.value), copy=True))


@add_init_and_limits
class LBFGS(ParameterGroups):
    """LBFGS: steps along an approximation of Newton's direction, several in each call of `step`.

    It suits smooth losses of the whole data. There is one group of parameters. There is no pure form, because a step
    evaluates the loss several times.

    Args:
        params: a module, parameters, a tree with parameters, or pairs of name and parameter: one group.
        lr: the length of a step as a factor of the direction, or a schedule; with a line search the first length.
        max_iter: the most iterations in each call of `step`.
        max_eval: the number of evaluations of the loss after which a call ends; by default `max_iter * 5 // 4`.
        tolerance_grad: a call ends if no element of the gradient is larger.
        tolerance_change: a call ends if the loss, or all parameters, change by less.
        history_size: how many changes of the gradient the Hessian is made of.
        line_search_fn: "strong_wolfe", or None for steps of the length `lr`.

    Raises:
        ArgumentError: if there are several groups of parameters; see also `Optimizer`.

    Example:
        >>> from emberharmony import Parameter, ops, optim
        >>> point = Parameter([-1.5, 2.0])
        >>> def rosenbrock():
        ...     x, y = ops.unstack(point.value)
        ...     valley = ops.square(ops.subtract(y, ops.square(x)))
        ...     return ops.add(ops.square(ops.subtract(1, x)), ops.multiply(100, valley))
        >>> optimizer = optim.LBFGS([point], max_iter=100, line_search_fn="strong_wolfe")
        >>> loss = optimizer.step(lambda: ops.backward(rosenbrock, point))
        >>> [round(x, 2) for x in point.value.tolist()]
        [1.0, 1.0]

    Source: `torch.optim.LBFGS`; Nocedal and Wright, "Numerical Optimization", 2006, algorithm 7.5.
    """

    params: InitVar[Any]
    lr: InitVar[LearningRate] = 1.0
    max_iter: InitVar[Annotated[int, _COUNT]] = 20
    max_eval: InitVar[Annotated[int | None, _COUNT_OR_NONE]] = None
    tolerance_grad: InitVar[NotNegative] = 1e-7
    tolerance_change: InitVar[NotNegative] = 1e-9
    history_size: InitVar[Annotated[int, _COUNT]] = 100
    line_search_fn: InitVar[Annotated[str | None, limit_to_values(None, "strong_wolfe")]] = None
    saved: ClassVar[type[SavedState]] = SavedHistory

    def add_param_group(self, group: Mapping[str, Any]) -> None:
        """Adds a group of parameters, of which LBFGS has only one.

        Args:
            group: a dict with `"params"` and options.

        Raises:
            ArgumentError: if there is one already; see also `Optimizer.add_param_group`.
        """
        if self.param_groups:
            raise ArgumentError(f"{self._head}there can be only one group of parameters, because they share a Hessian")
        super().add_param_group(group)

    def allowed_options(self, options: dict[str, Any]) -> dict[str, Any]:
        """Returns the checked options of the group, with `max_eval` computed from `max_iter` if it is None.

        Args:
            options: all options of the group, by name.
        """
        allowed_options = super().allowed_options(options)
        if allowed_options["max_eval"] is None:
            allowed_options["max_eval"] = max(1, int(allowed_options["max_iter"]) * 5 // 4)
        return allowed_options

    def step(self, closure: Callable[[], Any], *, clear: bool = True) -> Tensor:
        """Makes up to `max_iter` iterations, and returns the loss before them.

        After an error or an interruption all parameters, their gradients and the whole state are as before.

        Args:
            closure: computes the loss and adds the gradients, as `lambda: ops.backward(loss, params)` does. Gradients
                are None when it is called.
            clear: whether `grad` becomes None at the end.

        Raises:
            ArgumentTypeError: if `closure` cannot be called, or does not return a number; if a gradient is sparse.
            ShapeError: if a gradient does not have the shape of its parameter.
            DTypeError: if a gradient does not have the dtype of its parameter.
            TracedTensorError: inside of a transform.
        """
        if not callable(closure):
            raise ArgumentTypeError(
                f"{self._head}step() takes a function that computes the loss and the gradients, such as lambda: "
                f"ops.backward(loss, params), not {closure!r}"
            )
        cells = self.param_groups[0]["params"]
        count_before = self.count
        value_steps = [cell.replace_step(cell.value) for cell in cells]
        restoring_steps = [*value_steps, *(assignment(cell, "_grad", cell._grad) for cell in cells)]
        try:
            call = _Call(self, closure)
            first_loss = call.run_iterations()
            commit(call.final_steps(clear))
        except BaseException:
            # An interruption after the final commit must not undo the step, so the count is compared.
            commit(steps_if_unchanged(self, "_count", count_before, restoring_steps))
            raise
        return first_loss


class _Call:
    """One call of `LBFGS.step`, which works with all parameters, gradients and directions as vectors."""

    def __init__(self, optimizer: LBFGS, closure: Callable[[], Any]) -> None:
        group = optimizer.param_groups[0]
        self._optimizer, self._closure, self._options = optimizer, closure, group
        self._cells: list[Parameter] = group["params"]
        self._rate = float(rate_at(group["lr"], optimizer.count))
        state = optimizer.state.get(self._cells[0], {"func_evals": 0, "n_iter": 0})
        self._state: State = {name: _tensors_of_buffers(x) for name, x in state.items()}
        self._evaluations = 0
        self._at = _joined_vector([cell.value for cell in self._cells])

    def run_iterations(self) -> Tensor:
        """Makes up to `max_iter` iterations of LBFGS, and returns the loss before the first one."""
        options, state = self._options, self._state
        first_loss, gradient = self._loss_and_gradient()
        loss = float(first_loss)
        if _largest_magnitude(gradient) <= options["tolerance_grad"]:
            return cast("Tensor", first_loss)
        for i in range(1, options["max_iter"] + 1):
            direction = self._next_direction(gradient)
            length = self._rate
            if state["n_iter"] == 1:
                length *= min(1.0, 1.0 / _python_number(ops.sum(ops.abs(gradient))))
            slope = _python_number(ops.vdot(gradient, direction))
            state.update(d=direction, t=length, prev_flat_grad=gradient, prev_loss=loss)
            if slope > -options["tolerance_change"]:
                break
            loss_before = loss
            point = self._search_line(
                Point(0.0, loss, gradient, slope), direction, length, last=i == options["max_iter"]
            )
            state["t"], loss, gradient = point.length, point.loss, point.gradient
            if self._evaluations >= options["max_eval"] or _largest_magnitude(gradient) <= options["tolerance_grad"]:
                break
            if _largest_magnitude(direction) * abs(point.length) <= options["tolerance_change"]:
                break
            if abs(loss - loss_before) < options["tolerance_change"]:
                break
        return cast("Tensor", first_loss)

    def final_steps(self, clear: bool) -> list[Step]:
        """Returns the assignments that store the parameters and the state after the last iteration."""
        steps = self._assignments_of_vector(self._at)
        if clear:
            steps += [cell.clear_grad_step() for cell in self._cells]
        saved_state = {name: _buffers_of_tensors(x) for name, x in self._state.items()}
        steps.append((self._optimizer.state.__setitem__, self._cells[0], saved_state))
        return [*steps, assignment(self._optimizer, "_count", self._optimizer.count + 1)]

    def _loss_and_gradient(self) -> tuple[Any, Any]:
        """Calls the closure, and returns the loss and the joined gradient at the present parameters."""
        for cell in self._cells:
            cell.grad = None
        loss = self._closure()
        if not (isinstance(loss, (int, float)) or hasattr(loss, "shape")):
            raise ArgumentTypeError(f"LBFGS(): the closure returned {loss!r}, expected the loss")
        self._evaluations += 1
        self._state["func_evals"] += 1
        gradients = []
        for cell in self._cells:
            value, gradient = cell.value, cell.grad
            if gradient is None:
                gradient = ops.zeros_like(value)
            require_matching_gradient("LBFGS(): ", gradient, value, cell)
            gradients.append(gradient)
        return loss, _joined_vector(gradients)

    def _next_direction(self, gradient: Any) -> Any:
        """Adds the last change of the gradient to the history, and returns the direction of the next step."""
        state = self._state
        state["n_iter"] += 1
        if state["n_iter"] == 1:
            state.update(old_dirs=[], old_stps=[], ro=[], H_diag=ops.ones((), ops.dtype(gradient)))
            return ops.negative(gradient)
        gradient_change = ops.subtract(gradient, state["prev_flat_grad"])
        parameter_change = ops.multiply(state["d"], state["t"])
        curvature = ops.vdot(gradient_change, parameter_change)
        if _python_number(curvature) > 1e-10:
            for name, list_item in zip(
                _LISTS, (gradient_change, parameter_change, ops.divide(1.0, curvature)), strict=True
            ):
                state[name] = [*state[name], list_item][-self._options["history_size"] :]
            state["H_diag"] = ops.divide(curvature, ops.vdot(gradient_change, gradient_change))
        history = list(zip(*(state[name] for name in _LISTS), strict=True))
        direction, factors = ops.negative(gradient), []
        for gradient_change, parameter_change, inverse_curvature in reversed(history):
            factors.append(ops.multiply(ops.vdot(parameter_change, direction), inverse_curvature))
            direction = ops.subtract(direction, ops.multiply(gradient_change, factors[-1]))
        direction = ops.multiply(direction, state["H_diag"])
        for (gradient_change, parameter_change, inverse_curvature), factor in zip(
            history, reversed(factors), strict=True
        ):
            correction = ops.subtract(factor, ops.multiply(ops.vdot(gradient_change, direction), inverse_curvature))
            direction = ops.add(direction, ops.multiply(parameter_change, correction))
        return direction

    def _search_line(self, start: Point, direction: Any, length: float, *, last: bool) -> Point:
        """Moves the parameters along a direction by a line search or a fixed step, and returns the point reached."""
        start_vector = self._at
        if self._options["line_search_fn"] is None:
            self._assign_point(start_vector, direction, length)
            if last:  # the next call may have another loss
                return start._replace(length=length)
            loss, gradient = self._loss_and_gradient()
            return Point(length, float(loss), gradient, start.slope)

        def evaluate_at(length: float) -> tuple[float, Any, float]:
            self._assign_point(start_vector, direction, length)
            loss, gradient = self._loss_and_gradient()
            return float(loss), gradient, _python_number(ops.vdot(gradient, direction))

        evaluations_left = self._options["max_eval"] - self._evaluations
        line_search = Line(
            start, evaluate_at, _largest_magnitude(direction), self._options["tolerance_change"], evaluations_left
        )
        point = line_search.strong_wolfe_point(length)
        self._assign_point(start_vector, direction, point.length)
        return point

    def _assign_point(self, begin: Any, direction: Any, length: float) -> None:
        """Assigns `begin + length * direction` to the parameters."""
        self._at = ops.add(begin, ops.multiply(direction, length))
        commit(self._assignments_of_vector(self._at))

    def _assignments_of_vector(self, vector: Any) -> list[Step]:
        parameter_tensors = [cell.value for cell in self._cells]
        vector_parts = selection.current().split_vector(vector, parameter_tensors)
        new_values = [
            ops.cast(vector_part, ops.dtype(parameter_tensor))
            for vector_part, parameter_tensor in zip(vector_parts, parameter_tensors, strict=True)
        ]
        ops.eval(new_values)
        return [cell.replace_step(new_value) for cell, new_value in zip(self._cells, new_values, strict=True)]


def _joined_vector(tensors: list[Any]) -> Any:
    """Returns tensors as one vector; their dtypes may differ."""
    return ops.concatenate([ops.ravel(tensor) for tensor in tensors])


def _python_number(x: Any) -> float:
    return float(ops.to_numpy(x))


def _largest_magnitude(vector: Any) -> float:
    return _python_number(ops.max(ops.abs(vector))) if ops.size(vector) else 0.0


def _as_list(x: Any) -> list[Any]:
    return x if isinstance(x, list) else [x]


def _tensors_of_buffers(x: Any) -> Any:
    if isinstance(x, list):
        return [_tensors_of_buffers(item) for item in x]
    return x.value if isinstance(x, Buffer) else x


def _buffers_of_tensors(x: Any) -> Any:
    if isinstance(x, list):
        return [_buffers_of_tensors(item) for item in x]
    return Buffer(x) if hasattr(x, "shape") else x
