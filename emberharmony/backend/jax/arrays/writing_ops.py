"""Writing by any key, on JAX, whose arrays do not change: the result is a new tensor."""

from typing import Any

import jax

from emberharmony.backend.jax.dtypes import promotion
from emberharmony.backend.shared.arrays.indexing import is_plain
from emberharmony.backend.shared.arrays.writing import checked_pair, combine


class JAXWritingOps:
    """Holds the ops of `ops/arrays/writing.py`.

    JAX writes by one program of XLA; the body finds the place of each element.
    """

    composed: Any

    def set_item(self, x: jax.Array, key: Any, value: Any, mode: str = "set") -> jax.Array:
        if not is_plain(key, x.shape):
            composed_result: jax.Array = self.composed("set_item")(x, key, value, mode)
            return composed_result
        old_value, new_value = checked_pair(self, promotion, x, key, value, mode)
        return x.at[key].set(new_value if mode == "set" else combine(self, mode, old_value, new_value))
