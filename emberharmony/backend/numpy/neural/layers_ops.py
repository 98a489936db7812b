"""The maps that layers apply, on NumPy: one product of all rows, to which the bias is added in place."""

from collections.abc import Callable

import numpy as np


class NumpyLayersOps:
    """Holds the ops of `ops/neural/layers.py`.

    The body multiplies a stack of matrices by the weight, which NumPy 2.4 does without BLAS if that is transposed, in
    20 times the time, and adds the bias in another array.
    """

    composed: Callable[[str], Callable[..., np.ndarray]]

    def linear(
        self, x: np.ndarray, weight: np.ndarray, bias: np.ndarray | None = None, transposed: bool = False
    ) -> np.ndarray:
        dtype = x.dtype
        factor = weight.T if transposed else weight
        is_supported = dtype.char in "fd" and weight.dtype == dtype and factor.ndim == 2 and x.size > 0
        is_fitting = is_supported and x.shape[-1:] == factor.shape[:1]
        if not is_fitting or (bias is not None and (bias.dtype != dtype or bias.shape != factor.shape[1:])):
            return self.composed("linear")(x, weight, bias, transposed)
        # NumPy 2.4 multiplies a stack of matrices by a transposed one without BLAS, in 20 times the time.
        product = (x if x.ndim == 2 else x.reshape(-1, x.shape[-1])) @ factor
        if bias is not None:
            product += bias
        return product if x.ndim == 2 else product.reshape(*x.shape[:-1], factor.shape[1])
