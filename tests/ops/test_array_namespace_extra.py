"""Every function of array-api-extra runs with the namespace of `ops.array_namespace`, on every backend.

array-api-extra is written over the array API standard, so it tests the namespace as another library uses it. The
expected results are those that it computes with NumPy alone. Another backend than that of the arrays is active.
"""

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from emberharmony import ops
from emberharmony.backend.discovery import BUILTIN, is_installed

xpx = pytest.importorskip("array_api_extra")
host_namespace = pytest.importorskip("array_api_compat.numpy")

FLOATS = np.asarray([[1.5, -2.0, 0.0], [3.0, 0.5, -0.25]], np.float32)
VECTOR = np.asarray([3.0, -1.0, 2.0, 2.0, 0.5, 7.0], np.float32)
SPECIAL = np.asarray([[1.5, np.nan, 0.0], [np.inf, 0.5, -np.inf]], np.float32)
INTEGERS = np.asarray([3, 1, 2, 3, 1], np.int64)
ODD = np.asarray([1, 3, 5], np.int64)
COMPLEX = np.asarray([[1 + 1j, -2.0, -1j]], np.complex64)
LONG = np.arange(40)
Array = Callable[[np.ndarray], Any]
Call = Callable[[Array, Any], Any]

CALLS: dict[str, dict[str, Call]] = {
    "angle": {
        "complex": lambda a, xp: xpx.angle(a(COMPLEX), xp=xp),
        "degrees": lambda a, xp: xpx.angle(a(FLOATS), deg=True, xp=xp),
        "integers": lambda a, xp: xpx.angle(a(INTEGERS), xp=xp),
    },
    "apply_where": {
        "two functions": lambda a, xp: xpx.apply_where(
            a(FLOATS) > 0, a(FLOATS), lambda x: xp.log(x), lambda x: x * 2, xp=xp
        ),
        "a value": lambda a, xp: xpx.apply_where(
            a(FLOATS) != 0, (a(FLOATS), a(FLOATS)), lambda x, y: x / y, fill_value=-1.0, xp=xp
        ),
    },
    "argpartition": {
        "vector": lambda a, xp: xp.sort(xp.take(a(VECTOR), xpx.argpartition(a(VECTOR), 2, xp=xp), axis=0)[:3])
    },
    "at": {
        "set": lambda a, xp: xpx.at(a(VECTOR))[1].set(9.0, copy=True, xp=xp),
        "add to a slice": lambda a, xp: xpx.at(a(VECTOR))[1:3].add(1.0, copy=True, xp=xp),
        "minimum": lambda a, xp: xpx.at(a(FLOATS))[0, 1].min(-5.0, copy=True, xp=xp),
        "multiply by a mask": lambda a, xp: xpx.at(a(VECTOR), a(VECTOR) > 1).multiply(2.0, copy=True, xp=xp),
    },
    "atleast_nd": {"vector": lambda a, xp: xpx.atleast_nd(a(VECTOR), ndim=3, xp=xp)},
    "broadcast_shapes": {"two": lambda a, xp: xpx.broadcast_shapes((2, 1), (1, 3), xp=xp)},
    "cov": {
        "floats": lambda a, xp: xpx.cov(a(FLOATS), xp=xp),
        "weights": lambda a, xp: xpx.cov(a(FLOATS), fweights=a(ODD), xp=xp),
        "complex": lambda a, xp: xpx.cov(a(COMPLEX), xp=xp),
    },
    "create_diagonal": {
        "offset": lambda a, xp: xpx.create_diagonal(a(VECTOR), offset=1, xp=xp),
        "batch": lambda a, xp: xpx.create_diagonal(a(FLOATS), xp=xp),
    },
    "default_dtype": {"integral": lambda a, xp: str(xpx.default_dtype(xp, "integral")).rpartition(".")[2]},
    "deg2rad": {"floats": lambda a, xp: xpx.deg2rad(a(FLOATS), xp=xp)},
    "diag_indices": {"square": lambda a, xp: xpx.diag_indices(3, ndim=2, xp=xp)},
    "expand_dims": {"two axes": lambda a, xp: xpx.expand_dims(a(FLOATS), axis=(0, 2), xp=xp)},
    "isclose": {
        "floats": lambda a, xp: xpx.isclose(a(SPECIAL), a(SPECIAL) + 1e-7, equal_nan=True, xp=xp),
        "a number": lambda a, xp: xpx.isclose(a(INTEGERS), 3, xp=xp),
    },
    "isin": {
        "few": lambda a, xp: xpx.isin(a(INTEGERS), a(ODD), xp=xp),
        "many": lambda a, xp: xpx.isin(a(LONG), a(LONG * 3), invert=True, xp=xp),
    },
    "kron": {"matrix with vector": lambda a, xp: xpx.kron(a(FLOATS), a(VECTOR), xp=xp)},
    "lazy_apply": {
        "arrays": lambda a, xp: xpx.lazy_apply(lambda x: xp.sin(x), a(FLOATS), dtype=xp.float32, xp=xp),
        "NumPy": lambda a, xp: xpx.lazy_apply(np.sin, a(FLOATS), as_numpy=True, xp=xp),
    },
    "nan_to_num": {"floats": lambda a, xp: xpx.nan_to_num(a(SPECIAL), xp=xp)},
    "nunique": {"integers": lambda a, xp: xpx.nunique(a(INTEGERS), xp=xp)},
    "one_hot": {
        "default": lambda a, xp: xpx.one_hot(a(ODD), 6, xp=xp),
        "first axis": lambda a, xp: xpx.one_hot(a(ODD), 6, dtype=xp.float32, axis=0, xp=xp),
    },
    "pad": {"both axes": lambda a, xp: xpx.pad(a(FLOATS), [(1, 0), (0, 2)], constant_values=4, xp=xp)},
    "partition": {
        "vector": lambda a, xp: xp.sort(xpx.partition(a(VECTOR), 2, xp=xp)[:3]),
        "first axis": lambda a, xp: xp.sort(xpx.partition(a(FLOATS), 1, axis=0, xp=xp), axis=0),
    },
    "rad2deg": {"integers": lambda a, xp: xpx.rad2deg(a(INTEGERS), xp=xp)},
    "searchsorted": {
        "vectors": lambda a, xp: xpx.searchsorted(xp.sort(a(VECTOR)), a(FLOATS)[0, :], side="right", xp=xp),
        "batch": lambda a, xp: xpx.searchsorted(xp.sort(a(FLOATS), axis=-1), a(FLOATS), xp=xp),
    },
    "setdiff1d": {"integers": lambda a, xp: xpx.setdiff1d(a(INTEGERS), a(ODD), xp=xp)},
    "sinc": {"floats": lambda a, xp: xpx.sinc(a(FLOATS), xp=xp)},
    "tril_indices": {"offset": lambda a, xp: xpx.tril_indices(3, offset=-1, xp=xp)},
    "triu_indices": {"columns": lambda a, xp: xpx.triu_indices(3, m=4, xp=xp)},
    "union1d": {"integers": lambda a, xp: xpx.union1d(a(INTEGERS), a(ODD), xp=xp)},
    "unravel_index": {"matrix": lambda a, xp: xpx.unravel_index(a(ODD), (2, 3), xp=xp)},
    **{
        name: {
            "an axis": lambda a, xp, name=name: getattr(xpx, name)(a(SPECIAL), axis=1, xp=xp),
            "all": lambda a, xp, name=name: getattr(xpx, name)(a(FLOATS), axis=None, xp=xp),
        }
        for name in ("nanmax", "nanmean", "nanmin", "nansum")
    },
}
DEVICE = "arrays of MLX have no attribute `device`, which array-api-extra reads"
KEYS = "arrays of MLX take no boolean keys, with which array-api-extra indexes them"
OPTION = "array-api-extra gives arrays of JAX an option that only jax.numpy.unique_counts has"
WIDE = "MLX has no complex128, in which array-api-extra computes"
EXCEPTIONS: dict[tuple[str, str, str], str] = {
    ("jax", "nunique", "integers"): OPTION,
    ("mlx", "angle", "integers"): DEVICE,
    ("mlx", "at", "multiply by a mask"): KEYS,
    ("mlx", "cov", "complex"): WIDE,
    ("mlx", "create_diagonal", "offset"): DEVICE,
    ("mlx", "create_diagonal", "batch"): DEVICE,
    ("mlx", "isclose", "a number"): DEVICE,
    ("mlx", "isin", "few"): DEVICE,
    ("mlx", "isin", "many"): DEVICE,
    ("mlx", "lazy_apply", "arrays"): DEVICE,
    ("mlx", "lazy_apply", "NumPy"): DEVICE,
    ("mlx", "nunique", "integers"): DEVICE,
    ("mlx", "one_hot", "default"): DEVICE,
    ("mlx", "one_hot", "first axis"): DEVICE,
    ("mlx", "pad", "both axes"): DEVICE,
    ("mlx", "rad2deg", "integers"): DEVICE,
    ("mlx", "searchsorted", "batch"): DEVICE,
    ("mlx", "setdiff1d", "integers"): DEVICE,
    ("mlx", "sinc", "floats"): DEVICE,
}
"""The calls that fail on a backend, with the reason; such a call must raise."""

