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
        2,
        "net = nn.Sequential(nn.Linear(2, 3), nn.Sequential(nn.ReLU(), nn.Linear(4, 1)))\n# %%\nnet(ops.ones((5, 2)))",
        notebook=True,
        says=r"a layer nn\.Linear needs in_features=3 \(in 1\.1 of Sequential",
        lines=10,
    ),
    Mistake(
        "a wrong shape in a training",
        2,
        f"{TRAINED}# %%\nops.backward(lambda: nn.losses.mse(net(x), ops.ones(8)), net)",
        notebook=True,
        says=r"use ops\.reshape\(target, \(8, 1\)\)",
        lines=14,
    ),
    Mistake(
        "the history as the last line of a cell",
        2,
        f"{TRAINED}# %%\nhistory",
        notebook=True,
        says=r"History\(200 steps in .*<svg",
        lines=3,
    ),
    Mistake("history.plot()", 2, f"{TRAINED}# %%\nhistory.plot()", notebook=True, needs=("matplotlib",), says=r"Axes"),
    Mistake(
        "summary() as the last line of a cell",
        2,
        "net = nn.Sequential(nn.Linear(2, 3), nn.ReLU(), nn.Linear(3, 1))\n# %%\nnet.summary()",
        notebook=True,
        says=r"<table>.*13 parameters",
    ),
    Mistake(
        "a parameter as the last line of a cell",
        2,
        "Parameter(ops.ones((100, 50)))",
        notebook=True,
        says=r"shape=\(100, 50\), dtype=float32\)\n\[\[1\.",
    ),
    Mistake(
        "batches as the last line of a cell",
        2,
        "nn.data.batches(ops.ones((100, 3)), ops.zeros(100), batch_size=32)",
        notebook=True,
        says=r"<table>.*first values",
    ),
    Mistake(
        "names by the tab key",
        2,
        "print(*dir(optim))\n# %%\nprint(*dir(nn.data))\n# %%\nprint(*dir(nn.losses))\n# %%\n"
        "print(*dir(Parameter(1.0)))",
        notebook=True,
        says=r"Batches batches",
        not_says=r"TYPE_CHECKING|Any |exchanging_grad|ArgumentError",
    ),
    Mistake(
        "the logarithm of zero",
        2,
        "from emberharmony import ops\nops.set_backend('numpy')\nfor x in (0.0, 1.0, 0.0):\n    ops.log(ops.array(x))",
        fresh=True,
        says=r"<string>:4: RuntimeWarning: divide by zero",
        not_says="elementary",
    ),
    Mistake("help of an op", 2, "help(ops.conv)", notebook=True, says=r"strides: by how many.*Default: 1"),
]
