"""The context manager of `ops.checked` for the checks that watch the calls of ops."""

import atexit
import contextlib
import os
import sys
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

from emberharmony.core.errors import ArgumentError, EmberError
from emberharmony.core.state.checked_mode import FEW_MOVES, checked, checking, innermost_entry, is_switched_off
from emberharmony.transforms.checks.drift import DeviceMixes, Drift, DTypes, Gradients, Graphs
from emberharmony.transforms.checks.findings import Finding, Findings, place_text
from emberharmony.transforms.checks.nonfinite import INEXACT, READS, NonFinite
from emberharmony.transforms.logs.lines import line_of, line_text, user_line
from emberharmony.transforms.observe import Observation, Pulled, WatchedCall, Watcher
from emberharmony.transforms.watchers import THREADS

LAZY = 1000
"""So many operations may wait on MLX by default."""

WHEN = ("op", "step")
COUNTED = ("born", "used")


class Checker(Watcher):
    """The watcher that runs the checks of a block.

    Args:
        findings: what gets the findings.
        options: those of the block.
    """

    def __init__(self, findings: Findings, options: "CheckOptions") -> None:
        check_names = options.words
        self.findings = findings
        self.backward = self.pulls = self.looks_again = "nan" in check_names
        judges_used_numbers = options.judge == "used"
        self.graphs = self.backward and not judges_used_numbers and options.every != "step"
        self._nonfinite = (
            NonFinite(findings, options.every, judges_used_numbers, options.infinities) if self.backward else None
        )
        self._infinities, self._unseen = self.backward and options.infinities, ""
        factory_by_check: dict[str, Callable[[], Drift]] = {
            "dtype": lambda: DTypes(findings),
            "device": lambda: DeviceMixes(findings),
            "lazy": lambda: Graphs(findings, options.lazy),
            "gradients": lambda: Gradients(findings),
        }
        self._drifts = [make_drift() for word, make_drift in factory_by_check.items() if word in check_names]
        self._since = innermost_entry()
        self._wanted: dict[str, bool] = {}

    def before(self, call: WatchedCall) -> None:
        """Tells the checks that an op of the program begins."""
        if not (self._drifts or call.spec.name in READS):
            return
        if call.outer is not None or call.gradient_of or self._is_off():
            return
        if self._nonfinite is not None:
            self._nonfinite.before(call)
        if self._drifts:
            line = user_line(sys._getframe(2))
            call.kept[self] = line
            for drift in self._drifts:
                drift.before(call, line)

    def after(self, call: WatchedCall, result: Any) -> None:
        """Tells the checks the result of an op of the program, and the node of the library's graph that it made."""
        notes_by_checker = THREADS.here.graph
        is_off, is_finite = self._is_off(), False
        if call.outer is None and not call.gradient_of and not is_off:
            if self._nonfinite is not None:
                is_finite = self._nonfinite.after(call, result)
            if self._drifts and self in call.kept:
                for drift in self._drifts:
                    drift.after(call, result, call.kept[self])
        if notes_by_checker is not None and self._nonfinite is not None:
            graph_notes = notes_by_checker.setdefault(self, {})
            self._nonfinite.note_node(graph_notes, call, result, is_finite, None if is_off else line_of(call.spec.name))

    def on_graph(self, loss: Any, backend: Any) -> None:
        """Tells the check of numbers the graph by which the library is about to compute gradients."""
        assert self._nonfinite is not None, "this check alone asks for graphs"
        self._nonfinite.watch_graph(loss, (THREADS.here.graph or {}).get(self, {}), backend)

    def _is_off(self) -> bool:
        """Returns whether a block inside turned the checks off, or a check itself calls ops."""
        return is_switched_off(self._since) or (self._nonfinite is not None and self._nonfinite.running_again)

    def takes_programs(self, backend: Any) -> bool:
        """Returns whether a program may run as one call, whose results are checked when it has ended."""
        return self._nonfinite is None or self._nonfinite.takes_programs(backend)

    def accepts(self, results: Any, backend: Any) -> bool:
        """Returns whether the numbers of a program are finite; otherwise its ops are called, to find the cause."""
        return self._nonfinite is None or self._is_off() or self._nonfinite.accepts(results, backend)

    def line_mark(self) -> tuple[str, int] | None:
        """Returns the user's line that called the op; None if the gradients of the op are not checked."""
        return None if self._is_off() else user_line(sys._getframe(3))

    def wants_gradients_of(self, op: str) -> bool:
        """Returns whether the gradients of an op may not be finite."""
        is_wanted = self._wanted.get(op)
        if is_wanted is None:
            is_wanted = self._wanted[op] = self._nonfinite is not None and self._nonfinite.wants_gradients_of(op)
        return is_wanted

    def on_pull(self, step: Pulled) -> None:
        """Tells the check of numbers the gradients of an op."""
        if self._nonfinite is not None and step.line is not None and not self._is_off():
            self._nonfinite.check_pulled_op(step)

    def on_derivative(self, values: Sequence[Any], gradients: Sequence[Any], backend: Any) -> None:
        """Looks for NaN in a loss and in the gradients of the parameters."""
        assert self._nonfinite is not None, "this check alone asks for gradients"
        unseen_reason, self._unseen = self._unseen, ""
        self._nonfinite.check_derivative(values, gradients, backend)
        if unseen_reason and not self._is_off():
            self._nonfinite.flush()
            self._check_unseen_gradients(gradients, backend, unseen_reason)

    def on_unseen_calls(self, text: str) -> None:
        """Notes why the ops of the gradient that is computed next cannot be seen."""
        self._unseen = text

    def _check_unseen_gradients(self, gradients: Sequence[Any], backend: Any, reason: str) -> None:
        """Reports NaN or infinities in gradients whose ops were not seen, without the name of an op."""
        contents_of_gradients = [backend.tally(x) for x in gradients if backend.kinds[x.dtype] in INEXACT]
        has_nan = any(x.nan for x in contents_of_gradients)
        if self.findings or not (has_nan or (self._infinities and any(x.infinite for x in contents_of_gradients))):
            return
        line = line_text(user_line(sys._getframe(1)))
        value_kind, backend_name = "NaN" if has_nan else "infinite", backend.name
        finding_text = f"a gradient on backend {backend_name!r} is {value_kind}{place_text('', line)}"
        finding_text += f"; no op can be named: {reason}"
        self.findings.add(Finding("nan", "", finding_text, "", line, backend_name))

    def end_checks(self, failed: bool) -> None:
        """Checks the results that still wait for an evaluation, unless the block ends by an error."""
        if self._nonfinite is not None:
            if failed:
                self._nonfinite.forget_results()
            else:
                self._nonfinite.flush()


