"""The initializers: their distributions, equal values on every backend, and the formulas of torch."""

import copy
import inspect
import math
import pickle
from typing import Any

import numpy as np
import pytest
from scipy import stats

from emberharmony import Buffer, Parameter, errors, nn, ops
from emberharmony.backend import create_backend
from emberharmony.nn import init

SHAPE = (60, 20, 3)
"""60 inputs and 180 outputs for each weight."""

DISTRIBUTIONS: list[tuple[init.Initializer, Any]] = [
    (init.uniform(), stats.uniform(0, 1)),
    (init.uniform(-3.0, 5.0), stats.uniform(-3, 8)),
    (init.normal(), stats.norm()),
    (init.normal(2.0, 0.5), stats.norm(2, 0.5)),
    (init.trunc_normal(), stats.truncnorm(-2, 2)),
    (init.trunc_normal(1.0, 2.0, -1.0, 2.0), stats.truncnorm(-1, 0.5, 1, 2)),
    (init.trunc_normal(0.0, 1.0, 5.0, 9.0), stats.truncnorm(5, 9)),
    (init.trunc_normal(0.0, 1.0, -9.0, -5.0), stats.truncnorm(-9, -5)),
    (init.xavier_uniform(), stats.uniform(-math.sqrt(6 / 240), 2 * math.sqrt(6 / 240))),
    (init.xavier_uniform(2.0), stats.uniform(-2 * math.sqrt(6 / 240), 4 * math.sqrt(6 / 240))),
    (init.xavier_normal(0.5), stats.norm(0, 0.5 * math.sqrt(2 / 240))),
    (init.kaiming_uniform(), stats.uniform(-math.sqrt(6 / 60), 2 * math.sqrt(6 / 60))),
    (init.kaiming_uniform(math.sqrt(5)), stats.uniform(-math.sqrt(1 / 60), 2 * math.sqrt(1 / 60))),
    (init.kaiming_normal(mode="fan_out", nonlinearity="relu"), stats.norm(0, math.sqrt(2 / 180))),
    (init.kaiming_normal(nonlinearity="tanh"), stats.norm(0, 5 / 3 / math.sqrt(60))),
    (init.lecun_uniform(), stats.uniform(-math.sqrt(3 / 60), 2 * math.sqrt(3 / 60))),
    (init.lecun_normal(), stats.norm(0, math.sqrt(1 / 60))),
]
OTHERS = [
    (init.constant(0.25), (2, 3)),
    (init.zeros(), (2, 3)),
    (init.ones(), 4),
    (init.eye(), (3, 5)),
    (init.dirac(), (4, 2, 3)),
    (init.dirac(2), (6, 3, 3, 4)),
    (init.dirac(3), (9, 2, 3, 2, 1)),
    (init.orthogonal(), (4, 6)),
    (init.orthogonal(2.0), (6, 2, 2)),
    (init.sparse(0.3), (10, 5)),
]
ALL = [*((each, SHAPE) for each, _ in DISTRIBUTIONS), *OTHERS]


@pytest.mark.parametrize(("initializer", "distribution"), DISTRIBUTIONS, ids=lambda x: str(x).split(" at ")[0])
def test_the_numbers_have_the_distribution(initializer: init.Initializer, distribution: Any) -> None:
    found = ops.to_numpy(initializer(SHAPE, rng=ops.random.Generator(5), dtype="float64")).ravel()
    assert stats.kstest(found, distribution.cdf).pvalue > 1e-3
    narrow = ops.to_numpy(initializer(SHAPE, rng=ops.random.Generator(5))).ravel()
    assert stats.kstest(narrow, distribution.cdf).pvalue > 1e-3
    low, high = distribution.support()
    assert low <= found.min() < found.max() <= high


@pytest.mark.parametrize(("initializer", "shape"), ALL, ids=str)
def test_the_values_are_equal_on_every_backend(initializer: init.Initializer, shape: Any, backend: str) -> None:
    common = set(create_backend(backend).dtypes.available) & set(create_backend("numpy").dtypes.available)
    for dtype in [each.name for each in common if each.is_floating]:
        found = initializer(shape, rng=ops.random.Generator(9), dtype=dtype)
        assert ops.dtype(found) == dtype
        assert tuple(found.shape) == ((shape,) if isinstance(shape, int) else shape)
        with ops.use_backend("numpy"):
            expected = initializer(shape, rng=ops.random.Generator(9), dtype=dtype)
        assert (ops.to_numpy(found) == expected).all(), dtype


