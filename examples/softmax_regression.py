"""Trains a softmax regression on handwritten digits, with a gradient in closed form, full batches and momentum.

Run it on any backend: `EMBERHARMONY_BACKEND=mlx python examples/softmax_regression.py`.
"""

from typing import Any, NamedTuple

from emberharmony import Buffer, Parameter, ops

Tensor = Any


class State(NamedTuple):
    """The state of the training: weights (pixels, classes), bias (classes,) and the velocity of each.

    It consists of cells, which follow the active backend, so the training goes on wherever the backend is switched.
    """

    weights: Parameter
    bias: Parameter
    weights_velocity: Buffer
    bias_velocity: Buffer


def initial_state(pixels: int, classes: int, seed: int) -> State:
    """Returns small random weights, which are the same on every backend, and zero bias and velocities."""
    weights = ops.random.normal((pixels, classes), stddev=0.01, generator=ops.random.Generator(seed))
    bias = ops.zeros((classes,))
    return State(Parameter(weights), Parameter(bias), Buffer(ops.zeros_like(weights)), Buffer(ops.zeros_like(bias)))


def log_probabilities(state: State, images: Tensor) -> Tensor:
    """Returns the log-probabilities of the classes for images (n, pixels), of shape (n, classes)."""
    return ops.log_softmax(ops.add(ops.matmul(images, state.weights), state.bias), axis=-1)


def step(state: State, images: Tensor, targets: Tensor, rate: float = 0.5, momentum: float = 0.9) -> None:
    """Does one step of gradient descent on the mean cross-entropy, which changes the state."""
    probabilities = ops.exp(log_probabilities(state, images))
    residual = ops.divide(ops.subtract(probabilities, targets), float(images.shape[0]))
    gradients = ops.matmul(ops.transpose(images), residual), ops.sum(residual, axis=0)
    cells = (state.weights, state.weights_velocity), (state.bias, state.bias_velocity)
    for (cell, velocity), gradient in zip(cells, gradients, strict=True):
        velocity.value = ops.add(ops.multiply(velocity, momentum), gradient)
        cell.value = ops.subtract(cell, ops.multiply(velocity, rate))


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
        step(state, train, targets)
        ops.eval(state)
    test, wanted = ops.convert_to_tensor(data.test_images), ops.convert_to_tensor(data.test_labels)
    print(f"{ops.get_backend()}: loss {ops.to_numpy(loss(state, train, targets)):.4f}, ", end="")
    print(f"accuracy {ops.to_numpy(accuracy(state, test, wanted)):.4f} on {len(data.test_labels)} held-out images")
