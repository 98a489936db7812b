"""The commands that start the ranks: our own processes, or torchrun, mlx.launch and mpirun."""

import functools
import os
import shutil
import socket
import subprocess
import sys
import sysconfig
from collections.abc import Mapping, Sequence
from typing import NamedTuple

from emberharmony.core.errors import ArgumentError, DistributedError, brief
from emberharmony.distributed import transports
from emberharmony.distributed.environment import RANKS
from emberharmony.distributed.launching import guard

_BY_TRANSPORT = {"torch": "torchrun", "mlx": "mlx.launch", "mpi": "mpirun"}

_CARRIED = ("OMP_NUM_THREADS", "PYTHONPATH", "PYTHONUNBUFFERED")
"""Environment variables, besides our own, that are passed to ranks on other machines."""


class Host(NamedTuple):
    """A machine of a hostfile and the number of ranks that run on it."""

    name: str
    slots: int

    @property
    def is_here(self) -> bool:
        """Whether the host is this machine, judged by its name."""
        return self.name in ("localhost", "127.0.0.1", "::1", socket.gethostname(), socket.getfqdn())


class Machines(NamedTuple):
    """The machines and port of a run: the number of ranks, the hosts, the hostfile and the own node.

    Attributes:
        ranks: how many there are.
        hosts: the machines; empty for this one alone.
        hostfile: a file of them for mpirun.
        port: a port for the ranks to find each other.
        node: the number of this machine among them, for torchrun, which is started on each.
    """

    ranks: int
    hosts: Sequence[Host]
    hostfile: str
    port: int
    node: int


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
    for line_number, line in enumerate(text.splitlines(), 1):
        name_and_slots = line.partition("#")[0].split()
        if not name_and_slots:
            continue
        slots_text = name_and_slots[1].removeprefix("slots=") if len(name_and_slots) == 2 else "1"
        if len(name_and_slots) > 2 or not slots_text.isdigit() or not int(slots_text):
            raise ArgumentError(f"line {line_number} of the hosts is {line.strip()!r}, expected: name slots=2")
        hosts.append(Host(name_and_slots[0], int(slots_text)))
    if not hosts:
        raise ArgumentError("the file of hosts names no machine")
    return hosts


def choose_transport_and_launcher(transport: str, launcher: str, hosts: Sequence[Host]) -> tuple[str, str]:
    """Returns the transport and the launcher for options that may be "auto".

    On one machine the processes are our own: they start at once, and all of them end within a known time. MPI needs
    `mpirun`, and several machines need the launcher of the transport.

    Raises:
        DistributedError: if there is no such transport, or what is needed is not installed.
    """
    if transport == "auto":
        if launcher in ("torchrun", "mlx.launch", "mpirun"):
            transport = {program: name for name, program in _BY_TRANSPORT.items()}[launcher]
        else:
            installed_names = [name for name in ("torch", "mlx") if transports.is_installed(name)]
            if not installed_names and transports.is_installed("mpi") and launcher_path("mpirun"):
                installed_names = ["mpi"]
            if not installed_names:
                raise DistributedError(
                    "no transport is installed: pip install torch, or mlx, or mpi4py and an MPI with mpirun"
                )
            transport = installed_names[0]
    transport_family = transport.partition(":")[0]
    transports.require_known(transport_family)
    if launcher == "auto":
        needs_launcher = bool(hosts) or transport_family == "mpi" or transport == "mlx:mpi"
        launcher = _BY_TRANSPORT.get(transport_family, "local") if needs_launcher else "local"
        launcher = "mpirun" if transport == "mlx:mpi" else launcher
    if launcher == "local" and hosts:
        raise DistributedError("local processes run on this machine; for others choose torchrun, mlx.launch or mpirun")
    if launcher != "local" and not launcher_path(launcher):
        raise DistributedError(
            f"{launcher} is not installed, which starts the processes for the transport {transport!r}"
        )
    return transport, launcher


