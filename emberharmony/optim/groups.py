"""The base of all optimizers: groups of parameters with options, and the saving and loading of their state."""

import weakref
from collections.abc import Iterator, Mapping
from itertools import chain
from operator import itemgetter
from typing import TYPE_CHECKING, Any, ClassVar, Generic, TypeAlias, TypeVar

from emberharmony import Buffer, Parameter, ops
from emberharmony.core.cells.cell import Cell
from emberharmony.core.cells.models import MODELS
from emberharmony.core.deferred import Deferred
from emberharmony.core.errors import ArgumentError, ArgumentTypeError, DTypeError, ShapeError, brief
from emberharmony.core.state.commits import Step, commit
from emberharmony.core.state.draws import HostDrawError, current_recording
from emberharmony.optim import numbers
from emberharmony.optim.options import Limit, checked_options
from emberharmony.optim.saved import SavedState
from emberharmony.optim.schedules import Rate

if TYPE_CHECKING:
    from emberharmony.transforms import derivatives, parameterless
else:
    derivatives = Deferred("emberharmony.transforms.derivatives")
    parameterless = Deferred("emberharmony.transforms.parameterless")

State: TypeAlias = dict[str, Any]
"""The state of one parameter by torch's names: tensors, and numbers such as `step`."""


T = TypeVar("T")
PARAMS = itemgetter("params")
"""A function that returns the parameters of a group."""


class _Unrecorded(Generic[T]):
    """A descriptor of an attribute that steps change, which a function being recorded may not read as a constant."""

    def __set_name__(self, owner: type, name: str) -> None:
        self._name = f"_{name}"

    def __get__(self, owner: Any, kind: type) -> T:
        if current_recording() is not None:
            raise HostDrawError(f"{kind.__name__}.{self._name[1:]} would be read once, although steps change it")
        value: T = getattr(owner, self._name)
        return value

    def __set__(self, owner: Any, value: T) -> None:
        setattr(owner, self._name, value)


class _OfGroups:
    """A descriptor that refuses an option as attribute of an optimizer, because only its groups have options."""

    def __set_name__(self, owner: type, name: str) -> None:
        self._name = name

    def __get__(self, owner: Any, kind: type) -> Any:
        raise AttributeError(f"{kind.__name__!r} object has no attribute {self._name!r}", name=self._name, obj=owner)

    def __set__(self, owner: Any, value: Any) -> None:
        if not type(owner).__module__.startswith("emberharmony."):  # subclasses elsewhere may have the attribute
            owner.__dict__[self._name] = value
            return
        raise ArgumentTypeError(
            f"{type(owner).__name__}.{self._name} = {brief(value)} would change nothing, since each group has its own "
            f"options: optimizer.param_groups[0]['lr'] = {brief(value)}"
        )


