"""Two backends whose programs the tests of `compare` compare, and an argument for these."""

from functools import partial

import numpy as np
import pytest

import emberharmony
from emberharmony.backend.discovery import is_installed

OTHER = next((name for name in ("torch", "mlx") if is_installed(name)), "numpy")
PAIR = ("numpy", OTHER)
two_backends = pytest.mark.skipif(OTHER == "numpy", reason="NumPy is the only backend, so both sides have its name")
compare = partial(emberharmony.compare, backends=PAIR)
X = np.random.default_rng(0).normal(size=(4, 4)).astype("float32")
