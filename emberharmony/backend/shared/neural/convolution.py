"""The geometry of convolutions and pooling, computed on the host: positions of windows, and padding."""

import contextlib
import functools
import itertools
import math
from collections.abc import Iterator, Sequence
from typing import Any

from emberharmony.backend.shared.device import check_memory
from emberharmony.core.axes import as_index
from emberharmony.core.errors import ArgumentError, ShapeError
from emberharmony.core.named_tuple import Record


def has_channels_last(data_format: str | None) -> bool:
    """Returns whether the channels are on the last axis, which is the default.

    Raises:
        ArgumentError: if `data_format` is neither None, "channels_last" nor "channels_first".
    """
    if data_format not in (None, "channels_last", "channels_first"):
        raise ArgumentError(f"data_format is 'channels_last' or 'channels_first', not {data_format!r}")
    return data_format != "channels_first"


def integers_per_axis(value: Any, n: int, name: str, minimum: int = 1) -> tuple[int, ...]:
    """Returns one integer for all axes, or one per axis, as a tuple of n integers.

    Raises:
        ArgumentError: if they are not integers, not 1 or n, or below `least`.
    """
    if value.__class__ is int and value >= minimum:
        return (value,) * n
    try:
        is_single = hasattr(value, "__index__") and not getattr(value, "ndim", 0)
        numbers = tuple(as_index(v) for v in ([value] * n if is_single else value))
    except TypeError as error:
        raise ArgumentError(f"{name} is an integer or a sequence of them, not {value!r}") from error
    if len(numbers) != n or any(number < minimum for number in numbers):
        raise ArgumentError(
            f"{name} is an integer of at least {minimum}, or one for each of {n} spatial axes, not {value!r}"
        )
    return numbers


def padding_pairs(padding: Any, n: int) -> tuple[tuple[int, int], ...] | None:
    """Returns the elements before and after each of n spatial axes; None if `padding` is "valid" or "same".

    Raises:
        ArgumentError: if `padding` is neither of these words, nor integers of at least 0, nor pairs of them.
    """
    if padding.__class__ is str and padding in ("valid", "same"):
        return None
    pad_pairs: Any = ()
    # A word other than "valid" and "same" gives no pairs of integers, so it is refused below.
    with contextlib.suppress(TypeError, ValueError):
        is_single = hasattr(padding, "__index__") and not getattr(padding, "ndim", 0)
        pairs = [
            (item, item) if hasattr(item, "__index__") and not getattr(item, "ndim", 0) else item
            for item in ([padding] * n if is_single else padding)
        ]
        pad_pairs = tuple((as_index(before), as_index(after)) for before, after in pairs)
    if len(pad_pairs) != n or min(map(min, pad_pairs)) < 0:
        raise ArgumentError(
            f"padding is 'valid' or 'same', not {padding!r:.60}; or an integer of at least 0, or one for each of {n} "
            f"spatial axes, or one pair (before, after) for each"
        )
    return pad_pairs


