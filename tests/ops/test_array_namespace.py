"""`ops.array_namespace`: the functions of `ops` bound to the backend of a tensor, whichever backend is active."""

import copy
import functools
import importlib
import inspect
import os
import pickle
import subprocess
import sys
import threading
from collections.abc import Iterator
from types import ModuleType
from typing import Any

import numpy as np
import pytest

from emberharmony import ops
from emberharmony.backend import current
from emberharmony.backend.discovery import BUILTIN, is_installed, load
from emberharmony.core.dtypes import ALL
from emberharmony.core.registry import ALIASES, OPS
from emberharmony.errors import (
    ArgumentError,
    ArgumentTypeError,
    BackendMismatchError,
    DeviceError,
    DTypeError,
    ShapeError,
    UnsupportedOpError,
)
from emberharmony.testing.call import Call
from emberharmony.testing.rows import call_of, dtypes_of
from emberharmony.testing.samples import all_samples
from emberharmony.testing.verify import result_parts

PARTS = ("fft", "image", "linalg", "nn", "random")
CHOOSERS = ("array_namespace", "available_backends", "backend_of", "get_backend", "set_backend", "use_backend")
DIFFERENT_EACH_TIME = ("empty", "empty_like")
INSTALLED = [name for name in BUILTIN if is_installed(name)]


def other_than(backend: str) -> str:
    """Returns an installed backend that is not this one."""
    others = [name for name in INSTALLED if name != backend]
    if not others:
        pytest.skip("only one backend is installed")
    return others[0]


@pytest.fixture
def x(backend: str) -> Any:
    """Returns a tensor of each backend in turn."""
    return ops.convert_to_tensor(np.asarray([[1.0, -2.0], [0.5, 3.0]], np.float32))


@pytest.fixture
def xp(x: Any, backend: str) -> Iterator[Any]:
    """Returns the namespace of each backend in turn, while another backend is active."""
    with ops.use_backend(other_than(backend)):
        yield ops.array_namespace(x)


# Which namespace


def test_the_namespace_is_that_of_the_tensors_whichever_backend_is_active(xp: Any, x: Any, backend: str) -> None:
    assert ops.get_backend() != backend
    assert xp is load(backend).namespace
    assert xp is ops.array_namespace(x) is ops.array_namespace(x, x) is ops.array_namespace({"a": [x, (x, None)]})
    assert type(xp.sin(x)) is type(xp.softmax(x)) is type(xp.linalg.norm(x)) is type(x)


def test_numbers_none_and_lists_of_them_have_no_backend(x: Any) -> None:
    given = (2, 1.5, 1j, True, None, [1, 2.0], np.float64(3.0), np.int8(1))
    assert ops.array_namespace(*given, x) is ops.array_namespace(x)


def test_scalars_of_numpy_alone_are_of_numpy() -> None:
    assert ops.array_namespace(np.float64(3.0), 2.0) is load("numpy").namespace


@pytest.mark.parametrize("given", [(), (None,), (1.0, 2, [3.0], {})], ids=str)
def test_without_a_tensor_the_error_names_the_ways_out(given: Any) -> None:
    with pytest.raises(ArgumentTypeError, match=r"got no tensor.*pass at least one tensor, or .* emberharmony\.ops"):
        ops.array_namespace(*given)


@pytest.mark.parametrize("given", ["text", object(), {1, 2}, slice(3)], ids=lambda value: type(value).__name__)
def test_other_objects_are_refused(given: Any, x: Any) -> None:
    with pytest.raises(ArgumentTypeError, match=f"takes tensors, numbers and None, not .*{type(given).__name__}"):
        ops.array_namespace(x, given)


def test_tensors_of_two_backends_are_refused(backend: str, x: Any) -> None:
    with ops.use_backend(other_than(backend)):
        y = ops.zeros(2)
    with pytest.raises(BackendMismatchError, match=r" and .*; convert one kind: "):
        ops.array_namespace(x, y)
    converted = ops.array_namespace(y).asarray(ops.array_namespace(x).to_numpy(x))  # the way out that it names
    assert ops.array_namespace(y, converted) is ops.array_namespace(y)


