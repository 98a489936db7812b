"""The check "nan": which op made the first NaN or infinity, forwards and backwards.

An op is at fault if its result is not finite although its arguments are. A probe of each result, one number, says
whether that has to be looked into: at once ("op"), or for many ops together ("step"), where reading a number is dear.
The ops of the program are judged, and not those inside of composites, which may make an infinity and mask it. Backwards
it is the same with the gradients of each op.

On PyTorch the gradient by the tape takes 1.8 times the step of a small MLP. So PyTorch computes it: while the function
runs, the check notes for each op the node of the graph that made its result, and before the engine runs each node gets
a hook, but for those of ops that make no NaN of finite numbers or only change shapes. The tape still differentiates
where hooks would miss something: in other transforms, within another gradient, on accelerators, whose hooks run in
other threads, with `every="step"` and with `judge="used"`.
"""

import sys
from collections.abc import Sequence
from functools import partial
from math import isfinite
from typing import Any

from emberharmony.core.registry import OPS
from emberharmony.core.selection import Override
from emberharmony.transforms.checks.causes import Faulty, likely_cause
from emberharmony.transforms.checks.findings import Finding, Findings, place_text
from emberharmony.transforms.checks.safe import is_safe, is_safe_backward
from emberharmony.transforms.logs.lines import line_text, user_line
from emberharmony.transforms.observe import Observation, Pulled, WatchedCall, Watcher, values_of
from emberharmony.transforms.watchers import THREADS

_MOST = 4096
"""So many results wait for one evaluation at most, because their memory waits with them."""

READS = frozenset(("eval", "synchronize", "to_numpy", "host_call"))
INEXACT = ("float", "complex")
_NUMBERS = frozenset((int, float, bool, complex, str, type(None)))


class _Case:
    """A call of an op, or of its gradient rule, and the values that it made."""

    __slots__ = ("arguments", "backend", "backward", "keywords", "line", "op", "outer", "path", "results")

    def __init__(self, op: str, outer: str, path: str, line: Any, backend: Any, arguments: Any, results: Any) -> None:
        self.op, self.outer, self.path, self.line, self.backend = op, outer, path, line, backend
        self.arguments, self.results = arguments, results
        self.keywords: dict[str, Any] = {}
        self.backward = False


