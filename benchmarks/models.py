"""Measures how fast networks are, forward and in a training step.

The models are a multilayer perceptron of widths 784, 256, 256 and 10; a transformer block of width 256 with 8 heads on
64 tokens, whose normalisations and attention are made of small calls; and the larger networks of
`benchmarks/architectures.py`, which take the fused ones. Each is one program, which runs with the native functions of a
library and with ops. `forward` is the loss. `step` is the loss, its gradients and the update of all parameters by
gradient descent. The native gradients are those of `torch.autograd.grad` and `mx.value_and_grad`. NumPy has no
gradients: there the native step of the perceptron has a backward pass written by hand, and the others have none.

`benchmarks/pairs.py` explains the columns.
"""

import math
import re
from collections.abc import Callable
from functools import partial
from itertools import pairwise
from types import SimpleNamespace
from typing import Any

import architectures
import numpy as np
from architectures import Network
from pairs import (
    evaluating_call,
    library,
    make_parser,
    measure_each,
    restart_with_one_thread,
    table_head,
    table_line,
    time_pair,
)

from emberharmony import ops

WIDTHS, TOKENS, WIDTH, HEADS, BATCHES = (784, 256, 256, 10), 64, 256, 8, (1, 4, 32)
RATE = 0.01
Arrays = list[np.ndarray[Any, Any]]
Model = Callable[..., Any]


def functions_of_ops() -> Any:
    """Returns the functions of the programs, made of ops."""
    return SimpleNamespace(
        add=ops.add,
        subtract=ops.subtract,
        multiply=ops.multiply,
        matmul=ops.matmul,
        tanh=ops.tanh,
        rsqrt=ops.rsqrt,
        reshape=ops.reshape,
        permute=ops.transpose,
        unstack=ops.unstack,
        softmax=lambda x: ops.softmax(x, -1),
        logsumexp=lambda x: ops.logsumexp(x, -1),
        total=lambda x: ops.sum(x, -1),
        centre=lambda x: ops.mean(x, -1, True),
        mean=lambda x: ops.mean(x),
    )


def _numpy_softmax(x: Any) -> Any:
    powers = np.exp(x - np.max(x, -1, keepdims=True))
    return powers / np.sum(powers, -1, keepdims=True)


def _numpy_logsumexp(x: Any) -> Any:
    largest = np.max(x, -1, keepdims=True)
    return np.log(np.sum(np.exp(x - largest), -1)) + largest[..., 0]


def native_functions(backend: str) -> Any:
    """Returns the same functions, made of native functions."""
    n = library(backend)
    functions = SimpleNamespace(add=n.add, subtract=n.subtract, multiply=n.multiply, matmul=n.matmul, tanh=n.tanh)
    functions.reshape = n.reshape
    if backend == "numpy":
        functions.permute, functions.unstack = n.transpose, n.unstack
        functions.softmax, functions.logsumexp = _numpy_softmax, _numpy_logsumexp
        functions.rsqrt = lambda x: 1 / n.sqrt(x)
        functions.centre = lambda x: n.mean(x, -1, keepdims=True)
    else:
        functions.permute, functions.rsqrt = (n.permute, n.rsqrt) if backend == "torch" else (n.transpose, n.rsqrt)
        functions.unstack = n.unbind if backend == "torch" else lambda x: [x[i] for i in range(x.shape[0])]
        functions.softmax, functions.logsumexp = lambda x: n.softmax(x, -1), lambda x: n.logsumexp(x, -1)
        functions.centre = lambda x: n.mean(x, -1, True)
    functions.total, functions.mean = lambda x: n.sum(x, -1), lambda x: n.mean(x)
    return functions


def perceptron_loss(f: Any) -> Model:
    """Returns the mean cross-entropy of a tanh network."""

    def loss(*tensors: Any) -> Any:
        *layers, x, targets = tensors
        for i in range(0, len(layers), 2):
            x = f.add(f.matmul(x, layers[i]), layers[i + 1])
            if i + 2 < len(layers):
                x = f.tanh(x)
        return f.mean(f.subtract(f.logsumexp(x), f.total(f.multiply(x, targets))))

    return loss


