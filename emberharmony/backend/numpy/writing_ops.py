"""Writing by any key, on NumPy."""

from typing import Any

import numpy as np

from emberharmony.backend.host import refuse_masked
from emberharmony.backend.numpy.dtypes import promotion
from emberharmony.backend.shared.writing import check_mode, does_not_fit, held, suits

_UFUNCS = {"add": np.add, "multiply": np.multiply, "min": np.minimum, "max": np.maximum}


class NumpyWritingOps:
    """Holds the ops of `ops/writing.py`."""

    def set_item(self, x: np.ndarray, key: Any, value: Any, mode: str = "set") -> np.ndarray:
        check_mode(mode)
        refuse_masked(key)
        new, result = held(self, value, x), x.copy()
        if mode in ("min", "max"):
            promotion.refuse(x, ("complex",))
        try:
            if mode == "set":
                result[key] = new
            else:
                # Unlike `result[key] += new`, `at` applies all values of a repeated index. It takes no more axes than
                # the key selects.
                spare = 0 if new.ndim < 2 else max(new.ndim - np.ndim(x[key]), 0)
                _UFUNCS[mode].at(result, key, new.reshape(new.shape[spare:]) if spare else new)
        except ValueError as error:
            if suits(new.shape, x[key].shape):
                raise
            raise does_not_fit(new.shape, x[key].shape) from error
        return result
