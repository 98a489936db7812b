"""Rewrites a file of tensors with new names, another dtype or format, or in shards, one block at a time."""

import os
import re
import zipfile
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import partial
from typing import NamedTuple

import numpy as np
from numpy.lib import format as npy

from emberharmony import ops
from emberharmony.backend.choice import owning_backend_of
from emberharmony.core.dtypes import as_dtype
from emberharmony.core.errors import ArgumentError, DTypeError, WeightFileError, brief
from emberharmony.core.state.files import replace_bytes
from emberharmony.io.header import BITS
from emberharmony.io.index import ENDING
from emberharmony.io.saving import TAGS, Item, write_items
from emberharmony.io.sources import Array, Source, numeric_block
from emberharmony.io.tensors import HOST, as_bytes, as_tensor

Advance = Callable[[int], None]


class Rewritten(NamedTuple):
    """The result of `rewrite`: the files written, and facts about the cast of their tensors.

    Attributes:
        files: the names of the files.
        tensors: how many tensors they hold.
        nbytes: the bytes of the tensors.
        overflowed: how many finite elements of a tensor the new dtype has made infinite, by name.
    """

    files: list[str]
    tensors: int
    nbytes: int
    overflowed: dict[str, int]


def new_names(names: Iterable[str], rules: Sequence[tuple[re.Pattern[str], str]]) -> dict[str, str]:
    """Returns the new name of each tensor, after each rule has replaced what it finds in the name.

    Raises:
        ArgumentError: if a rule refers to no group of its pattern, or if two tensors get one name.
    """
    new_name_by_name: dict[str, str] = {}
    name_by_new_name: dict[str, str] = {}
    for name in names:
        new_name = name
        for pattern, replacement in rules:
            try:
                new_name = pattern.sub(replacement, new_name)
            except (re.error, IndexError) as error:
                raise ArgumentError(f"the new name {replacement!r} does not fit {pattern.pattern!r}: {error}") from None
        if new_name in name_by_new_name:
            raise ArgumentError(
                f"{brief(name_by_new_name[new_name])} and {brief(name)} would both be named {brief(new_name)}"
            )
        if new_name == "__metadata__":
            raise ArgumentError(f"{brief(name)} would be named '__metadata__', which is no name of a tensor")
        new_name_by_name[name], name_by_new_name[new_name] = new_name, name
    return new_name_by_name


def rewrite(
    source: Source,
    path: str,
    names: Mapping[str, str],
    *,
    dtype: object = None,
    metadata: Mapping[str, str] | None = None,
    max_shard_size: int | str | None = None,
    advance: Advance = lambda size: None,
) -> Rewritten:
    """Writes tensors of a file to another one, of which one block is in memory at a time.

    Args:
        source: the tensors.
        path: the new file, a `.safetensors` or an `.npz` file.
        names: the new name of each tensor to write.
        dtype: a floating dtype to which to cast the floating tensors.
        metadata: strings to store beside the tensors; only safetensors files have a place for them.
        max_shard_size: as for `save`.
        advance: what is called with the number of bytes that were read.

    Raises:
        ArgumentError: if the ending, the dtype or the size is none that can be written.
        DTypeError: if the format lacks the dtype of a tensor.
        WeightFileError: if a file cannot be read or written.
    """
    target_dtype = None if dtype is None else as_dtype(dtype)
    if target_dtype is not None and not (target_dtype.is_floating and target_dtype.name in HOST):
        raise ArgumentError(f"the dtype must be a floating one, not {target_dtype.name}")
    if not path.endswith((ENDING, ".npz")):
        raise ArgumentError(f"{brief(path)} must end in {ENDING} or .npz")
    overflow_count_by_name: dict[str, int] = {}
    item_by_key: dict[object, Item] = {}
    for name, new_name in names.items():
        key = source.memory_key(name) if path.endswith(ENDING) else name  # `.npz` archives have no tied tensors
        if key in item_by_key:
            item_by_key[key].ties.append(new_name)
            continue
        item_by_key[key] = _rewritten_item(
            source, name, new_name, target_dtype and target_dtype.name, advance, overflow_count_by_name
        )
    with ops.use_backend("numpy"):
        if path.endswith(ENDING):
            written_files = write_items(path, item_by_key.values(), metadata or {}, max_shard_size)
        else:
            if max_shard_size is not None:
                raise ArgumentError(f"only {ENDING} files can be in shards")
            written_files = _write_npz(path, item_by_key.values())
    return Rewritten(
        written_files, len(names), sum(item.nbytes for item in item_by_key.values()), overflow_count_by_name
    )


