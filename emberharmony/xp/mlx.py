"""The array API standard on the backend "mlx": `from emberharmony.xp import mlx as xp`."""

import sys
from typing import Any

from emberharmony.xp.namespace import namespace


def __getattr__(name: str) -> Any:  # type checkers see any name; the namespace takes the place of this module
    return getattr(namespace("mlx"), name)


sys.modules[__name__] = namespace("mlx")
