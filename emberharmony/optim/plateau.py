"""`ReduceOnPlateau`, a learning rate that is reduced when a metric stops improving."""

import math
from collections.abc import Mapping
from typing import Any

from emberharmony.core.errors import ArgumentError, ArgumentTypeError
from emberharmony.core.state.commits import Step, assignment, commit
from emberharmony.optim.numbers import Number


class ReduceOnPlateau:
    """A learning rate that is reduced when a metric has stopped improving; give it to an optimizer as `lr`.

    Args:
        lr: the learning rate at the beginning.
        mode: "min" if the metric should fall, "max" if it should rise.
        factor: what the rate is multiplied with, in (0, 1).
        patience: after how many observations without improvement in a row the next one reduces the rate.
        threshold: by how much a metric must be better to count as an improvement; see `threshold_mode`.
        threshold_mode: whether the threshold is relative ("rel") to the best metric or absolute ("abs").
        cooldown: how many observations after a reduction do not count as bad.
        min_lr: the learning rate below which it never falls.
        eps: a reduction by less is left out.

    Attributes:
        lr: the current rate.

    Raises:
        ArgumentError: if an argument is out of range.

    Example:
        >>> from emberharmony import optim
        >>> rate = optim.ReduceOnPlateau(0.5, patience=1)
        >>> for loss in (3.0, 2.0, 2.0, 2.0):
        ...     rate.observe(loss)
        >>> rate.lr
        0.05
    """

    def __init__(
        self,
        lr: float,
        mode: str = "min",
        factor: float = 0.1,
        patience: int = 10,
        threshold: float = 1e-4,
        threshold_mode: str = "rel",
        cooldown: int = 0,
        min_lr: float = 0.0,
        eps: float = 1e-8,
    ) -> None:
        if hasattr(lr, "param_groups"):
            raise ArgumentTypeError(
                "ReduceOnPlateau() begins with a learning rate, and is given to the optimizer: plateau = "
                "optim.ReduceOnPlateau(0.1), then optim.SGD(model, lr=plateau) and plateau.observe(loss)"
            )
        if mode not in ("min", "max"):
            raise ArgumentError(f"ReduceOnPlateau(): mode is {mode!r}, expected 'min' or 'max'")
        if threshold_mode not in ("rel", "abs"):
            raise ArgumentError(f"ReduceOnPlateau(): threshold_mode is {threshold_mode!r}, expected 'rel' or 'abs'")
        if not 0 < factor < 1:
            raise ArgumentError(f"ReduceOnPlateau(): factor is {factor}, expected a number in (0, 1)")
        self.lr = lr
        self._mode, self._factor, self._patience, self._threshold = mode, factor, patience, threshold
        self._relative, self._cooldown, self._least, self._eps = threshold_mode == "rel", cooldown, min_lr, eps
        self.best = math.inf if mode == "min" else -math.inf
        self.bad = 0
        self.cooling = 0

    def __call__(self, count: Number) -> float:
        """Returns the current rate, whatever the count is."""
        return self.lr

    def observe(self, metric: Any) -> None:
        """Records the next value of the metric, and reduces the rate if the metric has not improved for long enough.

        Args:
            metric: a number, or a tensor with one element, such as the validation loss.
        """
        metric_value = float(metric)
        if self._is_better(metric_value):
            self.best, self.bad = metric_value, 0
        else:
            self.bad += 1
        if self.cooling > 0:
            self.cooling -= 1
            self.bad = 0
        if self.bad > self._patience:
            reduced_rate = max(self.lr * self._factor, self._least)
            if self.lr - reduced_rate > self._eps:
                self.lr = reduced_rate
            self.cooling, self.bad = self._cooldown, 0

    def state_dict(self) -> dict[str, float]:
        """Returns the rate and the counters that `observe` changes, by name."""
        return {name: getattr(self, name) for name in _PLATEAU}

    def load_state_dict(self, state_dict: Mapping[str, float]) -> None:
        """Replaces the rate and the counters that `observe` changes by those of a state dict.

        Raises:
            ArgumentError: if anything is missing or unexpected.
        """
        commit(self.loading_steps(state_dict))

    def loading_steps(self, state_dict: Mapping[str, float]) -> list[Step]:
        """Returns the assignments that `load_state_dict` makes, without making them."""
        if state_dict.keys() != set(_PLATEAU):
            raise ArgumentError(f"ReduceOnPlateau: the state has {sorted(state_dict)}, expected {sorted(_PLATEAU)}")
        return [assignment(self, name, value) for name, value in state_dict.items()]

    def _is_better(self, value: float) -> bool:
        improvement_sign = 1.0 if self._mode == "min" else -1.0
        if not self._relative:
            return improvement_sign * value < improvement_sign * self.best - self._threshold
        return improvement_sign * value < improvement_sign * self.best * (1.0 - improvement_sign * self._threshold)


_PLATEAU = ("lr", "best", "bad", "cooling")
