"""The header of a safetensors file, checked completely before a byte of any tensor is used.

Against the package 0.8 these headers are refused: white space before the header, names that occur twice, also of
metadata and of unknown fields, entries that are lists, false metadata of ties, and, to bound the memory, entries of
more than 1 MB or 131,072 values, metadata of as many values, white space of more than 1 MB before an entry, and nesting
beyond 64 levels. Numbers beyond float64 in unknown fields are read. Unknown fields are ignored, for later versions of
the format.

Source: the description of the format in the README of https://github.com/huggingface/safetensors.
"""

from collections.abc import Callable
from typing import Any, BinaryIO, NamedTuple

from emberharmony.core.errors import WeightFileError, brief
from emberharmony.core.state.collector import PausedCollector
from emberharmony.io.parsing import LARGEST_HEADER, dict_of_strings, dict_of_unique_names, pair_batches, text_of

BITS = {
    "BOOL": 8,
    "U8": 8,
    "I8": 8,
    "U16": 16,
    "I16": 16,
    "U32": 32,
    "I32": 32,
    "U64": 64,
    "I64": 64,
    "F16": 16,
    "BF16": 16,
    "F32": 32,
    "F64": 64,
    "C64": 64,
    "F8_E4M3": 8,
    "F8_E5M2": 8,
    "F8_E8M0": 8,
    "F8_E4M3FNUZ": 8,
    "F8_E5M2FNUZ": 8,
    "F4": 4,
    "F6_E2M3": 6,
    "F6_E3M2": 6,
}
"""The bits of an element of each dtype of the format."""

NAMES = {
    "BOOL": "bool",
    "U8": "uint8",
    "I8": "int8",
    "U16": "uint16",
    "I16": "int16",
    "U32": "uint32",
    "I32": "int32",
    "U64": "uint64",
    "I64": "int64",
    "F16": "float16",
    "BF16": "bfloat16",
    "F32": "float32",
    "F64": "float64",
    "C64": "complex64",
}
"""The dtypes of the format that the backends have, with their neutral names."""

_LIMIT = 2**64
_new = tuple.__new__
_STARTS = (
    (b"version https://git-lfs", "a Git LFS pointer, not the file itself: fetch it with `git lfs pull`"),
    (b"<!doctype", "an HTML page, perhaps of a failed download: download the file again"),
    (b"<html", "an HTML page, perhaps of a failed download: download the file again"),
    (b"PK\x03\x04", "a zip archive: if it is an .npz or .pth file, give it that ending and use io.load"),
    (b"PK\x05\x06", "an empty zip archive"),
    (b"\x93NUMPY", "an .npy file: read it with numpy.load"),
    (b"\x89HDF", "an HDF5 file: read it with h5py"),
    (b"GGUF", "a GGUF file"),
    (b"\x1f\x8b", "a gzip archive: unpack it first"),
    (b"{", "JSON text: an index of shards ends with .safetensors.index.json"),
)


_DAMAGED = "the file is cut off, or another kind of file: download or save it again"


class TensorInfo(NamedTuple):
    """The description of one tensor in a file.

    Attributes:
        dtype: the name of the dtype, "float32"; that of the format ("F8_E4M3") if no backend has the dtype.
        shape: the lengths of its axes.
        nbytes: its size in bytes.
        start: the place of its first byte in the file.
    """

    dtype: str
    shape: tuple[int, ...]
    nbytes: int
    start: int


class Header(NamedTuple):
    """The content of a file's header: its tensors, its metadata and unknown fields.

    Attributes:
        tensors: the description of each tensor, by name.
        metadata: the strings of `__metadata__`.
        unknown: the fields of entries that the format does not have, which are ignored.
        size: the size of the file in bytes.
    """

    tensors: dict[str, TensorInfo]
    metadata: dict[str, str]
    unknown: list[str]
    size: int


Fault = Callable[[WeightFileError], None]
"""A function that is called with each fault, an error that it may raise or collect."""


def raise_fault(error: WeightFileError) -> None:
    """Raises the given error: the default handler of faults, with which a check ends at the first fault.

    Raises:
        WeightFileError: always.
    """
    raise error