def test_versions_of_the_standard(x: Any) -> None:
    assert ops.array_namespace(x, api_version="2023.12").__array_api_version__ == "2025.12"
    for version in ("2031.12", 2024.12):
        with pytest.raises(ArgumentError, match=r"expected api_version to be one of 2021\.12, .*2025\.12, got "):
            ops.array_namespace(x, api_version=version)  # type: ignore[arg-type]


# What it contains


def test_it_has_every_public_name_except_those_that_choose_a_backend(xp: Any, backend: str) -> None:
    lacking = {dtype.name for dtype in ALL if dtype not in load(backend).dtypes.available}
    assert set(dir(xp)) == set(ops.__all__) - {*CHOOSERS, *lacking}
    assert all(hasattr(xp, name) for name in dir(xp))
    for part in PARTS:
        space = getattr(xp, part)
        assert dir(space) == sorted(getattr(ops, part).__all__)
        assert all(callable(getattr(space, name)) for name in dir(space))


def test_functions_keep_name_documentation_and_signature(xp: Any) -> None:
    for name in ("sin", "softmax", "logsumexp", "grad", "result_type", "concat"):
        mine, declared = getattr(xp, name), getattr(ops, name)
        assert mine.__name__ == declared.__name__
        assert mine.__doc__ == declared.__doc__
        assert mine.__module__ == declared.__module__
        assert str(inspect.signature(mine)) == str(inspect.signature(declared))


def test_constants_and_version(xp: Any) -> None:
    assert (xp.e, xp.inf, xp.pi, xp.newaxis) == (ops.e, ops.inf, ops.pi, None)
    assert xp.nan != xp.nan
    assert xp.__array_api_version__ == ops.__array_api_version__


def test_dtypes_are_native_and_equal_those_of_tensors_and_of_results(xp: Any, x: Any, backend: str) -> None:
    assert x.dtype == xp.float32
    assert xp.float32 == x.dtype
    assert xp.bool == xp.bool_ == (x > 0).dtype
    assert x.dtype in (xp.float64, xp.float32)
    assert {xp.float32: "single"}[xp.zeros(1, dtype="float32").dtype] == "single"
    for dtype in (
        xp.dtype(x),
        xp.result_type(x, 1.0),
        xp.result_type(x, xp.int8),
        xp.finfo(x).dtype,
        xp.default_float(),
    ):
        assert dtype == x.dtype
        assert x.dtype == dtype  # a dtype of MLX equals no other object
    assert xp.iinfo(xp.int8).dtype == xp.int8
    assert xp.int8 == xp.iinfo(xp.int8).dtype
    assert xp.isdtype(x.dtype, "real floating")
    assert xp.isdtype(xp.float32, (xp.float32, "bool"))
    assert xp.astype(x, xp.int64).dtype == xp.int64
    assert ops.float32 == xp.float32
    assert type(xp.float32) is type(x.dtype)


def test_a_dtype_that_the_backend_lacks_is_no_attribute() -> None:
    pytest.importorskip("mlx.core")
    xp = load("mlx").namespace
    assert not hasattr(xp, "complex128")
    with pytest.raises(
        AttributeError, match=r"no attribute 'complex128', because the backend lacks this dtype; it has "
    ):
        xp.complex128
    with pytest.raises(DTypeError, match="complex128"):
        xp.result_type(xp.complex64, xp.float64)


@pytest.mark.fresh_process
def test_looking_at_dtypes_does_not_slow_down_mlx() -> None:
    pytest.importorskip("mlx.core")
    program = (
        "from emberharmony import ops\nimport mlx.core as mx\nxp = ops.array_namespace(mx.ones(1))\n"
        "[getattr(xp, name) for name in dir(xp)]\nxp.__array_namespace_info__().dtypes()\n"
        "from emberharmony.core import op_globals\n"
        "print(sorted((name, value) for name, value in vars(op_globals).items() if isinstance(value, bool)))"
    )
    untouched = program.replace("[getattr(xp, name) for name in dir(xp)]\nxp.__array_namespace_info__().dtypes()\n", "")
    assert run(program) == run(untouched)


