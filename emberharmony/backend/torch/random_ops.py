"""Random numbers, on PyTorch: from generators of our own, so that PyTorch's global generator is not advanced."""

import zlib
from binascii import a2b_base64, b2a_base64
from typing import Any

import numpy as np
import torch

from emberharmony.backend.shared.arrays.shape import as_shape
from emberharmony.backend.shared.random_parameters import floating_dtype
from emberharmony.backend.shared.random_state import State, StateReader
from emberharmony.backend.shared.random_streams import DefaultStream, read_streams, restore_streams, streams_state
from emberharmony.backend.torch.device_ops import place
from emberharmony.backend.torch.dtypes import DTYPES
from emberharmony.core.errors import DeviceError
from emberharmony.core.state.draws import stream_to_draw_from


class _Generators(dict[torch.device, torch.Generator]):
    """A dict of one generator for each device, all started from the same seed."""

    def __init__(self, seed: int) -> None:
        super().__init__()
        self.seed = seed & (2**64 - 1)

    def __missing__(self, device: torch.device) -> torch.Generator:
        return self.setdefault(device, torch.Generator(device).manual_seed(self.seed))


STREAM = DefaultStream(_Generators)


def _draw_on_default_device(draw: Any, shape: Any, dtype: Any) -> torch.Tensor:
    """Returns the result of `torch.rand` or `torch.randn`, drawn on the default device."""
    device = place(None) or torch.get_default_device()
    native_dtype = DTYPES[floating_dtype(dtype)]
    # No lock is needed: PyTorch holds the generator's own lock while it draws from it or clones it.
    generator = stream_to_draw_from(STREAM.get()[device], torch.Generator.clone_state, on_host=False)
    draws: torch.Tensor = draw(as_shape(shape), generator=generator, dtype=native_dtype, device=device)
    return draws


def _saved_state() -> State:
    """Returns the seed of the generators, and the state of each device's, compressed, as text in base 64."""
    generators = STREAM.get()
    state_by_device = {
        str(device): generator.get_state().numpy().tobytes() for device, generator in list(generators.items())
    }
    text_by_device = {
        name: b2a_base64(zlib.compress(state), newline=False).decode() for name, state in state_by_device.items()
    }
    return {"seed": f"{generators.seed:x}", "devices": text_by_device}


def _generators_from(reader: StateReader) -> _Generators:
    """Returns generators with a state that `_saved_state` returned.

    Raises:
        ArgumentError: if the state is damaged.
        DeviceError: if this machine lacks a device of the state.
    """
    generators = _Generators(reader.hexadecimal("seed"))
    devices_reader = reader.nested_reader("devices")
    for name in devices_reader.state:
        try:
            device = torch.device(name)
            generator = torch.Generator(device)
        except RuntimeError as error:
            raise DeviceError(
                f"{reader.where} holds a stream of device {name!r}, which this machine lacks: {error}"
            ) from error
        try:
            state = bytearray(zlib.decompress(a2b_base64(devices_reader.state[name])))
            generator.set_state(torch.from_numpy(np.frombuffer(state, np.uint8)))
        except (TypeError, ValueError, RuntimeError, zlib.error) as error:
            raise devices_reader.damage_error(name, "the compressed state of a generator") from error
        generators[device] = generator
    return generators


class TorchRandomOps:
    """Holds the ops of `ops/random_ops.py`.

    The bodies draw on the host, from streams that cannot be saved.
    """

    @staticmethod
    def standard_uniform(shape: Any, dtype: Any = None) -> torch.Tensor:
        return _draw_on_default_device(torch.rand, shape, dtype)

    @staticmethod
    def standard_normal(shape: Any, dtype: Any = None) -> torch.Tensor:
        return _draw_on_default_device(torch.randn, shape, dtype)

    @staticmethod
    def random_get_state() -> State:
        return streams_state("torch", _saved_state)

    @staticmethod
    def random_set_state(state: State) -> None:
        native_reader, seed = read_streams("torch", state)
        restore_streams(seed, STREAM, _generators_from(native_reader))