def read_header(stream: BinaryIO, path: str, size: int, report_fault: Fault = raise_fault) -> Header:
    """Returns the checked header of a file.

    The header is read in pieces, so that it takes no more memory than its bytes, what it describes, and one piece.

    Args:
        stream: the file, at its beginning.
        path: its name, for messages.
        size: its size in bytes.
        report_fault: what is called for a fault after which the check can go on; by default the fault is raised.

    Raises:
        WeightFileError: if the file is not as the format demands.
    """
    first_bytes, header_bytes = stream.read(8), b""
    try:
        if len(first_bytes) < 8:
            raise WeightFileError(
                "header_size", path, f"has {len(first_bytes)} bytes, a safetensors file has at least 10"
            )
        header_length = int.from_bytes(first_bytes, "little")
        if header_length > min(LARGEST_HEADER, size - 8):
            header_bytes = stream.read(512)
        if header_length > LARGEST_HEADER:
            raise WeightFileError(
                "header_size", path, f"its header would have {header_length} bytes, allowed are 100,000,000"
            )
        if header_length > size - 8:
            raise WeightFileError(
                "header_size", path, f"its header would have {header_length} bytes, the file has {size}"
            )
        header_bytes = stream.read(header_length)
        if len(header_bytes) < header_length:
            raise WeightFileError(
                "truncated", path, f"its header has {header_length} bytes, of which {len(header_bytes)} could be read"
            )
        with PausedCollector():  # 100,000 tuples without cycles need no collection
            return _checked_header(header_bytes, path, 8 + header_length, size, report_fault)
    except WeightFileError as error:
        is_header_fault = error.kind.startswith("header")
        if error.hint or not (is_header_fault or error.kind == "truncated"):
            raise
        hint = (hint_of_other_format(first_bytes + header_bytes[:512]) if is_header_fault else "") or _DAMAGED
        raise WeightFileError(error.kind, path, error.reason, error.tensor, hint) from error.__cause__


def hint_of_other_format(start: bytes) -> str:
    """Returns a hint for a file of another format, recognized by its first bytes; an empty string if unknown."""
    stripped_start = start.lstrip()
    for first_bytes, hint in _STARTS:
        if stripped_start[: len(first_bytes)].lower() == first_bytes.lower():
            return f"the file is {hint}"
    if start[:1] == b"\x80" and start[1:2] in (b"\x02", b"\x03", b"\x04", b"\x05"):
        return "the file is a pickle, which could run any program: convert it where you trust it"
    return "" if start.strip(b"\0") or not start else "the file holds zeros: download or save it again"


def _checked_header(header_bytes: bytes, path: str, start: int, size: int, report_fault: Fault) -> Header:
    """Parses the JSON of a header, and returns it after checks of names, dtypes, shapes and byte ranges.

    Args:
        header_bytes: its JSON.
        path: the file.
        start: where the bytes of the tensors begin.
        size: the size of the file.
        report_fault: what is called for a fault.
    """
    metadata: dict[str, str] | None = None
    info_by_name: dict[str, TensorInfo] = {}
    unknown_fields: list[str] = []
    faults: list[WeightFileError] = []
    for pairs in pair_batches(header_bytes, path):
        for name, entry in pairs:
            try:
                if name in info_by_name or (name == "__metadata__" and metadata is not None):
                    raise WeightFileError("duplicate", path, f"the header has the name {brief(name)} twice", None)
                if name == "__metadata__":
                    metadata = {}
                    metadata = dict_of_strings(entry, path, "__metadata__") if entry is not None else {}
                else:
                    info_by_name[name] = _info_of_entry(name, entry, path, start, unknown_fields)
            except WeightFileError as error:
                report_fault(error)
                faults.append(error)
    if not faults:  # faulty tensors are missing, which would look like holes
        _require_cover(info_by_name, path, start, size, report_fault)
    return Header(info_by_name, metadata or {}, unknown_fields, size)


