"""The training steps that `benchmarks/nn.py` measures: ours, and the same in `torch.nn` and `mlx.nn`."""

import importlib
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
from pairs import Call, installed_backends, library

from emberharmony import nn, ops, optim

WIDTH, HEADS, TOKENS, BATCH = 256, 8, 64, 4
"""The sizes of the transformer block."""

Step = Callable[[], Any]


def mlp_data() -> tuple[Any, Any]:
    """Returns a batch of 32 inputs and labels."""
    rng = np.random.default_rng(0)
    return rng.standard_normal((32, 64)).astype(np.float32), rng.integers(0, 10, 32)


def block_data() -> tuple[Any, Any]:
    """Returns inputs and targets of the block."""
    rng = np.random.default_rng(0)
    shape = (BATCH, TOKENS, WIDTH)
    return tuple(rng.standard_normal(shape).astype(np.float32) for _ in range(2))  # type: ignore[return-value]


def our_mlp() -> Step:
    """Returns a training step of an MLP 64-128-10 with AdamW, on the active backend."""
    x, y = (ops.convert_to_tensor(array) for array in mlp_data())
    net = nn.Sequential(nn.Linear(64, 128), nn.ReLU(), nn.Linear(128, 10))
    optimizer = optim.AdamW(net)

    def step() -> Any:
        loss = ops.backward(lambda: nn.losses.cross_entropy(net(x), y), net)
        optimizer.step()
        ops.eval(loss)
        return loss

    return step


class OurBlock(nn.Module):
    """A transformer block with the norms first."""

    def __init__(self) -> None:
        self.norm1, self.norm2 = nn.LayerNorm(WIDTH), nn.LayerNorm(WIDTH)
        self.attention = nn.MultiheadAttention(WIDTH, HEADS, batch_first=True)
        self.network = nn.Sequential(nn.Linear(WIDTH, 4 * WIDTH), nn.GELU(), nn.Linear(4 * WIDTH, WIDTH))

    def __call__(self, x: Any) -> Any:
        """Returns a tensor of the shape of x."""
        h = self.norm1(x)
        x = ops.add(x, self.attention(h, h, h, need_weights=False)[0])
        return ops.add(x, self.network(self.norm2(x)))


def our_block() -> Step:
    """Returns a training step of a transformer block with AdamW, on the active backend."""
    x, y = (ops.convert_to_tensor(array) for array in block_data())
    net = OurBlock()
    optimizer = optim.AdamW(net)

    def step() -> Any:
        loss = ops.backward(lambda: nn.losses.mse(net(x), y), net)
        optimizer.step()
        ops.eval(loss)
        return loss

    return step


def torch_step(net: Any, x: Any, y: Any, loss_fn: Callable[[Any, Any], Any]) -> Step:
    """Returns a training step of a module of PyTorch with AdamW."""
    optimizer = library("torch").optim.AdamW(net.parameters(), foreach=True)

    def step() -> Any:
        loss = loss_fn(net(x), y)
        loss.backward()
        optimizer.step()
        optimizer.zero_grad()
        return loss

    return step


def torch_mlp() -> Step:
    """Returns the step of the MLP in `torch.nn`."""
    torch = library("torch")
    x, y = (torch.tensor(array) for array in mlp_data())
    net = torch.nn.Sequential(torch.nn.Linear(64, 128), torch.nn.ReLU(), torch.nn.Linear(128, 10))
    return torch_step(net, x, y, torch.nn.functional.cross_entropy)


def torch_block() -> Step:
    """Returns the step of the block in `torch.nn`."""
    torch = library("torch")
    x, y = (torch.tensor(array) for array in block_data())
    net = torch.nn.TransformerEncoderLayer(
        WIDTH, HEADS, 4 * WIDTH, dropout=0.0, activation="gelu", batch_first=True, norm_first=True
    )
    return torch_step(net, x, y, torch.nn.functional.mse_loss)


def mlx_step(net: Any, x: Any, y: Any, loss_fn: Callable[[Any, Any], Any]) -> Step:
    """Returns a training step of a module of MLX with AdamW."""
    mx, mlx_nn, mlx_optimizers = (
        library("mlx"),
        importlib.import_module("mlx.nn"),
        importlib.import_module("mlx.optimizers"),
    )
    optimizer = mlx_optimizers.AdamW(1e-3, bias_correction=True)
    compute = mlx_nn.value_and_grad(net, lambda x, y: loss_fn(net(x), y))

    def step() -> Any:
        loss, gradients = compute(x, y)
        optimizer.update(net, gradients)
        mx.eval(net.parameters(), optimizer.state, loss)
        return loss

    return step


def mlx_mlp() -> Step:
    """Returns the step of the MLP in `mlx.nn`."""
    mx, mlx_nn = library("mlx"), importlib.import_module("mlx.nn")
    x, y = (mx.array(array) for array in mlp_data())
    net = mlx_nn.Sequential(mlx_nn.Linear(64, 128), mlx_nn.ReLU(), mlx_nn.Linear(128, 10))
    return mlx_step(net, x, y, lambda z, y: mlx_nn.losses.cross_entropy(z, y, reduction="mean"))


