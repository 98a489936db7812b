"""Reads the tensors of any supported file one block at a time, as NumPy arrays on the host."""

import os
from collections.abc import Hashable, Iterator
from typing import Any, Protocol

import numpy as np

from emberharmony.backend.choice import owning_backend_of
from emberharmony.backend.discovery import load as load_backend
from emberharmony.core.errors import WeightFileError
from emberharmony.io.archives import Archive
from emberharmony.io.header import TensorInfo
from emberharmony.io.index import INDEX, checked_shard_headers
from emberharmony.io.loading import OF_TORCH, file_of_path
from emberharmony.io.tensor_file import TensorFile, header_of
from emberharmony.io.tensors import HOST
from emberharmony.io.ties import TIED

BLOCK = 1 << 20
"""The number of elements in a block."""

Array = np.ndarray[Any, Any]


class Source(Protocol):
    """The tensors of a file, read one block at a time; those of `.npz` files one tensor at a time.

    Attributes:
        path: the file, after the choice in a folder.
        tensors: the description of each tensor, by name.
        metadata: the strings that were saved beside the tensors.
    """

    path: str
    tensors: dict[str, TensorInfo]
    metadata: dict[str, str]

    def blocks(self, name: str) -> Iterator[Array]:
        """Yields the elements of a tensor in C order, as arrays with one axis.

        The elements of a bfloat16 tensor are uint16, and those of a dtype that no backend has are its bytes.

        Raises:
            WeightFileError: if the file cannot be read.
        """

    def memory_key(self, name: str) -> Hashable:
        """Returns a key of the memory of a tensor, which is equal for all names of one tied tensor."""

    def close(self) -> None:
        """Closes the file."""


def source(path: str | os.PathLike[str]) -> Source:
    """Opens a file, a folder, an index of shards, an `.npz` or a `.pth` file, and returns the source of its tensors.

    Raises:
        BackendUnavailableError: if a `.pth` file needs PyTorch, which is not installed.
        WeightFileError: if a file is damaged.
    """
    file_path = file_of_path(path)
    if file_path.endswith(".npz"):
        return _Arrays(file_path)
    return _OfTorch(file_path) if file_path.endswith(OF_TORCH) else _Shards(file_path)


class _Shards:
    """The tensors of safetensors files."""

    def __init__(self, path: str) -> None:
        self.path = path
        headers = checked_shard_headers(path) if path.endswith(INDEX) else {path: header_of(path)}
        self.tensors = {name: info for header in headers.values() for name, info in header.tensors.items()}
        self._files = {name: file for file, header in headers.items() for name in header.tensors}
        first_header = next(iter(headers.values()), None)
        self.metadata = dict(first_header.metadata) if first_header else {}
        self.metadata.pop(TIED, None)
        self._open: TensorFile | None = None

    def blocks(self, name: str) -> Iterator[Array]:
        """Yields the elements of a tensor in C order, as arrays with one axis."""
        file = self._file(name)
        info = file.info(name)
        if info != self.tensors[name]:
            raise WeightFileError("truncated", file.path, "was changed while it was read", name)
        dtype_name = info.dtype if info.dtype in HOST else "uint8"
        bytes_per_element = HOST[dtype_name].itemsize
        for start in range(0, info.nbytes, BLOCK * bytes_per_element):
            block_bytes = min(BLOCK * bytes_per_element, info.nbytes - start)
            yield file.part(
                name, TensorInfo(dtype_name, (block_bytes // bytes_per_element,), block_bytes, info.start + start)
            )

    def memory_key(self, name: str) -> Hashable:
        info = self.tensors[name]
        return (self._files[name], info) if info.nbytes else (self._files[name], name)

    def close(self) -> None:
        if self._open is not None:
            self._open.close()

    def _file(self, name: str) -> TensorFile:
        path = self._files[name]
        if self._open is None or self._open.path != path:
            self.close()
            self._open = TensorFile(path, mmap=False)
        return self._open


class _Arrays:
    """The arrays of an `.npz` file."""

    def __init__(self, path: str) -> None:
        self.path = path
        self.metadata: dict[str, str] = {}
        self._archive = Archive(path)
        try:
            self.tensors = {name: self._archive.info(name) for name in self._archive.members}
        except BaseException:
            self.close()
            raise

    def blocks(self, name: str) -> Iterator[Array]:
        return _blocks_of(self._archive.array(name))

    def memory_key(self, name: str) -> Hashable:
        return name

    def close(self) -> None:
        self._archive.__exit__()


class _OfTorch:
    """The tensors of a file written by PyTorch, which is mapped into memory if its format allows it."""

    def __init__(self, path: str) -> None:
        self.path = path
        self.metadata: dict[str, str] = {}
        load_backend("torch")  # raises an error with the command that installs PyTorch
        from emberharmony.backend.torch.files import read_tensors

        self._tensor_by_name = read_tensors(path, mapped=True)
        self.tensors = {}
        for name in self._tensor_by_name:
            array, dtype = self._array_and_dtype(name)
            self.tensors[name] = TensorInfo(dtype, array.shape, array.nbytes, 0)

    def blocks(self, name: str) -> Iterator[Array]:
        return _blocks_of(self._array_and_dtype(name)[0])

    def memory_key(self, name: str) -> Hashable:
        array, dtype = self._array_and_dtype(name)
        return (array.ctypes.data, array.shape, array.strides, dtype) if array.size else name

    def close(self) -> None:
        self._tensor_by_name = {}

    def _array_and_dtype(self, name: str) -> tuple[Array, str]:
        tensor = self._tensor_by_name[name]
        backend = owning_backend_of(tensor)
        assert backend is not None
        packing = backend.pack(tensor)
        return packing.bits, str(packing.dtype)


def _blocks_of(array: Array) -> Iterator[Array]:
    flat_array = array.reshape(-1)
    for start in range(0, flat_array.size, BLOCK):
        block = flat_array[start : start + BLOCK]
        yield block.astype(block.dtype.newbyteorder("=")) if not block.dtype.isnative else block


def numeric_block(block: Array, dtype: str) -> Array | None:
    """Returns a block of a tensor in a dtype with which NumPy can compute; None if there is no such dtype."""
    if dtype == "bfloat16":
        return (block.astype(np.uint32) << 16).view(np.float32)
    if dtype not in HOST and dtype not in ("complex128", "longdouble"):
        return None
    return block.view(np.uint8) != 0 if dtype == "bool" else block
