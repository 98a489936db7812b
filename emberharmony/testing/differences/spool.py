"""Files of recorded calls, written and read one call at a time, so that a run may be larger than the memory.

A file has the magic number, then the bytes of tensors and the heads of calls as JSON in the order in which they came,
an index as JSON (the place and the length of each head, and the notes of the run), and the place of the index (8
bytes). A tensor that was written before, and has not changed since, is not written again.
"""

import contextlib
import json
import struct
import weakref
from collections.abc import Iterator
from typing import Any

import numpy as np

from emberharmony.core.errors import ArgumentError
from emberharmony.testing.differences.records import Array, Host, Record

MAGIC = b"EHCALLS2"
_PLACE = struct.Struct("<Q")
_FIELDS = (
    "op",
    "path",
    "line",
    "gradient_of",
    "backend",
    "args",
    "kwargs",
    "result",
    "error",
    "streams",
    "seen",
    "number",
)
_HALVES = ("float16", "bfloat16")

_BLOCK = 2**18
"""The number of bytes that are compared at once."""

_SMALL = 2**21
"""The largest tensor, in bytes, that may stay in memory."""

MEMORY = 2**27
"""The number of bytes of small tensors that stay in memory, which is faster than a file."""

_LARGEST_BLOCK = 2**22
"""The largest block of memory, in bytes, that is allocated at once for small tensors."""

_ALIGNED = 64
"""The alignment, in bytes, of small tensors in memory."""

_BYTES, _WORDS = np.dtype(np.uint8), np.dtype(np.uint64)


class _File:
    """An unbuffered file that is read and written at byte offsets."""

    def __init__(self, path: str, mode: str) -> None:
        self.path = path
        self.raw: Any = open(path, mode, buffering=0)  # noqa: SIM115
        self.size = 0

    def append(self, data: Any) -> int:
        """Writes bytes at the end of the file and returns their offset."""
        offset, file = self.size, self.raw
        file.seek(offset)
        written_count = file.write(data)
        if written_count != len(data):  # `write` may write only a part of many bytes
            unwritten_bytes = memoryview(data)
            while written_count < len(unwritten_bytes):
                written_count += file.write(unwritten_bytes[written_count:])
        self.size += written_count
        return offset

    def read(self, place: int, into: Any) -> None:
        """Fills a vector of bytes with the bytes of the file from an offset on.

        Raises:
            ArgumentError: if the file ends before.
        """
        self.raw.seek(place)
        read_count: int = self.raw.readinto(into)
        while read_count < len(into):
            further_count = self.raw.readinto(into[read_count:])
            if not further_count:
                raise self.truncation_error()
            read_count += further_count

    def array(self, place: int, count: int, kind: Any) -> Array:
        """Returns `count` numbers of the file from an offset on."""
        elements = np.empty(count, kind)
        if count:
            self.read(place, elements.view(np.uint8))
        return elements

    def truncation_error(self) -> ArgumentError:
        """Returns the error that says that the file is incomplete."""
        return ArgumentError(f"the log {self.path} is damaged or ends within a call: the run was interrupted")


class Stored(Host):
    """A tensor in a file, which is read when it is asked for; a small one may be in memory."""

    __slots__ = ("_file", "_kind", "_memory_bytes", "_place")

    def __init__(
        self, file: _File, place: int, dtype: str, kind: Any, shape: Any, size: int, held: Array | None = None
    ) -> None:
        self._file, self._place, self._kind, self._memory_bytes = file, place, kind, held
        self.measured = None
        self.dtype, self.shape, self.size = dtype, shape, size

    @property
    def bits(self) -> Array:
        """The bits, as an array of the shape."""
        if self._memory_bytes is not None:
            typed_array: Array = self._memory_bytes.view(self._kind)
            return typed_array.reshape(self.shape)
        read_array: Array = self._file.array(self._place, self.size, self._kind)
        return read_array.reshape(self.shape)

    def vector(self) -> Array:
        """Returns the elements as a vector; half precisions as float32."""
        array = self._memory_bytes
        if array is None or self.dtype in _HALVES:
            return super().vector()
        typed_array: Array = array.view(self._kind)
        return typed_array

    def _blocks_of_bits(self, most: int) -> Iterator[Array]:
        if self._memory_bytes is not None:
            yield from super()._blocks_of_bits(most)
            return
        item_size = self._kind.itemsize
        for start in range(0, self.size, most):
            file_part = self._file.array(self._place + start * item_size, min(most, self.size - start), self._kind)
            yield from Host(file_part, self.dtype).blocks(most)

    def row(self) -> Any:
        """Returns the dtype, the shape and the offset of the tensor, for the description of its call."""
        return self.dtype, self._kind.str, self.shape, self._place


class Seen(weakref.ref[Any]):
    """A weak reference to a tensor of a run, with its copy in the file and the number of the last call that had it."""

    __slots__ = ("call", "host", "key")

    call: int
    host: Any
    key: int


