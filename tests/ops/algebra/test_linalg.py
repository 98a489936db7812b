"""The namespace `ops.linalg` follows the extension of the array API standard."""

import numpy as np
import pytest

from emberharmony import ops
from emberharmony.core import errors

STANDARD = (
    *("cholesky", "cross", "det", "diagonal", "eig", "eigh", "eigvals", "eigvalsh", "inv", "matmul", "matrix_norm"),
    *("matrix_power", "matrix_rank", "matrix_transpose", "outer", "pinv", "qr", "slogdet", "solve", "svd", "svdvals"),
    *("tensordot", "trace", "vecdot", "vector_norm"),
)
OWN = ("diagonal", "trace")


@pytest.mark.parametrize("name", STANDARD)
def test_the_namespace_has_the_names_of_the_standard(name: str) -> None:
    function = getattr(ops.linalg, name)
    assert (function is getattr(ops, name)) == (name not in OWN)


def test_diagonal_and_trace_work_on_the_last_two_axes(backend: str) -> None:
    x = np.arange(12).reshape(2, 2, 3)
    assert ops.linalg.diagonal(x, 1).tolist() == [[1, 5], [7, 11]]
    assert ops.linalg.trace(x).tolist() == [4, 16]
    assert ops.linalg.trace(x, -1).tolist() == [3, 9]
    assert ops.dtype(ops.linalg.trace(x.astype(np.int8))) == "int64"
    assert ops.dtype(ops.linalg.trace(x, dtype="float32")) == "float32"
    for op in (ops.linalg.trace, ops.linalg.diagonal):
        with pytest.raises(errors.ShapeError):
            op(np.ones(3))


def test_results_have_the_field_names_of_the_standard(backend: str) -> None:
    x = np.eye(2, dtype=np.float32)
    assert ops.linalg.svd(x)._fields == ("U", "S", "Vh")
    assert ops.linalg.qr(x)._fields == ("Q", "R")
    assert ops.linalg.eigh(x)._fields == ops.linalg.eig(x)._fields == ("eigenvalues", "eigenvectors")
    assert ops.linalg.slogdet(x)._fields == ("sign", "logabsdet")
