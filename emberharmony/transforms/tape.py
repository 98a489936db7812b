"""Reverse-mode differentiation on any backend: a tape records the ops that are called with traced tensors.

The function that is differentiated receives each tensor as a `TracedTensor`. The fast paths of ops accept only native
tensors, so dispatch passes such a call to the tape (`core.tracing`). The tape runs the op on the values of the traced
tensors and, if the op has a rule, records a node whose parents are the nodes of the traced tensors. A composite has no
rule; its body runs on the traced tensors. There is no global state: a tape lives as long as the traced tensors that
refer to it, so an exception leaves nothing behind, and threads and tasks do not share a tape.

Nested calls give derivatives of higher order. Each tape has a number. A call is recorded on the latest tape among its
arguments and runs on the values of the tensors that this tape traces; those values may be traced by an earlier tape,
which then records the call, too. The rules are written with ops, so they are recorded as well.

Complex numbers: inside the tape, the gradient of a real L with respect to z = a + ib is dL/da - i dL/db, because the
rule of a holomorphic function is then the same as for real numbers. Cotangents and gradients are conjugated where they
enter and leave the tape, so that users get dL/da + i dL/db, the direction of steepest ascent.

A traced tensor holds its node, and a node the nodes of its arguments; the tape holds none, so Python frees at once what
no result depends on. Nodes are numbered, for the backward pass (`transforms.backward`).

A node keeps only the tensors that the derivative reads, which the names of the rule's parameters say: `lambda g, y, _x:
...` reads the result and not the argument, of which shape and dtype are kept. So a network of `tanh(x @ w + b)` keeps
one activation for each layer instead of three. For the gradient of a loss by its logits the tape asks the backend for
both at once (`Backend.value_and_slope`) and keeps the derivative in the place of the logits.
"""

import itertools
from collections.abc import Callable, Sequence
from types import FunctionType, SimpleNamespace
from typing import Any, NamedTuple

from emberharmony.core.cells.cell import replace_cells
from emberharmony.core.code_flags import VARIADIC
from emberharmony.core.errors import BackendMismatchError, TracedTensorError, UnsupportedOpError
from emberharmony.core.registry import OPS, OpParameter, OpSpec
from emberharmony.core.selection import Override, active, is_active
from emberharmony.core.tracing import LEAVES
from emberharmony.transforms.rule_registry import LEAVING, REFUSED, RULES, SLOPES, pass_gradient
from emberharmony.transforms.traced_tensor import TracedTensor

Node = tuple[int, Any, list[Any], Any, list[tuple[int, int, Any, Any]]]
"""One recorded op: its number, its rule, its arguments and result as values of the traced tensors, and its parents.

The number grows from one node of a tape to the next. The list of parents has an entry for each traced tensor: the index
of its argument, its index inside that argument if this is a list (else -1), the node that computed it or None, and the
key of its gradient. A tensor that the rule does not read is replaced by its `_Shape`.
"""
_LEVELS = itertools.count()
_SCALARS = (int, float, complex)
_INEXACT = ("float", "complex")
_PLAIN = frozenset((float, int, bool, complex, str, type(None)))


_Shape = SimpleNamespace
"""What a node keeps of a tensor that no rule reads: its shape and dtype."""


