"""Tied tensors: several names of one tensor, which a file holds once.

The format has no place for a second name, so `__metadata__` has the text `{"second name": "first name"}` in JSON.
"""

from emberharmony.core.errors import WeightFileError, brief
from emberharmony.io.header import Header, TensorInfo
from emberharmony.io.parsing import MOST_NAMES, dict_of_strings, parse

TIED = "emberharmony.tied"
"""The key in `__metadata__` under which the names of tied tensors are stored."""


def tied_infos(header: Header, path: str) -> dict[str, TensorInfo]:
    """Returns the further names of tied tensors in a header's metadata, each with the description of its tensor.

    Raises:
        WeightFileError: if the names are no names of this file.
    """
    ties_json = header.metadata.get(TIED)
    if ties_json is None:
        return {}
    first_name_by_name = dict_of_strings(
        parse(ties_json.encode(), path, "metadata", MOST_NAMES), path, f"{TIED} in __metadata__"
    )
    for name, first_name in first_name_by_name.items():
        if name in header.tensors or first_name not in header.tensors:
            ties_text = f"{TIED} in __metadata__ ties {brief(name)} to {brief(first_name)}"
            raise WeightFileError("metadata", path, f"{ties_text}, which must be a second name and a first")
    return {name: header.tensors[first_name] for name, first_name in first_name_by_name.items()}
