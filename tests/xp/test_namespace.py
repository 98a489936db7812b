"""The namespaces: importable, picklable, complete; dtypes and the inspection of the standard."""

import importlib
import pickle
import subprocess
import sys
import threading
from typing import Any

import numpy as np
import pytest

from emberharmony import ops
from emberharmony import xp as package
from emberharmony.core.dtypes import ALL
from emberharmony.errors import BackendNotFoundError, DTypeError
from tests.another import another


def test_a_namespace_is_a_module_that_is_imported_and_pickled(xp: Any, backend: str) -> None:
    assert importlib.import_module(f"emberharmony.xp.{backend}") is xp
    assert getattr(package, backend) is xp is package.namespace(backend) is package.namespace(xp.ones(1))
    for value in (xp, xp.linalg, xp.Array, xp.sum, xp.linalg.svd, xp.asarray, xp.float32):
        assert pickle.loads(pickle.dumps(value)) is value
    assert xp == xp
    assert backend in repr(xp)


def test_an_unknown_name_and_an_unknown_backend_are_refused(xp: Any) -> None:
    with pytest.raises(AttributeError, match="sumn"):
        _ = xp.sumn
    with pytest.raises(AttributeError):
        _ = xp.set_backend
    if "complex128" not in dir(xp):
        with pytest.raises(AttributeError, match=r"has no dtype 'complex128'; it has .*complex64"):
            _ = xp.complex128
    with pytest.raises(BackendNotFoundError):
        package.namespace("tensorflow")


def test_each_name_in_dir_exists(xp: Any) -> None:
    assert {"sum", "Array", "linalg", "grad", "float32"} <= set(dir(xp))
    assert not {"set_backend", "use_backend"} & set(dir(xp))
    assert all(hasattr(xp, name) for name in dir(xp))


def test_ops_do_not_import_the_namespaces() -> None:
    program = "import sys, emberharmony.ops, emberharmony.nn; print([m for m in sys.modules if 'emberharmony.xp' in m])"
    assert subprocess.run([sys.executable, "-c", program], capture_output=True, text=True).stdout.strip() == "[]"


def test_a_dtype_is_one_object_for_all_backends_and_no_string(xp: Any) -> None:
    assert xp.float32 is package.namespace("numpy").float32
    assert xp.float32 == ops.float32 == np.float32
    assert xp.float32 == np.dtype("float32")
    assert xp.float32 != "float32"
    assert xp.float32 != xp.float64
    assert (xp.int16.kind, xp.int16.itemsize, xp.int16.name, repr(xp.int16)) == ("i", 2, "int16", "int16")
    assert np.dtype(xp.float64) == np.float64
    assert len({xp.float32, xp.float32}) == 1
    assert xp.bool.kind == "b"
    assert xp.zeros(2, dtype=xp.int8).dtype is xp.int8


def test_a_backend_lacks_the_dtypes_of_others(xp: Any) -> None:
    for dtype in ALL:
        assert hasattr(xp, dtype.name) == (dtype in xp._kit.backend.dtypes.natives)


def test_functions_on_dtypes(xp: Any) -> None:
    assert xp.isdtype(xp.float32, "real floating")
    assert xp.isdtype(xp.float32, (xp.int8, xp.float32))
    assert not xp.isdtype(xp.float32, "integral")
    assert xp.result_type(xp.int8, xp.ones(1, dtype=xp.int16)) is xp.int16
    assert xp.can_cast(xp.int8, xp.int16)
    assert xp.finfo(xp.float32).dtype is xp.float32
    assert xp.iinfo(xp.int8).max == 127
    assert xp.astype(xp.ones(1), xp.float32, copy=False) is not None


def test_the_inspection_of_the_standard(xp: Any) -> None:
    info = xp.__array_namespace_info__()
    assert info.capabilities()["boolean indexing"] is True
    assert info.default_dtypes()["real floating"] is xp.asarray(1.0).dtype
    assert info.dtypes(kind="bool") == {"bool": xp.bool}
    devices = info.devices()
    assert isinstance(devices, tuple)
    assert devices.__add__(["x"]) == [*devices, "x"]
    assert info.default_device() in devices


def test_functions_run_whichever_backend_is_active(xp: Any, backend: str) -> None:
    other = another(backend)
    with ops.use_backend(other):
        x = xp.asarray([[1.0, 2.0], [3.0, 4.0]])
        assert type(xp.softmax(x)) is type(xp.cov(x)) is type(xp.linalg.norm(x)) is xp.Array
        assert xp.grad(lambda a: xp.sum(a * a))(x).tolist() == [[2.0, 4.0], [6.0, 8.0]]
        assert ops.get_backend() == other


