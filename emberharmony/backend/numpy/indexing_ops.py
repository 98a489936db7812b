"""Reading and writing by index, on NumPy."""

from collections.abc import Sequence
from typing import Any

import numpy as np

from emberharmony.backend.indices import block, columns, host_indices
from emberharmony.backend.numpy.dtypes import DTYPES, cast, promotion
from emberharmony.core.dtypes import default_float


class NumpyIndexingOps:
    """Holds the ops of `ops/indexing.py`."""

    nonzero = staticmethod(np.nonzero)

    @staticmethod
    def where(condition: np.ndarray, x1: Any, x2: Any) -> np.ndarray:
        return np.where(condition, *promotion.common(x1, x2))

    @staticmethod
    def take(x: np.ndarray, indices: Any, axis: int | None = None) -> np.ndarray:
        return np.take(x, host_indices(indices), axis)

    @staticmethod
    def take_along_axis(x: np.ndarray, indices: Any, axis: int | None = -1) -> np.ndarray:
        return np.take_along_axis(x, host_indices(indices), axis)

    @staticmethod
    def get_item(x: np.ndarray, key: Any) -> np.ndarray:
        return x[key]

    @staticmethod
    def slice(x: np.ndarray, start_indices: Sequence[int], shape: Sequence[int]) -> np.ndarray:
        return x[block(x.shape, start_indices, shape)]

    @staticmethod
    def slice_update(x: np.ndarray, start_indices: Sequence[int], updates: np.ndarray) -> np.ndarray:
        result = x.copy()
        result[block(x.shape, start_indices, updates.shape)] = cast(updates, x.dtype)
        return result

    @staticmethod
    def scatter(indices: np.ndarray, values: np.ndarray, shape: Sequence[int]) -> np.ndarray:
        result = np.zeros(tuple(shape), values.dtype)
        np.add.at(result, columns(indices, shape), values)
        return result

    @staticmethod
    def scatter_update(x: np.ndarray, indices: np.ndarray, updates: np.ndarray) -> np.ndarray:
        result = x.copy()
        result[columns(indices, x.shape)] = cast(updates, x.dtype)
        return result

    @staticmethod
    def diagonal(x: np.ndarray, offset: int = 0, axis1: int = 0, axis2: int = 1) -> np.ndarray:
        return np.diagonal(x, offset, axis1, axis2)

    @staticmethod
    def tril_indices(n: int, k: int = 0, m: int | None = None) -> tuple[np.ndarray, np.ndarray]:
        return np.tril_indices(n, k, m)

    @staticmethod
    def triu_indices(n: int, k: int = 0, m: int | None = None) -> tuple[np.ndarray, np.ndarray]:
        return np.triu_indices(n, k, m)

    @staticmethod
    def one_hot(x: np.ndarray, num_classes: int, axis: int = -1, dtype: Any = None) -> np.ndarray:
        hits = x[..., None] == np.arange(num_classes)
        return np.moveaxis(hits, -1, axis).astype(DTYPES[default_float()] if dtype is None else dtype)
