"""The methods by which `ops.checked` inspects the tensors of MLX."""

import io
import math
from collections.abc import Sequence
from typing import Any

import mlx.core as mx

from emberharmony.backend.probes import Probes


class MLXProbes(Probes):
    """The probes of MLX."""

    def computes_later(self) -> bool:
        """Returns True: MLX computes when values are read."""
        return True

    def probe(self, tensor: mx.array) -> mx.array:
        """Returns the sum of a tensor, which MLX computes later."""
        tensor_sum = mx.sum(mx.stop_gradient(tensor))
        return mx.real(tensor_sum) + mx.imag(tensor_sum) if tensor_sum.dtype == mx.complex64 else tensor_sum

    def failures(self, probes: Sequence[Any], needed: Sequence[Any] = ()) -> list[int]:
        """Returns the places of the probes that are not finite, after one evaluation."""
        mx.eval(*probes, *needed)
        return [i for i, probe in enumerate(probes) if not math.isfinite(probe.item())]

    def pending_op_count(self, tensor: Any) -> int:
        """Returns how many operations have to run before a tensor has values."""
        graph_buffer = io.StringIO()
        mx.export_to_dot(graph_buffer, tensor)
        return graph_buffer.getvalue().count("shape=rectangle")
