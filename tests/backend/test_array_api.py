"""Backends made from a namespace of the array API standard, and the bodies of ops that they run."""

import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import emberharmony
from emberharmony import nn, ops, optim
from emberharmony.backend import OPS, Backend, NativeDTypes, as_dtype, discovery, from_array_api, unsupported
from emberharmony.backend.arrayapi import ops_read_on_host
from emberharmony.backend.numpy import NumpyBackend
from emberharmony.errors import (
    ArgumentError,
    BackendProtocolError,
    DTypeError,
    LinAlgError,
    ShapeError,
    UnsupportedOpError,
)
from emberharmony.testing.conformance import run_sample
from emberharmony.testing.samples import all_samples

xp = pytest.importorskip("array_api_strict")
ROWS = all_samples()
SAMPLE = (
    *(
        "arctan2",
        "cumsum",
        "diag",
        "divide_no_nan",
        "fft",
        "get_item",
        "histogram",
        "logsumexp",
        "one_hot",
        "qr",
        "rsqrt",
    ),
    *("segment_sum", "softmax", "sort", "take", "tril", "unique", "where"),
)
"""Ops of each family, of which `test_every_op_passes_on_the_strictest_library` tests all."""


def failures(names: Any, backend: str) -> tuple[list[str], dict[str, str]]:
    """Returns what failed in the sample rows of ops, and the reasons of the ops that the backend does not support."""
    failed, reasons = [], {}
    with np.errstate(all="ignore"):
        for name in names:
            outcomes = list(run_sample(ROWS[name], backend))
            failed += [f"{name}, {o.check}, {o.dtype}, {o.label}: {o.failure}" for o in outcomes if o.failure]
            refused = [o.unsupported for o in outcomes if o.unsupported]
            if refused and all(o.unsupported or o.check == "error" for o in outcomes):
                reasons[name] = refused[0]
    return failed, reasons


@pytest.mark.filterwarnings("ignore::RuntimeWarning")
def test_ops_of_each_family_pass_on_the_strictest_library(strict: Backend) -> None:
    assert failures(SAMPLE, "strict") == ([], {})


def test_a_body_runs_on_the_backend_that_is_asked_for_the_op(strict: Backend) -> None:
    x = xp.asarray([1.0, 3.0])
    with ops.use_backend("numpy"):
        assert isinstance(strict.bound.mean(x), strict.tensor_type)
        assert float(strict.bound.mean(x)) == 2.0


def test_shapes_are_found_where_the_body_of_an_op_runs(strict: Backend) -> None:
    with ops.use_backend("strict"):
        found = ops.eval_shape(lambda x: ops.squeeze(ops.one_hot(x, 3), 1), ops.TensorSpec((2, 1), "int32"))
    assert (found.shape, found.dtype) == ((2, 3), "float32")


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore::RuntimeWarning")
def test_every_op_passes_on_the_strictest_library(strict: Backend) -> None:
    # The second part is the table of the ops that array-api-strict does not have: there is none.
    assert failures(ROWS, "strict") == ([], {})


@pytest.mark.parametrize("dtype", ["bool", "int8", "float32", "complex64"])
def test_triangles_are_filled_with_zeros_of_each_dtype_by_default(dtype: str, poor: Backend) -> None:
    x = np.ones((3, 3), dtype)
    with ops.use_backend("poor"):
        for op in ("tril", "triu"):
            found = ops.to_numpy(getattr(ops, op)(x))
            assert (found.dtype, found.tolist()) == (x.dtype, getattr(np, op)(x).tolist())


@pytest.mark.parametrize(
    "op", ["argsort", "sort", "argmax", "argmin", "cumsum", "cumprod", "flip", "sum", "max", "std"]
)
def test_without_an_axis_all_elements_count_on_the_strictest_library(op: str, strict: Backend) -> None:
    x = [[3.0, 1.0, 2.0], [0.5, 5.0, 4.0]]
    wanted = getattr(np, op)(x, axis=None)
    with ops.use_backend("strict"):
        assert ops.to_numpy(getattr(ops, op)(x, axis=None)) == pytest.approx(wanted)


