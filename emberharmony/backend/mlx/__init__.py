"""The MLX backend."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

import mlx.core as mx

from emberharmony.backend.base import Backend
from emberharmony.backend.host import name_of
from emberharmony.backend.mlx import cells as cells
from emberharmony.backend.mlx import numpy_operators as numpy_operators
from emberharmony.backend.mlx.arrays.creation_ops import MLXCreationOps
from emberharmony.backend.mlx.arrays.indices import read_if_checked
from emberharmony.backend.mlx.device_ops import MLXDeviceOps, join_thread, requested_device
from emberharmony.backend.mlx.dtype_ops import MLXDTypeOps
from emberharmony.backend.mlx.dtypes import DTYPES, of_host, promotion
from emberharmony.backend.mlx.elementwise.special_ops import MLXSpecialOps
from emberharmony.backend.mlx.flow.steps import MLXSteps
from emberharmony.backend.mlx.flow.transforms_ops import MLXTransformsOps
from emberharmony.backend.mlx.probes import MLXProbes
from emberharmony.backend.mlx.tensor_ops import MLXTensorOps, of_numbers
from emberharmony.core import errors, op_globals
from emberharmony.core.cells.moves import HostBits
from emberharmony.core.deferred import Deferred
from emberharmony.core.state import checked_mode
from emberharmony.core.trees.tree import tree_leaves

if TYPE_CHECKING:
    import numpy as np
else:
    np = Deferred("numpy")


class MLXBackend(
    MLXSpecialOps,
    MLXCreationOps,
    MLXTensorOps,
    MLXDTypeOps,
    MLXDeviceOps,
    MLXTransformsOps,
    MLXProbes,
    MLXSteps,
    Backend,
):
    """MLX: tensors are `mlx.core.array`, computed only by `ops.eval` or when their values are read."""

    name = "mlx"
    categories = {  # noqa: RUF012  (it shrinks)
        "algebra/norms": "MLXNormsOps",
        "algebra/products": "MLXProductsOps",
        "arrays/indexing": "MLXIndexingOps",
        "arrays/shape": "MLXShapeOps",
        "arrays/writing": "MLXWritingOps",
        "elementwise/complex_numbers": "MLXComplexNumbersOps",
        "elementwise/elementary": "MLXElementaryOps",
        "elementwise/rounding": "MLXRoundingOps",
        "images/fft": "MLXFftOps",
        "logic/bitwise": "MLXBitwiseOps",
        "logic/comparison": "MLXComparisonOps",
        "math": "MLXMathOps",
        "neural/activation": "MLXActivationOps",
        "neural/attention": "MLXAttentionOps",
        "neural/convolution": "MLXConvolutionOps",
        "neural/layers": "MLXLayersOps",
        "neural/losses": "MLXLossesOps",
        "neural/normalization": "MLXNormalizationOps",
        "neural/pooling": "MLXPoolingOps",
        "neural/quantization": "MLXQuantizationOps",
        "neural/sequences": "MLXSequencesOps",
        "random": "MLXRandomOps",
        "reductions/histograms": "MLXHistogramsOps",
        "reductions/reduction": "MLXReductionOps",
        "reductions/segments": "MLXSegmentsOps",
        "reductions/sorting": "MLXSortingOps",
        "solver": "MLXSolverOps",
    }
    tensor_type = mx.array
    defines_all = True
    dtypes = DTYPES
    promotion = promotion
    boolean_keys = False
    # MLX raises ValueError or RuntimeError for most faults, so the message decides. The first rule that matches counts:
    # specific patterns come before general ones.
    errors = (
        (BufferError, "", errors.ArgumentError),
        (RuntimeError, r"malloc|[Oo]ut of memory", errors.OutOfMemoryError),
        (ValueError, "non-empty take from|If the input is empty", errors.IndexOutOfBoundsError),
        (ValueError, "Slice indices must be", errors.ArgumentTypeError),
        (ValueError, r"[Rr]epeat axes|Received \d+ axes|duplicate axes", errors.AxisError),
        (
            ValueError,
            "broadcast|shape|dimension|must be square|reshape|concatenat|zero size|empty|squeeze",
            errors.ShapeError,
        ),
        (ValueError, "invalid axis|duplicate|axis", errors.AxisError),
        (IndexError, "axis|dim", errors.AxisError),
        (ValueError, "dtype|type|inexact|supported", errors.DTypeError),
        (RuntimeError, "LU factorization|Inverse|singular|Cholesky|SVD|Eig", errors.LinAlgError),
        (RuntimeError, "std::bad_cast", errors.RangeError),
        (RuntimeError, "only (allowed|supported)|not supported|type", errors.DTypeError),
    )

    @property
    def version(self) -> str:
        """The version of MLX."""
        return str(mx.__version__)  # type: ignore[attr-defined]

    native_index = "key.step is None if c is slice else 0 <= key < len(a) or -len(a) <= key < 0"
    join_thread = staticmethod(join_thread)
    of_numbers = staticmethod(of_numbers)

    def may_write(self, *tensors: mx.array) -> bool:
        """Returns whether no transform runs; a write then makes a new tensor in the memory of the old one."""
        return bool(op_globals.untransformed)

    def write_into(self, memory: mx.array, place: Any, updates: mx.array) -> mx.array:
        """Returns a tensor with updates at a place; other references keep the old values.

        Only the new tensor may depend on the old one for MLX to write in its memory. That is why `set_item` copies: it
        also reads the old elements, because of `mx.vmap`.
        """
        written_copy = mx.array(memory)
        written_copy[place] = updates
        return written_copy

    def array_if_cheap(self, tensor: mx.array) -> np.ndarray | None:
        """Returns the values of a tensor as a NumPy array in checked mode, which evaluates it; else None."""
        if isinstance(tensor, mx.array) and not mx.issubdtype(tensor.dtype, mx.integer):
            return np.asarray(tensor.astype(mx.float32)) if checked_mode.checking() else None
        host_array = read_if_checked(tensor)
        return host_array if isinstance(host_array, np.ndarray) else None

    def from_numpy(self, array: np.ndarray) -> mx.array:
        """Returns a copy of a NumPy array as a tensor.

        Raises:
            DTypeError: if MLX has no such dtype.
        """
        # Always pass the dtype: without it MLX 0.32 silently narrows float64 to float32.
        dtype_name = name_of(array.dtype)
        native_dtype = self.dtypes[dtype_name]
        # MLX 0.32 raises for negative strides, which a contiguous array does not have.
        array = np.asarray(array, order="C")
        if dtype_name == "bfloat16":
            return of_host(array.view(np.uint16)).view(mx.bfloat16)
        return of_host(array, native_dtype)

    def wait_for(self, result: Any) -> bool:
        """Computes the tensors in a result, and returns True."""
        mx.eval([x for x in tree_leaves(result) if isinstance(x, mx.array)])
        return True

    def peak_memory(self, restart: bool = False) -> tuple[int, int]:
        """Returns the bytes in use now, and the most since the last restart of the count."""
        active_and_peak_bytes = mx.get_active_memory(), mx.get_peak_memory()
        if restart:
            mx.reset_peak_memory()
        return active_and_peak_bytes[0], max(active_and_peak_bytes)

    def unpack(self, packed: HostBits, device: Any = None) -> mx.array:
        """Returns the tensor that is made of the bits that `pack` returned.

        Raises:
            DTypeError: if MLX, or the device, lacks the dtype.
        """
        # MLX 0.32 raises for float64 on a GPU only when it computes with the tensor.
        if packed.dtype == "float64" and (requested_device(device) or mx.default_device()).type == mx.gpu:
            raise errors.DTypeError("MLX has no float64 on a GPU; cast it to float32, or work on the CPU")
        tensor: mx.array = super().unpack(packed, device)
        mx.eval(tensor)  # so that other threads can read it
        return tensor

    def translate(self, op: str, error: Exception, arguments: tuple[Any, ...]) -> Exception:
        """Returns the typed error for a native error.

        MLX raises a TypeError about the signature for an integer beyond 32 bits; that becomes a RangeError. It raises a
        RuntimeError about streams for a tensor that another thread made and did not compute.
        """
        if "There is no Stream" in str(error):
            way_out = "MLX computes a tensor only in the thread that made it: call ops.eval(x) there first"
            return super().translate(op, RuntimeError(f"{way_out} ({error})"), arguments)
        if isinstance(error, TypeError) and "incompatible function arguments" in str(error):
            for number in _integers_in(arguments):
                if not -(2**31) <= number < 2**31:
                    overflow_error = OverflowError(f"MLX counts in 32 bits, into which {number} does not fit")
                    return super().translate(op, overflow_error, arguments)
        return super().translate(op, error, arguments)


def _integers_in(value: Any, depth: int = 4) -> Iterator[int]:
    """Yields the integers in arguments, down to a depth of nesting that reaches the widths of `pad`."""
    if isinstance(value, int):
        yield value
    elif depth and isinstance(value, (tuple, list)):
        for item in value:
            yield from _integers_in(item, depth - 1)


BACKEND = MLXBackend