@pytest.mark.parametrize("seeded", [True, False])
def test_without_a_generator_the_seed_of_the_default_stream_decides(seeded: bool, backend: str) -> None:
    made = []
    for _ in range(2):
        if seeded:
            ops.random.seed(3)
        made.append(init.orthogonal()((3, 3)).tolist())
    assert (made[0] == made[1]) is seeded


def test_streams_by_name_are_taken(backend: str) -> None:
    first, second = (init.normal()((3,), rng=nn.Rngs(0, params=5)).tolist() for _ in range(2))
    assert first == second == init.normal()((3,), rng=ops.random.Generator(5)).tolist()
    with pytest.raises(errors.ArgumentTypeError, match=r"rng is an ops\.random\.Generator"):
        init.normal()((3,), rng=5)


@pytest.mark.parametrize(
    ("shape", "gain"), [((6, 3), 1.0), ((3, 6), 2.0), ((4, 3, 2), 1.0), ((8, 2, 2), 0.5), ((3, 3), 1)]
)
def test_orthogonal_matrices_are_orthogonal(shape: tuple[int, ...], gain: float, backend: str) -> None:
    matrix = ops.to_numpy(init.orthogonal(gain)(shape, rng=ops.random.Generator(1), dtype="float32"))
    matrix = matrix.reshape(shape[0], -1).astype("f8")
    product = matrix.T @ matrix if matrix.shape[0] >= matrix.shape[1] else matrix @ matrix.T
    np.testing.assert_allclose(product, gain**2 * np.eye(len(product)), atol=1e-6)


def test_orthogonal_matrices_are_uniform() -> None:
    """The first element of a random unit vector in three dimensions is uniform in [-1, 1]."""
    rng = ops.random.Generator(2)
    found = [float(init.orthogonal()((3, 3), rng=rng)[0][0]) for _ in range(500)]
    assert stats.kstest(found, stats.uniform(-1, 2).cdf).pvalue > 1e-3


def test_sparse_columns_have_the_share_of_zeros(backend: str) -> None:
    found = ops.to_numpy(init.sparse(0.25, std=2.0)((10, 400), rng=ops.random.Generator(1)))
    assert ((found == 0).sum(axis=0) == 3).all()
    assert stats.kstest(found[found != 0], stats.norm(0, 2).cdf).pvalue > 1e-3
    assert stats.chisquare((found == 0).sum(axis=1)).pvalue > 1e-3


def test_dirac_and_eye_equal_those_of_torch(backend: str) -> None:
    torch = pytest.importorskip("torch")
    for shape, groups in (((4, 2, 3), 1), ((6, 3, 3, 4), 2), ((9, 2, 3, 2, 1), 3), ((2, 5, 2), 1)):
        expected = torch.nn.init.dirac_(torch.empty(shape), groups)
        assert init.dirac(groups)(shape).tolist() == expected.tolist()
    assert init.eye()((2, 3)).tolist() == torch.nn.init.eye_(torch.empty(2, 3)).tolist()


def test_fans_and_gains_equal_those_of_torch() -> None:
    torch = pytest.importorskip("torch")
    for shape in ((3, 4), (16, 3, 5), (16, 3, 5, 7), (2, 0, 3)):
        assert init.fans(shape) == torch.nn.init._calculate_fan_in_and_fan_out(torch.empty(shape))
    for name in (*init._LINEAR, "sigmoid", "tanh", "relu", "leaky_relu", "selu"):
        assert init.calculate_gain(name) == torch.nn.init.calculate_gain(name)
    for slope in (0.0, 0.3, 2):
        assert init.calculate_gain("leaky_relu", slope) == torch.nn.init.calculate_gain("leaky_relu", slope)


def test_every_initializer_of_torch_is_there_with_its_options() -> None:
    torch = pytest.importorskip("torch")
    names = [name[:-1] for name in dir(torch.nn.init) if name.endswith("_") and name[0] != "_"]
    for name in names:
        theirs = [
            each.replace("val", "value") if name == "constant" else each
            for each in inspect.signature(getattr(torch.nn.init, f"{name}_")).parameters
            if each not in ("tensor", "generator")
        ]
        assert list(inspect.signature(getattr(init, name)).parameters) == theirs, name
    assert init.glorot_uniform is init.xavier_uniform
    assert init.he_normal is init.kaiming_normal