class Tape:
    """The record of the ops on traced tensors, for one call of a function that is differentiated.

    The tape itself holds no node. Each traced tensor holds the node that computed it, and each node holds those of its
    arguments, so what no result depends on is freed at once.
    """

    __slots__ = ("backend", "kinds", "level", "numbers", "plans", "tensor_type", "watched")
    differentiates = True

    def __init__(self, backend: Any) -> None:
        self.backend, self.level = backend, next(_LEVELS)
        self.numbers: Any = itertools.count()
        self.kinds, self.tensor_type = backend.kinds, backend.tensor_type
        self.watched = backend.is_twin
        self.plans = _PLANS.setdefault(self.tensor_type, {})

    def note_read(self, what: str) -> None:
        """Called when the function reads a value, such as that of a condition; does nothing unless overridden."""

    def note_missing(self, name: str) -> None:
        """Called when the function looks for an attribute that traced tensors lack; does nothing unless overridden."""

    def run(self, backend: Any, op: str, arguments: Sequence[Any]) -> Any:
        """Runs an op on arguments that contain traced tensors, and records it on the innermost of their tapes.

        Raises:
            BackendMismatchError: if another backend is active than that of the tape.
            TracedTensorError: if a traced tensor is where it cannot be followed.
            UnsupportedOpError: if the op has no gradient.
        """
        if (
            backend is not self.backend and backend.without_watchers is not self.backend.without_watchers
        ):  # a twin may watch in its place
            if backend.home is self.backend.home:  # `ops.eval_shape` wraps the backend
                return call_with_packed(getattr(backend.bound, op), OPS[op], backend.adopt_all(arguments))
            raise BackendMismatchError(
                f"{op}() on backend {backend.name!r}: an argument is a tensor that is being differentiated on "
                f"backend {self.backend.name!r}; do not switch the backend inside a differentiated function"
            )
        # The usual case: tensors, numbers, options, and traced tensors of this tape alone.
        rule: Any = RULES.get(op)
        tensor_type = self.tensor_type
        plan_key: tuple[Any, ...] = (op, *map(type, arguments))
        plan = self.plans.get(plan_key)
        if plan is None or plan[0] is not rule:
            plan = self.plans[plan_key] = _argument_plan(rule, tensor_type, plan_key[1:])
        _, is_usual, traced_indices, tuple_indices, unread_indices, has_slopes = plan
        for argument_index in tuple_indices:
            is_usual = is_usual and _is_option(op, argument_index, arguments[argument_index])
        arg_values, parents = [*arguments], []
        for argument_index in traced_indices:
            argument = arguments[argument_index]
            is_usual = is_usual and argument.tape is self
            arg_values[argument_index] = argument.value
            parents.append((argument_index, -1, argument.node, argument.key))
        if not is_usual:
            return self._run_general_case(backend, op, rule, arguments)
        result_and_slope = (
            backend.value_and_slope(op, arg_values)
            if has_slopes and backend is self.backend and not self.watched
            else None
        )
        if result_and_slope is not None:
            number = next(self.numbers)
            return TracedTensor(
                result_and_slope[0],
                self,
                (
                    number,
                    BY_SLOPE,
                    [result_and_slope[1]],
                    _Shape(shape=result_and_slope[0].shape, dtype=result_and_slope[0].dtype),
                    parents,
                ),
                number,
            )
        # Not `spec.function`, because a namespace may run ops of this backend while another one is active.
        op_function = getattr(backend.bound, op)
        result = (
            call_with_packed(op_function, OPS[op], arg_values)
            if op_function.__kwdefaults__
            else op_function(*arg_values)
        )
        if result is arg_values[0] and rule[0] is pass_gradient:
            return arguments[0]
        kept_result = result
        for argument_index in unread_indices:
            if argument_index < 0:
                if kept_result.__class__ is tensor_type:
                    kept_result = _Shape(shape=kept_result.shape, dtype=kept_result.dtype)
            elif arg_values[argument_index].__class__ is tensor_type:
                arg_values[argument_index] = _Shape(
                    shape=arg_values[argument_index].shape, dtype=arg_values[argument_index].dtype
                )
        number = next(self.numbers)
        node = (number, rule, arg_values, kept_result, parents)
        if result.__class__ is not tensor_type:
            return self.trace(result, node)
        return TracedTensor(result, self, node, number) if self.kinds[result.dtype] in _INEXACT else result

    def _run_general_case(self, backend: Any, op: str, rule: Any, arguments: Sequence[Any]) -> Any:
        """Runs and records an op with unusual arguments, such as traced tensors in lists or of an outer tape."""
        innermost_tape: Tape | None = None
        for argument in arguments:
            cls = argument.__class__
            if cls is TracedTensor:
                if innermost_tape is None or argument.tape.level > innermost_tape.level:
                    innermost_tape = argument.tape
            elif getattr(argument, "backend", self.backend) is not self.backend:  # an operator inside `ops.eval_shape`
                return self.run(argument.backend, op, arguments)
            elif cls is not self.tensor_type and cls not in _PLAIN:
                arguments = prepare(backend, OPS[op], arguments)
                innermost_tape = max((x.tape for x in traced_tensors_in(arguments)), key=_tape_level, default=None)
                break
        if innermost_tape is None:
            raise _untraceable_error(op, backend)
        if not innermost_tape.differentiates:
            return innermost_tape.run(backend, op, arguments)
        spec = OPS[op]
        if rule is None and spec.facts.gradient != "zero":
            return _run_composite(backend, op, arguments)
        return innermost_tape.record(backend, spec, rule, arguments)

    def record(self, backend: Any, spec: OpSpec, rule: Any, arguments: Sequence[Any]) -> Any:
        """Runs an op on the values of this tape's traced tensors, and returns the result, traced if the op has a rule.

        Raises:
            TracedTensorError: if no argument is traced by this tape.
            UnsupportedOpError: if the op has no gradient with respect to a traced argument.
        """
        arg_values = [*arguments]
        parents: list[tuple[int, int, Any, Any]] = []
        for i, argument in enumerate(arguments):
            if argument.__class__ is TracedTensor:
                if argument.tape is self:
                    arg_values[i] = argument.value
                    parents.append((i, -1, argument.node, argument.key))
            elif argument.__class__ is list:
                arg_values[i] = item_values = [*argument]
                for j, item in enumerate(argument):
                    if item.__class__ is TracedTensor and item.tape is self:
                        item_values[j] = item.value
                        parents.append((i, j, item.node, item.key))
        if not parents:
            # The op would run again with the same traced tensors and so recurse without end.
            raise _untraceable_error(spec.name, self.backend)
        if rule.__class__ is tuple and parents[-1][0] >= len(rule):
            parameter = _parameters_of_arguments(spec, len(arg_values))[parents[-1][0]]
            raise UnsupportedOpError(
                f"{spec.name}() on backend {self.backend.name!r} has no gradient with respect to its argument "
                f"{parameter.name!r}: pass it a number, or ops.stop_gradient(x)"
            )
        result = call_with_packed(getattr(backend.bound, spec.name), spec, arg_values)
        return result if rule is None else self.trace(result, (next(self.numbers), rule, arg_values, result, parents))

    def trace(self, result: Any, node: Node) -> Any:
        """Returns the result of a node, in which the floating and complex tensors are traced."""
        if isinstance(result, (tuple, list)):
            traced_items = [
                TracedTensor(x, self, node, (node[0], i)) if self._is_differentiable(x) else x
                for i, x in enumerate(result)
            ]
            cls = type(result)
            return traced_items if cls is list else tuple(traced_items) if cls is tuple else cls(*traced_items)
        return TracedTensor(result, self, node, node[0]) if self._is_differentiable(result) else result

    def _is_differentiable(self, value: Any) -> bool:
        return self.kinds[value.dtype] in _INEXACT if hasattr(value, "dtype") else False


