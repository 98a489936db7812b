"""The geometry of convolutions and pools: how windows lie on the spatial axes, computed on the host."""

import itertools
import operator
from collections.abc import Iterator, Sequence
from typing import Any

from emberharmony.backend.shared.device import check_memory
from emberharmony.core.errors import ArgumentError, ShapeError
from emberharmony.core.named_tuple import Record


def channels_last(data_format: str | None) -> bool:
    """Returns whether the channels are the last axis, as they are by default.

    Raises: ArgumentError for a name that is neither "channels_last" nor "channels_first".
    """
    if data_format not in (None, "channels_last", "channels_first"):
        raise ArgumentError(f"data_format is 'channels_last' or 'channels_first', not {data_format!r}")
    return data_format != "channels_first"


def each(value: Any, n: int, name: str, least: int = 1) -> tuple[int, ...]:
    """Returns an integer, or one an axis, as n integers, none below the `least`.

    Raises: ArgumentError.
    """
    if value.__class__ is int and value >= least:
        return (value,) * n
    try:
        numbers = tuple(operator.index(v) for v in ([value] * n if hasattr(value, "__index__") else value))
    except TypeError as error:
        raise ArgumentError(f"{name} is an integer or a sequence of them, not {value!r}") from error
    if len(numbers) != n or any(number < least for number in numbers):
        raise ArgumentError(f"{name} is an integer from {least} on, or one for each of {n} spatial axes, not {value!r}")
    return numbers


