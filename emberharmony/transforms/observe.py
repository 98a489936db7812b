"""Tells watchers of the calls of ops: the one mechanism under `record`, `profile` and other views into a program.

A *twin* (`transforms.twin`) is a backend that stands for another one: each of its implementations tells the watchers of
this thread or task before and after it runs. It is made on first use and kept. An `Observation` is an override, like
`use_backend`, that installs the twin of the active backend; its entry on the stack of overrides also holds the watcher.
So watchers are those of one thread or task, several share one twin, and they end with the block, even if interrupted.
A program that observes nothing runs no code of this module. When the last observation ends, the ops get their codes
back.

A watcher sees:

- Each call of an op, also inside of composites (`depth` says how deep), of the functions that transforms call, and of
  the rules of gradients. Native operators (`x + y` on native tensors) are no calls of ops.
- A composite whether its body runs, or a native function of the backend, or a tape opens it: so the calls of depth 0
  are the same on all backends.
- What an optimizer that works element by element computes, as calls of `program`, or of its ops if a watcher wants
  these (`Watcher.takes_programs`).
- On PyTorch and MLX the backward pass is the library's own and calls no ops. A watcher with `backward = True` makes the
  tape differentiate there too, over the same primitives, unless the nodes of the library's graph suffice (`graphs`).
- Functions compiled by `ops.compile`, which run uncompiled; a note (`Watcher.on_note`) says so.
- The modules that are running (`WatchedCall.path`), by a wrapper of `__call__` that `nn` puts on its classes meanwhile.
"""

import threading
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

from emberharmony.core import selection
from emberharmony.core.state.locations import TRACKERS
from emberharmony.core.state.scopes import Entry, Exit, _leave
from emberharmony.transforms.twin import GRAPH, PLAIN, TAPE, Twin, twin_of
from emberharmony.transforms.watchers import THREADS, WATCHER, tell_watchers, watchers
from emberharmony.transforms.watchers import Pulled as Pulled
from emberharmony.transforms.watchers import WatchedCall as WatchedCall
from emberharmony.transforms.watchers import Watcher as Watcher
from emberharmony.transforms.watchers import values_of as values_of

_LOCK = threading.RLock()
_OPEN: "list[Observation]" = []


def _observed_ops(bound: Any, mode: int) -> Any:
    """Returns ops that do the same as the given ones, on the twin of their backend, and report calls to watchers."""
    if not bound.backend.observable:
        return bound
    twin_backend = twin_of(bound.backend, mode)
    return bound if twin_backend is bound.backend else bound.wrap_ops(twin_backend.bound)


def _gradient_mode(active: Sequence[Watcher]) -> int:
    """Returns how gradients have to be computed for some watchers: `PLAIN`, `GRAPH` or `TAPE`."""
    return max(PLAIN if not watcher.backward else GRAPH if watcher.graphs else TAPE for watcher in active)


def _ops_for(bound: Any) -> Any:
    """Returns the ops that an override installs: those of the twin, if this thread or task has watchers."""
    active_watchers = watchers()
    return _observed_ops(bound, _gradient_mode(active_watchers)) if active_watchers else bound


def _switch_backend(bound: Any) -> None:
    """Lets the observations of this thread or task go on with another backend of the process."""
    is_following = True

    def new_ops_of(entry: Entry) -> Any:
        nonlocal is_following
        is_following = is_following and len(entry) > WATCHER
        return _observed_ops(bound, entry[0].backend.mode) if is_following else entry[0]

    selection.exchange_overrides(new_ops_of)


class Observation(selection.Override):
    """A block in which a watcher sees the calls of this thread or asyncio task; such blocks nest.

    Tasks that start inside of the block inherit it, threads do not.

    Args:
        watcher: the watcher.
    """

    __slots__ = ("watcher",)

    def __init__(self, watcher: Watcher) -> None:
        super().__init__(None)
        self.watcher = watcher

    def __enter__(self) -> Any:
        """Starts the observation and returns the watcher."""
        _begin_block(self)
        mode = _gradient_mode([self.watcher, *watchers()])
        selection.start_override(self, _observed_ops(selection.active(), mode), self.watcher)
        return self.watcher


def _begin_block(block: Observation) -> None:
    with _LOCK:
        _OPEN.append(block)
        if len(_OPEN) == 1:
            selection.set_observers((_ops_for, _switch_backend))
            for tracker in TRACKERS:
                tracker.start()


def _end_block(scope: Observation, kind: object = None, error: object = None, trace: object = None) -> None:
    """Ends the block; the last block that ends takes away all that was installed."""
    _leave(scope, kind, error, trace)
    scope.watcher.on_end()
    with _LOCK:
        if scope in _OPEN:
            _OPEN.remove(scope)
        if _OPEN:
            return
        for tracker in TRACKERS:
            tracker.stop()
        selection.set_observers(None)
    selection.unguard()


if not TYPE_CHECKING:
    Observation.__exit__ = Exit(_end_block)


def is_observing() -> bool:
    """Returns whether ops are observed in any thread."""
    return bool(_OPEN)


def call_module(
    module: Any, call: Callable[..., Any], path_of: Callable[[Any, Any, str], str], args: Any, kwargs: Any
) -> Any:
    """Calls a module, and tells the watchers of this thread or task what it returned.

    Args:
        module: the module.
        call: its `__call__` as it was defined, a function of the module and the arguments.
        path_of: returns the path of a module, given the outermost running module, and the path of the innermost one.
        args: the positional arguments.
        kwargs: the keyword arguments.
    """
    thread = THREADS.here
    modules = thread.modules
    called_watchers = [] if thread.telling or (modules and modules[-1][0] is module) else watchers()
    if not called_watchers or not isinstance(selection.current(), Twin):
        return call(module, *args, **kwargs)
    parent_path = modules[-1][1] if modules else ""
    path = path_of(module, modules[0][0] if modules else module, parent_path)
    depth = len(modules)
    modules.append((module, path))
    outer_path, thread.path = thread.path, path
    try:
        result = call(module, *args, **kwargs)
    finally:
        del modules[depth:]
        thread.path = outer_path
    tell_watchers(called_watchers, "on_return", path, result)
    return result
