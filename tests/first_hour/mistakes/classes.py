"""Mistakes that stand for classes: names of other libraries, and sixty programs of misuse on each backend."""

from tests.first_hour.mistake import Mistake

NET = "net = nn.Sequential(nn.Linear(2, 3), nn.ReLU(), nn.Linear(3, 2))\n"
DATA = "x, y = ops.ones((8, 2)), np.array([0, 1] * 4)\n"
BATCHES = (
    f"{NET}{DATA}batches = nn.data.batches(x, y, batch_size=4)\n"
    "loss = lambda x, y: nn.losses.cross_entropy(net(x), y)\n"
)
ONE = "net = nn.Linear(2, 1)\nx, y = ops.ones((4, 2)), ops.array([[0.0], [1.0], [1.0], [0.0]])\n"
TRAIN = "nn.data.batches(x, y, batch_size=4), epochs=1, progress=False)"

NAMES = [
    Mistake("a layer of Keras with a capital D", 2, "layer = nn.Conv2D(3, 8, 3)", says=r"did you mean 'Conv2d'"),
    Mistake("a loss of optax", 2, "nn.losses.huber_loss(ops.ones(2), ops.ones(2))", says=r"did you mean 'HuberLoss'"),
    Mistake("an optimizer of optax", 2, f"{NET}optim.adamw(net)", says=r"did you mean 'AdamW'"),
    Mistake("early stopping as a class", 2, "nn.EarlyStopping(patience=3)", says=r"one that returns a text ends"),
    Mistake("a scaler of scikit-learn", 2, "nn.StandardScaler()", says=r"subtract the mean"),
    Mistake("the random flips of Keras", 2, "nn.RandomFlip('horizontal')", says=r"ops\.flip\(x, axis=-1\)"),
    Mistake(
        "addmm of PyTorch", 2, "ops.addmm(ops.ones(2), ops.ones((2, 2)), ops.ones((2, 2)))", says=r"use ops\.matmul"
    ),
    Mistake("a dtype of NumPy", 2, "ops.zeros(3, ops.float_)", says=r"use ops\.float32 or ops\.float64"),
    Mistake("a name that nothing resembles", 2, "ops.wavelet(ops.ones(4))", says=r"dir\(ops\) lists all names"),
    Mistake("a layer that nothing resembles", 2, "nn.MambaBlock(4)", says=r"class Name\(nn\.Module\):"),
    Mistake(
        "the module of schedulers",
        2,
        "from emberharmony.optim.lr_scheduler import StepLR",
        says=r"pass a schedule as lr=",
    ),
    Mistake("a backend as a module", 2, "from emberharmony import torch", says=r"ops\.set_backend\(name\)"),
    Mistake(
        "functional of PyTorch",
        2,
        "import emberharmony.nn.functional as F\nF.adaptive_avg_pool2d(ops.ones(3), 1)",
        says=r"use ops\.adaptive_average_pool",
    ),
    Mistake("a method of the metrics of Keras", 2, "nn.metrics.Accuracy().result()", says=r"use compute\(\)"),
    Mistake(
        "a metric that is called",
        2,
        "nn.metrics.Accuracy()(ops.ones((2, 3)), ops.array([0, 1]))",
        says=r"use update\(outputs, labels\)",
    ),
    Mistake(
        "add_weight of Keras",
        2,
        "class Net(nn.Module):\n    def __init__(self): self.w = self.add_weight(shape=(2, 3))\nNet()",
        says=r"self\.weight = nn\.Parameter",
    ),
    Mistake(
        "the sizes of an embedding as in Keras",
        2,
        "nn.Embedding(input_dim=10, output_dim=4)",
        says=r"use num_embeddings=",
    ),
    Mistake(
        "self forgotten",
        2,
        "class Net(nn.Module):\n    def __init__(self): self.fc = nn.Linear(2, 3)\n"
        "    def __call__(self, x): return fc(x)\nNet()(ops.ones((1, 2)))",
        says=r"self\.fc",
    ),
    Mistake("F that was not imported", 2, "F.relu(ops.ones(3))", says=r"as ops\.relu\(x\)"),
    Mistake(
        "the losses of validation as in Keras",
        2,
        f"{BATCHES}h = nn.fit(net, loss, optim.Adam(net), batches, progress=False)\nh.val_loss",
        says=r"history\.validations",
    ),
]

