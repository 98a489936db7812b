"""The base of optimizers with a rule: the step that changes all parameters at once, and the pure form."""

import operator
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, TypeAlias
from weakref import WeakKeyDictionary

from emberharmony import Buffer, Parameter, ops
from emberharmony.backend.shared.programs import Program
from emberharmony.core import selection
from emberharmony.core.cells.cell import Cell, replacing, values_of
from emberharmony.core.cells.effects import gradients_of, perform
from emberharmony.core.cells.overwriting import COUNTED, Overwriting
from emberharmony.core.errors import ArgumentError, ArgumentTypeError, brief
from emberharmony.core.state.commits import Step, commit
from emberharmony.core.types import Tensor
from emberharmony.optim import numbers, pure, vectors
from emberharmony.optim.groups import ParameterGroups, State, rate_at, require_gradient
from emberharmony.optim.recording import recorded
from emberharmony.optim.rows import Overwritten, Rows, are_same, together

Hyper: TypeAlias = Mapping[str, Any]
"""The options of a group for one step; `lr` is a number."""


_LAYOUTS: WeakKeyDictionary["Optimizer", dict[int, vectors.Layout]] = WeakKeyDictionary()
"""The layouts of the groups of each optimizer, which are no part of its state."""

_SHAPE = operator.attrgetter("shape")
_DTYPE = operator.attrgetter("dtype")
_SPARSE = operator.attrgetter("is_sparse")
_DEVICE = operator.attrgetter("device")


