"""Layers that add elements around the spatial axes."""

from collections.abc import Sequence
from typing import Literal

from emberharmony import ops
from emberharmony.core.errors import ShapeError
from emberharmony.nn import spatial
from emberharmony.nn.locate import fault
from emberharmony.nn.spatial import DataFormat
from emberharmony.types import Tensor, TensorLike


class _Pad(spatial.Spatial):
    """The base of padding layers: adds elements around the last axes, or cuts them off for negative numbers.

    Args:
        padding: one integer for all sides, or two for each axis, the last axis first: (left, right) or (left, right,
            top, bottom), and so on.
        data_format: "channels_last" if the channels come after the spatial axes.

    Raises:
        ArgumentError: if the number of integers is wrong.
    """

    mode: Literal["constant", "reflect", "edge", "wrap"]
    value: float | None = None

    def __init__(self, padding: int | Sequence[int], *, data_format: DataFormat = "channels_first") -> None:
        self.padding = spatial.paddings_option("padding", padding, self.axes)
        self.data_format = spatial.checked_data_format(data_format)
        padding_pairs = spatial.paddings_by_axis(self.padding)
        is_channels_last = self.data_format == "channels_last"
        self._added = [
            *((max(before, 0), max(after, 0)) for before, after in padding_pairs),
            *[(0, 0)] * is_channels_last,
        ]
        kept_slices = [slice(max(-before, 0), min(after, 0) or None) for before, after in padding_pairs]
        self._kept = (..., *kept_slices, *[slice(None)] * is_channels_last) if min(self.padding) < 0 else None
        self._cut = [0] * is_channels_last + [
            -min(before, 0) - min(after, 0) for before, after in reversed(padding_pairs)
        ]

    def __call__(self, x: TensorLike) -> Tensor:
        x = spatial.to_tensor(x)
        missing_axis_count = len(x.shape) - len(self._added)
        if missing_axis_count < 0:
            raise fault(ShapeError(f"expected at least {len(self._added)} axes, got shape {tuple(x.shape)}"))
        padding_widths = [(0, 0)] * missing_axis_count + self._added
        if self._kept is None:
            return ops.pad(x, padding_widths, self.mode, self.value)
        # The modes "reflect" and "edge" pad before elements are cut off, "wrap" and "constant" pad afterwards.
        pads_first = self.mode in ("reflect", "edge")
        x = ops.pad(x, padding_widths, self.mode, self.value) if pads_first else x
        if any(n < out for n, out in zip(reversed(x.shape), self._cut, strict=False)):
            raise fault(ShapeError(f"padding={self.padding} cuts off more than there is of shape {tuple(x.shape)}"))
        x = ops.get_item(x, self._kept)
        return x if pads_first else ops.pad(x, padding_widths, self.mode, self.value)


class _ConstantPad(_Pad):
    """The base of layers that add a constant.

    Args:
        padding: one integer for all sides, or two for each axis, the last axis first: (left, right) or (left, right,
            top, bottom), and so on.
        value: the number that is added.
        data_format: "channels_last" if the channels come after the spatial axes.

    Raises:
        ArgumentError: if the number of integers is wrong.
    """

    mode = "constant"

    def __init__(
        self, padding: int | Sequence[int], value: float, *, data_format: DataFormat = "channels_first"
    ) -> None:
        super().__init__(padding, data_format=data_format)
        self.value = value


class ConstantPad1d(_ConstantPad, axes=1):
    """Adds a constant around the last axis; negative numbers cut elements off.

    Example:
        >>> nn.ConstantPad1d((1, 2), 9)([[1, 2]]).tolist()
        [[9, 1, 2, 9, 9]]
    """


class ConstantPad2d(_ConstantPad, axes=2):
    """Adds a constant around the last two axes; negative numbers cut elements off.

    Example:
        >>> nn.ConstantPad2d((1, 0, 0, 1), 9)([[[1, 2]]]).tolist()
        [[[9, 1, 2], [9, 9, 9]]]
    """


