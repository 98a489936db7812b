"""The part of a sample row that describes how the gradients of the op are checked."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from emberharmony import ops
from emberharmony.core.registry import OPS

TIES = "some elements are equal, so the op is not differentiable there"
NO_DERIVATIVE = "a reduction over NaN has the derivative NaN, or none"
RANK = "the matrix is rank-deficient, and its rank changes nearby"
FAR_OUT = "above x = 20 the difference of two gradients has fewer digits than the tolerance"

_SQUARE, TALL = (np.sin(np.arange(n * m) ** 2.0).reshape(n, m) for n, m in ((4, 4), (5, 3)))
MATRICES = (_SQUARE, _SQUARE + 1j * _SQUARE.T**2, np.stack([_SQUARE, _SQUARE.T + 1.0]))
SIDES = (np.linspace(-7.3, 6.1, 12).reshape(3, 4), np.linspace(2.2, 3.1, 4))


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
    cases: Sequence[Any] = ()
    skipped: Mapping[int, str] = field(default_factory=dict)
    once: Mapping[int, str] = field(default_factory=dict)
    unmixed: Mapping[str, str] = field(default_factory=dict)
    host: tuple[int, ...] = ()
    single: tuple[str, ...] = ()


def _hermitian_part(x: Any) -> Any:
    return ops.divide(ops.add(x, ops.conj(ops.matrix_transpose(x))), 2.0)


def hermitian_row(op: str, **options: Any) -> GradientRow:
    """Returns the row of an op that reads one triangle of a Hermitian matrix: its input is made Hermitian first.

    Otherwise differences of single elements would make the matrix non-Hermitian.
    """
    return GradientRow(lambda x, *args, **kwargs: OPS[op].function(_hermitian_part(x), *args, **kwargs), **options)


def covariance_row(op: str) -> GradientRow:
    """Returns the row of an op whose second argument is a Hermitian matrix, and whose option `dtype` names a dtype."""
    return GradientRow(
        lambda mean, cov, *args, **kwargs: OPS[op].function(
            mean, _hermitian_part(cov), *args, **kwargs, dtype="float64"
        )
    )


def double_row(op: str) -> GradientRow:
    """Returns the row of an op whose result has the dtype of its option `dtype`, not that of its arguments."""
    return GradientRow(lambda *args, **kwargs: OPS[op].function(*args, **kwargs, dtype="float64"))