SHAPES = [
    Mistake("shape as a method", 2, "ops.ones((2, 3)).shape()", says=r"x\.shape\[0\] is the first length"),
    Mistake(
        "T as a method", 2, "ops.ones((2, 3)).T()", backend="mlx", needs=("mlx",), says=r"T is no method: use x\.T"
    ),
    Mistake("axes as several arguments", 2, "ops.transpose(ops.ones((2, 3, 4)), 0, 2, 1)", says=r"as \(0, 2, 1\)"),
    Mistake(
        "einsum of lengths that differ",
        2,
        "ops.einsum('ij,jk->ik', ops.ones((2, 3)), ops.ones((4, 5)))",
        says=r"for example ops\.einsum\('ij,j->i'",
    ),
    Mistake("padding as in PyTorch", 2, "ops.pad(ops.ones((2, 3)), (1, 1, 0, 0))", says=r"one pair for each axis"),
    Mistake("an axis that is longer than 1", 2, "ops.squeeze(ops.ones((2, 3)), 0)", says=r"which have length 1"),
    Mistake(
        "channels last for a normalisation",
        2,
        "nn.BatchNorm2d(3)(ops.ones((2, 8, 8, 3)))",
        says=r"ops\.moveaxis\(x, 3, 1\)",
    ),
    Mistake("another width for LayerNorm", 2, "nn.LayerNorm(5)(ops.ones((2, 4)))", says=r"normalized_shape=\(4,\)"),
    Mistake(
        "arrays of several lengths",
        2,
        "nn.data.batches(ops.ones((4, 2)), ops.ones(3), batch_size=2)",
        says=r"x\[:n\] shortens one",
    ),
    Mistake("the pair of arrays", 2, f"{DATA}nn.data.batches((x, y), batch_size=4)", says=r"pass \*arrays"),
    Mistake("a shape for a parameter", 2, "nn.Parameter((2, 3))", says=r"Parameter\(ops\.zeros\(\(2, 3\)\)\)"),
    Mistake(
        "the order of NumPy for a generator",
        2,
        "ops.random.Generator(0).normal(0, 1, (3,))",
        says=r"the order is normal\(shape",
    ),
]

