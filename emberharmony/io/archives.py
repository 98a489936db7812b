"""Files that `numpy.savez` has written, read without pickles and without memory that their content does not fill.

`numpy.load` takes the memory that a header asks for before it looks how much there is.
"""

import math
import struct
import tokenize
import zipfile
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np
from numpy.lib import format as npy

from emberharmony.core.errors import StateDictError, WeightFileError, brief, suggest
from emberharmony.io.header import TensorInfo, hint_of_other_format
from emberharmony.io.tensor_file import open_file
from emberharmony.io.tensors import as_tensor

_RATIO = 1040
"""The largest number of bytes that one byte of a deflated stream can expand to."""

_FAULTS = (
    *(zipfile.BadZipFile, zlib.error, struct.error, tokenize.TokenError, SyntaxError, EOFError, OSError),
    *(ValueError, RuntimeError, MemoryError),
)
"""The exceptions that zipfile and NumPy 2.4 raise for damaged `.npz` files."""


class Archive:
    """The arrays of an `.npz` file, read one by one.

    Raises:
        WeightFileError: if the file is no archive.
    """

    def __init__(self, path: str) -> None:
        self.path = path
        self._stream, _ = open_file(path)
        try:
            self._archive = zipfile.ZipFile(self._stream)
            self.members: dict[str, zipfile.ZipInfo] = {}
            for member in self._archive.infolist():
                name = member.filename.removesuffix(".npy")
                if name in self.members:
                    raise WeightFileError("duplicate", path, "occurs twice", name)
                self.members[name] = member
        except WeightFileError:
            self._stream.close()
            raise
        except _FAULTS as error:
            self._stream.seek(0)
            hint = hint_of_other_format(self._stream.read(512))
            self._stream.close()
            raise WeightFileError("npz", path, f"is no zip archive: {error}", None, hint) from error

    def __enter__(self) -> "Archive":
        return self

    def __exit__(self, *raised: object) -> None:
        self._stream.close()

    def info(self, name: str) -> TensorInfo:
        """Returns dtype, shape and size of an array in the archive; only the header of the array is read.

        Raises:
            WeightFileError: if the header is damaged.
        """
        with self._open_member(name) as (_, shape, _, dtype):
            return TensorInfo(str(dtype.newbyteorder("=")), shape, math.prod(shape) * dtype.itemsize, 0)

    def array(self, name: str) -> np.ndarray[Any, Any]:
        """Returns an array of the archive after a check that the archive is long enough for the size in its header.

        Raises:
            WeightFileError: if the array is damaged.
        """
        with self._open_member(name) as (stream, shape, is_fortran, dtype):
            byte_count = math.prod(shape) * dtype.itemsize
            content = bytearray(stream.read(byte_count))
            if len(content) != byte_count or stream.read(1):
                raise ValueError(f"has {len(content)} bytes, expected {byte_count}")
            array = np.frombuffer(content, dtype) if content else np.empty(0, dtype)
            return array.reshape(shape[::-1]).T if is_fortran else array.reshape(shape)
        raise AssertionError

    @contextmanager
    def _open_member(self, name: str) -> Iterator[tuple[Any, tuple[int, ...], bool, np.dtype[Any]]]:
        """Opens an array of the archive, and yields its stream, shape, whether it is in Fortran's order, and dtype."""
        member = self.members[name]
        try:
            if member.file_size > _RATIO * (member.compress_size + 1):
                raise ValueError(f"{member.compress_size} bytes cannot hold {member.file_size}")
            with self._archive.open(member) as stream:
                version = npy.read_magic(stream)
                read_header = {(1, 0): npy.read_array_header_1_0, (2, 0): npy.read_array_header_2_0}.get(version)
                if read_header is None:
                    raise ValueError(f"version {version} of the format .npy is for structured arrays")
                shape, is_fortran, dtype = read_header(stream)
                if dtype.hasobject or dtype.itemsize == 0 or dtype.names is not None:
                    raise ValueError(
                        f"dtype {dtype} is no number; arrays of objects are pickles, which could run any program"
                    )
                expected_end = stream.tell() + math.prod(shape) * dtype.itemsize
                if min(shape, default=0) < 0 or expected_end != member.file_size:
                    raise ValueError(f"shape {shape} of {dtype} does not fill its {member.file_size} bytes")
                yield stream, shape, is_fortran, dtype
        except _FAULTS as error:
            raise WeightFileError("npz", self.path, f"cannot be read: {brief(str(error))}", name) from error


def read_npz(path: str, names: list[str] | None) -> dict[str, Any]:
    """Returns the arrays of an `.npz` file as tensors.

    Raises:
        DTypeError: if no backend has the dtype of an array.
        StateDictError: if there is no array of a given name.
        WeightFileError: if the file is damaged.
    """
    with Archive(path) as archive:
        for name in names or ():
            if name not in archive.members:
                raise StateDictError(f"{path} has no tensor {name!r}{suggest(name, archive.members)}")
        wanted_names = list(archive.members) if names is None else names
        array_by_name = {name: archive.array(name) for name in wanted_names}
    return {name: as_tensor(array, str(array.dtype), path, name) for name, array in array_by_name.items()}
