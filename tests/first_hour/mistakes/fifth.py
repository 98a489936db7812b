"""Six mistakes of twenty that somebody wrote who had read the docs alone: the other fourteen were there already."""

from tests.first_hour.mistake import Mistake

NET = "net = nn.Sequential(nn.Linear(4, 8), nn.ReLU(), nn.Linear(8, 2))\n"

MISTAKES = [
    Mistake(
        "the device of a model by position, as in PyTorch",
        2,
        f"{NET}net = net.to('cuda')",
        says=r"pass options by name: to\(dtype=..., device=",
    ),
    Mistake(
        "the name of the backend by ops.backend()",
        2,
        "import os\nprint(type(ops.ones(3)))\n"
        "os.environ['EMBERHARMONY_BACKEND'] = 'torch' if ops.backend() == 'numpy' else 'numpy'\n"
        "print(type(ops.ones(3)))",
        says=r"use ops\.get_backend\(\)",
    ),
    Mistake(
        "the gradient of a parameter before any backward",
        2,
        "w = nn.Parameter(ops.zeros(2))\nx, y = ops.array([[1.0, 2.0], [3.0, 4.0]]), ops.array([1.0, 2.0])\n"
        "loss = ops.mean((x @ w - y) ** 2)\nw = w - 0.1 * w.grad",
        says=r"grad is None until ops\.backward",
    ),
    Mistake(
        "features near 1000 in a loop of one's own, until the loss is NaN",
        0,
        "x = ops.convert_to_tensor((np.random.default_rng(0).random((50, 3)) * 1000).astype('float32'))\n"
        "net, y = nn.Linear(3, 1), ops.sum(x, axis=1, keepdims=True)\noptimizer = optim.SGD(net, lr=0.1)\n"
        "for step in range(30):\n"
        "    loss = ops.backward(lambda: nn.losses.mse(net(x), y), net)\n    optimizer.step()\n"
        "print(loss)",
    ),
    Mistake(
        "compile of Keras",
        2,
        f"{NET}net.compile(optimizer='adam', loss='sparse_categorical_crossentropy', metrics=['accuracy'])",
        says=r"pass loss and optimizer to nn\.fit",
    ),
    Mistake(
        "view as a method, for flat rows",
        2,
        "x = ops.ones((16, 8, 4, 4))\nx = x.view(x.shape[0], -1)\nprint(nn.Linear(128, 10)(x).shape)",
        says=r"ops\.reshape\(x, \(x\.shape\[0\], -1\)\)",
    ),
]
