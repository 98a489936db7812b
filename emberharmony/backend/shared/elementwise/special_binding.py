"""The parts of the special functions that are the same on the libraries that bind the functions of `special`."""

import functools
import types
from collections.abc import Callable
from typing import Any

from emberharmony.backend.promote import Promotion
from emberharmony.backend.shared.elementwise import (
    special,
    special_bessel,
    special_exponential,
    special_integrals,
    special_modified,
    special_normal,
    special_quantiles,
)
from emberharmony.backend.shared.elementwise.special_derivatives import DERIVATIVES, INNER
from emberharmony.backend.shared.elementwise.special_duals import partial_derivative_of
from emberharmony.core.options import constant

_FUNCTIONS = ("abs", "cos", "exp", "expm1", "floor", "isnan", "log", "log1p", "sin", "sqrt", "sum", "where")
"""What the shared functions call of a library that has NumPy's names, besides `power`."""

_SMOOTH = ("exp", "full_like", "log", "log1p", "sign", "where")
"""What the derivatives call of it, besides the special functions."""


def compute_everywhere(mask: Any, function: Callable[..., Any], *arguments: Any) -> Any:
    """Returns a function of all elements, for libraries in which selecting those of a mask would read the mask."""
    return function(*arguments)


def special_namespace(
    library: Any,
    column: Callable[..., Any],
    entries: Callable[..., Any],
    digits: special_integrals.Digits,
    **others: Any,
) -> types.SimpleNamespace:
    """Returns the namespace of a library's functions with which the shared special functions compute.

    Args:
        library: has functions with NumPy's names.
        column: called as `column(numbers, x)`, returns numbers along an axis in front of those of `x`.
        entries: called as `entries(table, index)`, returns the entries of a table at whole numbers that are floats.
        digits: how many digits the integrals have.
        others: attributes that replace those of the library, or these.
    """
    function_by_name = {
        "column": column,
        "digits": digits,
        "entries": entries,
        "pick": compute_everywhere,
        "picks": False,
    } | others
    power_by_name = {} if "power" in function_by_name else {"power": library.power}
    return types.SimpleNamespace(
        **{name: getattr(library, name) for name in _FUNCTIONS}, **power_by_name, **function_by_name
    )


def special_ops_class(op: Callable[[str], Callable[..., Any]]) -> Any:
    """Returns a class with the special functions of `ops/elementwise` as methods, each made by `op(name)`.

    Args:
        op: returns the function of an op.
    """
    return type("SpecialOps", (), {name: staticmethod(op(name)) for name in DERIVATIVES if name not in INNER})


def smooth_namespace(
    ops: type, library: Any, inner: Callable[[str], Callable[..., Any]], **others: Any
) -> types.SimpleNamespace:
    """Returns the namespace with which the derivatives of special functions compute; it is differentiable itself.

    Args:
        ops: has the special functions, all of which can be differentiated.
        library: has functions with NumPy's names that can be differentiated.
        inner: returns a function of `INNER` by its name.
        others: functions that replace those of the library, and `i0`.
    """
    function_by_name = {name: getattr(library, name) for name in _SMOOTH if name not in others}
    derivative_by_name = {name: inner(name) if name in INNER else getattr(ops, name) for name in DERIVATIVES}
    return types.SimpleNamespace(**derivative_by_name, **function_by_name, **others)


def shared_function_of(name: str) -> Callable[..., Any]:
    """Returns the shared special function of an op's name; it takes a namespace and tensors."""
    if name in INNER:
        base, argument_positions = INNER[name]
        return functools.reduce(partial_derivative_of, argument_positions, shared_function_of(base))
    modules = (
        special,
        special_integrals,
        special_normal,
        special_exponential,
        special_bessel,
        special_quantiles,
        special_modified,
    )
    shared_function: Callable[..., Any] = next(getattr(module, name) for module in modules if hasattr(module, name))
    return shared_function


def promoted_operands(name: str, promotion: Promotion, arguments: tuple[Any, ...]) -> list[Any]:
    """Returns the arguments of a special function as tensors of one real floating dtype.

    Raises:
        UnsupportedOpError: if an argument that has no derivative is being differentiated.
        DTypeError: if one is complex.
    """
    for argument, derivative in zip(arguments, DERIVATIVES[name], strict=False):
        if isinstance(derivative, str):
            constant(derivative, argument)
    tensors = promotion.common(*arguments, inexact=True)
    promotion.refuse(tensors[0], ("complex",))
    return tensors


def partial_derivatives(
    name: str, derivative_namespace: Callable[[], Any], handle_missing: Callable[[str, Any], Any]
) -> list[Callable[..., Any]]:
    """Returns the partial derivatives of an op as functions that take the op's arguments and its result.

    Args:
        name: of the op.
        derivative_namespace: returns the namespace that the derivatives compute with; it may not exist yet.
        handle_missing: the derivative by an argument that has none, called with the name of the argument and the result
            of the op; it raises `no_gradient_error`, or returns NaN on a library that asks for unneeded derivatives.
    """

    def bind_derivative(derivative: Any) -> Callable[..., Any]:
        if isinstance(derivative, str):
            return lambda *known: handle_missing(derivative, known[-1])
        return lambda *known: derivative(derivative_namespace(), *known)

    return [bind_derivative(derivative) for derivative in DERIVATIVES[name]]
