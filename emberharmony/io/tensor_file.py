"""`io.open`: the tensors of a safetensors file, read one by one.

NumPy 2.4 does not hold the buffer of an `mmap` while an array uses it, so `mmap.close` would end the process at the
next read: the map is never closed, only dropped. It is `ACCESS_COPY`, since of a read-only one `ops.convert_to_tensor`
makes a copy on PyTorch.
"""

import builtins
import mmap as maps
import os
import stat
import threading
from collections.abc import Iterator, Mapping
from typing import Any, BinaryIO

import numpy as np

from emberharmony.core.errors import MissingFileError, StateDictError, WeightFileError, suggest
from emberharmony.io.header import Fault, Header, TensorInfo, raise_fault, read_header
from emberharmony.io.tensors import as_array, as_tensor
from emberharmony.io.ties import tied_infos

Path = str | os.PathLike[str]


def open_file(path: str) -> tuple[BinaryIO, int]:
    """Opens a regular file for reading, and returns the stream and the size of the file in bytes.

    Raises:
        WeightFileError: if it is no regular file, or cannot be read.
    """
    try:
        is_file = stat.S_ISREG(os.stat(path).st_mode)  # opening a named pipe would block
        stream = builtins.open(path, "rb") if is_file else None  # noqa: SIM115  (the caller closes it)
    except FileNotFoundError as error:
        folder, file_name = os.path.split(path)
        folder_exists = os.path.isdir(folder or ".")
        hint = _hint_at_file(file_name, folder or ".") if folder_exists else f"; there is no folder {folder}"
        if "://" in os.fsdecode(path):
            hint = "; it is an address: download the file first"
        elif os.fsdecode(path).startswith("~"):
            hint = "; Python does not know ~ in a path: use os.path.expanduser(path)"
        raise MissingFileError("missing", path, f"does not exist{hint}") from error
    except (OSError, ValueError) as error:  # ValueError: the name has a null character
        raise WeightFileError("unreadable", path, f"cannot be read: {error}") from error
    if stream is None:
        raise WeightFileError("file", path, "is no regular file")
    return stream, os.fstat(stream.fileno()).st_size


def _hint_at_file(name: str, folder: str) -> str:
    """Returns the hint for a missing file: a similar file name in the folder, or the name of the folder."""
    file_names = os.listdir(folder)
    names_of_stem = [file_name for file_name in file_names if os.path.splitext(file_name)[0] == name]
    hint = f"; did you mean {names_of_stem[0]!r}?" if names_of_stem else suggest(name, file_names)
    return (
        hint or f"; the folder is {os.path.abspath(folder)}, and has {', '.join(sorted(file_names)[:5]) or 'no file'}"
    )


def header_of(path: str, report_fault: Fault = raise_fault) -> Header:
    """Returns the checked header of a safetensors file, in which tied tensors have all their names.

    Args:
        path: the file.
        report_fault: what is called for a fault after which the check can go on; by default the fault is raised.

    Raises:
        WeightFileError: if the file is not as the format demands.
    """
    stream, size = open_file(path)
    with stream:
        header = read_header(stream, path, size, report_fault)
    return header._replace(tensors=header.tensors | tied_infos(header, path))


