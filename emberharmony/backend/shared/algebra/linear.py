"""The bodies of linear algebra and of Fourier transforms: by LAPACK and pocketfft on the host, through NumPy."""

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from emberharmony.backend.shared.bodies import cast_to_common, tensor_from_host, to_host_array
from emberharmony.backend.shared.images.fft import axis_and_length
from emberharmony.core import op_globals
from emberharmony.core.dtypes import DType, as_dtype


def call_lapack(function: Callable[..., Any], operands: Sequence[Any], *options: Any) -> Any:
    """Returns the results, as tensors, of a function of `lapack` that is called with tensors copied to the host.

    Args:
        function: of host arrays of one dtype and of options, returns an array or a tuple of arrays.
        operands: the tensors.
        options: what follows them.
    """
    tensors = cast_to_common(*operands, inexact=True)
    dtype = op_globals.active().backend.dtype_of(tensors[0])
    return _as_tensors(function(*(_host_array(x, dtype) for x in tensors), *options), dtype)


def _host_array(x: Any, dtype: DType) -> np.ndarray:
    """Returns a tensor as a host array; half precision becomes float32."""
    host_array = to_host_array(x)
    return host_array.astype(np.float32) if dtype.bits == 16 else host_array


def _as_tensors(result: Any, dtype: DType) -> Any:
    """Returns a host result as tensors; results of single precision take the precision of the operands."""
    if isinstance(result, tuple):
        return type(result)(*(_as_tensors(component, dtype) for component in result))
    array = np.asarray(result)
    is_narrowed = array.dtype == np.float32 and dtype.is_floating
    return tensor_from_host(array, dtype if is_narrowed else as_dtype(array.dtype.name))


def transform_on_host(
    name: str,
    x: Any,
    n: int | None,
    axis: int,
    norm: str,
    *,
    refused_kinds: tuple[str, ...] = (),
    is_half_spectrum: bool = False,
) -> Any:
    """Returns the Fourier transform of a tensor along one axis, computed by NumPy on the host.

    Args:
        name: of the function of `numpy.fft`.
        x: the tensor.
        n, axis, norm: the options of the op.
        refused_kinds: the kinds of dtypes that it does not take.
        is_half_spectrum: whether the input is the non-negative half of the spectrum of a real signal.
    """
    (x,) = cast_to_common(x, inexact=True, refused=refused_kinds)
    axis_index, length = axis_and_length(tuple(x.shape), n, axis, norm, is_half_spectrum)
    host_array = _host_array(x, op_globals.active().backend.dtype_of(x))
    # irfft of NumPy 2.4 returns uninitialised memory for an empty spectrum.
    if is_half_spectrum and not host_array.shape[axis_index]:
        host_array = np.zeros(
            (*host_array.shape[:axis_index], 1, *host_array.shape[axis_index + 1 :]), host_array.dtype
        )
    transform_array = getattr(np.fft, name)(host_array, length, axis_index, norm)
    return tensor_from_host(transform_array, as_dtype(transform_array.dtype.name))
