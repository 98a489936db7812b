"""Writes tensors to safetensors files, each of which is replaced as a whole or not at all.

Shards get a random token in their names. With the usual names a save would overwrite shards that the old index still
names, and an end of the process in between would lose both.
"""

import json
import os
import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import suppress
from functools import partial
from typing import Any, NamedTuple

import numpy as np

from emberharmony.backend.base import Backend
from emberharmony.backend.choice import owning_backend_of
from emberharmony.core.cells.cell import Cell
from emberharmony.core.dtypes import ALL
from emberharmony.core.errors import ArgumentError, ArgumentTypeError, DTypeError, EmberError, WeightFileError, brief
from emberharmony.core.state.files import replace_bytes
from emberharmony.io.header import BITS, NAMES
from emberharmony.io.index import ENDING, INDEX, own_shards
from emberharmony.io.parsing import LARGEST_HEADER
from emberharmony.io.tags import tag_metadata
from emberharmony.io.tensors import as_bytes
from emberharmony.io.ties import TIED

TAGS = {name: tag for tag, name in NAMES.items()}
"""The dtypes of the format by their neutral names."""

_UNITS = {"": 1, "KB": 10**3, "MB": 10**6, "GB": 10**9, "TB": 10**12}


class Item(NamedTuple):
    """A tensor to save: its name, its tied names, its dtype, shape and size, and a function that yields its bytes."""

    name: str
    ties: list[str]
    tag: str
    shape: tuple[int, ...]
    nbytes: int
    byte_blocks: Callable[[], Iterable[memoryview]]


def save_tensors(
    tensors: Mapping[str, Any],
    path: str | os.PathLike[str],
    *,
    metadata: Mapping[str, str] | None = None,
    max_shard_size: int | str | None = None,
    layout: str | None = None,
) -> list[str]:
    """Writes tensors to a safetensors file, and returns the names of the files; see `io.save`."""
    target_path = os.fspath(path)
    if not target_path.endswith(ENDING):
        stem = os.path.splitext(target_path)[0]
        suggested_path = f"{'model' if not stem or stem.endswith(os.sep) else stem}{ENDING}"
        raise ArgumentError(
            f"save() writes files whose names end in {ENDING}, not {brief(target_path)}: use {suggested_path!r}"
        )
    _require_strings(metadata or {})
    return write_items(target_path, _distinct_items(tensors), tag_metadata(metadata or {}, layout), max_shard_size)


def write_items(
    path: str, items: Iterable[Item], metadata: Mapping[str, str], max_shard_size: int | str | None
) -> list[str]:
    """Writes items, which describe tensors, to one file or to shards with an index, and returns the file names.

    Raises:
        ArgumentError: if the size is none.
        WeightFileError: if a file cannot be written.
    """
    # The file has wide dtypes first, which aligns all tensors, and equal dtypes in the order of names.
    items = sorted(items, key=lambda item: (-BITS[item.tag], item.name))
    shard_groups = [items] if max_shard_size is None else _shard_groups(items, _size_in_bytes(max_shard_size))
    try:
        if len(shard_groups) == 1:
            _write_file(path, items, metadata)
            _remove_index(path)
            return [path]
        return _write_shards(path, shard_groups, metadata)
    except OSError as error:
        folder = os.path.dirname(path)
        if folder and not os.path.isdir(folder):
            hint = f"make it by os.makedirs({folder!r}, exist_ok=True)"
            if folder.startswith("~"):
                hint = "Python does not know ~ in a path: use os.path.expanduser(path)"
            raise WeightFileError("unwritable", path, "its folder does not exist", hint=hint) from error
        raise WeightFileError("unwritable", path, f"could not be written, the old file stays: {error}") from error


