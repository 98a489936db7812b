"""Random numbers: the same bits on every backend from a generator, right moments, repeatable streams."""

import pickle
import threading

import numpy as np
import pytest
from scipy import stats

from emberharmony import ops
from emberharmony.core.errors import ArgumentError
from emberharmony.core.registry import OPS

DRAWS = {
    "normal": ((50,), {"mean": 2.0, "stddev": 3.0}),
    "uniform": ((50,), {"minval": -1.0, "maxval": 4.0}),
    "randint": ((50, 3, 9), {}),
    "poisson": ((50, 3.5), {}),
    "bernoulli": ((50, 0.3), {}),
    "binomial": ((50, 10, 0.3), {}),
    "exponential": ((50, 2.0), {}),
    "gamma": ((50, 2.0), {}),
    "beta": ((50, 2.0, 3.0), {}),
    "gumbel": ((50,), {}),
    "laplace": ((50,), {}),
    "truncated_normal": ((50,), {}),
    "categorical": ((np.zeros((2, 4), np.float32), 50), {}),
    "permutation": ((20,), {}),
    "choice": ((20, (5,), False), {}),
}
REFERENCE: dict[str, np.ndarray] = {}


@pytest.mark.parametrize("name", sorted(DRAWS))
def test_a_generator_gives_the_same_bits_everywhere(name: str, backend: str) -> None:
    args, kwargs = DRAWS[name]
    values = np.asarray(ops.to_numpy(getattr(ops.random, name)(*args, **kwargs, generator=ops.random.Generator(7))))
    with ops.use_backend("numpy"):
        wanted = getattr(ops.random, name)(*args, **kwargs, seed=7)
    assert values.dtype == wanted.dtype
    assert np.array_equal(values, wanted)


MOMENTS = {
    "random_normal": (lambda n: ops.random_normal(n, 2.0, 3.0, seed=1), 2.0, 3.0),
    "random_uniform": (lambda n: ops.random_uniform(n, -1.0, 3.0, seed=1), 1.0, 4 / 12**0.5),
    "random_poisson": (lambda n: ops.random_poisson(n, 4.0, seed=1), 4.0, 2.0),
    "random_exponential": (lambda n: ops.random_exponential(n, 2.0, seed=1), 2.0, 2.0),
    "random_gamma": (lambda n: ops.random_gamma(n, 4.0, seed=1), 4.0, 2.0),
    "random_beta": (lambda n: ops.random_beta(n, 2.0, 2.0, seed=1), 0.5, 0.05**0.5),
    "random_binomial": (lambda n: ops.random_binomial(n, 16, 0.5, seed=1), 8.0, 2.0),
    "random_bernoulli": (lambda n: ops.random_bernoulli(n, 0.5, seed=1), 0.5, 0.5),
    "random_gumbel": (lambda n: ops.random_gumbel(n, seed=1), 0.5772, np.pi / 6**0.5),
    "random_laplace": (lambda n: ops.random_laplace(n, seed=1), 0.0, 2**0.5),
    "random_truncated_normal": (lambda n: ops.random_truncated_normal(n, seed=1), 0.0, 0.8796),
    "standard_normal": (lambda n: ops.standard_normal(n), 0.0, 1.0),
    "standard_uniform": (lambda n: ops.standard_uniform(n), 0.5, 12**-0.5),
}


@pytest.mark.parametrize("name", sorted(MOMENTS))
def test_moments(name: str, backend: str) -> None:
    draw, mean, deviation = MOMENTS[name]
    n = 20000
    ops.random.seed(5)
    values = np.asarray(ops.to_numpy(draw((n,))), np.float64)
    assert abs(values.mean() - mean) < 5 * deviation / n**0.5
    assert values.std() == pytest.approx(deviation, rel=0.05)


@pytest.mark.parametrize(
    ("draw", "law"),
    [
        (lambda n: ops.random_normal(n, seed=2), "norm"),
        (lambda n: ops.random_uniform(n, seed=2), "uniform"),
        (lambda n: ops.random_exponential(n, seed=2), "expon"),
        (lambda n: ops.standard_normal(n), "norm"),
        (lambda n: ops.standard_uniform(n), "uniform"),
    ],
)
def test_the_distribution_is_right(draw: object, law: str, backend: str) -> None:
    ops.random.seed(11)
    values = np.asarray(ops.to_numpy(draw((4000,))), np.float64)  # type: ignore[operator]
    assert stats.kstest(values, law).pvalue > 1e-3


def test_seed_repeats_the_default_stream(backend: str) -> None:
    draws = []
    for _ in range(2):
        ops.random.seed(3)
        draws.append(
            [ops.to_numpy(d).tolist() for d in (ops.random.normal(4), ops.random.uniform(4), ops.random.gamma(4, 2.0))]
        )
    assert draws[0] == draws[1]
    assert ops.to_numpy(ops.random.normal(4)).tolist() != draws[0][0]


def test_threads_draw_different_numbers(backend: str) -> None:
    seen: list[float] = []

    def work() -> None:
        seen.append(float(np.asarray(ops.to_numpy(ops.random.normal(1)))[0]))

    threads = [threading.Thread(target=work) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(set(seen)) == 8


def test_generators_split_pickle_and_go_on() -> None:
    parent = ops.random.Generator(0)
    first, second = parent.split(2)
    assert first.normal(4).tolist() != second.normal(4).tolist()
    first.normal(3)
    copy = pickle.loads(pickle.dumps(first))
    assert copy.normal(4).tolist() == first.normal(4).tolist()
    again = ops.random.Generator(0).split(2)[1]
    again.normal(4)
    assert again.normal(2).tolist() == second.normal(2).tolist()


def test_dtypes_and_shapes(backend: str) -> None:
    assert ops.dtype(ops.random.normal((2, 3))) == "float32"
    assert ops.dtype(ops.random.uniform((), dtype="float16")) == "float16"
    assert ops.dtype(ops.random.randint((2,), 0, 5)) == "int64"
    assert ops.shape(ops.random.categorical([[0.0, 0.0]], 5)) == (1, 5)
    assert sorted(ops.to_numpy(ops.random.shuffle([3, 1, 2])).tolist()) == [1, 2, 3]


def test_dropout_keeps_the_mean(backend: str) -> None:
    x = ops.dropout(ops.ones((4000,)), 0.25, seed=0)
    values = ops.to_numpy(x)
    assert set(np.unique(values).tolist()) == {0.0, np.float32(1 / 0.75).item()}
    assert float(ops.mean(x)) == pytest.approx(1.0, abs=0.05)


@pytest.mark.parametrize("seed", [-1, 1.5, True, "a"])
def test_bad_seeds_are_refused(seed: object, backend: str) -> None:
    with pytest.raises(ArgumentError, match="a seed is an integer from 0 on"):
        ops.random.Generator(seed)  # type: ignore[arg-type]


def test_bad_parameters_are_refused(backend: str) -> None:
    with pytest.raises(ArgumentError):
        ops.random.poisson(3, -1.0)
    with pytest.raises(ArgumentError, match="no integer from 5"):
        ops.random.randint(3, 5, 5)
    with pytest.raises(ArgumentError):
        ops.random.choice(3, 5, False)


def test_every_random_op_is_tested() -> None:
    mine = {name for name, spec in OPS.items() if spec.category == "random"}
    named = {f"random_{n}" for n in DRAWS} | set(MOMENTS) | {"random_seed", "random_shuffle", "dropout"}
    assert mine <= named
