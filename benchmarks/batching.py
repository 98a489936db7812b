"""Measures how much slower `ops.vmap` is than the same computation written for all slices by hand.

Each row holds a function under `ops.vmap` against the same computation that is written for all slices by hand, with the
same ops: a perceptron, its gradients for each sample, and the likelihood of a Gaussian process for each of many
hyperparameters. `benchmarks/pairs.py` explains the columns; "native" is the program that is written by hand.
"""

import re
from typing import Any

import numpy as np
from pairs import (
    Call,
    evaluating_call,
    make_parser,
    measure_each,
    restart_with_one_thread,
    table_head,
    table_line,
    time_pair,
)

from emberharmony import ops

SIZES = {"small": (64, 32, 64, 10), "medium": (256, 64, 128, 10)}
"""The number of samples, and the widths of the perceptron."""
PROCESSES = {"small": (16, 40), "medium": (64, 30)}
"""The number of hyperparameters, and of points."""


def perceptron(parameters: Any, x: Any) -> Any:
    """Returns the outputs for one sample or for many."""
    w, b, v, c = parameters
    return ops.add(ops.matmul(ops.tanh(ops.add(ops.matmul(x, w), b)), v), c)


def sample_loss(parameters: Any, x: Any, y: Any) -> Any:
    """Returns the mean squared error of one sample."""
    return ops.mean(ops.square(ops.subtract(perceptron(parameters, x), y)))


def gradients_by_hand(parameters: Any, x: Any, y: Any) -> Any:
    """Returns the gradients of the loss of each sample, written by hand."""
    w, b, v, c = parameters
    hidden = ops.tanh(ops.add(ops.matmul(x, w), b))
    output_gradient = (ops.add(ops.matmul(hidden, v), c) - y) * (2.0 / y.shape[-1])
    hidden_gradient = ops.matmul(output_gradient, ops.transpose(v)) * (1.0 - ops.square(hidden))
    return (
        x[:, :, None] * hidden_gradient[:, None, :],
        hidden_gradient,
        hidden[:, :, None] * output_gradient[:, None, :],
        output_gradient,
    )


def sample_likelihood(points: Any, values: Any, scale: Any, noise: Any) -> Any:
    """Returns the negative logarithm of the likelihood for one pair of hyperparameters, up to a constant."""
    distances = ops.sum(ops.square(points[:, None] - points[None]), axis=-1)
    kernel = ops.exp(-0.5 * distances / ops.square(scale)) + noise * ops.eye(len(points), dtype="float32")
    factor = ops.cholesky(kernel)
    whitened = ops.solve_triangular(factor, values, lower=True)
    return 0.5 * ops.sum(ops.square(whitened)) + ops.sum(ops.log(ops.diagonal(factor)))


def likelihoods_by_hand(points: Any, values: Any, scale: Any, noise: Any) -> Any:
    """Returns the same for all pairs, written by hand."""
    distances = ops.sum(ops.square(points[:, None] - points[None]), axis=-1)
    kernel = ops.exp(-0.5 * distances / ops.square(scale)[:, None, None])
    factor = ops.cholesky(kernel + noise[:, None, None] * ops.eye(len(points), dtype="float32"))
    right = ops.broadcast_to(values[:, None], (len(scale), len(points), 1))
    whitened = ops.solve_triangular(factor, right, lower=True)
    logarithms = ops.log(ops.diagonal(factor, axis1=1, axis2=2))
    return 0.5 * ops.sum(ops.square(whitened), axis=(1, 2)) + ops.sum(logarithms, axis=1)


def call_pairs() -> dict[str, tuple[Call, Call]]:
    """Returns the program written by hand and the mapped one, by title."""
    random = np.random.default_rng(0)

    def random_tensor(*shape: int) -> Any:
        return ops.convert_to_tensor(random.standard_normal(shape).astype("float32"))

    pairs_by_title: dict[str, tuple[Call, Call]] = {}
    forward = ops.vmap(perceptron, in_axes=(None, 0))
    sample_gradients = ops.vmap(ops.grad(sample_loss), in_axes=(None, 0, 0))
    for size, (count, width, hidden, outputs) in SIZES.items():
        p = [random_tensor(*shape) * 0.1 for shape in ((width, hidden), (hidden,), (hidden, outputs), (outputs,))]
        x, y = random_tensor(count, width), random_tensor(count, outputs)
        pairs_by_title[f"perceptron, {size}"] = lambda p=p, x=x: perceptron(p, x), lambda p=p, x=x: forward(p, x)
        pairs_by_title[f"gradients of each sample, {size}"] = (
            lambda p=p, x=x, y=y: gradients_by_hand(p, x, y),
            lambda p=p, x=x, y=y: sample_gradients(p, x, y),
        )
    mapped_likelihood = ops.vmap(sample_likelihood, in_axes=(None, None, 0, 0))
    for size, (count, points) in PROCESSES.items():
        arguments = (
            random_tensor(points, 2),
            random_tensor(points),
            ops.exp(0.2 * random_tensor(count)),
            0.2 * ops.exp(0.1 * random_tensor(count)),
        )
        pairs_by_title[f"Gaussian process, {size}"] = (
            lambda g=arguments: likelihoods_by_hand(*g),
            lambda g=arguments: mapped_likelihood(*g),
        )
    return pairs_by_title


def measure(backend: str, options: Any) -> dict[str, Any]:
    """Returns the figures of one backend, and prints them."""
    ops.set_backend(backend)
    figures = {}
    print(table_head(backend))
    for title, (by_hand, mapped) in call_pairs().items():
        if re.search(options.pattern, f"{backend} {title}"):
            for one, other in zip(ops.tree_leaves(by_hand()), ops.tree_leaves(mapped()), strict=True):
                np.testing.assert_allclose(ops.to_numpy(other), ops.to_numpy(one), rtol=1e-3, atol=1e-3)
            figures[title] = time_pair(
                evaluating_call(backend, by_hand), evaluating_call(backend, mapped), options.rounds
            )
            print(table_line(title, figures[title]), flush=True)
    return figures


def main() -> None:
    """Measures every installed backend."""
    restart_with_one_thread()
    measure_each(make_parser(__doc__, 15).parse_args(), measure)


if __name__ == "__main__":
    main()