def _require_strings(metadata: Mapping[str, str]) -> None:
    for name, value in metadata.items():
        if not isinstance(name, str) or not isinstance(value, str):
            raise ArgumentTypeError(
                f"save(): metadata holds strings, not {brief(name)}: {brief(value)}; use json.dumps"
            )
        if name == TIED:
            raise ArgumentError(f"save(): {TIED!r} in metadata is written by save itself")
        _require_text(name)
        _require_text(value)


def _require_text(name: str) -> None:
    try:
        name.encode()
    except UnicodeEncodeError as error:
        raise ArgumentError(f"save(): {brief(name)} is no text in UTF-8: {error.reason}") from error


def _distinct_items(tensors: Mapping[str, Any]) -> list[Item]:
    """Returns an item for each distinct tensor of a dict; further names of the same tensor become its ties."""
    item_by_key: dict[Any, Item] = {}
    referenced_tensors = []  # kept alive so that no id is used again
    for name, value in tensors.items():
        if not isinstance(name, str) or name == "__metadata__":
            raise ArgumentError(f"save(): {brief(name)} is no name of a tensor; use another string")
        _require_text(name)
        tensor = value.value if isinstance(value, Cell) else value
        backend = owning_backend_of(tensor) if hasattr(tensor, "dtype") and hasattr(tensor, "shape") else None
        if backend is None:
            way_out = "use ops.convert_to_tensor"
            if isinstance(value, str):
                way_out = f"text goes into metadata=, as io.save(..., metadata={{{name!r}: {brief(value)}}})"
            elif isinstance(value, (Mapping, int, float)):  # as in `torch.save({"epoch": 3, "model": ...}, path)`
                way_out = "a training is saved by io.save({'model': model, 'optimizer': optimizer, 'step': 3}, folder)"
            raise ArgumentTypeError(f"save(): {name!r} is {brief(value)}, expected a tensor; {way_out}")
        item, memory_place = _item_and_place(name, tensor, backend)
        referenced_tensors.append(tensor)
        first_item = item_by_key.get(("same", id(tensor))) or (item_by_key.get(memory_place) if memory_place else None)
        if first_item is not None:
            first_item.ties.append(name)
            continue
        item_by_key["same", id(tensor)] = item
        if memory_place:
            item_by_key[memory_place] = item
    return list({id(item): item for item in item_by_key.values()}.values())


def _item_and_place(name: str, tensor: Any, backend: Backend) -> tuple[Item, Any]:
    """Returns the item for a tensor and its place in memory, or None as place if the host only gets a copy."""
    try:
        packing, second_packing = backend.pack(tensor), backend.pack(tensor)
    except EmberError as error:
        error_class = type(error)
        raise error_class(f"save(): {name!r}: {error}") from error
    array = packing.bits
    if packing.dtype not in TAGS:
        names_text = ", ".join(name for name in map(str, ALL) if name in TAGS)
        raise DTypeError(
            f"save(): {name!r} has dtype {packing.dtype}, which safetensors lacks; cast it to one of {names_text}"
        )
    item = Item(name, [], TAGS[packing.dtype], tuple(array.shape), array.nbytes, partial(_byte_blocks, backend, tensor))
    # Two copies would have different addresses, so an equal address is that of the tensor's own memory.
    is_shared = array.size > 0 and array.ctypes.data == second_packing.bits.ctypes.data
    return item, (array.ctypes.data, array.shape, array.strides, packing.dtype) if is_shared else None


def _byte_blocks(backend: Backend, tensor: Any) -> Iterator[memoryview]:
    """Yields the bytes of a native tensor as a safetensors file stores them."""
    array = backend.pack(tensor).bits
    if array.dtype == np.bool_ and array.size and array.view(np.uint8).max() > 1:
        array = array.view(np.uint8) != 0
    yield as_bytes(array)


