"""`io.check`: a report on files of tensors, of which only the headers are read."""

import os
from dataclasses import dataclass, field

from emberharmony.core.errors import WeightFileError
from emberharmony.io.archives import Archive
from emberharmony.io.header import NAMES, Fault, Header, TensorInfo
from emberharmony.io.index import INDEX, checked_shard_headers, distinct_byte_count
from emberharmony.io.loading import OF_TORCH, file_of_path
from emberharmony.io.sources import source
from emberharmony.io.tensor_file import header_of

MOST_FAULTS = 1000
"""The number of faults after which a check ends."""

_SHOWN = 20
"""The number of tensors that a notebook shows."""


@dataclass(frozen=True)
class Report:
    """The report of `io.check` on a file: its tensors, its metadata, and the faults and warnings.

    Attributes:
        path: the file that was checked.
        error: what is wrong, or None; if there are several faults, the first.
        tensors: the description of each tensor, by name.
        metadata: the strings that were saved beside the tensors.
        warnings: what is allowed but unusual: unknown fields, dtypes that no backend has, tensors that must be copied.
        errors: all faults, in the order of the file.
        nbytes: the bytes of the tensors; those of tied ones are counted once.
    """

    path: str
    error: WeightFileError | None = None
    tensors: dict[str, TensorInfo] = field(default_factory=dict)
    metadata: dict[str, str] = field(default_factory=dict)
    warnings: tuple[str, ...] = ()
    errors: tuple[WeightFileError, ...] = ()
    nbytes: int = 0

    @property
    def ok(self) -> bool:
        """Whether the check found no fault."""
        return self.error is None

    def _repr_html_(self) -> str:
        """Returns what notebooks show: the verdict, and the largest tensors."""
        from emberharmony.core.display.html import html_table  # imported here, because only notebooks need it

        largest_tensors = sorted(self.tensors.items(), key=lambda item: -item[1].nbytes)[:_SHOWN]
        rows = [(name, info.dtype, str(info.shape), f"{info.nbytes:,}") for name, info in largest_tensors]
        left_out_count = len(self.tensors) - len(rows)
        note = f"and {left_out_count} smaller tensors" if left_out_count else ""
        return html_table(str(self), ("name", "dtype", "shape", "bytes"), rows, left=3, notes=note)

    def __str__(self) -> str:
        if self.error is not None:
            more_text = f" (and {len(self.errors) - 1} more faults)" if len(self.errors) > 1 else ""
            return f"damaged: {self.error}{more_text}"
        first_line = f"{self.path}: {len(self.tensors)} tensors, {self.nbytes:,} bytes, correct"
        return "\n  ".join([first_line, *(f"warning: {warning}" for warning in self.warnings)])


def check(path: str | os.PathLike[str]) -> Report:
    """Returns a report on a file, a folder or an index of shards, of any kind that `io.load` reads.

    No tensor is read; of a `.pth` file PyTorch reads all. A fault does not raise. The report has every fault of the
    entries of a header, of the places of its tensors, and of the files of an index.

    Args:
        path: a file, a folder, or an index of shards.

    Example:
        >>> import pathlib, tempfile
        >>> from emberharmony import io, ops
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     file = pathlib.Path(folder, "a.safetensors")
        ...     _ = io.save({"w": ops.array([1.0])}, file)
        ...     good = io.check(file).ok
        ...     _ = file.write_bytes(file.read_bytes()[:-1])
        ...     good, io.check(file).error.kind
        (True, 'truncated')
    """
    file_path = os.fspath(path)
    errors: list[WeightFileError] = []

    def collect_fault(error: WeightFileError) -> None:
        if len(errors) >= MOST_FAULTS:
            raise error
        errors.append(error)

    headers: list[Header] = []
    info_by_name: dict[str, TensorInfo] = {}
    nbytes = 0
    try:
        file_path = file_of_path(path)
        if file_path.endswith(INDEX):
            headers = [*checked_shard_headers(file_path, collect_fault).values()]
        elif file_path.endswith(".npz"):
            info_by_name = _array_descriptions(file_path, collect_fault)
            nbytes = sum(info.nbytes for info in info_by_name.values())
        elif file_path.endswith(OF_TORCH):
            tensor_source = source(file_path)
            info_by_name = tensor_source.tensors
            nbytes = sum({tensor_source.memory_key(name): info.nbytes for name, info in info_by_name.items()}.values())
        else:
            headers = [header_of(file_path, collect_fault)]
    except WeightFileError as error:
        if error not in errors:
            errors.append(error)
    if errors:
        return Report(file_path, errors[0], errors=tuple(errors))
    for header in headers:
        info_by_name |= header.tensors
        nbytes += distinct_byte_count(header.tensors)
    metadata = headers[0].metadata if len(headers) == 1 and not file_path.endswith(INDEX) else {}
    warnings = tuple(warning for header in headers for warning in _header_warnings(header))
    return Report(file_path, None, info_by_name, metadata, warnings, (), nbytes)


def _array_descriptions(path: str, report_fault: Fault) -> dict[str, TensorInfo]:
    """Returns the descriptions of the arrays of an `.npz` file."""
    info_by_name: dict[str, TensorInfo] = {}
    with Archive(path) as archive:
        for name in archive.members:
            try:
                info_by_name[name] = archive.info(name)
            except WeightFileError as error:
                report_fault(error)
    return info_by_name


def _header_warnings(header: Header) -> list[str]:
    dtype_names = set(NAMES.values())
    foreign_dtypes = sorted({info.dtype for info in header.tensors.values()} - dtype_names)
    warning_texts = [f"field {name} is unknown and ignored" for name in header.unknown[:20]]
    warning_texts += [f"no backend has dtype {dtype}: only raw() reads it" for dtype in foreign_dtypes]
    if any(info.start % 8 and info.nbytes for info in header.tensors.values() if info.dtype in ("float64", "int64")):
        warning_texts.append("tensors do not begin at multiples of 8 bytes, so they are copied when they are read")
    return warning_texts
