"""The larger networks that `benchmarks/models.py` measures, each as one program over the functions of a library.

They are what people run: a GPT of 12 layers, a vision transformer on 197 patches, a network of the blocks with which
the four stages of ResNet-50 begin, and a layer of long short-term memory. The native functions are those that users of
the library would take: its fused attention, normalisation, loss and recurrent layer, and convolutions in the layout
that the library has. NumPy has none of these, so they are written by hand.
"""

import importlib
import math
from collections.abc import Callable
from types import SimpleNamespace
from typing import Any, NamedTuple

import numpy as np
from pairs import library

from emberharmony import ops

Array = np.ndarray[Any, Any]
LAYERS, LETTERS, WORDS, GPT_WIDTH, GPT_HEADS = 12, 32, 256, 128, 4
PATCHES, PATCH, VIT_WIDTH, VIT_HEADS, VIT_LAYERS = 196, 768, 384, 6, 2
STAGES = ((64, 64, 256, 1), (256, 128, 512, 2), (512, 256, 1024, 2), (1024, 512, 2048, 2))
"""The channels before, inside of and after the first block of each stage of ResNet-50, and its stride."""
TIMES, UNITS, CLASSES = 32, 128, 1000


class Network(NamedTuple):
    """A network.

    Attributes:
        model: called with the functions of a library, returns the loss of parameters and constants.
        arrays: called with the size of the batch, returns the parameters and the constants, as ops take them.
        layouts: returns an array in the layout of the library that is named.
        batches: the sizes of the batch.
    """

    model: Callable[[Any], Callable[..., Any]]
    arrays: Callable[[int], tuple[list[Array], list[Array]]]
    layouts: Callable[[str, Array], Array] = lambda backend, array: array
    batches: tuple[int, ...] = (1, 4)


def random_arrays(shapes: list[tuple[int, ...]], axes: int = 1) -> list[Array]:
    """Returns random float32 arrays, scaled by the product of all axes but the last `axes`."""
    rng = np.random.default_rng(0)
    return [(rng.standard_normal(s) / math.sqrt(math.prod(s[:-axes]) or 1)).astype(np.float32) for s in shapes]


