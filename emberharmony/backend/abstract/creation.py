"""The shapes and dtypes of the results of the ops that create tensors."""

from __future__ import annotations

import math
import operator
from typing import TYPE_CHECKING, Any

from emberharmony.backend.abstract.rules import Rule, call_with_one_element, dtype_from, shapes_in
from emberharmony.backend.host import is_integer
from emberharmony.backend.promote import nonnegative_axes
from emberharmony.backend.shared.arrays.creation import check_ends
from emberharmony.backend.shared.arrays.shape import as_shape, clip_offset, require_matrices
from emberharmony.backend.shared.random_parameters import floating_dtype
from emberharmony.core.axes import broadcast_shape
from emberharmony.core.errors import ArgumentError, ShapeError, brief
from emberharmony.transforms.abstract_tensor import AbstractTensor, no_value_error

if TYPE_CHECKING:
    from emberharmony.backend.abstract import AbstractBackend


def _tensor_of_shape(backend: AbstractBackend, name: str, shape: Any, dtype: Any = None, device: Any = None) -> Any:
    return backend.tensor_of(as_shape(shape), dtype_from(backend, name, (), dtype, device))


def _random_tensor_of_shape(backend: AbstractBackend, name: str, shape: Any, dtype: Any = None) -> Any:
    return backend.tensor_of(as_shape(shape), backend.dtypes[floating_dtype(dtype)])


def _filled_tensor(
    backend: AbstractBackend, name: str, like: Any, value: Any, dtype: Any = None, device: Any = None
) -> Any:
    shape = like.shape if isinstance(like, AbstractTensor) else as_shape(like)
    if isinstance(value, AbstractTensor):
        _check_broadcasts(value.shape, shape)
    model_or_shape = like if isinstance(like, AbstractTensor) else (1,) * len(shape)
    return backend.tensor_of(shape, dtype_from(backend, name, model_or_shape, value, dtype, device))


def _tensor_like(backend: AbstractBackend, name: str, x: AbstractTensor, dtype: Any = None, device: Any = None) -> Any:
    return backend.tensor_of(x.shape, dtype_from(backend, name, x, dtype, device))


def _window_tensor(backend: AbstractBackend, name: str, x: int, *options: Any) -> Any:
    return backend.tensor_of((max(operator.index(x), 0),), dtype_from(backend, name, 1, *options))


def _triangle_like(backend: AbstractBackend, name: str, x: AbstractTensor, k: int = 0) -> Any:
    clip_offset(k, *require_matrices(x).shape[-2:])
    return backend.tensor_of(x.shape, x.dtype)


def _range_without_values(
    backend: AbstractBackend,
    name: str,
    start: Any,
    stop: Any = None,
    step: Any = 1,
    dtype: Any = None,
    device: Any = None,
) -> Any:
    step = 1 if step is None else step
    start_number, stop_number = (0, start) if stop is None else (start, stop)
    if any(isinstance(end, AbstractTensor) and end.known is None for end in (start_number, stop_number, step)):
        raise no_value_error("the length of a range depends on a tensor")
    start_number, stop_number, step = (
        end.item() if isinstance(end, AbstractTensor) else end for end in (start_number, stop_number, step)
    )
    if step == 0:
        raise ArgumentError("step must not be 0")
    check_ends(start_number, stop_number, step)
    are_integers = all(map(is_integer, (start_number, stop_number, step)))
    # Compute the length of a range of floats in float64, as NumPy and the backends do.
    length = (
        len(range(start_number, stop_number, step))
        if are_integers
        else max(math.ceil((stop_number - start_number) / step), 0)
    )
    # Convert the first and the last number, because an integer dtype may be too narrow for them.
    for end in (start_number, start_number + (length - 1) * step) if are_integers and length else ():
        dtype_from(backend, name, end, end + 1, 1, dtype, device)
    return backend.tensor_of(
        (length,), dtype_from(backend, name, start_number, start_number + 0 * stop_number, step, dtype, device)
    )


