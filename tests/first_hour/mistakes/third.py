"""Twenty mistakes that somebody wrote who had read the docs alone, and neither the code nor the other mistakes."""

from tests.first_hour.mistake import Mistake

NET = "net = nn.Sequential(nn.Linear(2, 3), nn.ReLU(), nn.Linear(3, 2))\n"
DATA = "x, y = ops.ones((8, 2)), np.array([0, 1] * 4)\n"
BATCHES = f"{NET}{DATA}batches = nn.data.batches(x, y, batch_size=4)\n"
LOSS = "def loss(x, y): return nn.losses.cross_entropy(net(x), y)\n"

MISTAKES = [
    Mistake(
        "layers of the package, as in Keras",
        2,
        "from emberharmony import layers\nlayers.Dense(10)",
        fresh=True,
        says=r"layers and models are in emberharmony\.nn",
    ),
    Mistake(
        "a GPU for NumPy",
        2,
        "with ops.device('gpu'):\n    x = ops.zeros(2)",
        says=r"a GPU needs ops\.set_backend\('torch'\)",
    ),
    Mistake(
        "one image without a batch axis before Flatten",
        2,
        "net = nn.Sequential(nn.Flatten(), nn.Linear(784, 10))\nimage = ops.ones((28, 28))\nnet(image)",
        says=r"for one sample model\(ops\.expand_dims\(x, 0\)\)",
    ),
    Mistake(
        "one number for each row, without an axis",
        2,
        "table, totals = ops.ones((5, 3)), ops.ones(5)\nops.divide(table, totals)",
        says=r"ops\.expand_dims\(x2, -1\) would fit",
    ),
    Mistake(
        "columns that are joined below each other",
        2,
        "numbers, flags = ops.ones((5, 3)), ops.ones((5, 1))\nops.concatenate([numbers, flags])",
        says=r"with axis=1 they would fit",
    ),
    Mistake(
        "images of bytes",
        0,
        "images = np.zeros((2, 64), dtype='uint8')\nnet = nn.Linear(64, 10)\nnet(images)",
        says=r"dtype=float32",
    ),
    Mistake(
        "missing values among the features",
        2,
        f"{NET}x, y = np.array([[1.0, 2.0], [np.nan, 1.0]], dtype='float32'), np.array([0, 1])\n"
        f"{LOSS}batches = nn.data.batches(x, y, batch_size=2)\n"
        "nn.fit(net, loss, optim.Adam(net), batches, epochs=3, progress=False)",
        says=r"the batch itself has NaN or infinite values: replace them",
    ),
    Mistake(
        "the accuracy as the mean of booleans",
        2,
        f"{NET}{DATA}right = ops.argmax(net(x), axis=-1) == ops.array(y)\nright.mean()",
        backend="torch",
        needs=("torch",),
        says=r"hint: use ops\.mean\(x\)",
    ),
    Mistake(
        "the class of a layer without brackets",
        2,
        "net = nn.Sequential(nn.Linear(2, 3), nn.ReLU, nn.Linear(3, 2))\nnet(ops.ones((8, 2)))",
        says=r"got the class ReLU, which makes layers: write ReLU\(\)",
    ),
    Mistake(
        "requires_grad of a new parameter",
        2,
        "scale = nn.Parameter(ops.ones(3), requires_grad=False)",
        says=r"use trainable=",
    ),
    Mistake(
        "the learning rate first, as in Keras",
        2,
        f"{NET}optimizer = optim.Adam(0.001)",
        says=r"the model comes before the learning rate: \(model, lr=0\.001\)",
    ),
    Mistake(
        "a loss that never calls the model",
        2,
        f"{BATCHES}nn.fit(net, nn.losses.cross_entropy, optim.Adam(net), batches, epochs=3, progress=False)",
        says=r"lambda x, y: nn\.losses\.\w+\(model\(x\), y\)",
    ),
    Mistake(
        "arrays in the place of batches",
        2,
        f"{NET}{DATA}{LOSS}nn.fit(net, loss, optim.Adam(net), x, y, epochs=3, progress=False)",
        says=r"batches: batches of one epoch .* such as `nn\.data\.batches`",
    ),
    Mistake(
        "the learning rate by param_groups",
        2,
        f"{NET}optimizer = optim.Adam(net)\noptimizer.param_groups[0]['lr'] = 1e-4",
        says=r"^$",
    ),
    Mistake(
        "a whole module of PyTorch in a file",
        2,
        "import torch\ntorch.save(torch.nn.Linear(2, 1), 'net.pt')\nio.load('net.pt')",
        backend="torch",
        needs=("torch",),
        says=r"weights_only=False\)\.state_dict\(\)",
    ),
    Mistake(
        "the tensors of a file as a model",
        2,
        f"{NET}io.save(net, 'net.safetensors')\nmodel = io.load('net.safetensors')\nmodel(ops.ones((8, 2)))",
        says=r"make the model first, then io\.load_model\(model, path\)",
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
        2,
        f"{BATCHES}optimizer = optim.Adam(net)\n# %%\n{NET}# %%\n"
        "for x, y in batches:\n"
        "    loss = ops.backward(lambda: nn.losses.cross_entropy(net(x), y), net)\n    optimizer.step()",
        notebook=True,
        says=r"make a new optimizer for a new model",
    ),
    Mistake(
        "the losses of a history by name",
        2,
        f"{BATCHES}{LOSS}history = nn.fit(net, loss, optim.Adam(net), batches, epochs=3, progress=False)\n# %%\n"
        "history.history['loss']\n# %%\nhistory['loss']",
        notebook=True,
        says=r"the losses are history\.losses.*use history\.losses or \.validations",
    ),
]