def test_apply_keeps_shape_dtype_and_identity(backend: str) -> None:
    weight = Parameter(ops.zeros((3, 4), "float16"), name="w")
    assert init.apply(weight, init.xavier_normal(), rng=ops.random.Generator(0)) is weight
    assert (tuple(weight.value.shape), ops.dtype(weight.value)) == ((3, 4), ops.float16)
    expected = init.xavier_normal()((3, 4), rng=ops.random.Generator(0), dtype="float16")
    assert weight.value.tolist() == expected.tolist()
    assert init.apply(Buffer([1.0, 2.0]), init.zeros()).value.tolist() == [0.0, 0.0]
    layer = nn.Linear(3, 2)
    layer.apply(lambda module: init.apply(module.bias, init.constant(2.0)))
    assert layer.bias is not None
    assert layer.bias.value.tolist() == [2.0, 2.0]


def test_initializers_are_compared_copied_and_shown() -> None:
    for each, _ in ALL:
        for same in (copy.deepcopy(each), pickle.loads(pickle.dumps(each))):
            assert same == each
            assert hash(same) == hash(each)
            assert repr(same) == repr(each)
    assert init.normal(std=0.02) != init.normal()
    assert init.normal() != 3
    assert repr(init.kaiming_normal()) == "kaiming_normal(a=0.0, mode='fan_in', nonlinearity='leaky_relu')"


def test_empty_shapes_and_integers(backend: str) -> None:
    assert tuple(init.normal()(3).shape) == (3,)
    assert tuple(init.kaiming_uniform()((0, 3)).shape) == (0, 3)
    assert tuple(init.kaiming_uniform()((3, 0)).shape) == (3, 0)
    assert tuple(init.orthogonal()((0, 3)).shape) == (0, 3)
    assert tuple(init.trunc_normal()((0,)).shape) == (0,)


REFUSED: list[tuple[Any, type[Exception], str]] = [
    (lambda: init.uniform(2.0, 1.0), errors.ArgumentError, r"uniform\(\): a=2\.0 exceeds b=1\.0"),
    (lambda: init.normal(std=-1.0), errors.ArgumentError, r"std=-1\.0 is negative"),
    (lambda: init.trunc_normal(std=0.0), errors.ArgumentError, "expected a number > 0"),
    (lambda: init.trunc_normal(a=1.0, b=1.0), errors.ArgumentError, "is not less than"),
    (lambda: init.sparse(1.5), errors.ArgumentError, "from 0 to 1"),
    (lambda: init.kaiming_normal(mode="fan_inn"), errors.ArgumentError, "did you mean 'fan_in'"),
    (lambda: init.kaiming_normal(nonlinearity="rellu"), errors.ArgumentError, "did you mean 'relu'"),
    (
        lambda: init.ones()((3,), dtype="int32"),
        errors.DTypeError,
        r"ones\(\) makes parameters, which are floating, not int32",
    ),
    (lambda: init.xavier_uniform()((3,)), errors.ShapeError, r"shape \(3,\) has no fans, expected \(out, in"),
    (lambda: init.eye()((3,)), errors.ShapeError, r"eye\(\) makes matrices, not shape \(3,\)"),
    (lambda: init.sparse(0.5)((3, 4, 5)), errors.ShapeError, r"sparse\(\) makes matrices"),
    (lambda: init.orthogonal()((3,)), errors.ShapeError, "two or more axes"),
    (lambda: init.dirac(2)((3, 2, 1)), errors.ShapeError, "a multiple of groups=2"),
    (lambda: init.dirac()((3, 2)), errors.ShapeError, "kernels"),
    (lambda: init.apply([1.0], init.zeros()), errors.ArgumentTypeError, "takes a Parameter or Buffer"),  # type: ignore[type-var]
    (lambda: init.apply(Parameter([1.0]), 3.0), errors.ArgumentTypeError, r"such as init\.normal\(\), not 3\.0"),  # type: ignore[arg-type]
    (
        lambda: init.apply(Parameter([1.0]), lambda shape, rng, dtype: ops.zeros((2,), dtype)),
        errors.ShapeError,
        r"made shape \(2,\), expected \(1,\)",
    ),
]


@pytest.mark.parametrize(("call", "error", "message"), REFUSED)
def test_wrong_arguments_are_refused(call: Any, error: type[Exception], message: str) -> None:
    with pytest.raises(error, match=message):
        call()