def _write_file(path: str, items: Iterable[Item], metadata: Mapping[str, str]) -> None:
    """Writes a header and tensors to a safetensors file, which is replaced as a whole.

    Raises:
        OSError: if it cannot be written.
    """
    items = list(items)
    entry_by_name: dict[str, Any] = {}
    name_by_tie = {tie: item.name for item in items for tie in item.ties}
    all_metadata = dict(metadata) | ({TIED: json.dumps(name_by_tie, ensure_ascii=False)} if name_by_tie else {})
    if all_metadata:
        entry_by_name["__metadata__"] = all_metadata
    end = 0
    for item in items:
        start, end = end, end + item.nbytes
        entry_by_name[item.name] = {"dtype": item.tag, "shape": item.shape, "data_offsets": [start, end]}
    header = json.dumps(entry_by_name, ensure_ascii=False, separators=(",", ":")).encode()
    header += b" " * (-len(header) % 8)  # spaces align the tensors to 8 bytes
    if len(header) > LARGEST_HEADER:
        raise ArgumentError(f"save(): names and metadata take {len(header)} bytes, allowed are {LARGEST_HEADER:,}")
    with replace_bytes(path) as stream:
        stream.write(len(header).to_bytes(8, "little") + header)
        for item in items:
            written_byte_count = sum(map(stream.write, item.byte_blocks()))
            assert written_byte_count == item.nbytes, (item.name, written_byte_count)


def _size_in_bytes(size: int | str) -> int:
    """Returns the number of bytes for a size given as an integer or as a text such as "5GB"."""
    if isinstance(size, str):
        match = re.fullmatch(r"(\d{1,9}(?:\.\d{1,9})?) ?([KMGT]B|)", size.strip().upper())
        size = round(float(match[1]) * _UNITS[match[2]]) if match else 0
    if not isinstance(size, int) or isinstance(size, bool) or size <= 0:
        raise ArgumentError(f'save(): max_shard_size must be a number of bytes or a text as "5GB", got {brief(size)}')
    return size


def _shard_groups(items: list[Item], limit: int) -> list[list[Item]]:
    """Divides tensors in their order into lists, one for each shard, of at most a number of bytes."""
    shards: list[list[Item]] = [[]]
    group_byte_count = 0
    for item in items:
        if shards[-1] and group_byte_count + item.nbytes > limit:
            shards.append([])
            group_byte_count = 0
        shards[-1].append(item)
        group_byte_count += item.nbytes
    return shards


def _write_shards(path: str, groups: list[list[Item]], metadata: Mapping[str, str]) -> list[str]:
    """Writes shards under new names, then their index, and removes the files that the index replaces.

    Raises:
        OSError: if a file cannot be written; no new file remains then.
    """
    folder, stem = os.path.dirname(path), os.path.basename(path).removesuffix(ENDING)
    token, old_shards = os.urandom(4).hex(), own_shards(path)
    shard_names = [f"{stem}-{token}-{i + 1:05}-of-{len(groups):05}{ENDING}" for i in range(len(groups))]
    weight_map = {
        name: file
        for file, items in zip(shard_names, groups, strict=True)
        for item in items
        for name in (item.name, *item.ties)
    }
    total_bytes = sum(item.nbytes for items in groups for item in items)
    index = {"metadata": {**metadata, "total_size": total_bytes}, "weight_map": weight_map}
    written_shards: list[str] = []
    try:
        for file, items in zip(shard_names, groups, strict=True):
            written_shards.append(os.path.join(folder, file))
            _write_file(written_shards[-1], items, metadata)
        with replace_bytes(path + INDEX) as stream:
            stream.write(json.dumps(index, ensure_ascii=False, indent=1).encode())
    except BaseException:
        for file in written_shards:
            with suppress(OSError):
                os.unlink(file)
        raise
    for file in (path, *old_shards):
        with suppress(FileNotFoundError):
            os.unlink(file)
    return [path + INDEX, *written_shards]


def _remove_index(path: str) -> None:
    """Removes the index and the shards that a file has replaced."""
    old_shards = own_shards(path)
    if old_shards:
        os.unlink(path + INDEX)
    for file in old_shards:
        with suppress(FileNotFoundError):
            os.unlink(file)
