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
"""

import importlib
import itertools
from collections.abc import Callable, Sequence
from typing import Any

from emberharmony.core.cells.cell import opened
from emberharmony.core.errors import BackendMismatchError, TracedTensorError, UnsupportedOpError
from emberharmony.core.registry import OPS, OpParameter, OpSpec
from emberharmony.core.selection import Override, active, is_active
from emberharmony.core.tracing import LEAVES
from emberharmony.transforms.rules import CONSTANT, LEAVING, REFUSED, RULES
from emberharmony.transforms.traced_tensor import TracedTensor

Pullback = Callable[[Sequence[Any]], list[Any]]
_LEVELS = itertools.count()
_SCALARS = (int, float, complex)
_INEXACT = ("float", "complex")
_PLAIN = frozenset((float, int, bool, complex, str, type(None)))


class _Node:
    """One recorded op: its gradient rule, its arguments and result as values of the traced tensors, and its parents.

    `parents` has a triple for each traced tensor: the index of its argument, its index inside that argument if this is
    a list (else -1), and its source. The source is the node that computed the tensor or, if that node has several
    results, the pair of the node and the index of the result. `width` is the number of results, 0 for a single tensor.
    """

    __slots__ = ("arguments", "parents", "result", "rule", "width")

    def __init__(self, rule: Any, arguments: list[Any], result: Any, parents: list[tuple[int, int, Any]]) -> None:
        self.rule, self.arguments, self.result, self.parents = rule, arguments, result, parents
        self.width = 0


class Tape:
    """The record of the ops on traced tensors, for one call of a function that is differentiated."""

    __slots__ = ("backend", "level", "neutral", "nodes", "tensor_type")

    def __init__(self, backend: Any) -> None:
        self.backend, self.level = backend, next(_LEVELS)
        self.neutral, self.tensor_type = backend.dtypes.neutral, backend.tensor_type
        self.nodes: list[_Node] = []

    def run(self, backend: Any, op: str, arguments: Sequence[Any]) -> Any:
        """Runs an op on arguments that contain traced tensors, and records it on the innermost of their tapes.

        Raises:
            BackendMismatchError: if another backend is active than that of the tape.
            TracedTensorError: if a traced tensor is where it cannot be followed.
            UnsupportedOpError: if the op has no gradient.
        """
        if backend is not self.backend:
            raise BackendMismatchError(
                f"{op}() on backend {backend.name!r}: an argument is a tensor that is being differentiated on "
                f"backend {self.backend.name!r}; do not switch the backend inside a differentiated function"
            )
        innermost: Tape | None = None
        for argument in arguments:
            kind = argument.__class__
            if kind is TracedTensor:
                if innermost is None or argument.tape.level > innermost.level:
                    innermost = argument.tape
            elif kind is not self.tensor_type and kind not in _PLAIN:
                arguments = _prepared(backend, OPS[op], arguments)
                innermost = max((x.tape for x in _traced_in(arguments)), key=_level, default=None)
                break
        if innermost is None:
            raise _unfollowed(op, backend)
        rule = RULES.get(op)
        if rule is None and op not in CONSTANT:
            return _composite(backend, op, arguments)
        return innermost.record(OPS[op], rule, arguments)

    def record(self, spec: OpSpec, rule: Any, arguments: Sequence[Any]) -> Any:
        """Runs an op on the values of this tape's traced tensors, and returns the result, traced if the op has a rule.

        Raises:
            TracedTensorError: if no argument is traced by this tape.
            UnsupportedOpError: if the op has no gradient with respect to a traced argument.
        """
        values = [*arguments]
        parents: list[tuple[int, int, Any]] = []
        for i, argument in enumerate(arguments):
            if argument.__class__ is TracedTensor:
                if argument.tape is self:
                    values[i] = argument.value
                    parents.append((i, -1, argument.source))
            elif argument.__class__ is list:
                values[i] = opened = [*argument]
                for j, item in enumerate(argument):
                    if item.__class__ is TracedTensor and item.tape is self:
                        opened[j] = item.value
                        parents.append((i, j, item.source))
        if not parents:
            # The op would run again with the same traced tensors and so recurse without end.
            raise _unfollowed(spec.name, self.backend)
        if rule.__class__ is tuple and parents[-1][0] >= len(rule):
            raise UnsupportedOpError(
                f"{spec.name}() on backend {self.backend.name!r} has no gradient with respect to its argument "
                f"{_parameters(spec, len(values))[parents[-1][0]].name!r}: pass it a number, or ops.stop_gradient(x)"
            )
        # Not `spec.function`, because a namespace may run ops of this backend while another one is active.
        result = _call(getattr(self.backend.bound, spec.name), spec, values)
        return result if rule is None else self.traced(_Node(rule, values, result, parents))

    def traced(self, node: _Node) -> Any:
        """Records a node and returns its result, in which the floating and complex tensors are traced."""
        result = node.result
        if isinstance(result, (tuple, list)):
            node.width = len(result)
            items = [TracedTensor(x, self, (node, i)) if self._differentiable(x) else x for i, x in enumerate(result)]
            self.nodes.append(node)
            kind = type(result)
            return items if kind is list else tuple(items) if kind is tuple else kind(*items)
        if not self._differentiable(result):
            return result
        self.nodes.append(node)
        return TracedTensor(result, self, node)

    def _differentiable(self, value: Any) -> bool:
        return self.neutral[value.dtype].kind in _INEXACT if hasattr(value, "dtype") else False


def _unfollowed(op: str, backend: Any) -> TracedTensorError:
    return TracedTensorError(
        f"{op}() on backend {backend.name!r}: a tensor that is being differentiated is where it cannot be followed, "
        f"in an option or deep inside a container; pass it as an argument of its own, or pass ops.stop_gradient(x)"
    )


def _parameters(spec: OpSpec, count: int) -> list[OpParameter]:
    """Returns, for each of `count` arguments, the parameter that it is passed to; a variadic one is repeated."""
    rest = count - len(spec.parameters) + 1
    return [p for p in spec.parameters for _ in range(rest if p.variadic else 1)]


def _level(tape: Tape) -> int:
    return tape.level


def _traced_in(arguments: Sequence[Any]) -> list[Any]:
    found: list[Any] = []
    for argument in arguments:
        if argument.__class__ is TracedTensor:
            found.append(argument)
        elif argument.__class__ is list or argument.__class__ is tuple:
            found += _traced_in(argument)
    return found


def _prepared(backend: Any, spec: OpSpec, arguments: Sequence[Any]) -> list[Any]:
    """Returns the arguments converted to tensors; a list that holds traced tensors becomes one traced tensor."""
    given: list[Any] = opened(backend.bound, list(arguments))
    for i, (parameter, argument) in enumerate(zip(_parameters(spec, len(given)), given, strict=True)):
        if argument is None or argument.__class__ is TracedTensor:
            continue
        role = parameter.role
        if role == "TensorLike" or (role == "Operand" and not isinstance(argument, _SCALARS)):
            given[i] = _tensor(backend, argument)
        elif role == "Tensors":
            given[i] = [_tensor(backend, item) for item in argument]
    return given


def _tensor(backend: Any, value: Any) -> Any:
    if value.__class__ is TracedTensor:
        return value
    if isinstance(value, (list, tuple)) and _traced_in(value):
        return backend.bound.stack([_tensor(backend, item) for item in value])
    return backend.convert(value)


def _composite(backend: Any, op: str, arguments: Sequence[Any]) -> Any:
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
    given = _prepared(backend, spec, arguments)
    try:
        if is_active(backend.bound):
            return _call(spec.declared, spec, given)
        with Override(backend):
            return _call(spec.declared, spec, given)
    except UnsupportedOpError as error:
        if "() on backend" in str(error):  # an op inside the body has named itself
            raise
        raise UnsupportedOpError(f"{op}() on backend {backend.name!r}: {error}") from error


def _call(function: Callable[..., Any], spec: OpSpec, arguments: Sequence[Any]) -> Any:
    # Dispatch packs keyword-only arguments last; the function takes them by name.
    keywords = function.__kwdefaults__
    if not keywords:
        return function(*arguments)
    cut = len(arguments) - len(keywords)
    names = [p.name for p in spec.parameters if p.keyword_only]
    return function(*arguments[:cut], **dict(zip(names, arguments[cut:], strict=True)))


def pullback(backend: Any, fn: Callable[..., Sequence[Any]], primals: Sequence[Any]) -> tuple[list[Any], Pullback]:
    """Returns the outputs of `fn(*primals)`, and the function from their cotangents to one gradient for each primal.

    A cotangent has the shape and dtype of its output, or is None for zero. The returned function may be called again.
    """
    if not RULES:
        importlib.import_module("emberharmony.rules")
    tape = Tape(backend)
    leaves = [_Node(None, [], primal, []) for primal in primals]
    outputs = [*fn(*(TracedTensor(primal, tape, leaf) for primal, leaf in zip(primals, leaves, strict=True)))]
    sources = [y.source if y.__class__ is TracedTensor and y.tape is tape else None for y in outputs]
    values = [y if source is None else y.value for y, source in zip(outputs, sources, strict=True)]
    nodes = tape.nodes[::-1]

    def pull(cotangents: Sequence[Any]) -> list[Any]:
        gradients: dict[Any, Any] = {}
        for source, cotangent in zip(sources, cotangents, strict=True):
            if source is not None and cotangent is not None:
                _accumulate(gradients, source, _conjugate(tape, cotangent))
        for node in nodes:
            _pull_node(gradients, node)
        found = [gradients.get(leaf) for leaf in leaves]
        return [
            active().zeros_like(primal) if gradient is None else _conjugate(tape, gradient)
            for gradient, primal in zip(found, primals, strict=True)
        ]

    return values, pull


def _pull_node(gradients: dict[Any, Any], node: _Node) -> None:
    """Adds to the gradients of a node's parents, if the node itself has a gradient."""
    if node.width:
        parts = [gradients.pop((node, i), None) for i in range(node.width)]
        if all(part is None for part in parts):
            return
        cotangent: Any = [
            active().zeros_like(y) if part is None else part for part, y in zip(parts, node.result, strict=True)
        ]
    else:
        cotangent = gradients.pop(node, None)
        if cotangent is None:
            return
    arguments, rule = node.arguments, node.rule
    found: Any = None if rule.__class__ is tuple else rule(cotangent, node.result, *arguments)
    done = -1
    for i, j, source in node.parents:
        if rule.__class__ is not tuple:
            gradient = found[i]
        else:
            if i != done:  # several parents in one list share the result of one rule
                part = rule[i]
                found, done = None if part is None else part(cotangent, node.result, *arguments), i
            gradient = found
        if gradient is None:
            continue
        argument = arguments[i]
        if j >= 0:
            gradient, argument = gradient[j], argument[j]
        if gradient.shape != argument.shape or gradient.dtype is not argument.dtype:
            gradient = _fitted(gradient, argument)
        _accumulate(gradients, source, gradient)


def _accumulate(gradients: dict[Any, Any], source: Any, gradient: Any) -> None:
    known = gradients.get(source)
    gradients[source] = gradient if known is None else active().add(known, gradient)


def _fitted(gradient: Any, argument: Any) -> Any:
    """Returns a gradient in its argument's dtype, summed over the axes along which the argument was broadcast."""
    shape, wanted = gradient.shape, argument.shape
    if shape != wanted:
        extra = len(shape) - len(wanted)
        axes = [*range(extra), *(extra + i for i, n in enumerate(wanted) if n == 1 and shape[extra + i] != 1)]
        gradient = active().sum(gradient, axis=tuple(axes))
        if gradient.shape != wanted:
            gradient = active().reshape(gradient, wanted)
    dtype = argument.dtype
    return gradient if gradient.dtype == dtype else active().cast(gradient, dtype)


def _conjugate(tape: Tape, tensor: Any) -> Any:
    return active().conj(tensor) if tape.neutral[tensor.dtype].kind == "complex" else tensor
