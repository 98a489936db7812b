"""The source of the ops, as text in which placeholders stand for the names of one op and one backend.

An op has several sources. *Looked up*, it asks which backend is active and calls the op compiled for it:

    def add(x1, x2):
        return active().add(x1, x2)

*Compiled* for a backend, it calls the native function where the arguments allow it, and dispatch's `slow` elsewhere:

    def add(x1, x2):
        if x1.__class__ is numpy_type and x2.__class__ is numpy_type and x1.dtype is x2.dtype:
            try:
                x1 = numpy_add(x1, x2)
            except Exception:
                return rescue(numpy_backend, "add", (x1, x2))
            else:
                if x1.__class__ is numpy_type:
                    return x1
                return numpy_wrap(x1)
        if x2.__class__ is parameter or x1.__class__ is parameter:
            return numpy__add(x1.current_tensor(numpy_bound) if x1.__class__ is parameter else x1, ...)
        if x1.__class__ is traced_tensor:
            return x1.run(numpy_backend, "add", (x1, x2))
        if x2.__class__ is traced_tensor and x1.__class__ is numpy_type:
            return x2.run(numpy_backend, "add", (x1, x2))
        return slow(numpy_backend, "add", (x1, x2))

The result takes the place of a parameter, and `rescue` itself asks Python for the exception, because a function with
locals besides its parameters costs each call 35 instructions more (CPython 3.11).

Where codes are exchanged, there are two more. *Uncalled*, before its first call, an op accepts any arguments, so that
`uncalled` can say which parameter an unknown keyword means:

    def add(*args, **kwargs):
        return uncalled.add(args, kwargs)

*Guarded*, it asks whether this thread or task overrides the backend; if not, it goes on as it was compiled:

    def add(x1, x2):
        entry = override()
        if entry is not None:
            return entry[0].add(x1, x2)
        ...

The placeholders are `template` for the name of the op, `p0`, `p1` for its parameters, `native` for the native function,
`native_type` and the like for what else the backend has, `native_again` for the compiled op itself, and the string
`<op>` for the name of the op in a message.
Ops whose signatures have the same shape share one text, so that `code_swap` compiles it once.

Every call pays for every instruction of this code (the figures are of CPython 3.11, where `np.sin` of one float32 takes
3,700). So it has no locals besides the parameters, and a `try` on one line, `else` and `if` in place of a conditional
expression save a jump or a NOP of 11 each. It reads no flag in the usual case: `publish_type` makes a name that is the
tensor type while all its flags hold and None otherwise, so that one test of the class tests the flags too, each of
which cost 60. A dtype that is tested twice is a local, because `x.dtype` costs 200 on NumPy and 460 on PyTorch. What
remains on NumPy is 125 for the class of each operand, 450 for two dtypes (280 for one) and 165 for the class of the
result.

Tried and left out: constants of the code in place of globals save 15 each, but `torch.compile` raises an AssertionError
for constants that are not literals; `type(x)` and `isinstance` cost 60 to 95 more than `x.__class__`, which CPython
specialises; a test of one operand only would accept tensors of other libraries with NumPy dtypes, such as JAX's;
`isinstance(x, torch.FloatTensor)` tests class and dtype at once, and costs 900. A parameter `**unknown` would catch
unknown keywords in each call, and costs 300, because Python makes a dict and no longer specialises the call; so only an
op that was not called yet says which parameter an unknown keyword means.
"""

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple, TypeVar

from emberharmony.core.code_flags import VARIADIC
from emberharmony.core.registry import OpSpec

F = TypeVar("F", bound=Callable[..., Any])
GLOBALS = ("backend", "bound", "type", "dtypes", "wrap", "tensors", "float32", "float64")
"""What the compiled ops read of a backend: `type` is published as `numpy_type`, and `native_type` stands for it."""

NEVER_SCALARS = frozenset(("tuple[int, ...]", "int", "bool", "DType", "SVDResult | Any", "QRResult", "EigResult"))
"""The annotations of results that are no tensors, or hold only tensors with axes, so that no backend wraps them."""

OP_NAME = "<op>"
"""The string that stands for the name of the op."""

Slot = tuple[str, bool, bool, bool]
"""What a source depends on of one parameter: its role, and whether it is optional, keyword-only, variadic."""

Shape = tuple[Slot, ...]
Variant = tuple[Shape, str, str, str, str, bool, bool, bool, bool]
"""What the source of a compiled op depends on: see `compiled_source`."""


