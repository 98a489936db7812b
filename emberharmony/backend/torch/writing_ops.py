"""Writing by any key, on PyTorch."""

from typing import Any

import torch

from emberharmony.backend.shared.indexing import is_plain
from emberharmony.backend.shared.writing import check_mode, does_not_fit, held, suits
from emberharmony.backend.torch.dtypes import promotion

_COMBINE = {"add": "add", "multiply": "multiply", "min": "minimum", "max": "maximum"}


class TorchWritingOps:
    """Holds the ops of `ops/writing.py`."""

    bound: Any
    composed: Any

    def set_item(self, x: torch.Tensor, key: Any, value: Any, mode: str = "set") -> torch.Tensor:
        if not is_plain(key, x.shape):
            composite: torch.Tensor = self.composed("set_item")(x, key, value, mode)
            return composite
        check_mode(mode)
        new, old = held(self, value, x), x[key]
        if not suits(new.shape, old.shape):
            raise does_not_fit(new.shape, old.shape)
        if mode in ("min", "max"):
            promotion.refuse(x, ("complex",))
        new = new.reshape(new.shape[max(new.ndim - old.ndim, 0) :])
        result = x.clone()
        result[key] = new if mode == "set" else getattr(self.bound, _COMBINE[mode])(old, new)
        return result
