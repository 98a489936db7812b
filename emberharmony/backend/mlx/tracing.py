"""Recognises traced tensors, on MLX, whose arrays carry no mark of being differentiated."""

import io
import re
import weakref
from _thread import _local  # threading.local, without the import of threading
from collections.abc import Callable, Sequence
from contextvars import ContextVar
from typing import Any

import mlx.core as mx

from emberharmony.core.state.scopes import Entry, Scope
from emberharmony.core.tracing import TELLERS

Arrays = Sequence[mx.array]
_PRIMALS: ContextVar[Entry | None] = ContextVar("emberharmony_primals", default=None)
"""The stack of the running transforms; an entry begins with the arrays with respect to which they differentiate."""
_MAPPED: ContextVar[Entry | None] = ContextVar("emberharmony_mapped", default=None)
"""The stack of the running `mx.vmap`."""


class _Compiling(_local):
    """The flag of this thread: whether `ops.compile` traces a function."""

    traced = False


COMPILING = _Compiling()
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
"""The primitives of MLX's graph whose derivative is zero: no gradient reaches the arrays before them."""
# Keep patterns as text: `re` compiles them at their first use.
_PRIMITIVE = r'(?m)^\{ (\d+) \[label ="([^"]*)"'
_INPUT = r'(?m)^"(\w+)" -> (\d+)$'
_OUTPUT = r'(?m)^(\d+) -> "(\w+)"$'


def is_nested() -> bool:
    """Returns whether a transform of MLX is differentiating the function that runs in this thread or task.

    A second transform inside would remove the mark by which the arrays of MLX 0.32 keep their graph. If an `if` or a
    read evaluated them afterwards, the first transform would treat them as constants.
    """
    return _PRIMALS.get() is not None


class _Later(_local):
    """An array that this thread evaluates together with the next ones, unless it has been deleted.

    `ops.backward` puts its loss here. The step of the optimizer evaluates the new parameters, and MLX 0.32 computes
    most of the loss on the way to them; an evaluation of its own would cost 60 µs more.
    """

    array: "Callable[[], mx.array | None] | None" = None

    def put(self, array: mx.array) -> None:
        """Keeps an array by a weak reference, in place of the one before."""
        self.array = weakref.ref(array)

    def evaluate(self, arrays: list[mx.array]) -> None:
        """Evaluates arrays, and with them the array that is kept."""
        weak_reference, self.array = self.array, None
        pending_array = None if weak_reference is None else weak_reference()
        if pending_array is None:
            mx.eval(arrays)
            return
        try:
            mx.eval([*arrays, pending_array])
        except (RuntimeError, ValueError):  # perhaps because a function that MLX traced has leaked it
            mx.eval(arrays)


LATER = _Later()


class Mapping(Scope):
    """A block in which `mx.vmap` maps over the function that runs."""

    __slots__ = ()

    _stack = _MAPPED

    def __enter__(self) -> None:
        self._stack.set((None, self._stack.get(), self, self._watch))


def is_mapped() -> bool:
    """Returns whether `mx.vmap` maps over the function that runs in this thread or task."""
    return _MAPPED.get() is not None


_UNREAD: ContextVar[Entry | None] = ContextVar("emberharmony_unread", default=None)
"""The stack of the blocks in which derivatives are computed where no value can be read."""


class Unread(Mapping):
    """A block in which derivatives are computed inside of `mx.vmap`, where MLX nests them and no value can be read."""

    __slots__ = ()

    _stack = _UNREAD


def is_unread() -> bool:
    """Returns whether derivatives are computed where no value can be read, in this thread or task."""
    return _UNREAD.get() is not None


class _Watching(Scope):
    """A block in which a transform of MLX differentiates by some arrays.

    Args:
        leaves: the arrays, as the differentiated function gets them.
    """

    __slots__ = ("_leaves",)

    _stack = _PRIMALS

    def __init__(self, leaves: Arrays) -> None:
        super().__init__()
        self._leaves = leaves

    def __enter__(self) -> None:
        outer_entry = _PRIMALS.get()
        all_leaves = self._leaves if outer_entry is None else (*outer_entry[0], *self._leaves)
        _PRIMALS.set((all_leaves, outer_entry, self, self._watch))


def run_watched(fn: Callable[..., Sequence[Any]], leaves: Arrays) -> list[Any]:
    """Returns the outputs of `fn(*leaves)` as a list, while a transform of MLX differentiates it by `leaves`."""
    with _Watching(leaves):
        return list(fn(*leaves))


def is_traced(x: mx.array) -> bool:
    """Returns whether a running transform differentiates with respect to this array, or to one it was computed from.

    MLX keeps the graph of such arrays even after they are evaluated. The graph can only be read by exporting it, which
    takes 1 µs for each array in it.
    """
    entry = _PRIMALS.get()
    return entry is not None and mx.issubdtype(x.dtype, mx.inexact) and _depends_on(x, entry[0])


def _depends_on(x: mx.array, primals: Arrays) -> bool:
    """Returns whether `x` is one of `primals` or was computed from one, by MLX's graph in the DOT language."""
    graph_buffer = io.StringIO()
    primal_by_name = {f"primal{i}": primal for i, primal in enumerate(primals)}
    mx.export_to_dot(graph_buffer, x, read=x, **primal_by_name)
    graph_text = graph_buffer.getvalue()
    label_by_primitive = dict(re.findall(_PRIMITIVE, graph_text))
    primitive_by_array = {array_name: primitive for primitive, array_name in re.findall(_OUTPUT, graph_text)}
    inputs_by_primitive: dict[str, list[str]] = {}
    for array_name, primitive in re.findall(_INPUT, graph_text):
        inputs_by_primitive.setdefault(primitive, []).append(array_name)
    pending_nodes = ["read"] if '"read"' in graph_text else []
    if not pending_nodes:  # `x` is a primal, whose name replaced "read"
        return True
    seen_nodes = set(pending_nodes)
    while pending_nodes:
        array_name = pending_nodes.pop()
        if array_name in primal_by_name:
            return True
        primitive = primitive_by_array.get(array_name, "")
        if label_by_primitive.get(primitive, "").partition(" ")[0] in _STEPS:
            continue
        for previous_node in inputs_by_primitive.get(primitive, ()):
            if previous_node not in seen_nodes:
                seen_nodes.add(previous_node)
                pending_nodes.append(previous_node)
    return False


TELLERS[mx.array] = is_traced
