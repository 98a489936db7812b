"""Complex numbers: their parts, and conversion to and from pairs of real numbers."""

from typing import Any

import numpy as np
import pytest

from emberharmony import ops
from emberharmony.core.errors import DTypeError, ShapeError

Z = np.array([1 + 2j, -3.5j, -2.0, 0j], np.complex64)


def test_view_as_real_and_view_as_complex_undo_each_other(backend: str) -> None:
    pairs = ops.view_as_real(Z)
    assert pairs.tolist() == [[1.0, 2.0], [0.0, -3.5], [-2.0, 0.0], [0.0, 0.0]]
    assert ops.dtype(pairs) == "float32"
    assert ops.to_numpy(ops.view_as_complex(pairs)).tolist() == Z.tolist()


@pytest.mark.parametrize("dtype", ["float16", "bfloat16", "int32"])
def test_narrow_pairs_make_complex64(backend: str, dtype: str) -> None:
    made = ops.view_as_complex(ops.cast([[1, 2]], dtype))
    assert ops.dtype(made) == "complex64"
    assert ops.to_numpy(made).tolist() == [1 + 2j]


def test_an_infinite_or_nan_part_does_not_change_the_other(backend: str) -> None:
    z = ops.to_numpy(ops.view_as_complex([[1.0, np.inf], [np.nan, 2.0]]))
    assert (z[0].real, z[0].imag, z[1].imag) == (1.0, np.inf, 2.0)


def test_a_last_axis_that_is_not_2_or_a_complex_dtype_is_refused(backend: str) -> None:
    for x in ([[1.0, 2.0, 3.0]], 1.0):
        with pytest.raises(ShapeError, match="must end in 2"):
            ops.view_as_complex(x)
    with pytest.raises(DTypeError):
        ops.view_as_complex(Z.reshape(2, 2))


def test_float64_pairs_make_complex128_or_are_refused(backend: str) -> None:
    pairs = np.array([[1.0, 2.0]])
    if backend == "mlx":
        with pytest.raises(DTypeError, match="complex128"):
            ops.view_as_complex(pairs)
    else:
        assert ops.dtype(ops.view_as_complex(pairs)) == "complex128"


def test_polar_and_rectangular_agree(backend: str) -> None:
    z = ops.polar(ops.absolute(Z), ops.angle(Z))
    np.testing.assert_allclose(ops.to_numpy(z), Z, atol=1e-6)


def test_angles_of_complex_real_and_integer_tensors_agree_with_numpy(backend: str) -> None:
    np.testing.assert_allclose(ops.to_numpy(ops.angle(Z)), np.angle(Z), rtol=1e-6)
    np.testing.assert_allclose(ops.to_numpy(ops.angle([-2.0, 3.0])), [np.pi, 0.0], rtol=1e-6)
    np.testing.assert_allclose(ops.to_numpy(ops.angle([-2, 3])), [np.pi, 0.0], rtol=1e-6)


@pytest.mark.ember_skip("dask", reason="Dask makes another lazy tensor of the same values")
def test_real_tensors_are_their_own_real_part(backend: str) -> None:
    x = ops.convert_to_tensor([1.0, -2.0])
    assert ops.real(x) is x
    assert ops.conj(x) is x
    assert ops.imag(x).tolist() == [0.0, 0.0]
    assert ops.isreal(x).tolist() == [True, True]
    assert ops.iscomplex([1, 2]).tolist() == [False, False]
    assert ops.iscomplex(Z).tolist() == [True, True, False, False]


def test_pairs_have_a_gradient_on_mlx() -> None:
    mx = pytest.importorskip("mlx.core")
    with ops.use_backend("mlx"):
        pairs = mx.array([[3.0, 4.0], [0.0, 2.0]])
        gradient = mx.grad(lambda x: ops.sum(ops.absolute(ops.view_as_complex(x))))
        np.testing.assert_allclose(np.asarray(gradient(pairs)), [[0.6, 0.8], [0.0, 1.0]], rtol=1e-6)
        mapped = mx.vmap(lambda x: ops.real(ops.view_as_complex(x)))(pairs.reshape(2, 1, 2))
        assert mapped.tolist() == [[3.0], [0.0]]
        _, (tangent,) = mx.jvp(lambda x: ops.imag(ops.view_as_complex(x)), [pairs], [mx.ones((2, 2))])
        assert tangent.tolist() == [1.0, 1.0]


def test_the_sign_of_a_complex_number_varies_with_its_phase_alone(backend: str) -> None:
    z = np.array([1.0 + 2.0j, -0.5 + 0.25j, 3.0 - 1.0j]).astype(np.complex64)
    weights = ops.asarray(np.array([0.3 - 1.2j, 2.0 + 0.5j, -1.0 + 1.0j]).astype(np.complex64))

    def loss(z: Any) -> Any:
        return ops.sum(ops.real(ops.multiply(ops.sign(z), weights)))

    for direction in (z, 1j * z, np.full(3, 1.0, np.complex64)):
        step = (direction * 1e-3).astype(np.complex64)
        moved = (float(loss(ops.asarray(z + step))) - float(loss(ops.asarray(z - step)))) / 2e-3
        slope = ops.to_numpy(ops.grad(loss)(ops.asarray(z)))
        assert np.isclose(np.sum(np.real(np.conj(slope) * direction)), moved, rtol=2e-3, atol=2e-3)
