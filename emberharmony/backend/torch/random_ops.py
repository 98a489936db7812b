"""Random numbers, on PyTorch: from generators of our own, so that PyTorch's global generator is not advanced."""

from typing import Any

import torch

from emberharmony.backend.shared.random import DefaultStream, floating
from emberharmony.backend.shared.shape import as_shape
from emberharmony.backend.torch.device_ops import place
from emberharmony.backend.torch.dtypes import DTYPES
from emberharmony.core.state.draws import watched


class _Generators(dict[torch.device, torch.Generator]):
    """Holds one generator for each device, all started from the same seed."""

    def __init__(self, seed: int) -> None:
        super().__init__()
        self._seed = seed & (2**64 - 1)

    def __missing__(self, device: torch.device) -> torch.Generator:
        return self.setdefault(device, torch.Generator(device).manual_seed(self._seed))


STREAM = DefaultStream(_Generators)


def _drawn(draw: Any, shape: Any, dtype: Any) -> torch.Tensor:
    """Returns the result of `torch.rand` or `torch.randn`, drawn on the default device."""
    device = place(None) or torch.get_default_device()
    wanted = DTYPES[floating(dtype)]
    # No lock is needed: PyTorch holds the generator's own lock while it draws from it or clones it.
    generator = watched(STREAM.get()[device], torch.Generator.clone_state, on_host=False)
    values: torch.Tensor = draw(as_shape(shape), generator=generator, dtype=wanted, device=device)
    return values


class TorchRandomOps:
    """Holds the ops of `ops/random_ops.py`."""

    @staticmethod
    def standard_uniform(shape: Any, dtype: Any = None) -> torch.Tensor:
        return _drawn(torch.rand, shape, dtype)

    @staticmethod
    def standard_normal(shape: Any, dtype: Any = None) -> torch.Tensor:
        return _drawn(torch.randn, shape, dtype)
