"""Which backend is active: one for the whole process, and overrides that one thread or asyncio task sees.

A `ContextVar` holds the overrides as a linked stack, so leaving a block restores the override around it, whichever
thread or task leaves the block. Calls of ops do not read it, because `torch.compile` cannot trace that read and because
it costs 20 to 30 ns a call, until an override names another backend than that of the process. An override that names
the same one changes nothing until `set_backend` is called while it is alive. Each entry of the stack holds the object
`_ALIVE`, whose reference count says whether an override is alive in any context, copied contexts included.

Each change of the choice is one step (`commits`), so an interruption leaves either the old choice or the new one.

After a block that named another backend the ops stay guarded, because a copied context may outlive the block, until a
`set_backend` finds no override alive. The guard is for the backend of the process: one for the backend that was met
last would save a frame inside the block, but a program that alternates between two backends would exchange codes at
every call. The shared object `_ALIVE` costs nothing; a weak reference to each entry would cost each block 250 ns.
"""

from collections.abc import Callable, Iterable, Iterator
from contextvars import ContextVar
from itertools import chain, compress, repeat
from operator import eq
from sys import getrefcount, modules
from typing import Any

from emberharmony.core import op_globals
from emberharmony.core.dispatch import DISPATCH, SWAP, UNCALLED, Bound, looked_up_steps
from emberharmony.core.registry import complete
from emberharmony.core.state.commits import Step, assignment, commit, steps_if_unchanged
from emberharmony.core.state.scopes import Entry, Scope


class _Process:
    """The backend that is chosen for the process, which all threads share.

    `bound` is None until a backend is chosen, `source` says what chose it, `overridden` whether an override may name
    another backend, and `choose` chooses a backend at the first call of an op; `observers` is what `set_observers` set.
    """

    def __init__(self) -> None:
        self.bound: Bound | None = None
        self.source = ""
        self.overridden = False
        self.choose: Callable[[], tuple[Any, str]] | None = None
        self.observers: tuple[Callable[[Any], Any], Callable[[Any], None]] | None = None


_PROCESS = _Process()
_OVERRIDE: ContextVar[Entry | None] = ContextVar("emberharmony_backend", default=None)

_ALIVE = object()
"""What each entry of `_OVERRIDE` refers to, and nothing else does."""


def _reference_counts() -> Iterator[int]:
    """Yields the number of references to `_ALIVE` at that moment, again and again; only C functions run."""
    return map(getrefcount, repeat(_ALIVE))


_ALONE = next(_reference_counts())
"""What `_reference_counts` yields if there is no entry."""


def _any_alive() -> bool:
    """Returns whether an override is alive; without exchanged codes, whether there ever was one.

    Codes are exchanged only under the global interpreter lock, which keeps the number of references exact.
    """
    return next(_reference_counts()) != _ALONE if DISPATCH == SWAP else _PROCESS.overridden


def _unless_alive(steps: Iterable[Step]) -> Iterator[Step]:
    """Yields each step only if no override is alive at that moment; it is read while the steps run."""
    return compress(steps, map(eq, _reference_counts(), repeat(_ALONE)))


def active() -> Bound:
    """Returns the ops of the active backend; chooses a backend for the process first if it has none."""
    if _PROCESS.overridden:
        entry = op_globals.override()  # not _OVERRIDE.get, so that a backend can make it traceable
        if entry is not None:
            active_ops: Bound = entry[0]
            return active_ops
    return _PROCESS.bound or _choose_first_backend()


def current() -> Any:
    """Returns the active backend object."""
    return active().backend


def is_active(bound: Bound) -> bool:
    """Returns whether these ops are those of the active backend; chooses none for a process that has none."""
    if _PROCESS.overridden:
        entry = op_globals.override()
        if entry is not None:
            return entry[0] is bound or entry[0].backend is bound.backend
    return _PROCESS.bound is bound


def is_overridden() -> bool:
    """Returns whether ops are guarded: whether an override began since the backend of the process was set."""
    return _PROCESS.overridden


def backend_source() -> str:
    """Returns what chose the active backend, such as "set_backend" or the path of the settings file."""
    if _OVERRIDE.get() is not None:
        return "use_backend"
    active()
    return _PROCESS.source


def install_chooser(choose: Callable[[], tuple[Any, str]]) -> None:
    """Installs the function that chooses a backend if an op runs before one was set."""
    _PROCESS.choose = choose


def _choose_first_backend() -> Bound:
    complete()  # waits until a thread that is importing `ops` right now has finished and chosen
    assert _PROCESS.choose is not None, "emberharmony.backend installs the chooser on import"
    backend, source = _PROCESS.choose()
    backend_ops: Bound = backend.bound
    publish_steps = [assignment(_PROCESS, "source", source), assignment(_PROCESS, "bound", backend_ops)]
    # If an override begins after this line, the ops stay looked up, which is slower but right.
    guard_steps = backend_ops._override_lookup_steps() if _PROCESS.overridden else ()
    code_steps = chain(_direct_steps(backend), steps_if_unchanged(_PROCESS, "overridden", True, guard_steps))
    # Another thread may have set a backend in the meantime; do not overwrite it.
    commit(
        steps_if_unchanged(_PROCESS, "bound", None, publish_steps),
        steps_if_unchanged(_PROCESS, "bound", backend_ops, code_steps),
    )
    chosen_bound: Bound | None = _PROCESS.bound
    assert chosen_bound is not None
    return chosen_bound


def switch_backend(backend: Any, source: str) -> None:
    """Makes `backend` the backend of the whole process."""
    commit(switch_steps(backend, source))
    if _PROCESS.observers is not None:
        _PROCESS.observers[1](backend.bound)


