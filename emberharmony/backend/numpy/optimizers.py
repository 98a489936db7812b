"""Computes steps of optimizers by the operations of their rules, with the same bits, written into few arrays."""

import math
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from emberharmony.backend.shared.optimizers import one_minus_power


def adam(
    gradient: np.ndarray,
    parameter: np.ndarray,
    averages: Sequence[np.ndarray],
    step: int,
    hyper: Mapping[str, Any],
) -> list[np.ndarray]:
    """Returns what a step of Adam makes of a parameter and its averages; see `Backend.adam`."""
    dtype = parameter.dtype

    def number(x: float) -> np.ndarray:
        return np.asarray(x, dtype)

    beta1, beta2 = hyper["betas"]
    rate, decay = hyper["lr"], hyper["weight_decay"]
    if hyper["maximize"]:
        gradient = np.negative(gradient)
    scratch = np.empty_like(parameter)
    if decay and hyper["decoupled_weight_decay"]:
        parameter = np.multiply(parameter, number(1.0 - rate * decay))
    elif decay:
        gradient = np.add(gradient, np.multiply(parameter, number(decay), scratch))
    mean = np.subtract(gradient, averages[0])
    np.multiply(mean, number(1 - beta1), mean)
    np.add(averages[0], mean, mean)
    square = np.multiply(averages[1], number(beta2))
    np.multiply(gradient, gradient, scratch)
    np.multiply(scratch, number(1 - beta2), scratch)
    np.add(square, scratch, square)
    made = [mean, square]
    if hyper["amsgrad"]:
        made.append(np.maximum(averages[2], square))
    np.sqrt(made[-1], scratch)
    np.divide(scratch, number(math.sqrt(one_minus_power(beta2, step))), scratch)
    np.add(scratch, number(hyper["eps"]), scratch)
    np.divide(mean, scratch, scratch)
    np.multiply(scratch, number(rate / one_minus_power(beta1, step)), scratch)
    return [np.subtract(parameter, scratch, scratch), *made]
