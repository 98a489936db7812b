"""Helpers of layers with spatial axes: the base of their 1d, 2d and 3d classes, and the checks of inputs."""

from collections.abc import Callable, Sequence
from typing import Any, Literal, TypeAlias, TypeVar, cast

from emberharmony import ops
from emberharmony.core.errors import ArgumentError, ShapeError, brief
from emberharmony.nn.locate import fault
from emberharmony.nn.module import Module
from emberharmony.nn.options import choice_option, length_option
from emberharmony.types import Tensor, TensorLike

T = TypeVar("T")
DataFormat: TypeAlias = Literal["channels_first", "channels_last"]
"""The type of the option `data_format`: the channel axis is before the spatial axes, as in PyTorch, or behind."""


class Spatial(Module):
    """The base of layers that exist for 1, 2 and 3 spatial axes.

    `class Conv2d(_Conv, axes=2)` says its number of axes, its Shape and its Example. What all of the family have in
    common, as the options, stands in the docstring of the base once, and is shown as part of each.

    Attributes:
        axes: the number of spatial axes.
    """

    axes: int

    def __init_subclass__(cls, axes: int | None = None, **options: Any) -> None:
        if axes is not None:
            cls.axes = axes
            shared_doc = next((base.__doc__ for base in cls.__mro__[1:] if "Args:" in (base.__doc__ or "")), None)
            if shared_doc and cls.__doc__:  # `python -OO` removes docstrings
                own_text, example_mark, example = cls.__doc__.partition("Example:")
                indentation = own_text[len(own_text.rstrip()) :]
                cls.__doc__ = (
                    f"{own_text}{shared_doc.partition(indentation)[2].strip()}{indentation}{example_mark}{example}"
                )
        super().__init_subclass__(**options)


def checked_data_format(value: Any) -> DataFormat:
    """Returns the option `data_format` after a check that it is "channels_first" or "channels_last".

    Raises:
        ArgumentError: if it is unknown.
    """
    return choice_option("data_format", value, ("channels_first", "channels_last"))  # type: ignore[return-value]


def apply_to_batch(function: Callable[[Any], T], x: TensorLike, axes: int) -> T:
    """Applies a function of a batch to a batch, or to a single sample, which gets a batch axis meanwhile.

    Args:
        function: takes and returns tensors with a batch axis, channels and spatial axes.
        x: the input.
        axes: the number of spatial axes.

    Raises:
        ShapeError: if the input has another number of axes.
    """
    if not ops.is_tensor(x):
        x = ops.convert_to_tensor(x)
    if len(x.shape) == axes + 2:
        return function(x)
    if len(x.shape) == axes + 1:
        batch_result: Any = function(ops.expand_dims(x, 0))
        if isinstance(batch_result, tuple):
            return cast(T, tuple(ops.squeeze(tensor, 0) for tensor in batch_result))
        return cast(T, ops.squeeze(batch_result, 0))
    raise fault(
        ShapeError(
            f"expected a batch of {axes + 2} axes, with channels and {axes} spatial ones, or a sample of {axes + 1}, "
            f"got shape {tuple(x.shape)}"
        )
    )


def paddings_option(name: str, value: Any, axes: int) -> tuple[int, ...]:
    """Returns an option as integers before and after each spatial axis, the last axis first, after a check.

    Raises:
        ArgumentError: if their number is wrong.
        ArgumentTypeError: if one is not an integer.
    """
    if not isinstance(value, (tuple, list)):
        value = (value,) * (2 * axes)
    if len(value) != 2 * axes:
        raise fault(ArgumentError(f"{name} must be one integer or {2 * axes}, two for each axis, got {brief(value)}"))
    return tuple(length_option(name, pad, least=-(2**31)) for pad in value)


def paddings_by_axis(around: Sequence[int]) -> list[tuple[int, int]]:
    """Returns the pair (before, after) of each axis from numbers in PyTorch's order: two for each, last axis first."""
    return [(around[i], around[i + 1]) for i in range(len(around) - 2, -1, -2)]


def to_tensor(x: TensorLike) -> Tensor:
    """Returns a tensor, or a list or number as a tensor."""
    return x if ops.is_tensor(x) else ops.convert_to_tensor(x)
