"""Mistakes of shapes."""

from tests.first_hour.mistake import Mistake

MISTAKES = [
    Mistake(
        "features that the first layer does not have",
        2,
        "nn.Sequential(nn.Linear(3, 4), nn.ReLU(), nn.Linear(4, 2))(ops.ones((5, 2)))",
        says=r"x has shape \(5, 2\), expected \(\.\.\., 3\).*needs in_features=2 \(in 0 of Sequential",
    ),
    Mistake(
        "an image that is not flattened",
        2,
        "nn.Linear(784, 10)(ops.ones((8, 1, 28, 28)))",
        says=r"nn\.Flatten\(\) before the layer",
    ),
    Mistake(
        "channels last, as Keras has them",
        2,
        "nn.Conv2d(1, 8, 3)(ops.ones((16, 28, 28, 1)))",
        says=r"ops\.moveaxis\(x, -1, 1\)",
    ),
    Mistake(
        "a column of class labels",
        2,
        "nn.losses.cross_entropy(ops.ones((4, 3)), np.array([[0], [1], [2], [0]]))",
        says=r"ops\.squeeze\(target, -1\)",
    ),
    Mistake(
        "one-hot class labels as integers",
        2,
        "nn.losses.cross_entropy(ops.ones((4, 3)), np.eye(3, dtype='int64')[[0, 1, 2, 0]])",
        says=r"ops\.argmax\(target, -1\)",
    ),
    Mistake(
        "a last layer with one output for three classes",
        2,
        "net = nn.Linear(2, 1)\n"
        "ops.backward(lambda: nn.losses.cross_entropy(net(ops.ones((4, 2))), np.array([0, 1, 2, 0])), net)",
        says=r"last layer has 1 output and must have one for each class, at least 3",
    ),
    Mistake(
        "a column of predictions against a vector of targets",
        2,
        "net = nn.Linear(2, 1)\nops.backward(lambda: nn.losses.mse(net(ops.ones((4, 2))), np.ones(4, 'float32')), net)",
        says=r"use ops\.reshape\(target, \(4, 1\)\)",
    ),
    Mistake(
        "binary labels as a vector, logits as a column",
        2,
        "nn.losses.binary_cross_entropy_with_logits(ops.ones((4, 1)), ops.ones(4))",
        says=r"use ops\.reshape\(target, \(4, 1\)\)",
    ),
    Mistake(
        "inputs and labels of different lengths",
        2,
        "nn.data.batches(ops.ones((10, 3)), ops.ones(9), batch_size=2)",
        says=r"first axes have the same length .*\(10, 3\), \(9,\)",
    ),
    Mistake(
        "the size of torch.normal as third argument",
        2,
        "ops.random.normal(0, 1, 5)",
        says=r"the order is normal\(shape, mean, stddev\)",
    ),
]
