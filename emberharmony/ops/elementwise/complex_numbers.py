"""Complex numbers and their parts.

Dtype: the parts of complex64 are float32, those of complex128 float64. MLX has no complex128.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from emberharmony.core.deferred import Deferred
from emberharmony.core.dispatch import alias, op
from emberharmony.core.types import Tensor, TensorLike
from emberharmony.ops.arrays.shape import stack
from emberharmony.ops.device import get_device
from emberharmony.ops.dtype import dtype, refuse_complex, to_inexact
from emberharmony.ops.elementwise.elementary import arctan2, cos, sin
from emberharmony.ops.logic.comparison import equal, not_equal
from emberharmony.ops.math import multiply, negative
from emberharmony.ops.tensor import cast, convert_to_tensor, to_numpy

if TYPE_CHECKING:
    from emberharmony.backend.shared import tensor as shared_tensor
    from emberharmony.backend.shared.arrays import shape as shared_shape
else:
    shared_shape = Deferred("emberharmony.backend.shared.arrays.shape")
    shared_tensor = Deferred("emberharmony.backend.shared.tensor")


@op(elementwise=True, view=True, takes="all", gives="real", finite="yes")
def real(x: TensorLike) -> Tensor:
    """Returns the real part; real tensors are returned as they are.

    See also: `imag`, the other part; `conj`, with the imaginary part negated.

    Example:
        >>> ops.real([1 + 2j]).tolist()
        [1.0]
    """
    ...


@op(elementwise=True, view=True, takes="all", gives="real", finite="yes")
def imag(x: TensorLike) -> Tensor:
    """Returns the imaginary part; zeros for real tensors.

    See also: `real`, the other part.

    Example:
        >>> ops.imag([1 + 2j]).tolist()
        [2.0]
    """
    ...


@op(elementwise=True, takes="all", finite="yes")
def conj(x: TensorLike) -> Tensor:
    """Returns the complex conjugate; real tensors are returned as they are.

    See also: `real`, the real part alone.

    Example:
        >>> ops.imag(ops.conj([1 + 2j])).tolist()
        [-2.0]
    """
    return view_as_complex(stack([real(x), negative(imag(x))], -1)) if dtype(x).is_complex else x


conjugate = alias("conjugate", conj)


@op(elementwise=True)
def angle(x: TensorLike) -> Tensor:
    """Returns the angle of each number in the complex plane, in radians from -pi to pi.

    Args:
        x: a tensor of any shape; complex, or real numbers, whose angle is 0 or pi.

    See also: `absolute`, the modulus; `polar`, the inverse of both.

    Example:
        >>> ops.angle([2.0, 1 + 0j]).tolist()
        [0.0, 0.0]
    """
    return arctan2(imag(x), real(x))


@op(elementwise=True)
def isreal(x: TensorLike) -> Tensor:
    """Returns whether the imaginary part of each element is 0, which is always true for real tensors.

    Args:
        x: a tensor of any shape and dtype.

    See also: `iscomplex`, the opposite.

    Example:
        >>> ops.isreal([1 + 2j, 3]).tolist()
        [False, True]
    """
    return equal(imag(x), 0)


@op(elementwise=True)
def iscomplex(x: TensorLike) -> Tensor:
    """Returns whether the imaginary part of each element is not 0.

    Args:
        x: a tensor of any shape and dtype.

    See also: `isreal`, the opposite.

    Example:
        >>> ops.iscomplex([1 + 2j, 3]).tolist()
        [True, False]
    """
    return not_equal(imag(x), 0)


@op(elementwise=True)
def polar(abs_: TensorLike, angle: TensorLike) -> Tensor:
    """Returns the complex numbers `abs_ * (cos(angle) + i sin(angle))`.

    Shape: operands are broadcast.

    Args:
        abs_: the modulus: a real tensor, which broadcasts against `angle`.
        angle: the angle in radians: a real tensor, which broadcasts against `abs_`.

    See also: `absolute`, for the modulus; `angle`, for the angle.

    Example:
        >>> ops.real(ops.polar([2.0, 3.0], [0.0, 0.0])).tolist()
        [2.0, 3.0]
    """
    if dtype(angle).bits == 16 and dtype(angle).is_floating:
        angle = cast(angle, "float32")  # complex64 has parts of this width, and there is no smaller complex dtype
    return view_as_complex(stack([multiply(abs_, cos(angle)), multiply(abs_, sin(angle))], axis=-1))


@op(finite="yes", reads="data")
def view_as_complex(x: TensorLike) -> Tensor:
    """Returns pairs along the last axis as complex numbers; the result may be a copy.

    Shape: `(..., 2)` to `(...)`. Dtype: complex128 for float64, else complex64.

    Args:
        x: real pairs (..., 2); integers become the default float.

    Raises:
        ShapeError: if the last axis does not have length 2.
        DTypeError: if `x` is complex.

    See also: `view_as_real`, the inverse.

    Example:
        >>> ops.imag(ops.view_as_complex([[1.0, 2.0], [3.0, 4.0]])).tolist()
        [2.0, 4.0]
    """
    refuse_complex(x)
    shared_shape.check_complex_pairs(x.shape)
    # A sum with 1j times infinity would be NaN.
    return convert_to_tensor(shared_tensor.complex_of_pairs(to_numpy(to_inexact(x))), device=get_device(x))


@op(finite="yes")
def view_as_real(x: TensorLike) -> Tensor:
    """Returns the real and the imaginary part along a new last axis; the result may be a copy.

    Shape: `(...)` to `(..., 2)`.

    Args:
        x: a tensor of any shape; the imaginary part of real numbers is 0.

    See also: `view_as_complex`, the inverse.

    Example:
        >>> ops.view_as_real([1 + 2j]).tolist()
        [[1.0, 2.0]]
    """
    return stack([real(x), imag(x)], axis=-1)
