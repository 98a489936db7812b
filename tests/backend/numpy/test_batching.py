"""`vmap` on NumPy: one run of a function for all slices, by the batching rules of the ops."""

import inspect
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

from emberharmony import ops
from emberharmony.core.errors import AxisError, EmberError, ShapeError
from emberharmony.core.registry import OPS
from emberharmony.rules.batching import RULES
from emberharmony.testing.sample import Case, cast_to_dtype
from emberharmony.testing.samples import all_samples
from emberharmony.transforms.batch_tape import ABOUT, Batch
from tests.together import together

SAMPLES = all_samples()
MAPPED = sorted(op for op, row in SAMPLES.items() if row.reference != "tests" and row.cases and op in OPS)
X = np.linspace(-1.0, 2.0, 15, dtype="float32").reshape(5, 3)
W = np.linspace(-1.0, 1.0, 12, dtype="float32").reshape(3, 4)


@pytest.fixture(autouse=True)
def _on_numpy() -> Iterator[None]:
    with ops.use_backend("numpy"):
        yield


@pytest.fixture
def once_per_slice(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Returns a list to which each op adds its name that runs once for each slice."""
    names: list[str] = []
    by_slices = Batch._call_by_slices

    def noted(self: Batch, mapped: Any, given: Any) -> Any:
        names.append(mapped.spec.name)
        return by_slices(self, mapped, given)

    monkeypatch.setattr(Batch, "_call_by_slices", noted)
    return names


def follows(op: str) -> bool:
    """Returns whether the declaration of an op says enough for its batching rule."""
    return OPS[op].facts.elementwise or bool(OPS[op].facts.along)


def first_dtype(op: str) -> str:
    """Returns a dtype that an op takes."""
    return (*SAMPLES[op].dtypes, *SAMPLES[op].integers)[0]


def hosts(result: Any) -> list[np.ndarray]:
    """Returns the tensors of a result as arrays."""
    return [np.asarray(leaf) for leaf in ops.tree_leaves(result) if ops.is_tensor(leaf)]


def check(op: str, item: Case, dtype: str) -> None:
    """Compares an op under `vmap`, over all its arrays and over each of them, with the op on each slice.

    The second slice has the elements in the opposite order. Calls that this makes invalid are left out.
    """
    args, kwargs = (
        cast_to_dtype(item.args, dtype),
        {name: cast_to_dtype(value, dtype) for name, value in item.kwargs.items()},
    )
    places = [i for i, arg in enumerate(args) if isinstance(arg, np.ndarray)]

    def one(*slices: Any) -> Any:
        filled = list(args)
        for i, value in zip(places, slices, strict=True):
            filled[i] = value
        return OPS[op].function(*filled, **kwargs)

    ways: list[list[int | None]] = [[0] * len(places)] if places else []
    if len(places) > 1:
        ways += [[0 if i == j else None for i in range(len(places))] for j in range(len(places))]
    for way in ways:
        pairs = zip(places, way, strict=True)
        given = [args[i] if axis is None else np.stack([args[i], np.flip(args[i])]) for i, axis in pairs]
        try:
            slices = [hosts(one(*(x if a is None else x[i] for x, a in zip(given, way, strict=True)))) for i in (0, 1)]
            wanted = [np.stack(column) for column in zip(*slices, strict=True)]
        except (EmberError, ValueError):  # such as a matrix that is not definite, or results of different lengths
            continue
        if wanted:
            for found, want in zip(hosts(ops.vmap(one, in_axes=tuple(way))(*given)), wanted, strict=True):
                assert (found.dtype, found.shape) == (want.dtype, want.shape)
                np.testing.assert_allclose(found, want, rtol=1e-4, atol=1e-4)


@pytest.mark.filterwarnings("ignore::RuntimeWarning")
@together("op", MAPPED)
def test_an_op_gives_the_results_and_dtypes_of_its_slices(op: str) -> None:
    check(op, SAMPLES[op].cases[0], first_dtype(op))


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore::RuntimeWarning")
@pytest.mark.parametrize("op", MAPPED)
def test_an_op_gives_the_results_and_dtypes_of_its_slices_in_all_cases(op: str) -> None:
    for item in SAMPLES[op].cases:
        for dtype in (*SAMPLES[op].dtypes, *SAMPLES[op].integers):
            if dtype in ("float32", "float64", "complex64", "int32"):
                check(op, item, dtype)


def test_every_primitive_on_tensors_has_a_rule() -> None:
    tensors = {
        name
        for name, spec in OPS.items()
        if any(p.role in ("TensorLike", "Tensors", "Operand") for p in spec.parameters)
    }
    primitives = {name for name in tensors if not (OPS[name].composite or follows(name))}
    assert primitives - RULES.keys() - ABOUT.keys() == set()
    assert RULES.keys() <= OPS.keys()


@pytest.mark.parametrize("op", sorted(op for op in OPS if OPS[op].facts.along == "axes"))
def test_a_reduction_keeps_its_axes(op: str) -> None:
    cube = np.stack([X, X[::-1]])
    for axis in (None, 1, -2):
        found = ops.vmap(lambda x, axis=axis: OPS[op].function(x, axis=axis, keepdims=True))(cube)
        wanted = [OPS[op].function(x, axis=axis, keepdims=True) for x in cube]
        np.testing.assert_allclose(found, np.stack(wanted), rtol=1e-6)


@pytest.mark.parametrize("op", sorted(op for op, row in SAMPLES.items() if row.cases and (op in RULES or follows(op))))
def test_an_op_with_a_rule_runs_once(op: str, once_per_slice: list[str]) -> None:
    item, dtype = SAMPLES[op].cases[0], first_dtype(op)
    args = cast_to_dtype(item.args, dtype)
    if not args or not isinstance(args[0], np.ndarray):
        pytest.skip("its first argument is no array")
    kwargs = {name: cast_to_dtype(value, dtype) for name, value in item.kwargs.items()}
    ops.vmap(lambda x: OPS[op].function(x, *args[1:], **kwargs))(np.stack([args[0], args[0]]))
    assert once_per_slice == ([op] if op == "searchsorted" else [])  # each slice is a sequence of its own


def loss(x: Any) -> Any:
    return ops.sum(ops.tanh(ops.matmul(x, W)))


def derivative(x: np.ndarray) -> np.ndarray:
    return np.asarray((1.0 - np.tanh(x @ W) ** 2) @ W.T)


def test_transforms_nest_and_run_a_function_once(once_per_slice: list[str]) -> None:
    calls: list[int] = []

    def counted(x: Any) -> Any:
        calls.append(1)
        return loss(x)

    programs: list[tuple[Any, np.ndarray]] = [
        (ops.vmap(ops.grad(counted)), derivative(X)),
        (ops.grad(lambda x: ops.sum(ops.vmap(counted)(x))), derivative(X)),
        (ops.vmap(lambda x: ops.vmap(lambda y: counted(x * y))(X)), np.tanh((X[:, None] * X) @ W).sum(-1)),
        (ops.compile(ops.vmap(counted)), np.tanh(X @ W).sum(-1)),
        (ops.vmap(ops.compile(counted)), np.tanh(X @ W).sum(-1)),
        (ops.vmap(ops.vmap(ops.grad(lambda x: ops.power(x, 3.0)))), 3.0 * X**2),
    ]
    for program, wanted in programs:
        calls.clear()
        np.testing.assert_allclose(program(X), wanted, rtol=1e-4, atol=1e-5)
        assert len(calls) <= 1
    assert once_per_slice == []


def test_jacobians_and_hessians_are_mapped(once_per_slice: list[str]) -> None:
    jacobian = ops.jacrev(lambda x: ops.tanh(ops.matmul(x, W)))(X[0])
    np.testing.assert_allclose(jacobian, (1.0 - np.tanh(X[0] @ W) ** 2)[:, None] * W.T, rtol=1e-4, atol=1e-5)
    hessians = ops.vmap(ops.hessian(loss))(X)
    np.testing.assert_allclose(hessians, np.stack([ops.hessian(loss)(x) for x in X]), rtol=1e-4, atol=1e-5)
    assert once_per_slice == []


def test_a_derivative_of_its_own_is_mapped_in_both_orders() -> None:
    calls: list[int] = []

    @ops.custom_gradient
    def scaled(x: Any, w: Any) -> Any:
        calls.append(1)

        def gradient(x: Any, w: Any, *, upstream: Any) -> Any:
            return upstream * w * 10.0, ops.sum(upstream * x)

        return x * w, gradient

    weight = np.float32(2.0)
    inside = ops.vmap(ops.grad(lambda x, w: ops.sum(scaled(x, w)), (0, 1)), in_axes=(0, None))(X, weight)
    np.testing.assert_allclose(inside[0], np.full((5, 3), 20.0))
    np.testing.assert_allclose(inside[1], X.sum(1), rtol=1e-5, atol=1e-6)
    assert len(calls) == 2  # for the result, and for the derivative

    def total(x: Any, w: Any) -> Any:
        return ops.sum(ops.vmap(scaled, in_axes=(0, None))(x, w))

    outside = ops.grad(total, (0, 1))(X, weight)
    np.testing.assert_allclose(outside[0], np.full((5, 3), 20.0))
    np.testing.assert_allclose(outside[1], X.sum(), rtol=1e-5)
    assert len(calls) == 4


def test_a_function_that_reads_a_value_runs_for_each_slice() -> None:
    calls: list[int] = []

    def branching(x: Any) -> Any:
        calls.append(1)
        return x if ops.sum(x) > 0 else -x

    wanted = np.where(X.sum(1, keepdims=True) > 0, X, -X)
    np.testing.assert_array_equal(ops.vmap(branching)(X), wanted)
    assert len(calls) == 1 + len(X)
    assert ops.vmap(lambda x: ops.full((2,), float(x[0])))(X).shape == (5, 2)


def test_each_slice_has_draws_of_its_own() -> None:
    drawn = np.asarray(ops.vmap(lambda x: x + ops.random_normal((3,)))(np.zeros((4, 3), "float32")))
    assert len(np.unique(drawn)) == drawn.size


def test_a_result_that_is_not_mapped_is_repeated_in_memory_of_its_own() -> None:
    constant = np.ones(2, "float32")
    found = ops.vmap(lambda x: constant)(X)
    assert found.shape == (5, 2)
    found[0, 0] = 7.0
    assert found[1, 0] == constant[0] == 1.0


def test_errors_name_the_shapes_of_slices() -> None:
    with pytest.raises(ShapeError, match=r"\(3,\)"):
        ops.vmap(lambda x: ops.add(x, np.ones(4, "float32")))(X)
    with pytest.raises(AxisError, match="axis 1 is out of range"):
        ops.vmap(lambda x: ops.sort(x, axis=1))(X)
    with pytest.raises(ZeroDivisionError):
        ops.vmap(lambda x: 1 // 0)(X)


@pytest.mark.parametrize(
    "program",
    [
        lambda x, i: x[i],
        lambda x, i: ops.take(x, i, axis=1),
        lambda x, i: ops.take(x, i),
        lambda x, i: x[:, i],
        lambda x, i: x[i, i],
        lambda x, i: x[1, i],
        lambda x, i: ops.scatter_update(x, ops.expand_dims(i, 1), ops.ones((2, 4)), "add"),
        lambda x, i: ops.diag(x[i, 0], 1),
        lambda x, i: ops.einsum("ij,kj", x, x),
        lambda x, i: ops.einsum("...j,kj->...k", x, W),
        lambda x, i: ops.one_hot(i, 3, axis=0),
        lambda x, i: ops.concatenate([x, ops.ones((1, 4))], axis=-2),
        lambda x, i: ops.matmul(x, W.T[:, 0]),
        lambda x, i: ops.matmul(W[:, :3], x),
        lambda x, i: ops.transpose(x)[..., None, ::-1],
    ],
    ids=lambda program: inspect.getsource(program).strip().removeprefix("lambda x, i: ").rstrip(","),
)
@pytest.mark.parametrize("way", [(0, 0), (0, None), (None, 0)], ids=str)
def test_indices_and_products_of_slices(program: Any, way: tuple[Any, Any], once_per_slice: list[str]) -> None:
    x, i = np.arange(60, dtype="float32").reshape(5, 3, 4), np.array([[0, 1], [2, 0], [1, -1], [0, 0], [2, 2]])
    given = tuple(whole if axis == 0 else whole[1] for whole, axis in zip((x, i), way, strict=True))
    wanted = [program(*(g if a is None else g[k] for g, a in zip(given, way, strict=True))) for k in range(5)]
    found = ops.vmap(program, in_axes=way)(*given)
    np.testing.assert_array_equal(found, np.stack(wanted))
    assert once_per_slice == []


def test_rows_times_one_matrix_need_no_rule(monkeypatch: pytest.MonkeyPatch) -> None:
    x, w = np.ones((3, 4), np.float32), np.ones((4, 2), np.float32)
    monkeypatch.setattr(Batch, "_map_op", lambda *arguments: pytest.fail("the rule of matmul was asked"))
    with ops.use_backend("numpy"):
        np.testing.assert_array_equal(ops.vmap(lambda row: ops.matmul(row, w))(x), np.full((3, 2), 4.0))