TRAINING = [
    Mistake(
        "softmax before cross_entropy",
        2,
        f"{NET}{DATA}x = ops.random.normal((8, 2))\n"
        "nn.fit(net, lambda x, y: nn.losses.cross_entropy(ops.softmax(net(x)), y), "
        f"optim.Adam(net), {TRAIN}",
        backend="torch",
        needs=("torch",),
        says=r"has a softmax of its own",
    ),
    Mistake(
        "a layer Softmax before cross_entropy",
        2,
        "net = nn.Sequential(nn.Linear(2, 2), nn.Softmax())\n"
        f"{DATA}nn.fit(net, lambda x, y: nn.losses.cross_entropy(net(x), y), optim.Adam(net), "
        f"{TRAIN}",
        backend="mlx",
        needs=("mlx",),
        says=r"has a softmax of its own",
    ),
    Mistake(
        "Sigmoid before the loss of logits",
        2,
        "net = nn.Sequential(nn.Linear(2, 1), nn.Sigmoid())\n"
        f"{DATA}nn.fit(net, lambda x, y: nn.losses.binary_cross_entropy_with_logits(net(x)[:, 0], "
        f"y), optim.Adam(net), {TRAIN}",
        says=r"has a sigmoid of its own",
    ),
    Mistake(
        "logits before cross_entropy",
        2,
        f"{NET}{DATA}x = ops.random.normal((8, 2))\n"
        f"nn.fit(net, lambda x, y: nn.losses.cross_entropy(net(x), y), optim.Adam(net), {TRAIN}",
        says=r"History\(2 steps",
        not_says="Warning",
    ),
    Mistake(
        "the order of Keras in training",
        2,
        f"{ONE}ops.backward(lambda: nn.losses.binary_cross_entropy(y, ops.sigmoid(net(x))), net)",
        backend="mlx",
        needs=("mlx",),
        says=r"the order is \(output, target\)",
    ),
    Mistake(
        "the order of Keras for logits",
        2,
        f"{ONE}ops.backward(lambda: nn.losses.binary_cross_entropy_with_logits(y, net(x)), net)",
        backend="torch",
        needs=("torch",),
        says=r"the order is \(output, target\)",
    ),
    Mistake(
        "a loss of another model",
        2,
        f"{NET}{DATA}other = nn.Linear(2, 2)\noptimizer = optim.SGD(net)\n"
        "ops.backward(lambda: nn.losses.cross_entropy(other(x), y), net)\noptimizer.step()",
        backend="torch",
        needs=("torch",),
        says=r"does the loss call this model",
    ),
    Mistake(
        "NaN in the data of a loop of one's own",
        2,
        f"{NET}{DATA}x = x * float('nan')\noptimizer = optim.SGD(net)\n"
        "ops.backward(lambda: nn.losses.cross_entropy(net(x), y), net)\noptimizer.step()",
        backend="torch",
        needs=("torch",),
        says=r"the gradients are not finite \(nan\)",
    ),
    Mistake("train as an attribute", 2, f"{NET}net.train = True", says=r"hides the method, which is called: train\(\)"),
    Mistake(
        "half an epoch",
        2,
        f"{BATCHES}nn.fit(net, loss, optim.Adam(net), batches, epochs=2.5)",
        says=r"epochs must be an integer",
    ),
    Mistake(
        "the arrays in the place of batches",
        2,
        f"{BATCHES}nn.fit(net, loss, optim.Adam(net), x, y)",
        says=r"nn\.data\.batches\(x, y, batch_size=32\)",
    ),
    Mistake(
        "the loss after the model", 2, f"{BATCHES}ops.backward(net, lambda: loss(x, y))", says=r"the loss comes first"
    ),
    Mistake("the gradient of a tensor", 2, "ops.grad(ops.ones(3))", says=r"as in lambda x: ops\.sum\(x\)"),
    Mistake("a device by its position", 2, f"{NET}net.to('cuda')", says=r"pass options by name: to\(dtype"),
    Mistake(
        "the series of a plot",
        2,
        f"{BATCHES}h = nn.fit(net, loss, optim.Adam(net), batches, progress=False)\nh.plot('loss')",
        says=r"write history\.plot\(\)",
    ),
    Mistake(
        "zero_ of a gradient", 2, "nn.Parameter(ops.ones(1)).grad.zero_()", says=r"grad is None until ops\.backward"
    ),
    Mistake(
        "tensors that the state lacks",
        2,
        f"{NET}net.load_state_dict({{'0.weight': ops.ones((3, 2))}})",
        says=r"pass strict=False",
    ),
    Mistake(
        "a misspelt variable",
        2,
        "from emberharmony import ops\nops.ones(2)",
        fresh=True,
        environment={"EMBERHARMONY_BACKEND": "torhc"},
        says=r"did you mean 'torch'",
        not_says="Exception ignored",
    ),
    Mistake("an empty folder", 2, "import os\nos.mkdir('d')\nio.load('d')", says=r"pass the file itself"),
]

VALUES = [
    Mistake(
        "a tensor compared with a list",
        2,
        "(ops.array([1, 0, 1]) == [1, 1, 1]).mean()",
        backend="torch",
        needs=("torch",),
        says=r"by ops\.array\(x\)",
    ),
    Mistake("round of Python", 2, "round(ops.array(1.2345), 2)", says=r"use ops\.round\(x, decimals\)"),
    Mistake("a layer that is not there", 2, f"{NET}net[5]", says=r"indices 0 to n - 1"),
    Mistake("a state by a number", 2, f"{NET}net.state_dict()[0]", says=r"list\(x\) gives the keys"),
    Mistake(
        "the outputs beside the loss",
        2,
        f"{NET}{DATA}ops.backward(lambda: (nn.losses.cross_entropy(net(x), y), net(x)), net)",
        says=r"return the loss alone",
    ),
    Mistake(
        "a loss in a text while it is differentiated",
        2,
        "w = nn.Parameter(ops.ones(2))\ndef loss():\n    x = ops.sum(w)\n    print(f'loss {x:.2f}')\n    return x\n"
        "ops.backward(loss, w)",
        says=r"loss 2\.00",
        not_says="Error",
    ),
    Mistake(
        "tokens with the classes last",
        2,
        "nn.losses.cross_entropy(ops.ones((2, 5, 10)), ops.zeros((2, 5), dtype='int64'))",
        says=r"pass axis=-1",
    ),
    Mistake(
        "weights of samples",
        2,
        "nn.losses.cross_entropy(ops.ones((2, 3)), ops.array([0, 1]), sample_weight=[1.0, 2.0])",
        says=r"reduction='none'",
    ),
    Mistake(
        "parameters of PyTorch for an optimizer",
        2,
        "import torch\noptim.Adam(torch.nn.Linear(2, 2).parameters())",
        needs=("torch",),
        says=r"it is one of PyTorch",
    ),
    Mistake("a list for append", 2, f"{NET}net.append([nn.Linear(2, 2)])", says=r"extend a list of them"),
    Mistake("a member that is not there", 2, "nn.ModuleDict({'a': nn.Linear(2, 2)})['b']", says=r"it has 'a'"),
    Mistake(
        "probabilities for kl_div",
        2,
        f"{NET}x, y = ops.random.normal((8, 2)), ops.softmax(ops.random.normal((8, 2)))\n"
        f"nn.fit(net, lambda x, y: nn.losses.kl_div(ops.softmax(net(x)), y), optim.Adam(net), {TRAIN}",
        says=r"use ops\.log_softmax",
    ),
    Mistake("a gamma of a generator", 2, "ops.random.Generator(0).gamma(2.0, size=3)", says=r"generator=generator"),
    Mistake("a hook before the call", 2, f"{NET}net.register_forward_pre_hook(print)", says=r"use ops\.record\(\)"),
]

