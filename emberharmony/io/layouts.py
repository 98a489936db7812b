"""Models and their files: saved and loaded in the layout of PyTorch, MLX or Keras, and converted between them."""

import inspect
import os
from collections.abc import Callable, Mapping
from typing import Any, Protocol

from emberharmony import ops
from emberharmony.core.dtypes import as_dtype
from emberharmony.core.errors import ArgumentError, ArgumentTypeError, EmberError, StateDictError, brief, suggest
from emberharmony.core.names.layouts import require_layout
from emberharmony.core.types import DTypeLike
from emberharmony.io.checkpoints.checkpoint import Checkpoint
from emberharmony.io.checkpoints.collecting import KINDS
from emberharmony.io.loading import file_of_path, load
from emberharmony.io.saving import save_tensors
from emberharmony.io.tags import TAG, layout_of, metadata_of
from emberharmony.io.ties import TIED


class Model(Protocol):
    """The protocol of a model that can be saved and loaded here; `nn.Module` follows it."""

    def state_dict(self, *, layout: str = "torch") -> dict[str, Any]:
        """Returns the tensors of the model by name."""

    def load_state_dict(
        self,
        values: Mapping[str, Any],
        *,
        strict: bool = True,
        rename: Callable[[str], str] | None = None,
        keep_dtype: bool = True,
        layout: str = "torch",
    ) -> Any:
        """Assigns tensors to the parameters and buffers of the model by name."""

    def convert_state_dict(
        self, values: Mapping[str, Any], *, source: str = "torch", layout: str = "torch"
    ) -> dict[str, Any]:
        """Returns tensors of the model, converted to another layout such as that of MLX or Keras."""


def save(
    what: Mapping[str, Any] | Model,
    path: str | os.PathLike[str],
    *,
    metadata: Mapping[str, str] | None = None,
    max_shard_size: int | str | None = None,
    layout: str | None = None,
) -> list[str]:
    """Writes tensors, a model or the parts of a training, and returns the names of the files.

    Tensors and models become a safetensors file. It is replaced in one step after its content is on the disk: an
    error, an interruption or the end of the process leaves the old file. A tensor with several names is stored once;
    `io` gives it under all of them again. The parts of a training become a checkpoint in a folder, which
    `io.Checkpoint(path)` restores; that class also keeps the newest or the best ones.

    With `max_shard_size` more than that many bytes are written to several files, and the path with `.index.json`
    behind it becomes their index. The new files have new names, so the old ones are complete until the index has
    changed; then they are removed.

    Args:
        what: tensors by name, of any backend, parameters and buffers too; or an `nn.Module`; or a dict with the
            arguments of `Checkpoint.save`, such as `{"model": model, "optimizer": optimizer, "step": 100}`.
        path: the file, whose name ends in `.safetensors`; for a checkpoint the folder.
        metadata: strings to store beside the tensors; None stores none.
        max_shard_size: the largest number of bytes of tensors in a file, as 10_000_000 or "5GB"; a larger tensor has a
            file of its own. None writes one file.
        layout: "torch", "mlx" or "keras", a tag in the file for those who load it. Of a model the tensors get the names
            and axes of this layout, by default those of PyTorch; tensors by name must have it already.

    Raises:
        ArgumentError: if the path, a name, the size or the layout is not as described.
        ArgumentTypeError: if `what` is something else.
        CheckpointError: if a checkpoint cannot be written.
        DTypeError: if the format lacks the dtype of a tensor.
        TracedTensorError: if a tensor is being differentiated.
        WeightFileError: if the file cannot be written.

    Example:
        >>> import tempfile
        >>> from emberharmony import io, nn, ops
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     weight = ops.array([1.0, 2.0])
        ...     _ = io.save({"in": weight, "out": weight}, f"{folder}/a.safetensors", metadata={"epoch": "3"})
        ...     {name: tensor.tolist() for name, tensor in io.load(f"{folder}/a.safetensors").items()}
        ...     path = f"{folder}/model.safetensors"
        ...     _ = io.save(nn.Linear(3, 2), path, layout="keras")
        ...     with io.open(path) as file:
        ...         file.metadata["layout"], file.info("kernel").shape, io.load_model(nn.Linear(3, 2), path).loaded
        {'in': [1.0, 2.0], 'out': [1.0, 2.0]}
        ('keras', (3, 2), ['weight', 'bias'])
    """
    _require_savable(what, path)
    if not isinstance(what, Mapping):
        layout = layout or "torch"
        what = what.state_dict(layout=layout)
    elif any(hasattr(value, "state_dict") for value in what.values()):
        if metadata or max_shard_size or layout:
            raise ArgumentError("save(): metadata, max_shard_size and layout are for files of tensors; use extra")
        return [_save_checkpoint(what, path)]
    return save_tensors(what, path, metadata=metadata, max_shard_size=max_shard_size, layout=layout)


