"""`io.load`: all tensors of a file, a folder, an index of shards, an `.npz` or a `.pth` file."""

import os
from collections.abc import Iterable, Iterator
from contextlib import nullcontext
from typing import Any

from emberharmony import ops, to_backend
from emberharmony.backend.discovery import load as load_backend
from emberharmony.core import selection
from emberharmony.core.errors import (
    ArgumentError,
    ArgumentTypeError,
    EmberError,
    StateDictError,
    WeightFileError,
    brief,
    suggest,
)
from emberharmony.core.types import BackendLike
from emberharmony.io.archives import read_npz
from emberharmony.io.index import ENDING, INDEX, SHARD, checked_shard_headers
from emberharmony.io.tags import layout_of, metadata_of
from emberharmony.io.tensor_file import TensorFile, open_file

OF_TORCH = (".pth", ".pt", ".bin")
"""The endings of files that `torch.save` writes."""


def load(
    path: str | os.PathLike[str],
    *,
    names: Iterable[str] | None = None,
    dtype: Any = None,
    backend: BackendLike | None = None,
    layout: str | None = None,
    entry: str | None = None,
) -> dict[str, Any]:
    """Returns the tensors of a file, a folder or an index of shards by name, after everything has been checked.

    With NumPy and PyTorch the tensors share the pages of a safetensors file, privately, as `io.open` says.

    Args:
        path: a `.safetensors` file; an index (`model.safetensors.index.json`); a folder with one of these; an `.npz`
            file; or a `.pth`, `.pt` or `.bin` file, which PyTorch reads with `weights_only=True`.
        names: the tensors to load; by default all.
        dtype: a floating dtype to which to cast the floating tensors; None leaves theirs.
        backend: the backend of the tensors; by default the active one.
        layout: the layout that the tensors must be in: "torch", "mlx" or "keras". A file without a tag is trusted. None
            takes any.
        entry: the entry of a checkpoint in a `.pth`, `.pt` or `.bin` file that holds the tensors, such as
            "model_state"; None is the file itself.

    Raises:
        ArgumentError: if the layout is unknown, or an entry is given for another kind of file.
        BackendUnavailableError: if a `.pth` file needs PyTorch, which is not installed.
        DTypeError: if the backend lacks a dtype.
        StateDictError: if a given name is unknown.
        WeightFileError: if a file is damaged, or of an unknown kind, or has the tag of another layout.

    Example:
        >>> import tempfile
        >>> from emberharmony import io, ops
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     _ = io.save({"w": ops.array([1.5]), "n": ops.array([3])}, f"{folder}/model.safetensors")
        ...     tensors = io.load(folder, names=["w"], dtype="float16")
        >>> ops.dtype(tensors["w"]).name
        'float16'
    """
    if isinstance(names, str):
        raise ArgumentTypeError(f"load(): names must be a list of names, got the string {brief(names)}")
    wanted_names = None if names is None else list(names)
    file_path = file_of_path(path)
    if entry is not None and not file_path.endswith(OF_TORCH):
        raise ArgumentError(f"load(): only files of PyTorch have entries, got entry={entry!r} for {file_path}")
    if layout is not None:
        layout_of(metadata_of(file_path), file_path, layout)
    with nullcontext() if backend is None else ops.use_backend(backend):
        tensors = _read_tensors(file_path, wanted_names, entry)
        if dtype is None:
            return tensors
        return {name: ops.cast(x, dtype) if ops.dtype(x).is_floating else x for name, x in tensors.items()}


def file_of_path(path: str | os.PathLike[str]) -> str:
    """Returns the path to read for a given path: the file in a folder, or the index of a missing file's shards.

    Raises:
        WeightFileError: if a folder has none, or several.
    """
    if not isinstance(path, (str, bytes, os.PathLike)):
        raise ArgumentTypeError(f"load(): expected the path of a file, 'model.safetensors', got {brief(path)}")
    file_path = os.fspath(path)
    if os.path.isdir(file_path):
        return file_in_folder(file_path)
    if file_path.endswith(ENDING) and not os.path.exists(file_path) and os.path.exists(file_path + INDEX):
        return file_path + INDEX
    return file_path


