"""Mistakes in a notebook, and what it shows."""

from tests.first_hour.mistake import Mistake

TRAINED = (
    "net = nn.Linear(2, 1)\n"
    "x, y = ops.ones((8, 2)), ops.ones((8, 1))\n"
    "batches = nn.data.batches(x, y, batch_size=4)\n"
    "history = nn.fit(net, lambda x, y: nn.losses.mse(net(x), y), optim.SGD(net, lr=0.1), batches, epochs=100,"
    " progress=False)\n"
)

MISTAKES = [
    Mistake(
        "a wrong shape deep in a model",
        1,
        "net = nn.Sequential(nn.Linear(2, 3), nn.Sequential(nn.ReLU(), nn.Linear(4, 1)))\n# %%\nnet(ops.ones((5, 2)))",
        notebook=True,
    ),
    Mistake(
        "a wrong shape in a training",
        1,
        f"{TRAINED}# %%\nops.backward(lambda: nn.losses.mse(net(x), ops.ones(8)), net)",
        notebook=True,
    ),
    Mistake("the history as the last line of a cell", 0, f"{TRAINED}# %%\nhistory", notebook=True),
    Mistake("history.plot()", 0, f"{TRAINED}# %%\nhistory.plot()", notebook=True, needs=("matplotlib",)),
    Mistake(
        "summary() as the last line of a cell",
        0,
        "net = nn.Sequential(nn.Linear(2, 3), nn.ReLU(), nn.Linear(3, 1))\n# %%\nnet.summary()",
        notebook=True,
    ),
    Mistake("a parameter as the last line of a cell", 1, "Parameter(ops.ones((100, 50)))", notebook=True),
    Mistake(
        "batches as the last line of a cell",
        0,
        "nn.data.batches(ops.ones((100, 3)), ops.zeros(100), batch_size=32)",
        notebook=True,
    ),
    Mistake(
        "names by the tab key",
        0,
        "print(*dir(optim))\n# %%\nprint(*dir(nn.data))\n# %%\nprint(*dir(nn.losses))\n# %%\n"
        "print(*dir(Parameter(1.0)))",
        notebook=True,
    ),
    Mistake("the logarithm of zero", 0, "def risk(x):\n    return ops.log(x)\n# %%\nrisk(ops.zeros(2))", notebook=True),
    Mistake("help of an op", 1, "help(ops.conv)", notebook=True),
]
