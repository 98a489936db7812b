"""Judgement of two models: which modules are wrong, on which side, and by what evidence."""

import math
from collections.abc import Sequence
from typing import Any

from emberharmony.testing.differences.report import Divergence, Report, Row
from emberharmony.testing.models.alignment import Alignment, Side
from emberharmony.testing.models.backward import Backward, first_parting
from emberharmony.testing.models.evidence import Evidence, evidence
from emberharmony.testing.models.runs import HALF, Model, Runs
from emberharmony.testing.models.spans import Spans
from emberharmony.testing.models.watching import ENTER, EXIT, Event
from emberharmony.testing.models.weights import Unequal
from emberharmony.testing.sample import EPSILON

_EXACT = 1e-9
"""The largest relative difference in float64 for which two formulas count as equal."""

_MARGIN = 8.0
"""Results may differ by this many times the effect of rounding the inputs to float32."""

_PRECISION = 64.0
"""The factor of float32's rounding by which a library's kernels may differ from float64."""


class Judge:
    """Judges the modules of two models, and adds rows and divergences to the report.

    Args:
        report: takes what is found.
        pair: the models with their modules.
        models: the models with their inputs.
        alignment: which modules correspond.
        tensors: the tensors that differ.
        original: "first" or "second", the model that is taken for right where nothing else tells; or "neither".
        tolerance: the margin; None for 8.
    """

    def __init__(
        self,
        report: Report,
        pair: tuple[Side, Side],
        models: tuple[Model, Model],
        alignment: Alignment,
        tensors: Sequence[Unequal],
        original: str,
        tolerance: float | None,
    ) -> None:
        self._report, self._pair, self._models, self._names = report, pair, models, alignment.names
        self._tensors, self._original, self._margin = tensors, original, tolerance or _MARGIN
        self._wrong: set[str] = set()
        self._agreed: set[str] = set()

    def _judge_weights(self) -> None:
        """Reports the tensors that differ, before all calls, except tensors with which modules give equal results."""
        weight_divergences: list[Divergence] = []
        right_forms = {self._difference_key(tensor) for tensor in self._tensors if self._is_right(tensor)}
        for tensor in sorted(self._tensors, key=lambda each: each.may_be_right):
            if tensor.may_be_right and self._difference_key(tensor) in right_forms:
                name = ".".join(filter(None, (tensor.path, tensor.name)))
                self._report.notes.append(f"{name} is {tensor.what} in the other model, and the results are equal")
                continue
            side, reason = tensor.wrong, "the values of the tensor"
            if side is None:
                side, reason = self._port_side(), self._reason_text()
            divergence = self._new_divergence(tensor.path, -1, "weights", side, reason, tensor.other)
            divergence.carried = tensor.share
            name = f"{self._full_path(0, tensor.path)}.{tensor.name}"
            difference_text = f"is {tensor.what}" if tensor.what != "other values" else "has other values"
            blamed_side = self._report.sides[side] if side is not None else self._report.sides[1]
            divergence.message = f"the tensor {name} {difference_text} on {blamed_side}" + self._verdict_text(
                divergence, reason
            )
            weight_divergences.append(divergence)
        self._report.divergences[:0] = weight_divergences

    def _is_right(self, row: Unequal) -> bool:
        """Returns whether modules give equal results although a tensor differs."""
        path = row.within or row.path
        return row.may_be_right and path in self._agreed and path not in self._wrong

    def _difference_key(self, row: Unequal) -> Any:
        """Returns a key for a tensor's difference that is equal for all layers of one class."""
        class_pair = [type(side.modules[path]) for side, path in zip(self._pair, (row.path, row.other), strict=True)]
        return (*class_pair, row.name, row.what, row if row.what == "other values" else None)

    def judge_calls(self, runs: Runs, stop: str) -> None:
        """Judges the calls in the order of the first model, and adds a row for each."""
        spans = Spans()
        shapes_by_event: dict[tuple[str, int], Any] = {}
        for event, stored_hosts in runs.events.items():
            if event.place == ENTER:
                shapes_by_event[event.path, event.call] = tuple(host.shape for host in stored_hosts)
            spans.follow_event(event)
            has_stopped = stop == "first" and bool(self._wrong)
            verdict = self._judge_event(event, spans, runs, has_stopped)
            if event.place == EXIT and not has_stopped:
                self._add_row(event, shapes_by_event.get((event.path, event.call), ()), runs, verdict)
        calls, events = spans.uncompared_calls(False)
        if calls and not self._report.divergences and Event("", 0, EXIT) in runs.apart.alone:
            self._add_formula_divergence(events, calls, runs, math.inf, (0.0, 0.0))
        self._judge_weights()
        self._add_model_error(spans.uncompared_calls(True)[0])

    def _judge_event(self, event: Event, spans: Spans, runs: Runs, has_stopped: bool) -> str:
        """Judges an event, and returns "wrong" if a module is wrong there that was not before.

        Args:
            event: the event.
            spans: the calls whose code gives it.
            runs: what the runs showed.
            has_stopped: whether a module before is wrong, and no other is asked for.
        """
        if event in runs.apart.alone:
            spans.mark_uncompared(event)
            return "not compared"
        distance, largest_noise = runs.apart.largest_share(event), runs.noise.largest_share(event)
        is_exact = all(model.wide for model in self._models)
        in_float64 = is_exact and not runs.has_narrow_array(event)
        largest_allowed = (
            max(_EXACT, self._margin * largest_noise) if in_float64 else max(16 * HALF, _PRECISION * largest_noise)
        )
        error_units = [self._error_in_units(event, runs, side) for side in (0, 1)]
        calls, events = spans.suspects(event)
        wrong_sides = [side for side in (0, 1) if error_units[side] > 1]
        if distance <= largest_allowed and event in runs.apart.shares:
            spans.mark_equal(event)
            self._agreed.update([event.path] if event.place == EXIT else [])
        if any(call.path in self._wrong for call in calls):
            return ""
        if distance > largest_allowed:
            self._wrong.update(call.path for call in calls)
            tensors = {tensor.within or tensor.path for tensor in self._tensors}
            if not has_stopped and not any(call.path in tensors for call in calls):
                self._add_formula_divergence(events, calls, runs, distance, error_units)
            return "wrong"
        if wrong_sides and is_exact and not has_stopped:
            self._wrong.add(calls[0].path)
            self._add_precision_divergence(event, calls[0], wrong_sides, error_units)
            return "wrong"
        return ""

    def _error_in_units(self, event: Event, runs: Runs, side: int) -> float:
        """Returns the error of a model as it is, in units of what rounding allows."""
        own_errors = runs.own[side]
        epsilons = [EPSILON[dtype_name] for dtype_name in own_errors.dtypes.get(event, []) if dtype_name in EPSILON]
        epsilon_scale = max(epsilons, default=2 * HALF) / (2 * HALF)
        allowed_error = _PRECISION * max(runs.noise.largest_share(event), HALF) * epsilon_scale
        return own_errors.largest_share(event) / allowed_error

    def _add_formula_divergence(
        self,
        events: Sequence[Event],
        calls: Sequence[Event],
        runs: Runs,
        distance_apart: float,
        deviations: Sequence[float],
    ) -> None:
        event = events[-1]
        calls_between = [
            [path for event in events for path in paths_by_event.get(event, ())] for paths_by_event in runs.between
        ]
        found_evidence = evidence(self._pair, self._models, self._names, calls, calls_between)
        blamed_event, side, reason_text = found_evidence.blamed, found_evidence.side, found_evidence.why
        if side is None:
            side, reason_text = self._port_side(), self._reason_text()
        divergence = self._new_divergence(blamed_event.path, event.call, "formula", side, reason_text)
        divergence.carried = distance_apart
        divergence.error = dict(zip(self._report.sides, deviations, strict=True))
        divergence.options = found_evidence.options
        call_text = f" before it calls {event.path.rpartition('.')[2]}" if event.path != blamed_event.path else ""
        inner_text = found_evidence.inner or (
            runs.inside[side].get(event, "") if call_text and side is not None else ""
        )
        if inner_text and side is not None:
            self._blame_unmatched_module(divergence, side, inner_text)
            call_text = f", before {self._full_path(0, blamed_event.path)}" if found_evidence.inner else call_text
        side_text = f" is wrong on {divergence.wrong}" if divergence.wrong else " differs"
        difference_text = f"in float64 it differs by {distance_apart:.2g} of the largest element for equal inputs"
        divergence.message = (
            f"{divergence.op}{side_text} in {divergence.other if inner_text and side else divergence.path}{call_text}: "
            f"{difference_text if distance_apart < math.inf else 'its result has another form'}"
            f"{_options_text(found_evidence, self._report.sides)}{self._verdict_text(divergence, reason_text)}"
        )
        self._report.divergences.append(divergence)

    def _blame_unmatched_module(self, divergence: Divergence, side: int, path: str) -> None:
        """Makes a divergence name a module of the wrong side that has no counterpart on the other side."""
        divergence.op, name = self._pair[side].kind(path), self._full_path(side, path)
        if side:
            divergence.other = name
        else:
            divergence.path = name

    def _add_precision_divergence(
        self, event: Event, blamed_event: Event, wrong_sides: Sequence[int], deviations: Sequence[float]
    ) -> None:
        divergence = self._new_divergence(
            blamed_event.path, event.call, "precision", wrong_sides[0], "its own run in float64"
        )
        divergence.wrong = " and ".join(self._report.sides[side] for side in wrong_sides)
        divergence.error = dict(zip(self._report.sides, deviations, strict=True))
        divergence.message = (
            f"{divergence.op} is wrong on {divergence.wrong} in {divergence.path}: it differs from its own run in "
            f"float64 by {max(deviations):.3g} times what rounding allows"
        )
        self._report.divergences.append(divergence)

    def judge_backward(self, runs: Runs) -> None:
        """Judges the gradients of the models, against the order of the calls, up to the first that is wrong."""
        distances = runs.apart
        # A value passed for two arguments has the sum of their gradients, which cannot be compared.
        pair_by_event = {
            event: pair for event, pair in distances.pairs.items() if event.place == EXIT or distances.whole[event]
        }
        first_path_by_path = {second_path: path for path, second_path in self._names.items()}
        names = {path: path for path in self._names}, first_path_by_path
        backward_passes = [
            Backward(model, side, pair_by_event, mapped_names, second)
            for model, side, mapped_names, second in zip(self._models, self._pair, names, (False, True), strict=True)
        ]
        gradients = backward_passes[0].gradients(), backward_passes[1].gradients()
        noisy_gradients = backward_passes[0].gradients(HALF)
        parting = first_parting(list(runs.events), self._pair, self._names, gradients, noisy_gradients, self._margin)
        if parting is None:
            return
        side, reason = self._port_side(), self._reason_text()
        paths = parting.path, self._names[parting.path]
        are_gradients_true = [
            backward_pass.is_parameter_gradient_true(path, parting.name, grads)
            if parting.place is None
            else backward_pass.is_gradient_true(parting.place, grads.by_place[parting.place])
            for backward_pass, path, grads in zip(backward_passes, paths, gradients, strict=True)
        ]
        if wrong_sides := [i for i in (0, 1) if are_gradients_true[i] is False and are_gradients_true[1 - i]]:
            side, reason = wrong_sides[0], "finite differences of its loss"
        divergence = self._new_divergence(parting.path, parting.call, "gradient", side, reason)
        divergence.gradient_of, divergence.carried = divergence.op, parting.share
        verb_text = f" is wrong on {divergence.wrong}" if divergence.wrong else " differs"
        divergence.message = (
            f"the gradient of {divergence.op} with respect to {parting.what}{verb_text} in {divergence.path}: in "
            f"float64 it differs by {parting.share:.2g} of the largest element{self._verdict_text(divergence, reason)}"
        )
        self._report.divergences.append(divergence)

    def _add_model_error(self, calls: Sequence[Event]) -> None:
        """Adds the error of a model that raised one, unless a module before it is wrong.

        Args:
            calls: those whose arguments or results have another form in the other model, which explains the error.
        """
        for side, model in enumerate(self._models):
            if model.error is None:
                continue
            name = self._report.sides[side]
            error_message = f"{type(model.error).__name__}: {model.error}"
            self._report.notes.append(f"the model of {name} raises an error: {error_message}")
            if not self._report.divergences:
                first_path_by_path = {second_path: path for path, second_path in self._names.items()}
                path = model.failed_path
                while path and side and path not in first_path_by_path:
                    path = path.rpartition(".")[0]
                blamed_path = calls[0].path if calls else first_path_by_path.get(path, "") if side else path
                divergence = self._new_divergence(blamed_path, 0, "error", side, "the error")
                error_text = "gives values of another form, so that the model of" if calls else "raises an error on"
                divergence.message = f"{divergence.op} in {divergence.path} {error_text} {name} " + (
                    f"raises an error: {error_message}" if calls else f"alone: {error_message}"
                )
                self._report.divergences.append(divergence)

    def _add_row(self, event: Event, shapes: Any, runs: Runs, verdict: str) -> None:
        share = runs.apart.largest_share(event)
        errors = tuple(self._error_in_units(event, runs, side) for side in (0, 1))
        verdict_text = verdict or ("rounding" if share else "equal")
        call_number = len(self._report.rows)
        module_kind, path = self._pair[0].kind(event.path), self._full_path(0, event.path)
        self._report.rows.append(Row(call_number, module_kind, path, "", shapes, share, errors, verdict_text))

    def _new_divergence(
        self, path: str, call: int, cause: str, side: int | None, why: str, other: str | None = None
    ) -> Divergence:
        wrong_side = "" if side is None else self._report.sides[side]
        return Divergence(
            self._pair[0].kind(path),
            self._full_path(0, path),
            max(call, 0),
            cause,
            wrong=wrong_side,
            judge=why,
            other=self._full_path(1, self._names[path] if other is None else other),
        )

    def _full_path(self, side: int, path: str) -> str:
        model_class = type(self._pair[side].model).__name__
        return f"{model_class}.{path}" if path else model_class

    def _port_side(self) -> int | None:
        return {"first": 1, "second": 0, "neither": None}[self._original]

    def _reason_text(self) -> str:
        return "" if self._original == "neither" else f"the {self._original} model, which is taken for the original"

    def _verdict_text(self, divergence: Divergence, why: str) -> str:
        return f"; judged by {why}" if why else "; nothing tells which side is wrong"


def _options_text(found_evidence: Evidence, names: Sequence[str]) -> str:
    option_texts = [
        f"{name} is {a!r} on {names[0]} and {b!r} on {names[1]}" for name, (a, b) in found_evidence.options.items()
    ]
    return f"; {', '.join(option_texts[:4])}" if option_texts else ""