def _rewritten_item(
    source: Source, name: str, new_name: str, dtype: str | None, advance: Advance, overflow_counts: dict[str, int]
) -> Item:
    """Returns the item that writes a tensor of a source under its new name, cast to a dtype.

    Raises:
        DTypeError: if safetensors lacks its dtype.
    """
    info = source.tensors[name]
    target_dtype = (
        dtype if dtype is not None and info.dtype in HOST and as_dtype(info.dtype).is_floating else info.dtype
    )
    tag = TAGS.get(target_dtype, target_dtype)
    if tag not in BITS:
        raise DTypeError(f"{source.path}: {brief(name)} has dtype {info.dtype}, which safetensors lacks")
    byte_count = (
        info.nbytes
        if target_dtype == info.dtype
        else info.nbytes // HOST[info.dtype].itemsize * HOST[target_dtype].itemsize
    )
    return Item(
        new_name,
        [],
        tag,
        info.shape,
        byte_count,
        partial(_byte_blocks, source, name, target_dtype, advance, overflow_counts),
    )


def _byte_blocks(
    source: Source, name: str, dtype: str, advance: Advance, overflow_counts: dict[str, int]
) -> Iterator[memoryview]:
    """Yields the bytes of a tensor of a source block by block, cast to a dtype."""
    old_dtype = source.tensors[name].dtype
    for block in source.blocks(name):
        if dtype == old_dtype:
            yield as_bytes(block)
        else:
            cast_block = _cast_block(block, old_dtype, dtype, source.path, name)
            old_numbers, new_numbers = numeric_block(block, old_dtype), numeric_block(cast_block, dtype)
            assert old_numbers is not None
            assert new_numbers is not None
            new_infinity_count = int(np.count_nonzero(np.isinf(new_numbers))) - int(
                np.count_nonzero(np.isinf(old_numbers))
            )
            if new_infinity_count:
                overflow_counts[name] = overflow_counts.get(name, 0) + new_infinity_count
            yield as_bytes(cast_block)
        advance(block.nbytes)


def _cast_block(block: Array, old_dtype: str, new_dtype: str, path: str, name: str) -> Array:
    """Returns a block of elements cast to another dtype; bfloat16 is represented by its bits as uint16."""
    with np.errstate(over="ignore"):
        tensor = ops.cast(as_tensor(block, old_dtype, path, name), as_dtype(new_dtype))
    backend = owning_backend_of(tensor)
    assert backend is not None
    packed_array: Array = backend.pack(tensor).bits
    return packed_array


def _write_npz(path: str, items: Iterable[Item]) -> list[str]:
    """Writes tensors to an `.npz` file, which is replaced as a whole, and returns its path in a list.

    Raises:
        ArgumentError: if an archive cannot have a name.
        DTypeError: if NumPy lacks a dtype.
        WeightFileError: if the file cannot be written.
    """
    items = list(items)
    dtype_by_tag = {TAGS[name]: HOST[name] for name in TAGS if name != "bfloat16"}
    for item in items:
        if item.tag not in dtype_by_tag:
            advice = "cast it to float32" if item.tag == "BF16" else "write a safetensors file"
            raise DTypeError(f"{brief(item.name)} has dtype {item.tag}, which .npz files lack; {advice}")
        if "\0" in item.name or len(item.name.encode()) > 60_000:
            raise ArgumentError(f"{brief(item.name)} is no name in an .npz file")
    try:
        with replace_bytes(path) as stream, zipfile.ZipFile(stream, "w") as archive:
            for item in items:
                with archive.open(zipfile.ZipInfo(f"{item.name}.npy"), "w", force_zip64=True) as member:
                    header = {"descr": dtype_by_tag[item.tag].str, "fortran_order": False, "shape": item.shape}
                    npy.write_array_header_1_0(member, header)
                    written_byte_count = sum(map(member.write, item.byte_blocks()))
                    assert written_byte_count == item.nbytes, (item.name, written_byte_count)
    except OSError as error:
        raise WeightFileError("unwritable", path, f"could not be written, the old file stays: {error}") from error
    return [os.fspath(path)]
