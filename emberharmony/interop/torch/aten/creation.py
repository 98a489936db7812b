"""Operators of ATen that create tensors, such as `linspace` and `zeros_like`, computed by ops."""

from collections.abc import Sequence
from typing import Any

from emberharmony import ops
from emberharmony.interop.torch.aten.table import aten

aten("new_empty_strided")(lambda x, size, stride, dtype=None: ops.zeros(tuple(size), dtype or ops.dtype(x)))
aten("empty", "zeros", "empty_strided", "empty_permuted")(lambda size, *rest, dtype=None: ops.zeros(tuple(size), dtype))
aten("ones")(lambda size, dtype=None: ops.ones(tuple(size), dtype))
aten("full")(lambda size, fill_value, dtype=None: ops.full(tuple(size), fill_value, dtype))
aten("scalar_tensor")(lambda s, dtype=None: ops.full((), s, dtype))
aten("eye")(lambda n, dtype=None: ops.eye(n, dtype=dtype))
aten("eye.m")(lambda n, m, dtype=None: ops.eye(n, m, dtype=dtype))
aten("arange")(lambda end, dtype=None: ops.arange(end, dtype=dtype))
aten("arange.start")(lambda start, end, dtype=None: ops.arange(start, end, dtype=dtype))
aten("arange.start_step")(lambda start, end, step=1, dtype=None: ops.arange(start, end, step, dtype))
aten("fill")(lambda x, value: ops.broadcast_to(ops.cast(value, ops.dtype(x)), tuple(x.shape)))
aten("tril")(ops.tril)
aten("triu")(ops.triu)


@aten("linspace")
def linspace(start: Any, end: Any, steps: int, dtype: Any = None) -> Any:
    """Returns `steps` equally spaced numbers from `start` to `end`."""
    return ops.linspace(start, end, steps, dtype=dtype)


@aten("logspace")
def logspace(start: Any, end: Any, steps: int, base: float = 10.0, dtype: Any = None) -> Any:
    """Returns powers of a base with equally spaced exponents."""
    return ops.logspace(start, end, steps, base=base, dtype=dtype)


@aten("zeros_like", "empty_like")
def zeros_like(x: Any, dtype: Any = None) -> Any:
    """Returns zeros in the shape of a tensor."""
    return ops.zeros_like(x, dtype)


@aten("ones_like")
def ones_like(x: Any, dtype: Any = None) -> Any:
    """Returns ones in the shape of a tensor."""
    return ops.ones_like(x, dtype)


@aten("full_like")
def full_like(x: Any, fill_value: Any, dtype: Any = None) -> Any:
    """Returns a tensor filled with a number, in the shape of another tensor."""
    return ops.full(tuple(x.shape), fill_value, dtype or ops.dtype(x))


@aten("new_zeros", "new_empty")
def new_zeros(x: Any, size: Sequence[int], dtype: Any = None) -> Any:
    """Returns zeros of a given shape, in the dtype of a tensor."""
    return ops.zeros(tuple(size), dtype or ops.dtype(x))


@aten("new_ones")
def new_ones(x: Any, size: Sequence[int], dtype: Any = None) -> Any:
    """Returns ones of a given shape, in the dtype of a tensor."""
    return ops.ones(tuple(size), dtype or ops.dtype(x))


@aten("new_full")
def new_full(x: Any, size: Sequence[int], fill_value: Any, dtype: Any = None) -> Any:
    """Returns a tensor of a given shape filled with a number, in the dtype of another tensor."""
    return ops.full(tuple(size), fill_value, dtype or ops.dtype(x))


@aten("tril_indices")
def tril_indices(row: int, col: int, offset: int = 0, dtype: Any = None) -> Any:
    """Returns the rows and columns of the elements on and below a diagonal."""
    return ops.stack(ops.tril_indices(row, offset, col))


@aten("triu_indices")
def triu_indices(row: int, col: int, offset: int = 0, dtype: Any = None) -> Any:
    """Returns the rows and columns of the elements on and above a diagonal."""
    return ops.stack(ops.triu_indices(row, offset, col))


@aten("one_hot")
def one_hot(x: Any, num_classes: int = -1) -> Any:
    """Returns for each index a vector that is 1 at the index and 0 elsewhere."""
    if num_classes < 0:
        num_classes = int(ops.to_numpy(x).max()) + 1
    return ops.one_hot(x, num_classes, dtype="int64")


aten("hann_window")(lambda n, dtype=None: ops.cast(_periodic_window(ops.hanning, n, True), dtype))
aten("hann_window.periodic")(
    lambda n, periodic, dtype=None: ops.cast(_periodic_window(ops.hanning, n, periodic), dtype)
)
aten("hamming_window")(lambda n, dtype=None: ops.cast(_periodic_window(ops.hamming, n, True), dtype))
aten("hamming_window.periodic")(
    lambda n, periodic, dtype=None: ops.cast(_periodic_window(ops.hamming, n, periodic), dtype)
)
aten("blackman_window")(lambda n, dtype=None: ops.cast(_periodic_window(ops.blackman, n, True), dtype))


def _periodic_window(window: Any, length: int, periodic: bool) -> Any:
    """Returns a window; a periodic one is a symmetric one of one more element, without its last element."""
    return window(length + 1)[:length] if periodic and length > 1 else window(length)
