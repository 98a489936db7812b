"""Checks of quantised matrices and of the ops that take them, the same on all backends."""

from typing import Any

from emberharmony.core.errors import ArgumentError, DTypeError, ShapeError

BITS = (4, 8)
GROUPS = (32, 64, 128)
NARROW = ("float32", "float16", "bfloat16")
"""The dtypes whose products are added in float32."""


def check_options(group_size: Any, bits: Any) -> None:
    """Checks that the group size and the bits of a quantisation are supported.

    Raises:
        ArgumentError: if the format has no such group or width.
    """
    if bits not in BITS:
        raise ArgumentError(f"bits must be 4 or 8, got {bits!r}")
    if group_size not in GROUPS:
        raise ArgumentError(f"group_size must be 32, 64 or 128, got {group_size!r}")


def check_divisible(shape: Any, group_size: int) -> None:
    """Checks that the last axis of a tensor divides into groups.

    Raises:
        ShapeError: if it does not.
    """
    if not shape or shape[-1] % group_size:
        fitting_sizes = [size for size in GROUPS if shape and not shape[-1] % size]
        hint = f"pass group_size={fitting_sizes[-1]}" if fitting_sizes else "pad the axis, or leave the tensor as it is"
        raise ShapeError(f"expected a last axis that group_size {group_size} divides, got shape {tuple(shape)}; {hint}")


def check_packed(kind: str, w: Any, scales: Any, biases: Any, group_size: int, bits: int) -> None:
    """Checks that the three tensors of a quantised matrix fit together.

    Args:
        kind: the name of the dtype of `w`.
        w, scales, biases: the shapes.
        group_size: how many values share a scale.
        bits: the width of a value.

    Raises:
        DTypeError: if the values are not packed in uint32.
        ShapeError: if the shapes do not fit together.
    """
    if kind != "uint32":
        raise DTypeError(f"expected values packed in uint32 by ops.quantize, got {kind}")
    group_count = w[-1] * (32 // bits) / group_size if len(w) else 0
    expected_shape = (*w[:-1], int(group_count))
    if (
        not len(w)
        or group_count != int(group_count)
        or tuple(scales) != expected_shape
        or tuple(biases) != expected_shape
    ):
        raise ShapeError(
            f"packed values of shape {tuple(w)} with group_size={group_size} and bits={bits} have scales and biases of "
            f"shape {expected_shape if len(w) else '(..., groups)'}, got {tuple(scales)} and {tuple(biases)}; pass the "
            f"group_size and the bits with which they were quantised"
        )


def check_columns(table: Any, scales: Any, biases: Any, group_size: int) -> None:
    """Checks that scales and biases fit a quantised matrix that is stored by columns, as PyTorch's layers store it.

    Args:
        table: the shape of the table, (columns, bytes).
        scales, biases: the shapes.
        group_size: how many values share a scale.

    Raises:
        ShapeError: if they do not.
    """
    group_count = table[0] // group_size
    if len(scales) != 2 or tuple(scales) != tuple(biases) or scales[1] != group_count:
        raise ShapeError(
            f"a matrix of {table[0]} columns with group_size={group_size} has scales and biases of shape "
            f"(rows, {group_count}), got {tuple(scales)} and {tuple(biases)}"
        )


def check_product(x: Any, w: Any, transpose: bool, bits: int) -> None:
    """Checks that a tensor can be multiplied by a quantised matrix.

    Args:
        x, w: the shapes.
        transpose: whether the matrix is transposed.
        bits: the width of a value.

    Raises:
        ShapeError: if it cannot.
    """
    if len(w) != 2:
        raise ShapeError(f"expected the packed values of a matrix, (rows, columns * bits / 32), got shape {tuple(w)}")
    row_count, column_count = w[0], w[1] * (32 // bits)
    if not len(x) or x[-1] != (column_count if transpose else row_count):
        raise ShapeError(
            f"expected x of shape (..., {column_count if transpose else row_count}) for a quantised matrix of shape "
            f"({row_count}, {column_count}) with transpose={transpose}, got {tuple(x)}"
        )
