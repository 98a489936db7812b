"""Starts the ranks of a run as child processes, waits for them, and ends all of them when one fails."""

import contextlib
import json
import os
import signal
import socket
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

from emberharmony.core.errors import ArgumentError, DistributedError
from emberharmony.distributed import board, environment
from emberharmony.distributed.launching import commands, guard
from emberharmony.distributed.launching.commands import Host

_SIGNALS = (signal.SIGTERM, signal.SIGHUP) if hasattr(signal, "SIGHUP") else (signal.SIGTERM,)
_BRIEF = 3.0
"""The seconds between two signals to ranks that do not end."""


class Options(NamedTuple):
    """The options of `emberharmony launch`.

    Attributes:
        ranks: how many there are.
        transport: what connects them, or "auto".
        launcher: what starts them, or "auto".
        hosts: the machines; empty for this one alone.
        node: the number of this machine among them, for torchrun, which is started on each.
        backend: the backend of all ranks; empty for the usual choice.
        grace: the seconds that the others have to end by themselves after one has failed.
        prefix: whether the rank stands before each line of output.
    """

    ranks: int
    transport: str = "auto"
    launcher: str = "auto"
    hosts: tuple[Host, ...] = ()
    node: int = 0
    backend: str = ""
    grace: float = 10.0
    prefix: bool = True


class _Ending(NamedTuple):
    """The end of a rank: its time, the rank, and the exit status.

    Attributes:
        time: when it did, in seconds.
        rank: its number; None for a launcher of another library, which starts the ranks.
        status: its exit status, negative for a signal.
    """

    time: float
    rank: int | None
    status: int


def launch(command: Sequence[str], options: Options) -> int:
    """Runs a program on all ranks, and returns the exit status: 0, or that of the first rank that failed.

    Args:
        command: the program and its arguments.
        options: how it is started.

    Raises:
        ArgumentError: if the numbers of ranks and machines do not fit.
        DistributedError: if a library or a launcher is missing, or this system is not POSIX.
    """
    if os.name != "posix":
        raise DistributedError("launch needs POSIX; start the ranks by torchrun or mpiexec instead")
    _require_valid_counts(options)
    if len(options.hosts) == 1 and options.hosts[0].is_here:
        options = options._replace(hosts=())
    transport, launcher = commands.choose_transport_and_launcher(options.transport, options.launcher, options.hosts)
    temporary_directory = tempfile.TemporaryDirectory(prefix="emberharmony-launch-", ignore_cleanup_errors=True)
    children: list[subprocess.Popen[bytes]] = []
    with temporary_directory as folder, _interrupt_on_signals():
        try:
            _start_processes(children, command, options, transport, launcher, folder)
            return _await_ranks(children, options, launcher, folder)
        except KeyboardInterrupt as interrupt:
            _print_to_stderr("interrupted; ending all ranks")
            _signal_all(children, (signal.SIGINT, signal.SIGTERM))
            return interrupt.args[0] if interrupt.args else 130
        finally:
            _signal_all(children, (guard.HARD,))
            for child in children:
                child.kill()
                child.wait()


def _require_valid_counts(options: Options) -> None:
    """Checks the numbers of ranks, hosts and the own node in the options of a launch.

    Raises:
        ArgumentError: if they do not fit.
    """
    if options.ranks < 1:
        raise ArgumentError(f"launch: {options.ranks} ranks, expected at least 1")
    slot_count = sum(host.slots for host in options.hosts)
    if options.hosts and slot_count != options.ranks:
        raise ArgumentError(
            f"launch: {options.ranks} ranks, but the hosts have {slot_count} slots; leave -n out or change the slots"
        )
    if not 0 <= options.node < max(1, len(options.hosts)):
        raise ArgumentError(
            f"launch: node {options.node}, expected a number from 0 to {max(0, len(options.hosts) - 1)}: the place of "
            f"this machine among the hosts"
        )


