"""Twenty mistakes that were written after those of `later.py` had been mended too."""

from tests.first_hour.mistake import Mistake

NET = "net = nn.Sequential(nn.Linear(2, 3), nn.ReLU(), nn.Linear(3, 2))\n"
DATA = "x, y = ops.ones((8, 2)), np.array([0, 1] * 4)\n"

MISTAKES = [
    Mistake("the name of a backend in capitals", 2, "ops.set_backend('NumPy')", says=r"did you mean 'numpy'"),
    Mistake(
        "a device that this machine lacks",
        2,
        f"{NET}net.to(device='cuda')",
        backend="torch",
        needs=("torch",),
        says=r"available: cpu",
    ),
    Mistake("an unknown subcommand", 2, "$PYTHON -m emberharmony bench", shell=True, says=r"--help"),
    Mistake(
        "matrices whose inner axes differ",
        2,
        "ops.matmul(ops.ones((2, 3)), ops.ones((2, 3)))",
        says=r"matrix_transpose\(x2\) would fit",
    ),
    Mistake("an axis that is not there", 2, "ops.mean(ops.ones((2, 3)), axis=2)", says=r"from -ndim to ndim - 1"),
    Mistake(
        "an image without a batch of a wrong rank", 2, "nn.MaxPool2d(2)(ops.ones((4, 4)))", says=r"or a sample of 3"
    ),
    Mistake("features of another normalisation", 2, "nn.BatchNorm1d(4)(ops.ones((8, 3)))", says=r"num_features=3"),
    Mistake("a dtype that does not exist", 2, "ops.zeros(2, dtype='float31')", says=r"did you mean 'float32'"),
    Mistake("text among numbers", 2, "ops.array([1.0, '2', 3.0])", says=r"convert the text by float"),
    Mistake(
        "a token beyond the table",
        2,
        "nn.Embedding(10, 4)(np.array([3, 10]))",
        says=r"embedding needs a row for each id",
    ),
    Mistake(
        "a layer without its second size",
        2,
        "nn.Linear(10)",
        says=r"missing 1 required positional argument: 'out_features'",
    ),
    Mistake(
        "heads that do not divide the width", 2, "nn.MultiheadAttention(10, 3)", says=r"must be a multiple of num_heads"
    ),
    Mistake("freezing a layer that is not there", 2, f"{NET}net.freeze('head')", says=r"known: 0\.weight"),
    Mistake("a negative learning rate", 2, f"{NET}optim.SGD(net, lr=-0.1)", says=r"expected a number >= 0"),
    Mistake(
        "if on a value of the loss",
        2,
        "def loss(x):\n    if ops.sum(x) > 0:\n        return ops.sum(x)\n    return -ops.sum(x)\n"
        "ops.jit(ops.grad(loss))(ops.ones(3))",
        says=r"use ops\.compile",
    ),
    Mistake("a gradient of a vector", 2, "ops.grad(lambda x: ops.square(x))(ops.ones(3))", says=r"ops\.sum, ops\.mean"),
    Mistake(
        "integers where a gradient is wanted",
        2,
        "ops.grad(lambda x: ops.sum(ops.square(x)))(ops.array([1, 2]))",
        says=r"cast it to a floating dtype",
    ),
    Mistake(
        "a damaged file",
        2,
        "open('a.safetensors', 'w').write('hello')\nio.load('a.safetensors')",
        says=r"has 5 bytes.*download or save it again",
    ),
    Mistake("view, as PyTorch has it", 2, "ops.view(ops.ones((2, 3)), (3, 2))", says=r"ops\.reshape\(x, shape\)"),
    Mistake(
        "early stopping of Keras",
        2,
        f"{NET}{DATA}nn.fit(net, lambda x, y: nn.losses.cross_entropy(net(x), y), "
        "optim.Adam(net), nn.data.batches(x, y, batch_size=4), epochs=2, early_stopping=3)",
        says=r"use callbacks=.*one that returns a text ends the training",
    ),
]
