"""Twenty more whose topics were drawn by another seed, after those of `sixth.py` had been mended."""

from tests.first_hour.mistake import Mistake

NET = "net = nn.Sequential(nn.Linear(2, 3), nn.ReLU(), nn.Linear(3, 2))\n"
DATA = "x, y = ops.ones((8, 2)), np.array([0, 1] * 4)\n"

MISTAKES = [
    Mistake("hidden_layer_sizes of scikit-learn", 0, "net = nn.MLP(hidden_layer_sizes=(16, 8))"),
    Mistake("a loss by its name", 0, "loss = nn.losses.get('mse')"),
    Mistake("manual_seed of a generator", 1, "g = ops.random.Generator().manual_seed(0)"),
    Mistake("the padding in the place of the stride", 1, "layer = nn.Conv2d(3, 8, 3, 'same')"),
    Mistake("weights of logsumexp", 1, "ops.logsumexp(ops.ones((2, 3)), axis=0, b=ops.ones((2, 3)))"),
    Mistake("the order of a new shape", 1, "ops.reshape(ops.arange(6), (2, 3), order='F')"),
    Mistake(
        "a module as the last step of a pipeline",
        1,
        f"{NET}{DATA}from sklearn.pipeline import make_pipeline\nfrom sklearn.preprocessing import StandardScaler\n"
        "make_pipeline(StandardScaler(), net).fit(np.asarray(x), y)",
        needs=("sklearn",),
    ),
    Mistake("the task of torchmetrics", 2, "accuracy = nn.metrics.Accuracy(task='multiclass', num_classes=2)"),
    Mistake("function of TensorFlow", 0, "@ops.function\ndef double(x): return x * 2"),
    Mistake("a layer by its name", 1, f"{NET}# %%\nnet.get_layer('dense_1')", notebook=True),
    Mistake(
        "take of NumPy's arrays", 1, "x = ops.ones((3, 4))\nx.take([0, 2], axis=1)", backend="torch", needs=("torch",)
    ),
    Mistake(
        "the long name of a loss of optax",
        0,
        f"{NET}{DATA}nn.losses.softmax_cross_entropy_with_integer_labels(net(x), y)",
    ),
    Mistake("the object of a device for a tensor", 0, "device = ops.device('cpu')\nx = ops.ones(3).to(device)"),
    Mistake(
        "enumerate forgotten in a loop over layers",
        0,
        "class Net(nn.Module):\n    def __init__(self): self.layers = nn.ModuleList([nn.Linear(2, 2), nn.Linear(2, 2)])\n"
        "    def __call__(self, x):\n        for i, layer in self.layers:\n            x = layer(x)\n        return x\n"
        "Net()(ops.ones((4, 2)))",
    ),
    Mistake("a number of float64", 0, "half = ops.float64(0.5)"),
    Mistake("a table of guesses and labels", 0, f"{DATA}table = ops.histogram2d(y, y, bins=2)"),
    Mistake("the norm of normalize", 1, "ops.normalize(ops.ones((2, 3)), norm='l1')"),
    Mistake("set_to_none", 2, f"{NET}optimizer = optim.Adam(net)\noptimizer.zero_grad(set_to_none=True)"),
    Mistake("eta0 of scikit-learn", 2, f"{NET}optimizer = optim.SGD(net, learning_rate='adaptive', eta0=0.01)"),
    Mistake(
        "one row for a network with BatchNorm",
        1,
        "X = ops.ones((5, 2))\nnet = nn.Sequential(nn.Linear(2, 3), nn.BatchNorm1d(3))\nnet(X[0])",
    ),
]
