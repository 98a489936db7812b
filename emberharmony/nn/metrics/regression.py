"""Metrics of numbers: the sizes of errors, and the share of the variance that predictions explain."""

import math
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from emberharmony.core.deferred import Deferred
from emberharmony.core.types import HostArray, TensorLike
from emberharmony.nn.metrics.metric import Metric, quotient, to_host_array

if TYPE_CHECKING:
    from emberharmony.backend.shared.neural import metrics as host
else:
    host = Deferred("emberharmony.backend.shared.neural.metrics")


class MSE(Metric):
    """The mean of squared differences.

    Example:
        >>> from emberharmony import nn
        >>> error = nn.metrics.MSE()
        >>> error.update([1.0, 2.0], [1.0, 4.0])
        >>> error.compute()
        2.0
    """

    def initial(self) -> dict[str, Any]:
        return {"total": 0.0, "count": 0}

    def update(self, predictions: TensorLike, target: TensorLike) -> None:
        """Adds the errors of a batch of predictions and targets, which have the same shape.

        Args:
            predictions, target: real tensors of one shape.

        Raises:
            ShapeError: if the shapes differ.
        """
        predicted_values, target_values = _as_float64_pair(predictions, target)
        self.add_sums({"total": self.error_sum(predicted_values - target_values), "count": int(target_values.size)})

    @staticmethod
    def error_sum(difference: HostArray) -> float:
        """Returns the sum over the differences."""
        return float((difference * difference).sum())

    def compute(self) -> float:
        return quotient(self._state["total"], self._state["count"])


class MAE(MSE):
    """The mean of absolute differences.

    Example:
        >>> from emberharmony import nn
        >>> error = nn.metrics.MAE()
        >>> error.update([1.0, 2.0], [1.0, 4.0])
        >>> error.compute()
        1.0
    """

    @staticmethod
    def error_sum(difference: HostArray) -> float:
        """Returns the sum over the differences."""
        return float(abs(difference).sum())


class R2(Metric):
    """The share of the variance of the targets that predictions explain: 1 less the ratio of the squared errors to it.

    The squares are those of differences from the mean, so targets far from 0 lose no digits.

    Example:
        >>> from emberharmony import nn
        >>> share = nn.metrics.R2()
        >>> share.update([2.5, 0.0, 2.0, 8.0], [3.0, -0.5, 2.0, 7.0])
        >>> round(share.compute(), 4)
        0.9486
    """

    def initial(self) -> dict[str, Any]:
        return {"error": 0.0, "count": 0, "mean": 0.0, "squares": 0.0}

    def update(self, predictions: TensorLike, target: TensorLike) -> None:
        """Adds the errors of a batch of predictions and targets, which have the same shape.

        Args:
            predictions, target: real tensors of one shape.

        Raises:
            ShapeError: if the shapes differ.
        """
        predicted_values, target_values = _as_float64_pair(predictions, target)
        if target_values.size:
            target_mean = float(target_values.mean())
            squared_deviations = float(((target_values - target_mean) ** 2).sum())
            squared_error = float(((predicted_values - target_values) ** 2).sum())
            self.add_sums(
                {
                    "error": squared_error,
                    "count": int(target_values.size),
                    "mean": target_mean,
                    "squares": squared_deviations,
                }
            )

    def add_sums(self, sums: Mapping[str, Any]) -> None:
        state = self._state
        new_count = state["count"] + sums["count"]
        if not new_count:
            return
        new_share, mean_difference = sums["count"] / new_count, sums["mean"] - state["mean"]
        self._state = {
            "error": state["error"] + sums["error"],
            "count": new_count,
            "mean": state["mean"] + mean_difference * new_share,
            "squares": state["squares"]
            + sums["squares"]
            + mean_difference * mean_difference * new_share * state["count"],
        }

    def compute(self) -> float:
        if not self._state["count"]:
            return math.nan
        squared_error, squared_deviations = float(self._state["error"]), float(self._state["squares"])
        if not squared_deviations:  # R2 of equal targets, defined as in scikit-learn
            return 0.0 if squared_error else 1.0
        return 1.0 - squared_error / squared_deviations


def _as_float64_pair(predictions: TensorLike, target: TensorLike) -> tuple[HostArray, HostArray]:
    """Returns predictions and targets as float64 arrays after a check that they have the same shape."""
    predicted_values, target_values = to_host_array("predictions", predictions), to_host_array("target", target)
    host.require_shape("predictions", predicted_values, target_values.shape, "that of target")
    return predicted_values.astype("float64"), target_values.astype("float64")