def command(program: str) -> list[str]:
    """Returns the command that runs a program, with this Python's interpreter in front if its name ends in .py.

    Raises:
        ArgumentError: if there is none.
    """
    is_python = program.endswith(".py")
    if not (os.path.isfile(program) if is_python else shutil.which(program)):
        raise ArgumentError(
            f"launch: there is no program {brief(program)}; give the path of a Python file, or a program that can be "
            f"run (python -m MODULE for a module)"
        )
    return [sys.executable, program] if is_python else [program]


def launcher_path(name: str) -> str:
    """Returns the path of a launcher beside the interpreter or on PATH; an empty text if it is not installed."""
    program_path = os.path.join(sysconfig.get_path("scripts"), name)
    if os.access(program_path, os.X_OK):
        return program_path
    return shutil.which(name) or ""


def guarded_command(command: Sequence[str], launcher: int, prefix: bool) -> list[str]:
    """Returns a command, extended so that the guard program starts and ends it.

    Args:
        command: the program and its arguments.
        launcher: the process of ours that starts it; 0 if a launcher of another library does.
        prefix: whether the rank stands before each line of output.
    """
    return [sys.executable, "-S", "-E", guard.__file__, str(launcher), str(int(prefix)), ",".join(RANKS), *command]


def launcher_command_line(
    launcher: str, transport: str, rank: Sequence[str], machines: Machines, variables: Mapping[str, str]
) -> list[str]:
    """Returns the command line by which torchrun, mlx.launch or mpirun starts the ranks.

    Args:
        launcher: "torchrun", "mlx.launch" or "mpirun".
        transport: what connects the ranks.
        rank: the command of each rank.
        machines: where they run.
        variables: those of the environment, some of which other machines need too.
    """
    path, hosts = launcher_path(launcher), machines.hosts
    variables_to_pass = [name for name in sorted(variables) if name.startswith("EMBERHARMONY_") or name in _CARRIED]
    if launcher == "torchrun":
        ranks_per_node = hosts[machines.node].slots if hosts else machines.ranks
        node_options = [
            f"--nnodes={max(1, len(hosts))}",
            f"--node-rank={machines.node}",
            f"--nproc-per-node={ranks_per_node}",
        ]
        address_options = [f"--master-addr={hosts[0].name if hosts else '127.0.0.1'}", f"--master-port={machines.port}"]
        # Without an option for the folder of logs, torchrun makes a temporary one and never removes it.
        return [
            sys.executable,
            path,
            *node_options,
            *address_options,
            f"--log-dir={os.devnull}",
            "--max-restarts=0",
            "--no-python",
            *rank,
        ]
    if launcher == "mlx.launch":
        host_names_text = ",".join(name for host in hosts for name in [host.name] * host.slots)
        host_options = ["--hosts", host_names_text] if hosts else ["-n", str(machines.ranks)]
        environment_words = [
            word for name in variables_to_pass if hosts for word in ("--env", f"{name}={variables[name]}")
        ]
        backend_option = transport.partition(":")[2] or "ring"
        return [sys.executable, path, "--backend", backend_option, *host_options, *environment_words, "--", *rank]
    if not _is_open_mpi(path):  # MPICH and Intel MPI pass all variables on
        host_options = ["-f", machines.hostfile] if hosts else []
        return [path, *host_options, "-n", str(machines.ranks), *rank]
    root_options = ["--allow-run-as-root"] if hasattr(os, "geteuid") and os.geteuid() == 0 else []
    host_options = ["--hostfile", machines.hostfile] if hosts else []
    environment_words = [word for name in variables_to_pass if hosts for word in ("-x", name)]
    return [path, *root_options, "--oversubscribe", *host_options, *environment_words, "-n", str(machines.ranks), *rank]


@functools.cache
def _is_open_mpi(path: str) -> bool:
    """Returns whether the program `mpirun` belongs to Open MPI, judged by the output of `--version`."""
    version_output = subprocess.run([path, "--version"], capture_output=True, text=True, check=False, timeout=60)
    return any(
        name in version_output.stdout + version_output.stderr for name in ("Open MPI", "OpenRTE", "prte", "PRRTE")
    )
