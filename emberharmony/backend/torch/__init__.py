"""The PyTorch backend."""

from collections.abc import Callable
from typing import Any

import numpy as np
import torch

from emberharmony.backend.base import Backend
from emberharmony.backend.first_trace import DYNAMO
from emberharmony.backend.torch import cells as cells
from emberharmony.backend.torch.arrays.creation_ops import TorchCreationOps
from emberharmony.backend.torch.device_ops import TorchDeviceOps, place
from emberharmony.backend.torch.dtype_ops import TorchDTypeOps
from emberharmony.backend.torch.dtypes import DTYPES, promotion
from emberharmony.backend.torch.elementwise.special_ops import TorchSpecialOps
from emberharmony.backend.torch.flow.steps import TorchSteps
from emberharmony.backend.torch.flow.transforms_ops import TorchTransformsOps
from emberharmony.backend.torch.neural.quantization_ops import TorchQuantizationOps
from emberharmony.backend.torch.precision import TorchPrecision
from emberharmony.backend.torch.probes import TorchProbes
from emberharmony.backend.torch.tensor_ops import TorchTensorOps, of_host
from emberharmony.backend.torch.tracing import has_values, in_functional_transform, is_unwatched
from emberharmony.core import errors
from emberharmony.core.cells.moves import HostBits
from emberharmony.core.dtypes import default_complex, default_float
from emberharmony.core.trees.tree import tree_leaves


def _is_number_tree(value: Any) -> bool:
    """Returns whether `value` is a Python number, or a non-empty list or tuple of them, nested or not."""
    if isinstance(value, (list, tuple)):
        return bool(value) and all(_is_number_tree(item) for item in value)
    return isinstance(value, (int, float, complex)) and not isinstance(value, np.generic)


