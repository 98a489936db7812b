"""The JAX backend.

JAX compiles a program for each op, shape and dtype: `sin` and `ones` of 399 shapes take 29 s of processor time and 1.2
GB (JAX 0.10.2 on a CPU). So tensors are made, random numbers drawn and small special functions computed on the host; a
composite is one program, not one for each step; and a program takes the numbers that change as arguments. `emberharmony
conformance` calls `Backend.free_caches` after every eighth op, without which it took 5.2 GB.
"""

from typing import Any

import jax
import numpy as np

from emberharmony.backend.base import Backend
from emberharmony.backend.host import name_of
from emberharmony.backend.jax.algebra.products_ops import JAXProductsOps
from emberharmony.backend.jax.arrays.creation_ops import JAXCreationOps
from emberharmony.backend.jax.arrays.indexing_ops import JAXIndexingOps
from emberharmony.backend.jax.arrays.shape_ops import JAXShapeOps
from emberharmony.backend.jax.arrays.writing_ops import JAXWritingOps
from emberharmony.backend.jax.device_ops import JAXDeviceOps, requested_device
from emberharmony.backend.jax.dtype_ops import JAXDTypeOps
from emberharmony.backend.jax.dtypes import DTYPES, enable_x64, of_host, promotion
from emberharmony.backend.jax.elementwise.complex_numbers_ops import JAXComplexNumbersOps
from emberharmony.backend.jax.elementwise.elementary_ops import JAXElementaryOps
from emberharmony.backend.jax.elementwise.rounding_ops import JAXRoundingOps
from emberharmony.backend.jax.elementwise.special_ops import JAXSpecialOps
from emberharmony.backend.jax.flow.fusion import JAXFusedOps, add_fused_ops
from emberharmony.backend.jax.flow.steps import JAXSteps
from emberharmony.backend.jax.flow.transforms_ops import JAXTransformsOps
from emberharmony.backend.jax.logic.comparison_ops import JAXComparisonOps
from emberharmony.backend.jax.math_ops import JAXMathOps
from emberharmony.backend.jax.neural.activation_ops import JAXActivationOps
from emberharmony.backend.jax.precision import JAXPrecision
from emberharmony.backend.jax.probes import JAXProbes
from emberharmony.backend.jax.random_ops import JAXRandomOps
from emberharmony.backend.jax.reductions.histograms_ops import JAXHistogramsOps
from emberharmony.backend.jax.reductions.reduction_ops import JAXReductionOps
from emberharmony.backend.jax.reductions.segments_ops import JAXSegmentsOps
from emberharmony.backend.jax.reductions.sorting_ops import JAXSortingOps
from emberharmony.backend.jax.solver_ops import JAXSolverOps
from emberharmony.backend.jax.standard_ops import JAXStandardOps
from emberharmony.backend.jax.tensor_ops import JAXTensorOps
from emberharmony.backend.jax.tracing import READS, UNREAD, Tracer, array_if_on_host
from emberharmony.core import errors
from emberharmony.core.cells.moves import HostBits
from emberharmony.core.registry import complete
from emberharmony.core.trees.tree import tree_leaves

_AXES = "axis|permutation|duplicate|repeated|out of bounds for array"
_SHAPES = "[Ii]ncompatible|broadcast|shape|size|dimension|empty|zero-size|ndim|rank|squeeze"


class JAXBackend(
    JAXMathOps,
    JAXRoundingOps,
    JAXElementaryOps,
    JAXSpecialOps,
    JAXActivationOps,
    JAXComplexNumbersOps,
    JAXReductionOps,
    JAXHistogramsOps,
    JAXComparisonOps,
    JAXCreationOps,
    JAXShapeOps,
    JAXTensorOps,
    JAXIndexingOps,
    JAXWritingOps,
    JAXSegmentsOps,
    JAXSortingOps,
    JAXProductsOps,
    JAXSolverOps,
    JAXRandomOps,
    JAXDTypeOps,
    JAXDeviceOps,
    JAXTransformsOps,
    JAXFusedOps,
    JAXProbes,
    JAXPrecision,
    JAXSteps,
    JAXStandardOps,  # type: ignore[misc]
    Backend,
):
    """JAX: tensors are `jax.Array`, also the tracers inside of its transforms; a program is compiled for each shape."""

    name = "jax"
    tensor_type = jax.Array
    defines_all = True
    dtypes = DTYPES
    promotion = promotion
    exact_type = False
    joinable = 2**14
    # JAX raises TypeError and ValueError for most faults, so the message decides. The first rule that matches counts.
    errors = (
        *((error_class, "", errors.TracedTensorError) for error_class in (*READS, jax.errors.UnexpectedTracerError)),
        (RuntimeError, r"RESOURCE_EXHAUSTED|[Oo]ut of memory", errors.OutOfMemoryError),
        (BufferError, "", errors.ArgumentError),
        (IndexError, "[Tt]oo many indices", errors.AxisError),
        (TypeError, "must have integer or boolean type|Indexer|must be an integer, or", errors.ArgumentTypeError),
        (TypeError, "cannot reshape|unknown axis size", errors.ShapeError),
        (ZeroDivisionError, "modulo by zero", errors.ShapeError),  # reshape of no elements to (0, -1)
        (ValueError, _AXES, errors.AxisError),
        (TypeError, _AXES, errors.AxisError),
        (TypeError, "does not accept dtype|dtype|Accepted|not a valid JAX", errors.DTypeError),
        (ValueError, _SHAPES, errors.ShapeError),
        (TypeError, _SHAPES, errors.ShapeError),
    )

    def __init__(self) -> None:
        enable_x64()
        complete()
        add_fused_ops(type(self))
        super().__init__()

    @property
    def version(self) -> str:
        """The version of JAX."""
        return str(jax.__version__)

    def array_if_cheap(self, tensor: Any) -> np.ndarray | None:
        """Returns the memory of a tensor on the CPU; None inside of a compiled function."""
        return array_if_on_host(tensor) if isinstance(tensor, jax.Array) else None

    def from_numpy(self, array: np.ndarray) -> jax.Array:
        """Returns a copy of a NumPy array as a tensor.

        Raises:
            DTypeError: if JAX has no such dtype.
        """
        return of_host(array, self.dtypes[name_of(array.dtype)], requested_device(None))

    def unpack(self, packed: HostBits, device: Any = None) -> jax.Array:
        """Returns bits on the host as a tensor that outlives the function that is being traced.

        Raises:
            DTypeError: if JAX lacks the dtype.
        """
        # In a function that is compiled, JAX would make a tracer even of constants.
        with jax.ensure_compile_time_eval():
            return super().unpack(packed, device)

    def wait_for(self, result: Any) -> bool:
        """Waits until the tensors in a result are computed."""
        concrete_arrays = [x for x in tree_leaves(result) if isinstance(x, jax.Array) and not isinstance(x, Tracer)]
        jax.block_until_ready(concrete_arrays)
        return bool(concrete_arrays)

    def free_caches(self) -> None:
        """Frees the compiled programs, each of which takes about 1.5 MB."""
        jax.clear_caches()

    def translate(self, op: str, error: Exception, arguments: tuple[Any, ...]) -> Exception:
        """Returns the typed error for a native error; that for reading a traced value says what to do instead."""
        if isinstance(error, READS):
            traced_error = errors.TracedTensorError(f"{op}() on backend {self.name!r}: {UNREAD}")
            return super().translate(op, traced_error, arguments)
        return super().translate(op, error, arguments)


BACKEND = JAXBackend
