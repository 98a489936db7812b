"""Models and their files: saved and loaded in the layout of PyTorch, MLX or Keras, and converted between them."""

import os
from collections.abc import Callable, Mapping
from typing import Any, Protocol

from emberharmony import ops
from emberharmony.core.dtypes import as_dtype
from emberharmony.core.errors import ArgumentError, ArgumentTypeError, EmberError, StateDictError, brief
from emberharmony.core.names.layouts import require_layout
from emberharmony.core.types import DTypeLike
from emberharmony.io.loading import file_of_path, load
from emberharmony.io.saving import save
from emberharmony.io.tags import TAG, layout_of, metadata_of
from emberharmony.io.ties import TIED


class Model(Protocol):
    """What these functions need of a model; `nn.Module` has it."""

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
        """Assigns tensors by name."""

    def convert_state_dict(
        self, values: Mapping[str, Any], *, source: str = "torch", layout: str = "torch"
    ) -> dict[str, Any]:
        """Returns tensors in another layout."""


def save_model(
    model: Model,
    path: str | os.PathLike[str],
    *,
    layout: str = "torch",
    metadata: Mapping[str, str] | None = None,
    max_shard_size: int | str | None = None,
) -> list[str]:
    """Writes the tensors of a model to a safetensors file that has the tag of their layout; returns the files' names.

    Args:
        model: an `nn.Module`.
        path: the file; its name ends in `.safetensors`.
        layout: whose names and axes the tensors get: "torch", "mlx" or "keras".
        metadata, max_shard_size: as `io.save` takes them.

    Raises:
        ArgumentError: if the layout is unknown, or another argument is not as described.
        WeightFileError: if the file cannot be written.

    Example:
        >>> import tempfile
        >>> from emberharmony import io, nn
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     path = f"{folder}/model.safetensors"
        ...     _ = io.save_model(nn.Linear(3, 2), path, layout="keras")
        ...     with io.open(path) as file:
        ...         file.metadata["layout"], file.info("kernel").shape, io.load_model(nn.Linear(3, 2), path).loaded
        ('keras', (3, 2), ['weight', 'bias'])
    """
    _require_model("save_model", model)
    tensors = model.state_dict(layout=layout)
    return save(path, tensors, metadata=metadata, max_shard_size=max_shard_size, layout=layout)


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
        rename: returns the name in the layout of the file for a name in the file.
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
        ...     _ = io.save(path, {"kernel": ops.array([[1.0], [2.0]]), "bias": ops.array([3.0])})
        ...     _ = io.load_model(layer, path, layout="keras")
        >>> layer([1.0, 1.0]).tolist()
        [6.0]
    """
    _require_model("load_model", model)
    place = file_of_path(path)
    file_layout = layout_of(metadata_of(place), place, layout)
    tensors = load(place)
    try:
        return model.load_state_dict(tensors, strict=strict, rename=rename, keep_dtype=keep_dtype, layout=file_layout)
    except EmberError as error:
        raise type(error)(f"{place}: {error}") from error


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
        model: an `nn.Module` whose layers say what the tensors are; not needed if the source has the layout already.
        source: the layout of a file without a tag; None is "torch".
        rename: returns the new name for a name in the source. With `model` that is its name in the source's layout.
        dtype: a floating dtype to which to cast the floating tensors.
        metadata: strings to store beside those of the source.
        max_shard_size: as `io.save` takes it.

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
        ...     _ = io.save_model(net, path)
        ...     for _ in range(2):
        ...         _ = io.convert(path, path, layout="mlx", model=net)
        ...     with io.open(path) as file:
        ...         file.info("layers.0.weight").shape
        (8, 5, 5, 3)
    """
    require_layout(layout)
    if dtype is not None and not as_dtype(dtype).is_floating:
        raise ArgumentError(f"convert() casts to a floating dtype, not {brief(dtype)}")
    place = file_of_path(src)
    texts = metadata_of(place)
    before = layout_of(texts, place, source)
    if before != layout and model is None:
        raise ArgumentError(
            f"convert(): {place} has the layout {before!r}, and only the layers of a model say how its tensors become "
            f"those of {layout!r}: pass model="
        )
    with ops.use_backend("numpy"):
        tensors = _rename_tensors(load(place), rename)
        if model is not None:
            _require_model("convert", model)
            try:
                converted = model.convert_state_dict(tensors, source=before, layout=layout)
            except StateDictError as error:
                raise StateDictError(f"{place}: {error}") from error
            tensors = tensors if before == layout else converted
        if dtype is not None:
            tensors = {name: ops.cast(x, dtype) if ops.dtype(x).is_floating else x for name, x in tensors.items()}
        kept = {name: text for name, text in texts.items() if name not in (TIED, TAG, "format")}
        kept.update(metadata or {})
        return save(dst, tensors, metadata=kept, max_shard_size=max_shard_size, layout=layout)


def _require_model(function: str, model: Any) -> None:
    if not hasattr(model, "convert_state_dict"):
        raise ArgumentTypeError(f"{function}(): expected a module of emberharmony.nn, got {brief(model)}")


def _rename_tensors(tensors: dict[str, Any], rename: Callable[[str], str] | None) -> dict[str, Any]:
    if rename is None:
        return tensors
    by_new_name: dict[str, Any] = {}
    for name, tensor in tensors.items():
        new = rename(name)
        if not isinstance(new, str):
            raise ArgumentTypeError(f"convert(): rename() must return the new name, got {brief(new)} for {name!r}")
        if new in by_new_name:
            raise StateDictError(f"convert(): rename() gives two tensors the name {new!r}")
        by_new_name[new] = tensor
    return by_new_name