def test_cumulative_sums_and_products_of_booleans_are_booleans_on_the_strictest_library(strict: Backend) -> None:
    with ops.use_backend("strict"):
        some, every = ops.cumsum([0.0, 0.5, -0.5], dtype="bool"), ops.cumprod([2.0, 0.0, 3.0], dtype="bool")
        assert ops.dtype(some) == ops.dtype(every) == "bool"
        assert ops.to_numpy(some).tolist() == [False, True, True]
        assert ops.to_numpy(every).tolist() == [True, False, False]


def bodies() -> list[str]:
    """Returns the ops that a backend need not define."""
    return sorted(name for name, spec in OPS.items() if spec.composite and not hasattr(Backend, name))


@pytest.fixture
def poor(strict: Backend, monkeypatch: pytest.MonkeyPatch) -> Backend:
    """A backend that has only what has no body."""
    made: Backend = type("PoorBackend", (type(strict),), {"name": "poor", **dict.fromkeys(bodies())})()
    discovery.check_backend(made)
    monkeypatch.setitem(discovery._LOADED, "poor", made)
    return made


MOST = (
    *("all", "argmax", "copysign", "cumprod", "flip", "get_item", "greater_equal", "isfinite", "log1p", "nonzero"),
    *("repeat", "roll", "round", "signbit", "solve", "stack", "take_along_axis", "tile", "var"),
)
"""Ops whose bodies array-api-strict does not need; the other bodies are tested above."""


@pytest.mark.filterwarnings("ignore::RuntimeWarning")
def test_bodies_find_nan_first(poor: Backend) -> None:
    with ops.use_backend("poor"):
        assert int(ops.argmax([1.0, np.nan, 3.0])) == int(ops.argmin([1.0, np.nan, 3.0])) == 1


@pytest.mark.filterwarnings("ignore::RuntimeWarning")
def test_bodies_stand_on_about_fifty_functions(poor: Backend) -> None:
    assert failures(MOST[::2], "poor") == ([], {})


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore::RuntimeWarning")
def test_every_body_stands_on_about_fifty_functions(poor: Backend) -> None:
    failed, reasons = failures([name for name in bodies() if hasattr(NumpyBackend, name)], "poor")
    # The oracle adds 3,000 numbers in a row in float64, which rounds more often than the steps that double.
    failed = [each for each in failed if not each.startswith(("cumsum, value, float64", "cumsum, value, complex128"))]
    assert (failed, reasons) == ([], {})


def test_an_adapter_writes_few_functions() -> None:
    inherited = {name for name in OPS if hasattr(Backend, name)}
    needed = {name for name, spec in OPS.items() if not spec.composite} - inherited
    assert len(needed) == 50


def test_a_backend_of_any_kind_runs_bodies() -> None:
    class Small(NumpyBackend):
        name = "small"
        rsqrt = logsumexp = segment_sum = None  # type: ignore[assignment]

    small = Small()
    discovery.check_backend(small)
    assert Small.missing_ops() == []
    with ops.use_backend(small):
        x = ops.convert_to_tensor([1.0, 4.0])
        assert ops.rsqrt(x).tolist() == [1.0, 0.5]
        assert ops.grad(lambda x: ops.sum(ops.rsqrt(x)))(x).tolist() == [-0.5, -0.0625]
        assert ops.segment_sum(x, [1, 1]).tolist() == [0.0, 5.0]
        assert ops.logsumexp(x).dtype == np.float32


def test_a_body_conjugates() -> None:
    small = type("SmallBackend", (NumpyBackend,), {"name": "small", "conj": None})()
    with ops.use_backend(small):
        assert ops.conj([1 + 2j]).tolist() == [1 - 2j]
        assert ops.dtype(ops.conj([1.0])) == "float32"


