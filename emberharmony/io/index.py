"""Sharded tensors: an index in JSON says which file of the same folder holds which tensor."""

import os
import re
from typing import Any

from emberharmony.core.errors import WeightFileError, brief
from emberharmony.io.header import Fault, Header, TensorInfo, hint_of_other_format, raise_fault
from emberharmony.io.parsing import LARGEST_HEADER, MOST_NAMES, dict_of_strings, dict_of_unique_names, parse
from emberharmony.io.tensor_file import header_of, open_file

ENDING = ".safetensors"
INDEX = ".index.json"
SHARD = re.compile(r"-[0-9a-f]{8}-\d{5}-of-\d{5}\.safetensors$")
"""The pattern of the end of shard names that `io.save` gives."""


def read_index(path: str) -> tuple[dict[str, str], Any]:
    """Returns a dict from the names of tensors to their files, and the total size in the index, or None.

    Raises:
        WeightFileError: if the index is damaged, or names a file outside its folder.
    """
    stream, size = open_file(path)
    with stream:
        if size > LARGEST_HEADER:
            raise WeightFileError("index", path, f"has {size} bytes, allowed are 100,000,000")
        index_bytes = stream.read(LARGEST_HEADER)
    try:
        index_fields = dict_of_unique_names(parse(index_bytes, path, "index", MOST_NAMES), path, "the index", "index")
    except WeightFileError as error:
        raise WeightFileError(error.kind, path, error.reason, None, hint_of_other_format(index_bytes[:512])) from None
    if "weight_map" not in index_fields:
        raise WeightFileError("index", path, "has no weight_map, the object from names to files", None)
    metadata_entry = index_fields.get("metadata")
    metadata = {} if metadata_entry is None else dict_of_unique_names(metadata_entry, path, "metadata", "index")
    try:
        file_by_name = dict_of_strings(index_fields["weight_map"], path, "weight_map")
    except WeightFileError as error:
        fault_kind = "duplicate" if error.kind == "duplicate" else "index"
        raise WeightFileError(fault_kind, path, error.reason) from None
    for file in set(file_by_name.values()):
        _require_in_folder(path, file)
    return file_by_name, metadata.get("total_size")


def _require_in_folder(path: str, file: str) -> None:
    """Checks that a file named in an index lies in the folder of the index, also if one of them is a link.

    Raises:
        WeightFileError: if it is elsewhere.
    """
    folder = os.path.dirname(path)
    is_plain_name = file not in ("", ".", "..") and not re.search(r"[/\\:\0]", file) and file.endswith(ENDING)
    if not is_plain_name:
        raise WeightFileError("index", path, f"names the file {brief(file)}, expected a plain name ending in {ENDING}")
    allowed_folders = {os.path.realpath(folder), os.path.dirname(os.path.realpath(path))}
    if os.path.dirname(os.path.realpath(os.path.join(folder, file))) not in allowed_folders:
        raise WeightFileError("index", path, f"names {brief(file)}, a link that leads out of the folder")


def checked_shard_headers(path: str, report_fault: Fault = raise_fault) -> dict[str, Header]:
    """Returns the headers of all files of an index, after a check of all of them.

    Args:
        path: the index.
        report_fault: what is called for a fault after which the check can go on; by default the fault is raised.

    Raises:
        WeightFileError: if a file is damaged, or index and files do not hold the same tensors.
    """
    file_by_name, saved_total_size = read_index(path)
    folder = os.path.dirname(path)
    names_by_file: dict[str, set[str]] = {}
    for name, file in file_by_name.items():
        names_by_file.setdefault(file, set()).add(name)
    header_by_file: dict[str, Header] = {}
    faults: list[WeightFileError] = []

    def note_fault(error: WeightFileError) -> None:
        faults.append(error)
        report_fault(error)

    for file in sorted(names_by_file):
        shard_path = os.path.join(folder, file)
        fault_count_before = len(faults)
        try:
            header_by_file[shard_path] = header = header_of(shard_path, note_fault)
        except WeightFileError as error:
            note_fault(error)
            continue
        if len(faults) > fault_count_before:
            continue
        for missing_name in sorted(names_by_file[file] - header.tensors.keys()):
            note_fault(WeightFileError("index", shard_path, "lacks a tensor that the index says it has", missing_name))
        for extra_name in sorted(header.tensors.keys() - names_by_file[file]):
            note_fault(
                WeightFileError("index", shard_path, "has a tensor that the index does not list for it", extra_name)
            )
    total_bytes = sum(distinct_byte_count(header.tensors) for header in header_by_file.values())
    if saved_total_size is not None and saved_total_size != total_bytes and not faults:
        report_fault(
            WeightFileError(
                "index", path, f"says total_size {brief(saved_total_size)}, its tensors have {total_bytes} bytes"
            )
        )
    return header_by_file


def distinct_byte_count(tensors: dict[str, TensorInfo]) -> int:
    """Returns the total size of tensors in bytes, in which tied tensors count once."""
    return sum({info.start: info.nbytes for info in tensors.values() if info.nbytes}.values())


def own_shards(path: str) -> list[str]:
    """Returns the shards of the index beside a file that `io.save` has written, or none if there is no such index."""
    if not os.path.exists(path + INDEX):
        return []
    try:
        file_by_name, _ = read_index(path + INDEX)
    except WeightFileError:  # files beside a damaged index may belong to others
        return []
    folder, stem = os.path.dirname(path), os.path.basename(path).removesuffix(ENDING)
    shard_files = [
        file for file in sorted(set(file_by_name.values())) if SHARD.search(file) and SHARD.sub("", file) == stem
    ]
    return [os.path.join(folder, file) for file in shard_files]
