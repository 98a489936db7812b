"""Mistakes of a training loop."""

from tests.first_hour.mistake import Mistake

START = (
    "net = nn.Linear(2, 1, rng=ops.random.Generator(0))\n"
    "x, y = ops.ones((4, 2)), ops.ones((4, 1))\n"
    "optimizer = optim.SGD(net, lr=0.1)\n"
    "def loss(): return nn.losses.mse(net(x), y)\n"
)

MISTAKES = [
    Mistake(
        "loss.backward()",
        2,
        f"{START}value = loss()\nvalue.backward()",
        backend="torch",
        needs=("torch",),
        says=r"use ops\.backward\(lambda",
    ),
    Mistake(
        "step before any backward",
        2,
        f"{START}loss()\noptimizer.step()",
        says=r"no parameter has a gradient: call ops\.backward",
    ),
    Mistake(
        "no step in the loop",
        2,
        f"{START}for _ in range(50): value = ops.backward(loss, net)",
        says=r"call optimizer\.step\(\) after it",
    ),
    Mistake(
        "gradients that nothing clears",
        2,
        f"{START}for _ in range(50):\n    value = ops.backward(loss, net)\n    optimizer.step(clear=False)",
        says=r"ops\.zero_grad\(model\)",
    ),
    Mistake(
        "the loss itself in the place of a function",
        2,
        f"{START}ops.backward(loss(), net)",
        says=r"ops\.backward\(lambda: loss_fn",
    ),
    Mistake(
        "a number of Python inside of the loss",
        0,
        "ops.grad(lambda x: ops.multiply(float(x), x))(ops.array(3.0))",
        backend="mlx",
        needs=("mlx",),
        says=r"array\(3",
    ),
    Mistake(
        "a loss by NumPy",
        2,
        f"{START}ops.backward(lambda: np.mean(np.square(np.asarray(net(x)) - np.asarray(y))), net)",
        says=r"use the functions of ops",
    ),
    Mistake("the learning rate of Keras", 2, f"{START}optim.Adam(net, learning_rate=1e-3)", says=r"use lr="),
    Mistake(
        "an optimizer of the state dict",
        2,
        f"{START}optim.Adam(net.state_dict(), lr=1e-3)",
        says=r"a state dict has tensors: pass the model",
    ),
    Mistake("fit of Keras", 2, f"{START}net.fit(x, y, epochs=3)", says=r"use nn\.fit\(model"),
]