class _Plan(NamedTuple):
    """How `Tape.run` records an op with arguments of some classes.

    Attributes:
        rule: the rule of the op.
        usual: whether all classes are those of the usual case, and the rule has a function for each traced argument.
        traced: the places of the traced arguments.
        options: the places of tuples, which may hold tensors.
        unread: the places of the arguments, and -1 for the result, that the rule does not read; it says so by a name
            that begins with an underscore.
        sloped: whether `Backend.value_and_slope` may compute the op; the first argument alone is traced.
    """

    rule: Any
    usual: bool
    traced: tuple[int, ...] = ()
    options: tuple[int, ...] = ()
    unread: tuple[int, ...] = ()
    sloped: bool = False


_PLANS: dict[type, dict[Any, _Plan]] = {}
"""By class of native tensors, and then by op and classes of arguments, how a tape records them."""


def _argument_plan(rule: Any, tensor_type: type, argument_types: tuple[type, ...]) -> _Plan:
    traced_indices, tuple_indices = (
        [i for i, argument_class in enumerate(argument_types) if argument_class is wanted_class]
        for wanted_class in (TracedTensor, tuple)
    )
    accepted_types = _PLAIN | {TracedTensor, tensor_type, tuple}
    if (
        rule.__class__ is not tuple
        or not accepted_types.issuperset(argument_types)
        or max(traced_indices, default=0) >= len(rule)
    ):
        return _Plan(rule, False)
    argument_rules = [rule[i] for i in traced_indices if rule[i] is not None]
    unread_indices = [
        i
        for i in range(-1, len(argument_types))
        if all(_is_unread_parameter(function, i + 2) for function in argument_rules)
    ]
    has_slopes = traced_indices == [0] and rule[0] in SLOPES
    return _Plan(rule, True, tuple(traced_indices), tuple(tuple_indices), tuple(unread_indices), has_slopes)


BY_SLOPE = (lambda g, _y, slope: active().multiply(slope, g),)
"""The rule of an op that `Backend.value_and_slope` has computed."""


def _is_unread_parameter(function: FunctionType, place: int) -> bool:
    """Returns whether the name of a parameter of a gradient function begins with an underscore."""
    code = function.__code__
    if place < code.co_argcount:
        return code.co_varnames[place].startswith("_")
    is_starred = bool(code.co_flags & VARIADIC)
    return is_starred and code.co_varnames[code.co_argcount + code.co_kwonlyargcount].startswith("_")


def _is_option(op: str, place: int, argument: Any) -> bool:
    """Returns whether an argument is a tuple of numbers that no tensor is made of, such as a shape or axes."""
    if argument.__class__ is not tuple or not _PLAIN.issuperset(map(type, argument)):
        return False
    parameters = OPS[op].parameters
    return place < len(parameters) and parameters[place].role == "Value" and not parameters[-1].variadic