class NonFinite:
    """The check "nan", which finds the op that made the first NaN or infinity.

    Args:
        findings: what gets the findings.
        every: "op" or "step"; None chooses by the backend.
        used: whether a NaN is a finding only when the loss, a gradient or a value that is read is not finite.
        infinities: whether infinities are findings.
    """

    def __init__(self, findings: Findings, every: str | None, used: bool, infinities: bool) -> None:
        self._findings, self._every, self._used, self._infinities = findings, every, used, infinities
        self._backend: Any = None
        self._later = False
        self._waiting: list[tuple[Any, _Case]] = []
        self._births: dict[int, tuple[Finding, Any]] = {}
        self._last: Finding | None = None
        self._entry: tuple[_Case, str] | None = None
        self.running_again = False
        """Whether a composite runs again to find the op inside, which is not to be checked."""

    def before(self, call: WatchedCall) -> None:
        """Checks the results that wait, before an op that reads values, in the evaluation of that op."""
        if call.spec.name not in READS:
            return
        needed_tensors = _tensors(call.args, call.backend.tensor_type)
        self.flush(needed_tensors if call.spec.name == "eval" else ())
        if self._used and call.spec.name == "to_numpy":
            self._report_first_nonfinite_used(needed_tensors, call.backend)

    def after(self, call: WatchedCall, result: Any) -> bool:
        """Checks the result of an op of the program, and returns whether it surely holds only finite numbers."""
        spec, backend = call.spec, call.backend
        if is_safe(spec) and not self._used:
            return False
        if result.__class__ is backend.tensor_type:
            if backend.kinds[result.dtype] not in INEXACT:
                return True
            if not self._waits_for_step(backend) and isfinite(backend.probe(result)):
                return True
            results = [result]
        else:
            results = _inexact_tensors(result, backend)
        if results:
            case = _Case(spec.name, spec.name, call.path, None, backend, call.args, results)
            case.keywords = call.kwargs
            self._check_results(case)
        return False

    def note_node(self, notes: dict[Any, Any], call: WatchedCall, result: Any, finite: bool, line: Any) -> None:
        """Notes which op made a node of the library's graph, so that `watch_graph` can check its gradients.

        Args:
            notes: what is known by node.
            call: the op; those inside of a composite come before it.
            result: its result.
            finite: whether the result holds only finite numbers, so that it explains no other ones.
            line: the user's line; None if the gradients of the op are not to be looked at.
        """
        backend = call.backend
        case_and_count: list[Any] | None = None
        if line is not None and not is_safe_backward(call.spec):
            outer_calls = THREADS.here.calls
            outer_name = outer_calls[0].spec.name if outer_calls else call.spec.name
            case = _Case(call.spec.name, outer_name, call.path, line, backend, call.args, None if finite else result)
            case.keywords = call.kwargs
            case_and_count = [case, 0]
        for tensor in (result,) if result.__class__ is backend.tensor_type else _tensors(result, backend.tensor_type):
            node = backend.node_of(tensor)
            if node is not None:
                notes.setdefault(node, case_and_count)

    def watch_graph(self, loss: Any, notes: dict[Any, Any], backend: Any) -> None:
        """Checks the loss, and, while the library computes them, the gradients of each op noted by `note_node`."""
        self._check_loss(loss, backend)

        def make_hook(note: list[Any]) -> Any:
            note[1] += 1
            return partial(self._check_node_gradients, note)

        backend.look_at_nodes(loss, notes, make_hook)
        for note in filter(None, notes.values()):
            if not note[1]:
                note.clear()

    def _check_node_gradients(self, note: list[Any], gradients: Sequence[Any], cotangents: Sequence[Any]) -> None:
        """Reports the op of a node of the library's graph if the gradients that it computed are not finite.

        Args:
            note: what is known of the node; empty when the gradient that it was noted for is known.
            gradients: those with respect to the arguments of the node.
            cotangents: those with respect to its results.
        """
        if not note:
            return
        origin = note[0]
        note[1] -= 1
        if not note[1]:
            note.clear()
        backend = origin.backend
        tensors = [gradient for gradient in gradients if gradient is not None]
        if _are_finite(tensors, backend):
            return
        present_cotangents = [cotangent for cotangent in cotangents if cotangent is not None]
        arguments = origin.arguments, origin.results, present_cotangents
        case = _Case(
            origin.op, origin.outer, origin.path, origin.line, backend, arguments, _inexact_tensors(tensors, backend)
        )
        case.keywords, case.backward = origin.keywords, True
        thread = THREADS.here
        was_telling, thread.telling = thread.telling, True
        try:
            self._report_if_at_fault(case)
        finally:
            thread.telling = was_telling

    def _waits_for_step(self, backend: Any) -> bool:
        """Returns whether results are not checked at once, but together, in one evaluation for each step."""
        if backend is not self._backend:
            self._backend = backend
            self._later = backend.computes_later() if self._every is None else self._every == "step"
        return self._later

    def takes_programs(self, backend: Any) -> bool:
        """Returns whether a program may run as one call, whose results are checked when it has ended."""
        return not (self._used or self._waits_for_step(backend))

    def accepts(self, results: Any, backend: Any) -> bool:
        """Returns whether all numbers that a program has computed are finite."""
        return _are_finite(_tensors(results, backend.tensor_type), backend)

    def wants_gradients_of(self, op: str) -> bool:
        """Returns whether the gradients of an op may not be finite."""
        return self._used or not is_safe_backward(OPS[op])

    def check_pulled_op(self, step: Pulled) -> None:
        """Reports an op if the gradients that its rule computed are not finite."""
        if not self._waits_for_step(step.backend) and _are_finite(step.gradients, step.backend):
            return
        results = _inexact_tensors(step.gradients, step.backend)
        if results:
            arguments = step.arguments, step.result, step.cotangents
            case = _Case(step.op, step.outer, step.path, step.line, step.backend, arguments, results)
            case.backward = True
            self._check_results(case)

    def check_derivative(self, values: Sequence[Any], gradients: Sequence[Any], backend: Any) -> None:
        """Checks a loss, and its gradients too if only used numbers count."""
        if self._used:
            self.flush()
            self._report_first_nonfinite_used([*_tensors(values, backend.tensor_type), *gradients], backend)
            return
        self._check_loss(values, backend)

    def _check_loss(self, values: Any, backend: Any) -> None:
        losses = _inexact_tensors(values, backend)
        if losses:
            self._check_results(_Case("", "", "", user_line(sys._getframe(1)), backend, (), losses))

    def _check_results(self, case: _Case) -> None:
        backend = case.backend
        if not self._waits_for_step(backend):
            for result in case.results:
                if backend.failures((backend.probe(result),)):
                    self._report_if_at_fault(case)
                    return
            return
        if case.line is None:
            case.line = user_line(sys._getframe(3))
        for result in case.results:
            self._waiting.append((backend.probe(result), case))
        if len(self._waiting) >= _MOST:
            self.flush()

    def flush(self, needed_tensors: Sequence[Any] = ()) -> None:
        """Checks all results that wait, in one evaluation."""
        waiting_checks, self._waiting = self._waiting, []
        if not waiting_checks:
            return
        last_case: _Case | None = None
        for i in sorted(waiting_checks[0][1].backend.failures([probe for probe, _ in waiting_checks], needed_tensors)):
            case = waiting_checks[i][1]
            if case is not last_case:
                last_case = case
                self._report_if_at_fault(case)

    def forget_results(self) -> None:
        """Drops the results that wait, because the block ends by an error."""
        self._waiting.clear()
        self._births.clear()

    def _report_if_at_fault(self, case: _Case) -> None:
        """Reports an op whose result is not finite, unless its arguments were not finite either.

        Raises:
            NonFiniteError: if it is, and the policy says so.
        """
        contents = [case.backend.tally(result) for result in case.results]
        nonfinite_result = next((x for x in contents if x.nan), None) or next((x for x in contents if x.infinite), None)
        if nonfinite_result is None:  # the sum of finite numbers overflowed
            return
        if not case.op:
            self._report_nan_loss(case, nonfinite_result)
            return
        contents_by_operand = _operand_contents(case)
        operands = contents_by_operand.values()
        is_inherited = any(x.nan for x in operands) or (not nonfinite_result.nan and any(x.infinite for x in operands))
        if is_inherited or not (nonfinite_result.nan or self._infinities):
            if self._used:
                self._pass_on_finding(case)
            elif nonfinite_result.nan and self._entry is None:
                case.line = case.line or user_line(sys._getframe(2))
                self._entry = case, ", ".join(name for name, x in contents_by_operand.items() if x.nan)
            return
        self.running_again = True
        try:
            finding = _make_finding(case, nonfinite_result, contents_by_operand)
        finally:
            self.running_again = False
        if not self._used:
            self._findings.add(finding)
            return
        self._last = finding
        for result in case.results:
            self._births[id(result)] = finding, result

    def _report_nan_loss(self, case: _Case, contents: Any) -> None:
        """Reports a loss that is NaN although no op made a NaN: an operator or a library did, or it was in the data."""
        (first, nan_names), self._entry = self._entry or (case, ""), None
        if self._findings or not contents.nan:
            return
        line = line_text(first.line)
        origin = f"{first.op}() got the first one, in {nan_names}{place_text(first.path, line)}" if nan_names else ""
        self._findings.add(
            Finding(
                "nan",
                first.op,
                f"the loss on backend {case.backend.name!r} is NaN, and no op made it: "
                f"{origin or 'no op has seen it'}; it was in the data or in a parameter, or an operator "
                f"(x / y) or a function of the library made it, which the check does not see: write these as ops",
                first.path,
                line,
                case.backend.name,
            )
        )

    def _pass_on_finding(self, case: _Case) -> None:
        """Notes that the results of an op have the finding of an argument that is not finite."""
        tensors = _tensors((case.arguments, *case.keywords.values()), case.backend.tensor_type)
        finding_and_result = next((self._births[id(x)] for x in tensors if id(x) in self._births), None)
        if finding_and_result is not None:
            for result in case.results:
                self._births[id(result)] = finding_and_result[0], result

    def _report_first_nonfinite_used(self, tensors: Sequence[Any], backend: Any) -> None:
        """Reports the op that made the first NaN or infinity which a used tensor contains."""
        for tensor in _inexact_tensors(tensors, backend):
            if self._last is None or not backend.failures((backend.probe(tensor),)) or backend.tally(tensor).finite:
                continue
            finding_and_result = self._births.get(id(tensor))
            finding = self._last if finding_and_result is None else finding_and_result[0]
            self._births.clear()
            self._last = None
            self._findings.add(finding)
            return


