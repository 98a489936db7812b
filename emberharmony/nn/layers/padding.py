"""Layers that add elements around the spatial axes."""

from collections.abc import Sequence
from typing import Literal

from emberharmony import ops
from emberharmony.core.errors import ShapeError
from emberharmony.nn import spatial
from emberharmony.nn.locate import fault
from emberharmony.nn.module import Module
from emberharmony.nn.spatial import DataFormat
from emberharmony.types import Tensor, TensorLike


class _Pad(Module):
    """The base of these layers: adds elements around the last axes, or cuts them off.

    Attributes:
        padding: two integers for each axis, the last axis first.
    """

    axes: int
    mode: Literal["constant", "reflect", "edge", "wrap"]
    value: float | None = None

    def __init__(self, padding: int | Sequence[int], *, data_format: DataFormat = "channels_first") -> None:
        self.padding = spatial.sides("padding", padding, self.axes)
        self.data_format = spatial.data_format(data_format)
        pairs = spatial.by_axis(self.padding)
        behind = self.data_format == "channels_last"
        self._added = [*((max(before, 0), max(after, 0)) for before, after in pairs), *[(0, 0)] * behind]
        kept = [slice(max(-before, 0), min(after, 0) or None) for before, after in pairs]
        self._kept = (..., *kept, *[slice(None)] * behind) if min(self.padding) < 0 else None
        self._cut = [0] * behind + [-min(before, 0) - min(after, 0) for before, after in reversed(pairs)]

    def __call__(self, x: TensorLike) -> Tensor:
        x = spatial.tensor(x)
        missing = len(x.shape) - len(self._added)
        if missing < 0:
            raise fault(ShapeError(f"expected at least {len(self._added)} axes, got shape {tuple(x.shape)}"))
        widths = [(0, 0)] * missing + self._added
        if self._kept is None:
            return ops.pad(x, widths, self.mode, self.value)
        # Elements that are cut off are mirrored or repeated first, but the modes "wrap" and "constant" do not see them.
        first = self.mode in ("reflect", "edge")
        x = ops.pad(x, widths, self.mode, self.value) if first else x
        if any(n < out for n, out in zip(reversed(x.shape), self._cut, strict=False)):
            raise fault(ShapeError(f"padding={self.padding} cuts off more than there is of shape {tuple(x.shape)}"))
        x = ops.get_item(x, self._kept)
        return x if first else ops.pad(x, widths, self.mode, self.value)


class _ConstantPad(_Pad):
    mode = "constant"

    def __init__(
        self, padding: int | Sequence[int], value: float, *, data_format: DataFormat = "channels_first"
    ) -> None:
        super().__init__(padding, data_format=data_format)
        self.value = value


class ConstantPad1d(_ConstantPad):
    """Adds a constant around the last axis; negative numbers cut elements off.

    Args:
        padding: one integer for all sides, or (left, right).
        value: the constant.
        data_format: "channels_last" if the channels come after the spatial axes.

    Raises:
        ArgumentError: if the number of integers is wrong.

    Example:
        >>> nn.ConstantPad1d((1, 2), 9)([[1, 2]]).tolist()
        [[9, 1, 2, 9, 9]]
    """

    axes = 1


class ConstantPad2d(_ConstantPad):
    """Adds a constant around the last two axes; negative numbers cut elements off.

    Args:
        padding: one integer for all sides, or (left, right, top, bottom).
        value: the constant.
        data_format: "channels_last" if the channels come after the spatial axes.

    Raises:
        ArgumentError: if the number of integers is wrong.

    Example:
        >>> nn.ConstantPad2d((1, 0, 0, 1), 9)([[[1, 2]]]).tolist()
        [[[9, 1, 2], [9, 9, 9]]]
    """

    axes = 2


class ConstantPad3d(_ConstantPad):
    """Adds a constant around the last three axes; negative numbers cut elements off.

    Args:
        padding: one integer for all sides, or (left, right, top, bottom, front, back).
        value: the constant.
        data_format: "channels_last" if the channels come after the spatial axes.

    Raises:
        ArgumentError: if the number of integers is wrong.

    Example:
        >>> nn.ConstantPad3d((0, 0, 0, 0, 1, 0), 9)([[[[1, 2]]]]).tolist()
        [[[[9, 9]], [[1, 2]]]]
    """

    axes = 3


class ZeroPad1d(_Pad):
    """Adds zeros around the last axis; negative numbers cut elements off.

    Args:
        padding: one integer for all sides, or (left, right).
        data_format: "channels_last" if the channels come after the spatial axes.

    Raises:
        ArgumentError: if the number of integers is wrong.

    Example:
        >>> nn.ZeroPad1d(1)([[1, 2]]).tolist()
        [[0, 1, 2, 0]]
    """

    axes = 1
    mode = "constant"


class ZeroPad2d(_Pad):
    """Adds zeros around the last two axes; negative numbers cut elements off.

    Args:
        padding: one integer for all sides, or (left, right, top, bottom).
        data_format: "channels_last" if the channels come after the spatial axes.

    Raises:
        ArgumentError: if the number of integers is wrong.

    Example:
        >>> nn.ZeroPad2d((1, 0, 0, 1))([[[1, 2]]]).tolist()
        [[[0, 1, 2], [0, 0, 0]]]
    """

    axes = 2
    mode = "constant"