def is_plain_argument(op: str, place: int, argument: Any) -> bool:
    """Returns whether an argument is a number, a name or an option, of which no tensor is made."""
    return argument.__class__ in _PLAIN or _is_option(op, place, argument)


def _untraceable_error(op: str, backend: Any) -> TracedTensorError:
    return TracedTensorError(
        f"{op}() on backend {backend.name!r}: a tensor that is being differentiated is where it cannot be followed, "
        f"in an option or deep inside a container; pass it as an argument of its own, or pass ops.stop_gradient(x)"
    )


def _parameters_of_arguments(spec: OpSpec, count: int) -> list[OpParameter]:
    """Returns, for each of `count` arguments, the parameter that it is passed to; a variadic one is repeated."""
    variadic_count = count - len(spec.parameters) + 1
    return [p for p in spec.parameters for _ in range(variadic_count if p.variadic else 1)]


def _tape_level(tape: Tape) -> int:
    return tape.level


def traced_tensors_in(arguments: Sequence[Any]) -> list[Any]:
    """Returns the traced tensors among arguments, at any depth of lists and tuples."""
    tensors: list[Any] = []
    for argument in arguments:
        if argument.__class__ is TracedTensor:
            tensors.append(argument)
        elif argument.__class__ is list or argument.__class__ is tuple:
            tensors += traced_tensors_in(argument)
    return tensors


def prepare(backend: Any, spec: OpSpec, arguments: Sequence[Any]) -> list[Any]:
    """Returns an op's arguments converted to tensors; a list that holds traced tensors becomes one traced tensor."""
    prepared_arguments: list[Any] = replace_cells(backend.bound, list(arguments))
    for i, (parameter, argument) in enumerate(
        zip(_parameters_of_arguments(spec, len(prepared_arguments)), prepared_arguments, strict=True)
    ):
        if argument is None or argument.__class__ is TracedTensor:
            continue
        role = parameter.role
        if role == "TensorLike" or (role == "Operand" and not isinstance(argument, _SCALARS)):
            prepared_arguments[i] = _as_tensor(backend, argument)
        elif role == "Tensors":
            prepared_arguments[i] = [_as_tensor(backend, item) for item in argument]
    return prepared_arguments


def _as_tensor(backend: Any, value: Any) -> Any:
    if value.__class__ is TracedTensor:
        return value
    if isinstance(value, (list, tuple)) and traced_tensors_in(value):
        return backend.bound.stack([_as_tensor(backend, item) for item in value])
    return backend.convert(value)


def _run_composite(backend: Any, op: str, arguments: Sequence[Any]) -> Any:
    """Runs a composite's body on traced tensors.

    Raises:
        TracedTensorError: if the op takes values out of the differentiated function.
        UnsupportedOpError: if the op has no gradient, or is a primitive without a rule.
    """
    spec = OPS[op]
    if op in LEAVING:
        raise TracedTensorError(f"{op}() on backend {backend.name!r}: {LEAVES}")
    if op in REFUSED:
        raise UnsupportedOpError(f"{op}() on backend {backend.name!r} has no gradient: {REFUSED[op]}")
    if not spec.composite:
        raise UnsupportedOpError(
            f"{op}() on backend {backend.name!r} has no rule for its gradient: register one with "
            f"emberharmony.register_vjp({op!r}), or pass it ops.stop_gradient(x)"
        )
    try:
        return run_body(backend, spec, arguments)
    except UnsupportedOpError as error:
        if "() on backend" in str(error):  # an op inside the body has named itself
            raise
        raise UnsupportedOpError(f"{op}() on backend {backend.name!r}: {error}") from error


def run_body(backend: Any, spec: OpSpec, arguments: Sequence[Any]) -> Any:
    """Returns the result of a composite's body on arguments that contain traced tensors."""
    prepared_arguments = prepare(backend, spec, arguments)
    if is_active(backend.bound):
        return call_with_packed(backend.body_of(spec), spec, prepared_arguments)
    with Override(backend):
        return call_with_packed(backend.body_of(spec), spec, prepared_arguments)


def call_with_packed(function: Callable[..., Any], spec: OpSpec, arguments: Sequence[Any]) -> Any:
    """Calls an op, or a function with its parameters, with arguments in the order in which dispatch packs them."""
    # Dispatch packs keyword-only arguments last; the function takes them by name.
    keyword_defaults = spec.declared.__kwdefaults__
    if not keyword_defaults:
        return function(*arguments)
    positional_count = len(arguments) - len(keyword_defaults)
    keyword_names = [p.name for p in spec.parameters if p.keyword_only]
    return function(
        *arguments[:positional_count], **dict(zip(keyword_names, arguments[positional_count:], strict=True))
    )
