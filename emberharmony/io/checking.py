"""`io.check`: a report on files of tensors, of which only the headers are read."""

import os
from dataclasses import dataclass, field

from emberharmony.core.errors import WeightFileError
from emberharmony.io.header import NAMES, Header, TensorInfo
from emberharmony.io.index import INDEX, checked_index
from emberharmony.io.loading import in_folder
from emberharmony.io.tensor_file import header_of


@dataclass(frozen=True)
class Report:
    """What `io.check` has found.

    Attributes:
        path: the file that was checked.
        error: what is wrong, or None.
        tensors: the description of each tensor, by name.
        metadata: the strings that were saved beside the tensors.
        warnings: what is allowed but unusual: unknown fields, dtypes that no backend has, tensors that must be copied.
    """

    path: str
    error: WeightFileError | None = None
    tensors: dict[str, TensorInfo] = field(default_factory=dict)
    metadata: dict[str, str] = field(default_factory=dict)
    warnings: tuple[str, ...] = ()

    @property
    def ok(self) -> bool:
        """Whether nothing is wrong."""
        return self.error is None

    def __str__(self) -> str:
        if self.error is not None:
            return f"damaged: {self.error}"
        size = sum({(info.start, info.nbytes): info.nbytes for info in self.tensors.values()}.values())
        first = f"{self.path}: {len(self.tensors)} tensors, {size:,} bytes, correct"
        return "\n  ".join([first, *(f"warning: {warning}" for warning in self.warnings)])


def check(path: str | os.PathLike[str]) -> Report:
    """Returns a report on a safetensors file, a folder or an index of shards; no tensor is read.

    A fault does not raise, it is in the report.

    Example:
        >>> import pathlib, tempfile
        >>> from emberharmony import io, ops
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     file = pathlib.Path(folder, "a.safetensors")
        ...     _ = io.save(file, {"w": ops.array([1.0])})
        ...     good = io.check(file).ok
        ...     _ = file.write_bytes(file.read_bytes()[:-1])
        ...     good, io.check(file).error.kind
        (True, 'truncated')
    """
    place = os.fspath(path)
    try:
        if os.path.isdir(place):
            place = in_folder(place)
        if place.endswith(INDEX):
            shards = checked_index(place)
            tensors = {name: info for held in shards.values() for name, info in held.items()}
            return Report(place, None, tensors, {}, tuple(w for shard in shards for w in _warnings(header_of(shard))))
        header = header_of(place)
        return Report(place, None, header.tensors, header.metadata, tuple(_warnings(header)))
    except WeightFileError as error:
        return Report(place, error)


def _warnings(header: Header) -> list[str]:
    known = set(NAMES.values())
    foreign = sorted({info.dtype for info in header.tensors.values()} - known)
    found = [f"field {name} is unknown and ignored" for name in header.unknown[:20]]
    found += [f"no backend has dtype {dtype}: only raw() reads it" for dtype in foreign]
    if any(info.start % 8 and info.nbytes for info in header.tensors.values() if info.dtype in ("float64", "int64")):
        found.append("tensors do not begin at multiples of 8 bytes, so they are copied when they are read")
    return found