def _read_tensors(path: str, names: list[str] | None, entry: str | None) -> dict[str, Any]:
    if path.endswith(INDEX):
        return _tensors_of_shards(path, names)
    if path.endswith((".npz", *OF_TORCH)):
        open_file(path)[0].close()  # a missing file raises the same error for all formats
    if path.endswith(".npz"):
        return read_npz(path, names)
    if path.endswith(OF_TORCH):
        return _tensors_of_torch_file(path, names, entry)
    with TensorFile(path) as file:
        return dict(_tensors_of_names(file, file if names is None else names))


def _tensors_of_names(file: Any, names: Iterable[str]) -> Iterator[tuple[str, Any]]:
    """Yields (name, tensor) for names in a file; the names of a tied tensor get the same object."""
    if not file.has_ties:
        for name in names:
            yield name, file[name]
        return
    tensor_by_info: dict[Any, Any] = {}
    for name in names:
        info = file.info(name)
        if info not in tensor_by_info:
            tensor_by_info[info] = file[name]
        yield name, tensor_by_info[info]


def file_in_folder(folder: str) -> str:
    """Returns the file of tensors in a folder: the only index, or else the only safetensors file.

    Raises:
        WeightFileError: if there is none, or several.
    """
    try:
        file_names = sorted(os.listdir(folder))
    except OSError as error:
        raise WeightFileError("unreadable", folder, f"cannot be read: {error}") from error
    # A process that was killed while saving may have left shards that no index lists.
    unsharded_files = [
        file_name for file_name in file_names if file_name.endswith(ENDING) and not SHARD.search(file_name)
    ]
    indexes = [file_name for file_name in file_names if file_name.endswith(ENDING + INDEX)]
    # `save` writes the new file before it removes the index of the shards that the file replaces.
    replaced_files = [file_name for file_name in unsharded_files if file_name + INDEX in indexes]
    for candidate_files in (replaced_files, indexes, unsharded_files):
        if len(candidate_files) == 1:
            return os.path.join(folder, candidate_files[0])
        if candidate_files:
            names_text = ", ".join(candidate_files[:5])
            raise WeightFileError(
                "missing", folder, f"has {len(candidate_files)} files to choose from ({names_text}); name one"
            )
    hint = "pass the file itself, as io.load('model.safetensors'), which io.save(model, 'model.safetensors') writes"
    if any(file_name.startswith("step-") for file_name in file_names):
        hint = "it has checkpoints: io.Checkpoint(folder).restore(model=model, optimizer=optimizer)"
    raise WeightFileError("missing", folder, f"has no file *{ENDING} and no index *{ENDING}{INDEX}", hint=hint)


def _tensors_of_shards(path: str, names: list[str] | None) -> dict[str, Any]:
    header_by_shard = checked_shard_headers(path)
    shard_by_name = {name: shard for shard, header in header_by_shard.items() for name in header.tensors}
    wanted_names = list(shard_by_name) if names is None else names
    for name in wanted_names:
        if name not in shard_by_name:
            raise StateDictError(f"{path} has no tensor {name!r}{suggest(name, shard_by_name)}")
    tensor_by_name: dict[str, Any] = {}
    for shard in header_by_shard:
        names_in_shard = [name for name in wanted_names if shard_by_name[name] == shard]
        if names_in_shard:
            with TensorFile(shard) as file:
                tensor_by_name.update(_tensors_of_names(file, names_in_shard))
    return {name: tensor_by_name[name] for name in wanted_names}


def _tensors_of_torch_file(path: str, names: list[str] | None, entry: str | None) -> dict[str, Any]:
    load_backend("torch")  # raises an error with the command that installs PyTorch
    from emberharmony.backend.torch.files import read_tensors

    tensors = read_tensors(path, entry=entry)
    wanted_names = list(tensors) if names is None else names
    for name in wanted_names:
        if name not in tensors:
            raise StateDictError(f"{path} has no tensor {name!r}{suggest(name, tensors)}")
    try:
        return to_backend({name: tensors[name] for name in wanted_names}, selection.active().backend)
    except EmberError as error:
        error_class = type(error)
        raise error_class(f"{path}: {error}") from error