def test_a_library_that_draws_itself_has_no_state_of_ours() -> None:
    draw = {"standard_uniform": lambda shape, dtype=None: np.full(shape, 0.5, dtype)}
    made = from_array_api("drawing", np, tensor_type=np.ndarray, extras=draw)
    with ops.use_backend(made):
        assert ops.random.uniform((2,)).tolist() == [0.5, 0.5]
        with pytest.raises(UnsupportedOpError, match="cannot save its default streams"):
            ops.random.get_state()


def test_numbers_drawn_by_default_are_below_one_in_half_precision() -> None:
    small = type("SmallBackend", (NumpyBackend,), {"name": "small", "standard_uniform": None})()
    with ops.use_backend(small):
        for dtype in ("float16", "bfloat16", "float32"):
            x = ops.to_numpy(ops.random.uniform((50_000,), dtype=dtype)).astype(np.float32)
            assert 0.0 <= x.min() < 0.01 < 0.99 < x.max() < 1.0


def test_backends_that_say_so_define_all_that_is_asked_of_them_unawares(backend: str) -> None:
    known = type(discovery.load(backend))
    known.import_categories()
    package = Path(emberharmony.__file__).parent
    found = {name for file in package.rglob("*.py") for name in re.findall(r"bound\.(\w+)\(", file.read_text("utf-8"))}
    assert len(found & OPS.keys()) > 50
    if known.defines_all:
        assert sorted(name for name in found & OPS.keys() if getattr(known, name, None) is None) == []


def test_an_inherited_default_is_not_declared_unsupported_unawares() -> None:
    class Careless(NumpyBackend):
        name = "careless"
        stop_gradient = unsupported("a loop over all ops")
        custom_vjp = unsupported("a loop over all ops")

    with pytest.raises(BackendProtocolError, match=r"declares stop_gradient, custom_vjp unsupported.*leave out"):
        discovery.check_backend(Careless())
    with pytest.raises(BackendProtocolError, match=r"declares stop_gradient unsupported"):
        from_array_api("careless", np, tensor_type=np.ndarray, extras={"stop_gradient": unsupported("none")})


def test_extras_replace_functions_of_the_namespace() -> None:
    def pulled(self: Backend, fn: Any, primals: Any) -> Any:
        calls.append("pullback")
        return Backend.pullback(self, fn, primals)

    calls: list[str] = []
    extras = {"sin": lambda x: x + 1, "cos": unsupported("no cosine"), "pullback": pulled}
    made = from_array_api("extra", np, tensor_type=np.ndarray, extras=extras)
    with ops.use_backend(made):
        assert ops.sin([1.0]).tolist() == [2.0]
        with pytest.raises(UnsupportedOpError, match=r"cos\(\).*no cosine"):
            ops.cos([1.0])
        ops.grad(ops.square)(ops.convert_to_tensor(2.0))
    assert calls == ["pullback"]
    with pytest.raises(BackendProtocolError, match=r"'sinn' is neither an op nor a method.*did you mean 'sin'"):
        from_array_api("extra", np, tensor_type=np.ndarray, extras={"sinn": np.sin})


def test_a_library_that_computes_later_reads_nothing_unasked() -> None:
    lazy = from_array_api("later", xp, tensor_type=type(xp.asarray(0)), lazy=True)
    refused = {name for name in OPS if hasattr(getattr(type(lazy), name, None), "reason")}
    now = type(from_array_api("now", xp, tensor_type=lazy.tensor_type))
    assert refused == {name for name in ops_read_on_host() if getattr(now, name, None) is None}
    assert {"bincount", "histogram", "lu_factor"} <= refused
    with ops.use_backend(lazy), pytest.raises(UnsupportedOpError, match="reads tensors on the host"):
        ops.bincount([1, 0])


def test_dtypes_that_the_library_lacks_are_named(strict: Backend) -> None:
    with ops.use_backend(strict), pytest.raises(DTypeError, match="no dtype 'float16'"):
        ops.zeros((2,), "float16")


