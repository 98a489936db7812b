"""Matrix products, on Dask: blocks are multiplied, and the products added in a tree."""

import dask.array as da
import numpy as np
from dask.array.einsumfuncs import parse_einsum_input

from emberharmony.backend.dask.blocks import abstract_results, zeros
from emberharmony.backend.dask.dtypes import DTYPES, cast, promotion, widen


def _widen_for_sum(x: da.Array) -> da.Array:
    """Returns a tensor in the dtype in which sums of its products are accurate."""
    return cast(x, DTYPES["int32"]) if x.dtype.kind == "b" else widen(x)


class DaskProductsOps:
    """Holds the ops of `ops/algebra/products.py`.

    Dask multiplies block by block and adds; the body transposes and reshapes, which rechunks the tensor.
    """

    @staticmethod
    def einsum(subscripts: str, *operands: da.Array) -> da.Array:
        abstract_result = abstract_results("einsum", subscripts, *operands)
        tensors = [_widen_for_sum(x) for x in promotion.common(*operands)]
        if not all(x.size for x in tensors):
            return zeros(abstract_result.shape, abstract_result.dtype)
        terms = parse_einsum_input((subscripts, *tensors))[0].split(",")
        # A block on the diagonal of two axes must be cut in the same way along both.
        whole_tensors = [
            x.rechunk({axis: -1 for axis, letter in enumerate(term) if term.count(letter) > 1})
            for x, term in zip(tensors, terms, strict=True)
        ]
        return cast(da.einsum(subscripts, *whole_tensors, dtype=np.dtype(tensors[0].dtype)), abstract_result.dtype)