def _require_savable(what: Any, path: Any) -> None:
    """Checks the first two arguments of `save`: a model or dict of tensors, then a path.

    Raises:
        ArgumentTypeError: if not.
    """
    if isinstance(what, (str, os.PathLike)):
        raise ArgumentTypeError("save(): the path comes second, as in io.save(model, 'model.safetensors')")
    if not isinstance(path, (str, os.PathLike)):
        raise ArgumentTypeError(f"save(): path is {brief(path)}, expected the name of a file, 'model.safetensors'")
    if isinstance(what, Mapping) or (hasattr(what, "convert_state_dict") and not isinstance(what, type)):
        return
    hint = ""
    if isinstance(what, type) or inspect.isroutine(what):
        hint = "; it is a class or function: call it, with parentheses"
    elif hasattr(what, "state_dict"):
        hint = f"; for a checkpoint pass its parts by name, as {{'optimizer': {type(what).__name__.lower()}}}"
    elif hasattr(what, "shape"):
        hint = "; a tensor gets a name: io.save({'x': x}, path)"
    elif isinstance(what, (list, tuple)):
        hint = "; pass the model, or a dict with a name for each tensor"
    raise ArgumentTypeError(
        f"save() takes a module of emberharmony.nn, or a dict from names to tensors, not {brief(what)}{hint}"
    )


def _save_checkpoint(parts: Mapping[str, Any], path: str | os.PathLike[str]) -> str:
    """Saves the parts of a training as a checkpoint, and returns the path of its folder.

    Raises:
        ArgumentError: if there is an unknown part.
    """
    allowed_keys = ("step", *KINDS, "extra")
    for name in parts:
        if name not in allowed_keys:
            hint = suggest(str(name), allowed_keys, 0.6)
            raise ArgumentError(
                f"save(): {brief(name)} is no part of a checkpoint{hint} (known: {', '.join(allowed_keys)}); numbers "
                "and "
                f"texts go into 'extra'"
            )
    options = dict(parts)
    return Checkpoint(path, keep=None).save(options.pop("step", 0), **options)


def load_model(
    model: Model,
    path: str | os.PathLike[str],
    *,
    layout: str | None = None,
    strict: bool = True,
    rename: Callable[[str], str] | None = None,
    keep_dtype: bool = True,
) -> Any:
    """Assigns the tensors of a file to a model, in whatever layout they are, and returns what was loaded.

    Args:
        model: an `nn.Module`, which changes completely or, if there is an error, not at all.
        path: what `io.load` takes.
        layout: the layout of a file without a tag; None is "torch".
        strict: whether missing and unexpected names raise an error. Wrong shapes always do.
        rename: returns the name in the layout of the file for a name in the file; None keeps the names.
        keep_dtype: whether parameters keep their dtype; see `nn.Module.load_state_dict`.

    Raises:
        ArgumentError: if the layout is unknown.
        StateDictError: with all names that are missing, unexpected, or have a wrong shape.
        WeightFileError: if a file is damaged, or has the tag of another layout than the one given.

    Example:
        >>> import tempfile
        >>> from emberharmony import io, nn, ops
        >>> layer = nn.Linear(2, 1)
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     path = f"{folder}/model.safetensors"
        ...     _ = io.save({"kernel": ops.array([[1.0], [2.0]]), "bias": ops.array([3.0])}, path)
        ...     _ = io.load_model(layer, path, layout="keras")
        >>> layer([1.0, 1.0]).tolist()
        [6.0]
    """
    _require_model("load_model", model)
    file_path = file_of_path(path)
    file_layout = layout_of(metadata_of(file_path), file_path, layout)
    tensors = load(file_path)
    try:
        return model.load_state_dict(tensors, strict=strict, rename=rename, keep_dtype=keep_dtype, layout=file_layout)
    except EmberError as error:
        raise type(error)(f"{file_path}: {error}") from error


