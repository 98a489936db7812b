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
        2,
        "import os\nfrom emberharmony import ops\nx = ops.ones((2, 3))\nos.environ['EMBERHARMONY_BACKEND'] = 'torch'\n"
        "print(type(ops.ones((2, 3))))",
        fresh=True,
        says=r"set it before that, or call ops\.set_backend\('torch'\)",
    ),
    Mistake(
        "batches of PyTorch's DataLoader on NumPy",
        2,
        f"{NET}import torch\nfrom torch.utils.data import DataLoader, TensorDataset\n"
        "loader = DataLoader(TensorDataset(torch.ones(8, 2), torch.zeros(8).long()), batch_size=4)\n"
        "for x, y in loader:\n    loss = ops.backward(lambda: nn.losses.cross_entropy(net(x), y), net)",
        needs=("torch",),
        says=r"in which ops\.to_numpy\(x\) gives an array",
    ),
    Mistake(
        "a tensor to a device, as in PyTorch",
        2,
        "x = ops.ones((2, 3))\nx = x.to('cuda')",
        says=r"ops\.to_device\(x, device\)",
    ),
    Mistake(
        "one sample appended to a batch",
        2,
        "images = ops.ones((10, 8, 8))\nops.concatenate([images, images[0]])",
        says=r"ops\.expand_dims\(xs\[1\], 0\) has the axis",
    ),
    Mistake(
        "a last batch of one row for BatchNorm",
        2,
        "net = nn.Sequential(nn.Linear(2, 3), nn.BatchNorm1d(3), nn.Linear(3, 2))\n"
        "x, y = ops.ones((9, 2)), np.array([0] * 9)\n"
        "for a, b in nn.data.batches(x, y, batch_size=4):\n"
        "    loss = ops.backward(lambda: nn.losses.cross_entropy(net(a), b), net)",
        says=r"use a larger batch, or eval\(\)",
    ),
    Mistake(
        "images that do not fill the new shape",
        2,
        "images = ops.ones((10, 32, 32))\nops.reshape(images, (10, 784))",
        says=r"\(10, -1\) keeps the 10 rows, with 1024 elements each",
    ),
    Mistake(
        "a sparse matrix of scikit-learn as features",
        2,
        f"{NET}{LOSS}import scipy.sparse\n"
        "X, y = scipy.sparse.csr_matrix(np.eye(8, 2, dtype='float32')), np.array([0, 1] * 4)\n"
        "batches = nn.data.batches(X, y, batch_size=4)\n"
        "nn.fit(net, loss, optim.Adam(net), batches, epochs=1, progress=False)",
        needs=("scipy",),
        says=r"x\.toarray\(\) gives the array",
    ),
    Mistake(
        "a float added in place to integers",
        2,
        "x = ops.array([1, 2, 3])\nx += 0.5",
        says=r"use x = x \+ 0\.5",
    ),
    Mistake(
        "the input in the place of a layer's options",
        2,
        f"{MODULE}    def __call__(self, x): return self.last(nn.ReLU(self.first(x)))\nNet()(ops.ones((8, 2)))",
        says=r"nn\.ReLU\(\)\(x\)",
    ),
    Mistake(
        "no return in __call__",
        2,
        f"{MODULE}    def __call__(self, x): self.last(ops.relu(self.first(x)))\n"
        "net = Net()\nops.backward(lambda: nn.losses.cross_entropy(net(ops.ones((8, 2))), np.array([0, 1] * 4)), net)",
        says=r"return the result of __call__",
    ),
    Mistake(
        "a new last layer after the optimizer was made",
        2,
        f"{MODULE}    def __call__(self, x): return self.last(ops.relu(self.first(x)))\n"
        "net = Net()\noptimizer = optim.Adam(net)\nnet.last = nn.Linear(3, 5)\n"
        "ops.backward(lambda: nn.losses.cross_entropy(net(ops.ones((8, 2))), np.array([0, 4] * 4)), net)\n"
        "optimizer.step()",
        says=r"does not change last\.weight, last\.bias",
    ),
    Mistake(
        "the function of the loss itself for fit",
        2,
        f"{BATCHES}nn.fit(net, nn.losses.cross_entropy, optim.Adam(net), batches, epochs=1, progress=False)",
        says=r"lambda x, y: nn\.losses\.\w+\(model\(x\), y\)",
    ),
    Mistake(
        "validation data, as Keras takes them",
        2,
        f"{BATCHES}{LOSS}nn.fit(net, loss, optim.Adam(net), batches, epochs=1, validation=(x, y), progress=False)",
        says=r"such as lambda: loss_fn\(x, y\)",
    ),
    Mistake(
        "a learning rate as YAML reads it",
        2,
        f"{NET}optim.AdamW(net, lr='1e-3')",
        says=r"float\(lr\) makes a number",
    ),
    Mistake(
        "the dict of a training, as for torch.save",
        2,
        f"{NET}optimizer = optim.Adam(net)\n"
        "training = {'epoch': 3, 'model': net.state_dict(), 'optimizer': optimizer.state_dict()}\n"
        "io.save(training, 'checkpoint.safetensors')",
        says=r"io\.save\(\{'model': model, 'optimizer': optimizer, 'step': 3\}, folder\)",
    ),
    Mistake(
        "names that DataParallel has prefixed",
        2,
        f"{NET}weights = {{f'module.{{name}}': value for name, value in net.state_dict().items()}}\n"
        "io.save(weights, 'model.safetensors')\nio.load_model(net, 'model.safetensors')",
        says=r"rename=lambda name: name\.removeprefix\('module\.'\)",
    ),
    Mistake(
        "a maximum and its index from max",
        2,
        f"{NET}{DATA}values, guesses = ops.max(net(x), axis=1)",
        says=r"ops\.max_and_argmax\(x, axis\)",
    ),
    Mistake(
        "size(0) of PyTorch's tensors",
        2,
        "x = ops.ones((8, 2))\nrows = x.size(0)",
        says=r"use x\.shape\[axis\]",
    ),
    Mistake(
        "the name of the function for its value, and the cell again",
        2,
        f"{NET}{DATA}{LOSS}# %%\nloss = loss(x, y)\n# %%\nloss = loss(x, y)",
        notebook=True,
        says=r"give the value another name",
    ),
    Mistake(
        "the result of fit as the model, as in scikit-learn",
        2,
        f"{BATCHES}{LOSS}# %%\nnet = nn.fit(net, loss, optim.Adam(net), batches, epochs=1, progress=False)\n"
        "# %%\nnet(x)",
        notebook=True,
        says=r"keep the model under a name of its own",
    ),
]