def _spaced_samples(
    backend: AbstractBackend, name: str, start: Any, stop: Any, num: int = 50, *options: Any, **keywords: Any
) -> Any:
    start, stop = (backend.convert(end) if isinstance(end, (list, tuple)) else end for end in (start, stop))
    sample_count = operator.index(num)
    if sample_count < 0:
        raise ArgumentError(f"expected num of at least 0, got {brief(num)}")
    sample_result = call_with_one_element(backend, name, start, stop, 1, *options, **keywords)
    one_sample, step = sample_result if isinstance(sample_result, tuple) else (sample_result, None)
    option_tensors = [option for option in (*options, *keywords.values()) if isinstance(option, AbstractTensor)]
    ends_shape = broadcast_shape(shapes_in((start, stop)))
    shape = list(broadcast_shape([ends_shape, *shapes_in(option_tensors)])) if name == "logspace" else list(ends_shape)
    # The declared order: endpoint, then retstep or base, then dtype and the axis.
    axis = keywords.get("axis", options[_AXIS[name]] if len(options) > _AXIS[name] else 0)
    (axis_index,) = nonnegative_axes(axis, len(shape) + 1)
    shape.insert(axis_index, sample_count)
    sample_tensor = backend.tensor_of(shape, one_sample.dtype)
    return sample_tensor if step is None else (sample_tensor, backend.tensor_of(ends_shape, step.dtype))


_AXIS = {"linspace": 3, "logspace": 3, "geomspace": 2}
"""The position of the option `axis` among those after `num`."""


class AbstractCreation:
    """Holds the primitives of `ops/arrays/creation.py` and `ops/random_ops.py`."""

    zeros, ones, empty = Rule(_tensor_of_shape), Rule(_tensor_of_shape), Rule(_tensor_of_shape)
    full, full_like = Rule(_filled_tensor), Rule(_filled_tensor)
    zeros_like, ones_like, empty_like = Rule(_tensor_like), Rule(_tensor_like), Rule(_tensor_like)
    bartlett, blackman, hamming, hanning, kaiser = (Rule(_window_tensor) for _ in range(5))
    tril, triu = Rule(_triangle_like), Rule(_triangle_like)
    arange = Rule(_range_without_values)
    linspace, logspace, geomspace = Rule(_spaced_samples), Rule(_spaced_samples), Rule(_spaced_samples)
    standard_uniform, standard_normal = Rule(_random_tensor_of_shape), Rule(_random_tensor_of_shape)

    tensor_of: Any

    @Rule
    def eye(
        self: Any, name: str, N: int, M: int | None = None, k: int = 0, dtype: Any = None, device: Any = None
    ) -> AbstractTensor:
        shape = as_shape((N, N if M is None else M))
        clip_offset(k, *shape)
        return self.tensor_of(shape, dtype_from(self, name, 1, 1, 0, dtype, device))

    def diag(self, x: AbstractTensor, k: int = 0) -> AbstractTensor:
        if x.ndim not in (1, 2):
            raise ShapeError(f"expected a vector or a matrix, got shape {x.shape}")
        if x.ndim == 1:
            length = x.shape[0] + abs(operator.index(k))
            return self.tensor_of((length, length), x.dtype)
        return self.tensor_of((diagonal_length(x.shape[0], x.shape[1], clip_offset(k, *x.shape)),), x.dtype)

    @Rule
    def vander(
        self: Any, name: str, x: AbstractTensor, N: int | None = None, increasing: bool = False
    ) -> AbstractTensor:
        if x.ndim != 1:
            raise ShapeError(f"expected a vector, got shape {x.shape}")
        column_count = x.shape[0] if N is None else max(operator.index(N), 0)
        return self.tensor_of((x.shape[0], column_count), dtype_from(self, name, x, 1, increasing))


def diagonal_length(rows: int, columns: int, offset: int) -> int:
    """Returns the number of elements on a diagonal of a matrix, at an offset from the main one."""
    return max(min(rows, columns - offset) if offset >= 0 else min(rows + offset, columns), 0)


def _check_broadcasts(shape: tuple[int, ...], full_shape: tuple[int, ...]) -> None:
    if len(shape) > len(full_shape) or broadcast_shape([shape, full_shape]) != tuple(full_shape):
        raise ShapeError(f"a value of shape {shape} does not broadcast to shape {tuple(full_shape)}")