class ParameterGroups:
    """The base of `Optimizer` and `LBFGS`: groups of parameters, their options, and their state.

    Args:
        params: see `Optimizer`.
        lr: the learning rate, or a schedule.
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

    limits: ClassVar[Mapping[str, Limit]] = {}
    """The allowed values of each option, by name."""

    param_groups = _Unrecorded[list[dict[str, Any]]]()
    state = _Unrecorded[dict[Parameter, State]]()
    count = _Unrecorded[int]()

    lr, learning_rate = _OfGroups(), _OfGroups()

    saved: ClassVar[type[SavedState]] = SavedState
    """The class that matches a state dict with the parameters when it is loaded."""

    _needs_parameters: ClassVar[bool] = True
    """Whether `params` may not be None, because the optimizer has no pure form."""

    def __init__(self, params: Any, lr: Rate, **options: Any) -> None:
        self._head = f"{type(self).__name__}(): "
        self.defaults = self.allowed_options({"lr": lr, **options})
        self._param_groups: list[dict[str, Any]] = []
        self._state: dict[Parameter, State] = {}
        self._count = 0
        if params is not None or self._needs_parameters:
            for group in self._groups(params):
                self.add_param_group(group)
            if not self.param_groups:
                raise ArgumentError(f"{self._head}there is no Parameter in params{parameterless.advice_text(params)}")
        if hasattr(params, "named_parameters") and type(params).__weakrefoffset__:
            MODELS[self] = weakref.ref(params)

    def add_param_group(self, group: Mapping[str, Any]) -> None:
        """Adds a group of parameters: a dict with `"params"` and the options that differ from those of the optimizer.

        Raises:
            ArgumentError: if the group has no parameter, or one that the optimizer has already, or a wrong option.
            ArgumentTypeError: if something else than a `Parameter` is in it.
            DTypeError: if a trainable parameter is not real and floating.
        """
        if not isinstance(group, Mapping) or "params" not in group:
            raise ArgumentTypeError(f"{self._head}a group is a dict with 'params', not {brief(group)}")
        own_options = {name: value for name, value in group.items() if name not in ("params", "param_names")}
        new_group = self.allowed_options({**self.defaults, **own_options})
        parameters, parameter_names = self._parameters_and_names(group["params"])
        all_parameters = [*self.parameters(), *parameters]
        if len(set(all_parameters)) < len(all_parameters):
            cell_ids = [id(cell) for cell in all_parameters]  # `==` of parameters would compare tensors
            duplicate_parameter = next(cell for i, cell in enumerate(all_parameters) if cell_ids[i] in cell_ids[:i])
            raise ArgumentError(
                f"{self._head}{duplicate_parameter!r} is given twice, so it would be changed twice in each step"
            )
        new_group["params"] = parameters
        if parameter_names is not None:
            new_group["param_names"] = parameter_names
        self.param_groups.append(new_group)

    def check_parameter(self, parameter: Parameter) -> None:
        """Checks a parameter before it is added; subclasses may require more.

        Raises:
            DTypeError: if it is trainable, and not real and floating.
        """
        dtype = ops.dtype(parameter.value)
        if parameter.trainable and not dtype.is_floating:
            raise DTypeError(
                f"{self._head}{parameter!r} has dtype {dtype.name}, expected a real floating dtype; cast it, or make "
                f"it trainable=False"
            )

    def learning_rates(self) -> list[float]:
        """Returns the learning rate of each group for the next step."""
        return [float(rate_at(group["lr"], self.count)) for group in self.param_groups]

    def zero_grad(self) -> None:
        """Sets the `grad` of all parameters to None."""
        commit([cell.clear_grad_step() for cell in self.parameters()])

    def state_dict(self, *, host: bool = False) -> dict[str, Any]:
        """Returns the state by torch's names, which `torch.optim` loads too.

        Args:
            host: whether the tensors become NumPy arrays, which are written on one backend and read on any; bfloat16
                needs `ml_dtypes` then.

        Returns:
            `"state"`: the state of each parameter, by its index. `"param_groups"`: the options of each group, the
            indices of its parameters, and their names if each has a name. `"count"`: how many steps have been made.
            A schedule is saved as the learning rate of the next step.
        """
        state, saved_groups, first_index = {}, [], 0
        for group, rate in zip(self.param_groups, self.learning_rates(), strict=True):
            for i, parameter in enumerate(group["params"], first_index):
                if parameter in self.state:
                    state[i] = {name: _saveable_option(x, host) for name, x in self.state[parameter].items()}
            indices = list(range(first_index, first_index + len(group["params"])))
            saved_groups.append({**group, "lr": rate, "params": indices})
            first_index += len(indices)
        return {"state": state, "param_groups": saved_groups, "count": self.count}

    def load_state_dict(self, state_dict: Mapping[str, Any]) -> None:
        """Replaces options and state by those of a state dict, of this class or of its namesake in `torch.optim`.

        If both have names, parameters are found by their names, else by their index. Floating tensors get the dtype of
        their parameter. A schedule stays as it is and goes on at the count of steps that was loaded.

        Raises:
            ArgumentError: if anything is missing, unexpected or has another shape; the message lists all of it, and
                nothing is changed.
        """
        commit(self.loading_steps(state_dict))

    def loading_steps(self, state_dict: Mapping[str, Any]) -> list[Step]:
        """Returns the assignments that `load_state_dict` makes, without making them."""
        saved_state = self.saved(self, state_dict)
        for position, group in enumerate(self.param_groups):
            saved_state.match_group(position, group)
        saved_state.require_all_matched()
        steps: list[Step] = [
            (self.state.clear,),
            (self.state.update, saved_state.state),
            (setattr, self, "_count", saved_state.count),
        ]
        for group, saved_options in zip(self.param_groups, saved_state.options, strict=True):
            steps.append((group.update, saved_options))
        return steps

    def __repr__(self) -> str:
        repr_lines = []
        for group in self.param_groups or [self.defaults]:
            option_texts = [
                f"{name}={brief(value)}" for name, value in group.items() if name not in ("params", "param_names")
            ]
            count_texts = [f"{len(group['params'])} parameters"] if "params" in group else []
            repr_lines.append(", ".join([*count_texts, *option_texts]))
        return f"{type(self).__name__}({'; '.join(repr_lines)})"

    def allowed_options(self, options: dict[str, Any]) -> dict[str, Any]:
        """Returns the options of a group after checks of each option and of their combinations."""
        return checked_options(self._head, options, self.limits)

    def _groups(self, params: Any) -> Iterator[Mapping[str, Any]]:
        parameter_list = list(params) if isinstance(params, Iterator) else params
        if (
            isinstance(parameter_list, (list, tuple))
            and parameter_list
            and all(isinstance(x, Mapping) and "params" in x for x in parameter_list)
        ):
            yield from parameter_list
        elif not isinstance(parameter_list, (list, tuple)) or parameter_list:
            yield {"params": parameter_list}

    def _parameters_and_names(self, params: Any) -> tuple[list[Parameter], list[str] | None]:
        """Returns the parameters of a group, and their names, or None if they have no distinct names."""
        given_params = params
        if hasattr(params, "named_parameters") and not isinstance(params, type):  # a module
            params = list(params.named_parameters())
            if params and not any(map(_is_named, params)):  # the module is of another library
                raise ArgumentError(
                    f"{self._head}there is no Parameter in params{parameterless.advice_text(given_params)}"
                )
        params = list(params) if isinstance(params, (Iterator, set, frozenset)) else params
        names: list[str]
        if isinstance(params, (list, tuple)) and params and all(map(_is_named, params)):
            names, parameters = [name for name, _ in params], [cell for _, cell in params]
        else:
            parameters = self._parameters_in(params)
            names = [cell.name for cell in parameters]
        if not parameters:
            raise ArgumentError(f"{self._head}there is no Parameter in params{parameterless.advice_text(given_params)}")
        for cell in parameters:
            self.check_parameter(cell)
        return parameters, names if all(names) and len(set(names)) == len(names) else None

    def _parameters_in(self, params: Any) -> list[Parameter]:
        """Returns the parameters in a tree, each once; a plain list of parameters is returned with its duplicates."""
        if isinstance(params, type):
            raise ArgumentError(f"{self._head}there is no Parameter in params{parameterless.advice_text(params)}")
        if not isinstance(params, (list, tuple)):
            return [cell for cell in derivatives.parameters_of(params) if isinstance(cell, Parameter)]
        for item in params:
            if isinstance(item, Mapping) and any(isinstance(x, (int, float)) for x in item.values()):
                raise ArgumentError(
                    f"{self._head}a group with options has its parameters as 'params', not {brief(item)}"
                )
            if not isinstance(item, Parameter) and not derivatives.parameters_of(item):
                way_out = "; make it one with emberharmony.Parameter(tensor)"
                if parameterless.is_of_pytorch(item):
                    way_out = "; it is one of PyTorch: make the model of the layers of emberharmony.nn"
                raise ArgumentTypeError(
                    f"{self._head}params holds {brief(item)} of type {type(item).__name__}, "
                    f"expected a Parameter{way_out}"
                )
        if all(isinstance(item, Parameter) for item in params):
            return list(params)
        return [cell for cell in derivatives.parameters_of(params) if isinstance(cell, Parameter)]

    def parameters(self) -> list[Parameter]:
        """Returns all parameters, in the order of the groups."""
        return list(chain.from_iterable(map(PARAMS, self._param_groups)))


def rate_at(rate: Rate, count: numbers.Number) -> numbers.Number:
    """Returns the learning rate of the step after `count` steps."""
    return rate(count) if callable(rate) else rate


def require_matching_gradient(head: str, gradient: Any, value: Any, parameter: Any) -> None:
    """Checks that a gradient is dense and has the shape and dtype of its parameter.

    Raises:
        ArgumentTypeError: if it is sparse.
        ShapeError: if the shapes differ.
        DTypeError: if the dtypes differ, or are not real and floating.
    """
    if gradient.shape == value.shape and gradient.dtype == value.dtype and not getattr(gradient, "is_sparse", False):
        if ops.dtype(value).is_floating:
            return
        raise DTypeError(
            f"{head}{_parameter_label(parameter)} has dtype {ops.dtype(value).name}, expected a real floating one"
        )
    if getattr(gradient, "is_sparse", False):
        raise ArgumentTypeError(
            f"{head}the gradient of {_parameter_label(parameter)} is sparse, expected a dense tensor; make it dense"
        )
    if tuple(gradient.shape) != tuple(value.shape):
        raise ShapeError(
            f"{head}the gradient of {_parameter_label(parameter)} has shape {tuple(gradient.shape)}, expected "
            f"{tuple(value.shape)}"
        )
    raise DTypeError(
        f"{head}the gradient of {_parameter_label(parameter)} has dtype {ops.dtype(gradient).name}, expected "
        f"{ops.dtype(value).name}; use ops.cast"
    )


def _is_named(item: Any) -> bool:
    return isinstance(item, tuple) and len(item) == 2 and isinstance(item[0], str) and isinstance(item[1], Parameter)


def _saveable_option(x: Any, host: bool) -> Any:
    if isinstance(x, list):
        return [_saveable_option(item, host) for item in x]
    if not isinstance(x, Buffer):
        return x
    return ops.to_numpy(x.value) if host else x.value


def _parameter_label(parameter: Any) -> str:
    return repr(parameter) if isinstance(parameter, Cell) else "a parameter"