class TorchBackend(
    TorchSpecialOps,
    TorchCreationOps,
    TorchTensorOps,
    TorchQuantizationOps,
    TorchDTypeOps,
    TorchDeviceOps,
    TorchTransformsOps,
    TorchProbes,
    TorchPrecision,
    TorchSteps,
    Backend,
):
    """PyTorch: tensors are `torch.Tensor` and its subclasses, such as parameters."""

    name = "torch"
    categories = {  # noqa: RUF012  (it shrinks)
        "algebra/norms": "TorchNormsOps",
        "algebra/products": "TorchProductsOps",
        "arrays/indexing": "TorchIndexingOps",
        "arrays/rearranging": "TorchRearrangingOps",
        "arrays/shape": "TorchShapeOps",
        "arrays/writing": "TorchWritingOps",
        "elementwise/complex_numbers": "TorchComplexNumbersOps",
        "elementwise/elementary": "TorchElementaryOps",
        "elementwise/rounding": "TorchRoundingOps",
        "images/fft": "TorchFftOps",
        "images/interpolation": "TorchInterpolationOps",
        "logic/bitwise": "TorchBitwiseOps",
        "logic/comparison": "TorchComparisonOps",
        "math": "TorchMathOps",
        "neural/activation": "TorchActivationOps",
        "neural/attention": "TorchAttentionOps",
        "neural/convolution": "TorchConvolutionOps",
        "neural/layers": "TorchLayersOps",
        "neural/losses": "TorchLossesOps",
        "neural/normalization": "TorchNormalizationOps",
        "neural/pooling": "TorchPoolingOps",
        "neural/recurrent": "TorchRecurrentOps",
        "random": "TorchRandomOps",
        "reductions/histograms": "TorchHistogramsOps",
        "reductions/reduction": "TorchReductionOps",
        "reductions/segments": "TorchSegmentsOps",
        "reductions/sorting": "TorchSortingOps",
        "solver": "TorchSolverOps",
    }
    tensor_type = torch.Tensor
    defines_all = True
    dtypes = DTYPES
    promotion = promotion
    exact_type = False
    joinable = 2**14
    """Whether PyTorch counts references to a tensor and to its memory; other versions may not."""
    tracer = DYNAMO
    # PyTorch raises RuntimeError for most faults, so the message decides. The first rule that matches counts: specific
    # patterns come before general ones.
    errors = (
        (torch.linalg.LinAlgError, "", errors.LinAlgError),  # type: ignore[attr-defined]
        (RuntimeError, "should not contain infs or NaNs", errors.LinAlgError),
        (BufferError, "", errors.ArgumentError),
        (
            RuntimeError,
            "can't allocate memory|out of memory|[Ss]torage size calculation overflowed|multiplication overflow",
            errors.OutOfMemoryError,
        ),
        (IndexError, "Dimension out of range|dimension specified as", errors.AxisError),
        (
            RuntimeError,
            "appears multiple times|repeated dim|duplicate|cannot be identical|desired ordering",
            errors.AxisError,
        ),
        (Exception, "Overflow when unpacking long|cannot be converted to type int64_t", errors.RangeError),
        (RuntimeError, "Boolean value of Tensor", errors.ArgumentError),
        (IndexError, "could not be broadcast", errors.ShapeError),
        (IndexError, "out of (range|bounds)", errors.IndexOutOfBoundsError),
        (RuntimeError, "ind(ex|ices) .* out of (range|(data )?bounds)", errors.IndexOutOfBoundsError),
        (NotImplementedError, "not implemented for", errors.DTypeError),
        (TypeError, "framework doesn't support", errors.DTypeError),
        (
            RuntimeError,
            "(on|with) a bool tensor|dtype|not implemented for|not supported for|Promotion for|result type",
            errors.DTypeError,
        ),
        (
            RuntimeError,
            "equal size|size (of tensor|mismatch)|shape|sizes|must be (square|at least 2)|dimension",
            errors.ShapeError,
        ),
        (
            RuntimeError,
            "shapes cannot be multiplied|mat1|at least 1D|inconsistent tensor size|Expected size",
            errors.ShapeError,
        ),
    )

    @property
    def version(self) -> str:
        """The version of PyTorch."""
        return str(torch.__version__)

    def convert(self, value: Any, dtype: Any = None) -> torch.Tensor:
        """Returns a `TensorLike` value, such as a list of numbers, as a tensor.

        torch.compile (PyTorch 2.13) cannot trace NumPy dtypes. While it traces, NumPy arrays are therefore converted by
        PyTorch alone, and Python numbers and lists of them without NumPy.
        """
        if torch.compiler.is_compiling():
            if isinstance(value, torch.Tensor):
                return value
            if isinstance(value, np.ndarray):
                # Dynamo may break the graph at each call, and cannot resume a method call that waits for its arguments.
                tensor, device = torch.from_numpy(value), place(None)
                return tensor if device is None else tensor.to(device)
            if isinstance(value, (int, float, complex, list, tuple)) and _is_number_tree(value):
                if dtype is None:
                    new_tensor = torch.tensor(value)
                    default_dtype = default_complex() if new_tensor.is_complex() else default_float()
                    dtype = (
                        default_dtype if new_tensor.is_complex() or new_tensor.is_floating_point() else new_tensor.dtype
                    )
                return torch.tensor(value, dtype=self.dtypes[dtype], device=place(None))
        converted_tensor: torch.Tensor = Backend.convert(
            self, value, dtype
        )  # `super()` looks into each class before that
        return converted_tensor

    shares_memory = scalars_share_memory = True
    native_index = "True"
    view_test = "{0}._is_view()"
    recorded_test = "{0}.requires_grad"

    @staticmethod
    def share_memory(a: torch.Tensor, b: torch.Tensor) -> bool:
        """Returns whether two tensors share memory; True inside of transforms, which hide whether they do."""
        if in_functional_transform() or torch.compiler.is_compiling():
            return True
        return a.untyped_storage().data_ptr() == b.untyped_storage().data_ptr()

    @staticmethod
    def in_place_form(native: Callable[..., Any]) -> Callable[..., Any] | None:
        """Returns the in-place method of tensors, such as `add_`, for a function of PyTorch."""
        function_name = getattr(native, "__name__", "")
        return (
            getattr(torch.Tensor, f"{function_name}_", None) if getattr(torch, function_name, None) is native else None
        )

    def may_write(self, *tensors: torch.Tensor) -> bool:
        """Returns whether no graph, transform or compiler records what is written into these tensors."""
        return is_unwatched(*tensors)

    def array_if_cheap(self, tensor: Any) -> np.ndarray | None:
        """Returns a tensor on the CPU as an array on its memory; None inside of transforms, which hide the memory."""
        return tensor.detach().numpy() if has_values(tensor) and not in_functional_transform() else None

    from_numpy = staticmethod(of_host)

    def compiles_source(self) -> bool:
        """Returns whether torch.compile is reading the source that runs."""
        return torch.compiler.is_dynamo_compiling()

    def wait_for(self, result: Any) -> bool:
        """Waits for the accelerator, if a tensor is on it."""
        devices = {x.device for x in tree_leaves(result) if isinstance(x, torch.Tensor)}
        devices = {device for device in devices if device.type not in ("cpu", "meta")}
        for device in devices:
            torch.accelerator.synchronize(device)  # needs an accelerator
        return bool(devices)

    def peak_memory(self, restart: bool = False) -> tuple[int, int] | None:
        """Returns the bytes in use on CUDA now, and the most since the last restart; None on other devices."""
        target_device = place(None) or torch.get_default_device()
        if target_device.type == "cuda":  # needs an accelerator
            usage = torch.cuda.memory_allocated(target_device), torch.cuda.max_memory_allocated(target_device)
            if restart:
                torch.cuda.reset_peak_memory_stats(target_device)
            return usage
        return None

    def unpack(self, packed: HostBits, device: Any = None) -> torch.Tensor:
        """Returns bits on the host as a tensor that outlives the transforms of `torch.func` that are running.

        Raises:
            DTypeError: if the device lacks the dtype.
        """
        # A transform wraps the tensors that are made in it, and those made in inference mode have no gradient.
        with torch._C._DisableFuncTorch(), torch.inference_mode(False):
            tensor: torch.Tensor = super().unpack(packed, device)
        return tensor


BACKEND = TorchBackend
