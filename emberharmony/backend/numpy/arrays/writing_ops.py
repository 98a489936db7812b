"""Writing by any key, on NumPy."""

from typing import TYPE_CHECKING, Any

import numpy as np

from emberharmony.backend.host import safe_key
from emberharmony.backend.numpy.dtypes import promotion
from emberharmony.core.deferred import Deferred
from emberharmony.core.dispatch import fast

if TYPE_CHECKING:
    from emberharmony.backend.shared.arrays import writing as shared_writing
else:
    shared_writing = Deferred("emberharmony.backend.shared.arrays.writing")

_UFUNCS = {"add": np.add, "multiply": np.multiply, "min": np.minimum, "max": np.maximum}


_MOST_AXES = 32
"""`ufunc.at` (NumPy 2.4) crashes if a key selects more axes, as with 40 times None."""


def _quick_set_item(x: np.ndarray, key: np.ndarray, value: np.ndarray, _mode: str) -> np.ndarray:
    written_copy = x.copy()
    written_copy[safe_key(key)] = value
    return written_copy


def _drop_spare_axes(value: np.ndarray, selected_elements: Any) -> np.ndarray:
    """Returns a value without leading axes of length 1, as many axes as the selected elements have."""
    return value.reshape(value.shape[max(value.ndim - np.ndim(selected_elements), 0) :])


class NumpyWritingOps:
    """Holds the ops of `ops/arrays/writing.py`.

    NumPy writes into a copy; the body finds the place of each element, in 6 to 13 times the time, for few elements.
    """

    @fast(
        _quick_set_item,
        "{3} == 'set' and {1}.__class__ is native_type and {2}.__class__ is native_type and {0}.dtype is {2}.dtype",
    )
    def set_item(self, x: np.ndarray, key: Any, value: Any, mode: str = "set") -> np.ndarray:
        shared_writing.check_mode(mode)
        key = safe_key(key)
        new_value, written_copy = shared_writing.value_like(self, promotion, value, x), x.copy()
        if mode in ("min", "max"):
            promotion.refuse(x, ("complex",))
        try:
            if mode == "set":
                try:
                    written_copy[key] = new_value
                except (TypeError, ValueError):
                    # NumPy 2.4 does not write an array with more axes than a key selects into one element or at a mask.
                    written_copy[key] = _drop_spare_axes(new_value, x[key])
            else:
                # Unlike `result[key] += new`, `at` applies all values of a repeated index. It takes no more axes than
                # the key selects.
                selected_elements = x[key]
                fitting_value = _drop_spare_axes(new_value, selected_elements)
                if np.ndim(selected_elements) > _MOST_AXES:
                    flat_indices = np.arange(x.size).reshape(x.shape)[key]
                    _UFUNCS[mode].at(
                        written_copy.reshape(-1),
                        flat_indices.ravel(),
                        np.broadcast_to(fitting_value, flat_indices.shape).ravel(),
                    )
                else:
                    _UFUNCS[mode].at(written_copy, key, fitting_value)
        except (TypeError, ValueError) as error:
            raise shared_writing.misfit_error(new_value.shape, x[key].shape) from error
        return written_copy
