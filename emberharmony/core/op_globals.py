"""The globals of every compiled op: natives (`numpy_sin`), tensor types and converters, filled by `dispatch`.

They live in a module of their own, and not in each op's, so that one assignment of `__code__` switches an op as a
whole, and so that `torch.compile` finds them. The imports let `typing.get_type_hints` resolve the ops' annotations;
what cannot be imported here, `name_in_hints` adds.
"""

from collections.abc import Callable as Callable
from collections.abc import Mapping as Mapping
from collections.abc import Sequence as Sequence
from typing import Any as Any
from typing import Literal as Literal

from emberharmony.core.errors import EmberError as EmberError
from emberharmony.core.results import EigResult as EigResult
from emberharmony.core.results import LUResult as LUResult
from emberharmony.core.results import QRResult as QRResult
from emberharmony.core.results import SlogdetResult as SlogdetResult
from emberharmony.core.results import SVDResult as SVDResult
from emberharmony.core.results import UniqueAllResult as UniqueAllResult
from emberharmony.core.results import UniqueCountsResult as UniqueCountsResult
from emberharmony.core.results import UniqueInverseResult as UniqueInverseResult
from emberharmony.core.types import Axis as Axis
from emberharmony.core.types import CastTensorLike as CastTensorLike
from emberharmony.core.types import DeviceLike as DeviceLike
from emberharmony.core.types import DTypeLike as DTypeLike
from emberharmony.core.types import HostArray as HostArray
from emberharmony.core.types import Norm as Norm
from emberharmony.core.types import Operand as Operand
from emberharmony.core.types import Shape as Shape
from emberharmony.core.types import Tensor as Tensor
from emberharmony.core.types import TensorLike as TensorLike
from emberharmony.core.types import Tensors as Tensors
from emberharmony.core.types import Varying as Varying

float32_default = True
"""Whether the default float is float32, to which the native libraries turn integers by themselves."""

untransformed = True
"""Whether no transform is under way on a backend whose ops have derivatives of their own for them (MLX)."""

wide_unseen = True
"""Whether no uint64 or float64 has passed through the ops of a backend that promotes these in its own way (MLX)."""


def name_in_hints(*classes: type) -> None:
    """Lets `typing.get_type_hints` resolve the names of these classes in the ops' annotations."""
    globals().update({named.__name__: named for named in classes})
