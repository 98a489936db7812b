"""Reads the environment variables of launchers: the rank of this process, the number of ranks, the first address."""

import json
import os
import re
import zlib
from collections.abc import Mapping
from typing import NamedTuple

from emberharmony.core.errors import DistributedError, brief

BOARD = "EMBERHARMONY_BOARD"
"""The environment variable with the path of the board's file, which `emberharmony launch` creates."""

TRANSPORT = "EMBERHARMONY_TRANSPORT"
"""The environment variable with the transport for `init(transport="auto")`."""

MPI_RANKS = ("OMPI_COMM_WORLD_RANK", "PMI_RANK", "MV2_COMM_WORLD_RANK")
"""The variables by which an MPI launcher tells the rank."""

_NAMES = (
    ("RANK", "WORLD_SIZE", "LOCAL_RANK", "LOCAL_WORLD_SIZE"),
    (MPI_RANKS[0], "OMPI_COMM_WORLD_SIZE", "OMPI_COMM_WORLD_LOCAL_RANK", "OMPI_COMM_WORLD_LOCAL_SIZE"),
    (MPI_RANKS[1], "PMI_SIZE", "MPI_LOCALRANKID", "MPI_LOCALNRANKS"),
    (MPI_RANKS[2], "MV2_COMM_WORLD_SIZE", "MV2_COMM_WORLD_LOCAL_RANK", "MV2_COMM_WORLD_LOCAL_SIZE"),
    ("SLURM_PROCID", "SLURM_STEP_NUM_TASKS", "SLURM_LOCALID", "SLURM_STEP_TASKS_PER_NODE"),
)
"""The variables of torchrun and `emberharmony launch`, of Open MPI, MPICH and Intel, MVAPICH, and Slurm.

`SLURM_STEP_NUM_TASKS` is set by `srun` only. `SLURM_NTASKS` is also set in a batch script, which runs once.
"""

RANKS = (*(names[0] for names in _NAMES), "MLX_RANK")
"""The variables that say the rank."""

PORT = 29500
"""The port that PyTorch and we take if nothing says another."""

_JOBS = ("PMIX_NAMESPACE", "PMI_JOBID", "SLURM_JOB_ID", "SLURM_STEP_ID")


class Place(NamedTuple):
    """The rank of this process, the number of ranks in all and on this machine, and the address of the first rank.

    Attributes:
        rank: its number, from 0 on.
        size: how many processes there are.
        local_rank: its number among those on this machine.
        local_size: how many are on this machine; 0 if this is unknown.
        address: the machine of rank 0; empty if it is unknown.
        port: a port on that machine, the same one for all ranks.
    """

    rank: int = 0
    size: int = 1
    local_rank: int = 0
    local_size: int = 1
    address: str = "127.0.0.1"
    port: int = PORT

    @property
    def is_local(self) -> bool:
        """Whether all processes are on this machine."""
        return self.local_size == self.size


def process_place(environ: Mapping[str, str] | None = None) -> Place:
    """Returns rank, size and addresses of this process from the variables of torchrun, MPI, Slurm or MLX.

    Raises:
        DistributedError: if a variable has no number, or the rank is not below the size.
    """
    variables = os.environ if environ is None else environ
    for rank_name, size_name, local_rank_name, local_size_name in _NAMES:
        if rank_name in variables and size_name in variables:
            local_process_count = (
                0 if local_size_name.startswith("SLURM") else integer_variable(variables, local_size_name, 0)
            )
            tasks_per_node = variables.get(local_size_name, "") if local_size_name.startswith("SLURM") else ""
            process_count = integer_variable(variables, size_name, 1)
            if tasks_per_node == str(process_count):
                local_process_count = process_count
            return _valid_place(
                Place(
                    integer_variable(variables, rank_name, 0),
                    process_count,
                    integer_variable(variables, local_rank_name, 0),
                    local_process_count,
                    _address(variables, local_process_count == process_count),
                    _port(variables),
                )
            )
    if "MLX_RANK" in variables and "MLX_HOSTFILE" in variables:
        with open(variables["MLX_HOSTFILE"], encoding="utf-8") as file:
            host_addresses = [addresses[0] for addresses in json.load(file)]
        host_names = [host.rpartition(":")[0] for host in host_addresses]
        own_rank = integer_variable(variables, "MLX_RANK", 0)
        same_host_count = host_names.count(host_names[own_rank]) if own_rank < len(host_names) else 0
        earlier_rank_count = host_names[:own_rank].count(host_names[own_rank]) if own_rank < len(host_names) else 0
        return _valid_place(
            Place(own_rank, len(host_addresses), earlier_rank_count, same_host_count, host_names[0], _port(variables))
        )
    return Place()


def first_host(nodes: str) -> str:
    """Returns the name of the first machine in a node list of Slurm, such as "node[03-07,11],login2".

    Example:
        >>> from emberharmony.distributed.environment import first_host
        >>> first_host("gpu-[003-007,011],login2"), first_host("one,two")
        ('gpu-003', 'one')
    """
    match = re.match(r"([^,\[]+)(?:\[([^\]]*)\])?([^,\[]*)", nodes.strip())
    if match is None:
        return ""
    first_number = (match[2] or "").split(",")[0].split("-")[0]
    return f"{match[1]}{first_number}{match[3]}"


def _address(environ: Mapping[str, str], is_local: bool) -> str:
    if environ.get("MASTER_ADDR"):
        return environ["MASTER_ADDR"]
    if is_local:
        return "127.0.0.1"
    node_list = environ.get("SLURM_STEP_NODELIST") or environ.get("SLURM_JOB_NODELIST") or ""
    return first_host(node_list) if node_list else ""


def _port(environ: Mapping[str, str]) -> int:
    """Returns the port in MASTER_PORT, or else a port computed from the job's name, equal in all its processes."""
    job_name = "/".join(environ[name] for name in _JOBS if name in environ)
    return integer_variable(environ, "MASTER_PORT", 20000 + zlib.crc32(job_name.encode()) % 12000 if job_name else PORT)


def integer_variable(environ: Mapping[str, str], name: str, default: int) -> int:
    """Returns the integer in an environment variable, or a default if it is not set.

    Raises:
        DistributedError: if it holds something else.
    """
    text = environ.get(name, "")
    if not text:
        return default
    try:
        return int(text)
    except ValueError as error:
        raise DistributedError(f"the environment variable {name} is {brief(text)}, expected an integer") from error


def _valid_place(place: Place) -> Place:
    if not 0 <= place.rank < place.size:
        raise DistributedError(
            f"the environment says that this is rank {place.rank} of {place.size}, expected a rank from 0 to size - 1"
        )
    return place
