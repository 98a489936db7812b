"""Measures how much a gradient costs compared with the forward pass, here and in other libraries.

The functions are the loss of a multilayer perceptron and a transformer block, each in a small and a medium size. The
result is the time of value and gradient together, divided by the time of the forward pass in NumPy; both are minima of
many interleaved rounds in the same run. It is measured for `ops.value_and_grad` on NumPy, PyTorch and MLX, for the same
compiled by `ops.compile` on NumPy, for a backward pass of the perceptron that is written by hand in NumPy, for PyTorch
and MLX themselves, and for HIPS autograd if it is installed. Each library uses one thread.

The last rows are training steps of the perceptron with AdamW on NumPy: loss, gradients and new parameters, over the
same step written by hand.
"""

import importlib.util
import math
import time
from collections.abc import Callable
from itertools import pairwise
from typing import Any

import numpy as np
from pairs import installed_backends, make_parser, restart_with_one_thread, write_results

from emberharmony import ops, optim

Namespace = Any
SIZES = {
    "mlp small": ("mlp", (4, 32, 64, 64, 10)),
    "mlp medium": ("mlp", (32, 784, 256, 256, 10)),
    "block small": ("block", (1, 8, 32, 4)),
    "block medium": ("block", (4, 64, 256, 8)),
}


def random_parameters(shapes: list[tuple[int, ...]]) -> list[np.ndarray[Any, Any]]:
    """Returns random float32 parameters with the given shapes."""
    rng = np.random.default_rng(0)
    return [(rng.standard_normal(shape) / math.sqrt(shape[0])).astype(np.float32) for shape in shapes]


def mlp_parameters(batch: int, *widths: int) -> list[np.ndarray[Any, Any]]:
    """Returns weights and biases, then the input and one-hot targets, which are constants."""
    shapes: list[tuple[int, ...]] = []
    for into, out in pairwise(widths):
        shapes += [(into, out), (out,)]
    targets = np.eye(widths[-1], dtype=np.float32)[np.arange(batch) % widths[-1]]
    return [*random_parameters([*shapes, (batch, widths[0])]), targets]


def mlp_ops(*tensors: Any) -> Any:
    """Returns the cross-entropy of a tanh network, written with ops."""
    *layers, x, targets = tensors
    for i in range(0, len(layers), 2):
        x = ops.add(ops.matmul(x, layers[i]), layers[i + 1])
        if i + 2 < len(layers):
            x = ops.tanh(x)
    losses = ops.subtract(ops.logsumexp(x, axis=-1), ops.sum(ops.multiply(x, targets), axis=-1))
    return ops.mean(losses)


def mlp_loss_in(n: Namespace) -> Callable[..., Any]:
    """Returns the same loss, written with the functions of NumPy or of HIPS autograd."""

    def loss(*tensors: Any) -> Any:
        *layers, x, targets = tensors
        for i in range(0, len(layers), 2):
            x = n.matmul(x, layers[i]) + layers[i + 1]
            if i + 2 < len(layers):
                x = n.tanh(x)
        largest = n.max(x, axis=-1, keepdims=True)
        log_total = n.log(n.sum(n.exp(x - largest), axis=-1)) + largest[:, 0]
        return n.mean(log_total - n.sum(x * targets, axis=-1))

    return loss


