"""The header of a safetensors file, checked completely before a byte of any tensor is used.

Source: the description of the format in the README of https://github.com/huggingface/safetensors.
"""

import json
import re
from typing import Any, BinaryIO, NamedTuple, NoReturn

import numpy as np

from emberharmony.core.errors import WeightFileError, brief
from emberharmony.core.state.collector import PausedCollector

LARGEST_HEADER = 100_000_000
"""The largest header in bytes that the reference implementation reads."""

DEEPEST = 64
"""The deepest nesting in a header; 3 levels are used, and unknown fields may have more."""

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
_BRACKETS = bytes(set(range(256)) - set(b'[]{}"\\'))
_STEPS = np.zeros(256, np.int64)
_STEPS[[ord("["), ord("{")]] = 1
_STEPS[[ord("]"), ord("}")]] = -1
_STRING = re.compile(rb'"[^"]*"')
_DIGITS = bytes(ord("0") if byte in b"0123456789" else byte for byte in range(256))
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


class TensorInfo(NamedTuple):
    """The description of one tensor in a file.

    Attributes:
        dtype: the name of the dtype, "float32"; that of the format ("F8_E4M3") if no backend has the dtype.
        shape: its shape.
        nbytes: its size in bytes.
        start: the place of its first byte in the file.
    """

    dtype: str
    shape: tuple[int, ...]
    nbytes: int
    start: int


