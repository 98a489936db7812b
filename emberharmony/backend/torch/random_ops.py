"""Random numbers, on PyTorch: from generators of our own, so that a program's own stream is left alone."""

import threading
from typing import Any

import torch

from emberharmony.backend.indices import as_shape
from emberharmony.backend.random import DEFAULT, Generator
from emberharmony.backend.torch.devices_ops import place
from emberharmony.backend.torch.dtypes import DTYPES
from emberharmony.core.dtypes import default_float

_LOCK = threading.Lock()
_STREAMS: dict[torch.device, torch.Generator] = {}
_SEEDS: list[int] = []


def _stream(device: torch.device) -> torch.Generator:
    if device not in _STREAMS:
        _STREAMS[device] = torch.Generator(device)
        if _SEEDS:
            _STREAMS[device].manual_seed(_SEEDS[-1])
        else:
            _STREAMS[device].seed()
    return _STREAMS[device]


def _drawn(draw: Any, shape: Any, dtype: Any) -> torch.Tensor:
    device = place(None) or torch.get_default_device()
    wanted = DTYPES[default_float()] if dtype is None else dtype
    with _LOCK:
        values: torch.Tensor = draw(as_shape(shape), generator=_stream(device), dtype=wanted, device=device)
    return values


class TorchRandomOps:
    """Holds the ops of `ops/random.py`."""

    @staticmethod
    def random_seed(seed: int) -> None:
        DEFAULT.generator = Generator(seed)
        with _LOCK:
            _SEEDS[:] = [seed & (2**64 - 1)]
            _STREAMS.clear()

    @staticmethod
    def standard_uniform(shape: Any, dtype: Any = None) -> torch.Tensor:
        return _drawn(torch.rand, shape, dtype)

    @staticmethod
    def standard_normal(shape: Any, dtype: Any = None) -> torch.Tensor:
        return _drawn(torch.randn, shape, dtype)
