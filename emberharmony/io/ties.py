"""Tied tensors: several names of one tensor, which a file holds once.

The format has no place for a second name, so `__metadata__` has the text `{"second name": "first name"}` in JSON.
"""

from emberharmony.core.errors import WeightFileError, brief
from emberharmony.io.header import Header, TensorInfo
from emberharmony.io.parsing import MOST_NAMES, parse, strings

TIED = "emberharmony.tied"
"""The name in `__metadata__`."""


def tied_infos(header: Header, path: str) -> dict[str, TensorInfo]:
    """Returns the second names that a header has in its metadata, each with the description of its tensor.

    Raises:
        WeightFileError: if the names are no names of this file.
    """
    text = header.metadata.get(TIED)
    if text is None:
        return {}
    names = strings(parse(text.encode(), path, "metadata", MOST_NAMES), path, f"{TIED} in __metadata__")
    for name, first in names.items():
        if name in header.tensors or first not in header.tensors:
            fault_text = (
                f"{TIED} in __metadata__ ties {brief(name)} to {brief(first)}, which must be a second name and a first"
            )
            raise WeightFileError("metadata", path, fault_text)
    return {name: header.tensors[first] for name, first in names.items()}