class Tensors:
    """The tensors of a run by identity; a tensor that Python frees is removed.

    Attributes:
        seen: the tensors, by `id`.
    """

    def __init__(self) -> None:
        seen_by_id: dict[int, Seen] = {}

        def forget_tensor(tensor: Seen) -> None:
            seen_by_id.pop(tensor.key, None)

        self.seen, self._forget = seen_by_id, forget_tensor

    def of(self, tensor: Any) -> Seen | None:
        """Returns the entry of a tensor that an earlier call had, or None."""
        seen_tensor = self.seen.get(id(tensor))
        return seen_tensor if seen_tensor is not None and seen_tensor() is tensor else None

    def add(self, tensor: Any, host: Host, call: int) -> None:
        """Adds a tensor, its copy in the file, and the number of the call that has it."""
        with contextlib.suppress(TypeError):  # scalars of NumPy have no references
            seen_tensor = Seen(tensor, self._forget)
            seen_tensor.host, seen_tensor.call, seen_tensor.key = host, call, id(tensor)
            self.seen[seen_tensor.key] = seen_tensor


class Writer:
    """Writes the recorded calls of a run and their tensors into a new file.

    Args:
        path: the file; it is complete only after `close`.
        memory: so many bytes of small tensors may stay in memory; a file that others read has all tensors.
    """

    def __init__(self, path: str, memory: int = 0) -> None:
        self._memory = memory
        self._file = _File(path, "w+b")
        self._file.append(MAGIC)
        self._heads: list[int] = []
        self._block = np.empty(_BLOCK, np.uint8)
        self._memory_block = self._free = np.empty(_BLOCK, np.uint8)
        self._seen_tensors = Tensors()

    def keep(self, tensor: Any, host: Host, call: int) -> tuple[Stored, int]:
        """Writes a tensor unless the file has its values; returns the stored tensor and the last call that had it.

        Args:
            tensor: the native tensor, by which it is known when it comes again.
            host: its bits.
            call: the number of the call that gives it, or is given it.

        Returns:
            the tensor in the file, and the number of the call that had it last, as in `Record.seen`.
        """
        bits = host.bits
        flat_bytes = np.frombuffer(bits if bits.flags.c_contiguous else np.ascontiguousarray(bits), _BYTES)
        seen_entry = self._seen_tensors.of(tensor)
        if seen_entry is None:
            stored_tensor = self._store_tensor(host, flat_bytes)
            self._seen_tensors.add(tensor, stored_tensor, call)
            return stored_tensor, -1
        stored_tensor, stored_call = seen_entry.host, seen_entry.call
        seen_entry.call = call
        if (
            stored_tensor.shape == host.shape
            and stored_tensor.dtype == host.dtype
            and self._holds_bytes(stored_tensor, flat_bytes)
        ):
            return stored_tensor, stored_call
        seen_entry.host = stored_tensor = self._store_tensor(host, flat_bytes)
        return stored_tensor, -2 - stored_call

    def _holds_bytes(self, stored_tensor: Stored, flat_bytes: Array) -> bool:
        """Returns whether a stored tensor has the given bytes."""
        stored_bytes = stored_tensor._memory_bytes
        if stored_bytes is not None:
            if not len(flat_bytes):
                return True
            word_dtype = _BYTES if len(flat_bytes) % 8 else _WORDS  # the fewest numbers to compare
            are_words_equal = stored_bytes.view(word_dtype) == flat_bytes.view(word_dtype)
            return bool(are_words_equal[are_words_equal.argmin()])  # `all` begins later
        stored_place = stored_tensor._place
        for start in range(0, len(flat_bytes), _BLOCK):
            block = flat_bytes[start : start + _BLOCK] if len(flat_bytes) > _BLOCK else flat_bytes
            stored_bytes = self._block[: len(block)]
            self._file.read(stored_place + start, stored_bytes)
            if not (stored_bytes == block).all():
                return False
        return True

    def _store_tensor(self, host: Host, flat_bytes: Array) -> Stored:
        if flat_bytes.size <= self._memory and flat_bytes.size <= _SMALL:
            if flat_bytes.size > len(self._free):
                self._memory_block = self._free = np.empty(
                    max(flat_bytes.size, min(2 * len(self._memory_block), _LARGEST_BLOCK)), np.uint8
                )
            self._memory -= flat_bytes.size
            memory, self._free = self._free[: flat_bytes.size], self._free[-(-flat_bytes.size // _ALIGNED) * _ALIGNED :]
            memory[:] = flat_bytes
            return Stored(self._file, 0, host.dtype, host.bits.dtype, host.shape, host.size, memory)
        offset = self._file.append(flat_bytes.data) if flat_bytes.size else self._file.size
        return Stored(self._file, offset, host.dtype, host.bits.dtype, host.shape, host.size)

    def add(self, record: Record) -> None:
        """Writes the description of a call, with the offsets of its tensors, which are in the file already."""
        head_fields: dict[str, Any] = {name: getattr(record, name) for name in _FIELDS}
        head_fields["tensors"] = [self._tensor_row(host) for host in record.tensors]
        head_json = json.dumps(head_fields).encode()
        self._heads += (self._file.append(head_json), len(head_json))

    def _tensor_row(self, host: Host) -> Any:
        if not isinstance(host, Stored):
            host, _ = self.keep(host, host, 0)
        return host.row()

    def close(self, notes: dict[str, Any] | None = None) -> None:
        """Writes the index if notes are given, which completes the file, and closes it."""
        if not self._file.raw.closed:
            if notes is not None:
                offset = self._file.append(json.dumps({"calls": self._heads, "notes": notes}).encode())
                self._file.append(_PLACE.pack(offset))
            self._seen_tensors.seen.clear()
            self._file.raw.close()


class Calls:
    """The calls of a run in this process, whose tensors are in a file."""

    def __init__(self) -> None:
        self._records: list[Record | None] = []
        self._next_number = 0

    def add(self, record: Record) -> None:
        """Adds a call to the queue from which `next` takes it."""
        self._records.append(record)

    def next(self) -> Record | None:
        """Returns the next call, or None at the end; the call before it is freed."""
        if self._next_number >= len(self._records):
            return None
        self._next_number += 1
        if self._next_number > 1:
            self._records[self._next_number - 2] = None
        return self._records[self._next_number - 1]

    def at(self, number: int) -> Record:
        """Returns the recorded call with a number, counted from 0; those before the last one of `next` are gone."""
        record = self._records[number]
        assert record is not None
        return record

    def keys(self, number: int = 0) -> Iterator[tuple[int, tuple[str, str, str]]]:
        """Yields the number and the key of each queued call, from a number on."""
        for call_number in range(number, len(self._records)):
            yield call_number, self.at(call_number).key

    def tell(self) -> int:
        """Returns the number of the next call."""
        return self._next_number


class Reader:
    """Reads the calls of a file in their order, or by their number.

    Args:
        path: the file.

    Raises:
        ArgumentError: if the file is no log of calls, or is not whole.
        OSError: if it cannot be read.
    """

    def __init__(self, path: str) -> None:
        self.path = path
        self._file = _File(path, "rb")
        self._next_number = 0
        try:
            self._file.size = self._file.raw.seek(0, 2)
            if self._file.size < len(MAGIC) or self._read_bytes(0, len(MAGIC)) != MAGIC:
                raise ArgumentError(
                    f"{path} is no log of calls; `emberharmony compare FILE:FUNCTION --save A.log` makes one"
                )
            (index_place,) = _PLACE.unpack(self._read_bytes(self._file.size - _PLACE.size, _PLACE.size))
            index_end = self._file.size - _PLACE.size
            log_index = self._read_json(index_place, index_end - index_place)
            offsets_and_lengths = log_index["calls"]
            self._heads = list(zip(offsets_and_lengths[::2], offsets_and_lengths[1::2], strict=True))
            self.notes: dict[str, Any] = log_index["notes"]
        except BaseException as error:
            self.close()
            if isinstance(error, (KeyError, TypeError, ValueError)) and not isinstance(error, ArgumentError):
                raise self._file.truncation_error() from error
            raise

    def close(self) -> None:
        """Closes the file."""
        self._file.raw.close()

    def next(self) -> Record | None:
        """Returns the next call, or None at the end."""
        if self._next_number >= len(self._heads):
            return None
        self._next_number += 1
        return self.at(self._next_number - 1)

    def at(self, number: int) -> Record:
        """Returns the call with a number, read from the file.

        Raises:
            ArgumentError: if the file is damaged.
        """
        head_fields = self._call_head(number)
        tensors: list[Host] = []
        try:
            for name, dtype_name, shape, offset in head_fields.pop("tensors"):
                element_dtype, element_count = np.dtype(dtype_name), 1
                for length in shape:
                    element_count *= length
                if not 0 <= offset <= self._file.size - element_count * element_dtype.itemsize:
                    raise self._file.truncation_error()
                tensors.append(Stored(self._file, offset, name, element_dtype, tuple(shape), element_count))
            return Record(**head_fields, tensors=tensors)
        except (KeyError, TypeError, ValueError) as error:
            raise error if isinstance(error, ArgumentError) else self._file.truncation_error() from error

    def keys(self, number: int = 0) -> Iterator[tuple[int, tuple[str, str, str]]]:
        """Yields the number and the key of each call in the file, from a number on."""
        for call_number in range(number, len(self._heads)):
            head_fields = self._call_head(call_number)
            yield call_number, (head_fields["op"], head_fields["path"], head_fields["gradient_of"])

    def tell(self) -> int:
        """Returns the number of the next call."""
        return self._next_number

    def _call_head(self, number: int) -> dict[str, Any]:
        return self._read_json(*self._heads[number])

    def _read_json(self, place: int, length: int) -> dict[str, Any]:
        if not 0 <= place <= place + length <= self._file.size:
            raise self._file.truncation_error()
        try:
            json_content: dict[str, Any] = json.loads(self._read_bytes(place, length))
        except ValueError as error:
            raise self._file.truncation_error() from error
        return json_content

    def _read_bytes(self, place: int, length: int) -> bytes:
        content = bytearray(max(length, 0))
        if length > 0 <= place:
            self._file.read(place, memoryview(content))
        return bytes(content)
