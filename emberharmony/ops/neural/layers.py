"""The maps that layers apply: an affine map, and the lookup of rows in a table."""

from __future__ import annotations

import math
from collections.abc import Sequence

from emberharmony.core.dispatch import op
from emberharmony.core.errors import ShapeError
from emberharmony.core.types import Tensor, TensorLike
from emberharmony.ops.algebra.products import matmul
from emberharmony.ops.arrays.indexing import take
from emberharmony.ops.arrays.shape import matrix_transpose
from emberharmony.ops.math import add


@op(autocast="half")
def linear(x: TensorLike, weight: TensorLike, bias: TensorLike | None = None, transposed: bool = False) -> Tensor:
    """Returns `x @ weight + bias`, or `x @ weight.T + bias`.

    The weight has the axes (in, out), as the kernels of `conv` and of Keras's `Dense` have, unless it is `transposed`.

    Args:
        x: (..., in), of any dtype; all arguments are promoted to one.
        weight: (in, out), or (out, in) with `transposed`.
        bias: (out,); None adds nothing.
        transposed: whether the weight has the axes (out, in), as that of a linear layer of PyTorch or MLX has.

    Shape: x (..., in), weight (in, out) and bias (out,) to (..., out).

    Raises:
        ShapeError: if the weight is not a matrix, or if the lengths do not fit.

    See also: `nn.Linear`, the layer; `matmul`, without a bias; `quantized_matmul`, with a quantised matrix.

    Example:
        >>> ops.linear([1.0, 2.0], [[1.0], [10.0]], [0.5]).tolist()
        [21.5]
        >>> ops.linear([1.0, 2.0], [[1.0, 10.0]], transposed=True).tolist()
        [21.0]
    """
    if len(weight.shape) != 2 or not len(x.shape) or x.shape[-1] != weight.shape[1 if transposed else 0]:
        raise shape_error(tuple(x.shape), tuple(weight.shape), transposed)
    weight = matrix_transpose(weight) if transposed else weight
    product = matmul(x, weight)
    if bias is None:
        return product
    if tuple(bias.shape) != (weight.shape[1],):
        raise ShapeError(f"expected a bias of shape ({weight.shape[1]},), got {tuple(bias.shape)}")
    return add(product, bias)


@op(finite="yes", reads="checks")
def embedding(indices: Tensor | Sequence[int] | int, table: TensorLike) -> Tensor:
    """Returns the rows of a table at indices: `take(table, indices, axis=0)`.

    The gradient of a row is the sum over all places where its index occurs.

    Shape: indices (...) and table (rows, features) to (..., features).

    Args:
        indices: an integer, or integers of any shape, from -rows to rows - 1.
        table: (rows, features), of any dtype.

    Raises:
        IndexOutOfBoundsError: if an index is outside -rows to rows - 1; MLX checks a tensor of indices only in checked
            mode (`ops.checked`).
        ShapeError: if the table is not a matrix.

    See also: `nn.Embedding`, the layer; `take`, along any axis; `one_hot`, as a vector.

    Example:
        >>> ops.embedding([2, 0], [[1.0, 2.0], [3.0, 4.0], [5.0, 6.0]]).tolist()
        [[5.0, 6.0], [1.0, 2.0]]
    """
    if len(table.shape) != 2:
        raise ShapeError(f"expected a table of shape (rows, features), got {tuple(table.shape)}")
    return take(table, indices, 0)


def shape_error(shape: tuple[int, ...], weight: tuple[int, ...], transposed: bool) -> ShapeError:
    """Returns the error for an input whose last axis does not fit the weight of a linear layer."""
    if len(weight) != 2:
        return ShapeError(f"expected a weight of shape ({'out, in' if transposed else 'in, out'}), got {weight}")
    expected_features = weight[1 if transposed else 0]
    hint = f"a layer nn.Linear needs in_features={shape[-1] if shape else 1}"
    if len(shape) == 1 and expected_features == 1:
        hint = "give each number a row of its own: ops.expand_dims(x, -1)"
    elif math.prod(shape[1:]) == expected_features:
        hint = "flatten it: ops.reshape(x, (x.shape[0], -1)), or nn.Flatten() before the layer"
    elif math.prod(shape) == expected_features:
        hint = "a model takes a batch: for one sample model(ops.expand_dims(x, 0))"
    elif shape[-1:] == weight[:1] if transposed else shape[-1:] == weight[1:]:
        hint += f", ops.linear transposed={not transposed}"
    return ShapeError(
        f"x has shape {shape}, expected (..., {expected_features}) for a weight of shape {weight}; {hint}"
    )