def mlx_block() -> Step:
    """Returns the step of the block in `mlx.nn`."""
    mx, mlx_nn = library("mlx"), importlib.import_module("mlx.nn")
    x, y = (mx.array(array) for array in block_data())
    net = mlx_nn.TransformerEncoderLayer(WIDTH, HEADS, 4 * WIDTH, dropout=0.0, activation=mlx_nn.gelu, norm_first=True)
    return mlx_step(_Masked(net), x, y, lambda z, y: mlx_nn.losses.mse_loss(z, y, reduction="mean"))


def _Masked(net: Any) -> Any:
    mlx_nn = importlib.import_module("mlx.nn")

    class Masked(mlx_nn.Module):  # type: ignore[misc, name-defined]
        def __init__(self) -> None:
            super().__init__()
            self.inner = net

        def __call__(self, x: Any) -> Any:
            return self.inner(x, None)

    return Masked()


def numpy_mlp() -> Step:
    """Returns the step of the MLP by hand in NumPy, with all parameters in one vector and all gradients in another."""
    x, y = mlp_data()
    rng = np.random.default_rng(0)
    shapes = [(128, 64), (128,), (10, 128), (10,)]
    ends = np.cumsum([0, *map(np.prod, shapes)])
    values, gradients = (np.empty(ends[-1], np.float32) for _ in range(2))
    values[:] = rng.uniform(-0.1, 0.1, values.size)
    mean, square, change, root = (np.zeros_like(values) for _ in range(4))
    (w1, b1, w2, b2), (g1, c1, g2, c2) = (
        [vector[a:b].reshape(shape) for a, b, shape in zip(ends[:-1], ends[1:], shapes, strict=True)]
        for vector in (values, gradients)
    )
    rows, count = np.arange(len(y)), 0

    def step() -> Any:
        nonlocal count
        hidden = x @ w1.T
        hidden += b1
        np.maximum(hidden, 0, out=hidden)
        shares = hidden @ w2.T
        shares += b2
        shares -= shares.max(axis=1, keepdims=True)
        target_scores = shares[rows, y]
        np.exp(shares, out=shares)
        sums = shares.sum(axis=1, keepdims=True)
        loss = (np.log(sums[:, 0]) - target_scores).mean()
        shares /= sums
        shares[rows, y] -= 1
        shares /= len(y)
        np.matmul(shares.T, hidden, out=g2)
        shares.sum(axis=0, out=c2)
        hidden_gradient = shares @ w2
        hidden_gradient *= hidden > 0
        np.matmul(hidden_gradient.T, x, out=g1)
        hidden_gradient.sum(axis=0, out=c1)
        count += 1
        np.subtract(gradients, mean, out=change)
        np.multiply(change, np.float32(0.1), out=change)
        np.add(mean, change, out=mean)
        np.multiply(square, np.float32(0.999), out=square)
        np.multiply(gradients, gradients, out=change)
        np.multiply(change, np.float32(0.001), out=change)
        np.add(square, change, out=square)
        np.sqrt(square, out=root)
        np.multiply(root, np.float32((1 - 0.999**count) ** -0.5), out=root)
        np.add(root, np.float32(1e-8), out=root)
        np.divide(mean, root, out=root)
        np.multiply(root, np.float32(1e-3 / (1 - 0.9**count)), out=root)
        np.multiply(values, np.float32(1 - 1e-3 * 0.01), out=values)
        np.subtract(values, root, out=values)
        return loss

    return step


def torch_lstm() -> Step:
    """Returns the forward and backward pass of `torch.nn.LSTM` over 50 steps."""
    torch = library("torch")
    net = torch.nn.LSTM(64, 64)
    x = torch.randn(50, 8, 64)

    def step() -> Any:
        net.zero_grad()
        loss = net(x)[0].sum()
        loss.backward()
        return loss

    return step


def our_lstm() -> Step:
    """Returns the same of our LSTM, on the active backend."""
    net = nn.LSTM(64, 64)
    x = ops.random.normal((50, 8, 64))
    cells = net.parameters()

    def step() -> Any:
        ops.zero_grad(net)
        loss = ops.backward(lambda: ops.sum(net(x)[0]), net)
        ops.eval(loss, [cell.grad for cell in cells])
        return loss

    return step


def training_rows(backend: str) -> Iterator[tuple[str, Call, Call]]:
    """Yields the title, the native call and ours of each training step on a backend."""
    if installed_backends(["torch"]):
        yield "step of an MLP 64-128-10, torch", torch_mlp(), our_mlp()
        if backend == "numpy":
            yield "the same by hand in NumPy, torch", torch_mlp(), numpy_mlp()
            yield "the same compiled, torch", torch_mlp(), ops.compile(our_mlp())
        yield "step of a transformer block, torch", torch_block(), our_block()
        yield "LSTM 50 x 8 x 64, torch", torch_lstm(), our_lstm()
    if backend == "mlx":
        yield "step of an MLP 64-128-10, mlx", mlx_mlp(), our_mlp()
        yield "step of a transformer block, mlx", mlx_block(), our_block()