def test_functions_that_a_namespace_lacks_are_named() -> None:
    class Poor:
        def __getattr__(self, name: str) -> Any:
            if name in ("sinh", "matmul"):
                raise AttributeError(name)
            return getattr(xp, name)

    made = from_array_api("poor", Poor(), tensor_type=type(xp.asarray(0)))
    with ops.use_backend(made):
        assert float(ops.cosh(0.0)) == 1.0
        with pytest.raises(UnsupportedOpError, match=r"sinh\(\) is unsupported by PoorBackend: .* no function for it"):
            ops.sinh(1.0)


@pytest.mark.filterwarnings("ignore::RuntimeWarning")
def test_errors_are_typed_on_a_library_of_the_standard(strict: Backend) -> None:
    with ops.use_backend(strict):
        with pytest.raises(LinAlgError, match=r"inv\(\) on backend 'strict'"):
            ops.inv(ops.zeros((2, 2)))
        with pytest.raises(ArgumentError):
            ops.get_item(ops.zeros((2, 2)), (..., ...))
        with pytest.raises(IndexError, match=r"take\(\) on backend 'strict'"):
            ops.take(ops.zeros((2,)), 5)


def test_numpys_names_serve_where_the_standards_are_missing() -> None:
    class Older:
        """A namespace with NumPy's names only."""

        def __getattr__(self, name: str) -> Any:
            if name in ("asin", "concat", "permute_dims", "pow", "astype", "bitwise_left_shift", "cumulative_sum"):
                raise AttributeError(name)
            return getattr(np, name)

    made = from_array_api("older", Older(), tensor_type=np.ndarray)
    with ops.use_backend(made):
        assert ops.transpose(ops.concatenate([[[1.0], [2.0]]])).tolist() == [[1.0, 2.0]]
        assert ops.cumsum([1, 2, 3]).tolist() == [1, 3, 6]
        assert ops.bitwise_left_shift([1], 3).tolist() == [8]
        assert float(ops.arcsin(0.0)) == 0.0


def test_dtypes_may_be_given() -> None:
    given = {"float32": xp.float32, "int32": xp.int32, "int64": xp.int64, "bool": xp.bool}
    made = from_array_api("few", xp, tensor_type=type(xp.asarray(0)), dtypes=given)
    assert isinstance(made.dtypes, NativeDTypes)
    assert set(made.dtypes.natives) == {as_dtype(name) for name in given}
    with ops.use_backend(made):
        assert float(ops.std([1.0, 3.0])) == 1.0  # computed in float32, the widest one


def test_a_library_that_differs_where_the_standard_leaves_it_open() -> None:
    """PyTorch's namespace of array-api-compat: no negative strides, bfloat16, errors of its own."""
    torch = pytest.importorskip("torch")
    made = from_array_api("compat", pytest.importorskip("array_api_compat.torch"), tensor_type=torch.Tensor)
    with ops.use_backend(made):
        assert ops.take([1.0, 2.0], np.asarray([0, 1])[::-1]).tolist() == [2.0, 1.0]
        assert ops.floor_divide([5, 5], [0, 2]).tolist() == [0, 2]
        assert ops.gcd([-4], [6]).tolist() == [2]
        assert tuple(ops.fft.fft(ops.zeros((0, 4))).shape) == (0, 4)
        half = ops.cast([0.5, 1.5], "bfloat16")
        assert ops.to_numpy(ops.logsumexp(half)).dtype.name == "bfloat16"
        assert ops.to_numpy(ops.rsqrt(ops.to_numpy(half))).dtype.name == "bfloat16"
        slope = ops.grad(lambda x: ops.sum(ops.erf(x)))(ops.zeros((1,)))
        assert slope.tolist() == pytest.approx([1.1283791])
        with pytest.raises(LinAlgError):
            ops.inv(ops.zeros((2, 2)))
        with pytest.raises(ShapeError):
            ops.where([True, False], [1.0, 2.0, 3.0], 0.0)


