"""Twenty mistakes whose topics were drawn by a seed: what somebody does, and the library that he comes from."""

from tests.first_hour.mistake import Mistake

NET = "net = nn.Sequential(nn.Linear(2, 3), nn.ReLU(), nn.Linear(3, 2))\n"
DATA = "x, y = ops.ones((8, 2)), np.array([0, 1] * 4)\n"

MISTAKES = [
    Mistake(
        "set_config, as in scikit-learn",
        2,
        "emberharmony.set_config(backend='torch')",
        says=r"use ops\.set_backend\(name\)",
    ),
    Mistake(
        "update and apply_updates of optax",
        2,
        "params, grads = {'w': ops.ones(2)}, {'w': ops.ones(2)}\noptimizer = optim.Adam(lr=1e-3)\n"
        "state = optimizer.init(params)\nupdates, state = optimizer.update(grads, state)\n"
        "params = optim.apply_updates(params, updates)",
        says=r"it takes grads, state, params",
    ),
    Mistake(
        "a module for cross_val_score",
        2,
        f"{NET}{DATA}from sklearn.model_selection import cross_val_score\ncross_val_score(net, np.asarray(x), y)",
        needs=("sklearn",),
        says=r"nn\.fit trains them, and model\(x\) predicts",
    ),
    Mistake(
        "std of PyTorch as a method",
        2,
        "x = ops.random.normal((8, 2))\nx = (x - x.mean(0)) / x.std(0, unbiased=False)",
        says=r"use ops\.std; use correction=",
    ),
    Mistake(
        "randn_like",
        2,
        "x = ops.ones((2, 3))\nnoise = 0.1 * ops.randn_like(x)",
        says=r"use ops\.random\.normal\(ops\.shape\(x\)\)",
    ),
    Mistake(
        "a scheduler around the optimizer that gets the loss",
        2,
        f"{NET}optimizer = optim.SGD(net, lr=0.1)\nscheduler = optim.ReduceOnPlateau(optimizer, patience=2)\n"
        "scheduler.step(0.5)",
        says=r"lr=plateau\) and plateau\.observe",
    ),
    Mistake(
        "fields and setup, as in Flax",
        2,
        "class MLP(nn.Module):\n    width: int = 8\n"
        "    def setup(self):\n        self.dense = nn.Linear(2, self.width)\n"
        "    def __call__(self, x):\n        return self.dense(x)\nMLP(width=16)(ops.ones((4, 2)))",
        says=r"makes its layers in a method def __init__",
    ),
    Mistake(
        "plot_model of Keras",
        2,
        f"{NET}# %%\nnn.utils.plot_model(net, show_shapes=True)",
        notebook=True,
        says=r"print\(model\.summary\(\)\) shows the layers",
    ),
    Mistake(
        "a sum over a mask",
        2,
        "x = ops.array([1.0, 2.0, 3.0])\nops.sum(x, where=x > 1)",
        says=r"ops\.where\(mask, x, value\)",
    ),
    Mistake(
        "the backend of one array",
        2,
        "x = ops.array([1.0, 2.0], backend='torch')",
        says=r"with ops\.use_backend\(name\):",
    ),
    Mistake(
        "two axes exchanged by transpose",
        2,
        "x = ops.ones((4, 5, 6))\nx = x.transpose(1, 2)",
        says=r"use ops\.transpose\(x, axes\)",
    ),
    Mistake(
        "labels before outputs in a metric",
        2,
        f"{NET}{DATA}accuracy = nn.metrics.Accuracy()\naccuracy.update(y, net(x))\nprint(accuracy.compute())",
        says=r"the order is \(predictions, target\)",
    ),
    Mistake(
        "an array backwards by a slice",
        2,
        "x = ops.arange(5)\nx = x[::-1]",
        backend="torch",
        needs=("torch",),
        says=r"use ops\.flip\(x, axis\)",
    ),
    Mistake(
        "a shape with None for the batch",
        2,
        "x = ops.zeros((None, 4))",
        says=r"write the number of rows in the place of None",
    ),
    Mistake(
        "normal_ of torch.nn.init",
        2,
        "layer = nn.Linear(2, 3)\nnn.init.normal_(layer.weight, std=0.02)",
        says=r"use nn\.init\.apply\(parameter, nn\.init\.normal",
    ),
    Mistake(
        "gradient of NumPy",
        2,
        "slopes = ops.gradient(ops.array([1.0, 4.0, 9.0]))",
        says=r"differences of neighbours are ops\.diff\(x\)",
    ),
    Mistake(
        "the shape of the input for Flatten",
        2,
        "net = nn.Sequential(nn.Flatten(input_shape=(28, 28)), nn.Linear(784, 10))",
        says=r"leave it out, or use nn",
    ),
    Mistake(
        "static arguments of jit",
        2,
        "def f(x, n): return x ** n\ng = ops.compile(f, static_argnums=1)",
        says=r"leave it out: arguments that are no tensors are constants",
    ),
    Mistake(
        "the batch size of scikit-learn",
        2,
        f"{DATA}batches = nn.data.batches(x, y, batch_size='auto')",
        says=r"batch_size must be an integer",
    ),
    Mistake(
        "labels before probabilities, as in Keras",
        0,
        "net = nn.Linear(2, 1)\nx, y = ops.ones((4, 2)), ops.array([[0.0], [1.0], [1.0], [0.0]])\n"
        "nn.losses.binary_cross_entropy(y, ops.sigmoid(net(x)))",
    ),
]
