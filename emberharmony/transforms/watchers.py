"""Watchers of the calls of ops: the calls as they see them, and the watchers of a thread or task."""

from _thread import _local  # threading.local, without the import of threading
from collections.abc import Sequence
from typing import Any

from emberharmony.core import selection
from emberharmony.core.registry import OpSpec
from emberharmony.core.state.scopes import Entry
from emberharmony.transforms.traced_tensor import TracedTensor

WATCHER = 5
"""The place of the watcher in the entry of an observation."""


class WatchedCall:
    """One call of an op, as watchers see it.

    Attributes:
        op: the name of the op.
        spec: its declaration.
        backend: the backend, whose `dtypes`, `bound` and methods a watcher may use.
        args: the positional arguments, converted as the op declares them. In the place of a tensor that a tape traces
            stands its value. They are known until the watchers have seen the result, so a call that is kept holds none.
        kwargs: the keyword arguments.
        path: the module that is running, such as "Net.blocks.0.linear"; "" outside of modules.
        depth: the number of composites around the call.
        outer: the call of the innermost composite around it, or None.
        gradient_of: in the backward pass of a tape, the op whose gradient is being computed, and `path` is the module
            that called that op; otherwise "".
        started: the time by `time.perf_counter` when the op began.
        seconds: the time that the op took, known after it; a lazy library may have computed nothing yet.
        kept: what a watcher keeps for the call, by watcher.
    """

    __slots__ = (
        *("args", "backend", "depth", "gradient_of", "kept", "kwargs"),
        *("outer", "path", "seconds", "spec", "started"),
    )

    spec: OpSpec
    backend: Any
    args: tuple[Any, ...]
    kwargs: dict[str, Any]
    path: str
    depth: int
    outer: "WatchedCall | None"
    gradient_of: str
    started: float
    seconds: float
    kept: dict[Any, Any]

    @property
    def op(self) -> str:
        """The name of the op."""
        return self.spec.name


class Pulled:
    """The gradients of one op, as a tape on a twin computed them in the backward pass.

    Attributes:
        op: the op whose gradient was computed; inside of a composite, the op inside.
        outer: the op of the program that called it: the outermost composite, or the op itself.
        path: the module that called it.
        line: what `Watcher.line_mark` returned when the tape recorded the op.
        backend: the backend.
        arguments: those of the op, where an object with a shape and a dtype stands for a tensor that is not read.
        result: that of the op, or such an object.
        cotangents: the gradients with respect to the result.
        gradients: those with respect to the arguments.
    """

    __slots__ = ("arguments", "backend", "cotangents", "gradients", "line", "op", "outer", "path", "result")

    def __init__(self, place: tuple[str, str, str, Any], backend: Any, node: Any, cotangents: Sequence[Any]) -> None:
        self.op, self.path, self.outer, self.line = place
        self.backend, self.cotangents = backend, cotangents
        self.arguments, self.result = node[2], node[3]
        self.gradients: Sequence[Any] = ()