PLACES = [
    Mistake(
        "a scheduler of PyTorch around an optimizer",
        2,
        f"{NET}import torch\ntorch.optim.lr_scheduler.StepLR(optim.SGD(net, lr=0.1), 10)",
        needs=("torch",),
        says=r"pass a schedule as lr=",
    ),
    Mistake(
        "a lambda in a pickle",
        2,
        "import pickle\npickle.dumps(nn.Sequential(nn.Linear(2, 2), lambda x: x))",
        says=r"io\.save\(model, path\)",
    ),
    Mistake(
        "a product of matrices that do not fit",
        2,
        "ops.ones((4, 2)) @ nn.Linear(2, 3).weight",
        backend="mlx",
        needs=("mlx",),
        says=r"ops\.matmul\(x, w\), says which",
    ),
    Mistake("a file of PyTorch that is missing", 2, "io.load('model.pth')", says=r"the folder is .*, and has no file"),
    Mistake("a file in the place of an array", 2, "ops.array('data.npy')", says=r"np\.load\(path\)"),
    Mistake("text among tensors", 2, "io.save({'x': ops.ones(2), 'name': 'a'}, 'x.safetensors')", says=r"metadata="),
    Mistake(
        "the guesses for a loss of classes",
        2,
        f"{NET}{DATA}ops.backward(lambda: nn.losses.cross_entropy(ops.argmax(net(x), 1), y), net)",
        says=r"the outputs and not their argmax",
    ),
    Mistake(
        "the output for fit",
        2,
        f"{BATCHES}nn.fit(net(x), loss, optim.Adam(net), batches)",
        says=r"pass the model itself",
    ),
    Mistake(
        "the name of a folder for fit",
        2,
        f"{BATCHES}nn.fit(net, loss, optim.Adam(net), batches, checkpoint='folder')",
        says=r"io\.Checkpoint\('folder'\)",
    ),
    Mistake("tensors for cond", 2, "ops.cond(True, ops.ones(2), ops.zeros(2))", says=r"write lambda"),
    Mistake("a sum alone from scan", 2, "ops.scan(lambda c, x: c + x, 0.0, ops.ones(3))", says=r"return carry, y"),
    Mistake(
        "a tensor made before the backend was chosen",
        2,
        "x = ops.ones(3)\n# %%\nops.set_backend('torch')\n# %%\nx + ops.ones(3)",
        notebook=True,
        needs=("torch",),
        says=r"tensors of two backends",
    ),
    Mistake(
        "an array of NumPy before a tensor",
        2,
        "np.ones((4, 3)) @ ops.ones((3, 2))",
        backend="torch",
        needs=("torch",),
        says=r"tensors of two backends",
    ),
    Mistake(
        "nn as the name of a network",
        2,
        "nn = nn.Linear(2, 2)\n# %%\nnn.Linear(2, 3)",
        notebook=True,
        says=r"nn is the name of a Linear now",
    ),
    Mistake(
        "a file with the name of a library",
        2,
        "echo 'x = 1' > torch.py; echo 'from emberharmony import ops; ops.set_backend(\"torch\")' > a.py; $PYTHON a.py",
        shell=True,
        needs=("torch",),
        says=r"torch\.py has the name of a library and hides it",
    ),
    Mistake(
        "a backend in the place of a command",
        2,
        "$PYTHON -m emberharmony backend torch",
        shell=True,
        says=r"backend set torch",
    ),
    Mistake(
        "TensorFlow as a backend", 2, "ops.set_backend('tensorflow')", says=r"ops\.set_backend\('torch'\) or 'jax'"
    ),
    Mistake("the names of the backends", 2, "ops.list_backends()", says=r"use ops\.available_backends\(\)"),
    Mistake("the number of batches", 2, f"{BATCHES}batches.num_batches", says=r"len\(batches\)"),
    Mistake(
        "a gradient rule without the result",
        2,
        "import emberharmony\nfrom emberharmony import ops\n"
        "@emberharmony.register_op\ndef doubled(x: emberharmony.TensorLike):\n    return ops.multiply(x, 2.0)\n"
        "emberharmony.register_vjp(doubled)(lambda g, x: (2.0 * g,))",
        fresh=True,
        says=r"rule\(g, y, x\)",
    ),
]

