"""The ops that Dask takes over from `backend/arrayapi`, with functions of blocks as the namespace."""

from functools import partial
from typing import Any, ClassVar

import dask.array as da
import numpy as np

from emberharmony.backend.arrayapi import standard_ops
from emberharmony.backend.arrayapi.library import Library
from emberharmony.backend.dask.dtypes import DTYPES, cast, promotion, widen
from emberharmony.backend.dask.reductions import fold_blocks
from emberharmony.backend.dask.shapes import reshape_to


class _Blocks:
    """The functions of the standard: Dask's, and reductions by those of the NumPy backend, block by block."""

    sum = staticmethod(partial(fold_blocks, "sum"))
    prod = staticmethod(partial(fold_blocks, "prod"))
    max = staticmethod(partial(fold_blocks, "max"))
    min = staticmethod(partial(fold_blocks, "min"))
    any = staticmethod(partial(fold_blocks, "any"))
    all = staticmethod(partial(fold_blocks, "all"))
    reshape = staticmethod(reshape_to)

    def __getattr__(self, name: str) -> Any:
        return getattr(da, name)


class _DaskLibrary(Library):
    takes_all: ClassVar[bool] = True
    cast = astype = staticmethod(cast)
    widen = widen_for_product = staticmethod(widen)

    def number(self, value: Any, like: da.Array) -> Any:
        """Returns a number as a NumPy array without axes, which Dask passes to each block."""
        return np.asarray(value, like.dtype)


DaskStandardOps: Any = type(
    "DaskStandardOps", (), standard_ops(_DaskLibrary("dask", _Blocks(), DTYPES, promotion), da.Array)
)
"""The mixin that holds these ops; other mixins correct some."""