def unguard() -> None:
    """Makes guarded ops direct again if no override is alive in any context, as a switch to the same backend would."""
    process_ops = _PROCESS.bound
    if process_ops is not None and _PROCESS.overridden and not _any_alive():
        commit(
            steps_if_unchanged(
                _PROCESS,
                "bound",
                process_ops,
                chain(UNCALLED, _override_steps(process_ops), _direct_steps(process_ops.backend)),
            )
        )


def switch_steps(backend: Any, source: str) -> Iterable[Step]:
    """Returns the steps that make `backend` the backend of the whole process; the caller commits them together."""
    backend_ops = backend.bound
    state_steps = [assignment(_PROCESS, "source", source), assignment(_PROCESS, "bound", backend_ops)]
    direct_steps = _direct_steps(backend)  # may compile all ops, so that they can become guarded
    return chain(UNCALLED, state_steps, _override_steps(backend_ops), direct_steps)


def _override_steps(bound: Bound) -> Iterable[Step]:
    """Returns the steps that set `overridden` to whether an override is alive when they run, and make ops guarded then.

    If one begins between this call and the steps, ops stay as they were before their first call: slower, but right.
    """
    if DISPATCH != SWAP:
        return ()
    set_step, clear_step = (assignment(_PROCESS, "overridden", value) for value in (True, False))
    guard_steps = [*looked_up_steps(), *bound._override_lookup_steps()] if _any_alive() else ()
    return chain([set_step], _unless_alive([clear_step]), steps_if_unchanged(_PROCESS, "overridden", True, guard_steps))


def _direct_steps(backend: Any) -> Iterable[Step]:
    """Returns the steps that make a backend's ops direct; they do nothing if an override is used before they run."""
    backend_ops = backend.bound
    if backend.tracer in modules:
        backend_ops.compile_all()
    return steps_if_unchanged(_PROCESS, "overridden", False, backend_ops._made_direct)


def compile_for_tracer(tracer: str) -> None:
    """Compiles all ops of the backend of the process, if it is one for which this module traces functions."""
    process_ops = _PROCESS.bound
    if process_ops is not None and process_ops.backend.tracer == tracer:
        process_ops.compile_all()


def _note_override() -> None:
    """Makes the ops of the process look for an override at each call, because one is about to begin."""
    process_ops = _PROCESS.bound
    guard_steps = (
        ()
        if process_ops is None
        else steps_if_unchanged(_PROCESS, "bound", process_ops, process_ops._override_lookup_steps())
    )
    commit(looked_up_steps(), [assignment(_PROCESS, "overridden", True)], guard_steps)


class Override(Scope):
    """A block that overrides the backend for this thread or task; `_backend` is None until it is known."""

    __slots__ = ("_backend",)

    _stack = _OVERRIDE

    def __init__(self, backend: Any) -> None:
        super().__init__()
        self._backend = backend

    def __enter__(self) -> Any:
        """Starts the override and returns its backend."""
        backend = self._backend or self._choose_backend()
        backend_ops = backend.bound
        # From here on `set_backend` finds that an override is alive.
        new_entry = backend_ops, _OVERRIDE.get(), self, self._watch, _ALIVE
        if not _PROCESS.overridden and (_PROCESS.bound is not backend_ops or DISPATCH != SWAP):
            _note_override()
        _OVERRIDE.set(new_entry)
        return backend

    def _choose_backend(self) -> Any:
        raise NotImplementedError


def override_entry() -> Entry | None:
    """Returns the topmost entry of the overrides of this thread or task."""
    return _OVERRIDE.get()


def start_override(scope: Override, bound: Any, *kept: Any) -> None:
    """Starts an override by a block that chooses the ops itself, and whose entry keeps further values at its end."""
    new_entry = bound, _OVERRIDE.get(), scope, scope._watch, _ALIVE, *kept
    if not _PROCESS.overridden:
        _note_override()
    _OVERRIDE.set(new_entry)


def exchange_overrides(exchanged: Callable[[Entry], Any]) -> None:
    """Replaces the ops in each override of this thread or task by those that a function returns.

    Args:
        exchanged: returns the ops for an entry.
    """
    entries: list[Entry] = []
    entry = _OVERRIDE.get()
    while entry is not None:
        entries.append(entry)
        entry = entry[1]
    for old_entry in reversed(entries):
        entry = exchanged(old_entry), entry, *old_entry[2:]
    _OVERRIDE.set(entry)


def _enter_observed(scope: Override) -> Any:
    """Starts an override like `Override.__enter__`, whose place it takes while ops are observed."""
    observers = _PROCESS.observers
    new_ops = (scope._backend or scope._choose_backend()).bound
    if observers is not None:
        new_ops = observers[0](new_ops)
    start_override(scope, new_ops)
    return new_ops.backend


def watched_ops(bound: Any) -> Any:
    """Returns ops that report their calls to the watchers of this thread or task; the given ops if it has none."""
    observers = _PROCESS.observers
    return bound if observers is None else observers[0](bound)


_PLAIN_ENTER = Override.__enter__


def set_observers(observers: tuple[Callable[[Any], Any], Callable[[Any], None]] | None) -> None:
    """Sets the functions that choose the ops of overrides while ops are observed; None ends it.

    `Override.__enter__` is exchanged meanwhile, so that a `use_backend` costs nothing more at other times.

    Args:
        observers: one returns the ops that stand in the place of others, the other is called with the ops of a switch.
    """
    enter_block = _PLAIN_ENTER if observers is None else _enter_observed
    commit([assignment(_PROCESS, "observers", observers), assignment(Override, "__enter__", enter_block)])


op_globals.publish(active=active, override=_OVERRIDE.get)
