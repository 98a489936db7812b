"""Arrays of the array API standard on every backend, for libraries that are written for the standard.

>>> from emberharmony.xp import numpy as xp
>>> x = xp.asarray([[1.0, 2.0], [3.0, 4.0]])
>>> x[x > 1.5] = 0.0
>>> x.T.tolist()
[[1.0, 0.0], [0.0, 0.0]]

`emberharmony.xp.mlx`, `torch` and `jax` are the same for other backends, and `namespace("mlx")` returns them.
"""

from emberharmony.xp.array import ArrayBase as ArrayBase
from emberharmony.xp.namespace import namespace as namespace
from emberharmony.xp.scipy import enable_scipy as enable_scipy

__all__ = ["ArrayBase", "enable_scipy", "namespace"]
