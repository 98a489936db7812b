"""The gradient check of sample rows: all cases of all differentiable rows, with the exceptions that `ROWS` lists."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from emberharmony import ops
from emberharmony.backend.choice import current
from emberharmony.core.errors import UnsupportedOpError
from emberharmony.core.registry import OPS
from emberharmony.rules import LEAVING, REFUSED, RULES
from emberharmony.testing.call import Call
from emberharmony.testing.gradient_check import Problem
from emberharmony.testing.sample import Case, Sample, case
from emberharmony.testing.verify import DisagreementError

_TIES = "some elements are equal, so the op is not differentiable there"
_NAN = "a reduction over NaN has the derivative NaN, or none"
_RANK = "the matrix is rank-deficient, and its rank changes nearby"
_PROGRAM = """\
from emberharmony.testing.gradient_rows import gradients

row = all_samples()[{op!r}]
call = next(call for call in gradients(row) if call.label == {label!r})
print("error in units of the tolerance:", call.judge(row))
"""


@dataclass(frozen=True)
class GradientRow:
    """The exceptions for one op: by default the op itself is differentiated, in all cases of its sample row.

    Args:
        of: the function that is differentiated instead of the op.
        cases: the cases that replace those of the sample row.
        skipped: by the number of a case, the reason why it is not checked.
        once: by the number of a case, the reason why only its first derivative is checked.
        unmixed: by backend, the reason why the reverse mode of the forward mode is not checked.
        host: the positions of arguments that are passed as Python numbers, and are not differentiated.
        single: the backends that compute the op in single precision only.
    """

    of: Callable[..., Any] | None = None
    cases: Sequence[Case] = ()
    skipped: Mapping[int, str] = field(default_factory=dict)
    once: Mapping[int, str] = field(default_factory=dict)
    unmixed: Mapping[str, str] = field(default_factory=dict)
    host: tuple[int, ...] = ()
    single: tuple[str, ...] = ()


@dataclass(frozen=True)
class GradientCall(Call):
    """A case whose derivatives are checked.

    Args:
        order: 1 for first derivatives only, 2 for second derivatives too.
        mixed: whether the reverse mode of the forward mode is checked too.
    """

    order: int = 2
    mixed: bool = True

    def judge(self, sample: Sample) -> float:
        """Returns the largest error in units of the tolerance.

        Raises:
            DisagreementError: if a derivative is wrong, or if the op has no gradient rule and no reason for that.
            Exception: whatever the op raises.
        """
        try:
            return self._compare(gradient_function(sample.op))
        except UnsupportedOpError as error:
            missing = without_rule(sample.op)
            if not missing:
                raise
            raise DisagreementError(missing) from error

    def _compare(self, function: Callable[..., Any]) -> float:
        problem = Problem(lambda args, kwargs: function(*args, **kwargs), (self.args, self.kwargs), dtype=self.dtype)
        admitted, worst = problem.admitted(), 0.0
        for check in problem.checks(self.order, self.mixed):
            worst = max(worst, check.error / admitted)
            if not check.error <= admitted:
                message = f"{check.name}: {check} (tolerance {admitted:.2g})"
                raise DisagreementError(message, check.error / admitted)
        return worst

    def program(self, sample: Sample) -> str:
        """Returns the source of this check."""
        return _PROGRAM.format(op=sample.op, label=self.label)


def without_rule(op: str) -> str:
    """Returns what to do about a primitive that has no gradient rule and is in no list of ops without one; else ""."""
    spec = OPS[op]
    if spec.composite or op in RULES or spec.facts.gradient == "zero" or op in LEAVING or op in REFUSED:
        return ""
    return (
        f'{op} has no gradient rule: add one to emberharmony/rules/{spec.category}.py, or say @op(gradient="zero") in '
        f"its declaration and remove `differentiable=True` from its sample row"
    )


def gradient_function(op: str) -> Callable[..., Any]:
    """Returns the function that is differentiated to check the gradient of an op: the op, or what `ROWS` names."""
    return ROWS.get(op, _PLAIN).of or OPS[op].function


def gradients(sample: Sample) -> Iterator[Call]:
    """Yields the gradient check of every case of a differentiable row, in float64."""
    if not sample.differentiable:
        return
    row = ROWS.get(sample.op, _PLAIN)
    dtype = "float32" if current().name in row.single else "float64"
    for i, item in enumerate(row.cases or sample.cases):
        if i not in row.skipped:
            order = 1 if i in row.once else 2
            args = tuple(np.asarray(x).tolist() if at in row.host else x for at, x in enumerate(item.args))
            mixed = current().name not in row.unmixed
            yield GradientCall("gradient", dtype, f"case {i}", args, item.kwargs, case=i, order=order, mixed=mixed)


def _hermitian(x: Any) -> Any:
    return ops.divide(ops.add(x, ops.conj(ops.matrix_transpose(x))), 2.0)


def _of_hermitian(op: str, **options: Any) -> GradientRow:
    """Returns the row of an op that reads one triangle of a Hermitian matrix: its input is made Hermitian first.

    Otherwise differences of single elements would make the matrix non-Hermitian.
    """
    return GradientRow(lambda x, *args, **kwargs: OPS[op].function(_hermitian(x), *args, **kwargs), **options)


def _in_double(op: str) -> GradientRow:
    """Returns the row of an op whose result has the dtype of its option `dtype`, not that of its arguments."""
    return GradientRow(lambda *args, **kwargs: OPS[op].function(*args, **kwargs, dtype="float64"))


_PLAIN = GradientRow()
_SQUARE, _TALL = (np.sin(np.arange(n * m) ** 2.0).reshape(n, m) for n, m in ((4, 4), (5, 3)))
_MATRICES = (case(_SQUARE), case(_SQUARE + 1j * _SQUARE.T**2), case(np.stack([_SQUARE, _SQUARE.T + 1.0])))
_SIDES = (np.linspace(-7.3, 6.1, 12).reshape(3, 4), np.linspace(2.2, 3.1, 4))

_FAR_OUT = "above x = 20 the difference of two gradients has fewer digits than the tolerance"
ROWS = {
    **dict.fromkeys(("gammainc", "gammaincc"), GradientRow(host=(0,), once={2: _FAR_OUT})),
    **dict.fromkeys(("polygamma", "zeta"), GradientRow(host=(0,))),
    "betainc": GradientRow(host=(0, 1)),
    "bincount": GradientRow(cases=(case(np.array([0, 2, 2, 5]), np.array([0.5, -1.5, 2.0, 0.25]), 8),)),
    "adaptive_max_pool": GradientRow(skipped={3: _TIES}),
    "cdist": GradientRow(once=dict.fromkeys((2, 3), "two coordinates are equal, where the derivative jumps")),
    "cholesky": _of_hermitian("cholesky"),
    "cummax": GradientRow(skipped={2: _TIES}),
    "det": GradientRow(once={5: "the second derivative divides by the determinant, which is 0"}),
    "divmod": GradientRow(cases=(case(*_SIDES),)),
    "eig": GradientRow(cases=_MATRICES),
    "eigh": _of_hermitian("eigh", unmixed={"torch": "an internal error for complex eigenvalues and -vectors together"}),
    "eigvalsh": _of_hermitian("eigvalsh"),
    "fmod": GradientRow(cases=(case(*_SIDES),)),
    "histogram": GradientRow(cases=(case(_TALL, 4), case(_TALL, 3, (-0.5, 2.0)))),
    "interp": GradientRow(skipped=dict.fromkeys((4, 5), "positions or points are infinite or NaN, or at a corner")),
    "logcumsumexp": GradientRow(skipped={5: _NAN}),
    "logdet": _of_hermitian("logdet"),
    "lstsq": GradientRow(skipped={3: _RANK}),
    "lu_factor": GradientRow(cases=(*_MATRICES, case(_TALL), case(_TALL.T.copy()))),
    "max": GradientRow(skipped={5: _NAN}),
    "maximum": GradientRow(skipped={2: _TIES}),
    "min": GradientRow(skipped={5: _NAN}),
    "minimum": GradientRow(skipped={2: _TIES}),
    "mod": GradientRow(cases=(case(*_SIDES),)),
    "normalize": GradientRow(skipped={3: "a norm equals its lower bound, where the derivative jumps"}),
    "pinv": GradientRow(skipped=dict.fromkeys((3, 5), _RANK)),
    "polar": GradientRow(single=("mlx",)),
    "nanpercentile": GradientRow(host=(1,)),
    "nanquantile": GradientRow(host=(1,)),
    "percentile": GradientRow(host=(1,)),
    "quantile": GradientRow(host=(1,)),
    **{
        f"random_{law}": _in_double(f"random_{law}")
        for law in ("normal", "uniform", "truncated_normal", "gumbel", "laplace", "exponential")
    },
    "random_multivariate_normal": GradientRow(
        lambda mean, cov, *args, **kwargs: OPS["random_multivariate_normal"].function(
            mean, _hermitian(cov), *args, **kwargs, dtype="float64"
        )
    ),
    "slogdet": GradientRow(skipped={3: "the logarithm of the determinant of a singular matrix is infinite"}),
    "sort": GradientRow(skipped=dict.fromkeys((0, 2, 3), _TIES)),
    "std": GradientRow(skipped={9: _NAN}),
    "svd": GradientRow(skipped={5: "the largest component, which determines the phase, is not unique"}),
    "partition": GradientRow(skipped=dict.fromkeys((0, 2), _TIES)),
    "top_k": GradientRow(skipped={0: _TIES}),
    "var": GradientRow(skipped={9: _NAN}),
    "vector_norm": GradientRow(skipped={10: "a norm is not differentiable at 0"}),
    "view_as_complex": GradientRow(single=("mlx",)),
}
