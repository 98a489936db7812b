"""Convolutions: their adjoints, their derivatives, and the arguments that they refuse."""

import tracemalloc
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from emberharmony import ops
from emberharmony.backend.discovery import is_installed
from emberharmony.core.errors import ArgumentError, OutOfMemoryError, ShapeError
from emberharmony.core.registry import OPS

X = np.sin(np.arange(64.0)).reshape(2, 8, 4)
W = np.cos(np.arange(60.0)).reshape(3, 4, 5)


@pytest.mark.parametrize(("strides", "padding", "dilation"), [(1, "valid", 1), (2, "same", 1), (1, "same", 2)])
def test_conv_transpose_is_the_adjoint_of_conv(strides: int, padding: str, dilation: int, backend: str) -> None:
    forward = ops.to_numpy(ops.conv(X, W, strides, padding, None, dilation))
    y = np.cos(np.arange(forward.size)).reshape(forward.shape)
    back = ops.to_numpy(ops.conv_transpose(y, W, strides, padding, None, None, dilation))
    assert np.isclose((forward * y).sum(), (X * back).sum())


@pytest.mark.parametrize("padding", [1, (2,), [(0, 2)], ((2, 1),)])
@pytest.mark.parametrize("strides", [1, 3])
def test_padding_by_numbers_adds_zeros(padding: Any, strides: int, backend: str) -> None:
    (side,) = [padding] if isinstance(padding, int) else padding
    before, after = (side, side) if isinstance(side, int) else side
    zeros = np.pad(X, [(0, 0), (before, after), (0, 0)])
    wanted = ops.to_numpy(ops.conv(zeros, W, strides))
    assert np.allclose(ops.to_numpy(ops.conv(X, W, strides, padding)), wanted)
    y = np.cos(np.arange(wanted.size)).reshape(wanted.shape)
    left = (X.shape[1] + before + after - 3) % strides
    back = ops.to_numpy(ops.conv_transpose(y, W, strides, padding, left))
    assert np.isclose((wanted * y).sum(), (X * back).sum())


@pytest.mark.parametrize("shape", [(2, 4, 7, 6), (2, 4, 1, 6), (1, 4, 5, 1)])
def test_options_as_tuples_give_the_results_of_pairs(shape: tuple[int, ...], backend: str) -> None:
    for kind in ("float64", "float32", "float16") if backend != "mlx" else ("float32", "float16"):
        x = ops.array(np.sin(np.arange(np.prod(shape))).reshape(shape), kind)
        for inner, (strides, zeros, dilation) in ((4, ((2, 1), (1, 1), (1, 2))), (1, ((1, 1), (2, 1), (1, 1)))):
            kernel = ops.array(np.cos(np.arange(3 * 2 * inner * 8.0)).reshape(3, 2, inner, 8), kind)
            found = ops.conv(x, kernel, strides, zeros, "channels_first", dilation)
            last = ops.conv(ops.moveaxis(x, 1, -1), kernel, strides, [(n, n) for n in zeros], None, dilation)
            wanted = ops.to_numpy(ops.moveaxis(last, -1, 1))
            assert ops.dtype(found).name == kind
            assert np.allclose(ops.to_numpy(found), wanted, rtol=1e-2 if kind == "float16" else 1e-4, atol=1e-4)


def test_bad_options_as_tuples_are_refused(backend: str) -> None:
    x, kernel = ops.zeros((1, 4, 5, 5)), ops.zeros((3, 3, 4, 2))
    one: Any = (1, 1)
    for options, error, message in (
        (((1,), one, one), ArgumentError, "strides is an integer of at least 1, or one for each of 2"),
        (((0, 1), one, one), ArgumentError, "strides is an integer of at least 1"),
        (((1.5, 1), one, one), ArgumentError, "strides is an integer or a sequence of them"),
        ((one, (-1, 0), one), ArgumentError, "padding is"),
        ((one, one, (1, 1, 1)), ArgumentError, "dilation_rate is an integer"),
        ((one, (0, 0), (3, 1)), ShapeError, "a window of 7 does not fit an axis of length 5"),
        ((one, one, (2**62, 1)), ShapeError, "a window of .* does not fit"),
        ((one, (2**62, 1), one), OutOfMemoryError, "GiB"),
    ):
        strides, zeros, dilation = options
        with pytest.raises(error, match=message):
            ops.conv(x, kernel, strides, zeros, "channels_first", dilation)
    with pytest.raises(ShapeError, match="a tensor of 6 channels does not suit a kernel"):
        ops.conv(ops.zeros((1, 6, 5, 5)), kernel, one, one, "channels_first", one)
    with pytest.raises(ShapeError, match="a tensor of 8 channels does not suit a kernel"):
        ops.conv(ops.zeros((1, 8, 5, 5)), ops.zeros((3, 3, 4, 3)), one, one, "channels_first", one)