class ZeroPad3d(_Pad):
    """Adds zeros around the last three axes; negative numbers cut elements off.

    Args:
        padding: one integer for all sides, or (left, right, top, bottom, front, back).
        data_format: "channels_last" if the channels come after the spatial axes.

    Raises:
        ArgumentError: if the number of integers is wrong.

    Example:
        >>> nn.ZeroPad3d((0, 0, 0, 0, 1, 0))([[[[1, 2]]]]).tolist()
        [[[[0, 0]], [[1, 2]]]]
    """

    axes = 3
    mode = "constant"


class ReflectionPad1d(_Pad):
    """Mirrors the elements at the ends of the last axis, without the element at the edge.

    Args:
        padding: one integer for all sides, or (left, right).
        data_format: "channels_last" if the channels come after the spatial axes.

    Raises:
        ArgumentError: if the number of integers is wrong.

    Example:
        >>> nn.ReflectionPad1d(2)([[1, 2, 3]]).tolist()
        [[3, 2, 1, 2, 3, 2, 1]]
    """

    axes = 1
    mode = "reflect"


class ReflectionPad2d(_Pad):
    """Mirrors the elements at the ends of the last two axes, without the element at the edge.

    Args:
        padding: one integer for all sides, or (left, right, top, bottom).
        data_format: "channels_last" if the channels come after the spatial axes.

    Raises:
        ArgumentError: if the number of integers is wrong.

    Example:
        >>> nn.ReflectionPad2d((1, 0, 0, 1))([[[1, 2], [3, 4]]]).tolist()
        [[[2, 1, 2], [4, 3, 4], [2, 1, 2]]]
    """

    axes = 2
    mode = "reflect"


class ReflectionPad3d(_Pad):
    """Mirrors the elements at the ends of the last three axes, without the element at the edge.

    Args:
        padding: one integer for all sides, or (left, right, top, bottom, front, back).
        data_format: "channels_last" if the channels come after the spatial axes.

    Raises:
        ArgumentError: if the number of integers is wrong.

    Example:
        >>> nn.ReflectionPad3d((1, 0, 0, 0, 0, 0))([[[[1, 2]]]]).tolist()
        [[[[2, 1, 2]]]]
    """

    axes = 3
    mode = "reflect"


class ReplicationPad1d(_Pad):
    """Repeats the elements at the ends of the last axis.

    Args:
        padding: one integer for all sides, or (left, right).
        data_format: "channels_last" if the channels come after the spatial axes.

    Raises:
        ArgumentError: if the number of integers is wrong.

    Example:
        >>> nn.ReplicationPad1d((1, 2))([[1, 2]]).tolist()
        [[1, 1, 2, 2, 2]]
    """

    axes = 1
    mode = "edge"


class ReplicationPad2d(_Pad):
    """Repeats the elements at the ends of the last two axes.

    Args:
        padding: one integer for all sides, or (left, right, top, bottom).
        data_format: "channels_last" if the channels come after the spatial axes.

    Raises:
        ArgumentError: if the number of integers is wrong.

    Example:
        >>> nn.ReplicationPad2d((1, 0, 0, 1))([[[1, 2]]]).tolist()
        [[[1, 1, 2], [1, 1, 2]]]
    """

    axes = 2
    mode = "edge"


class ReplicationPad3d(_Pad):
    """Repeats the elements at the ends of the last three axes.

    Args:
        padding: one integer for all sides, or (left, right, top, bottom, front, back).
        data_format: "channels_last" if the channels come after the spatial axes.

    Raises:
        ArgumentError: if the number of integers is wrong.

    Example:
        >>> nn.ReplicationPad3d((0, 0, 0, 0, 1, 0))([[[[1, 2]]]]).tolist()
        [[[[1, 2]], [[1, 2]]]]
    """

    axes = 3
    mode = "edge"


class CircularPad1d(_Pad):
    """Continues the last axis periodically.

    Args:
        padding: one integer for all sides, or (left, right).
        data_format: "channels_last" if the channels come after the spatial axes.

    Raises:
        ArgumentError: if the number of integers is wrong.

    Example:
        >>> nn.CircularPad1d((1, 2))([[1, 2, 3]]).tolist()
        [[3, 1, 2, 3, 1, 2]]
    """

    axes = 1
    mode = "wrap"


class CircularPad2d(_Pad):
    """Continues the last two axes periodically.

    Args:
        padding: one integer for all sides, or (left, right, top, bottom).
        data_format: "channels_last" if the channels come after the spatial axes.

    Raises:
        ArgumentError: if the number of integers is wrong.

    Example:
        >>> nn.CircularPad2d((1, 0, 0, 1))([[[1, 2], [3, 4]]]).tolist()
        [[[2, 1, 2], [4, 3, 4], [2, 1, 2]]]
    """

    axes = 2
    mode = "wrap"


class CircularPad3d(_Pad):
    """Continues the last three axes periodically.

    Args:
        padding: one integer for all sides, or (left, right, top, bottom, front, back).
        data_format: "channels_last" if the channels come after the spatial axes.

    Raises:
        ArgumentError: if the number of integers is wrong.

    Example:
        >>> nn.CircularPad3d((1, 0, 0, 0, 0, 0))([[[[1, 2]]]]).tolist()
        [[[[2, 1, 2]]]]
    """

    axes = 3
    mode = "wrap"