class Header(NamedTuple):
    """The content of a header.

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


def read_header(stream: BinaryIO, path: str, size: int) -> Header:
    """Returns the checked header of a file.

    Args:
        stream: the file, at its beginning.
        path: its name, for messages.
        size: its size in bytes.

    Raises:
        WeightFileError: if the file is not as the format demands.
    """
    first, raw = stream.read(8), b""
    try:
        if len(first) < 8:
            raise WeightFileError("header_size", path, f"has {len(first)} bytes, a safetensors file has at least 10")
        length = int.from_bytes(first, "little")
        if length > min(LARGEST_HEADER, size - 8):
            raw = stream.read(512)
        if length > LARGEST_HEADER:
            raise WeightFileError("header_size", path, f"its header would have {length} bytes, allowed are 100,000,000")
        if length > size - 8:
            raise WeightFileError("header_size", path, f"its header would have {length} bytes, the file has {size}")
        raw = stream.read(length)
        if len(raw) < length:
            raise WeightFileError(
                "truncated", path, f"its header has {length} bytes, of which {len(raw)} could be read"
            )
        with PausedCollector():  # it would look for cycles in 100,000 tuples, which have none
            return _checked(_pairs(raw, path), path, 8 + length, size)
    except WeightFileError as error:
        hint = recognized(first + raw[:512]) if error.kind.startswith("header") else ""
        if not hint:
            raise
        raise WeightFileError(error.kind, path, error.reason, None, hint) from error.__cause__


def recognized(start: bytes) -> str:
    """Returns what another kind of file is and the way out, from its first bytes, or an empty string."""
    text = start.lstrip()
    for mark, hint in _STARTS:
        if text[: len(mark)].lower() == mark.lower():
            return f"the file is {hint}"
    if start[:1] == b"\x80" and start[1:2] in (b"\x02", b"\x03", b"\x04", b"\x05"):
        return "the file is a pickle, which could run any program: convert it where you trust it"
    return "" if start.strip(b"\0") or not start else "the file holds zeros: download or save it again"


def _pairs(raw: bytes, path: str) -> tuple[Any, ...]:
    """Returns the JSON of a header; an object is a tuple of pairs, so that duplicate names remain visible."""
    if raw[:1] != b"{":
        raise WeightFileError("header_json", path, f"its header begins with {raw[:1]!r}, expected b'{{'")
    try:
        text = raw.decode("utf-8")
    except UnicodeDecodeError as error:
        raise WeightFileError("header_utf8", path, f"its header is no UTF-8: {error.reason} at {error.start}") from None
    found = parsed(text, raw, path)
    assert type(found) is tuple
    return found


def parsed(text: str, raw: bytes, path: str, kind: str = "header_json") -> Any:
    """Returns the value of JSON text, whose objects become tuples of pairs.

    Args:
        text: the text.
        raw: the same as bytes.
        path: the file, for messages.
        kind: the kind of the error.

    Raises:
        WeightFileError: if the text is no JSON, or is nested too deeply.
    """
    # `json` recurses, so the nesting is bounded first.
    marks = raw.translate(None, _BRACKETS)
    if b"\\" in marks:
        marks = raw.replace(b"\\\\", b"").replace(b'\\"', b"").translate(None, _BRACKETS)
    if b'"' in marks.replace(b'""', b""):
        marks = _STRING.sub(b"", marks)
    depth = 0
    for start in range(0, len(marks), 1 << 16):
        part = np.frombuffer(marks, np.uint8, min(1 << 16, len(marks) - start), start)
        levels = depth + np.cumsum(_STEPS[part])
        if levels.max() > DEEPEST:
            raise WeightFileError(kind, path, f"its JSON is nested more than {DEEPEST} deep, a header has 3 levels")
        depth = int(levels[-1])
    # A name may contain such characters too, which only means that the slower function reads the numbers.
    decoder = _CAREFUL if b"-" in raw or b"0" * 20 in raw.translate(_DIGITS) else _DECODER
    try:
        found = decoder.decode(text)
        if "\\u" in text:
            json.dumps(found, ensure_ascii=False).encode()
    except json.JSONDecodeError as error:
        raise WeightFileError(kind, path, f"its header is no JSON: {error.msg} at character {error.pos}") from None
    except UnicodeEncodeError:
        raise WeightFileError(kind, path, "its JSON has half of a surrogate pair, which is no character") from None
    except (ValueError, RecursionError) as error:
        raise WeightFileError(kind, path, f"its header is no JSON: {error}") from None
    return found


def _real(text: str) -> float:
    """Returns a fraction in the place of any number with a point: no field takes one, so its digits are not read."""
    return -0.5


def _integer(text: str) -> int:
    """Returns an integer; -1 for one that is negative (-0 too) or beyond 64 bits, which no field takes either."""
    return int(text) if len(text) <= 20 and text[0] != "-" else -1


def _no_number(text: str) -> NoReturn:
    raise ValueError(f"{text} is no number of JSON")


_DECODER = json.JSONDecoder(object_pairs_hook=tuple, parse_float=_real, parse_constant=_no_number)
_CAREFUL = json.JSONDecoder(object_pairs_hook=tuple, parse_float=_real, parse_constant=_no_number, parse_int=_integer)


def unique(pairs: Any, path: str, place: str, kind: str, tensor: str | None = None) -> dict[str, Any]:
    """Returns the pairs of a JSON object as a dict.

    Raises:
        WeightFileError: of the given kind, if it is no object; of the kind "duplicate", if a name occurs twice.
    """
    if pairs.__class__ is not tuple:
        raise WeightFileError(kind, path, f"{place} must be a JSON object, not {_shown(pairs)}", tensor)
    found = dict(pairs)
    if len(found) != len(pairs):
        seen: set[str] = set()
        twice = next(name for name, _ in pairs if name in seen or seen.add(name))  # type: ignore[func-returns-value]
        raise WeightFileError("duplicate", path, f"{place} has the name {brief(twice)} twice", tensor)
    return found


def strings(pairs: Any, path: str, place: str) -> dict[str, str]:
    """Returns a JSON object whose values are strings as a dict.

    Raises:
        WeightFileError: if it is another value.
    """
    found = unique(pairs, path, place, "metadata")
    for name, value in found.items():
        if value.__class__ is not str:
            raise WeightFileError("metadata", path, f"{place} must hold strings, {brief(name)} is {_shown(value)}")
    return found


def _checked(pairs: tuple[Any, ...], path: str, start: int, size: int) -> Header:
    """Returns a header whose names, dtypes, shapes and places have been checked.

    Args:
        pairs: its JSON.
        path: the file.
        start: where the bytes of the tensors begin.
        size: the size of the file.
    """
    entries = unique(pairs, path, "the header", "header_type")
    metadata = entries.pop("__metadata__", None)
    held = {} if metadata is None else strings(metadata, path, "__metadata__")
    tensors: dict[str, TensorInfo] = {}
    unknown: list[str] = []
    places: list[tuple[int, int, str]] = []
    for name, entry in entries.items():
        fields = unique(entry, path, "its entry", "entry", name)
        if len(fields) != 3:
            unknown += [f"{name}.{field}" for field in fields if field not in ("dtype", "shape", "data_offsets")]
        try:
            tag, shape, offsets = fields["dtype"], fields["shape"], fields["data_offsets"]
        except KeyError as error:
            raise WeightFileError("entry", path, f"its entry lacks {error}", name) from None
        if tag.__class__ is not str or tag not in BITS:
            raise WeightFileError("dtype", path, f"has dtype {_shown(tag)}, which the format does not have", name)
        if offsets.__class__ is not list or len(offsets) != 2:
            raise WeightFileError("offsets", path, f"data_offsets must be two integers, not {_shown(offsets)}", name)
        begin, end = offsets
        if begin.__class__ is not int or end.__class__ is not int or not 0 <= begin <= end < _LIMIT:
            raise WeightFileError("offsets", path, f"data_offsets {_shown(offsets)} are no begin and end", name)
        nbytes = _nbytes(shape, tag, path, name)
        if nbytes != end - begin:
            wanted = f"shape {_shown(shape)} of {tag} takes {nbytes} bytes, data_offsets hold {end - begin}"
            raise WeightFileError("offsets", path, wanted, name)
        tensors[name] = TensorInfo(NAMES.get(tag, tag), tuple(shape), nbytes, start + begin)
        places.append((begin, end, name))
    _require_cover(places, path, size - start)
    return Header(tensors, held, unknown, size)


def _nbytes(shape: Any, tag: str, path: str, name: str) -> int:
    """Returns the bytes that a tensor takes."""
    if shape.__class__ is not list:
        raise WeightFileError("shape", path, f"its shape must be a list of integers, not {_shown(shape)}", name)
    elements = 1
    for length in shape:
        if length.__class__ is not int or not 0 <= length < _LIMIT:
            raise WeightFileError("shape", path, f"its shape {_shown(shape)} is no list of lengths", name)
        elements *= length
        if elements >= _LIMIT:
            raise WeightFileError("overflow", path, f"shape {_shown(shape)} has more than 2**64 elements", name)
    bits = elements * BITS[tag]
    if bits >= _LIMIT:
        raise WeightFileError("overflow", path, f"shape {_shown(shape)} of {tag} has more than 2**64 bits", name)
    if bits % 8:
        raise WeightFileError("shape", path, f"has {bits} bits of {tag}, which are no whole bytes", name)
    return bits // 8


def _require_cover(places: list[tuple[int, int, str]], path: str, held: int) -> None:
    """Checks that tensors follow each other without overlap or hole, up to the last byte of the file."""
    places.sort()
    reached = 0
    for begin, end, name in places:
        if end > held:
            short = f"ends at byte {end} of the data, of which the file has {held}"
            raise WeightFileError("truncated", path, short, name, "the file was cut: download or save it again")
        if begin != reached:
            kind, what = ("overlap", "overlaps the one before") if begin < reached else ("hole", "leaves a hole")
            raise WeightFileError(
                kind, path, f"begins at byte {begin} of the data, expected {reached}: it {what}", name
            )
        reached = end
    if reached != held:
        raise WeightFileError("hole", path, f"its last {held - reached} bytes belong to no tensor")


def _shown(value: Any) -> str:
    """Returns a value of JSON for a message; a tuple is an object there."""
    if value.__class__ is list and len(value) > 8:
        return f"a list of {len(value)} values"
    return "an object" if value.__class__ is tuple else brief(value)