def first_windows(length: int, count: int) -> Sequence[int]:
    """Returns, of `count` adaptive windows on an axis, each that differs from the window before it.

    Window i reaches from `floor(i * length / count)` to `ceil((i + 1) * length / count)`.
    """
    if count <= length:
        return range(count)
    starts = {-(-j * count // length) for j in range(length)}
    stops = {j * count // length for j in range(length)}
    return sorted(starts | stops)


def spatial(ndim: int) -> int:
    """Returns the number of spatial axes of a tensor that also has a batch and channels.

    Raises: ShapeError if there are none.
    """
    if ndim < 3:
        raise ShapeError(f"a batch, spatial axes and channels are wanted, this tensor has {ndim} axes")
    return ndim - 2


def check_channels(shape: Sequence[int], kernel: Sequence[int]) -> int:
    """Returns the number of groups in which a kernel convolves a tensor with the channels last.

    Raises: ShapeError if the two do not suit each other.
    """
    if len(shape) != len(kernel) or len(shape) < 3:
        raise ShapeError(f"a tensor {tuple(shape)} and a kernel {tuple(kernel)} need the same number of spatial axes")
    groups = shape[-1] // kernel[-2] if kernel[-2] else 0
    if groups * kernel[-2] != shape[-1] or groups == 0 or kernel[-1] % groups:
        raise ShapeError(f"a tensor of {shape[-1]} channels does not suit a kernel of shape {tuple(kernel)}")
    return groups


class Windows(Record):
    """Holds, for each spatial axis, how many windows there are and the zeros before and after it."""

    counts: tuple[int, ...]
    padding: tuple[tuple[int, int], ...]
    size: tuple[int, ...]
    strides: tuple[int, ...]
    dilation: tuple[int, ...]

    @property
    def padded(self) -> bool:
        """Whether there are zeros around any axis."""
        return any(map(any, self.padding))

    def around(self) -> list[tuple[int, int]]:
        """Returns the zeros before and after each axis of a tensor with the channels last."""
        return [(0, 0), *self.padding, (0, 0)]

    def along(self, axis: int) -> Iterator[slice]:
        """Yields, for each place in a window along one spatial axis, the slice that reads it in all windows."""
        step, spread = self.strides[axis], self.dilation[axis]
        for place in range(self.size[axis]):
            yield slice(place * spread, place * spread + (self.counts[axis] - 1) * step + 1, step)

    def offsets(self) -> Iterator[tuple[tuple[int, ...], tuple[slice, ...]]]:
        """Yields each place in a window, and the slices of the padded axes that read it in all windows."""
        for offset in itertools.product(*(enumerate(self.along(axis)) for axis in range(len(self.size)))):
            yield tuple(place for place, _ in offset), tuple(part for _, part in offset)


def windows(lengths: Sequence[int], size: Sequence[int], strides: Any, padding: str, dilation_rate: Any = 1) -> Windows:
    """Returns how windows of a size lie on axes of these lengths.

    With padding "same" there are `ceil(length / stride)` windows, with "valid" as many as fit.

    Raises: ArgumentError for bad options; ShapeError where no window fits.
    """
    n = len(lengths)
    steps, dilation = each(strides, n, "strides"), each(dilation_rate, n, "dilation_rate")
    if padding not in ("valid", "same"):
        raise ArgumentError(f"padding is 'valid' or 'same', not {padding!r}")
    if 0 in size:
        raise ShapeError(f"a window of shape {tuple(size)} has no elements")
    counts, paddings = [], []
    # A stride beyond the axis makes one window, as its length does, and has to fit into 64 bits.
    steps = tuple(min(step, max(length, 1)) for step, length in zip(steps, lengths, strict=True))
    dilation = tuple(spread if k > 1 else 1 for spread, k in zip(dilation, size, strict=True))
    for length, k, step, spread in zip(lengths, size, steps, dilation, strict=True):
        reach = (k - 1) * spread + 1
        count = -(-length // step) if padding == "same" else (length - reach) // step + 1
        if count < 1:
            raise ShapeError(f"a window of {reach} does not fit an axis of length {length}")
        missing = max((count - 1) * step + reach - length, 0) if padding == "same" else 0
        counts.append(count)
        paddings.append((missing // 2, missing - missing // 2))
    return Windows(tuple(counts), tuple(paddings), tuple(size), steps, dilation)


class Transposed(Record):
    """Holds, for each spatial axis of a transposed convolution, its options and the zeros around what is spread out."""

    strides: tuple[int, ...]
    dilation: tuple[int, ...]
    around: tuple[tuple[int, int], ...]
    """The zeros before and after an axis with `stride - 1` zeros between its elements; negative ones cut it."""

    def excess(self, size: Sequence[int]) -> list[tuple[int, int]]:
        """Returns by how much each axis of what a kernel of this size spreads is longer than the result, at both ends.

        Negative numbers tell how many zeros are missing.
        """
        reaches = [(k - 1) * spread for k, spread in zip(size, self.dilation, strict=True)]
        return [(r - before, r - after) for r, (before, after) in zip(reaches, self.around, strict=True)]


def transposed(
    lengths: Sequence[int],
    size: Sequence[int],
    strides: Any,
    padding: str,
    output_padding: Any = None,
    dilation_rate: Any = 1,
) -> Transposed:
    """Returns how a transposed convolution of axes of these lengths is one with the flipped kernel.

    Raises: ArgumentError for bad options; ShapeError if nothing would be left of an axis.
    """
    n = len(size)
    steps, dilation = each(strides, n, "strides"), each(dilation_rate, n, "dilation_rate")
    extra = [output_padding] * n if output_padding is None or isinstance(output_padding, int) else list(output_padding)
    if len(extra) != n:
        raise ArgumentError(
            f"output_padding is an integer, or one for each of {n} spatial axes, not {output_padding!r}"
        )
    if 0 in size or 0 in lengths:
        raise ShapeError(f"a kernel {tuple(size)} on axes of lengths {tuple(lengths)} has nothing to spread")
    around = tuple(map(_transposed_padding, size, steps, dilation, [padding] * n, extra))
    for length, k, step, spread, zeros in zip(lengths, size, steps, dilation, around, strict=True):
        reach, spread_out = (k - 1) * spread + 1, (length - 1) * step + 1 + sum(zeros)
        if spread_out < reach:
            raise ShapeError(f"a window of {reach} does not fit an axis of length {spread_out}")
        check_memory((spread_out,), 1)
    return Transposed(steps, dilation, around)


def _transposed_padding(
    size: int, stride: int, dilation: int, padding: str, output_padding: int | None
) -> tuple[int, int]:
    """Returns the zeros before and after an axis, spread out by the stride, over which a flipped kernel moves.

    Source: Keras, whose transposed convolution is the gradient of `conv` with the same options.
    """
    reach = (size - 1) * dilation + 1
    if padding == "valid":
        extra = max(reach, stride) - reach if output_padding is None else output_padding
        return reach - 1, reach - 1 + extra
    if padding != "same":
        raise ArgumentError(f"padding is 'valid' or 'same', not {padding!r}")
    if output_padding is None:
        both = reach + stride - 2
        before = reach - 1 if stride > reach - 1 else -(-both // 2)
        return before, both - before
    rest = reach - 1 - reach // 2
    return rest, rest + output_padding