def test_inspection_is_that_of_the_backend_with_native_dtypes(xp: Any, x: Any, backend: str) -> None:
    info = xp.__array_namespace_info__()
    with ops.use_backend(backend):
        wanted = ops.__array_namespace_info__()
        assert info.devices() == wanted.devices()
        assert info.default_device() == wanted.default_device()
        for found, neutral in (
            (info.dtypes(), wanted.dtypes()),
            (info.dtypes(kind=("bool", "real floating")), wanted.dtypes(kind=("bool", "real floating"))),
            (info.default_dtypes(), wanted.default_dtypes()),
            (xp.default_dtypes(), ops.default_dtypes()),
        ):
            assert neutral == found  # the neutral dtypes on the left: one of MLX equals no other object
            assert all(type(dtype) is type(x.dtype) or isinstance(dtype, np.dtype) for dtype in found.values())
        assert info.capabilities() == ops.capabilities()
    assert info.capabilities()["boolean indexing"] is (backend not in ("mlx", "dask"))
    assert xp.capabilities() == info.capabilities()


# What it does


def _path(op: str) -> tuple[str, str]:
    """Returns the namespace, or "", and the name by which an op is public."""
    for part in ("", *PARTS):
        source = getattr(ops, part) if part else ops
        for name in source.__all__:
            if getattr(source, name) is OPS[op].function:
                return part, name
    raise AssertionError(f"{op} is not public")


def _result(function: Any, args: Any, kwargs: Any) -> Any:
    try:
        return function(*args, **kwargs)
    except UnsupportedOpError as error:
        return str(error)


def _equal(mine: Any, theirs: Any, xp: Any) -> bool:
    if xp.is_tensor(mine):
        mine, theirs = np.asarray(xp.to_numpy(mine)), np.asarray(xp.to_numpy(theirs))
    if not isinstance(mine, np.ndarray):
        return callable(mine) or mine == theirs
    return mine.dtype == theirs.dtype and np.array_equal(mine, theirs, equal_nan=mine.dtype.kind in "fc")


def _native(value: Any) -> Any:
    if isinstance(value, (list, tuple)):
        return type(value)(_native(item) for item in value)
    return ops.convert_to_tensor(value) if isinstance(value, np.ndarray) else value


@pytest.mark.filterwarnings("ignore::RuntimeWarning")
def test_every_op_gives_the_same_result_while_another_backend_is_active(backend: str) -> None:
    xp, differing = current().namespace, []
    inactive = other_than(backend)
    for op, sample in all_samples().items():
        if not sample.cases or op in DIFFERENT_EACH_TIME:
            continue
        call: Call = call_of(sample, "namespace", dtypes_of(sample)[0], "", sample.cases[0])
        kwargs = {name: _native(value) for name, value in call.kwargs.items()} | call.options
        args = call.args if sample.reference == "tests" else _native(call.args)
        part, name = _path(op)
        function = getattr(getattr(xp, part) if part else xp, name)
        ops.random.seed(0)
        wanted = _result(OPS[op].function, args, kwargs)
        with ops.use_backend(inactive):
            xp.random.seed(0)
            got = _result(function, args, kwargs)
        found, expected = [*result_parts(got)], [*result_parts(wanted)]
        if len(found) != len(expected) or not all(_equal(a, b, xp) for a, b in zip(found, expected, strict=True)):
            differing.append((op, got, wanted))
    assert not differing


def test_aliases_are_the_same_functions(xp: Any) -> None:
    for alias, op in ALIASES.items():
        part, name = _path(op)
        space = getattr(xp, part) if part else xp
        if alias in dir(space):
            assert getattr(space, alias).__name__ == getattr(space, name).__name__ == op


