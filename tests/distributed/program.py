"""What the ranks of `test_processes.py` run: it prints the results of all collectives as JSON."""

import json
import os
import sys

from emberharmony import TensorSpec, ops

D = ops.distributed


def main() -> None:
    world = D.init(timeout=60)
    backends = sys.argv[1].split(",")
    ops.set_backend(backends[world.rank % len(backends)])
    x = ops.add(ops.divide(ops.arange(7, dtype="float32"), 7.0), float(world.rank))
    found = {
        "sum": D.all_sum({"x": x, "n": ops.array(world.rank)}, bucket_bytes=8),
        "ordered": D.all_mean([x], deterministic=True),
        "gather": D.all_gather(x),
        "part": D.reduce_scatter(ops.arange(2 * world.size, dtype="float64")),
        "root": D.broadcast([x, ops.array([True, False])], world.size - 1),
        "gradient": ops.grad(lambda v: ops.sum(ops.square(D.all_sum(v))))(x),
    }
    if world.rank == 0:
        D.send(x, 1)
    if world.rank == 1:
        found["sent"] = D.recv(TensorSpec((7,)), 0)
    D.barrier()
    with ops.checked():
        D.barrier()
        try:
            D.all_sum(x if world.rank else x[:3])
        except D.DistributedError as error:
            found["differing"] = list(error.ranks)
    plain = ops.tree_map(lambda leaf: leaf.tolist() if hasattr(leaf, "tolist") else leaf, found)
    # One write, so that the lines of ranks without a launcher of ours do not mix.
    os.write(1, (json.dumps({"rank": world.rank, "backend": ops.get_backend(), **plain}) + "\n").encode())


main()
