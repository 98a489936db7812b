"""Kills or stops a rank at random, again and again: `python trials.py torch 100` prints a line of JSON for each trial.

The libraries are imported once, and each trial forks the ranks, which takes a tenth of a second instead of some.
"""

import json
import os
import random
import signal
import sys
import tempfile
import time
from typing import Any

from emberharmony import ops
from emberharmony.distributed import board
from emberharmony.distributed.launching.run import _free_ports as free_ports

D = ops.distributed
SIZE, CALLS, TIMEOUT = 3, 12, 2.0
if sys.argv[1] == "torch":
    import torch.distributed  # noqa: F401  (before the ranks are forked)


def rank_program(rank: int, seed: int, report: int) -> None:
    """Makes calls until one fails, and reports the error."""
    dice = random.Random(seed)
    victim, at, how = dice.randrange(SIZE), dice.randrange(CALLS), dice.choice(["kill", "stop", "sleep"])
    moment, is_late = dice.random() * 0.01, dice.random() < 0.5
    found: dict[str, Any] = {"rank": rank, "error": ""}
    try:
        D.init(sys.argv[1], timeout=TIMEOUT if how != "kill" else 20.0)
        for i in range(CALLS):
            if rank == victim and i == at:
                if how == "sleep":
                    time.sleep(60)
                number = signal.SIGKILL if how == "kill" else signal.SIGSTOP
                if not is_late:
                    os.kill(os.getpid(), number)
                else:  # a little later, perhaps in the middle of the call
                    process = os.getpid()
                    if not os.fork():
                        time.sleep(moment)
                        os.kill(process, number)
                        os._exit(0)
            length = dice.choice([1, 1000, 300_000])
            dice.choice([D.all_sum, D.all_mean, D.all_gather, D.broadcast])(ops.ones((length,)))
        found["error"] = "none"
        time.sleep(0.1)  # the victim may be hit after its last call
    except D.DistributedError as error:
        found |= {"error": type(error).__name__, "ranks": list(error.ranks), "call": error.call, "text": str(error)}
    except BaseException as error:  # noqa: BLE001  (the report must be written)
        found["error"] = repr(error)
    os.write(report, (json.dumps(found) + "\n").encode())
    os._exit(0)


def trial(seed: int) -> dict[str, Any]:
    """Returns what the ranks of one trial reported."""
    dice = random.Random(seed)
    victim, _, how = dice.randrange(SIZE), dice.randrange(CALLS), dice.choice(["kill", "stop", "sleep"])
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "board")
        board.make(path, SIZE)
        port, *ring = free_ports(1 + SIZE)
        hosts = os.path.join(folder, "ring.json")
        with open(hosts, "w", encoding="utf-8") as file:
            json.dump([[f"127.0.0.1:{each}"] for each in ring], file)
        os.environ |= {"WORLD_SIZE": str(SIZE), "LOCAL_WORLD_SIZE": str(SIZE), "EMBERHARMONY_BOARD": path}
        os.environ |= {"MASTER_ADDR": "127.0.0.1", "MASTER_PORT": str(port), "MLX_HOSTFILE": hosts}
        began, (reading, writing) = time.monotonic(), os.pipe()
        processes = []
        for rank in range(SIZE):
            process = os.fork()
            if not process:
                os.environ |= {"RANK": str(rank), "LOCAL_RANK": str(rank), "MLX_RANK": str(rank)}
                rank_program(rank, seed, writing)
            processes.append(process)
        os.close(writing)
        for rank, process in enumerate(processes):
            if rank != victim:
                os.waitpid(process, 0)
        seconds = time.monotonic() - began
        with open(reading, encoding="utf-8") as file:
            for process in (processes[victim],):
                os.kill(process, signal.SIGKILL)
                os.waitpid(process, 0)
            reports = [json.loads(line) for line in file]
    return {"seed": seed, "victim": victim, "how": how, "seconds": round(seconds, 2), "reports": reports}


if __name__ == "__main__":
    for seed in range(int(sys.argv[2])):
        sys.stdout.write(json.dumps(trial(seed)) + "\n")
        sys.stdout.flush()
