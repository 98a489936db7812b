"""Comparison of two runs call by call: the calls are aligned, compared, and judged where they differ."""

import contextlib
import math
from collections import deque
from collections.abc import Callable, Sequence
from difflib import SequenceMatcher
from typing import Any

from emberharmony.testing.differences.arguments import RESULT, Unequal, unequal_arguments
from emberharmony.testing.differences.descent import judge_inner_calls
from emberharmony.testing.differences.judge import GROWTH, ORACLE, Difference, Judge, Judged, NotJudgedError
from emberharmony.testing.differences.measures import distance
from emberharmony.testing.differences.records import Record
from emberharmony.testing.differences.report import Divergence, Report, Row
from emberharmony.testing.differences.runs import OPTIMIZER, Stopped
from emberharmony.testing.differences.spool import Calls, Reader
from emberharmony.testing.sample import EPSILON

_AMPLIFIED = 100.0
"""The growth of a difference in one call above which the report calls it amplified."""

_SHOWN = 5
"""The largest number of differing arguments that a message names."""

_READ = 1000
"""The number of the latest differing numbers that are kept, to recognize them in later arguments and results."""


class Lockstep:
    """Compares the calls of a second run, as they come, with those of the first, which are read from a file.

    Args:
        report: takes what is found.
        first: the calls of the first run.
        backends: of the two sides; None for one that this machine lacks.
        judge: judges the calls.
        keep: returns a call of the second run in a form that may be kept.
        stop: "first" or "all".
        thorough: whether to judge calls whose differences those of their inputs explain.
    """

    def __init__(
        self,
        report: Report,
        first: Calls | Reader,
        backends: Sequence[Any],
        judge: Judge,
        keep: Callable[[Any], Record],
        stop: str,
        thorough: bool = False,
    ) -> None:
        self._report, self._reader, self._backends, self._judge = report, first, backends, judge
        self._keep, self._stop, self._thorough, self._remaining = keep, stop, thorough, Calls()
        self._count = 0
        self._noise = self._most = 0.0
        self._numbers = deque[tuple[Any, Any]](maxlen=_READ)
        self._noted_keys = set[tuple[str, ...]]()
        self._parted_at: int | None = None
        self._decision_text = ""
        self._stopped = False

    def compare_next(self, record: Record) -> None:
        """Compares the next call of the second run with the next call of the first run.

        Raises:
            Stopped: after the first wrong call, if `stop` is "first".
        """
        if self._parted_at is None:
            next_call_number = self._reader.tell()
            next_record = self._reader.next()
            if next_record is not None and _have_same_key(next_record, record):
                self._compare_pair(next_record, record)
                return
            self._parted_at = next_call_number
        self._remaining.add(self._keep(record))

    def finish(self, errors: Sequence[str]) -> None:
        """Compares the calls after the first difference in control flow, and adds the notes to the report.

        Args:
            errors: the errors that the runs raised.
        """
        report = self._report
        if not self._stopped:
            with contextlib.suppress(Stopped):
                self._align_remaining(errors)
        for side, error in zip(report.sides, errors, strict=True):
            if error:
                report.notes.append(f"the run on {side} ended with {error}")
        if self._judge.fallbacks:
            names_text = ", ".join(sorted(self._judge.fallbacks))
            report.notes.append(f"judged by NumPy's backend in float64, without another oracle: {names_text}")

    def _align_remaining(self, errors: Sequence[str]) -> None:
        if self._parted_at is None:
            self._parted_at = self._reader.tell()
        first_keys = list(self._reader.keys(self._parted_at))
        second_keys = list(self._remaining.keys())
        matcher = SequenceMatcher(
            None, [key for _, key in first_keys], [key for _, key in second_keys], len(first_keys) > 2000
        )
        equal_count = 0
        for edit_kind, a, b, c, d in matcher.get_opcodes():
            if edit_kind == "equal":
                equal_count += b - a
            # Gradient rules and optimizers may call other ops on another backend; only other calls are differences.
            elif any(
                not key[2] and key[1] != OPTIMIZER and key[0] != RESULT
                for _, key in (*first_keys[a:b], *second_keys[c:d])
            ):
                next_calls = _call_at(self._reader, first_keys, a), _call_at(self._remaining, second_keys, c)
                extra_side = 1 if edit_kind == "insert" or next_calls[0] is None else 0
                self._note_other_ops(self._count + equal_count, next_calls, extra_side, errors)
                break
        else:
            if bool(errors[0]) != bool(errors[1]) and not self._report.divergences:
                self._note_outside_error(errors)
        for block in matcher.get_matching_blocks():
            for i in range(block.size):
                first_record = self._reader.at(first_keys[block.a + i][0])
                self._compare_pair(first_record, self._remaining.at(second_keys[block.b + i][0]))

    def _note_outside_error(self, errors: Sequence[str]) -> None:
        """Notes that one run raised an error outside of any op."""
        side = self._report.sides[0 if errors[0] else 1]
        note_text = f"the program raises an error on {side} alone, outside of ops: {errors[0] or errors[1]}"
        self._report.divergences.append(Divergence("", "", self._count, "control flow", message=note_text))

    def _note_other_ops(self, call: int, next_calls: Sequence[Record | None], side: int, errors: Sequence[str]) -> None:
        """Notes that the runs call other ops from here on.

        Args:
            call: how many calls are compared before.
            next_calls: the next call on each side; None at the end of its run.
            side: the side whose next call has no counterpart.
            errors: the errors that the runs raised.
        """
        record = next_calls[side]
        assert record is not None
        divergence = Divergence(
            record.op, record.path, call, "control flow", gradient_of=record.gradient_of, line=record.line
        )
        calls = []
        for name, next_call in zip(self._report.sides, next_calls, strict=True):
            if next_call is None:
                calls.append(f"the end on {name}")
            else:
                location = f" ({next_call.line})" if next_call.line not in ("", record.line) else ""
                calls.append(f"{next_call.op}() on {name}{location}")
        reason = self._decision_text or "no result before it differs by more than rounding"
        error_text = "".join(f"; {name} raised {e}" for name, e in zip(self._report.sides, errors, strict=True) if e)
        divergence.message = (
            f"control flow parts at call {call}{_location_text(divergence)}: {', '.join(calls)}; {reason}{error_text}"
        )
        self._report.divergences.append(divergence)
        if self._stop == "first":
            raise Stopped

    def _compare_pair(self, one: Record, other: Record) -> None:
        """Compares the same call of two runs, and adds a row for it to the report."""
        if one.op == RESULT:
            self._compare_results(one, other)
            return
        call, self._count = self._count, self._count + 1
        only_one_raises = bool(one.error) != bool(other.error)
        difference = self._judge.difference(one, other, not (only_one_raises or self._thorough))
        options = unequal_arguments(one, other) if (difference.share or only_one_raises) and not one.gradient_of else []
        unexplained_options = [option for option in options if not self._is_explained(option)]
        if difference.share:
            self._remember_decision(one, other)
        if difference.units <= 1 and not only_one_raises:
            self._report_unequal_options(one, unexplained_options)
            self._add_row(call, one, difference, (None, None), "rounding" if difference.share else "equal")
            return
        is_explained = difference.explained and not unexplained_options
        if not is_explained:
            other.refresh(one)
        argument_distances = _argument_distances(one, other)
        self._note_outside_argument(call, one, other, argument_distances)
        if is_explained:
            self._add_row(call, one, difference, (None, None), "inherited")
            return
        input_difference = max([*argument_distances, *(argument.share for argument in options)], default=0.0)
        self._judge_and_add(call, (one, other), difference, unexplained_options, input_difference)

    def _judge_and_add(
        self, call: int, pair: tuple[Record, Record], difference: Difference, options: Sequence[Unequal], before: float
    ) -> None:
        """Judges a call that differs between two runs on both sides, and adds a row for it to the report.

        Args:
            call: its number.
            pair: it on both sides.
            difference: how the results differ.
            options: the arguments that are no tensors and differ for no reason.
            before: how far the arguments differ.

        Raises:
            Stopped: if a side is wrong, and `stop` is "first".
        """
        one, other = pair
        verdicts = self._judge_pair(one, other)
        side_errors = tuple(None if judgement is None else judgement.error for judgement in verdicts)
        wrong_sides = [i for i in (0, 1) if (verdict := verdicts[i]) is not None and not verdict.error <= 1]
        only_one_raises = bool(one.error) != bool(other.error)
        if only_one_raises and not wrong_sides and not options:
            # If only one side raises an error, and NumPy raises it too, the side that returns a result is wrong.
            wrong_sides = [1 if one.error else 0]
        if wrong_sides:
            self._report_unequal_options(one, options)
            self._add_wrong_divergence(call, pair, wrong_sides, verdicts, difference.share, side_errors)
        elif options:
            self._add_options_divergence(call, one, options, difference.share, side_errors)
            self._add_row(call, one, difference, side_errors, "options")
            return
        elif verdicts[0] is None and verdicts[1] is None and not _have_other_inputs(one, other):
            self._add_unknown_divergence(call, one, difference.share)
        else:
            self._add_amplified_row(call, one, before, difference, side_errors)
            return
        self._add_row(call, one, difference, side_errors, "wrong")
        if self._stop == "first":
            self._stopped = True
            raise Stopped

    def _compare_results(self, one: Record, other: Record) -> None:
        """Compares the values that two runs of a program return, apart from tensors that calls returned."""
        other.refresh(one)
        self._note_outside_argument(self._count, one, other, _argument_distances(one, other))
        unexplained_values = [value for value in unequal_arguments(one, other) if not self._is_explained(value)]
        if unexplained_values:
            largest_share = max(value.share for value in unexplained_values)
            divergence = self._new_divergence(self._count, one, "result", largest_share)
            values_text = ", ".join(value.text(self._report.sides) for value in unexplained_values[:_SHOWN])
            divergence.message = f"the program returns {values_text}"
            self._report.divergences.append(divergence)

    def _is_explained(self, unequal: Unequal) -> bool:
        """Returns whether the difference of two Python numbers follows from differences of earlier results."""
        largest_explained = max(_AMPLIFIED * EPSILON["float32"], GROWTH * self._noise)
        return unequal.share <= largest_explained or unequal.values in self._numbers

    def _report_unequal_options(self, one: Record, options: Sequence[Unequal]) -> None:
        """Notes that the program gives a call other arguments on the two sides, once for each line."""
        for option in options:
            call_text = f"the program calls {one.op}() with {option.text(self._report.sides)}"
            note = f"{call_text} ({one.line})" if one.line else call_text
            if note not in self._report.notes:
                self._report.notes.append(note)

    def _add_options_divergence(
        self, call: int, one: Record, options: Sequence[Unequal], share: float, errors: tuple[float | None, ...]
    ) -> None:
        """Adds that the program gives a call other arguments on the two sides, once for each line."""
        note_key = (one.op, one.path, one.line, *(option.name for option in options))
        if note_key in self._noted_keys:
            return
        self._noted_keys.add(note_key)
        divergence = self._new_divergence(call, one, "options", share, errors)
        divergence.options = {option.name: option.values for option in options}
        options_text = ", ".join(option.text(self._report.sides) for option in options[:_SHOWN])
        divergence.message = (
            f"the program calls {one.op}() with {options_text} at call {call}{_location_text(divergence)}"
        )
        self._report.divergences.append(divergence)

    def _judge_pair(self, one: Record, other: Record) -> list[Judged | None]:
        """Judges both sides of a call; None if NumPy cannot make it."""
        has_other_dtypes = [host.dtype for host in one.results()] != [host.dtype for host in other.results()]
        verdicts = [self._judge_call(record, has_other_dtypes) for record in (one, other)]
        if any(verdict is not None and verdict.by == ORACLE and verdict.error <= 1 for verdict in verdicts):
            # If the oracle clears one side that NumPy's backend blames, the oracle must judge the other side too.
            verdicts = [self._judge.verdict_by_oracle(r) or v for r, v in zip((one, other), verdicts, strict=True)]
        return verdicts

    def _judge_call(self, record: Record, kinds: bool) -> Judged | None:
        try:
            return self._judge.judge(record, kinds)
        except NotJudgedError:
            return None

    def _add_row(
        self, call: int, one: Record, difference: Difference, errors: tuple[float | None, ...], verdict: str
    ) -> None:
        share = difference.share
        if difference.most > self._most:
            self._most = difference.most
        if share < math.inf:
            self._noise = max(self._noise, share)
        argument_shapes = tuple([host.shape for host in one.inputs()])  # a list starts faster than a generator
        self._report.rows.append(
            Row(call, one.op, one.path, one.line, argument_shapes, share, errors, verdict, one.gradient_of)
        )

    def _remember_decision(self, one: Record, other: Record) -> None:
        """Notes a differing result of one number or boolean, because the program may branch on it."""
        results = one.results(), other.results()
        if len(results[0]) == len(results[1]) == results[0][0].size == results[1][0].size == 1:
            numbers = [hosts[0].values().reshape(-1)[0] for hosts in results]
            if numbers[0] != numbers[1]:
                first_side, second_side = self._report.sides
                self._numbers.append((numbers[0].item(), numbers[1].item()))
                self._decision_text = (
                    f"{one.op}() before it gives {numbers[0]} on {first_side} and {numbers[1]} on {second_side}"
                )

    def _new_divergence(
        self, call: int, record: Record, cause: str, share: float, errors: tuple[float | None, ...] = (None, None)
    ) -> Divergence:
        argument_hosts = record.inputs()
        return Divergence(
            record.op,
            record.path,
            call,
            cause,
            line=record.line,
            carried=share,
            error={side: error for side, error in zip(self._report.sides, errors, strict=True) if error is not None},
            shapes=tuple(host.shape for host in argument_hosts),
            dtypes=tuple(host.dtype for host in argument_hosts),
            gradient_of=record.gradient_of,
        )

    def _add_wrong_divergence(
        self,
        call: int,
        pair: tuple[Record, Record],
        wrong_sides: list[int],
        verdicts: Sequence[Judged | None],
        share: float,
        errors: tuple[float | None, ...],
    ) -> None:
        side = wrong_sides[0]
        record, verdict = pair[side], verdicts[side]
        divergence = self._new_divergence(call, record, "error" if record.error else "local", share, errors)
        side_names = self._report.sides
        divergence.wrong = " and ".join(side_names[i] for i in wrong_sides)
        divergence.judge = verdict.by if verdict is not None else "NumPy, which raises an error too"
        inner_calls = None
        if self._backends[side] is not None and not record.error:
            inner_calls = judge_inner_calls(record, self._backends[side], self._judge)
        inner_record = record
        if inner_calls is not None:
            divergence.inside = inner_calls.calls
            if inner_calls.record is not None:
                inner_record = inner_calls.record
                divergence.outer, divergence.op = (record.op, *inner_calls.outer), inner_record.op
                divergence.shapes = tuple(host.shape for host in inner_record.inputs())
                divergence.dtypes = tuple(host.dtype for host in inner_record.inputs())
        divergence.message = _divergence_message(divergence, verdict)
        self._report.divergences.append(divergence)
        if self._report._kept is None:
            inner_record = inner_record.with_tensors([host.copy_in_memory() for host in inner_record.tensors])
            self._report._kept = divergence, inner_record, self._backends[side]

    def _add_unknown_divergence(self, call: int, one: Record, share: float) -> None:
        divergence = self._new_divergence(call, one, "unknown", share)
        divergence.message = (
            f"{one.op}() gives other results for equal inputs at call {call}{_location_text(divergence)}, and NumPy "
            f"cannot make the call, so the side that is wrong is not known"
        )
        self._report.divergences.append(divergence)

    def _note_outside_argument(self, call: int, one: Record, other: Record, before: Sequence[float]) -> None:
        """Notes an argument whose values no op gave, if it differs by much more than all results before."""
        # The coarsest dtype counts, because operators of one library may return a wider dtype than those of another.
        coarsest_epsilon = max((EPSILON.get(host.dtype, 0.0) for host in (*one.inputs(), *other.inputs())), default=0.0)
        argument_pairs = zip(one.inputs(), other.inputs(), strict=False)
        for share, (x, y), a, b in zip(before, argument_pairs, _last_calls(one), _last_calls(other), strict=False):
            # The absolute difference must grow too, because the same difference is a larger share of a small part.
            is_larger = (
                share > _AMPLIFIED * max(self._noise, coarsest_epsilon) and distance(x, y).most > GROWTH * self._most
            )
            if is_larger and min(a, b) < 0:
                self._noise = share
                divergence = self._new_divergence(call, one, "outside", share)
                first_side, second_side = self._report.sides
                side_text = f" on {first_side}" if b >= 0 else f" on {second_side}" if a >= 0 else ""
                last_number = max(-2 - call_number for call_number in (a, b) if call_number < 0)
                is_result = one.op == RESULT
                values_text = "values that the program returns" if is_result else f"values of an argument of {one.op}()"
                end_text = "the end" if is_result else f"call {call}"
                location = f"between call {last_number} and {end_text}" if last_number >= 0 else f"before {end_text}"
                divergence.message = (
                    f"{values_text} come from outside of ops{side_text}, {location}"
                    f"{_location_text(divergence)}, and differ by {share:.2g} of the largest element"
                )
                self._report.divergences.append(divergence)

    def _add_amplified_row(
        self, call: int, one: Record, before: float, difference: Difference, errors: tuple[float | None, ...]
    ) -> None:
        share = difference.share
        if not before:
            self._add_row(call, one, difference, errors, "rounding")
            return
        if not share > _AMPLIFIED * before or not math.isfinite(before):
            self._add_row(call, one, difference, errors, "inherited")
            return
        divergence = self._new_divergence(call, one, "amplified", share, errors)
        divergence.condition = self._judge.condition_number(one)
        divergence.message = (
            f"{one.op}() enlarges a difference {share / before:.2g} times at call {call}{_location_text(divergence)}; "
            f"its condition is {divergence.condition:.2g}"
        )
        self._report.divergences.append(divergence)
        self._add_row(call, one, difference, errors, "amplified")


