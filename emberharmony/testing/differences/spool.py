"""Files of calls, which are written and read one call at a time, so that a run need not fit the memory.

A file has the magic number, then for each call the length of its head (4 bytes), the head as JSON, and the bytes of its
tensors; then a length of 0, and the notes of the run as JSON.
"""

import json
import os
import struct
from collections.abc import Iterator
from typing import Any, BinaryIO

import numpy as np

from emberharmony.core.errors import ArgumentError
from emberharmony.testing.differences.records import Host, Record

MAGIC = b"EHCALLS1"
_LENGTH = struct.Struct("<I")
_FIELDS = ("op", "path", "line", "gradient_of", "backend", "args", "kwargs", "result", "error", "streams")


class Writer:
    """Writes calls into a new file.

    Args:
        path: the file; it is complete only after `close`.
    """

    def __init__(self, path: str) -> None:
        self._file: BinaryIO = open(path, "wb")  # noqa: SIM115
        self._file.write(MAGIC)

    def add(self, record: Record) -> None:
        """Adds a call."""
        head: dict[str, Any] = {name: getattr(record, name) for name in _FIELDS}
        head["tensors"] = [(host.dtype, host.bits.dtype.str, host.shape) for host in record.tensors]
        text = json.dumps(head).encode()
        self._file.write(_LENGTH.pack(len(text)) + text)
        for host in record.tensors:
            self._file.write(np.ascontiguousarray(host.bits).data if host.bits.size else b"")

    def close(self, notes: dict[str, Any] | None = None) -> None:
        """Completes the file."""
        if not self._file.closed:
            if notes is not None:
                self._file.write(_LENGTH.pack(0) + json.dumps(notes).encode())
            self._file.close()


class Reader:
    """Reads the calls of a file in their order, or by their place.

    Args:
        path: the file.

    Raises:
        ArgumentError: if the file is no log of calls.
        OSError: if it cannot be read.
    """

    def __init__(self, path: str) -> None:
        self.path = path
        self.notes: dict[str, Any] = {}
        self._file = open(path, "rb")  # noqa: SIM115
        self._size = os.fstat(self._file.fileno()).st_size
        if self._file.read(len(MAGIC)) != MAGIC:
            self._file.close()
            raise ArgumentError(
                f"{path} is no log of calls; `emberharmony compare FILE:FUNCTION --save {path}` makes one"
            )

    def close(self) -> None:
        """Closes the file."""
        self._file.close()

    def next(self) -> Record | None:
        """Returns the next call, or None at the end.

        Raises:
            ArgumentError: if the file ends within a call.
        """
        head = self._head()
        if head is None:
            return None
        tensors = []
        for name, kind, shape in head.pop("tensors"):
            dtype = np.dtype(kind)
            bits = np.empty(shape, dtype)
            if bits.size and self._file.readinto(bits.reshape(-1).view(np.uint8).data) != bits.nbytes:
                raise self._cut()
            tensors.append(Host(bits, name))
        return Record(**head, tensors=tensors)

    def at(self, place: int) -> Record:
        """Returns the call at a place that `keys` gave."""
        self._file.seek(place)
        record = self.next()
        assert record is not None
        return record

    def keys(self, place: int | None = None) -> Iterator[tuple[int, tuple[str, str, str]]]:
        """Yields the place and the key of each call that follows, or that follows after a place."""
        if place is not None:
            self._file.seek(place)
        while True:
            place = self._file.tell()
            head = self._head()
            if head is None:
                return
            sizes = [np.dtype(kind).itemsize * int(np.prod(shape)) for _, kind, shape in head["tensors"]]
            self._file.seek(sum(sizes), 1)
            yield place, (head["op"], head["path"], head["gradient_of"])

    def tell(self) -> int:
        """Returns the place of the next call."""
        return self._file.tell()

    def _head(self) -> dict[str, Any] | None:
        length = self._file.read(_LENGTH.size)
        if not length and self._file.tell() == self._size:
            return None  # a spool that is still being written has no notes
        if len(length) < _LENGTH.size:
            raise self._cut()
        (size,) = _LENGTH.unpack(length)
        try:
            if not size:
                self.notes = json.loads(self._file.read())
                self._file.seek(-0, 2)
                return None
            text = self._file.read(size)
            if len(text) < size:
                raise self._cut()
            head: dict[str, Any] = json.loads(text)
        except ValueError as error:
            raise self._cut() from error
        return head

    def _cut(self) -> ArgumentError:
        return ArgumentError(f"the log {self.path} is damaged or ends within a call: the run was interrupted")
