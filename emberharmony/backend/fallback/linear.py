"""Default bodies of linear algebra and of Fourier transforms: by LAPACK and pocketfft on the host, through NumPy."""

from typing import Any

import numpy as np

from emberharmony.backend.fallback.tools import body, common, is_half, on_host, placed, reading
from emberharmony.backend.shared import lapack
from emberharmony.backend.shared.fft import along, named_by_keras
from emberharmony.backend.shared.solver import check_sides


def _returned(backend: Any, result: Any, dtype: Any) -> Any:
    """Returns a host result as tensors; results of single precision take the precision of the operands."""
    if isinstance(result, tuple):
        return type(result)(*(_returned(backend, each, dtype) for each in result))
    array = np.asarray(result)
    narrowed = array.dtype == np.float32 and backend.kinds[dtype] == "float"
    return placed(backend, array, dtype if narrowed else backend.dtypes[array.dtype.name])


def _by_lapack(name: str, operands: int = 1) -> None:
    function = lapack.svd_or_values if name == "svd" else getattr(lapack, name)

    def solved(backend: Any, *arguments: Any, **options: Any) -> Any:
        tensors = common(backend, *arguments[:operands])
        dtype = tensors[0].dtype
        host = [on_host(backend, x) for x in tensors]
        if is_half(backend, tensors[0]):
            host = [x.astype(np.float32) for x in host]
        return _returned(backend, function(*host, *arguments[operands:], **options), dtype)

    solved.__name__ = name
    solved.__doc__ = "Computes on the host."
    reading(solved)


for _name in ("det", "slogdet", "inv", "cholesky", "lu_factor", "qr", "svd", "eigh", "eig"):
    _by_lapack(_name)
_by_lapack("solve", 2)


@body
def solve_triangular(backend: Any, a: Any, b: Any, lower: bool = False) -> Any:
    """Solves with the other triangle set to 0."""
    check_sides(a, b)
    return backend.bound.solve(backend.bound.tril(a) if lower else backend.bound.triu(a), b)


def _transformed(name: str, *, real: bool = False, halved: bool = False) -> None:
    def transform(backend: Any, x: Any, n: int | None = None, axis: int = -1, norm: str = "backward") -> Any:
        (x,) = common(backend, x, refused=("complex",) if real else ())
        place, length = along(tuple(x.shape), n, axis, norm, halved)
        host = on_host(backend, x)
        if halved and not host.shape[place]:  # irfft of NumPy 2.4 returns uninitialised memory for an empty spectrum
            host = np.zeros((*host.shape[:place], 1, *host.shape[place + 1 :]), host.dtype)
        host = host.astype(np.float32) if is_half(backend, x) else host
        found = getattr(np.fft, name)(host, length, place, norm)
        return placed(backend, found, backend.dtypes[found.dtype.name])

    def named(backend: Any, *arguments: Any, **options: Any) -> Any:
        def alone(*rest: Any) -> Any:
            return transform(backend, *rest)

        return (named_by_keras(alone) if real or halved else alone)(*arguments, **options)

    named.__name__ = name
    named.__doc__ = "Computes on the host."
    reading(named)


_transformed("fft")
_transformed("ifft")
_transformed("rfft", real=True)
_transformed("irfft", halved=True)
