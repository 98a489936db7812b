"""Twenty mistakes that somebody else wrote who had read the docs alone, after those of `third.py` had been mended."""

from tests.first_hour.mistake import Mistake

NET = "net = nn.Sequential(nn.Linear(2, 3), nn.ReLU(), nn.Linear(3, 2))\n"
DATA = "x, y = ops.ones((8, 2)), np.array([0, 1] * 4)\n"
BATCHES = f"{NET}{DATA}batches = nn.data.batches(x, y, batch_size=4)\n"
LOSS = "def loss(x, y): return nn.losses.cross_entropy(net(x), y)\n"
MODULE = "class Net(nn.Module):\n    def __init__(self): self.first, self.last = nn.Linear(2, 3), nn.Linear(3, 2)\n"

MISTAKES = [
    Mistake(
        "the variable of the backend after the first op",
        0,
        "import os\nfrom emberharmony import ops\nx = ops.ones((2, 3))\nos.environ['EMBERHARMONY_BACKEND'] = 'torch'\n"
        "print(type(ops.ones((2, 3))))",
        fresh=True,
    ),
    Mistake(
        "batches of PyTorch's DataLoader on NumPy",
        1,
        f"{NET}import torch\nfrom torch.utils.data import DataLoader, TensorDataset\n"
        "loader = DataLoader(TensorDataset(torch.ones(8, 2), torch.zeros(8).long()), batch_size=4)\n"
        "for x, y in loader:\n    loss = ops.backward(lambda: nn.losses.cross_entropy(net(x), y), net)",
        needs=("torch",),
    ),
    Mistake("a tensor to a device, as in PyTorch", 1, "x = ops.ones((2, 3))\nx = x.to('cuda')"),
    Mistake(
        "one sample appended to a batch",
        1,
        "images = ops.ones((10, 8, 8))\nops.concatenate([images, images[0]])",
    ),
    Mistake(
        "a last batch of one row for BatchNorm",
        2,
        "net = nn.Sequential(nn.Linear(2, 3), nn.BatchNorm1d(3), nn.Linear(3, 2))\n"
        "x, y = ops.ones((9, 2)), np.array([0] * 9)\n"
        "for a, b in nn.data.batches(x, y, batch_size=4):\n"
        "    loss = ops.backward(lambda: nn.losses.cross_entropy(net(a), b), net)",
    ),
    Mistake(
        "images that do not fill the new shape", 1, "images = ops.ones((10, 32, 32))\nops.reshape(images, (10, 784))"
    ),
    Mistake(
        "a sparse matrix of scikit-learn as features",
        1,
        f"{NET}{LOSS}import scipy.sparse\n"
        "X, y = scipy.sparse.csr_matrix(np.eye(8, 2, dtype='float32')), np.array([0, 1] * 4)\n"
        "batches = nn.data.batches(X, y, batch_size=4)\n"
        "nn.fit(net, loss, optim.Adam(net), batches, epochs=1, progress=False)",
        needs=("scipy",),
    ),
    Mistake("a float added in place to integers", 0, "x = ops.array([1, 2, 3])\nx += 0.5"),
    Mistake(
        "the input in the place of a layer's options",
        2,
        f"{MODULE}    def __call__(self, x): return self.last(nn.ReLU(self.first(x)))\nNet()(ops.ones((8, 2)))",
    ),
    Mistake(
        "no return in __call__",
        1,
        f"{MODULE}    def __call__(self, x): self.last(ops.relu(self.first(x)))\n"
        "net = Net()\nops.backward(lambda: nn.losses.cross_entropy(net(ops.ones((8, 2))), np.array([0, 1] * 4)), net)",
    ),
    Mistake(
        "a new last layer after the optimizer was made",
        0,
        f"{MODULE}    def __call__(self, x): return self.last(ops.relu(self.first(x)))\n"
        "net = Net()\noptimizer = optim.Adam(net)\nnet.last = nn.Linear(3, 5)\n"
        "ops.backward(lambda: nn.losses.cross_entropy(net(ops.ones((8, 2))), np.array([0, 4] * 4)), net)\n"
        "optimizer.step()",
    ),
    Mistake(
        "the function of the loss itself for fit",
        2,
        f"{BATCHES}nn.fit(net, nn.losses.cross_entropy, optim.Adam(net), batches, epochs=1, progress=False)",
    ),
    Mistake(
        "validation data, as Keras takes them",
        0,
        f"{BATCHES}{LOSS}nn.fit(net, loss, optim.Adam(net), batches, epochs=1, validation=(x, y), progress=False)",
    ),
    Mistake("a learning rate as YAML reads it", 1, f"{NET}optim.AdamW(net, lr='1e-3')"),
    Mistake(
        "the dict of a training, as for torch.save",
        1,
        f"{NET}optimizer = optim.Adam(net)\n"
        "training = {'epoch': 3, 'model': net.state_dict(), 'optimizer': optimizer.state_dict()}\n"
        "io.save(training, 'checkpoint.safetensors')",
    ),
    Mistake(
        "names that DataParallel has prefixed",
        1,
        f"{NET}weights = {{f'module.{{name}}': value for name, value in net.state_dict().items()}}\n"
        "io.save(weights, 'model.safetensors')\nio.load_model(net, 'model.safetensors')",
    ),
    Mistake(
        "a maximum and its index from max",
        0,
        f"{NET}{DATA}values, guesses = ops.max(net(x), axis=1)",
    ),
    Mistake("size(0) of PyTorch's tensors", 0, "x = ops.ones((8, 2))\nrows = x.size(0)"),
    Mistake(
        "the name of the function for its value, and the cell again",
        0,
        f"{NET}{DATA}{LOSS}# %%\nloss = loss(x, y)\n# %%\nloss = loss(x, y)",
        notebook=True,
    ),
    Mistake(
        "the result of fit as the model, as in scikit-learn",
        0,
        f"{BATCHES}{LOSS}# %%\nnet = nn.fit(net, loss, optim.Adam(net), batches, epochs=1, progress=False)\n"
        "# %%\nnet(x)",
        notebook=True,
    ),
]