def _info_of_entry(name: str, entry: Any, path: str, start: int, unknown_fields: list[str]) -> TensorInfo:
    """Returns the description of a tensor from its checked entry in the JSON of a header."""
    try:
        # All known writers use this order of fields; unpacking it is faster than making a dict.
        (first_key, tag), (second_key, shape), (third_key, offsets) = entry
        has_usual_order = (first_key, second_key, third_key) == (
            "dtype",
            "shape",
            "data_offsets",
        ) and entry.__class__ is tuple
    except (TypeError, ValueError):
        has_usual_order = False
    if not has_usual_order:
        tag, shape, offsets = _entry_fields(name, entry, path, unknown_fields)
    if tag.__class__ is not str or tag not in BITS:
        raise WeightFileError("dtype", path, f"has dtype {text_of(tag)}, which the format does not have", name)
    if offsets.__class__ is not list or len(offsets) != 2:
        raise WeightFileError("offsets", path, f"data_offsets must be two integers, not {text_of(offsets)}", name)
    begin, end = offsets
    if begin.__class__ is not int or end.__class__ is not int or not 0 <= begin <= end < _LIMIT:
        raise WeightFileError("offsets", path, f"data_offsets {text_of(offsets)} are no begin and end", name)
    nbytes = _tensor_byte_count(shape, tag, path, name)
    if nbytes != end - begin:
        size_text = f"shape {text_of(shape)} of {tag} takes {nbytes} bytes, data_offsets hold {end - begin}"
        raise WeightFileError("offsets", path, size_text, name)
    return _new(TensorInfo, (NAMES.get(tag, tag), tuple(shape), nbytes, start + begin))


def _entry_fields(name: str, entry: Any, path: str, unknown_fields: list[str]) -> tuple[Any, Any, Any]:
    """Returns the fields dtype, shape and data_offsets of an entry, which may have any order there."""
    field_by_name = dict_of_unique_names(entry, path, "its entry", "entry", name)
    try:
        dtype_shape_offsets = field_by_name["dtype"], field_by_name["shape"], field_by_name["data_offsets"]
    except KeyError as error:
        raise WeightFileError("entry", path, f"its entry lacks {error}", name) from None
    if len(field_by_name) != 3 and len(unknown_fields) < 20:
        unknown_fields += [
            f"{name}.{field}" for field in field_by_name if field not in ("dtype", "shape", "data_offsets")
        ]
    return dtype_shape_offsets


def _tensor_byte_count(shape: Any, tag: str, path: str, name: str) -> int:
    """Returns the number of bytes of a tensor by its shape and dtype, after a check of both."""
    if shape.__class__ is not list:
        raise WeightFileError("shape", path, f"its shape must be a list of integers, not {text_of(shape)}", name)
    element_count = 1
    for length in shape:
        if length.__class__ is not int or not 0 <= length < _LIMIT:
            raise WeightFileError("shape", path, f"its shape {text_of(shape)} is no list of lengths", name)
        element_count *= length
        if element_count >= _LIMIT:
            raise WeightFileError("overflow", path, f"shape {text_of(shape)} has more than 2**64 elements", name)
    bit_count = element_count * BITS[tag]
    if bit_count >= _LIMIT:
        raise WeightFileError("overflow", path, f"shape {text_of(shape)} of {tag} has more than 2**64 bits", name)
    if bit_count % 8:
        raise WeightFileError("shape", path, f"has {bit_count} bits of {tag}, which are no whole bytes", name)
    return bit_count // 8


def _require_cover(tensors: dict[str, TensorInfo], path: str, start: int, size: int, report_fault: Fault) -> None:
    """Checks that tensors follow each other without overlap or hole, up to the last byte of the file."""
    covered_end = start
    for info in tensors.values():
        if info.start != covered_end:
            break
        covered_end += info.nbytes
    else:
        if covered_end == size:
            return
    covered_end = start
    for name, info in sorted(tensors.items(), key=lambda item: (item[1].start, item[1].nbytes)):
        begin, end = info.start, info.start + info.nbytes
        if end > size:
            shortfall_text = f"ends at byte {end - start} of the data, of which the file has {size - start}"
            report_fault(
                WeightFileError("truncated", path, shortfall_text, name, "the file was cut: download or save it again")
            )
        elif begin != covered_end:
            fault_kind, fault_text = (
                ("overlap", "overlaps the one before") if begin < covered_end else ("hole", "leaves a hole")
            )
            location_text = (
                f"begins at byte {begin - start} of the data, expected {covered_end - start}: it {fault_text}"
            )
            report_fault(WeightFileError(fault_kind, path, location_text, name))
        covered_end = max(covered_end, end)
    if covered_end < size:
        report_fault(WeightFileError("hole", path, f"its last {size - covered_end} bytes belong to no tensor"))
