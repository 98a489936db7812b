"""Several processes that train or compute together: one set of collectives over gloo, NCCL, MLX and MPI.

`ops.distributed` is this module; it is loaded on first use. `docs/distributed.md` is the guide.
"""

from emberharmony.core.errors import DistributedError as DistributedError
from emberharmony.distributed.collectives import all_gather as all_gather
from emberharmony.distributed.collectives import all_mean as all_mean
from emberharmony.distributed.collectives import all_sum as all_sum
from emberharmony.distributed.collectives import barrier as barrier
from emberharmony.distributed.collectives import broadcast as broadcast
from emberharmony.distributed.collectives import recv as recv
from emberharmony.distributed.collectives import reduce_scatter as reduce_scatter
from emberharmony.distributed.collectives import send as send
from emberharmony.distributed.world import World as World
from emberharmony.distributed.world import init as init
from emberharmony.distributed.world import rank as rank
from emberharmony.distributed.world import size as size

__all__ = [
    *("init", "rank", "size", "World", "DistributedError"),
    *("all_sum", "all_mean", "all_gather", "reduce_scatter", "broadcast", "send", "recv", "barrier"),
]
