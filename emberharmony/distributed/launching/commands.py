"""The commands that start the ranks: our own processes, or torchrun, mlx.launch and mpirun."""

import os
import shutil
import sys
import sysconfig
from collections.abc import Sequence
from typing import NamedTuple

from emberharmony.core.errors import ArgumentError, DistributedError
from emberharmony.distributed import transports

_BY_TRANSPORT = {"torch": "torchrun", "mlx": "mlx.launch", "mpi": "mpirun"}


class Host(NamedTuple):
    """A machine, and how many ranks run on it."""

    name: str
    slots: int


def read_hosts(text: str) -> list[Host]:
    r"""Returns the machines of a hostfile: a name on each line, perhaps with `slots=4`, and comments after `#`.

    Raises:
        ArgumentError: if a line has another form.

    Example:
        >>> from emberharmony.distributed.launching.commands import read_hosts
        >>> read_hosts("node1 slots=2  # the fast one\nnode2")
        [Host(name='node1', slots=2), Host(name='node2', slots=1)]
    """
    hosts = []
    for number, line in enumerate(text.splitlines(), 1):
        words = line.partition("#")[0].split()
        if not words:
            continue
        slots = words[1].removeprefix("slots=") if len(words) == 2 else "1"
        if len(words) > 2 or not slots.isdigit() or not int(slots):
            raise ArgumentError(f"line {number} of the hosts is {line.strip()!r}, expected: name slots=2")
        hosts.append(Host(words[0], int(slots)))
    if not hosts:
        raise ArgumentError("the file of hosts names no machine")
    return hosts


def chosen(transport: str, launcher: str, hosts: Sequence[Host]) -> tuple[str, str]:
    """Returns the transport and the launcher for options that may be "auto".

    On one machine the processes are our own: they start at once, and all of them end within a known time. MPI needs
    `mpirun`, and several machines need the launcher of the transport.

    Raises:
        DistributedError: if what is needed is not installed.
    """
    if transport == "auto":
        if launcher in ("torchrun", "mlx.launch", "mpirun"):
            transport = {program: name for name, program in _BY_TRANSPORT.items()}[launcher]
        else:
            installed = [name for name in ("torch", "mlx") if transports.is_installed(name)]
            if not installed and transports.is_installed("mpi") and program("mpirun"):
                installed = ["mpi"]
            if not installed:
                raise DistributedError(
                    "no transport is installed: pip install torch, or mlx, or mpi4py and an MPI with mpirun"
                )
            transport = installed[0]
    family = transport.partition(":")[0]
    if launcher == "auto":
        needs = len(hosts) > 1 or family == "mpi" or transport == "mlx:mpi"
        launcher = _BY_TRANSPORT.get(family, "local") if needs else "local"
        launcher = "mpirun" if transport == "mlx:mpi" else launcher
    if launcher == "local" and len(hosts) > 1:
        raise DistributedError("local processes run on one machine; for several choose torchrun, mlx.launch or mpirun")
    if launcher != "local" and not program(launcher):
        raise DistributedError(
            f"{launcher} is not installed, which starts the processes for the transport {transport!r}"
        )
    return transport, launcher


def program(name: str) -> str:
    """Returns the path of a launcher, which may be beside the interpreter only; an empty text if there is none."""
    beside = os.path.join(sysconfig.get_path("scripts"), name)
    if os.access(beside, os.X_OK):
        return beside
    return shutil.which(name) or ""


def guarded(command: Sequence[str], launcher: int) -> list[str]:
    """Returns a command that ends when its parent does."""
    guard = os.path.join(os.path.dirname(__file__), "guard.py")
    return [sys.executable, "-S", "-E", guard, str(launcher), *command]


def command_of(
    launcher: str, command: Sequence[str], count: int, hosts: Sequence[Host], hostfile: str, port: int, node: int
) -> list[str]:
    """Returns the command of a launcher of another library.

    Args:
        launcher: "torchrun", "mlx.launch" or "mpirun".
        command: the program of each rank, with its arguments.
        count: how many ranks there are.
        hosts: the machines.
        hostfile: a file of them for mpirun; empty for this machine alone.
        port: a free port.
        node: the number of this machine among them, for torchrun, which is started on each.
    """
    path, rank = program(launcher), guarded(command, 0)
    if launcher == "torchrun":
        each = hosts[node].slots if len(hosts) > 1 else count
        place = [f"--nnodes={max(1, len(hosts))}", f"--node-rank={node}", f"--nproc-per-node={each}"]
        meeting = [f"--master-addr={hosts[0].name if len(hosts) > 1 else '127.0.0.1'}", f"--master-port={port}"]
        return [sys.executable, path, *place, *meeting, "--tee=3", "--max-restarts=0", "--no-python", *rank]
    if launcher == "mlx.launch":
        names = ",".join(name for host in hosts for name in [host.name] * host.slots)
        named = ["--hosts", names] if hostfile else ["-n", str(count)]
        return [sys.executable, path, "--backend", "ring", *named, "--", *command]
    root = ["--allow-run-as-root"] if hasattr(os, "geteuid") and os.geteuid() == 0 else []
    named = ["--hostfile", hostfile] if hostfile else []
    return [path, *root, "--oversubscribe", "--tag-output", *named, "-n", str(count), *rank]
