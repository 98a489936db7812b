"""Mixed precision: the rules of `autocast`, and what they leave alone, on every backend."""

import threading
from typing import Any

import numpy as np
import pytest

from emberharmony import Parameter, ops
from emberharmony.errors import DTypeError

DTYPES = ("float16", "bfloat16")


def name(x: Any) -> str:
    return str(ops.dtype(x).name)


@pytest.mark.parametrize("dtype", DTYPES)
def test_each_op_computes_in_the_dtype_of_its_rule(backend: str, dtype: Any) -> None:
    x, w = ops.ones((4, 3)), Parameter(ops.ones((3, 2)))
    with ops.autocast(dtype):
        h = ops.matmul(x, w)
        assert name(ops.matmul([[1.0]], [[2.0]])) == name(ops.einsum("i,i->", [1.0], [2.0])) == dtype
        assert name(h) == name(ops.linear(x, w, [0.0, 1.0])) == name(ops.einsum("ij,jk->ik", x, w)) == dtype
        assert name(ops.relu(h)) == name(ops.gelu(h)) == name(ops.multiply(h, 2.0)) == dtype
        assert {name(f(h)) for f in (ops.softmax, ops.exp, ops.mean, ops.layer_normalization)} == {"float32"}
        assert name(ops.add(h, ops.ones(2))) == "float32"
        assert name(ops.concat([h, h])) == dtype
        assert name(ops.matmul(ops.ones((2, 2), "int32"), ops.ones((2, 2), "int32"))) == "int32"
    assert name(w.value) == "float32"
    assert name(ops.matmul(x, w)) == "float32"


def test_axes_and_lists_of_tensors_keep_their_kind(backend: str) -> None:
    x = ops.full((2, 200), 1000.0, "float16")
    with ops.autocast("float16"):
        total = ops.sum(x, axis=(0, 1))  # beyond the range of float16
        both = ops.einsum("ij,kj->ik", *[x / 1000.0, x / 1000.0])
    assert (name(total), total.tolist()) == ("float32", 400_000.0)
    assert (name(both), both.tolist()) == ("float16", [[200.0] * 2] * 2)


def test_float64_stays(backend: str) -> None:
    with ops.autocast("float16"):
        assert name(ops.matmul(ops.ones((2, 2), "float64"), ops.ones((2, 2), "float64"))) == "float64"


@pytest.mark.parametrize("dtype", DTYPES)
def test_gradients_keep_the_dtype_of_the_parameters_inside_and_outside(backend: str, dtype: Any) -> None:
    rng = np.random.default_rng(0)
    x, start = rng.normal(size=(8, 4)).astype("float32"), rng.normal(size=(4, 3)).astype("float32")

    def loss(w: Any) -> Any:
        return ops.mean(ops.square(ops.softmax(ops.gelu(ops.matmul(x, w)))))

    wanted = ops.to_numpy(ops.grad(loss)(start))
    with ops.autocast(dtype):
        inside = ops.grad(loss)(start)

    def cast(w: Any) -> Any:
        with ops.autocast(dtype):
            return loss(w)

    limit = 0.03 if dtype == "bfloat16" else 0.004
    for found in (inside, ops.grad(cast)(start)):
        assert name(found) == "float32"
        np.testing.assert_allclose(ops.to_numpy(found), wanted, atol=limit * np.abs(wanted).max())
        assert np.abs(ops.to_numpy(found) - wanted).max() > 0


def test_other_blocks_end_the_rules_and_restore_them(backend: str) -> None:
    x = ops.ones((2, 2))
    with ops.autocast("float16"):
        with ops.use_backend(backend):
            assert name(ops.matmul(x, x)) == "float32"
        with ops.autocast(enabled=False):
            assert name(ops.matmul(x, x)) == "float32"
        with ops.autocast("bfloat16"):
            assert name(ops.matmul(x, x)) == "bfloat16"
        assert name(ops.matmul(x, x)) == "float16"
        assert ops.get_backend() == backend


def test_other_threads_do_not_see_the_block(backend: str) -> None:
    found: list[str] = []
    x = ops.ones((2, 2))
    ops.eval(x)

    def run() -> None:
        with ops.use_backend(backend):
            found.append(name(ops.matmul(ops.ones((2, 2)), ops.ones((2, 2)))))

    with ops.autocast("float16"):
        thread = threading.Thread(target=run)
        thread.start()
        thread.join()
    assert found == ["float32"]


def test_transforms_and_compiled_functions_follow_the_block(quick: str) -> None:
    x = ops.ones((4, 3))
    product = ops.compile(lambda x: ops.matmul(x, ops.ones((3, 2))))
    for _ in range(2):
        assert name(product(x)) == "float32"
        for dtype in ("bfloat16", "float16"):
            with ops.autocast(dtype):
                assert name(product(x)) == dtype
                assert name(ops.vmap(lambda row: ops.matmul(row, ops.ones((3, 2))))(x)) == dtype
                assert name(ops.checkpoint(lambda x: ops.matmul(x, ops.ones((3, 2))))(x)) == dtype


def test_other_dtypes_are_refused() -> None:
    for wrong in ("float32", "int8"):
        with pytest.raises(DTypeError, match=f"takes 'bfloat16' or 'float16', not '{wrong}'"), ops.autocast(wrong):  # type: ignore[arg-type]
            pass