def _start_processes(
    children: list[subprocess.Popen[bytes]],
    command: Sequence[str],
    options: Options,
    transport: str,
    launcher: str,
    folder: str,
) -> None:
    """Starts the processes of a run, ranks or a launcher, and appends them to the list of children."""
    shared_environ = {**os.environ, environment.TRANSPORT: transport, "PYTHONUNBUFFERED": "1"}
    if options.backend:
        shared_environ["EMBERHARMONY_BACKEND"] = options.backend
    shared_environ.setdefault("OMP_NUM_THREADS", str(max(1, (os.cpu_count() or 1) // options.ranks)))
    if not options.hosts:
        shared_environ[environment.BOARD] = os.path.join(folder, "board")
        board.create_file(shared_environ[environment.BOARD], options.ranks)

    def start_process(command_line: Sequence[str], variables: dict[str, str]) -> None:
        # In a separate session the process does not get Ctrl-C directly, but only once, from this launcher.
        children.append(subprocess.Popen(list(command_line), env=variables, start_new_session=True))

    port, *ring_ports = _free_ports(1 + options.ranks)
    if options.hosts:  # torchrun needs the same port on all machines
        port = environment.integer_variable(os.environ, "MASTER_PORT", environment.PORT)
    rank_command = commands.guarded_command(command, os.getpid() if launcher == "local" else 0, options.prefix)
    if launcher != "local":
        machine_options = commands.Machines(
            options.ranks, options.hosts, _write_hostfile(options.hosts, folder), port, options.node
        )
        launcher_command = commands.launcher_command_line(
            launcher, transport, rank_command, machine_options, shared_environ
        )
        start_process(commands.guarded_command(launcher_command, os.getpid(), prefix=False), shared_environ)
        return
    hostfile_path = os.path.join(folder, "ring.json")
    with open(hostfile_path, "w", encoding="utf-8") as file:
        json.dump([[f"127.0.0.1:{port}"] for port in ring_ports], file)
    shared_environ |= {"MASTER_ADDR": "127.0.0.1", "MASTER_PORT": str(port), "MLX_HOSTFILE": hostfile_path}
    shared_environ |= {"WORLD_SIZE": str(options.ranks), "LOCAL_WORLD_SIZE": str(options.ranks)}
    for rank in range(options.ranks):
        start_process(
            rank_command, {**shared_environ, **{name: str(rank) for name in ("RANK", "LOCAL_RANK", "MLX_RANK")}}
        )


def _await_ranks(children: list[subprocess.Popen[bytes]], options: Options, launcher: str, folder: str) -> int:
    """Waits for all ranks, and returns the exit status; after a failure the others are ended."""
    pause_seconds = 0.005
    while True:
        exit_codes = [child.poll() for child in children]
        if any(exit_codes) or any(ending.status for ending in _rank_endings(folder)):
            break
        if None not in exit_codes:
            return 0
        time.sleep(pause_seconds)
        pause_seconds = min(0.05, pause_seconds * 1.5)
    first_ending = _first_failure(children, options, folder)
    _print_to_stderr(_describe_failure(first_ending, options, launcher, folder))
    _await_end(children, options.grace)
    _signal_all(children, (signal.SIGTERM,))
    return first_ending.status if first_ending.status > 0 else 128 - first_ending.status


def _rank_endings(folder: str) -> list[_Ending]:
    """Returns the endings of the ranks on this machine that have ended, in the order of time."""
    endings = []
    for name in os.listdir(folder):
        stem, _, rank = name.partition(".")
        if stem == "board" and rank.isdigit():
            with open(os.path.join(folder, name), encoding="utf-8") as file:
                end_time, status = file.read().split()
            endings.append(_Ending(float(end_time), int(rank), int(status)))
    return sorted(endings)


def _first_failure(children: list[subprocess.Popen[bytes]], options: Options, folder: str) -> _Ending:
    """Returns the ending of the rank that failed first by itself; others that fail because of it may end before."""
    deadline = time.monotonic() + 1.0
    while True:
        failed_endings = [ending for ending in _rank_endings(folder) if ending.status]
        # When one rank has failed, launchers of other libraries send SIGTERM to all other ranks.
        independent_failures = [
            ending
            for i, ending in enumerate(failed_endings)
            if _board_entry(ending.rank, options, folder).state != board.FAILED
            and (not i or ending.status != -signal.SIGTERM)
        ]
        if independent_failures or len(failed_endings) == options.ranks or time.monotonic() > deadline:
            break
        time.sleep(0.02)
    exit_statuses = [child.returncode for child in children if child.returncode]
    return (independent_failures or failed_endings or [_Ending(0.0, None, status) for status in exit_statuses])[0]


def _board_entry(rank: int | None, options: Options, folder: str) -> board.Entry:
    """Returns the entry that a rank wrote on the board of the run."""
    return board.Board(os.path.join(folder, "board"), None, options.ranks).read(rank or 0)


def _await_end(children: list[subprocess.Popen[bytes]], seconds: float) -> None:
    """Waits until all child processes have ended, or the seconds are over."""
    deadline = time.monotonic() + seconds
    while None in [child.poll() for child in children] and time.monotonic() < deadline:
        time.sleep(0.02)


def _signal_all(children: list[subprocess.Popen[bytes]], numbers: Sequence[int]) -> None:
    """Sends signals one after the other to the child processes that still run, with a pause after each."""
    for signal_number in numbers:
        for child in children:
            if child.poll() is None:
                child.send_signal(signal_number)
        _await_end(children, _BRIEF)


def _describe_failure(ending: _Ending, options: Options, launcher: str, folder: str) -> str:
    """Returns the message on a failed rank: its exit status or signal, and the call in which it was."""
    status_text = f"exit status {ending.status}"
    if ending.status < 0:
        with contextlib.suppress(ValueError):
            status_text = f"signal {signal.Signals(-ending.status).name}"
    if ending.rank is None:
        return f"{launcher} ended with {status_text}"
    entry, location_text = _board_entry(ending.rank, options, folder), ""
    if entry.number:
        in_or_after = "after" if entry.state in (board.OUTSIDE, board.ENDED) else "in"
        location_text = f" {in_or_after} {board.call_label(entry.call, entry.number)}"
    if entry.state == board.FAILED:
        board_of_run = board.Board(os.path.join(folder, "board"), None, options.ranks)
        reason_by_rank = board_of_run.missing_rank_reasons(entry.number, entry.call, wait=0.0)
        location_text += "".join(
            f"; rank {rank} {text}" for rank, text in reason_by_rank.items() if rank != ending.rank
        )
    return f"rank {ending.rank} ended with {status_text}{location_text}; the others have {options.grace:g} s to end"


def _print_to_stderr(text: str) -> None:
    with contextlib.suppress(OSError):  # the terminal may be closed
        sys.stderr.write(f"emberharmony launch: {text}\n")
        sys.stderr.flush()


def _free_ports(count: int) -> list[int]:
    """Returns a number of free TCP ports of this machine."""
    with contextlib.ExitStack() as stack:
        sockets = [stack.enter_context(socket.socket()) for _ in range(count)]
        for listener in sockets:
            listener.bind(("127.0.0.1", 0))
        return [listener.getsockname()[1] for listener in sockets]


def _write_hostfile(hosts: Sequence[Host], folder: str) -> str:
    """Writes the hostfile for mpirun, and returns its path; an empty text if only this machine is used."""
    if not hosts:
        return ""
    hostfile_path = os.path.join(folder, "hosts")
    with open(hostfile_path, "w", encoding="utf-8") as file:
        file.writelines(f"{host.name} slots={host.slots}\n" for host in hosts)
    return hostfile_path


@contextlib.contextmanager
def _interrupt_on_signals() -> Iterator[None]:
    """Makes SIGTERM and SIGHUP raise `KeyboardInterrupt`, as Ctrl-C does, with the exit status as argument."""

    def raise_interrupt(number: int, frame: object) -> None:
        raise KeyboardInterrupt(128 + number)

    old_handler_by_signal: dict[int, Any] = {}
    if threading.current_thread() is threading.main_thread():
        old_handler_by_signal = {
            signal_number: signal.signal(signal_number, raise_interrupt) for signal_number in _SIGNALS
        }
    try:
        yield
    finally:
        for signal_number, handler in old_handler_by_signal.items():
            signal.signal(signal_number, handler)