def test_two_threads_make_one_function(xp: Any) -> None:
    found: list[Any] = []
    threads = [threading.Thread(target=lambda: found.append(xp.logaddexp)) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len({id(function) for function in found}) == 1


def test_what_is_given_without_a_copy_is_the_memory(xp: Any, backend: str) -> None:
    given = np.zeros(3, np.float32)
    x = xp.asarray(given)
    x[0] = 1.0
    x += 1.0
    shared = backend == "numpy" or np.shares_memory(given, np.asarray(x))
    assert given.tolist() == ([2.0, 1.0, 1.0] if shared else [0.0, 0.0, 0.0])
    assert xp.asarray(x) is x
    assert xp.asarray(x, copy=True) is not x
    assert xp.asarray([1, x[0]]).tolist() == [1.0, 2.0]


def _require_floats_of_integers(xp: Any, dtype: Any) -> None:
    """Raises an AssertionError unless integers alone become a dtype where an op makes floats of them."""
    x = xp.asarray([1, 2])
    floats = [x * 0.5, 0.5 * x, x / x, x / 2, x**0.5, xp.exp(x), xp.mean(x), xp.where(x > 1, x, 0.5), ops.sin(x)]
    floats += [xp.softmax(x), xp.exp(x > 1), xp.linalg.vector_norm(x), xp.vmap(xp.sin)(x)]
    assert {result.dtype for result in floats} == {dtype}
    assert (x * 1j).dtype is xp.fft.fft(x).dtype is xp.default_complex()
    assert xp.sum(x).dtype is (x + 1).dtype is xp.where(x > 1, x, 2).dtype is x.dtype
    single = xp.asarray([0.5, 1.0], dtype=xp.float32)
    assert (single * x).dtype is (single * 2.0).dtype is xp.exp(single).dtype is xp.float32
    if dtype is xp.float64:
        assert float((x / 3)[0]) == 1 / 3


def test_each_namespace_has_a_default_float(xp: Any, backend: str) -> None:
    usual = xp.default_float()
    assert usual is (xp.float64 if backend == "numpy" else xp.float32)
    try:
        for dtype in (xp.float64, xp.float32):
            xp.set_default_float(dtype)
            made = (
                xp.zeros(2),
                xp.zeros(2, dtype=None),
                xp.asarray([1.0, 2]),
                xp.full((2,), 0.5),
                xp.linspace(0, 1, 3),
                xp.arange(0.0, 1.0, 0.3),
            )
            assert {x.dtype for x in made} == {dtype}
            assert xp.linspace(0, 1, 4)[1] == 1 / 3 or dtype is xp.float32
            assert xp.asarray([1, 2]).dtype is xp.arange(3).dtype is xp.full((2,), 1).dtype is xp.int64
            assert xp.asarray(np.float32(1.0)).dtype is xp.full((1,), xp.ones((), dtype=xp.float32)).dtype is xp.float32
            assert xp.default_dtypes()["real floating"] is dtype
            assert xp.asarray(1j).dtype is xp.default_complex()
            _require_floats_of_integers(xp, dtype)
            assert xp.result_type(xp.ones(2, dtype=xp.int32), 1.0) is xp.result_type(2.0) is dtype
            assert xp.result_type(xp.float16, 1, 2.0) is xp.float16
            assert xp.result_type(True, xp.uint8) is xp.uint8
        assert ops.default_float() == "float32"
        with pytest.raises(DTypeError):
            xp.set_default_float(xp.int8)
    finally:
        xp.set_default_float(usual)


@pytest.mark.parametrize("shape", [(5, 3), (3, 5), (4, 4)])
def test_least_squares_have_the_four_results_of_numpy(shape: tuple[int, int], xp: Any) -> None:
    draw = np.random.default_rng(1).standard_normal
    a, b = draw(shape).astype(np.float32), draw((shape[0], 2)).astype(np.float32)
    for right in (b, b[:, 0]):
        results = xp.linalg.lstsq(xp.asarray(a), xp.asarray(right))
        for result, wanted in zip(results, np.linalg.lstsq(a, right), strict=True):
            assert np.allclose(np.asarray(result), wanted, rtol=1e-4, atol=1e-5)
            assert result.shape == np.shape(wanted)
    flat = xp.asarray(np.outer(a[:, 0], a[0]))
    assert int(xp.linalg.lstsq(flat, xp.asarray(b))[2]) == 1


def test_qr_has_the_signs_of_numpy_and_a_gradient(xp: Any) -> None:
    a = np.random.default_rng(0).standard_normal((4, 3))
    for mode in ("reduced", "complete"):
        result = xp.linalg.qr(xp.asarray(a), mode=mode)
        for ours, numpys in zip(result, np.linalg.qr(a, mode), strict=True):
            assert np.allclose(np.asarray(ours), numpys)
    # The first element of R is the length of the first column, with a sign.
    gradient = xp.grad(lambda x: xp.linalg.qr(x).R[0, 0])(xp.asarray(a))
    wanted = np.zeros_like(a)
    wanted[:, 0] = -np.sign(a[0, 0]) * a[:, 0] / np.linalg.norm(a[:, 0])
    assert np.allclose(np.asarray(gradient), wanted)
