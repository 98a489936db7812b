"""Trains a network of two layers on handwritten digits, by gradient descent with momentum.

Run it on any backend: `EMBERHARMONY_BACKEND=mlx python examples/mlp_digits.py`.
"""

from typing import Any

from emberharmony import ops

Tensor = Any
Parameters = dict[str, Tensor]


def initial(pixels: int, hidden: int, classes: int, seed: int) -> Parameters:
    """Returns random weights, which are the same on every backend, and zero biases."""
    generator = ops.random.Generator(seed)
    return {
        "w1": ops.random.normal((pixels, hidden), stddev=(2.0 / pixels) ** 0.5, generator=generator),
        "b1": ops.zeros((hidden,)),
        "w2": ops.random.normal((hidden, classes), stddev=hidden**-0.5, generator=generator),
        "b2": ops.zeros((classes,)),
    }


def logits(p: Parameters, images: Tensor) -> Tensor:
    """Returns the logits of images (n, pixels), of shape (n, classes)."""
    hidden = ops.relu(ops.add(ops.matmul(images, p["w1"]), p["b1"]))
    return ops.add(ops.matmul(hidden, p["w2"]), p["b2"])


def loss(p: Parameters, images: Tensor, targets: Tensor) -> Tensor:
    """Returns the mean cross-entropy."""
    return ops.negative(ops.mean(ops.sum(ops.multiply(targets, ops.log_softmax(logits(p, images))), axis=-1)))


def train(
    p: Parameters, images: Tensor, labels: Tensor, steps: int = 80, rate: float = 0.3, momentum: float = 0.9
) -> tuple[Parameters, Tensor]:
    """Returns the parameters after `steps` steps, each on all images, and the last loss."""
    targets = ops.one_hot(labels, 10)
    value_and_grad = ops.value_and_grad(loss)
    velocity = ops.tree_map(ops.zeros_like, p)
    value = loss(p, images, targets)
    for _ in range(steps):
        value, gradients = value_and_grad(p, images, targets)
        velocity = ops.tree_map(lambda v, g: ops.add(ops.multiply(v, momentum), g), velocity, gradients)
        p = ops.tree_map(lambda w, v: ops.subtract(w, ops.multiply(v, rate)), p, velocity)
        ops.eval(p, velocity)
    return p, value


def accuracy(p: Parameters, images: Tensor, labels: Tensor) -> Tensor:
    """Returns the fraction of images whose most likely class is the label."""
    return ops.mean(ops.equal(ops.argmax(logits(p, images), axis=-1), labels))


if __name__ == "__main__":
    from emberharmony.data import digits

    data = digits()
    images, labels, test_images, test_labels = (ops.convert_to_tensor(part) for part in data)
    p, value = train(initial(64, 64, 10, seed=0), images, labels)
    share, held_out = ops.to_numpy(accuracy(p, test_images, test_labels)), len(data.test_labels)
    print(f"{ops.get_backend()}: loss {ops.to_numpy(value):.4f}, {share:.1%} of {held_out} held-out images")
