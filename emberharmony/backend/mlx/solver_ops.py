"""Linear algebra, on MLX: LAPACK on the host's side of the shared memory.

MLX has its linear algebra on the CPU only and for real numbers only; there a NaN can end the process (eig), an empty
matrix too (inv), and a matrix that is not positive-definite goes unseen. NumPy reads MLX's memory without a copy.
Determinants, which cannot fail, stay MLX's own, and lazy.
"""

import functools
from collections.abc import Callable
from typing import Any, NoReturn

import mlx.core as mx
import numpy as np

from emberharmony.backend import lapack
from emberharmony.backend.linear import inexact, square
from emberharmony.backend.mlx.dtypes import promotion
from emberharmony.backend.mlx.math_ops import is_complex
from emberharmony.core.errors import UnsupportedOpError
from emberharmony.core.results import SlogdetResult


def _refuse(*_: Any) -> NoReturn:
    raise UnsupportedOpError("mlx.core cannot differentiate linear algebra computed on the host")


def _imported(array: np.ndarray) -> mx.array:
    # MLX has no complex128, and would narrow float64 unless told its dtype.
    name = "complex64" if array.dtype.kind == "c" else array.dtype.name
    return mx.array(array, dtype=promotion.dtypes[name])


def _hosted(function: Callable[..., Any], operands: int = 1) -> Callable[..., Any]:
    """Returns an op over a function of `backend.lapack`; unlike a bare detour over NumPy it has no silent gradient."""

    @functools.wraps(function)
    def op(*args: Any, **options: Any) -> Any:
        def on_host(*tensors: mx.array) -> Any:
            result = function(*map(np.asarray, tensors), *args[operands:], **options)
            return type(result)(*map(_imported, result)) if isinstance(result, tuple) else _imported(result)

        opaque = mx.custom_function(on_host)
        opaque.vjp(_refuse)
        opaque.jvp(_refuse)
        return opaque(*args[:operands])

    return inexact(promotion, operands)(op)


class MLXSolverOps:
    """Holds the ops of `ops/solver.py`."""

    inv = staticmethod(_hosted(lapack.inv))
    solve = staticmethod(_hosted(lapack.solve, 2))
    solve_triangular = staticmethod(_hosted(lapack.solve_triangular, 2))
    cholesky = staticmethod(_hosted(lapack.cholesky))
    qr = staticmethod(_hosted(lapack.qr))
    svd = staticmethod(_hosted(lapack.svd))
    svdvals = staticmethod(_hosted(lapack.svdvals))
    eigh = staticmethod(_hosted(lapack.eigh))
    eigvalsh = staticmethod(_hosted(lapack.eigvalsh))
    eig = staticmethod(_hosted(lapack.eig))
    eigvals = staticmethod(_hosted(lapack.eigvals))
    lu_factor = staticmethod(_hosted(lapack.lu_factor))

    @staticmethod
    @inexact(promotion)
    def slogdet(x: mx.array) -> SlogdetResult:
        if is_complex(x) or not square(x).size:
            return _hosted(lapack.slogdet)(x)
        sign, logarithm = mx.linalg.slogdet(x, stream=mx.cpu)
        return SlogdetResult(mx.where(mx.isnan(logarithm), logarithm, sign), logarithm)

    @staticmethod
    @inexact(promotion)
    def det(x: mx.array) -> mx.array:
        if is_complex(x) or not square(x).size:
            return _hosted(lapack.det)(x)
        if x.dtype == mx.float32:
            return mx.linalg.det(x, stream=mx.cpu)
        # mx.linalg.det has the digits of float32 only.
        factors, pivots = mx.linalg.lu_factor(x, stream=mx.cpu)
        swapped = (pivots != mx.arange(x.shape[-1], dtype=pivots.dtype)).astype(x.dtype)
        return mx.prod(mx.diagonal(factors, 0, -2, -1) * (1 - 2 * swapped), -1)
