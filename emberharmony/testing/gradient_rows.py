"""The gradient check of sample rows: all cases of all differentiable rows, with the exceptions that the rows name."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np

from emberharmony.backend.choice import current
from emberharmony.core.errors import UnsupportedOpError
from emberharmony.core.registry import OPS
from emberharmony.rules import LEAVING, REFUSED, RULES
from emberharmony.testing.call import Call
from emberharmony.testing.gradient_check import Problem
from emberharmony.testing.sample import Sample
from emberharmony.testing.verify import DisagreementError

_PROGRAM = """\
from emberharmony.testing.gradient_rows import gradient_calls

row = all_samples()[{op!r}]
call = next(call for call in gradient_calls(row) if call.label == {label!r})
print("error in units of the tolerance:", call.judge(row))
"""


@dataclass(frozen=True)
class GradientCall(Call):
    """A conformance call that checks the derivatives of an op for one case of its sample row.

    Args:
        order: 1 for first derivatives only, 2 for second derivatives too.
        mixed: whether the reverse mode of the forward mode is checked too.
    """

    order: int = 2
    mixed: bool = True

    def judge(self, sample: Sample) -> float:
        """Checks the derivatives of the op on the active backend, and returns the largest error in units of tolerance.

        Raises:
            DisagreementError: if a derivative is wrong, or if the op has no gradient rule and no reason for that.
            Exception: whatever the op raises.
        """
        try:
            return self._largest_error(gradient_function(sample))
        except UnsupportedOpError as error:
            missing_reason = missing_rule_text(sample.op)
            if not missing_reason:
                raise
            raise DisagreementError(missing_reason) from error

    def _largest_error(self, function: Callable[..., Any]) -> float:
        derivative_problem = Problem(
            lambda args, kwargs: function(*args, **kwargs), (self.args, self.kwargs), dtype=self.dtype
        )
        allowed_error, largest_error = derivative_problem.allowed_error(), 0.0
        for check in derivative_problem.checks(self.order, self.mixed):
            largest_error = max(largest_error, check.error / allowed_error)
            if not check.error <= allowed_error:
                message = f"{check.name}: {check} (tolerance {allowed_error:.2g})"
                raise DisagreementError(message, check.error / allowed_error)
        return largest_error

    def program_source(self, sample: Sample) -> str:
        """Returns the source of a Python program that repeats this gradient check."""
        return _PROGRAM.format(op=sample.op, label=self.label)


def missing_rule_text(op: str) -> str:
    """Returns what to do about a primitive that has no gradient rule and is in no list of ops without one; else ""."""
    spec = OPS[op]
    if spec.composite or op in RULES or spec.facts.gradient == "zero" or op in LEAVING or op in REFUSED:
        return ""
    return (
        f"{op} has no gradient rule: add one to emberharmony/rules/{spec.category_path}.py, or say "
        f'@op(gradient="zero") in its declaration and remove `differentiable=True` from its sample row'
    )


def gradient_function(sample: Sample) -> Callable[..., Any]:
    """Returns the function that is differentiated to check the gradient of an op: the op, or what its row names."""
    return sample.gradient.of or OPS[sample.op].function


def gradient_calls(sample: Sample) -> Iterator[Call]:
    """Yields the gradient check of every case of a differentiable row, in float64."""
    if not sample.differentiable:
        return
    gradient_row = sample.gradient
    dtype = "float32" if current().name in gradient_row.single else "float64"
    for i, item in enumerate(gradient_row.cases or sample.cases):
        if i not in gradient_row.skipped:
            derivative_order = 1 if i in gradient_row.once else 2
            host_args = tuple(
                np.asarray(x).tolist() if position in gradient_row.host else x for position, x in enumerate(item.args)
            )
            is_mixed = current().name not in gradient_row.unmixed
            yield GradientCall(
                "gradient", dtype, f"case {i}", host_args, item.kwargs, case=i, order=derivative_order, mixed=is_mixed
            )