def _divergence_message(divergence: Divergence, verdict: Judged | None) -> str:
    inner_text = f" inside of {' > '.join(f'{name}()' for name in divergence.outer)}" if divergence.outer else ""
    if verdict is not None and verdict.why:
        reason_text = f": {verdict.why}"
    elif verdict is not None:
        reason_text = f": its error is {verdict.error:.3g} times the allowed one"
    else:
        reason_text = ": it returns where NumPy raises an error"
    gradient_text = f" in the gradient of {divergence.gradient_of}()" if divergence.gradient_of else ""
    location = f"at call {divergence.call}{gradient_text}{_location_text(divergence)}"
    return f"{divergence.op}(){inner_text} is wrong on {divergence.wrong} {location}{reason_text}"


def _location_text(divergence: Divergence) -> str:
    location = f" in {divergence.path}" if divergence.path else ""
    return f"{location} ({divergence.line})" if divergence.line else location


def _call_at(calls: Calls | Reader, keys: Sequence[tuple[Any, Any]], index: int) -> Record | None:
    """Returns the call of a run at an index in a list of keys; None at the end of the list."""
    return calls.at(keys[index][0]) if index < len(keys) and keys[index][1][0] != RESULT else None


def _have_same_key(one: Record, other: Record) -> bool:
    """Returns whether two calls have the same `key`."""
    return one.op == other.op and one.path == other.path and one.gradient_of == other.gradient_of


def _have_other_inputs(one: Record, other: Record) -> bool:
    """Returns whether two calls have other inputs."""
    return len(one.inputs()) != len(other.inputs()) or any(_argument_distances(one, other))


def _argument_distances(one: Record, other: Record) -> list[float]:
    """Returns how far the tensors of the arguments of two calls differ, as shares of the largest elements."""
    return [distance(a, b).share for a, b in zip(one.inputs(), other.inputs(), strict=False)]


def _last_calls(record: Record) -> list[int]:
    return record.seen or [0] * len(record.inputs())
