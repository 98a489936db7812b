"""Losses, on NumPy: the logarithm of the softmax at the labels alone."""

from collections.abc import Callable

import numpy as np


class NumpyLossesOps:
    """Holds the ops of `ops/losses.py`."""

    composed: Callable[[str], Callable[..., np.ndarray]]

    def sparse_categorical_crossentropy(
        self, target: np.ndarray, output: np.ndarray, from_logits: bool = False, axis: int = -1
    ) -> np.ndarray:
        plain = output.dtype.char in "fd" and target.dtype.kind == "i" and target.shape == output.shape[:-1]
        if not (plain and from_logits and axis == -1 and output.size):
            return self.composed("sparse_categorical_crossentropy")(target, output, from_logits, axis)
        count = output.shape[-1]
        rows, labels = output.reshape(-1, count), target.reshape(-1)
        known = (labels >= 0) & (labels < count)
        shifted = rows - rows.max(-1, keepdims=True)
        chosen = shifted[np.arange(len(rows)), np.where(known, labels, 0)]
        np.exp(shifted, shifted)
        lost = np.log(shifted.sum(-1))
        lost -= chosen
        return np.where(known, lost, lost.dtype.type(0)).reshape(target.shape)