@dataclass(slots=True)
class Plan:
    """A step that is computed and not yet made.

    Attributes:
        values: the new values of the parameters that change.
        tensors: a tree of all new tensors.
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
        """Makes the step, and returns whether it has; it has not if tensors to write over are seen by others."""
        if self.tensors:
            ops.eval(self.tensors)
        if not self.overwritten:
            commit(self.steps)
            return True
        cells = [cell for each in self.overwritten for cell in each.cells]
        return Overwriting(cells).make(self._calls, self.steps)

    def _calls(self, tensors: Sequence[Any]) -> list[Iterable[Step]] | None:
        """Returns the calls that write over the tensors of all cells."""
        found: list[Iterable[Step]] = []
        start = 0
        for cells, calls in self.overwritten or ():
            made = calls(tensors[start : start + len(cells)])
            if made is None:
                return None
            found += made
            start += len(cells)
        return found


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

    unsaved: ClassVar[Mapping[str, float]] = {}
    """What stands for the numbers in the state that torch does not save."""

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

    def step(self, grads: Mapping[Any, Any] | None = None, *, clear: bool = True) -> None:
        """Changes all parameters that have a gradient.

        Everything is computed, then all tensors are exchanged in one step: after an error or an interruption all
        parameters and the whole state are as before. Where nothing but a parameter refers to its tensor, the step
        writes the new value into its memory, which no one can tell from an exchange.

        Args:
            grads: gradients by `Parameter` or by the name of a parameter; without it `grad` is read.
            clear: whether `grad` becomes None.

        Raises:
            ArgumentError: if `grads` has a key that is no parameter of the optimizer.
            ArgumentTypeError: if `grads` is no mapping, or a gradient is sparse.
            ShapeError: if a gradient does not have the shape of its parameter.
            DTypeError: if a gradient does not have the dtype of its parameter.
            TracedTensorError: inside of a transform; use `update` there.
        """
        perform(self._make, self.gradients(grads), self.parameters, clear)

    def _make(self, gradients: dict[Parameter, Any], clear: bool) -> None:
        """Makes the step with these gradients."""
        if not self._planned(gradients, clear, [] if COUNTED else None).make():
            self.planned(gradients, clear=clear).make()

    def gradients(self, grads: Mapping[Any, Any] | None = None) -> dict[Parameter, Any]:
        """Returns the gradients that the next step takes, by parameter.

        Args:
            grads: gradients by `Parameter` or by the name of a parameter; without it `grad` is read.

        Raises:
            ArgumentError: if `grads` has a key that is no parameter of the optimizer.
            ArgumentTypeError: if `grads` is no mapping.
        """
        if grads is None:
            return gradients_of(self.parameters())
        if not isinstance(grads, Mapping):
            raise ArgumentTypeError(
                f"{self._head}grads is {brief(grads)} of type {type(grads).__name__}, expected a mapping from "
                f"parameters or their names to gradients, such as dict(zip(params, grads))"
            )
        parameters = {cell: cell for cell in self.parameters()}
        named: dict[Any, Parameter] = {cell.name: cell for cell in parameters if cell.name}
        for group in self._param_groups:
            named.update(zip(group.get("param_names", ()), group["params"], strict=False))
        found = {}
        for key, gradient in grads.items():
            parameter = parameters.get(key, named.get(key))
            if parameter is None:
                raise ArgumentError(f"{self._head}grads has {brief(key)}, which is no parameter of the optimizer")
            found[parameter] = _tensor(gradient)
        return found

    def planned(self, gradients: Mapping[Parameter, Any], *, clear: bool = True) -> Plan:
        """Returns the step with these gradients, computed but not yet made; see `step`."""
        return self._planned(gradients, clear, None)

    def _planned(self, gradients: Mapping[Parameter, Any], clear: bool, overwritten: list[Overwritten] | None) -> Plan:
        """Returns the step with these gradients; without a list for it, nothing is written over."""
        plan = Plan({}, [], [], True, overwritten)
        for place, group in enumerate(self._param_groups):
            cells, given = group["params"], list(gradients.values())
            if not are_same(list(gradients), cells):
                cells = [cell for cell in cells if cell in gradients]
                given = [gradients[cell] for cell in cells]
            if cells:
                self._add_group(plan, place, cells, given)
            if clear:
                plan.steps += [cell.without_grad() for cell in group["params"]]
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
        values = [_tensor(leaf) for leaf in ops.tree_leaves(params)]
        return pure.begun(values, [self.initial(value, hyper) for value in values])

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
        leaves, structure = ops.tree_flatten(params)
        gradients, given = ops.tree_flatten(grads)
        if given != structure or len(state["parameters"]) != len(leaves):
            raise ArgumentError(
                f"{self._head}the gradients ({given}) and the state ({len(state['parameters'])} leaves) must be those "
                f"of the parameters ({structure})"
            )
        values = [_tensor(leaf) for leaf in leaves]
        tensors = [_tensor(leaf) for leaf in gradients]
        for gradient, value, leaf in zip(tensors, values, leaves, strict=True):
            require_gradient(self._head, gradient, value, leaf)

        changed, after = pure.stepped(self._applied_at, values, tensors, state)
        return ops.tree_unflatten(structure, changed), after

    def _hyper(self, group: Mapping[str, Any], count: numbers.Number) -> Hyper:
        return {**group, "lr": rate_at(group["lr"], count)}

    def _add_group(self, plan: Plan, place: int, cells: list[Parameter], gradients: list[Any]) -> None:
        """Adds the new values and states of those parameters of a group that have gradients to a plan."""
        hyper = self._hyper(self._param_groups[place], self._count)
        backend, elementwise = selection.current(), vectors.is_elementwise(self.rule)
        alike = elementwise and len(cells) >= vectors.FEWEST
        if alike and self._add_known(plan, place, cells, gradients, hyper):
            return
        values = values_of(cells)
        kinds = self._kinds(gradients, values, cells)
        single: Iterable[int] = range(len(cells))
        if alike:
            single = self._add_alike(plan, place, cells, gradients, values, kinds, hyper)
        for i in single:
            cell, value = cells[i], values[i]
            given = gradients[i], value, self._held(cell, value, hyper), hyper
            after, state = backend.applied(self._applied, *given) if elementwise else self._applied(*given)
            plan.values[cell] = after
            plan.tensors += [after, state]
            plan.steps += [cell.replacing(after), *self._exchange(cell, state)]

    def _add_known(self, plan: Plan, place: int, cells: list[Parameter], gradients: list[Any], hyper: Hyper) -> bool:
        """Adds parameters to a plan that looks at their tensors when it writes over them; returns whether it has."""
        layout = _LAYOUTS.get(self, {}).get(place)
        if layout is None or plan.overwritten is None or not layout.looks(cells):
            return False
        found = []
        for rows in layout.rows:
            state = rows.state(self._state)
            over = None if state is None else rows.overwriting(self.rule, state, hyper, gradients, self._state)
            if over is None:
                return False
            found.append(over)
        self._overwrite(plan, cells[0], found)
        return True

    def _overwrite(self, plan: Plan, cell: Parameter, found: Iterable[tuple[Overwritten, list[Step]]]) -> None:
        """Adds what writes over tensors to a plan, for a parameter and others.

        Raises:
            TracedTensorError: if a running transform holds the values.
        """
        cell.replacing(cell.value)
        for over, steps in found:
            plan.overwritten = [*(plan.overwritten or ()), over]
            plan.steps += steps

    def _add_alike(
        self,
        plan: Plan,
        place: int,
        cells: list[Parameter],
        gradients: list[Any],
        values: list[Any],
        kinds: Any,
        hyper: Hyper,
    ) -> list[int]:
        """Adds the parameters that are computed together to a plan, and returns the places of the others."""
        layouts = _LAYOUTS.setdefault(self, {})
        old = layout = layouts.get(place)
        states: Any = layout and layout.states(cells, kinds, self._state)
        if layout is None or states is None:
            layout, states = vectors.arranged(cells, values, kinds, self._state, *self._first(values[0], hyper))
            plan.steps += old.left(layout.batches, self._state) if old else []
            plan.steps.append((layouts.__setitem__, place, layout))
        single = layout.single
        for i in range(len(layout.batches)):
            self._add_batch(plan, layout, i, states[i], gradients, values, hyper)
        for rows, state in zip(layout.rows, states[len(layout.batches) :], strict=True):
            if not self._add_rows(plan, rows, state, gradients, values, hyper):
                single = [*single, *rows.places]
            if plan.overwritten is not None:
                rows.learn(gradients, values)
        return single

    def _first(self, value: Any, hyper: Hyper) -> tuple[State, Program | None]:
        """Returns the state of a parameter before its first step, and a program of the rule."""
        state, backend = self.initial(value, hyper), selection.current()
        found = recorded(self.rule, state, hyper) if backend.blocked and backend.runs_programs else None
        return state, found and found.program

    def _add_batch(
        self,
        plan: Plan,
        layout: vectors.Layout,
        i: int,
        state: Any,
        gradients: list[Any],
        values: list[Any],
        hyper: Hyper,
    ) -> None:
        """Adds the parameters of a batch to a plan, computed in one vector."""
        backend, batch = selection.current(), layout.batches[i]
        likes = [values[i] for i in batch.places]
        value = backend.joined(likes)
        gradient = backend.joined([gradients[i] for i in batch.places])
        before = self.initial(value, hyper) if state is None else state
        after, new = backend.applied(self._applied, gradient, value, before, hyper)
        parts = backend.parted(after, likes)
        plan.values.update(zip(batch.cells, parts, strict=True))
        plan.tensors += [parts, new]
        plan.steps += replacing(batch.cells, parts)
        if batch.entries and state is not None and state.keys() == new.keys():
            plan.steps += batch.exchange(new, backend.home)
        else:
            begun = vectors.Batch(batch.cells, batch.places, batch.shapes)
            plan.steps += [*begun.begin(new, self._state, backend.home), (operator.setitem, layout.batches, i, begun)]

    def _add_rows(
        self,
        plan: Plan,
        rows: Rows,
        state: State,
        gradients: list[Any],
        values: list[Any],
        hyper: Hyper,
    ) -> bool:
        """Adds parameters that a program computes to a plan; returns whether the backend has computed them."""
        if plan.overwritten is not None:
            over = rows.overwriting(self.rule, state, hyper, gradients, self._state)
            if over is not None:
                self._overwrite(plan, rows.cells[0], [over])
                return True
        if not state and rows.cells[0] not in self._state:
            state = rows.begun(lambda value: self.initial(value, hyper), [values[i] for i in rows.places])
        found = rows.computed(self.rule, state, hyper, gradients, values)
        if found is None:
            return False
        after, tensors, new = found
        plan.values.update(zip(rows.cells, after, strict=True))
        plan.tensors += [after, *tensors.values()]
        plan.steps += [*together(rows.cells, after), *rows.exchange(self._state, state, tensors, new)]
        return True

    def _kinds(self, gradients: list[Any], values: list[Any], cells: list[Parameter]) -> Any:
        """Returns the shapes, dtypes and devices of parameters after a check that the gradients fit.

        Raises:
            ArgumentTypeError: if a gradient is sparse.
            ShapeError: if the shapes differ.
            DTypeError: if the dtypes differ, or are not real and floating.
        """
        kinds, given = ([list(map(each, tensors)) for each in (_SHAPE, _DTYPE)] for tensors in (values, gradients))
        sparse = hasattr(gradients[0], "is_sparse") and any(map(_SPARSE, gradients))
        several = kinds[1].count(kinds[1][0]) < len(values)
        dtypes = dict(zip(kinds[1], values, strict=True)).values() if several else values[:1]
        if kinds != given or sparse or not all(ops.dtype(value).is_floating for value in dtypes):
            for gradient, value, cell in zip(gradients, values, cells, strict=True):
                require_gradient(self._head, gradient, value, cell)
        devices = list(map(_DEVICE, values)) if hasattr(values[0], "device") else [None] * len(values)
        return [*kinds, devices]

    def _held(self, parameter: Parameter, value: Any, hyper: Hyper) -> State:
        """Returns the state of a parameter as tensors of the active backend and numbers."""
        kept = self._state.get(parameter)
        if kept is None:
            return self.initial(value, hyper)
        return {name: x.value if isinstance(x, Buffer) else x for name, x in kept.items()}

    def _applied(self, gradient: Any, value: Any, state: State, hyper: Hyper) -> tuple[Any, State]:
        """Returns what the rule returns, in the dtypes of its arguments."""
        after, new = self.rule(gradient, value, state, hyper)
        return _like(after, value), _likes(new, state)

    def _applied_at(self, gradient: Any, value: Any, state: State, count: Tensor) -> tuple[Any, State]:
        """Returns the same for the options of the pure form after a number of steps."""
        return self._applied(gradient, value, state, self._hyper(self.defaults, count))

    def _exchange(self, parameter: Parameter, state: State) -> list[Step]:
        """Returns the steps that make `state` the state of a parameter."""
        kept = self._state.get(parameter)
        if kept is None or kept.keys() != state.keys():
            made = {name: x if numbers.is_python(x) else Buffer(x) for name, x in state.items()}
            return [(operator.setitem, self._state, parameter, made)]
        steps: list[Step] = []
        for name, x in state.items():
            cell = kept[name]
            steps.append(cell.replacing(x) if isinstance(cell, Buffer) else (operator.setitem, kept, name, x))
        return steps


def _tensor(leaf: Any) -> Any:
    return leaf.value if isinstance(leaf, Cell) else ops.convert_to_tensor(leaf)


def _like(x: Any, before: Any) -> Any:
    """Returns a tensor in the dtype that it had before; numbers of Python are unchanged."""
    if numbers.is_python(x) or numbers.is_python(before) or x.dtype == before.dtype:
        return x
    return ops.cast(x, ops.dtype(before))


def _likes(state: State, before: State) -> State:
    """Returns the entries of a state in the dtypes that they had before; a loop, as those in `pure.py`."""
    found = {}
    for name, x in state.items():
        found[name] = _like(x, before[name]) if name in before else x
    return found
