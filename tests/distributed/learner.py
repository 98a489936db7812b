"""A training for ranks that are processes, threads or one process alone; as a program it writes its weights."""

import json
import os
import sys
from pathlib import Path
from typing import Any

import numpy as np

from emberharmony import nn, ops, optim

X = np.random.default_rng(0).normal(size=(24, 5)).astype(np.float32)
Y = (X[:, :1] - 2 * X[:, 1:2]).astype(np.float32)
STEPS = 5


def model(seed: int = 0) -> nn.Module:
    """Returns the model."""
    rng = ops.random.Generator(seed)
    return nn.Sequential(nn.Linear(5, 8, rng=rng), nn.Tanh(), nn.Linear(8, 1, rng=rng))


def batches(**options: Any) -> nn.data.Batches:
    """Returns the batches of 12 rows."""
    return nn.data.batches(X, Y, batch_size=12, rng=ops.random.Generator(3), **options)


def loss_of(net: Any, x: Any, y: Any) -> Any:
    """Returns the loss."""
    return ops.mean(ops.square(net(x) - y))


def trained(net: Any, optimizer: Any, data: Any, steps: int, synchronize: Any = lambda loss: loss) -> list[float]:
    """Makes steps, and returns their losses."""
    losses, source = [], data.forever()
    for _ in range(steps):
        x, y = next(source)
        losses.append(float(synchronize(ops.backward(lambda x=x, y=y: loss_of(net, x, y), net))))
        optimizer.step()
    return losses


def host(net: Any) -> dict[str, Any]:
    """Returns the weights as arrays."""
    return {name: np.array(x) for name, x in net.state_dict(host=True).items()}


def in_parts(net: Any, optimizer: Any, data: Any, parts: int, size: int) -> None:
    """Makes 4 steps; a batch has 4 parts on all ranks together, whose gradients are added in the order of a tree."""
    source = data.forever()
    for _ in range(4):
        x, y = next(source)
        found: list[Any] = []
        for i in range(parts):
            rows = slice(i * (len(x) // parts), (i + 1) * (len(x) // parts))
            ops.zero_grad(net)
            part = ops.copy(x[rows]), ops.copy(y[rows])  # as on a rank; views are differently placed in memory
            ops.backward(lambda part=part: loss_of(net, *part), net)
            found.append({cell: cell.grad for cell in net.parameters()})
        while len(found) > 1:
            found = [{c: ops.add(a[c], b[c]) for c in a} for a, b in zip(found[::2], found[1::2], strict=True)]
        if size > 1:
            for cell, gradient in found[0].items():
                cell.grad = gradient
            net.synchronize()
            found = [{cell: cell.grad for cell in net.parameters()}]
        optimizer.step({cell: ops.divide(gradient, float(parts)) for cell, gradient in found[0].items()})


def bits(world: Any) -> dict[str, str]:
    """Returns the bits of the weights after steps in parts; `world` is None for a process that uses no ranks."""
    size = 1 if world is None else world.size
    net: Any = model() if world is None else nn.DataParallel(model(), deterministic=True)
    data = batches() if world is None else batches(shard=True)
    in_parts(net, optim.AdamW(net, lr=0.05), data, 4 // size, size)
    return {name: x.tobytes().hex() for name, x in host(net).items()}


def main() -> None:
    """Trains on this rank, in the usual way, with a sharded optimizer, and, if 4 divides by the ranks, in parts."""
    world = ops.distributed.init(timeout=120)
    backends = sys.argv[1].split(",")
    ops.set_backend(backends[world.rank % len(backends)])
    found: dict[str, Any] = {}
    for kind in ("whole", "sharded"):
        net = nn.DataParallel(model(seed=world.rank))  # it takes the weights of rank 0
        optimizer: Any = optim.AdamW(net, lr=0.05)
        optimizer = optim.Sharded(optimizer) if kind == "sharded" else optimizer
        losses = trained(net, optimizer, batches(shard=True), STEPS, net.synchronize)
        found[kind] = {"losses": losses, **{name: x.tolist() for name, x in host(net).items()}}
    found["bits"] = bits(world) if not 4 % world.size else {}
    Path(sys.argv[2], f"{world.rank}.json").write_text(json.dumps(found))
    os.write(1, f"rank {world.rank} is ready\n".encode())


if __name__ == "__main__":
    main()
