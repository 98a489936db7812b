"""Files that `numpy.savez` has written, read without pickles and without memory that their content does not fill."""

import math
import struct
import tokenize
import zipfile
import zlib
from typing import Any

import numpy as np
from numpy.lib import format as npy

from emberharmony.core.errors import StateDictError, WeightFileError, brief, suggest
from emberharmony.io.header import recognized
from emberharmony.io.tensor_file import opened
from emberharmony.io.tensors import as_tensor

_RATIO = 1040
"""More bytes than this cannot come out of one byte of a deflated stream."""

_FAULTS = (
    *(zipfile.BadZipFile, zlib.error, struct.error, tokenize.TokenError, SyntaxError, EOFError, OSError),
    *(ValueError, RuntimeError, MemoryError),
)
"""What zipfile and the reader of NumPy 2.4 raise for damaged files."""


def read_npz(path: str, names: list[str] | None) -> dict[str, Any]:
    """Returns the arrays of an `.npz` file as tensors.

    Raises:
        DTypeError: if no backend has the dtype of an array.
        StateDictError: if there is no array of a given name.
        WeightFileError: if the file is damaged.
    """
    stream, _ = opened(path)
    with stream:
        try:
            archive = zipfile.ZipFile(stream)
        except _FAULTS as error:
            stream.seek(0)
            hint = recognized(stream.read(512))
            raise WeightFileError("npz", path, f"is no zip archive: {error}", None, hint) from error
        members: dict[str, zipfile.ZipInfo] = {}
        for member in archive.infolist():
            name = member.filename.removesuffix(".npy")
            if name in members:
                raise WeightFileError("duplicate", path, "occurs twice", name)
            members[name] = member
        for name in names or ():
            if name not in members:
                raise StateDictError(f"{path} has no tensor {name!r}{suggest(name, members)}")
        wanted = list(members) if names is None else names
        arrays = {name: _array(archive, members[name], path, name) for name in wanted}
    return {name: as_tensor(array, str(array.dtype), path, name) for name, array in arrays.items()}


def _array(archive: zipfile.ZipFile, member: zipfile.ZipInfo, path: str, name: str) -> np.ndarray[Any, Any]:
    """Returns one array; its memory is taken only if the archive can hold as many bytes."""
    try:
        if member.file_size > _RATIO * (member.compress_size + 1):
            raise ValueError(f"{member.compress_size} bytes cannot hold {member.file_size}")
        with archive.open(member) as stream:
            version = npy.read_magic(stream)
            reader = {(1, 0): npy.read_array_header_1_0, (2, 0): npy.read_array_header_2_0}.get(version)
            if reader is None:
                raise ValueError(f"version {version} of the format .npy is for structured arrays")
            shape, fortran, dtype = reader(stream)
            if dtype.hasobject or dtype.itemsize == 0 or dtype.names is not None:
                raise ValueError(
                    f"dtype {dtype} is no number; arrays of objects are pickles, which could run any program"
                )
            count = math.prod(shape)
            if min(shape, default=0) < 0 or stream.tell() + count * dtype.itemsize != member.file_size:
                raise ValueError(f"shape {shape} of {dtype} does not fill its {member.file_size} bytes")
            content = bytearray(stream.read(count * dtype.itemsize))
            if len(content) != count * dtype.itemsize or stream.read(1):
                raise ValueError(f"has {len(content)} bytes, expected {count * dtype.itemsize}")
    except _FAULTS as error:
        raise WeightFileError("npz", path, f"cannot be read: {brief(str(error))}", name) from error
    array = np.frombuffer(content, dtype) if content else np.empty(0, dtype)
    return array.reshape(shape[::-1]).T if fortran else array.reshape(shape)