def test_a_primitive_looks_nothing_up(x: Any, backend: str, monkeypatch: pytest.MonkeyPatch) -> None:
    from emberharmony.core import op_globals

    xp = ops.array_namespace(x)
    xp.sin(x), xp.matmul(x, x), xp.add(x, 1.0), xp.sum(x, axis=0)
    with ops.use_backend(other_than(backend)):

        def refuse() -> None:
            raise AssertionError("an op asked which backend is active")

        monkeypatch.setattr(op_globals, "active", refuse)
        assert type(xp.add(xp.matmul(xp.sin(x), x), 1.0)) is type(x)
        assert xp.sum([1.0, 2.0]).tolist() == 3.0


@pytest.mark.ember_skip("dask", reason="the NumPy backend computes arrays of Dask: docs/dask.md")
def test_arguments_are_converted_and_errors_are_typed_as_in_ops(xp: Any, x: Any, backend: str) -> None:
    assert xp.add([1, 2], 3).tolist() == [4, 5]
    assert type(xp.add(np.ones((2, 2), np.float32), x)) is type(x)
    with pytest.raises(ShapeError, match=rf"^matmul\(\) on backend '{backend}'"):
        xp.matmul(x, xp.ones((3, 3)))
    with pytest.raises(BackendMismatchError, match=r"take the function from ops\.array_namespace\(x\)"):
        xp.add(x, ops.ones(2)) if ops.get_backend() != "numpy" else ops.add(ops.ones(2), x)


def test_functions_of_the_caller_run_with_the_backend_active(xp: Any, x: Any, backend: str) -> None:
    seen = []

    def loss(v: Any) -> Any:
        seen.append(ops.get_backend())
        return ops.sum(xp.multiply(xp.square(v), ops.softmax(v)))

    gradient = xp.grad(loss)(x)
    with ops.use_backend(backend):
        wanted = ops.to_numpy(ops.grad(loss)(x))
    np.testing.assert_array_equal(xp.to_numpy(gradient), wanted)
    assert set(seen) == {backend}
    assert ops.get_backend() != backend


