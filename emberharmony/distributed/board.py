"""The board: a small file in shared memory in which each rank on a machine says which call it is in.

Only a rank itself knows where it is, and one that was killed or stopped cannot say it any more. So each writes it down
before and after every call, which takes 2 µs, and the others read it when a call fails.

An entry has a checksum: without it a reader on a busy machine met an entry that was half written, in one of about 80
trials, and named a rank that was well. Ranks of one machine meet here before they connect, because the ring of MLX 0.32
gives up after 15 s if a rank comes late. gloo notices the end of a process by its sockets; MPI does not, and MLX not
always, so a thread looks at the board while a call lasts and tells these two that it cannot end. A stopped process may
be continued, so only the time-out ends a call that waits for it.
"""

import contextlib
import mmap
import os
import struct
import time
import zlib
from typing import NamedTuple

OUTSIDE, INSIDE, FAILED, ENDED = range(4)
"""The states of a rank: between two calls, inside of a call, after a failed call, or after its program's end."""

_FORM = struct.Struct("<qqqd48s")
_SUM = struct.Struct("<I")
_ALIVE = struct.Struct("<d")
_ALIVE_AT, _WIDTH = 120, 128
_SILENT = 3.0
"""The seconds without a sign of life after which a process counts as stopped, where the system does not tell."""


class Entry(NamedTuple):
    """The entry of a rank on the board: its process, its state, its last call and its last sign of life.

    Attributes:
        process: its process; 0 if it has not joined.
        state: one of the four above.
        number: the number of its call; of the last one if it is between two.
        since: when it wrote this, in seconds.
        alive: when its watcher last gave a sign of life.
        call: the name of the call.
    """

    process: int
    state: int
    number: int
    since: float
    alive: float
    call: str

    @property
    def progress(self) -> float:
        """The number of calls that the rank has finished, plus 0.5 inside of a call; -1 before the rank joins."""
        return self.number - (0.5 if self.state == INSIDE else 0.0) if self.process else -1.0


