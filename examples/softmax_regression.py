"""Trains a softmax regression on handwritten digits, with a gradient in closed form, full batches and momentum.

Run it on any backend: `EMBERHARMONY_BACKEND=mlx python examples/softmax_regression.py`.
"""

from typing import Any, NamedTuple

from emberharmony import ops

Tensor = Any


class State(NamedTuple):
    """The state of the training: weights (pixels, classes), bias (classes,) and the velocity of each."""

    weights: Tensor
    bias: Tensor
    weights_velocity: Tensor
    bias_velocity: Tensor


def initial_state(pixels: int, classes: int, seed: int) -> State:
    """Returns small random weights, which are the same on every backend, and zero bias and velocities."""
    weights = ops.random.normal((pixels, classes), stddev=0.01, generator=ops.random.Generator(seed))
    zeros = ops.zeros((pixels, classes))
    return State(weights, ops.zeros((classes,)), zeros, ops.zeros((classes,)))


def log_probabilities(state: State, images: Tensor) -> Tensor:
    """Returns the log-probabilities of the classes for images (n, pixels), of shape (n, classes)."""
    return ops.log_softmax(ops.add(ops.matmul(images, state.weights), state.bias), axis=-1)


def step(state: State, images: Tensor, targets: Tensor, rate: float = 0.5, momentum: float = 0.9) -> State:
    """Returns the state after one step of gradient descent on the mean cross-entropy."""
    probabilities = ops.exp(log_probabilities(state, images))
    residual = ops.divide(ops.subtract(probabilities, targets), float(images.shape[0]))
    velocity = ops.add(ops.multiply(state.weights_velocity, momentum), ops.matmul(ops.transpose(images), residual))
    bias_velocity = ops.add(ops.multiply(state.bias_velocity, momentum), ops.sum(residual, axis=0))
    return State(
        ops.subtract(state.weights, ops.multiply(velocity, rate)),
        ops.subtract(state.bias, ops.multiply(bias_velocity, rate)),
        velocity,
        bias_velocity,
    )


def loss(state: State, images: Tensor, targets: Tensor) -> Tensor:
    """Returns the mean cross-entropy."""
    return ops.negative(ops.mean(ops.sum(ops.multiply(targets, log_probabilities(state, images)), axis=-1)))


def accuracy(state: State, images: Tensor, labels: Tensor) -> Tensor:
    """Returns the fraction of images whose most likely class is the label."""
    hits = ops.equal(ops.argmax(log_probabilities(state, images), axis=-1), labels)
    return ops.mean(ops.cast(hits, "float32"))


if __name__ == "__main__":
    from emberharmony.data import digits

    data = digits()
    train, labels = ops.convert_to_tensor(data.train_images), ops.convert_to_tensor(data.train_labels)
    targets = ops.one_hot(labels, 10)
    state = initial_state(64, 10, seed=0)
    for _ in range(100):
        state = step(state, train, targets)
        ops.eval(state)
    test, wanted = ops.convert_to_tensor(data.test_images), ops.convert_to_tensor(data.test_labels)
    print(f"{ops.get_backend()}: loss {ops.to_numpy(loss(state, train, targets)):.4f}, ", end="")
    print(f"accuracy {ops.to_numpy(accuracy(state, test, wanted)):.4f} on {len(data.test_labels)} held-out images")
