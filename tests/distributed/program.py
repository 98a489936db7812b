"""What the ranks of `test_processes.py` run: it writes the results of all collectives into a folder, as JSON."""

import json
import os
import sys
from pathlib import Path
from typing import Any

from emberharmony import TensorSpec, ops
from tests.distributed import gradients

D = ops.distributed


def differing(world: Any) -> dict[str, Any]:
    """Returns, by what rank 1 does otherwise, the ranks and the text of the error in checked mode."""
    odd = world.rank == 1
    found = {}
    for what, call in {
        "shape": lambda: D.all_sum({"w": ops.ones((3,) if odd else (2,))}),
        "dtype": lambda: D.all_gather([ops.ones((2,), "int32" if odd else "float32")]),
        "order": lambda: [D.broadcast(ops.ones(2)) if odd else D.all_sum(ops.ones(2)), D.barrier()],
        "left out": lambda: [D.all_mean(ops.ones(2)) if not odd else None, D.barrier()],
    }.items():
        try:
            with ops.checked():
                call()
        except D.DistributedError as error:
            found[what] = [list(error.ranks), str(error)]
    return found


def main() -> None:
    """Makes all calls, and writes what came."""
    world = D.init(timeout=120)
    backends = sys.argv[1].split(",")
    ops.set_backend(backends[world.rank % len(backends)])
    x = ops.add(ops.divide(ops.arange(7, dtype="float32"), 7.0), float(world.rank))
    found = {
        "sum": D.all_sum({"x": x, "n": ops.array(world.rank)}, bucket_bytes=8),
        "precise": D.all_sum(ops.divide(ops.add(ops.arange(3, dtype="float64"), world.rank), 3.0)),
        "ordered": D.all_mean([x], deterministic=True),
        "gather": D.all_gather(x),
        "part": D.reduce_scatter(ops.arange(2 * world.size, dtype="float64")),
        "root": D.broadcast([x, ops.array([True, False])], world.size - 1),
        "gradients": gradients.of_rank(world.rank, world.size),
    }
    if world.rank == 0:
        D.send(x, 1)
    if world.rank == 1:
        found["sent"] = D.recv(TensorSpec((7,)), 0)
    D.barrier()
    found["differing"] = differing(world)
    plain = ops.tree_map(lambda leaf: leaf.tolist() if hasattr(leaf, "tolist") else leaf, found)
    Path(sys.argv[2], f"{world.rank}.json").write_text(json.dumps({"backend": ops.get_backend(), **plain}))
    os.write(1, f"rank {world.rank} is ready\n".encode())


main()
