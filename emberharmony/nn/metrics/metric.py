"""`Metric`, the base class of metrics, and `Mean`, the metric of a weighted mean."""

import math
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, ClassVar, TypeVar

from emberharmony import ops
from emberharmony.core.cells.cell import Cell
from emberharmony.core.deferred import Deferred
from emberharmony.core.errors import ArgumentError, ArgumentTypeError, brief
from emberharmony.core.types import HostArray, TensorLike

if TYPE_CHECKING:
    from emberharmony.backend.shared.neural import metrics as host
else:
    host = Deferred("emberharmony.backend.shared.neural.metrics")

M = TypeVar("M", bound="Metric")


class Metric:
    """The base of metrics.

    A subclass defines `initial`, the sums before the first update; `update`, which gives new sums to `add_sums`; and
    `compute`. An update changes all sums or none.
    """

    growing: ClassVar[tuple[str, ...]] = ()
    """The names of the state's entries that grow with each update."""

    def __init__(self) -> None:
        self._state = self.initial()

    def initial(self) -> dict[str, Any]:
        """Returns the initial sums of the metric by name, before any update."""
        raise NotImplementedError

    def compute(self) -> Any:
        """Returns the metric over all updates since `reset`."""
        raise NotImplementedError

    def reset(self) -> None:
        """Resets the sums to their initial values."""
        self._state = self.initial()

    def merge(self: M, other: M) -> M:
        """Adds the sums of another metric of the same class and options to this one, and returns this metric.

        Args:
            other: a metric of the same class and options.

        Raises:
            ArgumentTypeError: if the other one is of another class.
            ArgumentError: if its sums have other shapes, because its options differ.
        """
        if type(other) is not type(self):
            raise ArgumentTypeError(f"{type(self).__name__}.merge() takes a {type(self).__name__}, not {brief(other)}")
        self._require_matching_state("merge", other._state)
        self.add_sums(other._state)
        return self

    def add_sums(self, sums: Mapping[str, Any]) -> None:
        """Adds sums to those of this metric."""
        self._state = {name: value + sums[name] for name, value in self._state.items()}

    def state_dict(self) -> dict[str, Any]:
        """Returns the sums as numbers and lists."""
        return {name: value.tolist() if hasattr(value, "tolist") else value for name, value in self._state.items()}

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """Replaces the sums by those of a state dict.

        Raises:
            ArgumentError: if it is not the state of a metric of this class and options; nothing is changed.
        """
        if not isinstance(state, Mapping) or state.keys() != self._state.keys():
            raise ArgumentError(
                f"{type(self).__name__}.load_state_dict() takes a dict with {sorted(self._state)}, not {brief(state)}"
            )
        new_state = {
            name: host.state_array(state[name]) if hasattr(value, "shape") else type(value)(state[name])
            for name, value in self._state.items()
        }
        self._require_matching_state("load_state_dict", new_state)
        self._state = new_state

    def _require_matching_state(self, method: str, state: Mapping[str, Any]) -> None:
        for name, value in self._state.items():
            saved_shape, expected_shape = getattr(state[name], "shape", ()), getattr(value, "shape", ())
            if saved_shape != expected_shape and name not in self.growing:
                raise ArgumentError(
                    f"{type(self).__name__}.{method}(): {name!r} has shape {saved_shape}, expected {expected_shape}; "
                    "the options "
                    f"differ"
                )

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.compute()!r})"


class Mean(Metric):
    """The mean of numbers, such as losses, with weights.

    Example:
        >>> from emberharmony import nn
        >>> mean = nn.metrics.Mean()
        >>> mean.update([1.0, 2.0])
        >>> mean.update(6.0, weight=2)
        >>> mean.compute()
        3.75
    """

    def initial(self) -> dict[str, Any]:
        return {"total": 0.0, "weight": 0.0}

    def update(self, values: TensorLike, weight: TensorLike = 1.0) -> None:
        """Adds numbers with their weights, which broadcast, to the weighted mean.

        Args:
            values: numbers of any shape.
            weight: how much each number counts, which broadcasts against the values.

        Raises:
            ShapeError: if the shapes do not broadcast.
        """
        weighted_sum, weight_sum = host.weighted_sums(to_host_array("values", values), to_host_array("weight", weight))
        self.add_sums({"total": weighted_sum, "weight": weight_sum})

    def compute(self) -> float:
        return quotient(self._state["total"], self._state["weight"])


def to_host_array(name: str, value: TensorLike) -> HostArray:
    """Returns a tensor, array or list as a NumPy array.

    Raises:
        ArgumentTypeError: if it does not hold real numbers.
    """
    if ops.is_tensor(value) or isinstance(value, Cell):
        tensor = ops.stop_gradient(value)
        dtype = ops.dtype(tensor)
        value = ops.to_numpy(ops.cast(tensor, "float32") if dtype.is_floating and dtype.bits == 16 else tensor)
    return host.checked_numbers(name, value)


def quotient(total: float, count: float) -> float:
    """Returns the quotient of a total and a count; NaN if the count is 0."""
    return total / count if count else math.nan