def convert(
    src: str | os.PathLike[str],
    dst: str | os.PathLike[str],
    *,
    layout: str,
    model: Model | None = None,
    source: str | None = None,
    rename: Callable[[str], str] | None = None,
    dtype: DTypeLike | None = None,
    metadata: Mapping[str, str] | None = None,
    max_shard_size: int | str | None = None,
) -> list[str]:
    """Writes the tensors of a file to another file, in another layout, and returns the names of the files written.

    The layout of the source is read from its tag, never guessed from shapes, so to convert twice is to convert once.
    The backend does not matter: tensors stay on the host, and the model does not change.

    Args:
        src: what `io.load` takes.
        dst: the file to write; its name ends in `.safetensors`. It may be `src`.
        layout: the layout to write: "torch", "mlx" or "keras".
        model: an `nn.Module` whose layers say what the tensors are; None if the source has the layout already.
        source: the layout of a file without a tag; None is "torch".
        rename: returns the new name for a name in the source. With `model` that is its name in the source's layout.
            None keeps the names.
        dtype: a floating dtype to which to cast the floating tensors; None leaves theirs.
        metadata: strings to store beside those of the source; None stores no others.
        max_shard_size: the largest number of bytes of tensors in a file, as 10_000_000 or "5GB"; None writes one file.

    Raises:
        ArgumentError: if a layout is unknown, a model is needed, or `dtype` is not floating.
        StateDictError: with all names that are missing, unexpected, or have a wrong shape.
        WeightFileError: if a file is damaged or cannot be written, or has the tag of another layout than `source`.

    Example:
        >>> import tempfile
        >>> from emberharmony import io, nn
        >>> net = nn.Sequential(nn.Conv2d(3, 8, 5))
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     path = f"{folder}/model.safetensors"
        ...     _ = io.save(net, path)
        ...     for _ in range(2):
        ...         _ = io.convert(path, path, layout="mlx", model=net)
        ...     with io.open(path) as file:
        ...         file.info("layers.0.weight").shape
        (8, 5, 5, 3)
    """
    require_layout(layout)
    if dtype is not None and not as_dtype(dtype).is_floating:
        raise ArgumentError(f"convert() casts to a floating dtype, not {brief(dtype)}")
    file_path = file_of_path(src)
    source_metadata = metadata_of(file_path)
    source_layout = layout_of(source_metadata, file_path, source)
    if source_layout != layout and model is None:
        raise ArgumentError(
            f"convert(): {file_path} has the layout {source_layout!r}, and only the layers of a model say how its "
            f"tensors become those of {layout!r}: pass model="
        )
    with ops.use_backend("numpy"):
        tensors = _rename_tensors(load(file_path), rename)
        if model is not None:
            _require_model("convert", model)
            try:
                converted_tensors = model.convert_state_dict(tensors, source=source_layout, layout=layout)
            except StateDictError as error:
                raise StateDictError(f"{file_path}: {error}") from error
            tensors = tensors if source_layout == layout else converted_tensors
        if dtype is not None:
            tensors = {name: ops.cast(x, dtype) if ops.dtype(x).is_floating else x for name, x in tensors.items()}
        kept_metadata = {name: text for name, text in source_metadata.items() if name not in (TIED, TAG, "format")}
        kept_metadata.update(metadata or {})
        return save_tensors(tensors, dst, metadata=kept_metadata, max_shard_size=max_shard_size, layout=layout)


def _require_model(function: str, model: Any) -> None:
    if isinstance(model, (str, os.PathLike)):
        raise ArgumentTypeError(f"{function}(): the model comes first, as in {function}(model, 'model.safetensors')")
    if isinstance(model, type):
        raise ArgumentTypeError(f"{function}(): make a model of the class first, {model.__name__}(...)")
    if not hasattr(model, "convert_state_dict"):
        raise ArgumentTypeError(f"{function}(): expected a module of emberharmony.nn, got {brief(model)}")


def _rename_tensors(tensors: dict[str, Any], rename: Callable[[str], str] | None) -> dict[str, Any]:
    if rename is None:
        return tensors
    tensor_by_new_name: dict[str, Any] = {}
    for name, tensor in tensors.items():
        new_name = rename(name)
        if not isinstance(new_name, str):
            raise ArgumentTypeError(f"convert(): rename() must return the new name, got {brief(new_name)} for {name!r}")
        if new_name in tensor_by_new_name:
            raise StateDictError(f"convert(): rename() gives two tensors the name {new_name!r}")
        tensor_by_new_name[new_name] = tensor
    return tensor_by_new_name
