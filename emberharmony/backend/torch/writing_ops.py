"""Writing by any key, on PyTorch."""

from typing import Any

import torch

from emberharmony.backend.shared.indexing import is_plain
from emberharmony.backend.shared.writing import checked_pair, combined
from emberharmony.backend.torch.dtypes import promotion


class TorchWritingOps:
    """Holds the ops of `ops/writing.py`."""

    bound: Any
    composed: Any

    def set_item(self, x: torch.Tensor, key: Any, value: Any, mode: str = "set") -> torch.Tensor:
        if not is_plain(key, x.shape):
            composite: torch.Tensor = self.composed("set_item")(x, key, value, mode)
            return composite
        old, new = checked_pair(self, promotion, x, key, value, mode)
        result = x.clone()
        result[key] = new if mode == "set" else combined(self, mode, old, new)
        return result