class CheckOptions:
    """The options of a block: see `ops.checked`."""

    def __init__(
        self,
        words: frozenset[str],
        policy: str | None,
        every: str | None,
        judge: str,
        infinities: bool,
        lazy: int,
        moves: int | None,
    ) -> None:
        if every is not None and every not in WHEN:
            raise ArgumentError(f"checked() evaluates every {' or '.join(map(repr, WHEN))}, not {every!r}")
        if judge not in COUNTED:
            raise ArgumentError(f"checked() judges numbers that are {' or '.join(map(repr, COUNTED))}, not {judge!r}")
        Findings(policy)
        self.words, self.policy, self.every, self.judge = words, policy, every, judge
        self.infinities, self.lazy, self.moves = bool(infinities), lazy, moves


class Checking(Observation, contextlib.ContextDecorator):
    """A block in which each op is checked after it ran; `ops.checked` makes it.

    Args:
        options: which checks run, and what they do when one fails.
    """

    def __init__(self, options: CheckOptions) -> None:
        super().__init__(Watcher())
        self._options = options
        has_bounds, has_devices = "bounds" in options.words, "device" in options.words
        self._mode = (
            checked(has_bounds or checking(), options.moves if has_devices else None)
            if has_bounds or has_devices
            else None
        )

    def _recreate_cm(self) -> "Checking":
        return Checking(self._options)

    def __enter__(self) -> Findings:
        """Starts the checks and returns the list that their findings come into."""
        findings = Findings(self._options.policy)
        if self._mode is not None:
            self._mode.__enter__()
        self.watcher = Checker(findings, self._options)
        super().__enter__()
        return findings


class _BothExits:
    """The descriptor behind `Checking.__exit__`: it holds those of both blocks, so they end if it is dropped."""

    def __get__(self, scope: Checking | None, kind: type[Checking]) -> Callable[..., None]:
        if scope is None:
            return lambda block, *raised: block.__exit__(*raised)
        leave_observation = Observation.__dict__["__exit__"].__get__(scope, kind)
        leave_mode = None if scope._mode is None else scope._mode.__exit__

        def leave_block(kind: object = None, error: object = None, trace: object = None) -> None:
            leave_observation(kind, error, trace)
            if leave_mode is not None:
                leave_mode(kind, error, trace)
            watcher = scope.watcher
            if isinstance(watcher, Checker):
                watcher.end_checks(error is not None)

        return leave_block


if not TYPE_CHECKING:
    Checking.__exit__ = _BothExits()


def check_this_thread(words: frozenset[str]) -> None:
    """Starts checks that end with the process, in this thread and in the tasks that start in it."""
    checking_block = Checking(CheckOptions(words - {"bounds"}, None, None, "born", True, LAZY, FEW_MOVES))
    leave_block = checking_block.__exit__
    checking_block.__enter__()
    atexit.register(_leave_at_exit, leave_block)


def _leave_at_exit(leave_block: Callable[..., None]) -> None:
    """Leaves a block as the process ends, and makes it fail for what the block found: Python ignores errors there."""
    try:
        leave_block(None, None, None)
    except EmberError as error:
        sys.excepthook(type(error), error.with_traceback(None), None)  # all frames are of the library
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(1)
