"""Reads files that `torch.save` has written."""

import re
import zipfile

import torch

from emberharmony.core.errors import WeightFileError, brief

FLAT = "save the state dict alone, as a flat dict"


def read_tensors(path: str, mapped: bool = False, entry: str | None = None) -> dict[str, torch.Tensor]:
    """Returns the tensors of a state dict in a file, on the CPU; nothing else in the file is run or made.

    Args:
        path: the file.
        mapped: whether to map the file into memory, if its format allows that.
        entry: the entry of a checkpoint that is the state dict; None if the file has a state dict alone.

    Raises:
        WeightFileError: if the file cannot be read, or holds something else than a flat dict of tensors in the place
            that `entry` names.
    """
    try:
        can_map = mapped and zipfile.is_zipfile(path)
        content = torch.load(path, map_location="cpu", weights_only=True, mmap=can_map)
    except FileNotFoundError as error:
        raise WeightFileError("missing", path, "does not exist") from error
    except Exception as error:  # a damaged file raises errors of zipfile, pickle, struct and PyTorch, or any other
        fault_text, hint = (
            f"PyTorch cannot read it safely: {brief(str(error))}",
            "convert it to safetensors where you trust it",
        )
        if refused_global := re.search(r"GLOBAL ([\w.]+)", str(error)):
            fault_text = (
                f"PyTorch cannot read it safely: it holds {refused_global[1]}, which could run any program, among "
                "tensors"
            )
            hint = (
                "a whole module that you trust: torch.save(torch.load(path, weights_only=False).state_dict(), new_path)"
            )
        raise WeightFileError("torch", path, fault_text, None, hint) from error
    if entry is not None:
        if not isinstance(content, dict) or entry not in content:
            content_hint = f"; it has {brief(list(content))}" if isinstance(content, dict) else ""
            raise WeightFileError("torch", path, f"has no entry {entry!r}{content_hint}")
        content = content[entry]
    if not isinstance(content, dict):
        raise WeightFileError("torch", path, f"holds a {type(content).__name__}, expected a dict from names to tensors")
    for name, value in content.items():
        if not isinstance(name, str) or not isinstance(value, torch.Tensor):
            fault_text = f"holds {brief(name)} of type {type(value).__name__}, expected a dict from names to tensors"
            entries = [key for key, entry in content.items() if isinstance(key, str) and isinstance(entry, dict)]
            hint = f"give load() one of entry={brief(entries)}" if entries and entry is None else FLAT
            raise WeightFileError("torch", path, fault_text, None, hint)
    return {name: value.detach() for name, value in content.items()}