class _First(Watcher):
    """Finds the first op inside of a composite whose result is not finite although its arguments are."""

    def __init__(self) -> None:
        self.op = ""

    def after(self, call: WatchedCall, result: Any) -> None:
        if self.op or not call.depth:
            return
        results = _inexact_tensors(values_of(result), call.backend)
        contents = [call.backend.tally(x) for x in results]
        case = _Case(call.op, "", "", None, call.backend, call.args, results)
        if any(not x.finite for x in contents) and all(x.finite for x in _operand_contents(case).values()):
            self.op = call.op


def _inner_op_at_fault(case: _Case) -> str:
    """Returns which op inside of a composite is at fault, for which the body runs again; "" if that is not known."""
    spec = OPS[case.op]
    if case.backward or not spec.composite or "random" in spec.category or spec.takes_callable:
        return ""
    thread, finder = THREADS.here, _First()
    saved_state = thread.telling, thread.calls
    thread.telling, thread.calls = False, []
    try:
        with Override(case.backend.without_watchers), Observation(finder):
            case.backend.body_of(spec)(*case.arguments, **case.keywords)
    except Exception:  # noqa: BLE001  (the op itself has run; only a part of the message is missing)
        return ""
    finally:
        thread.telling, thread.calls = saved_state
    return finder.op


