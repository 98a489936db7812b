"""The guard: a program that starts a rank for a launcher, forwards its output and ends all its processes.

It needs the standard library alone, so it starts in 20 ms: `python -S -E guard.py LAUNCHER HEAD NAMES COMMAND...`.

- Each line of the rank's output begins with its number, whoever starts the rank and carries the output.
- `<board>.<rank>` says when and how the rank ended, because a rank that was killed cannot say it.
- The rank has a process group of its own, which gets the signals that this process gets, and SIGKILL when the rank has
  ended.
- When the launcher has gone, the group gets SIGTERM, and SIGKILL 3 s later.

It runs beside each rank, whichever launcher starts it: `mpirun --tag-output` splits lines, `mlx.launch` does not tell
the rank, and neither says in which call a rank was when it was killed.
"""

import contextlib
import os
import selectors
import signal
import sys
import time

HARD = getattr(signal, "SIGQUIT", signal.SIGTERM)
"""The signal that makes this program kill the rank at once."""

_GRACE = 3.0
"""The seconds between SIGTERM and SIGKILL when the launcher has gone."""

_DRAIN = 1.0
"""The seconds for which output is still read after the rank has ended, if a process outside of its group writes it."""


def main() -> None:
    """Runs the command of a rank under this guard, and exits with its exit status or by its signal."""
    launcher, prefix_flag, rank_variables, *command = sys.argv[1:]
    parent_process = int(launcher) or os.getppid()
    rank = next((os.environ[name] for name in rank_variables.split(",") if name in os.environ), "")
    pipe_by_target = {1: os.pipe(), 2: os.pipe()}
    process = os.fork()
    if not process:
        _exec_command(command, {target: write_end for target, (_, write_end) in pipe_by_target.items()})
    with contextlib.suppress(OSError):  # the rank sets its process group too
        os.setpgid(process, process)
    for _, write_end in pipe_by_target.values():
        os.close(write_end)
    _pass_signals_on(process)
    line_prefix = f"[{rank}] ".encode() if prefix_flag == "1" and rank else b""
    exit_status = _forward_output(
        process, parent_process, {read_end: target for target, (read_end, _) in pipe_by_target.items()}, line_prefix
    )
    board_path = os.environ.get("EMBERHARMONY_BOARD", "")
    if rank and board_path:
        _write_ending(f"{board_path}.{rank}", exit_status)
    if int(launcher) and os.getppid() != parent_process and board_path:
        import shutil

        # The launcher has ended without removing its folder.
        shutil.rmtree(os.path.dirname(board_path), ignore_errors=True)
    if exit_status < 0:
        _end_by_signal(-exit_status)
    os._exit(exit_status)


def _exec_command(command: list[str], outputs: dict[int, int]) -> None:
    """Replaces this forked process by the command, whose output goes into the pipes."""
    try:
        os.setpgid(0, 0)
        for descriptor, pipe_end in outputs.items():
            os.dup2(pipe_end, descriptor)
        if sys.platform == "linux":
            import ctypes

            ctypes.CDLL(None).prctl(1, signal.SIGKILL)  # PR_SET_PDEATHSIG: killed when the guard ends
        signal.signal(signal.SIGPIPE, signal.SIG_DFL)
        os.execvp(command[0], command)
    except OSError as error:
        os.write(2, f"{command[0]} cannot be started: {error}\n".encode())
    finally:
        os._exit(127)


def _pass_signals_on(process: int) -> None:
    """Sets handlers that send the signals of this process to the rank and all processes that it has started."""

    def forward_signal(number: int, frame: object) -> None:
        _signal_group(process, signal.SIGKILL if number == HARD else number)

    for signal_number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP, signal.SIGUSR1, signal.SIGUSR2, HARD):
        signal.signal(signal_number, forward_signal)
    signal.signal(signal.SIGPIPE, signal.SIG_IGN)


def _forward_output(process: int, parent: int, sources: dict[int, int], line_prefix: bytes) -> int:
    """Forwards the output of the rank until it ends, and returns its exit status, negative for a signal."""
    wake_reader, wake_writer = os.pipe()
    os.set_blocking(wake_writer, False)
    signal.signal(signal.SIGCHLD, lambda number, frame: None)
    signal.set_wakeup_fd(wake_writer, warn_on_full_buffer=False)
    unfinished_line_by_descriptor = dict.fromkeys(sources, b"")
    status: int | None = None
    deadline, orphan_since = float("inf"), 0.0
    with selectors.DefaultSelector() as selector:
        for descriptor in (*sources, wake_reader):
            selector.register(descriptor, selectors.EVENT_READ)
        while status is None or (unfinished_line_by_descriptor and time.monotonic() < deadline):
            for selector_key, _ in selector.select(0.25):
                new_output = os.read(selector_key.fd, 65536)
                if selector_key.fd != wake_reader:
                    unfinished_line_by_descriptor[selector_key.fd] = _write_lines(
                        sources[selector_key.fd],
                        line_prefix,
                        unfinished_line_by_descriptor[selector_key.fd] + new_output,
                        is_end=not new_output,
                    )
                    if not new_output:
                        selector.unregister(selector_key.fd)
                        del unfinished_line_by_descriptor[selector_key.fd]
            if status is None:
                ended_process, wait_status = os.waitpid(process, os.WNOHANG)
                if ended_process:
                    status, deadline = os.waitstatus_to_exitcode(wait_status), time.monotonic() + _DRAIN
                    _signal_group(process, signal.SIGKILL)
                elif not orphan_since and os.getppid() != parent:
                    orphan_since = time.monotonic()
                    _signal_group(process, signal.SIGTERM)
                elif orphan_since and time.monotonic() > orphan_since + _GRACE:
                    _signal_group(process, signal.SIGKILL)
    for descriptor, unfinished_line in unfinished_line_by_descriptor.items():
        _write_lines(sources[descriptor], line_prefix, unfinished_line, is_end=True)
    return status


def _write_lines(to: int, line_prefix: bytes, data: bytes, is_end: bool) -> bytes:
    """Writes each complete line with the prefix of the rank, and returns the incomplete last line."""
    *lines, last_line = data.split(b"\n")
    if is_end and last_line:
        lines, last_line = [*lines, last_line], b""
    unwritten_bytes = memoryview(b"".join(line_prefix + line + b"\n" for line in lines))
    while unwritten_bytes:
        try:
            unwritten_bytes = unwritten_bytes[os.write(to, unwritten_bytes) :]
        except BlockingIOError:  # the output is a nonblocking file with a slow reader
            time.sleep(0.01)
        except OSError:  # the terminal is closed, so no one reads the output
            break
    return last_line


def _signal_group(process: int, number: int) -> None:
    """Sends a signal to the rank and all processes that it has started."""
    with contextlib.suppress(OSError):
        os.killpg(process, number)


def _write_ending(path: str, status: int) -> None:
    """Writes a file with the time at which the rank ended and its exit status."""
    with contextlib.suppress(OSError):  # the launcher may have gone, with its folder
        with open(path + "~", "w", encoding="utf-8") as file:
            file.write(f"{time.monotonic()!r} {status}")
        os.replace(path + "~", path)


def _end_by_signal(number: int) -> None:
    """Ends this program by the signal that ended the rank, without writing a core file of its own."""
    import resource

    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    if number != signal.SIGKILL:
        signal.signal(number, signal.SIG_DFL)
    os.kill(os.getpid(), number)


if __name__ == "__main__":
    main()
