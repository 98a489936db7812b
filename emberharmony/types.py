"""The type names for annotations of arguments and results; `register_op` converts arguments according to them.

>>> from emberharmony.types import Tensor, TensorLike
>>> def standardized(x: TensorLike) -> Tensor: ...
"""

from emberharmony.core.dtypes import DType as DType
from emberharmony.core.types import Axis as Axis
from emberharmony.core.types import BackendLike as BackendLike
from emberharmony.core.types import BackendName as BackendName
from emberharmony.core.types import CastTensorLike as CastTensorLike
from emberharmony.core.types import ComplexTensorLike as ComplexTensorLike
from emberharmony.core.types import DeviceLike as DeviceLike
from emberharmony.core.types import DTypeLike as DTypeLike
from emberharmony.core.types import HostArray as HostArray
from emberharmony.core.types import Norm as Norm
from emberharmony.core.types import Operand as Operand
from emberharmony.core.types import Shape as Shape
from emberharmony.core.types import SpatialPadding as SpatialPadding
from emberharmony.core.types import Tensor as Tensor
from emberharmony.core.types import TensorLike as TensorLike
from emberharmony.core.types import TensorOrDType as TensorOrDType
from emberharmony.core.types import Tensors as Tensors
from emberharmony.core.types import Varying as Varying

__all__ = [
    "Axis",
    "BackendLike",
    "BackendName",
    "CastTensorLike",
    "ComplexTensorLike",
    "DType",
    "DTypeLike",
    "DeviceLike",
    "HostArray",
    "Norm",
    "Operand",
    "Shape",
    "SpatialPadding",
    "Tensor",
    "TensorLike",
    "TensorOrDType",
    "Tensors",
    "Varying",
]