class Watcher:
    """Something that sees the calls of ops; subclasses define the methods that they need.

    No watcher sees the ops that these methods call. An exception that they raise reaches the caller of the op as it is.

    Attributes:
        backward: whether gradients are computed by the tape on every backend, so that the ops of the backward pass are
            calls too.
        pulls: whether `on_pull` and `on_derivative` are called; the watcher needs no calls of the ops of the rules.
        graphs: whether, with `backward`, the library may differentiate where it keeps a graph whose nodes can be looked
            at (`Probes.look_at_nodes`); `on_graph` is then called in place of them.
        looks_again: whether a function whose gradient cannot be observed runs once before it, for its ops to be calls.

    Example:
        >>> from emberharmony.transforms.observe import Observation, Watcher
        >>> class Names(Watcher):
        ...     def after(self, call, result):
        ...         print("  " * call.depth + call.op, result.shape)
        >>> with Observation(Names()):
        ...     y = ops.square(ops.ones((2, 3)))
        ones (2, 3)
        square (2, 3)
    """

    backward = False
    pulls = False
    graphs = False
    looks_again = False

    def before(self, call: WatchedCall) -> None:
        """Called when an op begins."""

    def after(self, call: WatchedCall, result: Any) -> None:
        """Called when an op has ended, with its result: a tensor, or a tuple or list with tensors."""

    def on_error(self, call: WatchedCall, error: Exception) -> None:
        """Called when an op has raised an error; that of a wrong argument may be raised before the op begins."""

    def takes_programs(self, backend: Any) -> bool:
        """Returns whether the step of an optimizer that works element by element may be calls of `program`.

        Otherwise its ops are calls, which on PyTorch round more often for large parameters.
        """
        return False

    def accepts(self, results: Any, backend: Any) -> bool:
        """Returns whether the results of a program may be used; if not, its ops are called one by one."""
        return True

    def line_mark(self) -> Any:
        """Returns the value of `Pulled.line` for an op that a tape records, such as its line; asked only if `pulls`."""

    def wants_gradients_of(self, op: str) -> bool:
        """Returns whether the watcher wants the gradients of an op."""
        return True

    def on_pull(self, step: Pulled) -> None:
        """Called when a tape has computed the gradients of an op."""

    def on_derivative(self, values: Sequence[Any], gradients: Sequence[Any], backend: Any) -> None:
        """Called with the results of a function that a tape has differentiated, and its gradients."""

    def on_graph(self, loss: Any, backend: Any) -> None:
        """Called with the result of a function before the library itself computes its gradients."""

    def on_return(self, path: str, result: Any) -> None:
        """Called when a module has returned a tree of tensors."""

    def on_end(self) -> None:
        """Called when the block of the observation has ended."""

    def on_note(self, text: str) -> None:
        """Called with a note on the whole, such as that a compiled function runs uncompiled."""

    def on_unseen_calls(self, text: str) -> None:
        """Called with a note before a function runs whose calls cannot be observed."""
        self.on_note(text)


class _Here:
    """The running calls of ops and modules of a thread, and whether a method of a watcher is running.

    `modules` are those that run, `path` that of the innermost one, or of the one whose gradient is being computed.
    `last` is the op that ended last, `gradient_of` the one whose gradient is being computed. `taping` is the number of
    tapes that record. `graph` is None unless the library itself differentiates what runs; it then holds by watcher
    what that notes of the nodes of the library's graph: a list, which is emptied when the gradient is known, or None.
    """

    __slots__ = ("calls", "gradient_of", "graph", "last", "modules", "path", "taping", "telling")

    def __init__(self) -> None:
        self.calls: list[WatchedCall] = []
        self.modules: list[tuple[Any, str]] = []
        self.telling, self.taping = False, 0
        self.graph: dict[Any, Any] | None = None
        self.last = self.gradient_of = self.path = ""


class _Threads(_local):
    """Holds for each thread its running calls, as `_Here`."""

    def __init__(self) -> None:
        self.here = _Here()


THREADS = _Threads()


def watchers() -> Sequence[Watcher]:
    """Returns the watchers of this thread or task, the outermost first."""
    return watchers_in(selection.override_entry())


def watchers_in(entry: Entry | None) -> Sequence[Watcher]:
    """Returns the watchers of a stack of overrides, the outermost first."""
    if entry is not None and entry[1] is None:  # the usual case: one block
        watchers: Sequence[Watcher] = entry[WATCHER:]
        return watchers
    watchers_inner_first: list[Watcher] = []
    while entry is not None:
        watchers_inner_first.extend(entry[WATCHER:])
        entry = entry[1]
    watchers_inner_first.reverse()
    return watchers_inner_first


def tell_watchers(watchers: Sequence[Watcher], method: str, *arguments: Any) -> None:
    """Calls a method of each watcher, and marks an exception that it raises, so that it passes through unchanged."""
    thread = THREADS.here
    was_telling, thread.telling = thread.telling, True
    try:
        for watcher in watchers:
            getattr(watcher, method)(*arguments)
    except Exception as error:
        error.of_watcher = True  # type: ignore[attr-defined]
        raise
    finally:
        thread.telling = was_telling


def values_of(value: Any) -> Any:
    """Returns arguments or a result with each traced tensor replaced by its value."""
    cls = value.__class__
    if cls is TracedTensor:
        while value.__class__ is TracedTensor:
            value = value.value
        return value
    if cls is list or cls is tuple:
        return cls([values_of(item) for item in value])
    if isinstance(value, tuple):  # a named tuple
        return cls(*[values_of(item) for item in value])
    return value