def mlp_by_hand(*tensors: Any) -> Any:
    """Returns the same loss and its gradients by the parameters, by a backward pass written by hand."""
    *layers, x, targets = tensors
    inputs = []
    for i in range(0, len(layers), 2):
        inputs.append(x)
        x = x @ layers[i] + layers[i + 1]
        if i + 2 < len(layers):
            x = np.tanh(x)
    largest = x.max(-1, keepdims=True)
    powers = np.exp(x - largest)
    power_sum = powers.sum(-1, keepdims=True)
    loss = np.mean(np.log(power_sum)[:, 0] + largest[:, 0] - (x * targets).sum(-1))
    output_gradient = (powers / power_sum - targets) / np.float32(len(x))
    layer_gradients = list(layers)
    for i in reversed(range(0, len(layers), 2)):
        layer_input = inputs[i // 2]
        layer_gradients[i], layer_gradients[i + 1] = layer_input.T @ output_gradient, output_gradient.sum(0)
        if i:
            output_gradient = output_gradient @ layers[i].T * (1 - layer_input * layer_input)
    return loss, layer_gradients


def step_by_hand(rate: float, weights: Any, state: Any, x: Any, targets: Any) -> Any:
    """Returns the loss, and parameters and state after a step of AdamW, written in NumPy."""
    loss, gradients = mlp_by_hand(*weights, x, targets)
    first_moments, second_moments, count = state
    count += 1
    moment_divisor, corrected_rate = math.sqrt(1 - 0.999**count), rate / (1 - 0.9**count)
    updated_columns: tuple[list[Any], ...] = [], [], []
    for w, g, m, v in zip(weights, gradients, first_moments, second_moments, strict=True):
        m = m + (g - m) * np.float32(0.1)
        v = v * np.float32(0.999) + g * g * np.float32(0.001)
        w = w * np.float32(1 - rate * 0.01) - np.float32(corrected_rate) * m / (
            np.sqrt(v) / np.float32(moment_divisor) + np.float32(1e-8)
        )
        for column, array in zip(updated_columns, (w, m, v), strict=True):
            column.append(array)
    return loss, updated_columns[0], (updated_columns[1], updated_columns[2], count)


def step_contenders(size: tuple[int, ...]) -> dict[str, tuple[str, Callable[[], Any]]]:
    """Returns the contenders of a training step on NumPy: by hand, plain and compiled."""
    *weights, x, targets = mlp_parameters(*size)
    adam = optim.AdamW(lr=1e-3, weight_decay=0.01)

    def step(weights: Any, state: Any, x: Any, targets: Any) -> Any:
        loss, gradients = ops.value_and_grad(lambda layers: mlp_ops(*layers, x, targets))(weights)
        return loss, *adam.update(gradients, state, weights)

    ops.set_backend("numpy")
    compiled_step, state = ops.compile(step), adam.init(weights)
    zeros = [np.zeros_like(w) for w in weights]
    return {
        "by hand": ("numpy", lambda: step_by_hand(1e-3, weights, (zeros, zeros, 0), x, targets)),
        "ours": ("numpy", lambda: step(weights, state, x, targets)),
        "compiled": ("numpy", lambda: compiled_step(weights, state, x, targets)),
    }


def mlp_torch(*tensors: Any) -> Any:
    """Returns the same loss, written as PyTorch's users would."""
    import torch

    *layers, x, targets = tensors
    for i in range(0, len(layers), 2):
        x = torch.addmm(layers[i + 1], x, layers[i])
        if i + 2 < len(layers):
            x = torch.tanh(x)
    return (torch.logsumexp(x, -1) - (x * targets).sum(-1)).mean()


def mlp_mlx(*tensors: Any) -> Any:
    """Returns the same loss, written as MLX's users would."""
    import mlx.core as mx

    *layers, x, targets = tensors
    for i in range(0, len(layers), 2):
        x = x @ layers[i] + layers[i + 1]
        if i + 2 < len(layers):
            x = mx.tanh(x)
    return (mx.logsumexp(x, -1) - (x * targets).sum(-1)).mean()


def block_parameters(batch: int, length: int, width: int, heads: int) -> list[np.ndarray[Any, Any]]:
    """Returns the weights of attention and of the feed-forward layer, then the input, which is a constant."""
    shapes = [(width, 3 * width), (width, width), (width, 4 * width), (4 * width, width)]
    return random_parameters([*shapes, (batch, length, width)])


def block_ops(heads: int) -> Callable[..., Any]:
    """Returns the mean square of a pre-norm transformer block's output, written with ops."""

    def norm(x: Any) -> Any:
        centred = ops.subtract(x, ops.mean(x, axis=-1, keepdims=True))
        variance = ops.mean(ops.square(centred), axis=-1, keepdims=True)
        return ops.multiply(centred, ops.rsqrt(ops.add(variance, 1e-5)))

    def loss(qkv: Any, out: Any, up: Any, down: Any, x: Any) -> Any:
        batch, length, width = x.shape
        projections = ops.reshape(ops.matmul(norm(x), qkv), (batch, length, 3, heads, width // heads))
        q, k, v = ops.unstack(ops.transpose(projections, (2, 0, 3, 1, 4)))
        scores = ops.multiply(ops.matmul(q, ops.swapaxes(k, -1, -2)), 1 / math.sqrt(width // heads))
        attention_output = ops.matmul(ops.softmax(scores, axis=-1), v)
        attention_output = ops.reshape(ops.transpose(attention_output, (0, 2, 1, 3)), (batch, length, width))
        x = ops.add(x, ops.matmul(attention_output, out))
        hidden = ops.matmul(norm(x), up)
        inner = ops.multiply(
            ops.add(hidden, ops.multiply(ops.multiply(ops.square(hidden), hidden), 0.044715)), math.sqrt(2 / math.pi)
        )
        hidden = ops.multiply(ops.multiply(hidden, 0.5), ops.add(ops.tanh(inner), 1))
        return ops.mean(ops.square(ops.add(x, ops.matmul(hidden, down))))

    return loss


def block_loss_in(n: Namespace, heads: int) -> Callable[..., Any]:
    """Returns the same, written with the functions of NumPy, HIPS autograd, PyTorch or MLX and with operators."""

    def mean(x: Any) -> Any:
        return n.mean(x, -1, True) if n.__name__ in ("torch", "mlx.core") else n.mean(x, axis=-1, keepdims=True)

    def norm(x: Any) -> Any:
        centred = x - mean(x)
        return centred / n.sqrt(mean(centred * centred) + 1e-5)

    def softmax(x: Any) -> Any:
        if n.__name__ in ("torch", "mlx.core"):
            return n.softmax(x, -1)
        powers = n.exp(x - n.max(x, axis=-1, keepdims=True))
        return powers / n.sum(powers, axis=-1, keepdims=True)

    turn = n.permute if n.__name__ == "torch" else n.transpose

    def loss(qkv: Any, out: Any, up: Any, down: Any, x: Any) -> Any:
        batch, length, width = x.shape
        projections = turn(
            n.reshape(n.matmul(norm(x), qkv), (batch, length, 3, heads, width // heads)), (2, 0, 3, 1, 4)
        )
        q, k, v = projections[0], projections[1], projections[2]
        scores = n.matmul(q, n.swapaxes(k, -1, -2)) * (1 / math.sqrt(width // heads))
        attention_output = n.reshape(turn(n.matmul(softmax(scores), v), (0, 2, 1, 3)), (batch, length, width))
        x = x + n.matmul(attention_output, out)
        hidden = n.matmul(norm(x), up)
        inner = (hidden + 0.044715 * hidden * hidden * hidden) * math.sqrt(2 / math.pi)
        hidden = 0.5 * hidden * (n.tanh(inner) + 1)
        block_output = x + n.matmul(hidden, down)
        return n.mean(block_output * block_output)

    return loss


def our_call(
    backend: str, loss: Callable[..., Any], arrays: list[Any], constants: int, compiled: bool = False
) -> Callable[[], Any]:
    """Returns a function that calls `ops.value_and_grad`; `backend` must be active when it is called."""
    ops.set_backend(backend)
    tensors = [ops.convert_to_tensor(array) for array in arrays]
    function = ops.value_and_grad(loss, argnums=tuple(range(len(arrays) - constants)))
    if compiled:
        function = ops.compile(function)

    def call() -> Any:
        result = function(*tensors)
        ops.eval(result)
        return result

    return call


def contenders(kind: str, size: tuple[int, ...]) -> dict[str, tuple[str, Callable[[], Any]]]:
    """Returns, by the name of a contender, the backend that must be active and the function to time."""
    arrays = mlp_parameters(*size) if kind == "mlp" else block_parameters(*size)
    constants = 2 if kind == "mlp" else 1
    heads = size[-1]
    with_ops = mlp_ops if kind == "mlp" else block_ops(heads)
    in_numpy = mlp_loss_in(np) if kind == "mlp" else block_loss_in(np, heads)
    argument_numbers = tuple(range(len(arrays) - constants))
    by_name: dict[str, tuple[str, Callable[[], Any]]] = {"forward in NumPy": ("numpy", lambda: in_numpy(*arrays))}
    by_name["ours on numpy"] = ("numpy", our_call("numpy", with_ops, arrays, constants))
    by_name["compiled on numpy"] = ("numpy", our_call("numpy", with_ops, arrays, constants, compiled=True))
    if kind == "mlp":
        by_name["by hand"] = ("numpy", lambda: mlp_by_hand(*arrays))
    if importlib.util.find_spec("autograd") is not None:
        import autograd.numpy as anp
        from autograd import value_and_grad

        in_hips = mlp_loss_in(anp) if kind == "mlp" else block_loss_in(anp, heads)
        hips = value_and_grad(lambda trained: in_hips(*trained, *arrays[len(trained) :]))
        by_name["HIPS autograd"] = ("numpy", lambda: hips(tuple(arrays[: len(argument_numbers)])))
    if importlib.util.find_spec("torch") is not None:
        import torch

        torch.set_num_threads(1)
        in_torch = mlp_torch if kind == "mlp" else block_loss_in(torch, heads)
        leaves = [torch.from_numpy(a).requires_grad_(i in argument_numbers) for i, a in enumerate(arrays)]

        def torch_call() -> Any:
            value = in_torch(*leaves)
            return value.detach(), torch.autograd.grad(value, leaves[: len(argument_numbers)])

        by_name["ours on torch"] = ("torch", our_call("torch", with_ops, arrays, constants))
        by_name["torch"] = ("torch", torch_call)
    if importlib.util.find_spec("mlx") is not None:
        import mlx.core as mx

        in_mlx = mlp_mlx if kind == "mlp" else block_loss_in(mx, heads)
        mlx_arrays = [mx.array(a) for a in arrays]
        native = mx.value_and_grad(in_mlx, argnums=list(argument_numbers))

        def mlx_call() -> Any:
            result = native(*mlx_arrays)
            mx.eval(result)
            return result

        by_name["ours on mlx"] = ("mlx", our_call("mlx", with_ops, arrays, constants))
        by_name["mlx"] = ("mlx", mlx_call)
    return by_name


def measure_calls(calls: dict[str, tuple[str, Callable[[], Any]]], rounds: int) -> dict[str, float]:
    """Returns the minimum time of each call in seconds; the calls take turns."""
    least_by_name = dict.fromkeys(calls, math.inf)
    repeats: dict[str, int] = {}
    for i in range(rounds + 1):
        for name, (backend, call) in calls.items():
            ops.set_backend(backend)
            call()
            count = repeats.get(name, 1)
            start = time.perf_counter()
            for _ in range(count):
                call()
            seconds = (time.perf_counter() - start) / count
            if i == 0:
                repeats[name] = max(1, min(200, int(0.01 / seconds)))
            least_by_name[name] = min(least_by_name[name], seconds)
    return least_by_name


def main() -> None:
    """Measures and prints one row for each size, one column for each contender."""
    restart_with_one_thread()
    options = make_parser(__doc__, 15).parse_args()
    times = {}
    for name, (kind, size) in SIZES.items():
        times[name] = row = measure_calls(contenders(kind, size), options.rounds)
        forward = row["forward in NumPy"]
        ratios = ", ".join(f"{who} {t / forward:.1f}" for who, t in row.items() if who != "forward in NumPy")
        print(f"{name:13} forward {forward * 1e6:7.0f} us; value and gradient over it: {ratios}", flush=True)
    for name in ("mlp small", "mlp medium"):
        times[f"step of {name}"] = row = measure_calls(step_contenders(SIZES[name][1]), options.rounds)
        by_hand_seconds = row["by hand"]
        ratios = ", ".join(f"{who} {t / by_hand_seconds:.2f}" for who, t in row.items() if who != "by hand")
        print(f"AdamW step of {name}: by hand {by_hand_seconds * 1e6:.0f} us; over it: {ratios}", flush=True)
    write_results(options.json, {"seconds": times}, installed_backends(None))


if __name__ == "__main__":
    main()
