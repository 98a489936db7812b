"""The NumPy backend."""

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from emberharmony.backend.base import Backend
from emberharmony.backend.host import to_host
from emberharmony.backend.numpy.arrays.creation_ops import NumpyCreationOps
from emberharmony.backend.numpy.device_ops import NumpyDeviceOps
from emberharmony.backend.numpy.dtype_ops import NumpyDTypeOps
from emberharmony.backend.numpy.dtypes import DTYPES, promotion
from emberharmony.backend.numpy.elementwise.special_ops import NumpySpecialOps
from emberharmony.backend.numpy.flow.steps import NumpySteps
from emberharmony.backend.numpy.probes import NumpyProbes
from emberharmony.backend.numpy.tensor_ops import NumpyTensorOps
from emberharmony.core import errors
from emberharmony.core.deferred import Deferred
from emberharmony.core.state.checked_mode import checking

if TYPE_CHECKING:
    from emberharmony.backend.numpy.neural import losses_ops
else:
    losses_ops = Deferred("emberharmony.backend.numpy.neural.losses_ops")

_generic, _asarray = np.generic, np.asarray
"""For `wrap`: an attribute of the module `numpy` costs 340 instructions more than a global (CPython 3.11)."""


class NumpyBackend(
    NumpySpecialOps,
    NumpyCreationOps,
    NumpyTensorOps,
    NumpyDTypeOps,
    NumpyDeviceOps,
    NumpyProbes,
    NumpySteps,
    Backend,
):
    """The NumPy backend: tensors are `numpy.ndarray`, and 0-d results are arrays too, never NumPy scalars."""

    name = "numpy"
    categories = {  # noqa: RUF012  (it shrinks)
        "algebra/norms": "NumpyNormsOps",
        "algebra/products": "NumpyProductsOps",
        "arrays/indexing": "NumpyIndexingOps",
        "arrays/shape": "NumpyShapeOps",
        "arrays/writing": "NumpyWritingOps",
        "elementwise/complex_numbers": "NumpyComplexNumbersOps",
        "elementwise/elementary": "NumpyElementaryOps",
        "elementwise/rounding": "NumpyRoundingOps",
        "images/fft": "NumpyFftOps",
        "logic/bitwise": "NumpyBitwiseOps",
        "logic/comparison": "NumpyComparisonOps",
        "math": "NumpyMathOps",
        "neural/activation": "NumpyActivationOps",
        "neural/attention": "NumpyAttentionOps",
        "neural/convolution": "NumpyConvolutionOps",
        "neural/layers": "NumpyLayersOps",
        "neural/losses": "NumpyLossesOps",
        "neural/normalization": "NumpyNormalizationOps",
        "neural/pooling": "NumpyPoolingOps",
        "neural/quantization": "NumpyQuantizationOps",
        "neural/recurrent": "NumpyRecurrentOps",
        "random": "NumpyRandomOps",
        "reductions/histograms": "NumpyHistogramsOps",
        "reductions/reduction": "NumpyReductionOps",
        "reductions/segments": "NumpySegmentsOps",
        "reductions/sorting": "NumpySortingOps",
        "solver": "NumpySolverOps",
    }
    tensor_type = np.ndarray
    defines_all = True
    dtypes = DTYPES
    promotion = promotion
    wraps = True
    errors = (
        (np.exceptions.AxisError, "", errors.AxisError),
        (RuntimeError, "Unsupported dtype in DLTensor", errors.DTypeError),
        (BufferError, "", errors.ArgumentError),
        (IndexError, "only integers|must be of integer", errors.ArgumentTypeError),
        (IndexError, "too many indices", errors.AxisError),
        (IndexError, "boolean index did not match|could not be broadcast", errors.ShapeError),
        (IndexError, "ellipsis", errors.ArgumentError),
        (
            ValueError,
            "could not( be)? broadcast|not aligned|mismatch in its core dimension|enough dimensions|cannot reshape"
            "|negative dimension|squeeze",
            errors.ShapeError,
        ),
        (
            ValueError,
            "dimensions.*must match|same (shape|size|number of dimensions)|zero-size|empty",
            errors.ShapeError,
        ),
        (
            ValueError,
            "(negative|unknown) dimension|more dimensions than|zero-dimensional|(not|cannot be) broadcast|squeeze",
            errors.ShapeError,
        ),
        (
            ValueError,
            "same number of elements|repeated|duplicate value in .axis|cannot be the same|axes don't match",
            errors.AxisError,
        ),
        (
            TypeError,
            "not supported for the input types|Cannot cast|boolean negative|boolean subtract",
            errors.DTypeError,
        ),
    )

    @property
    def version(self) -> str:
        """The version of NumPy."""
        return np.__version__

    def array_if_cheap(self, tensor: Any) -> np.ndarray | None:
        """Returns the tensor itself, an array; None if a transform traces it."""
        return tensor if isinstance(tensor, np.ndarray) else None

    shares_memory = True
    usual_float = "float64"
    native_index = "True"
    view_test = "{0}.base is not None"

    @staticmethod
    def share_memory(a: np.ndarray, b: np.ndarray) -> bool:
        """Returns whether two arrays may have memory in common."""
        return np.may_share_memory(a, b)

    def may_write(self, *tensors: Any) -> bool:
        """Returns whether all tensors are arrays, which they are not while they are differentiated."""
        return all(tensor.__class__ is np.ndarray for tensor in tensors)

    def from_numpy(self, array: np.ndarray) -> np.ndarray:
        """Returns the array itself.

        Raises:
            DTypeError: if the backend does not have its dtype.
        """
        self.dtypes.neutral[array.dtype]
        return array

    def convert(self, value: Any, dtype: Any = None) -> np.ndarray:
        """Returns a `TensorLike` value as an array of NumPy's base class, with a known dtype in native byte order.

        Raises:
            EmberError: as `Backend.convert` does.
        """
        if isinstance(value, np.ndarray):
            is_native = value.__class__ is np.ndarray and value.dtype in self.dtypes.neutral
            return value if is_native else self.from_numpy(to_host(value))
        if isinstance(value, _generic) and value.dtype in self.dtypes.neutral:
            return _asarray(value)
        array: np.ndarray = Backend.convert(self, value, dtype)  # `super()` looks into each class before that
        return array

    def value_and_slope(self, op: str, arguments: Sequence[Any]) -> tuple[np.ndarray, np.ndarray] | None:
        """Returns a mean of cross-entropies and its derivative by the logits, which share their exponentials."""
        return losses_ops.mean_cross_entropy_with_slope(*arguments) if op == "cross_entropy" else None

    def peak_memory(self, restart: bool = False) -> tuple[int, int]:
        """Returns the bytes in use now, and the most since the last restart; `tracemalloc` counts them from now on."""
        # Imported here, because only programs that ask for the memory need it.
        import tracemalloc

        if not tracemalloc.is_tracing():
            tracemalloc.start()
        current_and_peak = tracemalloc.get_traced_memory()
        if restart:
            tracemalloc.reset_peak()
        return current_and_peak

    def map_slices(
        self, fn: Callable[..., Sequence[Any]], tensors: Sequence[Any], axes: Sequence[int], same: bool = False
    ) -> list[Any]:
        """Returns the results of `fn` for all slices, by batching rules of the ops, or a loop if `fn` reads values."""
        if self.is_twin or checking():
            return self.loop_over_slices(fn, tensors, axes)
        # Imported here, because only programs that map functions need it.
        from emberharmony.transforms.batch_tape import map_at_once

        return map_at_once(self, fn, tensors, axes, same)

    takes_engine = True

    def compile_function(
        self,
        fn: Callable[..., Any],
        engine: str | None = None,
        tell: Callable[[str | None], None] = lambda name: None,
    ) -> Callable[..., Any]:
        """Returns `fn` as a function that records the calls of NumPy once and then repeats them.

        Args:
            fn: the function.
            engine: the library that runs what was recorded, in the place of NumPy; see `ops.compile`.
            tell: is called with the engine of each program that is recorded, None for none.

        Raises:
            BackendUnavailableError: if the engine is not installed.
        """
        self.import_categories()  # the recorder knows some definitions by the functions that they become
        # Imported here, because only programs that compile need it.
        from emberharmony.backend.numpy.flow.compilation import NumpyFunction

        if engine is None:
            return NumpyFunction(fn, self)
        from emberharmony.backend.numpy.flow.engines import Engines

        return NumpyFunction(fn, self, Engines(engine, tell))

    def wrap(self, result: Any) -> Any:
        """Returns a result with NumPy scalars, also in tuples and lists, as 0-d arrays."""
        if isinstance(result, _generic):
            return _asarray(result)
        if isinstance(result, (tuple, list)):
            for item in result:  # `any` would make a generator, which takes twice as long for few items
                if isinstance(item, _generic):
                    items = [self.wrap(item) for item in result]
                    return type(result)(*items) if hasattr(result, "_fields") else type(result)(items)
        return result


BACKEND = NumpyBackend
