"""Twenty more mistakes, of all areas, which were written after the others had been mended."""

from tests.first_hour.mistake import Mistake

NET = "net = nn.Sequential(nn.Linear(2, 3), nn.ReLU(), nn.Linear(3, 2))\n"
DATA = "x, y = ops.ones((8, 2)), np.array([0, 1] * 4)\n"

MISTAKES = [
    Mistake(
        "the command with the long name of a library",
        2,
        "$PYTHON -m emberharmony backend set pytorch",
        shell=True,
        says=r"did you mean 'torch'",
    ),
    Mistake("checked without a call", 2, "with ops.checked:\n    ops.ones(2)", says=r"with ops\.checked\(\)"),
    Mistake(
        "a list of layers, as Keras takes it",
        2,
        "nn.Sequential([nn.Linear(2, 3), nn.ReLU()])",
        says=r"nn\.Sequential\(\*modules\)",
    ),
    Mistake(
        "tensors in the place of a list",
        2,
        "ops.concatenate(ops.ones(2), ops.zeros(2))",
        says=r"concatenate\(\[x1, x2\]\)",
    ),
    Mistake("the new shape as several arguments", 2, "ops.reshape(ops.ones(6), 2, 3)", says=r"reshape\(x, \(2, 3\)\)"),
    Mistake(
        "an image smaller than the kernel",
        2,
        "nn.Conv2d(1, 4, 5)(ops.ones((2, 1, 3, 3)))",
        says=r"window of 5 does not fit an axis of length 3: pad it",
    ),
    Mistake(
        "the tuple of an LSTM to the next layer",
        2,
        "nn.Sequential(nn.LSTM(3, 8), nn.Linear(8, 1))(ops.ones((5, 2, 3)))",
        says=r"output, state = lstm\(x\)",
    ),
    Mistake("rows of different lengths", 2, "ops.array([[1.0, 2.0], [3.0]])", says=r"pad its rows to one length"),
    Mistake(
        "labels before logits, as in Keras",
        2,
        f"{NET}{DATA}nn.losses.cross_entropy(y, net(x))",
        says=r"order is cross_entropy\(logits, ids\)",
    ),
    Mistake("a shape as several arguments", 2, "ops.zeros(2, 3)", says=r"zeros\(\(2, 3\)\)"),
    Mistake(
        "parameters without a call", 2, f"{NET}optim.Adam(net.parameters, lr=0.1)", says=r"call it: parameters\(\)"
    ),
    Mistake("a rate in percent", 2, "nn.Dropout(50)", says=r"probability from 0 to 1, got 50"),
    Mistake(
        "fit with its arguments in another order",
        2,
        f"{NET}{DATA}nn.fit(net, optim.Adam(net), nn.losses.cross_entropy, nn.data.batches(x, y, batch_size=4))",
        says=r"fit\(model, loss_fn, optimizer, batches\)",
    ),
    Mistake(
        "item() inside of the loss",
        2,
        f"{NET}{DATA}def loss():\n    value = nn.losses.cross_entropy(net(x), y)\n    print(value.item())\n"
        "    return value\nops.backward(loss, net)",
        says=r"use the functions of ops",
    ),
    Mistake(
        "the batch size by position", 2, f"{DATA}nn.data.batches(x, y, 4)", says=r"keyword-only argument: 'batch_size'"
    ),
    Mistake(
        "NumPy's seed for the initial values",
        0,
        "np.random.seed(0)\na = nn.Linear(2, 1)\nnp.random.seed(0)\nb = nn.Linear(2, 1)\n"
        "bool(ops.all(ops.equal(a.weight, b.weight)))",
        says=r"False",
    ),
    Mistake(
        "the path before the model",
        2,
        f"{NET}io.save(net, 'net.safetensors')\nio.load_model('net.safetensors', net)",
        says=r"load_model\(model, 'model",
    ),
    Mistake(
        "a path in the place of tensors",
        2,
        f"{NET}net.load_state_dict('net.safetensors')",
        says=r"io\.load_model\(model, path\) reads a file",
    ),
    Mistake("dim in a method of an array", 2, f"{NET}{DATA}net(x).argmax(dim=1)", says=r"use axis="),
    Mistake(
        "a plain shape for the summary",
        2,
        f"{NET}# %%\nnet.summary((8, 2))",
        notebook=True,
        says=r"ops\.zeros\(\(8, 2\)\)",
    ),
]
