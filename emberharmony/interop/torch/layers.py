"""Layers of this library in captured modules: those of PyTorch that are the same function."""

from collections.abc import Mapping
from typing import Any

from emberharmony import nn
from emberharmony.core.errors import ArgumentError, CaptureError, brief

_OPTIONS: dict[type[nn.Module], tuple[str, ...]] = {
    nn.Linear: ("in_features", "out_features"),
    nn.Embedding: ("num_embeddings", "embedding_dim", "padding_idx", "scale_grad_by_freq"),
}
"""By class of the layers the options that describe one."""


def layer_of(path: str, options: Any, cells: Mapping[str, Any]) -> nn.Module:
    """Returns a layer with parameters that are given.

    Args:
        path: its name in the model.
        options: its class under "class", and its options.
        cells: its parameters by name; a linear layer may have no bias.

    Raises:
        CaptureError: if there is no such layer.
    """
    kinds = {kind.__name__: kind for kind in _OPTIONS}
    kind = kinds.get(str(options.get("class"))) if isinstance(options, dict) else None
    if kind is None or set(options) != {"class", *_OPTIONS[kind]}:
        raise CaptureError(f"the program is damaged: layer {path} has {brief(options)}")
    wanted = {"weight", "bias"} if kind is nn.Linear else {"weight"}
    if not {"weight"} <= set(cells) <= wanted:
        raise CaptureError(f"the program is damaged: layer {path} has the parameters {sorted(cells)}")
    made = object.__new__(kind)
    vars(made).update({name: options[name] for name in _OPTIONS[kind]})
    vars(made).update({name: cells.get(name) for name in ("weight", "bias") if name in wanted})
    return made


def describe(path: str, layer: nn.Module) -> dict[str, Any]:
    """Returns the class and the options of a layer.

    Raises:
        ArgumentError: if it is none that a program can have.
    """
    names = _OPTIONS.get(type(layer))
    if names is None:
        raise ArgumentError(
            f"save() cannot write {path}, a {type(layer).__name__}: put a linear layer back first "
            f"(LoRALinear.merged, nn.dequantize), or save its state_dict beside the program"
        )
    return {"class": type(layer).__name__, **{name: getattr(layer, name) for name in names}}