class TensorFile(Mapping[str, Any]):
    """The tensors of a safetensors file by name, as tensors of the active backend; `io.open` returns it.

    The header has been checked completely. A tensor is made when it is read. With `mmap=True` NumPy's and PyTorch's
    tensors share the pages of the file, privately: writing into one changes neither the file nor a tensor that is read
    later on MLX. The tensors stay valid after `close`.

    Attributes:
        path: the name of the file.

    Args:
        mmap: whether the file is mapped into memory, so that tensors are read page by page; else they are read whole.
    """

    def __init__(self, path: Path, *, mmap: bool = True) -> None:
        self.path = os.fspath(path)
        self._lock = threading.Lock()
        self._map: maps.mmap | None = None
        self._stream, size = open_file(self.path)
        try:
            self._header = read_header(self._stream, self.path, size)
            self._tensors = self._header.tensors | tied_infos(self._header, self.path)
            if mmap:
                self._map = maps.mmap(self._stream.fileno(), size, access=maps.ACCESS_COPY)
                self._stream.close()
        except (OSError, ValueError) as error:
            self._stream.close()
            if isinstance(error, WeightFileError):
                raise
            raise WeightFileError("unreadable", self.path, f"cannot be mapped into memory: {error}") from error
        except BaseException:
            self._stream.close()
            raise
        self._closed = False

    @property
    def metadata(self) -> dict[str, str]:
        """The strings that were saved beside the tensors."""
        return dict(self._header.metadata)

    def info(self, name: str) -> TensorInfo:
        """Returns dtype, shape and size of a tensor without reading it.

        Args:
            name: the name of a tensor in the file.

        Raises:
            StateDictError: if the file has no tensor of that name.
        """
        info = self._tensors.get(name)
        if info is None:
            raise StateDictError(f"{self.path} has no tensor {name!r}{suggest(str(name), self._tensors)}")
        return info

    def __getitem__(self, name: str) -> Any:
        info = self._tensors.get(name) or self.info(name)
        return as_tensor(self.part(name, info), info.dtype, self.path, name)

    @property
    def has_ties(self) -> bool:
        """Whether a tensor has several names."""
        return len(self._tensors) > len(self._header.tensors)

    def __iter__(self) -> Iterator[str]:
        return iter(self._tensors)

    def __len__(self) -> int:
        return len(self._tensors)

    def __contains__(self, name: object) -> bool:
        return name in self._tensors

    def __repr__(self) -> str:
        return f"<{type(self).__name__} {self.path!r}: {len(self)} tensors>"

    def slice(self, name: str) -> "TensorSlice":
        """Returns a view of a tensor that is read only where it is indexed: `file.slice("weight")[:10, 3]`.

        Only the pages of the file that hold the slice are read. With `mmap=False` the whole tensor is read.

        Args:
            name: the name of a tensor in the file.

        Raises:
            StateDictError: if the file has no tensor of that name.
        """
        self.info(name)
        return TensorSlice(self, name)

    def raw(self, name: str) -> Any:
        """Returns the bytes of a tensor, of any dtype of the format, as a tensor of dtype uint8 with one axis.

        Args:
            name: the name of a tensor in the file.

        Raises:
            StateDictError: if the file has no tensor of that name.
        """
        info = self.info(name)
        return as_tensor(self.part(name, TensorInfo("uint8", (info.nbytes,), *info[2:])), "uint8", self.path, name)

    def close(self) -> None:
        """Closes the file; tensors that were read stay valid."""
        self._closed = True
        self._stream.close()
        # Arrays that were read use the mapped memory, so the map is not closed, but freed with the last of them.
        self._map = None

    def __enter__(self) -> "TensorFile":
        return self

    def __exit__(self, *raised: object) -> None:
        self.close()

    def _array(self, name: str) -> np.ndarray[Any, Any]:
        return self.part(name, self.info(name))

    def part(self, name: str, info: TensorInfo) -> np.ndarray[Any, Any]:
        """Returns a byte range of the file as a NumPy array of the described dtype and shape; bfloat16 as uint16.

        Args:
            name: the tensor, for messages.
            info: the dtype, the shape and the place of the bytes in the file.

        Raises:
            WeightFileError: if the file is closed, or has lost the bytes.
        """
        if self._closed:
            raise WeightFileError("closed", self.path, "is closed", name, "read tensors before the end of the block")
        if self._map is not None:
            return as_array(self._map, info.start, info, self.path, name)
        bytes_of_tensor = np.empty(info.nbytes, np.uint8)
        with self._lock:
            self._stream.seek(info.start)
            read_byte_count = self._stream.readinto(bytes_of_tensor.data) if info.nbytes else 0  # type: ignore[attr-defined]
        if read_byte_count != info.nbytes:
            raise WeightFileError(
                "truncated", self.path, f"has lost bytes since it was opened: {read_byte_count} left", name
            )
        return as_array(bytes_of_tensor, 0, info, self.path, name)


class TensorSlice:
    """A tensor in a file that is read where it is indexed, as NumPy indexes with integers, slices and `...`."""

    def __init__(self, file: TensorFile, name: str) -> None:
        self._file, self._name = file, name

    @property
    def shape(self) -> tuple[int, ...]:
        """The shape of the whole tensor."""
        return self._file.info(self._name).shape

    def __getitem__(self, index: Any) -> Any:
        selected_elements = np.asarray(self._file._array(self._name)[index])
        info = self._file.info(self._name)
        return as_tensor(np.array(selected_elements, order="C"), info.dtype, self._file.path, self._name)


def open(path: Path, *, mmap: bool = True) -> TensorFile:
    """Returns the tensors of a safetensors file as a mapping; no tensor is read yet.

    Args:
        path: a safetensors file.
        mmap: whether to map the file into memory. Opening then takes a millisecond for files of any size, and tensors
            of NumPy and PyTorch need no copy. A program that shortens the file meanwhile ends this process (SIGBUS), so
            give False for files that others write in place; `io.save` never does so.

    Raises:
        WeightFileError: if the file is damaged, or no safetensors file.

    Example:
        >>> import tempfile
        >>> from emberharmony import io, ops
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     _ = io.save({"weight": ops.array([[1.0, 2.0]])}, f"{folder}/model.safetensors")
        ...     with io.open(f"{folder}/model.safetensors", mmap=False) as file:
        ...         file.info("weight").shape, ops.sum(file["weight"]).tolist()
        ((1, 2), 3.0)
    """
    return TensorFile(path, mmap=mmap)