class Fast(NamedTuple):
    """A native function that does all that the op's docstring says while `when` holds for native tensors.

    `when` and `weak` are expressions in which `{0}`, `{1}` stand for the op's parameters; `weak` is the condition
    under which the native function may also take something else than a tensor as the last operand, such as a Python
    number.

    Attributes:
        native: the native function.
        when: the condition, empty where the type of the tensors is enough.
        weak: the condition for something else than a tensor, empty where none is allowed.
        plain: the name of a published type (`op_globals.publish_type`) that the last tensor has exactly only if `when`
            holds too, empty if there is none. One test then takes the place of the test of the class and of `when`.
        arguments: the arguments of the native call, in which `{0}`, `{1}` stand for the op's parameters, and with which
            it returns no scalar, as `{0}, {1}, out=...`; empty if they are the parameters themselves.
        whole: whether the op itself takes the tensors for which the condition does not hold, without a conversion.
    """

    native: Callable[..., Any]
    when: str
    weak: str = ""
    plain: str = ""
    arguments: str = ""
    whole: bool = False


def fast(
    native: Callable[..., Any],
    when: str,
    weak: str = "",
    *,
    plain: str = "",
    arguments: str = "",
    whole: bool = False,
) -> Callable[[F], F]:
    """Returns a decorator for a backend's op: compiled ops test the condition and then call `native` directly.

    Args:
        native: the function of the library, called with the operands in the declared order.
        when: the condition for a call with tensors, an expression in which `{0}` and `{1}` stand for the operands; ""
            where the class of the tensors is enough.
        weak: the condition for a call whose last operand is not a tensor but a Python number; "" allows none.
        plain: the name of a published type that the last tensor has only if `when` holds, so that one test is enough;
            "" if there is none.
        arguments: the arguments of the native call, as source in which `{0}` and `{1}` stand for the parameters, and
            with which it returns no scalar; "" for the parameters themselves.
        whole: whether the decorated function takes native tensors without a conversion where `when` does not hold.
    """

    def set_fast(function: F) -> F:
        function.__fast__ = Fast(native, when, weak, plain, arguments, whole)  # type: ignore[attr-defined]
        return function

    return set_fast


def fast_of(spec: OpSpec, backend: Any) -> Fast:
    """Returns what a backend runs for an op: the native function, and the condition under which it runs alone."""
    implementation = backend.implementation(spec)
    return getattr(implementation, "__fast__", None) or Fast(implementation, "")


def parameter_names(spec: OpSpec) -> tuple[str, ...]:
    """Returns the names of the parameters in the order of the signature: `*args` before those by keyword only."""
    declared_code = spec.declared.__code__
    positional_end, keyword_end = declared_code.co_argcount, declared_code.co_argcount + declared_code.co_kwonlyargcount
    starred_names = (
        declared_code.co_varnames[keyword_end : keyword_end + 1] if declared_code.co_flags & VARIADIC else ()
    )
    return (
        *declared_code.co_varnames[:positional_end],
        *starred_names,
        *declared_code.co_varnames[positional_end:keyword_end],
    )


def role_free_shape(spec: OpSpec) -> Shape:
    """Returns how each parameter of an op is passed, without its role, so that no annotation is read."""
    declared_code = spec.declared.__code__
    signature_shape: Shape = (("", False, False, False),) * declared_code.co_argcount
    signature_shape += (("", False, False, True),) * bool(declared_code.co_flags & VARIADIC)
    return signature_shape + (("", False, True, False),) * declared_code.co_kwonlyargcount


def source_arguments(spec: OpSpec, backend: Any) -> Variant:
    """Returns the arguments of `compiled_source` for an op on a backend."""
    signature_shape = tuple((p.role, p.optional, p.keyword_only, p.variadic) for p in spec.parameters)
    fast_form = fast_of(spec, backend)
    is_wrapped = backend.wraps and (fast_form.whole or not fast_form.arguments) and spec.returns not in NEVER_SCALARS
    flags = fast_form.whole, backend.exact_type, is_wrapped, spec.takes_callable
    return signature_shape, fast_form.when, fast_form.weak, fast_form.plain, fast_form.arguments, *flags


