"""The tag of the layout in the metadata of a file: `layout`, or else `format`, as Hugging Face and mlx-lm write it."""

import os
from collections.abc import Mapping

from emberharmony.core.errors import ArgumentError, WeightFileError, brief
from emberharmony.core.names.layouts import LAYOUTS, require_layout
from emberharmony.io.index import INDEX, read_index
from emberharmony.io.tensor_file import header_of

TAG = "layout"
"""The name of the tag in `__metadata__`."""

_FORMATS = {"pt": "torch", "mlx": "mlx"}
"""The layouts by the values of `format` that other libraries write."""


def tag_metadata(metadata: Mapping[str, str], layout: str | None) -> dict[str, str]:
    """Returns metadata with the tag of a layout and the value of `format` that other libraries read.

    Raises:
        ArgumentError: if the layout is unknown, or the metadata has another one.
    """
    if layout is None:
        return dict(metadata)
    require_layout(layout)
    if metadata.get(TAG, layout) != layout:
        raise ArgumentError(f"save(): metadata has the layout {brief(metadata[TAG])}, but layout is {layout!r}")
    format_words = [word for word, name in _FORMATS.items() if name == layout]
    return {**({"format": format_words[0]} if format_words else {}), **metadata, TAG: layout}


def metadata_of(path: str) -> dict[str, str]:
    """Returns the metadata of a safetensors file, or of the first shard of an index; a dict without entries for others.

    Raises:
        WeightFileError: if a file is damaged, or the shards of an index have different tags.
    """
    if path.endswith((".npz", ".pth", ".pt", ".bin")):
        return {}
    if not path.endswith(INDEX):
        return header_of(path).metadata
    folder = os.path.dirname(path)
    metadata_of_shards = [
        header_of(os.path.join(folder, file)).metadata for file in sorted(set(read_index(path)[0].values()))
    ]
    tags = sorted({brief(metadata.get(TAG)) for metadata in metadata_of_shards})
    if len(tags) > 1:
        raise WeightFileError("layout", path, f"has shards of different layouts: {', '.join(tags)}")
    return metadata_of_shards[0] if metadata_of_shards else {}


def layout_of(metadata: Mapping[str, str], path: str, layout: str | None) -> str:
    """Returns the layout of a file: that of its tag, else the one that the caller gives, else that of its `format`.

    A file without any of these is PyTorch's.

    Args:
        metadata: of the file.
        path: the file, for messages.
        layout: what the caller says, or None.

    Raises:
        ArgumentError: if the caller gives an unknown layout.
        WeightFileError: if the tag is unknown, or another one than given.
    """
    if layout is not None:
        require_layout(layout)
    tag = metadata.get(TAG)
    if tag in LAYOUTS:
        if layout not in (None, tag):
            reason = f"has the tag of the layout {tag!r}, expected {layout!r}"
            raise WeightFileError("layout", path, reason, None, "convert it with io.convert, or load it as it is")
        return tag
    if layout is None and tag is not None:
        names_text = ", ".join(map(repr, LAYOUTS))
        reason = f"has the tag of the layout {brief(tag)}, known are {names_text}"
        raise WeightFileError("layout", path, reason, None, "say which of these it is")
    return layout or _FORMATS.get(metadata.get("format", ""), "torch")