@pytest.mark.skipif(not is_installed("torch"), reason="torch is not installed")
@pytest.mark.parametrize("groups", [1, 2])
@pytest.mark.parametrize("options", [(2, 1, 1, 1), (3, (1, 2), (2, 1), 1), (1, 0, 0, (2, 1)), ((1, 2), 3, (0, 1), 2)])
def test_conv_transpose_has_the_options_of_pytorch(options: tuple[Any, ...], groups: int, backend: str) -> None:
    from torch import from_numpy
    from torch.nn.functional import conv_transpose2d

    strides, padding, extra, dilation = options
    x, weight = np.sin(np.arange(168.0)).reshape(1, 4, 6, 7), np.cos(np.arange(4.0 * 6 // groups * 9))
    weight = weight.reshape(4, 6 // groups, 3, 3)
    wanted = conv_transpose2d(from_numpy(x), from_numpy(weight), None, strides, padding, extra, groups, dilation)
    kernel = ops.rearrange(weight, "(g i) o h w -> h w (g o) i", {"g": groups})
    found = ops.conv_transpose(x, kernel, strides, padding, extra, "channels_first", dilation)
    assert np.allclose(ops.to_numpy(found), wanted.numpy())


def test_fold_is_the_adjoint_of_unfold(backend: str) -> None:
    x = np.sin(np.arange(60.0)).reshape(1, 2, 6, 5)
    columns = ops.to_numpy(ops.unfold(x, (2, 3), 1, 1, 2))
    y = np.cos(np.arange(columns.size)).reshape(columns.shape)
    back = ops.to_numpy(ops.fold(y, (6, 5), (2, 3), 1, 1, 2))
    assert np.isclose((columns * y).sum(), (x * back).sum())


def test_a_shift_of_the_input_shifts_the_result(backend: str) -> None:
    whole = ops.to_numpy(ops.conv(X, W))
    shifted = ops.to_numpy(ops.conv(X[:, 1:], W))
    assert np.array_equal(whole[:, 1:], shifted)


def test_bad_arguments_are_refused(backend: str) -> None:
    with pytest.raises(ArgumentError, match="padding is 'valid' or 'same', not 'full'"):
        ops.conv(X, W, 1, "full")
    with pytest.raises(ArgumentError, match="data_format is"):
        ops.conv(X, W, data_format="NHWC")
    with pytest.raises(ArgumentError, match="strides is an integer of at least 1"):
        ops.conv(X, W, 0)
    with pytest.raises(ArgumentError, match="strides is an integer of at least 1, or one for each of 1 spatial axes"):
        ops.conv(X, W, (1, 2))
    with pytest.raises(ArgumentError, match="padding is 'valid' or 'same', not 'full'"):
        ops.conv_transpose(X, W.swapaxes(1, 2), 1, "full")
    calls = lambda p: ops.conv(X, W, 1, p), lambda p: ops.conv_transpose(X, W.swapaxes(1, 2), 1, p)
    for call in calls:
        for padding in (-1, (1, 1), [(1,)], [(1, -1)], None, "ab"):
            with pytest.raises(ArgumentError, match="or an integer of at least 0, or one for each of 1 spatial axes"):
                call(padding)
        for padding in (1.5, [1.0]):
            with pytest.raises(ArgumentError, match=r"padding is 'valid' or 'same', not .*; or an integer of"):
                call(padding)
    with pytest.raises(OutOfMemoryError):
        ops.conv(X, W, 1, 2**70)


def test_shapes_that_do_not_fit_are_refused(backend: str) -> None:
    with pytest.raises(ShapeError, match="a tensor of 4 channels does not suit a kernel of shape"):
        ops.conv(X, W[:, :3])
    with pytest.raises(ShapeError, match="need the same number of spatial axes"):
        ops.conv(X, W[None])
    with pytest.raises(ShapeError, match="a window of 13 does not fit an axis of length 8"):
        ops.conv(X, W, dilation_rate=6)
    with pytest.raises(ShapeError, match=r"expected columns of shape \(batch, channels \* 3, 5\)"):
        ops.fold(np.ones((1, 6, 4)), (7,), 3)


def _derivatives(backend: str, f: Callable[..., Any], *arrays: np.ndarray[Any, Any]) -> list[np.ndarray[Any, Any]]:
    """Returns the first and second derivatives of a sum of cubes, computed by the library's own autograd."""
    if backend == "torch":
        import torch

        x = [torch.tensor(a, requires_grad=True) for a in arrays]
        first = torch.autograd.grad((f(*x) ** 3).sum(), x, create_graph=True)
        second = torch.autograd.grad(sum((g * g).sum() for g in first), x)
        return [t.detach().numpy() for t in (*first, *second)]
    import mlx.core as mx

    x = [mx.array(a) for a in arrays]
    places = list(range(len(x)))
    gradients = mx.grad(lambda *x: (f(*x) ** 3).sum(), places)
    second = mx.grad(lambda *x: sum((g * g).sum() for g in gradients(*x)), places)
    return [np.array(t) for t in (*gradients(*x), *second(*x))]


@pytest.mark.parametrize(
    ("op", "size", "options"),
    [
        ("conv", (3, 2), (1, "same")),
        ("conv", (2, 3), ((2, 3), "valid")),
        ("conv", (3, 1), (2, "same")),
        ("conv", (2, 2), (1, "same", None, (2, 1))),
        ("conv_transpose", (3, 3), ((1, 2), "valid", None, None, (2, 1))),
        ("conv_transpose", (2, 3), (2, "same")),
        ("depthwise_conv", (3, 2), (1,)),
        ("depthwise_conv", (2, 3), (2, "same")),
        ("depthwise_conv", (2, 2), (1, "valid", None, 2)),
    ],
)
def test_native_kernels_have_the_derivatives_of_the_composite(
    op: str, size: tuple[int, int], options: tuple[Any, ...], backend: str
) -> None:
    if backend not in ("torch", "mlx"):
        pytest.skip("the library has no autograd beside that of the ops, or no kernel beside the composite")
    x = np.sin(np.arange(56, dtype=np.float32)).reshape(1, 7, 4, 2)
    pairs = (2, 1) if op == "depthwise_conv" else (2, 2)
    w = np.cos(np.arange(size[0] * size[1] * pairs[0] * pairs[1], dtype=np.float32)).reshape(*size, *pairs)
    native, composed = getattr(ops, op), OPS[op].declared
    got = _derivatives(backend, lambda x, w: native(x, w, *options), x, w)
    wanted = _derivatives(backend, lambda x, w: composed(x, w, *options), x, w)
    for a, b in zip(got, wanted, strict=True):
        assert a.shape == b.shape
        assert np.allclose(a, b, rtol=1e-3, atol=1e-4 * np.abs(b).max())


@pytest.mark.parametrize(
    ("op", "shape", "kernel", "options"),
    [
        ("conv", (3, 5, 4, 1), (1, 3, 1, 16), ((1, 3),)),
        ("conv", (3, 5, 3, 1), (2, 3, 1, 8), ((1, 2),)),
        ("conv", (3, 3, 5, 4, 1), (3, 1, 3, 1, 3), ((1, 1, 3),)),
        ("conv", (1, 3, 5, 17), (2, 3, 17, 1), (1,)),
        ("conv", (2, 1, 1, 3), (1, 1, 3, 2), (1, "same")),
        ("conv_transpose", (2, 7, 1, 2), (3, 3, 1, 2), ((1, 2), "valid", None, None, (2, 1))),
        ("conv_transpose", (2, 1, 5, 1, 2), (3, 3, 3, 1, 2), ((3, 1, 2), "valid", None, None, (2, 2, 1))),
        ("conv_transpose", (1, 3, 1), (3, 17, 1), (2, "valid", None, None, 2)),
        # More products than MLX's kernel is used for.
        ("conv", (2, 20, 15, 8), (3, 2, 8, 9), (1,)),
        ("conv", (2, 20, 15, 8), (3, 2, 8, 9), (2, "same")),
        ("conv", (2, 20, 15, 8), (3, 2, 8, 9), (3, "valid", None, 2)),
        ("conv", (2, 20, 15, 8), (3, 2, 8, 9), (1, [(0, 2), (3, 1)], None, (1, 2))),
        ("conv", (2, 20, 40, 3), (3, 3, 3, 4), (2, "same")),
        ("conv", (2, 200, 9), (5, 9, 8), (2,)),
        ("conv", (2, 7, 8, 6, 8), (2, 3, 2, 8, 8), (1, "same")),
        ("conv_transpose", (2, 9, 11, 8), (3, 2, 9, 8), (2,)),
        ("conv_transpose", (2, 9, 11, 8), (3, 2, 9, 8), (2, "same")),
        ("conv_transpose", (2, 9, 11, 8), (3, 2, 9, 8), (4,)),
        ("conv_transpose", (2, 9, 11, 8), (3, 4, 9, 8), (3, "same")),
        ("conv_transpose", (2, 9, 11, 8), (5, 4, 9, 8), (1,)),
        ("conv_transpose", (2, 99, 8), (5, 9, 8), (3, "same")),
        ("conv_transpose", (2, 5, 4, 3, 8), (3, 2, 2, 8, 8), (2,)),
    ],
)
def test_native_kernels_give_the_results_of_the_composite(
    op: str, shape: tuple[int, ...], kernel: tuple[int, ...], options: tuple[Any, ...], backend: str
) -> None:
    x = np.sin(np.arange(np.prod(shape), dtype=np.float32)).reshape(shape)
    w = np.cos(np.arange(np.prod(kernel), dtype=np.float32)).reshape(kernel)
    composed = OPS[op].declared(*map(ops.convert_to_tensor, (x, w)), *options)
    assert np.allclose(ops.to_numpy(getattr(ops, op)(x, w, *options)), ops.to_numpy(composed), atol=1e-4)
    if backend not in ("torch", "mlx"):
        return
    got = _derivatives(backend, lambda x, w: getattr(ops, op)(x, w, *options), x, w)
    wanted = _derivatives(backend, lambda x, w: OPS[op].declared(x, w, *options), x, w)
    for a, b in zip(got, wanted, strict=True):
        assert np.allclose(a, b, rtol=1e-3, atol=1e-4 * np.abs(b).max())


@pytest.mark.parametrize("op", ["conv", "conv_transpose"])
@pytest.mark.parametrize("strides", [1, 2])
def test_an_infinite_element_changes_no_more_of_the_result_than_it_reaches(op: str, strides: int, backend: str) -> None:
    x = np.random.default_rng(0).normal(size=(2, 20, 19, 8)).astype(np.float32)
    kernel = np.ones((3, 3, 8, 8), np.float32)
    finite = ops.to_numpy(getattr(ops, op)(x, kernel, strides))
    x[0, 9, 7, 3] = np.inf
    result = ops.to_numpy(getattr(ops, op)(x, kernel, strides))
    far = ~np.isfinite(result)
    assert not far[1].any()
    assert far.any(-1).sum() == (9 if op == "conv_transpose" or strides == 1 else 1)
    np.testing.assert_allclose(result[~far], finite[~far], rtol=1e-4, atol=1e-4)


def test_the_dtypes_of_tensor_and_kernel_are_promoted(backend: str) -> None:
    for a, b in (("float16", "float32"), ("float32", "float64"), ("bfloat16", "int32"), ("int32", "int64")):
        x, w = ops.cast(X, a), ops.cast(W * 3, b)
        assert ops.dtype(ops.conv(x, w)) == ops.result_type(x, w)


@pytest.mark.parametrize("op", ["conv", "conv_transpose"])
def test_a_result_without_elements_on_an_axis_is_refused(op: str, backend: str) -> None:
    with pytest.raises(ShapeError, match="does not fit an axis of length"):
        if op == "conv":
            ops.conv(X[:, :2], W)
        else:
            ops.conv_transpose(X[:, :1], W[:2].swapaxes(1, 2), 2, "same", 0)


def test_a_long_kernel_with_many_windows_agrees_with_einsum(backend: str) -> None:
    x = np.sin(np.arange(3 * 400 * 4, dtype=np.float64)).reshape(3, 400, 4)
    w = np.cos(np.arange(200 * 4 * 2, dtype=np.float64)).reshape(200, 4, 2)
    wanted = np.einsum("bnkc,kco->bno", np.lib.stride_tricks.sliding_window_view(x, 200, 1).swapaxes(2, 3), w)
    assert np.allclose(ops.to_numpy(ops.conv(x, w)), wanted)


def test_an_empty_batch_gives_an_empty_result(backend: str) -> None:
    assert ops.shape(ops.conv(X[:0], W, 2, "same")) == (0, 4, 5)
    assert ops.shape(ops.conv_transpose(X[:0], W.swapaxes(1, 2), 2, "same")) == (0, 16, 5)


@pytest.mark.parametrize("inner", [1, 2])
def test_vmap_over_the_kernels_of_a_grouped_convolution(inner: int, backend: str) -> None:
    x = np.sin(np.arange(2 * 5 * 2 * inner, dtype=np.float32)).reshape(2, 5, 2 * inner)
    kernels = np.cos(np.arange(3 * 3 * inner * 4, dtype=np.float32)).reshape(3, 3, inner, 4)
    mapped = ops.to_numpy(ops.vmap(lambda w: ops.conv(ops.convert_to_tensor(x), w))(ops.convert_to_tensor(kernels)))
    assert np.allclose(mapped, [ops.to_numpy(ops.conv(x, w)) for w in kernels], atol=1e-6)


def test_a_convolution_on_numpy_does_not_copy_all_windows_at_once() -> None:
    x, w = np.ones((1, 96, 96, 8), np.float32), np.ones((7, 7, 8, 8), np.float32)
    with ops.use_backend("numpy"):
        tracemalloc.start()
        try:
            result = ops.conv(x, w)
            peak = tracemalloc.get_traced_memory()[1]
        finally:
            tracemalloc.stop()
    assert peak < 2 * result.nbytes + 4 * 2**20  # all windows together would take 12 MiB


def test_a_kernel_without_length_is_refused_and_one_without_channels_is_not(backend: str) -> None:
    for conv in (ops.conv, ops.conv_transpose):
        with pytest.raises(ShapeError, match=rf"{conv.__name__}\(\) on backend"):
            conv(np.ones((2, 7, 4)), np.ones((0, 4, 4)))
    with pytest.raises(ShapeError, match="expected lengths above 0, got a kernel of size"):
        ops.conv_transpose(np.ones((2, 0, 4)), np.ones((3, 4, 4)), 2, "same")
    assert tuple(ops.conv(np.ones((2, 7, 4)), np.ones((3, 4, 0))).shape) == (2, 5, 0)


@pytest.mark.parametrize("channels, others", [(2, 4), (4, 2), (1, 3), (3, 1)])
def test_a_depthwise_kernel_has_the_channels_of_the_tensor(channels: int, others: int, backend: str) -> None:
    kernel = ops.ones((3, 3, others, 1))
    wanted = rf"a tensor of {channels} channels does not suit a kernel of shape \(3, 3, {others}, 1\), which is for"
    for order, shape in (("channels_last", (2, 5, 6, channels)), ("channels_first", (2, channels, 5, 6)), (None, ())):
        x = ops.ones(shape or (2, 5, 6, channels))
        with pytest.raises(ShapeError, match=wanted):
            ops.depthwise_conv(x, kernel, data_format=order)
        with pytest.raises(ShapeError, match=wanted):
            ops.separable_conv(x, kernel, ops.ones((1, 1, others, 2)), data_format=order)
        with pytest.raises(ShapeError, match=wanted):
            ops.grad(lambda w, x=x, order=order: ops.sum(ops.depthwise_conv(x, w, 1, "same", order)))(kernel)
    for wrong in ops.ones(3), ops.ones((3, channels, 1)), ops.array(1.0):
        with pytest.raises(ShapeError, match="need the same number of spatial axes"):
            ops.depthwise_conv(ops.ones((2, 5, 6, channels)), wrong)


@pytest.mark.parametrize("stride", [8, 2**31, 2**63, 2**70])
def test_a_stride_longer_than_the_axis_gives_one_window(stride: int, backend: str) -> None:
    for padding in ("valid", "same"):
        one = ops.conv(X, W, stride, padding)
        assert np.allclose(ops.to_numpy(one), ops.to_numpy(ops.conv(X, W, 8, padding)))
        assert tuple(ops.max_pool(X, 2, stride, padding).shape) == (2, 1, 4)
    assert ops.extract_sequences([1, 2, 3], 2, stride).tolist() == [[1, 2]]


def test_windows_of_an_empty_batch_unfold_and_fold(backend: str) -> None:
    for shape in ((0, 2, 7), (2, 0, 7), (0, 0, 7)):
        columns = ops.unfold(np.zeros(shape, np.float32), 3)
        assert columns.shape == (shape[0], 3 * shape[1], 5)
        assert ops.fold(columns, (7,), 3).shape == shape


def test_fold_is_the_adjoint_of_unfold_with_padding_of_each_axis(backend: str) -> None:
    x = np.arange(32.0, dtype=np.float32).reshape(1, 2, 4, 4)
    columns = ops.unfold(x, (3, 2), stride=(1, 2), padding=(1, 0))
    assert columns.shape == (1, 12, 8)
    y = np.cos(np.arange(96.0, dtype=np.float32)).reshape(1, 12, 8)
    back = ops.fold(y, (4, 4), (3, 2), stride=(1, 2), padding=(1, 0))
    np.testing.assert_allclose((ops.to_numpy(columns) * y).sum(), (x * ops.to_numpy(back)).sum(), rtol=1e-5)
    assert ops.array_equal(ops.unfold(x, 2, padding=[1, 1]), ops.unfold(x, 2, padding=1))


@pytest.mark.parametrize(
    "option", [{"padding": -1}, {"padding": (1, 0, 2)}, {"padding": "same"}, {"stride": 0}, {"dilation": (1, 0)}]
)
def test_the_error_names_a_wrong_option_of_the_windows(option: dict[str, Any], backend: str) -> None:
    (name,) = option
    for call in (
        lambda: ops.unfold(np.ones((1, 1, 4, 4)), 2, **option),
        lambda: ops.fold(np.ones((1, 4, 9)), (4, 4), 2, **option),
    ):
        with pytest.raises(ArgumentError, match=rf": {name} is an integer"):
            call()


def test_windows_that_are_too_large_are_refused_without_allocating_them(backend: str) -> None:
    with pytest.raises(ShapeError, match="does not fit"):
        ops.unfold(np.ones((1, 1, 4, 4)), 10**12)
    with pytest.raises(ShapeError, match="columns of shape"):
        ops.fold(np.ones((1, 4, 9)), (10**12, 10**12), 10**10)


@pytest.mark.parametrize(("dtype", "large"), [("float16", 2048.0), ("bfloat16", 256.0)])
def test_a_bias_is_added_before_half_precision_is_rounded(dtype: Any, large: float, backend: str) -> None:
    bias = ops.full((1,), -large, dtype)
    for spatial in ((4,), (4, 3)):
        x = ops.convert_to_tensor(np.broadcast_to([large, 1.0], (1, *spatial, 2)), dtype)
        kernel = ops.ones((*[1] * len(spatial), 2, 1), dtype)
        first, turned = ops.moveaxis(x, -1, 1), ops.swapaxes(kernel, -1, -2)
        for result in (
            ops.conv(x, kernel, bias=bias),
            ops.conv(x, kernel, 2, bias=bias),
            ops.conv(first, kernel, data_format="channels_first", bias=bias),
            ops.conv_transpose(x, turned, bias=bias),
            ops.conv_transpose(first, turned, data_format="channels_first", bias=bias),
        ):
            assert ops.dtype(result) == dtype
            assert (ops.to_numpy(ops.cast(result, "float32")) == 1.0).all()
