"""The globals of every compiled op: natives (`numpy_sin`), tensor types and converters, filled by `dispatch`.

They live in a module of their own, and not in each op's, so that one assignment of `__code__` switches an op as a
whole, and so that `torch.compile` finds them. The imports let `typing.get_type_hints` resolve the ops' annotations.
"""

from collections.abc import Callable as Callable
from collections.abc import Mapping as Mapping
from collections.abc import Sequence as Sequence
from typing import Any as Any
from typing import Literal as Literal

from emberharmony.core.errors import EmberError as EmberError
from emberharmony.core.types import Axis as Axis
from emberharmony.core.types import DeviceLike as DeviceLike
from emberharmony.core.types import DTypeLike as DTypeLike
from emberharmony.core.types import HostArray as HostArray
from emberharmony.core.types import Norm as Norm
from emberharmony.core.types import Operand as Operand
from emberharmony.core.types import Shape as Shape
from emberharmony.core.types import Tensor as Tensor
from emberharmony.core.types import TensorLike as TensorLike
from emberharmony.core.types import Tensors as Tensors

float32_default = True
"""Whether the default float is float32, to which the native libraries turn integers by themselves."""

wide_unseen = True
"""Whether no uint64 or float64 has passed through the ops of a backend that promotes these in its own way (MLX)."""