MESSAGES = {
    DEVICE: "no attribute 'device'",
    KEYS: "boolean indices are not yet supported",
    OPTION: "unexpected keyword argument 'size'",
    WIDE: "complex128",
}
OTHER_DTYPE = (("angle", "integers"), ("one_hot", "default"), ("rad2deg", "integers"))
"""The calls whose result has the default float, which is float64 for NumPy and float32 for `ops`."""


def test_every_public_function_is_called() -> None:
    assert set(CALLS) == set(xpx.__all__) - {"__version__", "testing"}
    assert all(call in CALLS[name] for _, name, call in EXCEPTIONS)


@pytest.mark.filterwarnings("ignore::RuntimeWarning", "ignore:`xpx:DeprecationWarning")
@pytest.mark.parametrize(("name", "label"), [(name, label) for name, calls in CALLS.items() for label in calls])
def test_a_function_gives_what_it_gives_with_numpy(name: str, label: str, backend: str) -> None:
    if backend == "dask" and name == "setdiff1d":
        pytest.skip("array-api-extra indexes by a mask, which gives an axis of unknown length: docs/dask.md")
    call = CALLS[name][label]
    wanted = call(np.copy, host_namespace)
    inactive = next((other for other in BUILTIN if other != backend and is_installed(other)), backend)
    xp: Any = ops.array_namespace(ops.zeros(1))
    with ops.use_backend(inactive):
        reason = EXCEPTIONS.get((backend, name, label))
        if reason is not None:
            with pytest.raises((AttributeError, TypeError, ValueError), match=MESSAGES[reason]):
                call(lambda host: xp.asarray(host, copy=True), xp)
            return
        got = call(lambda host: xp.asarray(host, copy=True), xp)
    same_dtype = (name, label) not in OTHER_DTYPE
    if not isinstance(wanted, tuple) or not hasattr(wanted[0], "dtype"):
        got, wanted = (got,), (wanted,)
    for mine, theirs in zip(got, wanted, strict=True):
        if not hasattr(theirs, "dtype"):
            assert mine == theirs
            continue
        assert xp.is_tensor(mine)
        host = np.asarray(xp.to_numpy(mine))
        assert host.dtype == theirs.dtype if same_dtype else host.dtype == np.float32
        np.testing.assert_allclose(host, theirs, rtol=1e-5, atol=1e-6)
        assert host.shape == theirs.shape


@pytest.mark.ember_skip("mlx", reason="arrays of MLX have no attribute `device`, which array-api-extra reads")
@pytest.mark.ember_skip("dask", reason="arrays of Dask have no attribute `device`, which array-api-extra reads")
def test_a_function_of_array_api_extra_has_a_gradient(backend: str) -> None:
    host = np.asarray([0.5, -1.25, 2.0], np.float32)

    def total(x: Any) -> Any:
        xp: Any = ops.array_namespace(x)
        return xp.sum(xpx.sinc(x, xp=xp))

    slope = np.cos(np.pi * host) / host - np.sin(np.pi * host) / (np.pi * host**2)
    np.testing.assert_allclose(ops.to_numpy(ops.grad(total)(ops.convert_to_tensor(host))), slope, rtol=1e-5, atol=1e-5)
    if backend == "numpy":  # a traced tensor answers __array_namespace__, so the namespace need not be passed
        found = ops.grad(lambda x: ops.sum(xpx.sinc(x)))(host)
        np.testing.assert_allclose(found, slope, rtol=1e-5, atol=1e-5)
