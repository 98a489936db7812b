"""Writing by any key, on MLX."""

from typing import Any

import mlx.core as mx

from emberharmony.backend.mlx.dtypes import promotion
from emberharmony.backend.shared.indexing import is_plain
from emberharmony.backend.shared.writing import checked_pair, combined


class MLXWritingOps:
    """Holds the ops of `ops/writing.py`."""

    bound: Any
    composed: Any

    def set_item(self, x: mx.array, key: Any, value: Any, mode: str = "set") -> mx.array:
        # MLX 0.32 assigns to a key of None alone as if it had no new axis.
        if not is_plain(key, x.shape) or key is None or (key.__class__ is tuple and any(k is None for k in key)):
            composite: mx.array = self.composed("set_item")(x, key, value, mode)
            return composite
        old, new = checked_pair(self, promotion, x, key, value, mode)
        result = mx.array(x)
        if not old.size:
            return result
        # Make the value depend on `x`: under vmap MLX 0.32 assigns wrongly if `x` is mapped over and the value is not.
        result[key] = mx.where(mx.array(True), new, old) if mode == "set" else combined(self, mode, old, new)
        return result
