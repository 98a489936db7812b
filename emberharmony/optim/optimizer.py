"""The base of all optimizers: groups of parameters, their state, and the step that changes all of them at once."""

import operator
from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any, ClassVar, Literal, TypeAlias

from emberharmony import Buffer, Parameter, ops
from emberharmony.core.cells.cell import Cell
from emberharmony.core.deferred import Deferred
from emberharmony.core.errors import ArgumentError, ArgumentTypeError, DTypeError, ShapeError, brief
from emberharmony.core.state.commits import Step, commit
from emberharmony.core.types import Tensor
from emberharmony.optim import numbers
from emberharmony.optim.options import Limit, require_allowed
from emberharmony.optim.saved import SavedState
from emberharmony.optim.schedules import Rate

if TYPE_CHECKING:
    from emberharmony.transforms import derivatives
else:
    derivatives = Deferred("emberharmony.transforms.derivatives")

State: TypeAlias = dict[str, Any]
"""The state of one parameter by torch's names: tensors, and numbers such as `step`."""

Hyper: TypeAlias = Mapping[str, Any]
"""The options of a group for one step; `lr` is a number."""


Wide: TypeAlias = Literal["float32", "float64"]
"""The dtypes of the numbers of a step in the pure form."""


class Optimizer:
    """The base class of optimizers.

    A subclass defines `rule`, which computes one step for one parameter, and `initial`, which returns the state before
    the first step. `limits` says what each option may be. From these follow both forms of an optimizer. `step` changes
    `Parameter` objects by their gradients. `init` and `update` are pure functions of trees, which `ops.compile`,
    `ops.vmap` and the other transforms take; in their state the count of steps is a tensor.

    Args:
        params: parameters, a tree with parameters, pairs of name and parameter, or a list of groups: dicts with
            `"params"` and the options that differ from those of the optimizer. None for the pure form alone.
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

    limits: ClassVar[Mapping[str, Limit]] = {}
    """What each option may be."""

    numeric: ClassVar[tuple[str, ...]] = ("step",)
    """The entries of a state that are numbers."""

    unsaved: ClassVar[Mapping[str, float]] = {}
    """What stands for the numbers in the state that torch does not save."""

    def __init__(self, params: Any, lr: Rate, **options: Any) -> None:
        self._head = f"{type(self).__name__}(): "
        self.defaults = self.checked({"lr": lr, **options})
        self.param_groups: list[dict[str, Any]] = []
        self.state: dict[Parameter, State] = {}
        self.count = 0
        if params is not None:
            for group in self._groups(params):
                self.add_param_group(group)
            if not self.param_groups:
                raise ArgumentError(f"{self._head}there is no Parameter in params")

    @staticmethod
    def rule(gradient: Tensor, parameter: Tensor, state: State, hyper: Hyper) -> tuple[Tensor, State]:
        """Returns a parameter and its state after one step; subclasses define it.

        Args:
            gradient: the gradient of the loss.
            parameter: the tensor to change.
            state: the state of this parameter.
            hyper: the options, with the learning rate of this step as `lr`.
        """
        raise NotImplementedError

    @staticmethod
    def initial(parameter: Tensor, hyper: Hyper) -> State:
        """Returns the state of a parameter before its first step; subclasses define it."""
        raise NotImplementedError

    def add_param_group(self, group: Mapping[str, Any]) -> None:
        """Adds a group of parameters: a dict with `"params"` and the options that differ from those of the optimizer.

        Raises:
            ArgumentError: if the group has no parameter, or one that the optimizer has already, or a wrong option.
            ArgumentTypeError: if something else than a `Parameter` is in it.
            DTypeError: if a trainable parameter is not real and floating.
        """
        if not isinstance(group, Mapping) or "params" not in group:
            raise ArgumentTypeError(f"{self._head}a group is a dict with 'params', not {brief(group)}")
        own = {name: value for name, value in group.items() if name not in ("params", "param_names")}
        made = self.checked({**self.defaults, **own})
        parameters, names = self._parameters(group["params"])
        known = [*self._all(), *parameters]
        if len(set(known)) < len(known):
            twice = next(cell for i, cell in enumerate(known) if cell in known[:i])
            raise ArgumentError(f"{self._head}{twice!r} is given twice, so it would be changed twice in each step")
        made["params"] = parameters
        if names is not None:
            made["param_names"] = names
        self.param_groups.append(made)

    def require(self, parameter: Parameter) -> None:
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
        return [float(_rate(group["lr"], self.count)) for group in self.param_groups]

    def zero_grad(self) -> None:
        """Sets the `grad` of all parameters to None."""
        commit([cell.without_grad() for cell in self._all()])

    def step(self, grads: Mapping[Any, Any] | None = None, *, clear: bool = True) -> None:
        """Changes all parameters that have a gradient.

        Everything is computed, then all tensors are exchanged in one step: after an error or an interruption all
        parameters and the whole state are as before.

        Args:
            grads: gradients by `Parameter` or by the name of a parameter; without it `grad` is read.
            clear: whether `grad` becomes None.

        Raises:
            ArgumentError: if `grads` has a key that is no parameter of the optimizer.
            ArgumentTypeError: if a gradient is sparse.
            ShapeError: if a gradient does not have the shape of its parameter.
            DTypeError: if a gradient does not have the dtype of its parameter.
            TracedTensorError: inside of a transform; use `update` there.
        """
        found = self._gradients(grads)
        steps: list[Step] = []
        made: list[Any] = []
        for group in self.param_groups:
            hyper = self._hyper(group, self.count)
            for parameter in group["params"]:
                gradient = found(parameter)
                if gradient is not None:
                    value = parameter.value
                    self._check_gradient(gradient, value, parameter)
                    after, state = self._applied(gradient, value, self._held(parameter, value, hyper), hyper)
                    made += [after, state]
                    steps += [parameter.replacing(after), *self._exchange(parameter, state)]
            if clear:
                steps += [parameter.without_grad() for parameter in group["params"]]
        ops.eval(made)
        commit(steps, [(setattr, self, "count", self.count + 1)])

    def init(self, params: Any) -> State:
        """Returns the state of the pure form before the first step.

        Args:
            params: a tree of tensors.

        Returns:
            A tree: `"count"`, how many steps have been made, and `"parameters"`, a list of the states in the order of
            `ops.tree_leaves(params)`. Numbers, such as `step`, are tensors in it.
        """
        hyper = self._hyper(self.defaults, 0)
        states = []
        for leaf in ops.tree_leaves(params):
            value = _tensor(leaf)
            states.append({name: _counted(x, value) for name, x in self.initial(value, hyper).items()})
        return {"count": ops.convert_to_tensor(0, "int32"), "parameters": states}

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
        leaves, structure = ops.tree_flatten(params)
        gradients, given = ops.tree_flatten(grads)
        if given != structure or len(state["parameters"]) != len(leaves):
            raise ArgumentError(
                f"{self._head}the gradients ({given}) and the state ({len(state['parameters'])} leaves) must be those "
                f"of the parameters ({structure})"
            )
        changed, states = [], []
        for leaf, each, before in zip(leaves, gradients, state["parameters"], strict=True):
            value, gradient = _tensor(leaf), _tensor(each)
            self._check_gradient(gradient, value, leaf)
            hyper = self._hyper(self.defaults, ops.cast(state["count"], _wide(value)))
            made, new = self._applied(gradient, value, _widened(before, self.numeric, _wide(value)), hyper)
            changed.append(made)
            states.append(_likes(new, before))
        return ops.tree_unflatten(structure, changed), {"count": ops.add(state["count"], 1), "parameters": states}

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
        state, groups, start = {}, [], 0
        for group, rate in zip(self.param_groups, self.learning_rates(), strict=True):
            for i, parameter in enumerate(group["params"], start):
                if parameter in self.state:
                    state[i] = {name: _saved(x, host) for name, x in self.state[parameter].items()}
            indices = list(range(start, start + len(group["params"])))
            groups.append({**group, "lr": rate, "params": indices})
            start += len(indices)
        return {"state": state, "param_groups": groups, "count": self.count}

    def load_state_dict(self, state_dict: Mapping[str, Any]) -> None:
        """Replaces options and state by those of a state dict, of this class or of its namesake in `torch.optim`.

        If both have names, parameters are found by their names, else by their index. Floating tensors get the dtype of
        their parameter. A schedule stays as it is and goes on at the count of steps that was loaded.

        Raises:
            ArgumentError: if anything is missing, unexpected or has another shape; the message lists all of it, and
                nothing is changed.
        """
        saved = SavedState(self, state_dict)
        for position, group in enumerate(self.param_groups):
            saved.match(position, group)
        saved.require_all()
        steps: list[Step] = [
            (self.state.clear,),
            (self.state.update, saved.state),
            (setattr, self, "count", saved.count),
        ]
        for group, options in zip(self.param_groups, saved.options, strict=True):
            steps.append((group.update, options))
        commit(steps)

    def __repr__(self) -> str:
        lines = []
        for group in self.param_groups or [self.defaults]:
            shown = [f"{name}={brief(x)}" for name, x in group.items() if name not in ("params", "param_names")]
            parameters = [f"{len(group['params'])} parameters"] if "params" in group else []
            lines.append(", ".join([*parameters, *shown]))
        return f"{type(self).__name__}({'; '.join(lines)})"

    def checked(self, options: dict[str, Any]) -> dict[str, Any]:
        """Returns the options of a group if they are allowed, alone and together."""
        return require_allowed(self._head, options, self.limits)

    def _groups(self, params: Any) -> Iterator[Mapping[str, Any]]:
        given = list(params) if isinstance(params, Iterator) else params
        if isinstance(given, (list, tuple)) and given and all(isinstance(x, Mapping) and "params" in x for x in given):
            yield from given
        elif not isinstance(given, (list, tuple)) or given:
            yield {"params": given}

    def _parameters(self, given: Any) -> tuple[list[Parameter], list[str] | None]:
        """Returns the parameters in a group, and their names if each has one of its own."""
        given = list(given) if isinstance(given, (Iterator, set, frozenset)) else given
        names: list[str]
        if isinstance(given, (list, tuple)) and given and all(map(_is_named, given)):
            names, found = [name for name, _ in given], [cell for _, cell in given]
        else:
            found = self._found(given)
            names = [cell.name for cell in found]
        if not found:
            raise ArgumentError(f"{self._head}there is no Parameter in params")
        for cell in found:
            self.require(cell)
        return found, names if all(names) and len(set(names)) == len(names) else None

    def _found(self, given: Any) -> list[Parameter]:
        """Returns the parameters in a tree once each, but those that a list itself holds as often as it holds them."""
        if not isinstance(given, (list, tuple)):
            return [cell for cell in derivatives.parameters_of(given) if isinstance(cell, Parameter)]
        for item in given:
            if not isinstance(item, Parameter) and not derivatives.parameters_of(item):
                raise ArgumentTypeError(
                    f"{self._head}params holds {brief(item)} of type {type(item).__name__}, expected a Parameter; make "
                    f"it one with emberharmony.Parameter(tensor)"
                )
        if all(isinstance(item, Parameter) for item in given):
            return list(given)
        return [cell for cell in derivatives.parameters_of(given) if isinstance(cell, Parameter)]

    def _all(self) -> list[Parameter]:
        return [parameter for group in self.param_groups for parameter in group["params"]]

    def _hyper(self, group: Mapping[str, Any], count: numbers.Number) -> Hyper:
        return {**group, "lr": _rate(group["lr"], count)}

    def _gradients(self, grads: Mapping[Any, Any] | None) -> Any:
        """Returns the function from a parameter to its gradient or None.

        Raises:
            ArgumentError: if a key of `grads` is no parameter.
        """
        if grads is None:
            return operator.attrgetter("grad")
        parameters = {cell: cell for cell in self._all()}
        named: dict[Any, Parameter] = {cell.name: cell for cell in parameters if cell.name}
        for group in self.param_groups:
            named.update(zip(group.get("param_names", ()), group["params"], strict=False))
        found = {}
        for key, gradient in grads.items():
            parameter = parameters.get(key, named.get(key))
            if parameter is None:
                raise ArgumentError(f"{self._head}grads has {brief(key)}, which is no parameter of the optimizer")
            found[parameter] = _tensor(gradient)
        return found.get

    def _check_gradient(self, gradient: Any, value: Any, parameter: Any) -> None:
        """Checks that a gradient fits its parameter.

        Raises:
            ArgumentTypeError: if it is sparse.
            ShapeError: if the shapes differ.
            DTypeError: if the dtypes differ, or are not real and floating.
        """
        if (
            gradient.shape == value.shape
            and gradient.dtype == value.dtype
            and not getattr(gradient, "is_sparse", False)
        ):
            if ops.dtype(value).is_floating:
                return
            raise DTypeError(
                f"{self._head}{_shown(parameter)} has dtype {ops.dtype(value).name}, expected a real floating one"
            )
        if getattr(gradient, "is_sparse", False):
            raise ArgumentTypeError(
                f"{self._head}the gradient of {_shown(parameter)} is sparse, expected a dense tensor; make it dense"
            )
        if tuple(gradient.shape) != tuple(value.shape):
            raise ShapeError(
                f"{self._head}the gradient of {_shown(parameter)} has shape {tuple(gradient.shape)}, expected "
                f"{tuple(value.shape)}"
            )
        raise DTypeError(
            f"{self._head}the gradient of {_shown(parameter)} has dtype {ops.dtype(gradient).name}, expected "
            f"{ops.dtype(value).name}; use ops.cast"
        )

    def _held(self, parameter: Parameter, value: Any, hyper: Hyper) -> State:
        """Returns the state of a parameter as tensors of the active backend and numbers."""
        kept = self.state.get(parameter)
        if kept is None:
            return self.initial(value, hyper)
        return {name: x.value if isinstance(x, Buffer) else x for name, x in kept.items()}

    def _applied(self, gradient: Any, value: Any, state: State, hyper: Hyper) -> tuple[Any, State]:
        """Returns what the rule returns, in the dtypes of its arguments."""
        after, new = self.rule(gradient, value, state, hyper)
        return _like(after, value), _likes(new, state)

    def _exchange(self, parameter: Parameter, state: State) -> list[Step]:
        """Returns the steps that make `state` the state of a parameter."""
        kept = self.state.get(parameter)
        if kept is None or kept.keys() != state.keys():
            made = {name: x if numbers.is_python(x) else Buffer(x) for name, x in state.items()}
            return [(operator.setitem, self.state, parameter, made)]
        steps: list[Step] = []
        for name, x in state.items():
            cell = kept[name]
            steps.append(cell.replacing(x) if isinstance(cell, Buffer) else (operator.setitem, kept, name, x))
        return steps


def _is_named(item: Any) -> bool:
    return isinstance(item, tuple) and len(item) == 2 and isinstance(item[0], str) and isinstance(item[1], Parameter)


def _rate(rate: Rate, count: numbers.Number) -> numbers.Number:
    return rate(count) if callable(rate) else rate


def _tensor(leaf: Any) -> Any:
    return leaf.value if isinstance(leaf, Cell) else ops.convert_to_tensor(leaf)


def _wide(value: Any) -> Wide:
    """Returns the dtype in which the pure form computes the numbers of a step for a parameter."""
    return "float64" if ops.dtype(value) == "float64" else "float32"


def _counted(x: Any, value: Any) -> Any:
    """Returns an entry of a state for the pure form: a number as a tensor."""
    if isinstance(x, int):
        return ops.convert_to_tensor(x, "int32")
    return ops.convert_to_tensor(x, _wide(value)) if numbers.is_python(x) else x


def _like(x: Any, before: Any) -> Any:
    """Returns a tensor in the dtype that it had before; numbers of Python are unchanged."""
    if numbers.is_python(x) or numbers.is_python(before) or x.dtype == before.dtype:
        return x
    return ops.cast(x, ops.dtype(before))


def _likes(state: State, before: State) -> State:
    """Returns the entries of a state in the dtypes that they had before.

    This and `_widened` are loops, because `torch.compile` (PyTorch 2.13) gave old entries for a comprehension that
    closes over `before`, once it had compiled `update` of several optimizers; a test compiles two in one process.
    """
    found = {}
    for name, x in state.items():
        found[name] = _like(x, before[name]) if name in before else x
    return found


def _widened(state: State, numeric: tuple[str, ...], dtype: Wide) -> State:
    """Returns a state of the pure form with its numbers in the dtype in which a rule computes them."""
    found = dict(state)
    for name in numeric:
        if name in found:
            found[name] = ops.cast(found[name], dtype)
    return found


def _saved(x: Any, host: bool) -> Any:
    if not isinstance(x, Buffer):
        return x
    return ops.to_numpy(x.value) if host else x.value


def _shown(parameter: Any) -> str:
    return repr(parameter) if isinstance(parameter, Cell) else "a parameter"