def distinct_window_indices(length: int, count: int) -> Sequence[int]:
    """Returns the indices of those of `count` adaptive windows on an axis that differ from the window before.

    Window i reaches from `floor(i * length / count)` to `ceil((i + 1) * length / count)`.
    """
    if count <= length:
        return range(count)
    starts = {-(-j * count // length) for j in range(length)}
    stops = {j * count // length for j in range(length)}
    return sorted(starts | stops)


def spatial_axis_count(ndim: int) -> int:
    """Returns the number of spatial axes of a tensor that also has a batch axis and a channel axis.

    Raises:
        ShapeError: if there is no spatial axis.
    """
    if ndim < 3:
        raise ShapeError(f"expected a tensor with a batch axis, spatial axes and a channel axis, got {ndim} axes")
    return ndim - 2


def check_channels(shape: Sequence[int], kernel: Sequence[int]) -> int:
    """Returns the number of groups of a convolution, after a check that the kernel fits the tensor.

    Args:
        shape: of the tensor, (batch, *spatial, channels).
        kernel: the shape of the kernel, (*size, channels / groups, outputs).

    Raises:
        ShapeError: if the kernel does not fit the tensor.
    """
    _check_axes(shape, kernel)
    groups = shape[-1] // kernel[-2] if kernel[-2] else 0
    if groups * kernel[-2] != shape[-1] or groups == 0 or kernel[-1] % groups:
        raise ShapeError(f"a tensor of {shape[-1]} channels does not suit a kernel of shape {tuple(kernel)}")
    return groups


def check_depthwise(shape: Sequence[int], kernel: Sequence[int], first: bool = False) -> None:
    """Checks that the kernel of a depthwise convolution has as many channels as the tensor.

    Args:
        shape: of the tensor.
        kernel: the shape of the kernel, (*size, channels, multiplier).
        first: whether the channels of the tensor are on axis 1, rather than on the last one.

    Raises:
        ShapeError: if the kernel does not fit the tensor.
    """
    _check_axes(shape, kernel)
    channels = shape[1 if first else -1]
    if kernel[-2] != channels:
        kernel_text = f"a kernel of shape {tuple(kernel)}, which is for {kernel[-2]}"
        raise ShapeError(f"a tensor of {channels} channels does not suit {kernel_text}")


def _check_axes(shape: Sequence[int], kernel: Sequence[int]) -> None:
    if len(shape) != len(kernel) or len(shape) < 3:
        raise ShapeError(
            f"a tensor of shape {tuple(shape)} and a kernel of shape {tuple(kernel)} need the same number of spatial "
            f"axes"
        )


def check_bias(bias: Any, outputs: int) -> None:
    """Checks that the bias of a convolution is None, or a vector with one number for each output channel.

    Raises:
        ShapeError: if it is not None and not a vector with one number for each output channel.
    """
    if bias is not None and tuple(bias.shape) != (outputs,):
        raise ShapeError(f"expected a bias of shape ({outputs},), one for each output channel, got {tuple(bias.shape)}")


class Windows(Record):
    """The windows of a convolution or pool: per spatial axis, their number and the zeros before and after the axis."""

    counts: tuple[int, ...]
    padding: tuple[tuple[int, int], ...]
    size: tuple[int, ...]
    strides: tuple[int, ...]
    dilation: tuple[int, ...]

    @property
    def has_padding(self) -> bool:
        """Whether any axis has zeros around it."""
        return any(map(any, self.padding))

    @property
    def are_side_by_side(self) -> bool:
        """Whether windows of several elements touch without overlapping, as those of patches do."""
        return tuple(self.size) == tuple(self.strides) and math.prod(self.size) > 1 and set(self.dilation) == {1}

    def pad_widths(self) -> list[tuple[int, int]]:
        """Returns the zeros before and after each axis of a tensor (batch, *spatial, channels), as for `np.pad`."""
        return [(0, 0), *self.padding, (0, 0)]

    def slices_along(self, axis: int) -> Iterator[slice]:
        """Yields, for each position in a window along one spatial axis, the slice that reads it in all windows."""
        step, axis_dilation = self.strides[axis], self.dilation[axis]
        for position in range(self.size[axis]):
            yield slice(position * axis_dilation, position * axis_dilation + (self.counts[axis] - 1) * step + 1, step)

    def positions_and_slices(self) -> Iterator[tuple[tuple[int, ...], tuple[slice, ...]]]:
        """Yields each position in a window, and the slices of the padded axes that read it in all windows."""
        for offset in itertools.product(*(enumerate(self.slices_along(axis)) for axis in range(len(self.size)))):
            yield tuple(position for position, _ in offset), tuple(input_slice for _, input_slice in offset)


def windows(
    lengths: Sequence[int],
    size: Sequence[int],
    strides: Any,
    padding: Any,
    dilation_rate: Any = 1,
    ceil_mode: bool = False,
) -> Windows:
    """Returns the windows of a convolution or pool on spatial axes of these lengths, with the padding.

    Padding "same" gives `ceil(length / stride)` windows, "valid" as many as fit without zeros, and numbers as many as
    fit with that many zeros. With `ceil_mode` there is one window more if elements are left, unless it would begin in
    the zeros after the axis.

    Raises:
        ArgumentError: if an option is invalid.
        OutOfMemoryError: if an axis with its padding would be longer than any memory.
        ShapeError: if no window fits an axis.
    """
    n = len(lengths)
    steps, dilation = integers_per_axis(strides, n, "strides"), integers_per_axis(dilation_rate, n, "dilation_rate")
    pad_pairs = padding_pairs(padding, n) or ((0, 0),) * n
    if 0 in size:
        raise ShapeError(f"a window of shape {tuple(size)} has no elements")
    # A window of size 1 has no dilation. So replace such numbers, whose products might not fit into 64 bits.
    dilation = tuple(spread if k > 1 else 1 for spread, k in zip(dilation, size, strict=True))
    window_counts, paddings, strides = [], [], []
    for length, k, step, spread, (before, after) in zip(lengths, size, steps, dilation, pad_pairs, strict=True):
        padded_length, window_length = length + before + after, (k - 1) * spread + 1
        check_memory((padded_length,), 1)
        if padding == "same":
            window_count = -(-length // step)
            padding_length = max((window_count - 1) * step + window_length - length, 0)
            before, after = padding_length // 2, padding_length - padding_length // 2
        elif ceil_mode:
            window_count = -(-(padded_length - window_length) // step) + 1
            window_count -= window_count > 1 and (window_count - 1) * step >= length + before
            after = max(after, (window_count - 1) * step + window_length - length - before)
        else:
            window_count = (padded_length - window_length) // step + 1
        if window_count < 1:
            raise ShapeError(f"a window of {window_length} does not fit an axis of length {padded_length}: pad it")
        window_counts.append(window_count)
        paddings.append((before, after))
        # A stride longer than the axis gives one window, like one of the axis's length.
        strides.append(min(step, max(padded_length, 1)))
    return Windows(tuple(window_counts), tuple(paddings), tuple(size), tuple(strides), dilation)


_cached_windows = functools.lru_cache(maxsize=256)(windows)


def recent_windows(lengths: Sequence[int], size: Sequence[int], strides: Any, padding: Any, dilation: Any) -> Windows:
    """Returns the same as `windows`, from a cache if the options are single numbers and a word.

    `torch.compile` must not trace it: its lengths may be symbols.
    """
    if strides.__class__ is int and padding.__class__ is str and dilation.__class__ is int:
        return _cached_windows(tuple(lengths), tuple(size), strides, padding, dilation)
    return windows(lengths, size, strides, padding, dilation)


class Pool(Record):
    """The windows of a pool, and the padding that the caller asked for, which `ceil_mode` may have enlarged."""

    plan: Windows
    asked_padding: tuple[tuple[int, int], ...]
    size: tuple[int, ...]
    """The size of the windows that was asked for; with padding "same" the plan may have smaller ones."""

    def extra_padding(self) -> list[tuple[int, int]]:
        """Returns, for each axis, how far the padding before and after it exceeds the padding that was asked for."""
        actual_and_asked = zip(self.plan.padding, self.asked_padding, strict=True)
        return [(0, 0), *((0, after - asked_padding) for (_, after), (_, asked_padding) in actual_and_asked), (0, 0)]


@functools.lru_cache(maxsize=256)
def window_shape_and_axes(shape: tuple[int, ...], size: int) -> tuple[tuple[int, ...], tuple[int, ...]]:
    """Returns the shape that splits each spatial axis into windows of a size, and the axes within a window.

    Raises:
        NotImplementedError: if elements are left over.
    """
    spatial_shape = shape[1:-1]
    if not spatial_shape or size < 1 or any(n % size for n in spatial_shape):
        raise NotImplementedError
    split_shape = [length for n in spatial_shape for length in (n // size, size)]
    return (shape[0], *split_shape, shape[-1]), tuple(range(2, len(split_shape) + 1, 2))


def pool_windows(
    lengths: Sequence[int],
    pool_size: Any,
    strides: Any,
    padding: Any,
    dilation_rate: Any = 1,
    ceil_mode: bool = False,
) -> Pool:
    """Returns the windows of a pool on axes of these lengths; without `strides` they are adjacent.

    Raises:
        ArgumentError: if an option is invalid.
        ShapeError: if no window fits an axis.
    """
    n = len(lengths)
    pool_sizes = size = integers_per_axis(pool_size, n, "pool_size")
    strides = size if strides is None else strides
    if padding == "same":
        # A window of twice the length holds the whole axis wherever it starts, so a larger one has the same result.
        size = tuple(min(width, 2 * length or 1) for width, length in zip(size, lengths, strict=True))
    plan = windows(lengths, size, strides, padding, dilation_rate, ceil_mode)
    paddings = padding_pairs(padding, n)
    if paddings is not None:
        for sides, k, axis_dilation in zip(paddings, size, plan.dilation, strict=True):
            window_span = (k - 1) * axis_dilation + 1
            if max(sides) > window_span // 2:
                raise ArgumentError(
                    f"padding of at most {window_span // 2} suits windows of length {window_span}, not "
                    f"{padding!r:.60}: a window "
                    f"entirely in the padding has no elements"
                )
    elif padding == "valid":
        paddings = ((0, 0),) * n
    return Pool(plan, plan.padding if paddings is None else paddings, pool_sizes)


def divisor(value: Any) -> int:
    """Returns the divisor that an average pool's option gives for the sums of windows, checked not to be 0.

    Raises:
        ArgumentError: if it is not an integer other than 0.
    """
    is_single = hasattr(value, "__index__") and not getattr(value, "ndim", 0)
    if not is_single or not as_index(value):
        raise ArgumentError(f"divisor_override is an integer other than 0, or None, not {value!r:.60}")
    return as_index(value)


class TransposedGeometry(Record):
    """The geometry of a transposed convolution: the options of each spatial axis, and the zeros around its input."""

    strides: tuple[int, ...]
    dilation: tuple[int, ...]
    padding: tuple[tuple[int, int], ...]
    """The zeros before and after each axis, once `stride - 1` zeros are between its elements; negative ones crop it."""

    def crop_pairs(self, size: Sequence[int]) -> list[tuple[int, int]]:
        """Returns how many elements to crop at both ends of each axis, after scattering with a kernel of this size.

        A negative number says how many zeros to add instead.
        """
        kernel_spans = [(k - 1) * axis_dilation for k, axis_dilation in zip(size, self.dilation, strict=True)]
        return [(r - before, r - after) for r, (before, after) in zip(kernel_spans, self.padding, strict=True)]

    def lengths(self, lengths: Sequence[int], size: Sequence[int]) -> list[int]:
        """Returns the lengths of the result's spatial axes, from those of the input and of the kernel."""
        axis_options = zip(lengths, self.strides, self.padding, size, self.dilation, strict=True)
        return [
            (n - 1) * step + 1 + sum(zeros) - (k - 1) * axis_dilation
            for n, step, zeros, k, axis_dilation in axis_options
        ]


def transposed_geometry(
    lengths: Sequence[int],
    size: Sequence[int],
    strides: Any,
    padding: Any,
    output_padding: Any = None,
    dilation_rate: Any = 1,
) -> TransposedGeometry:
    """Returns the geometry of a transposed convolution on axes of these lengths.

    It equals a convolution with the flipped kernel over the input, spread out by the strides and padded with zeros.

    Raises:
        ArgumentError: if an option is invalid.
        OutOfMemoryError: if an axis would be longer than any memory.
        ShapeError: if an axis of the input or the kernel is empty, or an axis of the result would be.
    """
    n = len(size)
    steps, dilation = integers_per_axis(strides, n, "strides"), integers_per_axis(dilation_rate, n, "dilation_rate")
    output_paddings = (
        [output_padding] * n if output_padding is None or isinstance(output_padding, int) else list(output_padding)
    )
    if len(output_paddings) != n:
        raise ArgumentError(
            f"output_padding is an integer, or one for each of {n} spatial axes, not {output_padding!r}"
        )
    asked_pads = padding_pairs(padding, n) or [padding] * n
    if 0 in size or 0 in lengths:
        raise ShapeError(
            f"expected lengths above 0, got a kernel of size {tuple(size)} and spatial axes of lengths {tuple(lengths)}"
        )
    zero_pairs = tuple(map(_transposed_padding, size, steps, dilation, asked_pads, output_paddings))
    for length, k, step, axis_dilation, zeros in zip(lengths, size, steps, dilation, zero_pairs, strict=True):
        kernel_span, spaced_length = (k - 1) * axis_dilation + 1, (length - 1) * step + 1 + sum(zeros)
        if spaced_length < kernel_span:
            raise ShapeError(f"a window of {kernel_span} does not fit an axis of length {spaced_length}: pad it")
        check_memory((spaced_length,), 1)
    return TransposedGeometry(steps, dilation, zero_pairs)


def _transposed_padding(
    size: int, stride: int, dilation: int, padding: str | tuple[int, int], output_padding: int | None
) -> tuple[int, int]:
    """Returns the zeros before and after one axis of the dilated input of a transposed convolution.

    Source: Keras, whose transposed convolution is the gradient of `conv` with the same options; PyTorch for numbers.
    """
    kernel_span = (size - 1) * dilation + 1
    if not isinstance(padding, str):
        before, after = padding
        return kernel_span - 1 - before, kernel_span - 1 - after + (output_padding or 0)
    if padding == "valid":
        end_padding = max(kernel_span, stride) - kernel_span if output_padding is None else output_padding
        return kernel_span - 1, kernel_span - 1 + end_padding
    if output_padding is None:
        # Pad as "SAME" of jax.lax.conv_transpose does.
        total_padding = kernel_span + stride - 2
        before = kernel_span - 1 if stride > kernel_span - 1 else -(-total_padding // 2)
        return before, total_padding - before
    right_padding = kernel_span - 1 - kernel_span // 2
    return right_padding, right_padding + output_padding
