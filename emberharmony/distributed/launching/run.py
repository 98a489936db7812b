"""Runs the ranks as processes of this one, with their output, and ends all of them when one fails."""

import contextlib
import json
import os
import re
import signal
import socket
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Iterator, Sequence
from typing import IO, Any, NamedTuple

from emberharmony.core.errors import ArgumentError
from emberharmony.distributed import board, environment
from emberharmony.distributed.launching import commands
from emberharmony.distributed.launching.commands import Host

_TAGS = re.compile(rb"^(?:\[(?:default|[\w.]*?)(\d+)\]:|\[[^\]]*?[@,](\d+)\]<std(?:out|err)>: ?)")
"""What torchrun and Open MPI write before the lines of a rank: `[default0]:`, `[prterun-host-12@1,0]<stdout>: `."""

_SIGNALS = (signal.SIGTERM, signal.SIGHUP) if hasattr(signal, "SIGHUP") else (signal.SIGTERM,)
_BRIEF = 3.0
"""The seconds between two signals to ranks that do not end."""


class Options(NamedTuple):
    """How the ranks are started.

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


class _Rank:
    """A process, its output, and whether it has ended.

    Attributes:
        number: its rank; None for a launcher, which starts the ranks.
    """

    def __init__(self, number: int | None, command: Sequence[str], variables: dict[str, str], prefix: bool) -> None:
        self.number = number
        # A session of its own, so that a signal reaches what the rank itself has started, and Ctrl-C not twice.
        self.process = subprocess.Popen(
            list(command), env=variables, stdout=subprocess.PIPE, stderr=subprocess.PIPE, start_new_session=True
        )
        self.status: int | None = None
        self._pumps = [
            threading.Thread(target=_pump, args=(source, to, number, prefix), daemon=True)
            for source, to in ((self.process.stdout, sys.stdout), (self.process.stderr, sys.stderr))
        ]
        for pump in self._pumps:
            pump.start()

    def poll(self) -> int | None:
        """Returns the exit status, negative for a signal; None while it runs. What the rank has started is ended."""
        if self.status is None and _has_ended(self.process.pid):
            # Before the process is reaped, so that no other one can have its number yet.
            self.signal(signal.SIGKILL)
            self.status = self.process.wait()
        return self.status

    def signal(self, number: int) -> None:
        """Sends a signal to the process and all that it has started."""
        if self.status is None:
            with contextlib.suppress(ProcessLookupError, PermissionError):
                os.killpg(self.process.pid, number)

    def finish(self) -> None:
        """Ends the process if it still runs, and waits until its output is written."""
        self.signal(signal.SIGKILL)
        if self.status is None:
            self.status = self.process.wait()
        for pump in self._pumps:
            pump.join(_BRIEF)


def launch(command: Sequence[str], options: Options) -> int:
    """Runs a program on all ranks, and returns the exit status: 0, or that of the first rank that failed.

    Args:
        command: the program and its arguments.
        options: how it is started.

    Raises:
        ArgumentError: if the number of ranks is not positive.
        DistributedError: if a library or a launcher is missing.
    """
    if options.ranks < 1:
        raise ArgumentError(f"launch: {options.ranks} ranks, expected at least 1")
    transport, launcher = commands.chosen(options.transport, options.launcher, options.hosts)
    temporary = tempfile.TemporaryDirectory(prefix="emberharmony-launch-", ignore_cleanup_errors=True)
    ranks: list[_Rank] = []
    with temporary as folder, _raising_signals():
        try:
            _start(ranks, command, options, transport, launcher, folder)
            return _watched(ranks, options, folder)
        except KeyboardInterrupt as interrupt:
            _say("interrupted; ending all ranks")
            _end(ranks, (signal.SIGINT, signal.SIGTERM))
            return interrupt.args[0] if interrupt.args else 130
        finally:
            for rank in ranks:
                rank.finish()


def _start(
    ranks: list[_Rank], command: Sequence[str], options: Options, transport: str, launcher: str, folder: str
) -> None:
    """Starts all processes and puts them into the list."""
    shared = {**os.environ, environment.TRANSPORT: transport, "PYTHONUNBUFFERED": "1"}
    if options.backend:
        shared["EMBERHARMONY_BACKEND"] = options.backend
    shared.setdefault("OMP_NUM_THREADS", str(max(1, (os.cpu_count() or 1) // options.ranks)))
    if len(options.hosts) <= 1:
        shared[environment.BOARD] = os.path.join(folder, "board")
        board.make(shared[environment.BOARD], options.ranks)
    port, *ring = _free_ports(1 + options.ranks)
    if launcher != "local":
        hostfile = _hostfile(options.hosts, folder)
        started = commands.command_of(launcher, command, options.ranks, options.hosts, hostfile, port, options.node)
        ranks.append(_Rank(None, commands.guarded(started, os.getpid()), shared, options.prefix))
        return
    path = os.path.join(folder, "ring.json")
    with open(path, "w", encoding="utf-8") as file:
        json.dump([[f"127.0.0.1:{each}"] for each in ring], file)
    shared |= {environment.LAUNCHER: str(os.getpid()), "MASTER_ADDR": "127.0.0.1", "MASTER_PORT": str(port)}
    shared |= {"WORLD_SIZE": str(options.ranks), "LOCAL_WORLD_SIZE": str(options.ranks), "MLX_HOSTFILE": path}
    for number in range(options.ranks):
        own = {name: str(number) for name in ("RANK", "LOCAL_RANK", "MLX_RANK")}
        ranks.append(_Rank(number, commands.guarded(command, os.getpid()), {**shared, **own}, options.prefix))


def _watched(ranks: list[_Rank], options: Options, folder: str) -> int:
    """Waits for all ranks, and returns the status; if one fails, the others have to end."""
    pause = 0.005
    while True:
        states = [rank.poll() for rank in ranks]
        failed = [rank for rank in ranks if rank.status]
        if failed:
            break
        if None not in states:
            return 0
        time.sleep(pause)
        pause = min(0.05, pause * 1.5)
    first = _cause(ranks, options, folder)
    _say(_told(first, options, folder))
    until = time.monotonic() + options.grace
    while time.monotonic() < until and None in [rank.poll() for rank in ranks]:
        time.sleep(0.02)
    _end(ranks, (signal.SIGTERM,))
    assert first.status is not None
    return first.status if first.status > 0 else 128 - first.status


def _cause(ranks: list[_Rank], options: Options, folder: str) -> _Rank:
    """Returns the rank that failed by itself, if one did; the others may notice it and end before it does."""
    until = time.monotonic() + 1.0
    while True:
        failed = [rank for rank in ranks if rank.poll()]
        own = [rank for rank in failed if _entry(rank, options, folder).state != board.FAILED]
        if own or len(failed) == len(ranks) or time.monotonic() > until:
            return (own or failed)[0]
        time.sleep(0.02)


def _entry(rank: _Rank, options: Options, folder: str) -> board.Entry:
    """Returns what a rank has written on the board; an empty entry for a launcher, and on several machines."""
    path = os.path.join(folder, "board")
    if rank.number is None or not os.path.exists(path):
        return board.Entry(0, board.OUTSIDE, 0, 0.0, 0.0, "")
    return board.Board(path, None, options.ranks).read(rank.number)


def _end(ranks: list[_Rank], numbers: Sequence[int]) -> None:
    """Sends signals to the ranks that still run, with some seconds after each, and SIGKILL in the end."""
    for number in numbers:
        for rank in ranks:
            rank.signal(number)
        until = time.monotonic() + _BRIEF
        while time.monotonic() < until and None in [rank.poll() for rank in ranks]:
            time.sleep(0.02)
    for rank in ranks:
        rank.signal(signal.SIGKILL)


def _told(rank: _Rank, options: Options, folder: str) -> str:
    """Returns what is known of a rank that failed."""
    assert rank.status is not None
    how = f"exit status {rank.status}"
    if rank.status < 0:
        with contextlib.suppress(ValueError):
            how = f"signal {signal.Signals(-rank.status).name}"
    if rank.number is None:
        return f"the launcher ended with {how}"
    entry, where = _entry(rank, options, folder), ""
    if entry.number and entry.state != board.ENDED:
        where = f" {'after' if entry.state == board.OUTSIDE else 'in'} {board.shown(entry.call, entry.number)}"
    return f"rank {rank.number} ended with {how}{where}; the others have {options.grace:g} s to end"


def _pump(source: IO[bytes], to: Any, number: int | None, prefix: bool) -> None:
    """Writes the lines that come from a process, with the rank before each."""
    head = b"" if number is None or not prefix else b"[%d] " % number
    target = getattr(to, "buffer", None)
    with source:
        for line in source:
            if number is None and (tag := _TAGS.match(line)):
                line = (b"[%s] " % (tag[1] or tag[2]) if prefix else b"") + line[tag.end() :]
            text = head + (line if line.endswith(b"\n") else line + b"\n")
            with _PRINTING, contextlib.suppress(ValueError, OSError):
                if target is None:  # a test, or a notebook, has replaced the stream by one of text
                    to.write(text.decode(errors="replace"))
                else:
                    target.write(text)
                to.flush()


_PRINTING = threading.Lock()


def _say(text: str) -> None:
    with _PRINTING:
        sys.stderr.write(f"emberharmony launch: {text}\n")
        sys.stderr.flush()


def _has_ended(process: int) -> bool:
    """Returns whether a child has ended; it is not reaped."""
    return os.waitid(os.P_PID, process, os.WEXITED | os.WNOHANG | os.WNOWAIT) is not None


def _free_ports(count: int) -> list[int]:
    """Returns ports of this machine that nobody listens on."""
    with contextlib.ExitStack() as stack:
        sockets = [stack.enter_context(socket.socket()) for _ in range(count)]
        for each in sockets:
            each.bind(("127.0.0.1", 0))
        return [each.getsockname()[1] for each in sockets]


def _hostfile(hosts: Sequence[Host], folder: str) -> str:
    """Writes the machines for mpirun, and returns the file; an empty text if there is only this one."""
    if len(hosts) <= 1:
        return ""
    path = os.path.join(folder, "hosts")
    with open(path, "w", encoding="utf-8") as file:
        file.writelines(f"{host.name} slots={host.slots}\n" for host in hosts)
    return path


@contextlib.contextmanager
def _raising_signals() -> Iterator[None]:
    """Makes SIGTERM and SIGHUP raise `KeyboardInterrupt`, as Ctrl-C does, with the exit status as argument."""

    def stop(number: int, frame: object) -> None:
        raise KeyboardInterrupt(128 + number)

    before: dict[int, Any] = {}
    if threading.current_thread() is threading.main_thread():
        before = {number: signal.signal(number, stop) for number in _SIGNALS}
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
