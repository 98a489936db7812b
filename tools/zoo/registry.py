"""The models of the zoo by name."""

from collections.abc import Callable
from typing import Any, TypeVar

import torch

Example = tuple[Any, tuple[Any, ...], dict[str, Any]]
"""A module, and the arguments of a call."""

F = TypeVar("F", bound=Callable[[], Example])

MODELS: dict[str, Callable[[], Example]] = {}


def register_model(name: str) -> Callable[[F], F]:
    """Returns a decorator that adds the function which makes a model."""

    def register(make: F) -> F:
        MODELS[name] = make
        return make

    return register


# torchvision's wheel has operators for another PyTorch, and its import asks for them; only detectors call them.
_OPERATORS = torch.library.Library("torchvision", "DEF")
for _name in (
    "nms", "qnms", "roi_align", "_roi_align_backward", "roi_pool", "_roi_pool_backward", "ps_roi_align",
    "_ps_roi_align_backward", "ps_roi_pool", "_ps_roi_pool_backward", "deform_conv2d", "_deform_conv2d_backward",
):  # fmt: skip
    _OPERATORS.define(f"{_name}(Tensor x) -> Tensor")