def functions_of_ops(backend: str) -> Any:
    """Returns the functions of the programs, made of ops; on PyTorch images are laid out as for `nn.Conv2d`."""
    channels_first = backend == "torch"

    def conv(x: Any, kernel: Any, stride: int) -> Any:
        if channels_first:
            padding = kernel.shape[-1] // 2
            return ops.conv(x, ops.transpose(kernel, (2, 3, 1, 0)), stride, padding, "channels_first")
        return ops.conv(x, kernel, stride, kernel.shape[0] // 2)

    return SimpleNamespace(
        attention=lambda q, k, v, causal: ops.dot_product_attention(q, k, v, is_causal=causal),
        norm=lambda x: ops.layer_normalization(x, epsilon=1e-5),
        linear=lambda x, w, b: ops.linear(x, w, b),
        gelu=ops.gelu,
        relu=ops.relu,
        add=ops.add,
        multiply=ops.multiply,
        reshape=ops.reshape,
        split=lambda x: ops.split(x, 3, -1),
        rows=lambda table, ids: ops.embedding(ids, table),
        loss=ops.cross_entropy,
        conv=conv,
        pixels=lambda x: ops.mean(x, (2, 3) if channels_first else (1, 2)),
        tokens=lambda x: ops.mean(x, 1),
        lstm=lambda *tensors: ops.lstm(*tensors)[0],
        last=lambda x: x[:, -1],
    )


def native_functions(backend: str) -> Any:
    """Returns the same functions, made of native functions."""
    return {"numpy": numpy_functions, "torch": torch_functions, "mlx": mlx_functions}[backend]()


def torch_functions() -> Any:
    """Returns the functions of PyTorch, whose images are (batch, channels, height, width)."""
    torch = library("torch")
    f = torch.nn.functional

    def attention(q: Any, k: Any, v: Any, causal: bool) -> Any:
        heads = (x.transpose(1, 2) for x in (q, k, v))
        return f.scaled_dot_product_attention(*heads, is_causal=causal).transpose(1, 2)

    def lstm(x: Any, *weights: Any) -> Any:
        state = x.new_zeros(1, len(x), UNITS)
        return torch._VF.lstm(x, (state, state), weights, True, 1, 0.0, False, False, True)[0]

    return SimpleNamespace(
        attention=attention,
        norm=lambda x: f.layer_norm(x, x.shape[-1:]),
        linear=lambda x, w, b: torch.addmm(b, x, w) if x.ndim == 2 else torch.matmul(x, w) + b,
        gelu=lambda x: f.gelu(x, approximate="tanh"),
        relu=torch.relu,
        add=torch.add,
        multiply=torch.mul,
        reshape=torch.reshape,
        split=lambda x: torch.chunk(x, 3, -1),
        rows=lambda table, ids: f.embedding(ids, table),
        loss=f.cross_entropy,
        conv=lambda x, kernel, stride: f.conv2d(x, kernel, None, stride, kernel.shape[-1] // 2),
        pixels=lambda x: x.mean((2, 3)),
        tokens=lambda x: x.mean(1),
        lstm=lstm,
        last=lambda x: x[:, -1],
    )


def mlx_functions() -> Any:
    """Returns the functions of MLX, whose kernels are (to channels, height, width, from channels)."""
    mx, nn = library("mlx"), importlib.import_module("mlx.nn")

    def attention(q: Any, k: Any, v: Any, causal: bool) -> Any:
        q, k, v = (x.transpose(0, 2, 1, 3) for x in (q, k, v))
        mask, scale = "causal" if causal else None, q.shape[-1] ** -0.5
        return mx.fast.scaled_dot_product_attention(q, k, v, scale=scale, mask=mask).transpose(0, 2, 1, 3)

    return SimpleNamespace(
        attention=attention,
        norm=lambda x: mx.fast.layer_norm(x, None, None, 1e-5),
        linear=lambda x, w, b: mx.addmm(b, x, w),
        gelu=nn.gelu_approx,
        relu=nn.relu,
        add=mx.add,
        multiply=mx.multiply,
        reshape=mx.reshape,
        split=lambda x: mx.split(x, 3, -1),
        rows=lambda table, ids: table[ids],
        loss=lambda x, ids: nn.losses.cross_entropy(x, ids, reduction="mean"),
        conv=lambda x, kernel, stride: mx.conv2d(x, kernel, stride, kernel.shape[1] // 2),
        pixels=lambda x: mx.mean(x, (1, 2)),
        tokens=lambda x: mx.mean(x, 1),
        lstm=lambda *tensors: lstm_outputs(mx, mx.sigmoid, lambda x: mx.split(x, 4, -1), *tensors),
        last=lambda x: x[:, -1],
    )


def numpy_functions() -> Any:
    """Returns the functions of NumPy, written by hand where it has none."""

    def softmax(x: Array) -> Array:
        powers = np.exp(x - x.max(-1, keepdims=True))
        return powers / powers.sum(-1, keepdims=True)

    def attention(q: Array, k: Array, v: Array, causal: bool) -> Array:
        q, k, v = (x.transpose(0, 2, 1, 3) for x in (q, k, v))
        scores = q @ k.swapaxes(-1, -2) * np.float32(q.shape[-1] ** -0.5)
        if causal:
            scores = np.where(np.tri(scores.shape[-1], dtype=bool), scores, np.float32(-np.inf))
        return (softmax(scores) @ v).transpose(0, 2, 1, 3)

    def norm(x: Array) -> Array:
        centred = x - x.mean(-1, keepdims=True)
        return centred / np.sqrt((centred * centred).mean(-1, keepdims=True) + np.float32(1e-5))

    def loss(x: Array, ids: Array) -> Any:
        largest = x.max(-1, keepdims=True)
        logsum = np.log(np.exp(x - largest).sum(-1)) + largest[..., 0]
        return np.mean(logsum - np.take_along_axis(x, ids[..., None], -1)[..., 0])

    def conv(x: Array, kernel: Array, stride: int) -> Array:
        if len(kernel) == 1:
            return x[:, ::stride, ::stride] @ kernel[0, 0]
        padded = np.pad(x, ((0, 0), (1, 1), (1, 1), (0, 0)))
        windows = np.lib.stride_tricks.sliding_window_view(padded, (3, 3), (1, 2))[:, ::stride, ::stride]
        return np.tensordot(windows, kernel, ((4, 5, 3), (0, 1, 2)))

    return SimpleNamespace(
        attention=attention,
        norm=norm,
        linear=lambda x, w, b: x @ w + b,
        gelu=lambda x: 0.5 * x * (1 + np.tanh(0.7978845608 * (x + 0.044715 * (x * x * x)))),
        relu=lambda x: np.maximum(x, 0),
        add=np.add,
        multiply=np.multiply,
        reshape=np.reshape,
        split=lambda x: np.split(x, 3, -1),
        rows=lambda table, ids: table[ids],
        loss=loss,
        conv=conv,
        pixels=lambda x: x.mean((1, 2)),
        tokens=lambda x: x.mean(1),
        lstm=lambda *tensors: lstm_outputs(np, lambda x: 1 / (1 + np.exp(-x)), lambda x: np.split(x, 4, -1), *tensors),
        last=lambda x: x[:, -1],
    )


def lstm_outputs(xp: Any, sigmoid: Any, split: Any, x: Any, w_in: Any, w_state: Any, b_in: Any, b_state: Any) -> Any:
    """Returns the outputs of a layer of long short-term memory, by a loop over the times."""
    inputs, state_matrix = x @ w_in.T + (b_in + b_state), w_state.T
    state = cell = xp.zeros((len(x), UNITS), x.dtype)
    states = []
    for time in range(x.shape[1]):
        enter, forget, new, leave = split(inputs[:, time] + state @ state_matrix)
        cell = sigmoid(forget) * cell + sigmoid(enter) * xp.tanh(new)
        state = sigmoid(leave) * xp.tanh(cell)
        states.append(state)
    return xp.stack(states, 1)


def run_transformer(f: Any, x: Any, layers: Any, heads: int, causal: bool) -> Any:
    """Returns the output of the layers of a transformer, whose normalisations come first."""
    batch, length, width = x.shape
    shape = (batch, length, heads, width // heads)
    for i in range(0, len(layers), 8):
        qkv, qkv_bias, out, out_bias, up, up_bias, down, down_bias = layers[i : i + 8]
        q, k, v = (f.reshape(part, shape) for part in f.split(f.linear(f.norm(x), qkv, qkv_bias)))
        attention_output = f.reshape(f.attention(q, k, v, causal), (batch, length, width))
        x = f.add(x, f.linear(attention_output, out, out_bias))
        x = f.add(x, f.linear(f.gelu(f.linear(f.norm(x), up, up_bias)), down, down_bias))
    return f.norm(x)


def transformer_shapes(width: int, layers: int) -> list[tuple[int, ...]]:
    """Returns the shapes of the parameters of such layers."""
    sizes = ((width, 3 * width), (width, width), (width, 4 * width), (4 * width, width))
    return [shape for _ in range(layers) for into, out in sizes for shape in ((into, out), (out,))]


def gpt_loss(f: Any) -> Callable[..., Any]:
    """Returns the mean cross-entropy of a GPT."""

    def loss(*tensors: Any) -> Any:
        table, places, *layers, head, head_bias, ids, targets = tensors
        x = run_transformer(f, f.add(f.rows(table, ids), places), layers, GPT_HEADS, True)
        return f.loss(f.reshape(f.linear(x, head, head_bias), (-1, WORDS)), targets)

    return loss


def gpt_arrays(batch: int) -> tuple[list[Array], list[Array]]:
    """Returns the parameters; then the numbers of the words, and of those that follow."""
    shapes = [(WORDS, GPT_WIDTH), (LETTERS, GPT_WIDTH), *transformer_shapes(GPT_WIDTH, LAYERS)]
    ids = np.random.default_rng(1).integers(0, WORDS, (batch, LETTERS + 1))
    return random_arrays([*shapes, (GPT_WIDTH, WORDS), (WORDS,)]), [ids[:, :-1].copy(), ids[:, 1:].reshape(-1)]


def vit_loss(f: Any) -> Callable[..., Any]:
    """Returns the mean cross-entropy of a vision transformer on the patches of images."""

    def loss(*tensors: Any) -> Any:
        patch, patch_bias, places, *layers, head, head_bias, x, targets = tensors
        x = run_transformer(f, f.add(f.linear(x, patch, patch_bias), places), layers, VIT_HEADS, False)
        return f.loss(f.linear(f.tokens(x), head, head_bias), targets)

    return loss


def vit_arrays(batch: int) -> tuple[list[Array], list[Array]]:
    """Returns the parameters; then the patches and the classes."""
    shapes = [(PATCH, VIT_WIDTH), (VIT_WIDTH,), (PATCHES + 1, VIT_WIDTH), *transformer_shapes(VIT_WIDTH, VIT_LAYERS)]
    patches = random_arrays([(batch, PATCHES + 1, PATCH)], 3)[0]
    return random_arrays([*shapes, (VIT_WIDTH, CLASSES), (CLASSES,)]), [patches, np.arange(batch) % CLASSES]


def group_by_threes(tensors: Any) -> list[Any]:
    """Returns tensors by threes: a kernel, its scale and its offset."""
    return [tensors[i : i + 3] for i in range(0, len(tensors), 3)]


def resnet_loss(f: Any) -> Callable[..., Any]:
    """Returns the mean cross-entropy of the first blocks of the stages of ResNet-50, with fixed statistics."""

    def conv_and_norm(x: Any, kernel: Any, stride: int, scale: Any, offset: Any) -> Any:
        return f.add(f.multiply(f.conv(x, kernel, stride), scale), offset)

    def loss(*tensors: Any) -> Any:
        *blocks, head, head_bias, x, targets = tensors
        for i, (_, _, _, stride) in enumerate(STAGES):
            (k1, s1, o1), (k2, s2, o2), (k3, s3, o3), (k4, s4, o4) = group_by_threes(blocks[12 * i : 12 * i + 12])
            y = f.relu(conv_and_norm(x, k1, 1, s1, o1))
            y = f.relu(conv_and_norm(y, k2, stride, s2, o2))
            x = f.relu(f.add(conv_and_norm(y, k3, 1, s3, o3), conv_and_norm(x, k4, stride, s4, o4)))
        return f.loss(f.linear(f.pixels(x), head, head_bias), targets)

    return loss


def resnet_arrays(batch: int) -> tuple[list[Array], list[Array]]:
    """Returns the parameters; then the images of the first stage, and the classes."""
    shapes: list[tuple[int, ...]] = []
    for into, inner, out, _ in STAGES:
        for kernel in ((1, 1, into, inner), (3, 3, inner, inner), (1, 1, inner, out), (1, 1, into, out)):
            shapes += [kernel, (1, 1, kernel[-1]), (1, 1, kernel[-1])]
    images = random_arrays([(batch, 56, 56, STAGES[0][0])], 4)[0]
    return random_arrays([*shapes, (STAGES[-1][2], CLASSES), (CLASSES,)]), [images, np.arange(batch) % CLASSES]


def to_image_layout(backend: str, array: Array) -> Array:
    """Returns images, kernels, and what is added to channels, in the layout of a library."""
    if backend == "torch" and array.ndim == 4:
        is_kernel = array.shape[0] == array.shape[1] and array.shape[0] in (1, 3)
        return np.ascontiguousarray(array.transpose((3, 2, 0, 1) if is_kernel else (0, 3, 1, 2)))
    if backend == "torch" and array.ndim == 3:
        return array.reshape(-1, 1, 1)
    if backend == "mlx" and array.ndim == 4 and array.shape[0] == array.shape[1] and array.shape[0] in (1, 3):
        return np.ascontiguousarray(array.transpose(3, 0, 1, 2))
    return array


def lstm_loss(f: Any) -> Callable[..., Any]:
    """Returns the mean cross-entropy of the last output of a layer of long short-term memory."""

    def loss(*tensors: Any) -> Any:
        *weights, head, head_bias, x, targets = tensors
        return f.loss(f.linear(f.last(f.lstm(x, *weights)), head, head_bias), targets)

    return loss


def lstm_arrays(batch: int) -> tuple[list[Array], list[Array]]:
    """Returns the parameters; then the sequences and the classes."""
    shapes: list[tuple[int, ...]] = [(4 * UNITS, UNITS), (4 * UNITS, UNITS), (4 * UNITS,), (4 * UNITS,)]
    sequences = random_arrays([(batch, TIMES, UNITS)], 3)[0]
    return random_arrays([*shapes, (UNITS, 10), (10,)]), [sequences, np.arange(batch) % 10]


NETWORKS = {
    "gpt": Network(gpt_loss, gpt_arrays),
    "vit": Network(vit_loss, vit_arrays),
    "resnet": Network(resnet_loss, resnet_arrays, to_image_layout),
    "lstm": Network(lstm_loss, lstm_arrays, batches=(1, 4, 32)),
}
