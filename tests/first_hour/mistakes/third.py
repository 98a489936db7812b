"""Twenty mistakes that somebody wrote who had read the docs alone, and neither the code nor the other mistakes."""

from tests.first_hour.mistake import Mistake

NET = "net = nn.Sequential(nn.Linear(2, 3), nn.ReLU(), nn.Linear(3, 2))\n"
DATA = "x, y = ops.ones((8, 2)), np.array([0, 1] * 4)\n"
BATCHES = f"{NET}{DATA}batches = nn.data.batches(x, y, batch_size=4)\n"
LOSS = "def loss(x, y): return nn.losses.cross_entropy(net(x), y)\n"

MISTAKES = [
    Mistake(
        "layers of the package, as in Keras",
        0,
        "from emberharmony import layers\nlayers.Dense(10)",
        fresh=True,
        says=r"cannot import name 'layers'",
    ),
    Mistake(
        "a GPU for NumPy",
        1,
        "with ops.device('gpu'):\n    x = ops.zeros(2)",
        says=r"did you mean 'cpu'\? \(available: cpu\)",
    ),
    Mistake(
        "one image without a batch axis before Flatten",
        0,
        "net = nn.Sequential(nn.Flatten(), nn.Linear(784, 10))\nimage = ops.ones((28, 28))\nnet(image)",
        says=r"needs in_features=28",
    ),
    Mistake(
        "one number for each row, without an axis",
        1,
        "table, totals = ops.ones((5, 3)), ops.ones(5)\nops.divide(table, totals)",
        says=r"each axis must be equal or 1",
    ),
    Mistake(
        "columns that are joined below each other",
        1,
        "numbers, flags = ops.ones((5, 3)), ops.ones((5, 1))\nops.concatenate([numbers, flags])",
        says=r"along dimension 1",
    ),
    Mistake(
        "images of bytes",
        0,
        "images = np.zeros((2, 64), dtype='uint8')\nnet = nn.Linear(64, 10)\nnet(images)",
        says=r"dtype=float32",
    ),
    Mistake(
        "missing values among the features",
        1,
        f"{NET}x, y = np.array([[1.0, 2.0], [np.nan, 1.0]], dtype='float32'), np.array([0, 1])\n"
        f"{LOSS}batches = nn.data.batches(x, y, batch_size=2)\n"
        "nn.fit(net, loss, optim.Adam(net), batches, epochs=3, progress=False)",
        says=r"these parameters are not finite",
    ),
    Mistake(
        "the accuracy as the mean of booleans",
        0,
        f"{NET}{DATA}right = ops.argmax(net(x), axis=-1) == ops.array(y)\nright.mean()",
        backend="torch",
        needs=("torch",),
        says=r"Got: Bool",
    ),
    Mistake(
        "the class of a layer without brackets",
        0,
        "net = nn.Sequential(nn.Linear(2, 3), nn.ReLU, nn.Linear(3, 2))\nnet(ops.ones((8, 2)))",
        says=r"too many positional arguments",
    ),
    Mistake(
        "requires_grad of a new parameter",
        1,
        "scale = nn.Parameter(ops.ones(3), requires_grad=False)",
        says=r"it takes value, trainable, name",
    ),
    Mistake(
        "the learning rate first, as in Keras",
        1,
        f"{NET}optimizer = optim.Adam(0.001)",
        says=r"there is no Parameter in params",
    ),
    Mistake(
        "a loss that never calls the model",
        0,
        f"{BATCHES}nn.fit(net, nn.losses.cross_entropy, optim.Adam(net), batches, epochs=3, progress=False)",
        says=r"6 steps",
    ),
    Mistake(
        "arrays in the place of batches",
        0,
        f"{NET}{DATA}{LOSS}nn.fit(net, loss, optim.Adam(net), x, y, epochs=3, progress=False)",
        says=r"takes 4 positional arguments",
    ),
    Mistake(
        "the learning rate by param_groups",
        2,
        f"{NET}optimizer = optim.Adam(net)\noptimizer.param_groups[0]['lr'] = 1e-4",
        says=r"^$",
    ),
    Mistake(
        "a whole module of PyTorch in a file",
        1,
        "import torch\ntorch.save(torch.nn.Linear(2, 1), 'net.pt')\nio.load('net.pt')",
        backend="torch",
        needs=("torch",),
        says=r"convert it to safetensors where you trust it",
    ),
    Mistake(
        "the tensors of a file as a model",
        0,
        f"{NET}io.save(net, 'net.safetensors')\nmodel = io.load('net.safetensors')\nmodel(ops.ones((8, 2)))",
        says=r"'dict' object is not callable",
    ),
    Mistake(
        "no_grad of PyTorch",
        2,
        f"{NET}with ops.no_grad():\n    net(ops.ones((8, 2)))",
        says=r"nothing is recorded outside of ops\.grad",
    ),
    Mistake(
        "detach and numpy of PyTorch's tensors",
        2,
        f"{NET}outputs = net(ops.ones((8, 2)))\noutputs.detach().numpy()",
        says=r"use ops\.stop_gradient\(x\)",
    ),
    Mistake(
        "the cell of the model again, and not that of its optimizer",
        1,
        f"{BATCHES}optimizer = optim.Adam(net)\n# %%\n{NET}# %%\n"
        "for x, y in batches:\n"
        "    loss = ops.backward(lambda: nn.losses.cross_entropy(net(x), y), net)\n    optimizer.step()",
        notebook=True,
        says=r"no parameter has a gradient",
    ),
    Mistake(
        "the losses of a history by name",
        1,
        f"{BATCHES}{LOSS}history = nn.fit(net, loss, optim.Adam(net), batches, epochs=3, progress=False)\n# %%\n"
        "history.history['loss']\n# %%\nhistory['loss']",
        notebook=True,
        says=r"the losses are history\.losses.*list indices must be integers",
    ),
]
