"""Twenty more whose topics were drawn by another seed, after those of `sixth.py` had been mended."""

from tests.first_hour.mistake import Mistake

NET = "net = nn.Sequential(nn.Linear(2, 3), nn.ReLU(), nn.Linear(3, 2))\n"
DATA = "x, y = ops.ones((8, 2)), np.array([0, 1] * 4)\n"

MISTAKES = [
    Mistake(
        "hidden_layer_sizes of scikit-learn",
        2,
        "net = nn.MLP(hidden_layer_sizes=(16, 8))",
        says=r"use nn\.Sequential\(nn\.Linear",
    ),
    Mistake("a loss by its name", 2, "loss = nn.losses.get('mse')", says=r"pass the function itself"),
    Mistake(
        "manual_seed of a generator",
        2,
        "g = ops.random.Generator().manual_seed(0)",
        says=r"ops\.random\.Generator\(0\)",
    ),
    Mistake(
        "the padding in the place of the stride", 2, "layer = nn.Conv2d(3, 8, 3, 'same')", says=r"pass options by name"
    ),
    Mistake(
        "weights of logsumexp",
        1,
        "ops.logsumexp(ops.ones((2, 3)), axis=0, b=ops.ones((2, 3)))",
        says=r"it has no counterpart",
    ),
    Mistake(
        "the order of a new shape",
        2,
        "ops.reshape(ops.arange(6), (2, 3), order='F')",
        says=r"ops\.transpose\(ops\.reshape\(ops\.transpose\(x\), shape\[::-1\]\)\)",
    ),
    Mistake(
        "a module as the last step of a pipeline",
        2,
        f"{NET}{DATA}from sklearn.pipeline import make_pipeline\nfrom sklearn.preprocessing import StandardScaler\n"
        "make_pipeline(StandardScaler(), net).fit(np.asarray(x), y)",
        needs=("sklearn",),
        says=r"nn\.fit trains them, and model\(x\) predicts",
    ),
    Mistake(
        "the task of torchmetrics",
        2,
        "accuracy = nn.metrics.Accuracy(task='multiclass', num_classes=2)",
        says=r"leave task out",
    ),
    Mistake("function of TensorFlow", 2, "@ops.function\ndef double(x): return x * 2", says=r"use ops\.compile\(fn\)"),
    Mistake(
        "a layer by its name",
        2,
        f"{NET}# %%\nnet.get_layer('dense_1')",
        notebook=True,
        says=r"use dict\(model\.named_modules\(\)\)",
    ),
    Mistake(
        "take of NumPy's arrays",
        2,
        "x = ops.ones((3, 4))\nx.take([0, 2], axis=1)",
        backend="torch",
        needs=("torch",),
        says=r"use ops\.take\(x, indices, axis\)",
    ),
    Mistake(
        "the long name of a loss of optax",
        2,
        f"{NET}{DATA}nn.losses.softmax_cross_entropy_with_integer_labels(net(x), y)",
        says=r"did you mean nn\.losses\.cross_entropy",
    ),
    Mistake(
        "the object of a device for a tensor",
        2,
        "device = ops.device('cpu')\nx = ops.ones(3).to(device)",
        says=r"ops\.to_device\(x, device\)",
    ),
    Mistake(
        "enumerate forgotten in a loop over layers",
        2,
        "class Net(nn.Module):\n"
        "    def __init__(self): self.layers = nn.ModuleList([nn.Linear(2, 2), nn.Linear(2, 2)])\n"
        "    def __call__(self, x):\n        for i, layer in self.layers:\n            x = layer(x)\n        return x\n"
        "Net()(ops.ones((4, 2)))",
        says=r"for i, layer in enumerate\(layers\)",
    ),
    Mistake("a number of float64", 2, "half = ops.float64(0.5)", says=r"ops\.array\(x, 'float64'\)"),
    Mistake(
        "a table of guesses and labels",
        2,
        f"{DATA}table = ops.histogram2d(y, y, bins=2)",
        says=r"ops\.convert_to_tensor\(numpy\.histogram2d\(ops\.to_numpy\(x\)\)\)",
    ),
    Mistake("the norm of normalize", 2, "ops.normalize(ops.ones((2, 3)), norm='l1')", says=r"use order="),
    Mistake(
        "set_to_none",
        2,
        f"{NET}optimizer = optim.Adam(net)\noptimizer.zero_grad(set_to_none=True)",
        says=r"leave set_to_none out",
    ),
    Mistake(
        "eta0 of scikit-learn",
        2,
        f"{NET}optimizer = optim.SGD(net, learning_rate='adaptive', eta0=0.01)",
        says=r"use lr=",
    ),
    Mistake(
        "one row for a network with BatchNorm",
        2,
        "X = ops.ones((5, 2))\nnet = nn.Sequential(nn.Linear(2, 3), nn.BatchNorm1d(3))\nnet(X[0])",
        says=r"ops\.expand_dims\(x, 0\) makes a batch",
    ),
]