def _make_finding(case: _Case, tally: Any, operands: dict[str, Any]) -> Finding:
    """Returns the finding about an op that is at fault."""
    backend, spec = case.backend, OPS[case.op]
    position, nonfinite_count = (tally.first_nan, tally.nan) if tally.nan else (tally.first_infinite, tally.infinite)
    value_kind = "NaN" if tally.nan else "infinity" if nonfinite_count == 1 else "infinities"
    location_text = f", first at {position}" if position else ""
    dtype_name = backend.dtype_of(case.results[0]).name
    cause = likely_cause(Faulty(case.op, operands, bool(tally.nan), dtype_name, case.backward))
    inner_op = _inner_op_at_fault(case)
    inner_text = f"; {inner_op}() made it inside" if inner_op else ""
    op_text = f"the gradient of {spec.name}()" if case.backward else f"{spec.name}()"
    op_text += f" inside of {case.outer}()" if case.outer != case.op else ""
    user_line_of_case = case.line or user_line(sys._getframe(3))
    line = line_text(user_line_of_case)
    has_infinite = any(x.infinite for x in operands.values())
    inputs_text = "its inputs hold infinities and no NaN" if has_infinite else "inputs are finite"
    finding_text = (
        f"{op_text} on backend {backend.name!r} made {nonfinite_count} {value_kind} of {tally.size}{location_text}"
        f"{': ' + cause if cause else ''}{inner_text}{place_text(case.path, line)}; {inputs_text}"
    )
    return Finding(
        "nan",
        case.outer if case.backward else case.op,
        finding_text,
        case.path,
        line,
        backend.name,
        case.backward,
        case.op if case.outer != case.op else inner_op,
    )


def _operand_contents(case: _Case) -> dict[str, Any]:
    """Returns how many NaN, infinities, zeros and negative numbers each argument of an op holds, by name."""
    arguments: Any = case.arguments
    content_by_name: dict[str, Any] = {}
    names = _parameter_names(case.op)
    if case.backward:
        arguments, result, cotangents = case.arguments
        _add_contents(content_by_name, "the result", result, case.backend)
    for i, argument in enumerate(arguments):
        _add_contents(
            content_by_name, names[min(i, len(names) - 1)] if names else f"argument {i}", argument, case.backend
        )
    for name, argument in case.keywords.items():
        _add_contents(content_by_name, name, argument, case.backend)
    if case.backward:
        _add_contents(content_by_name, "the incoming gradient", list(cotangents), case.backend)
    return content_by_name


def _parameter_names(op: str) -> list[str]:
    return [parameter.name for parameter in OPS[op].parameters]


def _add_contents(contents: dict[str, Any], name: str, value: Any, backend: Any) -> None:
    """Counts the elements of floating tensors and numbers in an argument that are NaN, infinite, zero or negative."""
    while name in contents:
        name += "'"
    if isinstance(value, float):
        contents[name] = backend.tally(value)
    elif isinstance(value, backend.tensor_type):
        if backend.kinds[value.dtype] in INEXACT:
            contents[name] = backend.tally(value)
    elif isinstance(value, (list, tuple)):
        for i, item in enumerate(value):
            _add_contents(contents, name if len(value) == 1 else f"{name}[{i}]", item, backend)


def _tensors(values: Any, tensor_type: type) -> list[Any]:
    """Returns the native tensors in nested lists, tuples and dictionaries."""
    if values.__class__ is tensor_type:
        return [values]
    if isinstance(values, dict):
        values = list(values.values())
    if not isinstance(values, (list, tuple)):
        return [values] if isinstance(values, tensor_type) else []
    tensors: list[Any] = []
    for item in values:
        if item.__class__ is tensor_type:
            tensors.append(item)
        elif item.__class__ not in _NUMBERS:
            tensors += _tensors(item, tensor_type)
    return tensors


def _are_finite(tensors: Sequence[Any], backend: Any) -> bool:
    """Returns whether the elements of tensors are surely finite; false if one of the values is of another type."""
    tensor_type, kinds, probe = backend.tensor_type, backend.kinds, backend.probe
    for x in tensors:
        if x.__class__ is not tensor_type or not (kinds[x.dtype] not in INEXACT or isfinite(probe(x))):
            return False
    return True


def _inexact_tensors(values: Any, backend: Any) -> list[Any]:
    """Returns the floating and complex tensors among values, each once."""
    tensor_by_id = {id(x): x for x in _tensors(values, backend.tensor_type) if backend.kinds[x.dtype] in INEXACT}
    return list(tensor_by_id.values())