def native_names(spec: OpSpec, backend: Any) -> dict[str, str]:
    """Returns the name that each placeholder of a compiled op stands for, such as `numpy_sin` for `native`."""
    global_by_native_name = {f"native_{global_name}": f"{backend.prefix}_{global_name}" for global_name in GLOBALS}
    global_by_native_name |= {
        "native": f"{backend.prefix}_{spec.name}",
        "native_again": f"{backend.prefix}__{spec.name}",
    }
    global_by_native_name |= {"native_whole": f"{backend.prefix}_whole_{spec.name}"}
    return global_by_native_name | {"native_op": spec.name}


def signature_text(shape: Shape) -> str:
    """Returns the text of the parameters after `def`, such as `p0, p1, *, p2`."""
    declarations: list[str] = []
    has_star = False
    for i, (_, _, keyword_only, variadic) in enumerate(shape):
        if keyword_only and not has_star:
            declarations.append("*")
        has_star = has_star or keyword_only or variadic
        declarations.append(f"*p{i}" if variadic else f"p{i}")
    return ", ".join(declarations)


def forwarded_arguments(shape: Shape) -> str:
    """Returns the text of the arguments by which a call passes all parameters on: `p0, p1, p2=p2`."""
    return ", ".join(
        f"*p{i}" if variadic else f"p{i}=p{i}" if keyword_only else f"p{i}"
        for i, (_, _, keyword_only, variadic) in enumerate(shape)
    )


def _arguments_with_tensors(signature_shape: Shape, tensor_positions: Sequence[int]) -> str:
    """Returns the text of the arguments of a call in which its tensor replaces each cell (`Parameter`).

    Not `p0.value`, which follows the active backend: a namespace may run the op of another one.
    """
    expression_by_placeholder = {
        f"p{i}": f"(p{i}.current_tensor(native_bound) if p{i}.__class__ is parameter else p{i})"
        for i in tensor_positions
    }
    expressions = []
    for argument_text in forwarded_arguments(signature_shape).split(", "):
        keyword, _, placeholder = argument_text.rpartition("=")
        expressions.append(
            f"{keyword}={expression_by_placeholder.get(placeholder, placeholder)}"
            if keyword
            else expression_by_placeholder.get(placeholder, placeholder)
        )
    return ", ".join(expressions)


def _arguments_tuple(signature_shape: Shape) -> str:
    return (
        "(" + "".join(f"{'*' if variadic else ''}p{i}, " for i, (_, _, _, variadic) in enumerate(signature_shape)) + ")"
    )


UNCALLED_SOURCE = "def template(*args, **kwargs):\n return uncalled.native_op(args, kwargs)\n"
"""The source of an op that was not called yet."""


def looked_up_source(shape: Shape) -> str:
    """Returns the source of an op that asks at each call which backend is active."""
    return f"def template({signature_text(shape)}):\n return active().native_op({forwarded_arguments(shape)})\n"


def guarded_source(shape: Shape, compiled: str) -> str:
    """Returns a compiled source that first asks whether this thread or task overrides the backend."""
    definition_line, body_lines = compiled.split("\n", 1)
    guard_lines = (
        f" entry = override()\n if entry is not None:\n  return entry[0].native_op({forwarded_arguments(shape)})\n"
    )
    return f"{definition_line}\n{guard_lines}{body_lines}"


def _fast_path_tests(
    signature_shape: Shape, when: str, weak: str, plain: str, exact: bool
) -> tuple[list[int], list[str]]:
    """Returns the positions of the tensors, and the tests of the fast path; see `compiled_source`."""
    placeholders = [f"p{i}" for i in range(len(signature_shape))]

    def class_test(i: int) -> str:
        return f"p{i}.__class__ is native_type"

    def native_test(i: int) -> str:
        test = class_test(i) if exact else f"({class_test(i)} or isinstance(p{i}, native_type))"
        return f"(p{i} is None or {test})" if signature_shape[i][1] else test

    tensor_positions = [
        i
        for i, (role, _, _, starred) in enumerate(signature_shape)
        if role in ("TensorLike", "Operand") and not starred
    ]
    when = when.format(*placeholders) or "True"
    tests = [native_test(i) for i in tensor_positions]
    if plain or weak:
        # Test the common case first; never run isinstance(number, torch.Tensor), it is slow.
        last_index = tensor_positions[-1]
        if plain:
            likely_test, general_test = f"p{last_index}.__class__ is {plain}", f"{native_test(last_index)} and ({when})"
        else:
            likely_test, general_test = (
                f"{class_test(last_index)} and ({when})",
                f"isinstance(p{last_index}, native_type) and ({when})",
            )
        alternative_tests = (likely_test, weak.format(*placeholders), general_test if plain or not exact else "")
        tests[-1] = f"({' or '.join(filter(None, alternative_tests))})"
    elif when != "True":
        tests.append(f"({when})")
    return tensor_positions, tests


