"""Converts tensors of PyTorch to tensors of this library, and describes the axes of example arguments."""

import inspect
from collections.abc import Mapping, Sequence
from typing import Any

import torch

from emberharmony import ops, to_backend


def copy_to_backend(tensor: torch.Tensor) -> Any:
    """Returns a copy of a PyTorch tensor as a tensor of the active backend."""
    with torch.no_grad():
        cpu_copy = tensor.detach().cpu().clone(memory_format=torch.contiguous_format)
    return to_backend(cpu_copy, ops.get_backend())


def dynamic_first_axes(module: torch.nn.Module, args: Sequence[Any], kwargs: Mapping[str, Any]) -> Any:
    """Returns `dynamic_shapes` in which the first axis of each example argument may have any length."""

    def dynamic_axes(x: Any) -> Any:
        return {0: torch.export.Dim.DYNAMIC} if isinstance(x, torch.Tensor) and x.ndim else None

    positional_axes, named_axes = torch.utils._pytree.tree_map(dynamic_axes, (tuple(args), dict(kwargs)))
    if not named_axes:
        return positional_axes
    parameter_names = forward_parameter_names(module)
    return {**dict(zip(parameter_names, positional_axes, strict=False)), **named_axes}


def forward_parameter_names(module: torch.nn.Module) -> list[str]:
    """Returns the names of the parameters of a module's `forward` that can be passed by position."""
    try:
        parameters: Sequence[inspect.Parameter] = list(inspect.signature(module.forward).parameters.values())
    except (TypeError, ValueError):
        return []
    positional_kinds = (inspect.Parameter.POSITIONAL_ONLY, inspect.Parameter.POSITIONAL_OR_KEYWORD)
    return [parameter.name for parameter in parameters if parameter.kind in positional_kinds]
