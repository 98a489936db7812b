"""Mistakes of shapes."""

from tests.first_hour.mistake import Mistake

MISTAKES = [
    Mistake(
        "features that the first layer does not have",
        1,
        "nn.Sequential(nn.Linear(3, 4), nn.ReLU(), nn.Linear(4, 2))(ops.ones((5, 2)))",
    ),
    Mistake("an image that is not flattened", 1, "nn.Linear(784, 10)(ops.ones((8, 1, 28, 28)))"),
    Mistake("channels last, as Keras has them", 1, "nn.Conv2d(1, 8, 3)(ops.ones((16, 28, 28, 1)))"),
    Mistake("a column of class labels", 1, "nn.losses.cross_entropy(ops.ones((4, 3)), np.array([[0], [1], [2], [0]]))"),
    Mistake(
        "one-hot class labels as integers",
        1,
        "nn.losses.cross_entropy(ops.ones((4, 3)), np.eye(3, dtype='int64')[[0, 1, 2, 0]])",
    ),
    Mistake(
        "a last layer with one output for three classes",
        1,
        "net = nn.Linear(2, 1)\n"
        "ops.backward(lambda: nn.losses.cross_entropy(net(ops.ones((4, 2))), np.array([0, 1, 2, 0])), net)",
    ),
    Mistake(
        "a column of predictions against a vector of targets",
        2,
        "net = nn.Linear(2, 1)\nops.backward(lambda: nn.losses.mse(net(ops.ones((4, 2))), np.ones(4, 'float32')), net)",
    ),
    Mistake(
        "binary labels as a vector, logits as a column",
        2,
        "nn.losses.binary_cross_entropy_with_logits(ops.ones((4, 1)), ops.ones(4))",
    ),
    Mistake(
        "inputs and labels of different lengths", 2, "nn.data.batches(ops.ones((10, 3)), ops.ones(9), batch_size=2)"
    ),
    Mistake("the size of torch.normal as third argument", 0, "ops.random.normal(0, 1, 5)"),
]