def _lines_for_traced(signature_shape: Shape, tensor_positions: Sequence[int]) -> list[str]:
    """Returns the lines of source that pass the call to a tape if one of the first two operands is traced.

    Behind the fast path, so they cost it nothing. `slow` does the same for every substitute at any place.
    """
    run_text = f"run(native_backend, {OP_NAME!r}, {_arguments_tuple(signature_shape)})"
    lines = [f"if p0.__class__ is traced_tensor: return p0.{run_text}"] if tensor_positions[0] == 0 else []
    if tensor_positions[:2] == [0, 1]:
        lines.append(f"if p1.__class__ is traced_tensor and p0.__class__ is native_type: return p1.{run_text}")
    return lines


def compiled_source(
    shape: Shape,
    when: str,
    weak: str,
    plain: str,
    arguments: str,
    whole: bool,
    exact: bool,
    wraps: bool,
    callback: bool,
) -> str:
    """Returns the source of an op for one backend.

    Args:
        shape: the shape of the signature.
        when: the condition of the fast path, empty where the type of the tensors is enough.
        weak: the condition under which the last operand may be something else than a tensor.
        plain: the published type that the last tensor has exactly only if `when` holds, empty if there is none.
        arguments: the arguments of the native call, empty if they are the parameters.
        whole: whether the whole op takes the tensors for which `when` does not hold.
        exact: whether the tensor type has no subclasses.
        wraps: whether native functions may return scalars, of which the backend's `wrap` makes tensors.
        callback: whether the op calls functions of the caller's, whose exceptions pass through.
    """
    placeholders = [f"p{i}" for i in range(len(shape))]
    tensor_positions, tests = _fast_path_tests(shape, "" if whole else when, weak, plain, exact)
    call_text = f"native({arguments.format(*placeholders) or forwarded_arguments(shape)})"
    if whole:
        call_text += f" if {when.format(*placeholders)} else native_whole({forwarded_arguments(shape)})"
    body = ["return " + call_text]
    later_lines = []
    if wraps:
        result_name = next((f"p{i}" for i, (_, _, _, variadic) in enumerate(shape) if not variadic), "result")
        body = [f"{result_name} = {call_text}"]
        # `else`, and `if` in place of a conditional expression, save a jump each (CPython 3.11).
        later_lines = [
            "else:",
            f" if {result_name}.__class__ is native_type: return {result_name}",
            f" return native_wrap({result_name})",
        ]
    conversions = []
    for i, (role, optional, _, variadic) in enumerate(shape):
        if role == "DTypeLike":
            condition = f"if p{i} is not None: " if optional else ""
            conversions.append(f"{condition}p{i} = native_dtypes[p{i}]")
        elif role == "Tensors" or (variadic and role in ("TensorLike", "Operand")):
            conversions.append(f"p{i} = native_tensors(p{i})")
    handler = f"return {'reraise' if callback else 'rescue'}(native_backend, {OP_NAME!r}, {_arguments_tuple(shape)})"
    # On a separate line, `try` would cost an instruction. A condition has to stand on a separate line.
    steps = [f"try: {body[0]}"] if not conversions else ["try:", *(f" {step}" for step in (*conversions, *body))]
    steps += [f"except Exception: {handler}", *later_lines]
    lines = [f"if {' and '.join(tests)}:", *(f" {step}" for step in steps)] if tests else steps
    if tests:
        # These lines follow the test, so calls with native tensors alone do not pay for them. The first operand is
        # rarely a parameter, so it is tested last.
        cell_condition = " or ".join(
            f"p{i}.__class__ is parameter" for i in (*tensor_positions[1:], *tensor_positions[:1])
        )
        lines.append(f"if {cell_condition}: return native_again({_arguments_with_tensors(shape, tensor_positions)})")
        lines += _lines_for_traced(shape, tensor_positions)
        lines.append(f"return slow(native_backend, {OP_NAME!r}, {_arguments_tuple(shape)})")
    return f"def template({signature_text(shape)}):\n" + "".join(f" {line}\n" for line in lines)
