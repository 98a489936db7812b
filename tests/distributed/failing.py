"""A run in which rank 1 fails as its argument says; each rank prints its process."""

import os
import signal
import sys
import time

from emberharmony import ops

D = ops.distributed
world = D.init(timeout=8.0)
os.write(1, f"{os.getpid()}\n".encode())
for _ in range(3):
    D.all_sum(ops.ones((1000,)))
if world.rank == 1:
    if sys.argv[1] == "kill":
        os.kill(os.getpid(), signal.SIGKILL)
    if sys.argv[1] == "stop":
        os.kill(os.getpid(), signal.SIGSTOP)
    if sys.argv[1] == "sleep":
        time.sleep(60)
    if sys.argv[1] == "raise":
        raise ValueError("rank 1 fails alone")
D.all_mean(ops.ones((1000,)))
