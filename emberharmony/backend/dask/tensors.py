"""Conversion, copies and evaluation, on Dask."""

from typing import Any

import dask
import dask.array as da
import numpy as np

from emberharmony.backend.dask.blocks import require_known_lengths
from emberharmony.backend.dask.dtypes import cast
from emberharmony.core.tracing import TensorProxy
from emberharmony.core.trees.tree import tree_leaves


class DaskTensorOps:
    """Holds the ops of `ops/tensor.py`.

    Lengths that are not known yet are computed here; the bodies read them from the shape.
    """

    cast = staticmethod(cast)

    @staticmethod
    def shape(x: da.Array) -> tuple[int, ...]:
        return tuple(int(n) for n in require_known_lengths(x).shape)

    @staticmethod
    def size(x: da.Array) -> int:
        return int(require_known_lengths(x).size)

    @staticmethod
    def copy(x: da.Array) -> da.Array:
        """Returns another array with the same graph; Dask's `x[key] = value` replaces the graph of one array only."""
        return da.Array(x.dask, x.name, x.chunks, meta=x._meta)

    @staticmethod
    def to_numpy(x: da.Array) -> np.ndarray:
        """Returns the tensor's values, computed by Dask's scheduler."""
        return np.asarray(require_known_lengths(x).compute())

    @staticmethod
    def is_tensor(x: Any) -> bool:
        return isinstance(x, (da.Array, TensorProxy))

    @staticmethod
    def eval(*trees: Any) -> None:
        """Computes the tensors in trees by one `dask.persist`; their graphs then hold the results."""
        tensors = [leaf for leaf in tree_leaves(trees) if isinstance(leaf, da.Array)]
        for x, persisted_x in zip(tensors, dask.persist(*tensors), strict=True):
            x.dask, x._name = persisted_x.dask, persisted_x.name
