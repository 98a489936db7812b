"""Tensors that are being differentiated, on MLX, whose arrays do not say so themselves."""

import io
import re
from collections.abc import Callable, Sequence
from contextvars import ContextVar
from typing import Any

import mlx.core as mx

from emberharmony.core.tracing import TELLERS

Arrays = Sequence[mx.array]
_PRIMALS: ContextVar[tuple[mx.array, ...]] = ContextVar("emberharmony_primals", default=())
"""The arrays by which the transforms under way differentiate here, as they are handed to the function."""
_STEPS = frozenset(
    (
        *(
            "StopGradient",
            "Floor",
            "Ceil",
            "Round",
            "FloorDivide",
            "And",
            "Or",
            "LogicalAnd",
            "LogicalOr",
            "LogicalNot",
        ),
        *("Equal", "NaNEqual", "NotEqual", "Greater", "GreaterEqual", "Less", "LessEqual"),
        *("ArgReduce", "ArgSort", "ArgPartition", "SearchSorted"),
    )
)
"""The primitives of MLX's graph whose derivative is zero: nothing before them is differentiated through them."""
_PRIMITIVE = re.compile(r'^\{ (\d+) \[label ="([^"]*)"', re.MULTILINE)
_INPUT = re.compile(r'^"(\w+)" -> (\d+)$', re.MULTILINE)
_OUTPUT = re.compile(r'^(\d+) -> "(\w+)"$', re.MULTILINE)


class OnTapeError(Exception):
    """Tells that MLX cannot transform a function, for a tape differentiates what it computes."""


def is_nested() -> bool:
    """Returns whether a transform of MLX differentiates the function that runs here.

    A second one inside would take from MLX 0.32's arrays the mark that keeps their graph: evaluated later, by an `if`
    or a read, they would be constants to the first.
    """
    return bool(_PRIMALS.get())


def watched(fn: Callable[..., Sequence[Any]], leaves: Arrays) -> list[Any]:
    """Returns what `fn(*leaves)` lists while a transform of MLX differentiates it by `leaves`."""
    token = _PRIMALS.set((*_PRIMALS.get(), *leaves))
    try:
        return list(fn(*leaves))
    finally:
        _PRIMALS.reset(token)


def is_traced(x: mx.array) -> bool:
    """Returns whether a transform of ours under way differentiates by this array, or by one it was computed from.

    MLX keeps the graph of such arrays, evaluated or not, and exports it: that takes 1 µs for each array in it.
    """
    primals = _PRIMALS.get()
    return bool(primals) and mx.issubdtype(x.dtype, mx.inexact) and _depends(x, primals)


def _depends(x: mx.array, primals: Arrays) -> bool:
    text = io.StringIO()
    names = {f"primal{i}": primal for i, primal in enumerate(primals)}
    mx.export_to_dot(text, x, read=x, **names)
    graph = text.getvalue()
    labels = dict(_PRIMITIVE.findall(graph))
    made_by = {array: primitive for primitive, array in _OUTPUT.findall(graph)}
    inputs: dict[str, list[str]] = {}
    for array, primitive in _INPUT.findall(graph):
        inputs.setdefault(primitive, []).append(array)
    waiting = ["read"] if '"read"' in graph else []
    if not waiting:  # it is a primal, and has its name
        return True
    seen = set(waiting)
    while waiting:
        array = waiting.pop()
        if array in names:
            return True
        primitive = made_by.get(array, "")
        if labels.get(primitive, "").partition(" ")[0] in _STEPS:
            continue
        for before in inputs.get(primitive, ()):
            if before not in seen:
                seen.add(before)
                waiting.append(before)
    return False


TELLERS[mx.array] = is_traced
