"""Sample rows of `ops/neural/convolution.py`.

The oracles loop over windows, and that of a transposed convolution adds up what each element contributes.
"""

import itertools
from typing import Any

import numpy as np

from emberharmony.core.errors import ArgumentError, ShapeError
from emberharmony.testing.left_out import NO_WINDOW
from emberharmony.testing.refused import LINE
from emberharmony.testing.sample import FLOATS, HALVES, Sample, case, grid

D: dict[str, Any] = {"dtypes": FLOATS + HALVES, "floor": 4, "differentiable": True}


def _test_tensor(*shape: int) -> np.ndarray[Any, Any]:
    return np.sin(grid(-40, 40, int(np.prod(shape)))).reshape(shape)


def _values_per_axis(value: Any, n: int) -> list[int]:
    return [value] * n if isinstance(value, int) else list(value)


def _padding_per_axis(padding: Any, n: int) -> list[Any]:
    paddings = [padding] * n if isinstance(padding, (int, str)) else list(padding)
    return [(side, side) if isinstance(side, int) else side for side in paddings]


def _padding_of(n: int, k: int, stride: int, padding: Any) -> tuple[int, int]:
    if isinstance(padding, tuple):
        return padding
    padding_length = max((-(-n // stride) - 1) * stride + k - n, 0) if padding == "same" else 0
    return padding_length // 2, padding_length - padding_length // 2


def _conv_oracle(
    x: Any,
    w: Any,
    strides: Any = 1,
    padding: Any = "valid",
    data_format: Any = None,
    dilation: Any = 1,
    bias: Any = None,
) -> Any:
    if data_format == "channels_first":
        return np.moveaxis(_conv_oracle(np.moveaxis(x, 1, -1), w, strides, padding, None, dilation, bias), -1, 1)
    n, kernel_shape = w.ndim - 2, w.shape[:-2]
    steps, dilations = _values_per_axis(strides, n), _values_per_axis(dilation, n)
    window_lengths = [(k - 1) * d + 1 for k, d in zip(kernel_shape, dilations, strict=True)]
    axis_paddings = [
        _padding_of(x.shape[a + 1], window_lengths[a], steps[a], side)
        for a, side in enumerate(_padding_per_axis(padding, n))
    ]
    padded_input: Any = np.pad(x, [(0, 0), *axis_paddings, (0, 0)])
    window_counts = [(padded_input.shape[a + 1] - window_lengths[a]) // steps[a] + 1 for a in range(n)]
    input_channels, output_channels = w.shape[-2], w.shape[-1] // (x.shape[-1] // w.shape[-2])
    output: Any = np.zeros((x.shape[0], *window_counts, w.shape[-1])) + (0 if bias is None else bias)
    for position in itertools.product(*map(range, window_counts)):
        window_slices = [
            slice(i * s, i * s + r, d) for i, s, r, d in zip(position, steps, window_lengths, dilations, strict=True)
        ]
        window = padded_input[:, *window_slices]
        for channel in range(w.shape[-1]):
            first_channel = channel // output_channels * input_channels
            output[:, *position, channel] += (
                (window[..., first_channel : first_channel + input_channels] * w[..., channel])
                .reshape(len(x), -1)
                .sum(1)
            )
    return output


def _depthwise_conv_oracle(x: Any, w: Any, *options: Any, **keywords: Any) -> Any:
    return _conv_oracle(x, w.reshape(*w.shape[:-2], 1, -1), *options, **keywords)


def _conv_transpose_oracle(
    x: Any,
    w: Any,
    strides: Any = 1,
    padding: Any = "valid",
    extra: Any = None,
    data_format: Any = None,
    d: Any = 1,
    bias: Any = None,
) -> Any:
    """Adds up what each element contributes, in one or two axes, and cuts it as the gradient of `_conv_oracle`."""
    if data_format == "channels_first":
        return np.moveaxis(
            _conv_transpose_oracle(np.moveaxis(x, 1, -1), w, strides, padding, extra, None, d, bias), -1, 1
        )
    axis_count = w.ndim - 2
    steps, dilations, extra_rows = (
        _values_per_axis(strides, axis_count),
        _values_per_axis(d, axis_count),
        [None] * axis_count if extra is None else _values_per_axis(extra, axis_count),
    )
    window_lengths = [(k - 1) * s + 1 for k, s in zip(w.shape, dilations, strict=False)]
    groups, input_channels, output_channels = (
        x.shape[-1] // w.shape[-1],
        w.shape[-1],
        w.shape[-2] // (x.shape[-1] // w.shape[-1]),
    )
    full_output = np.zeros(
        (
            len(x),
            *((m - 1) * s + r + 8 for m, s, r in zip(x.shape[1:-1], steps, window_lengths, strict=True)),
            w.shape[-2],
        )
    )
    for position in itertools.product(*map(range, x.shape[1:-1])):
        for k in itertools.product(*map(range, w.shape[:-2])):
            output_position = tuple(i * s + j * e for i, s, j, e in zip(position, steps, k, dilations, strict=True))
            for g in range(groups):
                outputs, inputs = (
                    slice(g * output_channels, (g + 1) * output_channels),
                    slice(g * input_channels, (g + 1) * input_channels),
                )
                full_output[:, *output_position, outputs] += x[:, *position, inputs] @ w[k][outputs].T
    cuts = _cuts_of_output(x.shape[1:-1], steps, window_lengths, extra_rows, padding)
    return full_output[:, *cuts] + (0 if bias is None else bias)


def _cuts_of_output(lengths: Any, steps: Any, window_lengths: Any, extra_rows: Any, padding: Any) -> list[slice]:
    """Returns, for each axis, the slice of the full transposed convolution that is the output."""
    cuts = []
    sides = _padding_per_axis(padding, len(lengths))
    for m, s, r, e, side in zip(lengths, steps, window_lengths, extra_rows, sides, strict=True):
        if isinstance(side, tuple):
            first_index, length = side[0], (m - 1) * s + r + (e or 0) - sum(side)
        elif padding == "valid":
            first_index, length = 0, m * s + max(r - s, 0) if e is None else (m - 1) * s + r + e
        elif e is None:
            first_index, length = _padding_of(m * s, r, s, "same")[0] if s < r else 0, m * s
        else:
            first_index, length = r // 2, (m - 1) * s + r - 2 * (r // 2) + e
        cuts.append(slice(first_index, first_index + length))
    return cuts


def _unfold_oracle(x: Any, k: Any, dilation: Any = 1, padding: Any = 0, stride: Any = 1) -> Any:
    axis_count = x.ndim - 2
    kernel_shape, d, s = (
        _values_per_axis(k, axis_count),
        _values_per_axis(dilation, axis_count),
        _values_per_axis(stride, axis_count),
    )
    x = np.pad(x, [(0, 0), (0, 0), *((zeros, zeros) for zeros in _values_per_axis(padding, axis_count))])
    window_counts = [(x.shape[a + 2] - (kernel_shape[a] - 1) * d[a] - 1) // s[a] + 1 for a in range(axis_count)]
    columns = []
    for position in itertools.product(*map(range, window_counts)):
        window_slices = [
            slice(position[a] * s[a], position[a] * s[a] + (kernel_shape[a] - 1) * d[a] + 1, d[a])
            for a in range(axis_count)
        ]
        columns.append(x[:, :, *window_slices].reshape(len(x), -1))
    return np.stack(columns, -1)


def _fold_oracle(x: Any, output: Any, k: Any, dilation: Any = 1, padding: Any = 0, stride: Any = 1) -> Any:
    kernel_shape = _values_per_axis(k, len(output))
    channels = x.shape[1] // int(np.prod(kernel_shape))
    numbered_output = np.arange(channels * int(np.prod(output)), dtype=float).reshape(1, channels, *output) + 1
    flat_positions = _unfold_oracle(numbered_output, k, dilation, padding, stride)[0].astype(int)
    padded_output = np.zeros((len(x), numbered_output.size + 1))
    for b in range(len(x)):
        np.add.at(padded_output[b], flat_positions, x[b])
    return padded_output[:, 1:].reshape(len(x), channels, *output)


def _sliding_windows_oracle(x: Any, length: int, stride: int) -> Any:
    return np.lib.stride_tricks.sliding_window_view(x, length, -1)[..., ::stride, :]


_LINE, _PLANE = _test_tensor(2, 7, 4), _test_tensor(1, 6, 5, 2)

SAMPLES = [
    Sample(
        "conv",
        _conv_oracle,
        (
            case(_LINE, _test_tensor(3, 4, 5)),
            case(_LINE, _test_tensor(3, 4, 2), 2, "same"),
            case(_LINE, _test_tensor(2, 4, 2), 3, "same", None, 2),
            case(_LINE, _test_tensor(3, 2, 6), 1, "valid"),
            case(_PLANE, _test_tensor(3, 2, 2, 3), (2, 1), "same", None, (1, 2)),
            case(np.moveaxis(_PLANE, -1, 1), _test_tensor(2, 2, 2, 3), 1, "valid", "channels_first"),
            case(_test_tensor(1, 3, 3, 3, 2), _test_tensor(2, 2, 2, 2, 2), 1, "same"),
            case(_LINE, _test_tensor(3, 4, 2), 2, 1),
            case(_PLANE, _test_tensor(3, 2, 2, 3), (2, 1), (1, 2)),
            case(_PLANE, _test_tensor(2, 2, 2, 3), 1, [(0, 1), (2, 0)], None, 2),
            case(
                np.moveaxis(_PLANE, -1, 1),
                _test_tensor(2, 2, 2, 3),
                (1, 2),
                (1, 0),
                "channels_first",
                (1, 1),
                _test_tensor(3),
            ),
            case(_LINE, _test_tensor(3, 2, 6), 1, "same", bias=_test_tensor(6)),
            case(_PLANE, _test_tensor(2, 2, 2, 3), 2, "same"),
            case(
                np.moveaxis(_PLANE, -1, 1),
                _test_tensor(2, 3, 2, 3),
                (2, 3),
                "valid",
                "channels_first",
                1,
                _test_tensor(3),
            ),
        ),
        **D,
        tolerance=3,
        left_out={"results of empty axes": NO_WINDOW},
        refuses=(
            (ShapeError, case(LINE, np.ones((3, 3, 2)))),
            (ShapeError, case(LINE, np.ones((3, 2, 2)), bias=np.ones(3))),
            (ArgumentError, case(LINE, np.ones((3, 2, 2)), 1, "odd")),
        ),
    ),
    Sample(
        "depthwise_conv",
        _depthwise_conv_oracle,
        (
            case(_LINE, _test_tensor(3, 4, 2)),
            case(_PLANE, _test_tensor(2, 2, 2, 1), 1, "same"),
            case(_LINE, _test_tensor(3, 4, 1), 1, 1),
        ),
        **D,
        tolerance=1,
        left_out={"results of empty axes": NO_WINDOW},
    ),
    Sample(
        "separable_conv",
        lambda x, w, p, *options: _conv_oracle(_depthwise_conv_oracle(x, w, *options), p),
        (
            case(_LINE, _test_tensor(3, 4, 2), _test_tensor(1, 8, 3), 2, "same"),
            case(_LINE, _test_tensor(3, 4, 2), _test_tensor(1, 8, 3), 1, ((2, 1),)),
        ),
        **D,
        tolerance=6,
        left_out={"results of empty axes": NO_WINDOW},
    ),
    Sample(
        "conv_transpose",
        _conv_transpose_oracle,
        (
            case(_LINE, _test_tensor(3, 5, 4)),
            case(_LINE, _test_tensor(3, 5, 4), 2),
            case(_LINE, _test_tensor(2, 5, 4), 3),
            case(_LINE, _test_tensor(3, 5, 4), 2, "same"),
            case(_LINE, _test_tensor(2, 5, 4), 3, "same"),
            case(_LINE, _test_tensor(3, 5, 4), 2, "same", 1),
            case(_LINE, _test_tensor(3, 5, 4), 2, "valid", 1),
            case(_PLANE, _test_tensor(3, 2, 3, 2), 1, "valid", None, None, 2),
            case(np.moveaxis(_PLANE, -1, 1), _test_tensor(2, 2, 3, 2), (2, 1), "same", None, "channels_first"),
            case(_LINE, _test_tensor(3, 5, 4), 2, 1, 1),
            case(_PLANE, _test_tensor(3, 2, 3, 2), (2, 1), (1, 0), (1, 0), None, (1, 2)),
            case(_LINE, _test_tensor(3, 5, 4), 1, [(2, 0)]),
            case(_LINE, _test_tensor(3, 6, 2), 2, 1, 1),
            case(_LINE, _test_tensor(2, 5, 4), 4, "valid", 3, bias=_test_tensor(5)),
            case(np.moveaxis(_PLANE, -1, 1), _test_tensor(2, 2, 3, 2), 2, 1, 1, "channels_first", bias=_test_tensor(3)),
            case(_LINE, _test_tensor(3, 6, 2), 2, 1, 1, bias=_test_tensor(6)),
        ),
        **D,
        tolerance=3,
        left_out={"results of empty axes": NO_WINDOW},
        refuses=((ShapeError, case(LINE, np.ones((3, 3, 2)), bias=np.ones(2))),),
    ),
    Sample(
        "unfold",
        _unfold_oracle,
        (
            case(_LINE, 3),
            case(np.moveaxis(_PLANE, -1, 1), (2, 3), (2, 1), 1, (1, 2)),
            case(np.moveaxis(_PLANE, -1, 1), (2, 3), 1, (1, 0), (1, 2)),
        ),
        dtypes=FLOATS + HALVES,
        differentiable=True,
        left_out={"results of empty axes": NO_WINDOW},
    ),
    Sample(
        "fold",
        _fold_oracle,
        (
            case(_test_tensor(2, 6, 5), (7,), 3),
            case(_test_tensor(1, 12, 18), (6, 5), (2, 3), (2, 1), 1, (1, 2)),
            case(_test_tensor(1, 12, 14), (6, 5), (2, 3), 1, (1, 0), (1, 2)),
        ),
        dtypes=FLOATS,
        differentiable=True,
        tolerance=2,
    ),
    Sample(
        "extract_sequences",
        _sliding_windows_oracle,
        (case(_LINE, 3, 2), case(grid(0, 9, 10), 4, 3)),
        dtypes=FLOATS + HALVES,
        integers=("int32",),
        differentiable=True,
    ),
]