ADVICE = [
    Mistake(
        "cross-entropy of one output",
        2,
        f"{ONE}nn.losses.cross_entropy(net(x), y)",
        says=r"one class is always 0: give the last layer one for each class, at least 2, or use nn\.losses\.binary_",
    ),
    Mistake(
        "labels as a column beside one output",
        2,
        f"{ONE}nn.losses.cross_entropy(net(x), ops.cast(y, 'int64'))",
        says=r"input has one class and must have one for each, at least 2; ids are ops\.squeeze\(target, 1\)",
    ),
    Mistake(
        "two weights that are plain tensors",
        2,
        "class Line(nn.Module):\n    def __init__(self): self.w, self.b = ops.ones((2, 1)), ops.zeros(1)\n"
        "optim.SGD(Line(), lr=0.1)",
        says=r"Line\.w and Line\.b are tensors: make each an nn\.Parameter",
    ),
    Mistake(
        "a model from a file alone",
        2,
        f"{NET}io.save(net, 'm.safetensors')\nio.load_model('m.safetensors')",
        says=r"a file has no architecture: make the model first, then io\.load_model\(model, path\)",
    ),
    Mistake(
        "a class in the place of the model",
        2,
        f"{NET}io.save(net, 'm.safetensors')\nio.load_model(nn.Sequential, 'm.safetensors')",
        says=r"make a model of the class first, Sequential\(\.\.\.\)",
    ),
    Mistake(
        "weights of a smaller model",
        2,
        f"{NET}net.load_state_dict(nn.Sequential(nn.Linear(2, 9), nn.ReLU(), nn.Linear(9, 2)).state_dict())",
        says=r"make the model with the sizes of these tensors; or, to load the rest, leave these out",
    ),
    Mistake(
        "a loss of predictions in fit",
        2,
        f"{ONE}nn.fit(net, nn.losses.mse, optim.Adam(net), {TRAIN}",
        says=r"pass lambda x, y: nn\.losses\.mse\(model\(x\), y\)",
    ),
    Mistake(
        "a layer of a loss in fit",
        2,
        f"{ONE}nn.fit(net, nn.losses.MSELoss(), optim.Adam(net), {TRAIN}",
        says=r"pass lambda x, y: loss_fn\(model\(x\), y\)",
    ),
    Mistake(
        "one feature without an axis",
        2,
        "nn.Linear(1, 4)(ops.ones(20))",
        says=r"give each number a row of its own: ops\.expand_dims\(x, -1\)",
    ),
    Mistake(
        "view of PyTorch on MLX",
        2,
        "ops.ones((5, 2, 2)).view(5, -1)",
        backend="mlx",
        says=r"use ops\.reshape\(x, shape\)",
    ),
    Mistake(
        "a variable set late in a notebook",
        2,
        "import os, warnings\nfrom emberharmony import ops\nops.ones(2)\nos.environ['EMBERHARMONY_BACKEND'] = 'torch'\n"
        "with warnings.catch_warnings(record=True) as told:\n    warnings.simplefilter('always')\n"
        "    ops.get_backend()\nprint([str(warning.message) for warning in told])",
        fresh=True,
        environment={"EMBERHARMONY_BACKEND": "numpy"},
        says=r"\[\"EMBERHARMONY_BACKEND was set to 'torch' after .* had no effect: set it before that, or call",
    ),
]

MISTAKES = [*NAMES, *SHAPES, *TRAINING, *VALUES, *PLACES, *ADVICE]
