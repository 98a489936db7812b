"""What the ranks of `trials.py` run: one of them fails in a way and at a moment that all know by the seed."""

import json
import os
import random
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any, NamedTuple

from emberharmony import ops

D = ops.distributed
CALLS = 12


class Plan(NamedTuple):
    """Which rank fails in a trial, before which of its calls, how, and after how many seconds."""

    victim: int
    at: int
    how: str
    delay: float


def plan(seed: int, size: int, how: str = "") -> Plan:
    """Returns what happens in a trial; some victims are hit later, perhaps in the middle of the call."""
    dice = random.Random(seed)
    return Plan(
        dice.randrange(size),
        dice.randrange(CALLS),
        how or dice.choice(["kill", "stop", "sleep"]),
        dice.choice([0.0, dice.random() * 0.01]),
    )


def report(**found: Any) -> None:
    """Writes what this rank knows as one line."""
    os.write(1, (json.dumps({"rank": D.rank(), "time": time.monotonic(), **found}) + "\n").encode())


def fail(how: str, delay: float) -> None:
    """Fails; the process itself, or a child of it a little later."""
    report(hit=how)
    if how == "raise":
        raise ValueError("a rank fails alone")
    if how == "end":
        sys.exit(0)
    if how == "sleep":
        time.sleep(600)
    number, process = signal.SIGKILL if how == "kill" else signal.SIGSTOP, os.getpid()
    if not delay:
        os.kill(process, number)
    elif not os.fork():
        time.sleep(delay)
        os.kill(process, number)
        os._exit(0)


def main() -> None:
    """Makes calls until one fails, and reports the error."""
    folder, seed, timeout, how = Path(sys.argv[1]), int(sys.argv[2]), float(sys.argv[3]), sys.argv[4]
    # The ranks start at the same time, so that the time-out can be short.
    (folder / f"ready-{os.getpid()}").touch()
    size = int(os.environ["EMBERHARMONY_TRIAL_RANKS"])
    while len(list(folder.glob("ready-*"))) < size:
        time.sleep(0.01)
    world = D.init(timeout=timeout)
    child = subprocess.Popen(["sleep", "600"])  # the launcher has to end it too
    report(groups=[os.getpgid(os.getppid()), os.getpgrp(), os.getpgid(child.pid)])
    happens, dice = plan(seed, size, how), random.Random(seed)
    try:
        for i in range(1000):
            if world.rank == happens.victim and i == happens.at:
                fail(happens.how, happens.delay)
            call = dice.choice([D.all_sum, D.all_mean, D.all_gather, D.broadcast])
            call(ops.ones((dice.choice([1, 1000, 300_000]),)))
    except D.DistributedError as error:
        report(error=type(error).__name__, ranks=list(error.ranks), call=error.call, text=str(error))
        raise


if __name__ == "__main__":
    main()