class ConstantPad3d(_ConstantPad, axes=3):
    """Adds a constant around the last three axes; negative numbers cut elements off.

    Example:
        >>> nn.ConstantPad3d((0, 0, 0, 0, 1, 0), 9)([[[[1, 2]]]]).tolist()
        [[[[9, 9]], [[1, 2]]]]
    """


class ZeroPad1d(_Pad, axes=1):
    """Adds zeros around the last axis; negative numbers cut elements off.

    Example:
        >>> nn.ZeroPad1d(1)([[1, 2]]).tolist()
        [[0, 1, 2, 0]]
    """

    mode = "constant"


class ZeroPad2d(_Pad, axes=2):
    """Adds zeros around the last two axes; negative numbers cut elements off.

    Example:
        >>> nn.ZeroPad2d((1, 0, 0, 1))([[[1, 2]]]).tolist()
        [[[0, 1, 2], [0, 0, 0]]]
    """

    mode = "constant"


class ZeroPad3d(_Pad, axes=3):
    """Adds zeros around the last three axes; negative numbers cut elements off.

    Example:
        >>> nn.ZeroPad3d((0, 0, 0, 0, 1, 0))([[[[1, 2]]]]).tolist()
        [[[[0, 0]], [[1, 2]]]]
    """

    mode = "constant"


class ReflectionPad1d(_Pad, axes=1):
    """Mirrors the elements at the ends of the last axis, without the element at the edge.

    Example:
        >>> nn.ReflectionPad1d(2)([[1, 2, 3]]).tolist()
        [[3, 2, 1, 2, 3, 2, 1]]
    """

    mode = "reflect"


class ReflectionPad2d(_Pad, axes=2):
    """Mirrors the elements at the ends of the last two axes, without the element at the edge.

    Example:
        >>> nn.ReflectionPad2d((1, 0, 0, 1))([[[1, 2], [3, 4]]]).tolist()
        [[[2, 1, 2], [4, 3, 4], [2, 1, 2]]]
    """

    mode = "reflect"


class ReflectionPad3d(_Pad, axes=3):
    """Mirrors the elements at the ends of the last three axes, without the element at the edge.

    Example:
        >>> nn.ReflectionPad3d((1, 0, 0, 0, 0, 0))([[[[1, 2]]]]).tolist()
        [[[[2, 1, 2]]]]
    """

    mode = "reflect"


class ReplicationPad1d(_Pad, axes=1):
    """Repeats the elements at the ends of the last axis.

    Example:
        >>> nn.ReplicationPad1d((1, 2))([[1, 2]]).tolist()
        [[1, 1, 2, 2, 2]]
    """

    mode = "edge"


class ReplicationPad2d(_Pad, axes=2):
    """Repeats the elements at the ends of the last two axes.

    Example:
        >>> nn.ReplicationPad2d((1, 0, 0, 1))([[[1, 2]]]).tolist()
        [[[1, 1, 2], [1, 1, 2]]]
    """

    mode = "edge"


class ReplicationPad3d(_Pad, axes=3):
    """Repeats the elements at the ends of the last three axes.

    Example:
        >>> nn.ReplicationPad3d((0, 0, 0, 0, 1, 0))([[[[1, 2]]]]).tolist()
        [[[[1, 2]], [[1, 2]]]]
    """

    mode = "edge"


class CircularPad1d(_Pad, axes=1):
    """Continues the last axis periodically.

    Example:
        >>> nn.CircularPad1d((1, 2))([[1, 2, 3]]).tolist()
        [[3, 1, 2, 3, 1, 2]]
    """

    mode = "wrap"


class CircularPad2d(_Pad, axes=2):
    """Continues the last two axes periodically.

    Example:
        >>> nn.CircularPad2d((1, 0, 0, 1))([[[1, 2], [3, 4]]]).tolist()
        [[[2, 1, 2], [4, 3, 4], [2, 1, 2]]]
    """

    mode = "wrap"


class CircularPad3d(_Pad, axes=3):
    """Continues the last three axes periodically.

    Example:
        >>> nn.CircularPad3d((1, 0, 0, 0, 0, 0))([[[[1, 2]]]]).tolist()
        [[[[2, 1, 2]]]]
    """

    mode = "wrap"