class Board:
    """The board of a run: a memory-mapped file with one entry for each rank on this machine.

    Args:
        path: the file; it has room for all ranks.
        rank: the rank of this process; None for a reader.
        size: how many ranks there are.
    """

    def __init__(self, path: str, rank: int | None, size: int) -> None:
        with open(path, "r+b") as file:
            self._memory = mmap.mmap(file.fileno(), size * _WIDTH)
        self._rank, self.size = rank, size
        self._start = (rank or 0) * _WIDTH
        self._last = (0, "")
        if rank is not None:
            self.write(OUTSIDE)

    def write(self, state: int, number: int | None = None, call: str | None = None) -> None:
        """Writes the state of this rank on the board, with the number and name of its call, or of the last one."""
        if number is not None and call is not None:
            self._last = number, call
        number, call = self._last
        packed_entry = _FORM.pack(os.getpid(), state, number, time.monotonic(), call.encode()[:48])
        # Another process may read a half-written row; the checksum shows that.
        self._memory[self._start : self._start + _FORM.size + _SUM.size] = packed_entry + _SUM.pack(
            zlib.crc32(packed_entry)
        )
        self.beat()

    def beat(self) -> None:
        """Writes the present time into the entry of this rank, as a sign that its process is alive."""
        offset = self._start + _ALIVE_AT
        self._memory[offset : offset + _ALIVE.size] = _ALIVE.pack(time.monotonic())

    def read(self, rank: int) -> Entry:
        """Returns the entry of a rank; a half-written entry is read again."""
        for _ in range(100):
            entry_bytes = self._memory[rank * _WIDTH : (rank + 1) * _WIDTH]
            (checksum,) = _SUM.unpack_from(entry_bytes, _FORM.size)
            if checksum == zlib.crc32(entry_bytes[: _FORM.size]) or not any(entry_bytes):
                break
            time.sleep(0.001)
        process, state, number, call_start, call = _FORM.unpack_from(entry_bytes)
        (last_sign_of_life,) = _ALIVE.unpack_from(entry_bytes, _ALIVE_AT)
        return Entry(process, state, number, call_start, last_sign_of_life, call.rstrip(b"\0").decode(errors="replace"))

    def absent_ranks(self, seconds: float) -> list[int]:
        """Waits until all ranks have joined or the seconds are over, and returns the ranks that have not joined."""
        deadline = time.monotonic() + seconds
        while absent_ranks_now := [rank for rank in range(self.size) if not self.read(rank).process]:
            if time.monotonic() > deadline:
                break
            time.sleep(0.01)
        return absent_ranks_now

    def missing_rank_reasons(
        self, number: int, call: str, peer: int | None = None, wait: float = 1.0
    ) -> dict[int, str]:
        """Returns a dict from the ranks that keep a call from ending to texts with the reason.

        A process that was killed takes a moment to disappear, and others may only be late. So it looks again until it
        finds one that cannot go on, or the time is over.

        Args:
            number: the number of the call.
            call: its name.
            peer: the only other rank in it, if it is no collective.
            wait: the seconds for which it looks.
        """
        deadline = time.monotonic() + wait
        while True:
            lateness_by_rank: dict[int, str] = {}
            reason_by_rank: dict[int, str] = {}
            for rank in range(self.size) if peer is None else (peer,):
                if rank != self._rank and (
                    rank_text := self._lateness_text(self.read(rank), number, call, peer is not None)
                ):
                    lateness_by_rank[rank] = rank_text
                if rank != self._rank and (rank_text := self._reason_of_end(self.read(rank))):
                    reason_by_rank[rank] = rank_text
            if reason_by_rank or time.monotonic() > deadline:
                # A late rank may wait for a later one, so only the latest ranks are the cause. A rank that has ended
                # after it left the call is named only if there is no other cause.
                progress_by_rank = {i: self.read(i).progress for i in (*lateness_by_rank, *reason_by_rank)}
                least_progress = min((progress_by_rank[i] for i in lateness_by_rank), default=0.0)
                reason_by_rank_inside = {
                    i: rank_text
                    for i, rank_text in reason_by_rank.items()
                    if progress_by_rank[i] < number or peer is not None
                }
                return (
                    reason_by_rank_inside
                    or reason_by_rank
                    or {
                        i: rank_text
                        for i, rank_text in lateness_by_rank.items()
                        if progress_by_rank[i] == least_progress
                    }
                )
            time.sleep(0.02)

    def is_hopeless(self, number: int, peer: int | None = None) -> bool:
        """Returns whether a rank will never enter or never finish a call, because it has ended or failed."""
        for rank in range(self.size) if peer is None else (peer,):
            entry = self.read(rank)
            if rank == self._rank or not entry.process or entry.progress >= number + (entry.state == FAILED):
                continue
            if entry.state in (FAILED, ENDED) or _process_condition(entry.process) == "gone":
                return True
        return False

    def _reason_of_end(self, entry: Entry) -> str:
        """Returns the reason why the rank of an entry cannot continue, such as a dead process; empty if it can."""
        if not entry.process or entry.state == FAILED:
            return ""
        process_text, last_call = f"(process {entry.process})", _last_call_text(entry)
        if entry.state == ENDED:
            return f"{process_text} has ended its program; {last_call}"
        process_condition = _process_condition(entry.process)
        if process_condition == "gone":
            in_or_after = "in" if entry.state == INSIDE else "after"
            call_text = (
                f"{in_or_after} {call_label(entry.call, entry.number)}" if entry.number else "before its first call"
            )
            return f"{process_text} was killed or ended {call_text}"
        if process_condition == "stopped":
            return f"{process_text} is stopped; {last_call}"
        if process_condition == "unknown" and time.monotonic() - entry.alive > _SILENT:
            return f"{process_text} does not run, or is stopped; {last_call}"
        return ""

    def _lateness_text(self, entry: Entry, number: int, call: str, is_peer: bool) -> str:
        """Returns a text on where a rank is that has not entered a call yet; an empty text if it has."""
        if not entry.process:
            return "has not joined the run; no call of init() has come from it"
        if entry.state == FAILED:
            return ""
        process_text, time_text = f"(process {entry.process})", f"{time.monotonic() - entry.since:.1f} s"
        if entry.number < number or (is_peer and entry.call not in ("send", "recv")):
            if entry.state == INSIDE:
                return f"{process_text} is still in {call_label(entry.call, entry.number)}, for {time_text}"
            return f"{process_text} has not come to this call; {_last_call_text(entry)}, {time_text} ago"
        if entry.number == number and entry.call != call and not is_peer and entry.state == INSIDE:
            return f"{process_text} has called {call_label(entry.call, entry.number)} instead"
        return ""


def _last_call_text(entry: Entry) -> str:
    return f"its last call was {call_label(entry.call, entry.number)}" if entry.number else "it has made no call"


def call_label(call: str, number: int) -> str:
    """Returns the text for a collective call in messages, from its name and number."""
    return f"{call}() (call {number})"


def create_file(path: str, size: int) -> None:
    """Creates the file of a board for a number of ranks, without entries."""
    with open(path, "wb") as file:
        file.truncate(size * _WIDTH)


def _process_condition(process: int) -> str:
    """Returns whether a process is "gone", "stopped" or "running"; "unknown" for a live one where no /proc exists."""
    try:
        os.kill(process, 0)
    except ProcessLookupError:
        return "gone"
    except PermissionError:
        return "unknown"
    with contextlib.suppress(OSError, IndexError), open(f"/proc/{process}/stat", encoding="utf-8") as file:
        # In this file the state follows the program's name, which is in parentheses and may contain spaces.
        state_letter = file.read().rpartition(")")[2].split()[0]
        return {"Z": "gone", "X": "gone", "T": "stopped", "t": "stopped"}.get(state_letter, "running")
    return "unknown"
