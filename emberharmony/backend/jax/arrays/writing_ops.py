"""Writing by any key, on JAX, whose arrays do not change: the result is a new tensor."""

from typing import Any

import jax

from emberharmony.backend.jax.dtypes import promotion
from emberharmony.backend.shared.arrays.indexing import is_basic_key
from emberharmony.backend.shared.arrays.writing import combine_values, old_and_new_values


class JAXWritingOps:
    """Holds the ops of `ops/arrays/writing.py`.

    JAX writes by one program of XLA; the body finds the place of each element.
    """

    composed: Any

    def set_item(self, x: jax.Array, key: Any, value: Any, mode: str = "set") -> jax.Array:
        if not is_basic_key(key, x.shape):
            composed_result: jax.Array = self.composed("set_item")(x, key, value, mode)
            return composed_result
        old_value, new_value = old_and_new_values(self, promotion, x, key, value, mode)
        return x.at[key].set(new_value if mode == "set" else combine_values(self, mode, old_value, new_value))