def test_transforms_return_functions_that_run_on_the_backend(
    xp: Any, x: Any, backend: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    if backend == "torch":  # only trace, because the default compiler takes seconds
        torch = importlib.import_module("torch")
        monkeypatch.setattr(torch, "compile", functools.partial(torch.compile, backend="eager"))

    def f(v: Any) -> Any:
        return xp.sum(xp.sin(v) * v)

    host = np.asarray([[1.0, -2.0], [0.5, 3.0]])
    slope = np.cos(host) * host + np.sin(host)
    value, pull = xp.vjp(f, x)
    found = [
        xp.grad(f)(x),
        xp.value_and_grad(f)(x)[1],
        xp.jacobian(f)(x),
        xp.jacfwd(f)(x),
        pull(xp.ones_like(value))[0],
        xp.vmap(xp.grad(f))(x),
        xp.compile(xp.grad(f))(x),
        xp.checkpoint(xp.grad(f))(x),
    ]
    for each in found:
        assert type(each) is type(x)
        np.testing.assert_allclose(xp.to_numpy(each), slope, rtol=1e-5)
    hessian = xp.to_numpy(xp.hessian(f)(x)).reshape(4, 4)
    np.testing.assert_allclose(hessian, np.diag((2 * np.cos(host) - np.sin(host) * host).ravel()), atol=1e-5)
    tangent = xp.jvp(f, (x,), (xp.ones_like(x),))[1]
    np.testing.assert_allclose(xp.to_numpy(tangent), slope.sum(), rtol=1e-5)


def test_a_function_in_the_aux_of_vjp_is_returned_unchanged(xp: Any, x: Any) -> None:
    def aux() -> None: ...

    assert xp.vjp(lambda v: (xp.sum(v), aux), x, has_aux=True)[2] is aux


def test_parameters_and_devices_are_those_of_the_backend(xp: Any, x: Any, backend: str) -> None:
    weight = xp.Parameter([1.0, 2.0], name="weight")
    assert type(weight) is ops.Parameter
    assert type(weight.tensor_and_home()[0]) is type(xp.square(weight)) is type(x)
    assert xp.backward(lambda: xp.sum(xp.square(weight.value)), weight).tolist() == 5.0
    assert weight.grad.tolist() == [2.0, 4.0]
    with xp.device("cpu"):
        assert xp.get_device(xp.zeros(1)) == "cpu"
    with pytest.raises(DeviceError, match="available: cpu"), xp.device("abacus"):
        pass


def test_random_numbers_come_from_the_stream_of_the_backend(xp: Any, backend: str) -> None:
    xp.random.seed(7)
    drawn = xp.random.normal((3,)).tolist()
    with ops.use_backend(backend):
        ops.random.seed(7)
        assert ops.random.normal((3,)).tolist() == drawn
    generator = xp.random.Generator(0)
    assert type(xp.random.uniform((2,), generator=generator)) is type(xp.zeros(1))


# Tensors that a tape traces


def test_a_traced_tensor_has_the_namespace_of_its_value() -> None:
    seen = []

    def loss(v: Any) -> Any:
        xp = ops.array_namespace(v, 2.0)
        seen.append((xp, v.__array_namespace__(), v.__array_namespace__(api_version="2024.12"), ops.backend_of(v)))
        return xp.sum(xp.sin(v))

    given = np.asarray([0.0, 1.0], np.float32)
    for name in INSTALLED:
        load(name)
    with ops.use_backend("numpy"):
        np.testing.assert_allclose(ops.grad(loss)(given), np.cos(given), rtol=1e-6)
    numpy = load("numpy")
    assert seen == [(numpy.namespace, numpy.namespace, numpy.namespace, numpy)]
    with ops.use_backend("numpy"), pytest.raises(ArgumentError, match="api_version"):
        ops.grad(lambda v: v.__array_namespace__(api_version="1999.12").sum(v))(given)


def test_a_traced_tensor_can_be_used_while_another_backend_is_active() -> None:
    inactive = other_than("numpy")

    def loss(v: Any) -> Any:
        with ops.use_backend(inactive):
            xp = ops.array_namespace(v)
            kernel = np.ones((1, 1, 1), np.float32)
            convolved = xp.nn.conv(xp.reshape(v, (1, 3, 1)), kernel)  # NumPy overrides it, and the tape runs its body
            stacked = xp.concat([v, v])[:3].T + xp.sum([v, v], axis=0)  # methods of a traced tensor are ops
            return xp.sum(xp.softmax(xp.sin(v)) * convolved[0, :, 0] + stacked) + v.sum()

    def plain(v: Any) -> Any:
        return ops.sum(ops.softmax(ops.sin(v)) * v) + 4.0 * ops.sum(v)

    given = np.asarray([0.1, -0.7, 2.0], np.float32)
    with ops.use_backend("numpy"):
        np.testing.assert_allclose(ops.grad(loss)(given), ops.grad(plain)(given), rtol=1e-6)
        second = ops.grad(lambda v: ops.sum(ops.grad(loss)(v) * v))(given)
        np.testing.assert_allclose(second, ops.grad(lambda v: ops.sum(ops.grad(plain)(v) * v))(given), rtol=1e-5)


# The object itself


def test_it_is_a_module_with_a_name_a_repr_and_documentation(xp: Any, backend: str) -> None:
    assert isinstance(xp, ModuleType)
    assert xp.__name__ == f"emberharmony.ops[{backend}]"
    assert repr(xp) == f"<array namespace 'emberharmony.ops' on backend '{backend}'>"
    assert repr(xp.linalg) == f"<array namespace 'emberharmony.ops.linalg' on backend '{backend}'>"
    assert xp.__doc__ == ops.__doc__
    assert xp.linalg.__doc__ == ops.linalg.__doc__


@pytest.mark.ember_skip("jax", reason="the test compares the built-in backends with each other")
@pytest.mark.ember_skip("dask", reason="the test compares the built-in backends with each other")
@pytest.mark.parametrize("part", ["", "linalg"])
def test_it_is_one_object_per_backend_and_compared_by_name(xp: Any, part: str) -> None:
    space = getattr(xp, part) if part else xp
    for made in (copy.copy(space), copy.deepcopy(space), pickle.loads(pickle.dumps(space))):
        assert made is space
    twin = type(xp)(space._backend, part)
    assert twin is not space
    assert twin == space
    assert hash(twin) == hash(space)
    others = [load(name).namespace for name in INSTALLED]
    assert [space == each for each in others].count(True) == (part == "")
    assert space != "xp"


@pytest.mark.ember_skip("dask", reason="arrays of Dask have no method tolist outside of these tests")
@pytest.mark.fresh_process
def test_a_pickle_is_read_in_another_process(xp: Any, backend: str) -> None:
    pickled = pickle.dumps((xp, xp.fft))
    program = (
        f"import pickle\nxp, fft = pickle.loads({pickled!r})\nprint(xp, fft is xp.fft, fft.fft([1.0, 0.0]).tolist())"
    )
    assert run(program) == f"{xp!r} True [(1+0j), (1+0j)]"


def test_an_unknown_name_raises_with_the_nearest_one(xp: Any) -> None:
    with pytest.raises(AttributeError, match="has no attribute 'sofmax'; did you mean 'softmax'") as raised:
        xp.sofmax
    assert raised.value.name == "sofmax"
    assert raised.value.obj is None  # with the object CPython 3.12 would print a second suggestion
    with pytest.raises(AttributeError, match=r"has no attribute 'unsqueeze'; use xp\.expand_dims\(x, axis\)$"):
        xp.unsqueeze
    with pytest.raises(
        AttributeError, match=r"'emberharmony\.ops\.linalg' on .* has no attribute 'solv'; did you mean 'solve'"
    ):
        xp.linalg.solv
    with pytest.raises(AttributeError, match=r"has no attribute '__wrapped__'$"):
        xp.__wrapped__


@pytest.mark.parametrize("name", CHOOSERS)
def test_a_name_that_chooses_a_backend_is_refused_with_the_way_out(xp: Any, name: str) -> None:
    with pytest.raises(AttributeError, match=rf"because it is bound to a backend: use emberharmony\.ops\.{name}"):
        getattr(xp, name)


def test_threads_get_the_same_functions(backend: str) -> None:
    space = importlib.import_module("emberharmony.backend.array_namespace").ArrayNamespace(load(backend))
    found: list[Any] = []
    threads = [threading.Thread(target=lambda: found.append((space.logsumexp, space.sin))) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(found) == 8
    assert len(set(found)) == 1


@pytest.mark.fresh_process
def test_no_backend_is_chosen_for_the_process_and_no_other_library_is_loaded() -> None:
    pytest.importorskip("torch")
    program = (
        "import sys, numpy\nfrom emberharmony import ops\nx = numpy.ones(3)\nxp = ops.array_namespace(x)\n"
        "print(xp.sin(x).shape, xp.logsumexp(x).shape, xp.grad(lambda v: xp.sum(xp.softmax(v)))(x).tolist())\n"
        "from emberharmony.core.selection import _PROCESS\nprint(_PROCESS.bound, 'torch' in sys.modules)"
    )
    assert run(program, EMBERHARMONY_BACKEND="") == "(3,) () [0.0, 0.0, 0.0]\nNone False"


@pytest.mark.slow
@pytest.mark.fresh_process
def test_torch_compile_traces_a_function_that_asks_for_the_namespace() -> None:
    pytest.importorskip("torch")
    program = (
        "import torch\nfrom emberharmony import ops\n"
        "def f(x):\n    xp = ops.array_namespace(x)\n"
        "    return xp.linalg.vector_norm(xp.sin(x) + xp.ones_like(x), axis=0)\n"
        "x = torch.ones(3, 2)\nf(x)\nops.set_backend('torch')\n"
        "print(torch.allclose(torch.compile(f, backend='eager', fullgraph=True)(x), f(x)))"
    )
    assert run(program) == "True"


def run(program: str, **environment: str) -> str:
    """Returns the output of a program in a fresh process."""
    done = subprocess.run(
        [sys.executable, "-c", program], env={**os.environ, **environment}, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    return done.stdout.strip()