def block_loss(f: Any) -> Model:
    """Returns the mean square of the output of a transformer block whose normalisations come first."""

    def norm(x: Any) -> Any:
        centred = f.subtract(x, f.centre(x))
        return f.multiply(centred, f.rsqrt(f.add(f.centre(f.multiply(centred, centred)), 1e-5)))

    def loss(qkv: Any, out: Any, up: Any, down: Any, x: Any) -> Any:
        batch, length, width = x.shape
        projections = f.reshape(f.matmul(norm(x), qkv), (batch, length, 3, HEADS, width // HEADS))
        q, k, v = f.unstack(f.permute(projections, (2, 0, 3, 1, 4)))
        scores = f.multiply(f.matmul(q, f.permute(k, (0, 1, 3, 2))), 1 / math.sqrt(width // HEADS))
        attention_output = f.permute(f.matmul(f.softmax(scores), v), (0, 2, 1, 3))
        x = f.add(x, f.matmul(f.reshape(attention_output, (batch, length, width)), out))
        x = f.add(x, f.matmul(f.tanh(f.matmul(norm(x), up)), down))
        return f.mean(f.multiply(x, x))

    return loss


def random_arrays(shapes: list[tuple[int, ...]]) -> Arrays:
    """Returns random float32 arrays."""
    rng = np.random.default_rng(0)
    return [(rng.standard_normal(shape) / math.sqrt(shape[0])).astype(np.float32) for shape in shapes]


def perceptron_arrays(batch: int) -> tuple[Arrays, Arrays]:
    """Returns the parameters; then the input and the one-hot targets."""
    shapes = [shape for into, out in pairwise(WIDTHS) for shape in ((into, out), (out,))]
    *parameters, x = random_arrays([*shapes, (batch, WIDTHS[0])])
    return parameters, [x, np.eye(WIDTHS[-1], dtype=np.float32)[np.arange(batch) % WIDTHS[-1]]]


def block_arrays(batch: int) -> tuple[Arrays, Arrays]:
    """Returns the parameters, and the input."""
    shapes = [(WIDTH, 3 * WIDTH), (WIDTH, WIDTH), (WIDTH, 4 * WIDTH), (4 * WIDTH, WIDTH), (batch, TOKENS, WIDTH)]
    *parameters, x = random_arrays(shapes)
    return parameters, [x]


def numpy_step(*tensors: Any) -> Any:
    """Returns the loss of the perceptron and its updated parameters, with a backward pass written by hand."""
    *layers, x, targets = tensors
    inputs = []
    for i in range(0, len(layers), 2):
        inputs.append(x)
        x = np.add(np.matmul(x, layers[i]), layers[i + 1])
        if i + 2 < len(layers):
            x = np.tanh(x)
    logsum = _numpy_logsumexp(x)
    loss = np.mean(np.subtract(logsum, np.sum(np.multiply(x, targets), -1)))
    output_gradient = np.multiply(np.subtract(np.exp(x - logsum[:, None]), targets), np.float32(1 / len(x)))
    updated_layers = list(layers)
    for i in reversed(range(0, len(layers), 2)):
        layer_input = inputs[i // 2]
        updated_layers[i] = np.subtract(layers[i], np.multiply(np.matmul(layer_input.T, output_gradient), RATE))
        updated_layers[i + 1] = np.subtract(layers[i + 1], np.multiply(np.sum(output_gradient, 0), RATE))
        if i:
            output_gradient = np.multiply(
                np.matmul(output_gradient, layers[i].T), np.subtract(1, np.multiply(layer_input, layer_input))
            )
    return loss, updated_layers


def native_step(backend: str, model: Model, count: int) -> Model:
    """Returns the native training step of a model whose first `count` arguments are its parameters."""
    n = library(backend)
    if backend == "numpy":
        return numpy_step
    if backend == "mlx":
        with_gradients = n.value_and_grad(model, argnums=list(range(count)))

        def mlx_step(*tensors: Any) -> Any:
            loss, gradients = with_gradients(*tensors)
            return loss, [n.subtract(p, n.multiply(g, RATE)) for p, g in zip(tensors, gradients, strict=False)]

        return mlx_step

    def torch_step(*tensors: Any) -> Any:
        leaves = [x.detach().requires_grad_() for x in tensors[:count]]
        loss = model(*leaves, *tensors[count:])
        gradients = n.autograd.grad(loss, leaves)
        return loss.detach(), [n.subtract(p, n.multiply(g, RATE)) for p, g in zip(tensors, gradients, strict=False)]

    return torch_step


def our_step(model: Model, count: int) -> Model:
    """Returns the same step with ops."""
    with_gradients = ops.value_and_grad(model, argnums=tuple(range(count)))

    def step(*tensors: Any) -> Any:
        loss, gradients = with_gradients(*tensors)
        return loss, [ops.subtract(p, ops.multiply(g, RATE)) for p, g in zip(tensors, gradients, strict=False)]

    return step


def require_equal(a: Any, b: Any) -> None:
    """Checks that two results agree, because a ratio of different computations would mean nothing.

    Raises:
        AssertionError: if they differ.
    """
    for x, y in zip(ops.tree_leaves(a), ops.tree_leaves(b), strict=True):
        # The native mean of half a million elements has an error of 2e-4 on MLX 0.32, which adds them sequentially.
        np.testing.assert_allclose(ops.to_numpy(x), ops.to_numpy(y), rtol=2e-3, atol=1e-5)


NETWORKS = {
    "mlp": Network(perceptron_loss, perceptron_arrays, batches=BATCHES),
    "block": Network(block_loss, block_arrays, batches=BATCHES),
    **architectures.NETWORKS,
}


def native_and_our_model(backend: str, name: str) -> tuple[Model, Model]:
    """Returns the native program of a network and ours."""
    model = NETWORKS[name].model
    if name in architectures.NETWORKS:
        return model(architectures.native_functions(backend)), model(architectures.functions_of_ops(backend))
    return model(native_functions(backend)), model(functions_of_ops())


def measure(backend: str, options: Any) -> dict[str, Any]:
    """Returns the figures of one backend, and prints them."""
    ops.set_backend(backend)
    figures = {}
    print(table_head(backend))
    for name, network in NETWORKS.items():
        for batch in options.batch or network.batches:
            titles = {kind: f"{name} {kind}, batch {batch}" for kind in ("forward", "step")}
            if name != "mlp" and backend == "numpy":
                del titles["step"]
            if not any(re.search(options.pattern, f"{backend} {title}") for title in titles.values()):
                continue
            parameters, constants = network.arrays(batch)
            arrays = [*parameters, *constants]
            native_layout_arrays = [network.layouts(backend, array) for array in arrays]
            our_arrays = native_layout_arrays if backend == "torch" else arrays
            ours, theirs = (
                [ops.convert_to_tensor(array) for array in each] for each in (our_arrays, native_layout_arrays)
            )
            models, count = native_and_our_model(backend, name), len(parameters)
            for kind, title in titles.items():
                if not re.search(options.pattern, f"{backend} {title}"):
                    continue
                step_functions = native_step(backend, models[0], count), our_step(models[1], count)
                calls = (
                    partial((models, step_functions)[kind == "step"][0], *theirs),
                    partial((models, step_functions)[kind == "step"][1], *ours),
                )
                results = [call() for call in calls]
                # Updated kernels have another layout on MLX.
                require_equal(*([result[0] for result in results] if kind == "step" and name == "resnet" else results))
                figures[title] = time_pair(*(evaluating_call(backend, call) for call in calls), options.rounds, most=10)
                print(table_line(title, figures[title]), flush=True)
    return figures


def main() -> None:
    """Measures every installed backend."""
    restart_with_one_thread()
    arguments = make_parser(__doc__, 20)
    arguments.add_argument("--batch", type=int, action="append", help="only this batch (repeatable)")
    measure_each(arguments.parse_args(), measure)


if __name__ == "__main__":
    main()
