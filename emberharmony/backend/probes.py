"""What the checks of `ops.checked` ask a backend about tensors, beside ops: each subclass answers as fast as it can.

A sum (PyTorch, 1.3 µs for 4,096 elements) or a sum of squares by BLAS (NumPy, 0.8) tells whether all elements are
finite; `torch.isfinite(x).all()` takes 12 µs, and `torch.aminmax` 4 times as long as the sum for 2**20 elements.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, ClassVar

from emberharmony.core.deferred import Deferred

if TYPE_CHECKING:
    import numpy as np

    from emberharmony.backend.shared import numbers
    from emberharmony.transforms.logs.statistics import ValueStatistics
else:
    np = Deferred("numpy")
    numbers = Deferred("emberharmony.backend.shared.numbers")


class Probes:
    """The part of a backend that looks for numbers that are not finite."""

    bound: Any
    dtypes: ClassVar[Any]
    has_nodes: ClassVar[bool] = False
    """Whether the library computes gradients by a graph whose nodes can be looked at: see `look_at_nodes`."""

    def computes_later(self) -> bool:
        """Returns whether reading a value is dear, because the library computes later or on an accelerator."""
        return False

    def probe(self, tensor: Any) -> Any:
        """Returns a number, or a tensor with one element, that is finite only if all elements of a tensor are.

        It may be infinite although they are finite, because a sum may overflow. It is computed as late as possible.
        """
        return self.bound.sum(self.bound.absolute(tensor))

    def failures(self, probes: Sequence[Any], needed: Sequence[Any] = ()) -> list[int]:
        """Returns the indices of those of the results of `probe` that are not finite.

        Args:
            probes: what `probe` returned.
            needed: tensors that the caller is going to evaluate, so that one evaluation does both.
        """
        return [i for i, probe in enumerate(probes) if not math.isfinite(probe)]

    def tally(self, tensor: Any) -> numbers.Numbers:
        """Returns how many elements of a tensor, or of a Python number, are NaN, infinite, zero or negative."""
        return numbers.number_counts(
            np.asarray(tensor, np.float64) if isinstance(tensor, float) else self.to_wide_host_array(tensor)
        )

    def statistics(self, tensor: Any) -> ValueStatistics:
        """Returns the mean, the standard deviation and other numbers about the finite elements of a tensor."""
        return numbers.statistics_of(self.to_wide_host_array(tensor))

    def to_wide_host_array(self, tensor: Any) -> np.ndarray[Any, Any]:
        """Returns a tensor as an array of float64 or complex128 on the host."""
        is_complex = self.dtypes.neutral[tensor.dtype].kind == "complex"
        if not is_complex and self.dtypes.neutral[tensor.dtype].itemsize < 4:
            tensor = self.bound.cast(tensor, self.dtypes["float32"])
        array = self.bound.to_numpy(self.bound.stop_gradient(tensor))
        return np.asarray(array, np.complex128 if is_complex else np.float64)

    def pending_op_count(self, tensor: Any) -> int:
        """Returns how many operations have to run before a tensor has values; 0 if the library computes at once."""
        return 0

    def keeps_nodes(self, primals: Sequence[Any]) -> bool:
        """Returns whether `look_at_nodes` sees all nodes of a gradient with respect to tensors, in this thread."""
        return False

    def node_of(self, tensor: Any) -> Any:
        """Returns the node of the library's graph that computed a tensor, a hashable object; None if there is none."""
        return None

    def look_at_nodes(self, loss: Any, notes: Mapping[Any, Any], look: Callable[[Any], Callable[..., None]]) -> None:
        """Registers functions that are called with the gradients that the nodes of a loss's graph compute later.

        Args:
            loss: the result whose gradient will be computed.
            notes: what is known of nodes; a node that is not in it shares the note of a node that reads its result.
                Nodes with the note None are left out, and those that only change shapes.
            look: returns for the note of a node the function that is called when the node has computed, with the
                gradients of its arguments and those of its results; None stands for one that is not needed.
        """

    def loses_gradient(self, tensor: Any) -> bool:
        """Returns whether the library's own automatic differentiation records a tensor, so that a copy loses it."""
        return False
