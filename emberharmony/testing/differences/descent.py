"""Search for the wrong call inside of a wrong composite, which is made again so that its inner calls can be judged."""

import contextlib
from collections.abc import Callable
from contextvars import Context
from typing import Any, NamedTuple

from emberharmony.backend.shared.random_streams import HOST
from emberharmony.core import selection
from emberharmony.core.dtypes import as_dtype
from emberharmony.core.registry import OPS
from emberharmony.testing.differences.judge import Judge, NotJudgedError
from emberharmony.testing.differences.records import Record, decode, to_native
from emberharmony.testing.differences.runs import STREAM, Stopped, Watch, separate_streams
from emberharmony.transforms.observe import Observation, WatchedCall
from emberharmony.transforms.watchers import THREADS

_MOST = 1000


class Inside(NamedTuple):
    """The judged calls inside of a composite op, the first wrong one, and the composites around it."""

    calls: list[tuple[str, float]]
    record: Record | None
    outer: tuple[str, ...]


class _Inner(Watch):
    """A watcher that passes the calls inside of the outermost call to a function, with the composites around them."""

    def __init__(self, tell: Callable[[Record], None]) -> None:
        super().__init__(tell, inside=True)
        self.around: dict[int, tuple[str, ...]] = {}

    def before(self, call: WatchedCall) -> None:
        """Records the arguments of an inner call before its op runs; the outermost call is left out."""
        if call.outer is not None:
            super().before(call)
            outer_call, outer_names = call.outer, list[str]()
            while outer_call.outer is not None:
                outer_names.insert(0, outer_call.spec.name)
                outer_call = outer_call.outer
            record = call.kept.get(self)
            if record is not None:
                self.around[id(record)] = tuple(outer_names)


def judge_inner_calls(record: Record, backend: Any, judge: Judge) -> Inside | None:
    """Returns the calls inside a composite, and which of them is wrong; None if its body calls no ops.

    Args:
        record: the call of the composite.
        backend: the backend on which it is wrong.
        judge: judges the calls.
    """
    op_spec = OPS[record.op]
    if not op_spec.composite:
        return None
    judged_ops: list[tuple[str, float]] = []
    wrong_records: list[Record] = []

    def judge_inner_call(inner: Record) -> None:
        with contextlib.suppress(NotJudgedError):
            error_units = judge.judge(inner).error
            judged_ops.append((inner.op, error_units))
            if not error_units <= 1:
                wrong_records.append(inner)
                raise Stopped
        if len(judged_ops) >= _MOST:
            raise Stopped

    for function in (
        op_spec.function,
        op_spec.declared,
    ):  # the tape runs the body also where the backend has an own definition
        judged_ops.clear()
        inner_watcher = _Inner(judge_inner_call)
        with contextlib.suppress(Stopped, LookupError):
            repeat_call(
                record,
                backend,
                function if function is op_spec.function else _watched_body(inner_watcher, function),
                inner_watcher,
            )
        if wrong_records:
            return Inside(judged_ops, wrong_records[0], inner_watcher.around.get(id(wrong_records[0]), ()))
        if judged_ops:
            break
    return Inside(judged_ops, None, ()) if judged_ops else None


def _watched_body(watch: _Inner, body: Callable[..., Any]) -> Callable[..., Any]:
    """Returns the body of a composite; the watcher sees its calls although no call of an op stands around them."""

    def call_body(*args: Any, **kwargs: Any) -> Any:
        watch.before = super(_Inner, watch).before  # type: ignore[method-assign]
        return body(*args, **kwargs)

    return call_body


def repeat_call(record: Record, backend: Any, function: Callable[..., Any], watch: Watch | None = None) -> Any:
    """Makes a call again on a backend and returns its result.

    Args:
        record: the call.
        backend: the backend.
        function: the op, or the body of a composite.
        watch: sees the calls inside.

    Raises:
        LookupError: if an argument cannot be made again.
    """
    outer_thread = THREADS.here
    THREADS.here = type(outer_thread)()  # while a watcher runs, no watcher sees the calls of this thread
    try:
        return Context().run(_make_call, record, backend, function, watch)  # the fresh context has no watchers
    finally:
        THREADS.here = outer_thread


def _make_call(record: Record, backend: Any, function: Callable[..., Any], watch: Watch | None) -> Any:
    with separate_streams(), selection.Override(backend):
        if record.streams:
            STREAM.get().load_state_dict(record.streams[0])
            HOST.get().load_state_dict(record.streams[1])
        args = decode(record.args, lambda place: to_native(record.tensors[place], backend), as_dtype)
        kwargs = decode(record.kwargs, lambda place: to_native(record.tensors[place], backend), as_dtype)
        with Observation(watch) if watch is not None else contextlib.nullcontext():
            return function(*args, **kwargs)
