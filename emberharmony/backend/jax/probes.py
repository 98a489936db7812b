"""The methods by which `ops.checked` inspects the tensors of JAX."""

import math
from collections.abc import Sequence
from typing import Any

import jax
import numpy as np

from emberharmony.backend.jax.device_ops import default_device
from emberharmony.backend.jax.tracing import array_if_on_host, is_traced, strip_tracers
from emberharmony.backend.probes import Probes


class JAXProbes(Probes):
    """The probes of JAX."""

    def computes_later(self) -> bool:
        """Returns whether the default device is an accelerator."""
        return bool(default_device().platform != "cpu")

    def probe(self, tensor: jax.Array) -> Any:
        """Returns the sum of a tensor, by NumPy if it is in the host's memory, because JAX would compile a program."""
        concrete_tensor = strip_tracers(tensor)
        if concrete_tensor is None:
            return 0.0  # the values are not at hand
        host_array = array_if_on_host(concrete_tensor)
        if host_array is None:  # needs an accelerator
            return super().probe(concrete_tensor)
        widened_array = host_array if host_array.dtype.itemsize > 2 else host_array.astype(np.float32)
        with np.errstate(all="ignore"):
            return float(np.abs(widened_array).sum())

    def failures(self, probes: Sequence[Any], needed: Sequence[Any] = ()) -> list[int]:
        """Returns the places of the probes that are not finite."""
        return [i for i, probe in enumerate(probes) if not math.isfinite(probe)]

    def loses_gradient(self, tensor: Any) -> bool:
        """Returns whether a transform of JAX differentiates a tensor."""
        return isinstance(tensor, jax.Array) and is_traced(tensor)