def trained(backends: list[Any]) -> tuple[list[float], list[float]]:
    """Returns the losses of a network whose backend changes during training, and numbers of its last backend."""
    generator = nn.Rngs(0)
    layers = nn.Linear(4, 8, rng=generator), nn.LayerNorm(8), nn.GELU(), nn.Linear(8, 2, rng=generator)
    net = nn.Sequential(*layers)
    optimizer = optim.AdamW(net, 1e-2)
    x, y = np.linspace(-1.0, 1.0, 24, dtype=np.float32).reshape(6, 4), np.arange(6) % 2
    losses = []
    for each in backends:
        with ops.use_backend(each):
            losses.append(float(ops.backward(lambda: nn.losses.cross_entropy(net(ops.convert_to_tensor(x)), y), net)))
            optimizer.step()
            state = ops.random_get_state()
            numbers = ops.to_numpy(ops.random.uniform((3,))).tolist()
            ops.random_set_state(state)
            assert ops.to_numpy(ops.random.uniform((3,))).tolist() == numbers
    return losses, numbers


@pytest.mark.filterwarnings("ignore:You are comparing a array_api_strict dtype")  # with NumPy's of the step before
def test_a_network_trains_on_a_library_and_moves_to_it_in_mid_training(strict: Backend) -> None:
    ops.random.seed(0)
    expected, numbers = trained(["numpy"] * 4)
    ops.random.seed(0)
    losses, same = trained(["numpy", strict, "numpy", strict])
    assert losses == pytest.approx(expected, abs=1e-6)
    assert len(same) == len(numbers) == 3
    assert losses[-1] < losses[0]


def test_functions_of_the_standard_serve_by_its_names_and_others_do_not() -> None:
    class Odd:
        """A namespace in which NumPy's names, and the names of ops that the standard lacks, are something else."""

        def __getattr__(self, name: str) -> Any:
            if name in ("transpose", "concatenate", "arctan", "deg2rad", "cbrt", "gcd"):
                return lambda *args, **kwargs: 1 / 0
            return getattr(np, name)

    with ops.use_backend(from_array_api("odd", Odd(), tensor_type=np.ndarray)):
        assert ops.transpose(ops.concatenate([[[1.0], [0.0]]])).tolist() == [[1.0, 0.0]]
        assert ops.arctan([0.0]).tolist() == ops.deg2rad([0.0]).tolist() == ops.cbrt([0.0]).tolist() == [0.0]
        assert ops.gcd([4], [6]).tolist() == [2]


def test_decompositions_of_half_precision_give_half_precision() -> None:
    made = from_array_api("halves", np, tensor_type=np.ndarray)
    x = np.array([[4.0, 1.0], [1.0, 3.0]], np.float16)
    with ops.use_backend(made):
        for found in (ops.inv(x), ops.cholesky(x), *ops.qr(x), *ops.svd(x), ops.solve(x, x), *ops.eigh(x)):
            assert found.dtype == np.float16
        assert ops.inv(x.astype(np.float32)).dtype == np.float32
        np.testing.assert_allclose(ops.inv(x), np.linalg.inv(x.astype("f4")), rtol=2e-3)


def test_results_without_axes_are_tensors_also_where_the_library_gives_scalars() -> None:
    with ops.use_backend(from_array_api("scalars", np, tensor_type=np.ndarray)):
        x = ops.asarray([3.0, 4.0])
        results = [
            ops.sum(x),
            ops.add(ops.sum(x), 1.0),
            ops.matmul(x, x),
            ops.sqrt(ops.max(x)),
            ops.get_item(x, 0),
            ops.norm(x),
        ]
        results += [*ops.slogdet(ops.eye(2)), ops.grad(lambda t: ops.exp(ops.sum(t)))(ops.asarray(1.0))]
    assert {type(result) for result in results} == {np.ndarray}


def test_scalars_are_stacked_not_concatenated(strict: Backend) -> None:
    with ops.use_backend(strict), pytest.raises(ShapeError, match=r"use ops\.stack"):
        ops.concatenate([1.0, 2.0])
