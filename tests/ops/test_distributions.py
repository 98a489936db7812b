"""Distributions: equal bits on every backend from a generator, right moments, tensors as parameters."""

import re
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from scipy import stats

from emberharmony import ops
from emberharmony.core.errors import ArgumentError, DTypeError, ShapeError
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


@pytest.mark.parametrize("name", sorted(DRAWS))
def test_a_generator_gives_the_same_bits_on_every_backend(name: str, backend: str) -> None:
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
    "random_gumbel of the backend": (lambda n: ops.random_gumbel(n, 1.0, 2.0), 1 + 2 * 0.5772, 2 * np.pi / 6**0.5),
    "random_bernoulli of the backend": (lambda n: ops.random_bernoulli(n, 0.25), 0.25, 0.1875**0.5),
    "standard_normal": (lambda n: ops.standard_normal(n), 0.0, 1.0),
    "standard_uniform": (lambda n: ops.standard_uniform(n), 0.5, 12**-0.5),
}


@pytest.mark.parametrize("name", sorted(MOMENTS))
def test_mean_and_standard_deviation_are_right(name: str, backend: str) -> None:
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
        (lambda n: ops.random_gumbel(n), "gumbel_r"),
        (lambda n: ops.random_laplace(n, seed=2), "laplace"),
        (lambda n: ops.random_truncated_normal(n, seed=2), stats.truncnorm(-2, 2).cdf),
        (lambda n: ops.random_gamma(n, 0.5, seed=2), stats.gamma(0.5).cdf),
        (lambda n: ops.random_beta(n, 0.5, 3.0, seed=2), stats.beta(0.5, 3.0).cdf),
        (lambda n: ops.standard_normal(n, "float64"), "norm"),
        (lambda n: ops.standard_uniform(n, "float64"), "uniform"),
        (lambda n: ops.standard_normal(n), "norm"),
        (lambda n: ops.standard_uniform(n), "uniform"),
    ],
)
def test_draws_pass_the_kolmogorov_smirnov_test(draw: object, law: object, backend: str) -> None:
    ops.random.seed(11)
    values = np.asarray(ops.to_numpy(draw((4000,))), np.float64)  # type: ignore[operator]
    assert stats.kstest(values, law).pvalue > 1e-3


def test_categorical_follows_the_logits(backend: str) -> None:
    ops.random.seed(4)
    logits = np.log(np.array([[0.5, 0.3, 0.2], [0.1, 0.1, 0.8]], np.float32))
    for options in ({}, {"seed": 4}):
        drawn = ops.to_numpy(ops.random.categorical(logits, 4000, **options))
        assert drawn.dtype == np.int64
        shares = np.stack([(drawn == c).mean(1) for c in range(3)], 1)
        assert np.abs(shares - np.exp(logits)).max() < 0.04


VARIED: dict[str, Callable[..., Any]] = {
    "mean": lambda v, **o: ops.random.normal((50, 2), mean=v, stddev=0.0, **o),
    "stddev": lambda v, **o: ops.random.normal((50, 2), stddev=v, **o),
    "minval": lambda v, **o: ops.random.uniform((50, 2), v, ops.add(v, 1.0), **o),
    "maxval": lambda v, **o: ops.random.uniform((50, 2), 0.0, v, **o),
    "lam": lambda v, **o: ops.random.poisson((50, 2), v, **o),
    "counts": lambda v, **o: ops.random.binomial((50, 2), v, 1.0, **o),
    "alpha": lambda v, **o: ops.random.gamma((50, 2), v, **o),
    "beta": lambda v, **o: ops.random.beta((50, 2), 1.0, v, **o),
    "loc": lambda v, **o: ops.random.gumbel((50, 2), v, **o),
    "scale": lambda v, **o: ops.random.laplace((50, 2), scale=v, **o),
    "scale of exponential": lambda v, **o: ops.random.exponential((50, 2), v, **o),
    "scale of gamma": lambda v, **o: ops.random.gamma((50, 2), 2.0, scale=v, **o),
    "mean of truncated_normal": lambda v, **o: ops.random.truncated_normal((50, 2), v, **o),
}


@pytest.mark.parametrize("name", sorted(VARIED))
def test_parameters_of_a_distribution_may_be_tensors(name: str, backend: str) -> None:
    draw, values = VARIED[name], [1.0, 200.0]
    ops.random.seed(1)
    for varied in (values, np.array(values), np.array(values, "f4")[None], ops.convert_to_tensor(values)):
        for options in ({}, {"seed": 5}):
            drawn = draw(varied, **options)
            assert ops.dtype(drawn) == "float32"
            first, second = (np.abs(column).mean() for column in ops.to_numpy(drawn).T)
            assert not 0.2 < first / second < 5.0
        assert ops.to_numpy(draw(varied, dtype="float16")).dtype == np.float16
    with pytest.raises(ShapeError, match=rf"{name.split()[0]} of shape \(3,\) does not broadcast to shape \(50, 2\)"):
        draw([1.0, 2.0, 3.0])
    with pytest.raises(ShapeError, match=r"of shape \(2, 50, 2\) does not broadcast"):
        draw(np.ones((2, 50, 2)))
    if name != "counts":
        with pytest.raises(DTypeError, match=rf"{name.split()[0]} is real, not complex64"):
            draw(np.ones(2, np.complex64))


def test_numbers_as_parameters_keep_double_precision(backend: str) -> None:
    one, tenth = (ops.to_numpy(ops.random.exponential((9,), s, "float64", seed=0)) for s in (1.0, 0.1))
    assert np.allclose(tenth, 0.1 * one, rtol=1e-15)


def test_gumbel_draws_in_half_precision_are_finite(backend: str) -> None:
    ops.random.seed(0)
    for dtype in ("float16", "bfloat16"):
        drawn = ops.random.gumbel((200000,), dtype=dtype)
        assert ops.dtype(drawn) == dtype
        assert bool(ops.all(ops.isfinite(drawn)))


def test_continuous_distributions_refuse_integer_dtypes(backend: str) -> None:
    for draw in (ops.random.normal, ops.random.uniform, ops.random.gumbel, ops.random.poisson):
        with pytest.raises(DTypeError, match="are floating, not int32"):
            draw((2,), dtype="int32")


BAD: dict[str, Callable[[], Any]] = {
    "lam is a finite number of at least 0, not -1.0": lambda: ops.random.poisson(3, -1.0),
    "lam is a finite number of at least 0, not inf": lambda: ops.random.poisson(3, float("inf")),
    "lam is a finite number of at least 0, not array": lambda: ops.random.poisson(2, [1.0, -1.0]),
    "lam value too large": lambda: ops.random.poisson(3, 1e30),
    "no integer from 5 up to, but not including, 5": lambda: ops.random.randint(3, 5, 5),
    "minval must not exceed maxval, got minval 2.0 and maxval 1.0": lambda: ops.random.uniform(3, 2.0, 1.0),
    "p is a number from 0 to 1, not 1.5": lambda: ops.random.bernoulli(3, 1.5),
    "p is a number from 0 to 1, not nan": lambda: ops.random.bernoulli(3, np.float32("nan")),
    "p is a number from 0 to 1, not array": lambda: ops.random.choice(2, p=[1.5, -0.5]),
    "stddev is a finite number of at least 0, not -1.0": lambda: ops.random.normal(3, 0.0, -1.0),
    "mean is a finite number, not nan": lambda: ops.random.normal(3, float("nan")),
    "stddev is a finite number of at least 0, not -2.0": lambda: ops.random.truncated_normal(3, 0.0, -2.0),
    "scale is a finite number of at least 0, not -1.0": lambda: ops.random.gumbel(3, 0.0, -1.0),
    "scale is a finite number of at least 0, not -3.0": lambda: ops.random.laplace(3, 0.0, -3.0),
    "scale is a finite number of at least 0, not inf": lambda: ops.random.exponential(3, float("inf")),
    "alpha is a finite number of at least 0, not -1.0": lambda: ops.random.gamma(3, -1.0),
    "beta is a finite number above 0, not 0.0": lambda: ops.random.beta(3, 1.0, 0),
    "probabilities is a number from 0 to 1, not 2.0": lambda: ops.random.binomial(3, 4, 2.0),
    "counts is a finite number of at least 0, not -4": lambda: ops.random.binomial(3, -4, 0.5),
    "counts are whole numbers, not array(2.5": lambda: ops.random.binomial(3, 2.5, 0.5),
    "Cannot take a larger sample": lambda: ops.random.choice(3, 5, False),
    "a number of elements is at least 0, not -1": lambda: ops.random.permutation(-1),
    "a number of elements is at least 0, not -2": lambda: ops.random.choice(-2),
    "a number of elements is at least 0, not -3": lambda: ops.random.Generator(0).split(-3),
    "expected rate from 0 to 1, got 1.5": lambda: ops.dropout([1.0], 1.5),
    "rate is a finite number, not nan": lambda: ops.dropout([1.0], float("nan")),
}


@pytest.mark.parametrize("message", sorted(BAD))
def test_a_wrong_parameter_is_refused(message: str, backend: str) -> None:
    with pytest.raises(ArgumentError, match=re.escape(message)):
        BAD[message]()


def test_every_random_op_is_tested() -> None:
    mine = {name for name, spec in OPS.items() if spec.category in ("random", "distributions")}
    named = {f"random_{n}" for n in DRAWS} | set(MOMENTS) | {"random_seed", "random_shuffle", "dropout"}
    named |= {"random_get_state", "random_set_state"}
    named.add("random_multivariate_normal")
    assert mine <= named


def test_multivariate_normal_vectors_have_the_mean_and_the_covariance(backend: str) -> None:
    mean, cov = np.float32([1.0, -2.0]), np.float32([[2.0, 0.6], [0.6, 1.0]])
    for source in ({"seed": 3}, {}):
        ops.random.seed(7)
        found = ops.to_numpy(ops.random.multivariate_normal(mean, cov, (20000,), **source))
        np.testing.assert_allclose(found.mean(0), mean, atol=0.05)
        np.testing.assert_allclose(np.cov(found.T), cov, atol=0.08)
    assert ops.shape(ops.random.multivariate_normal(mean, cov, 3)) == (3, 2)
    assert ops.dtype(ops.random.multivariate_normal(mean, cov, dtype="float16")) == "float16"


def test_multivariate_normal_vectors_follow_their_parameters(backend: str) -> None:
    def total(mean: Any, cov: Any) -> Any:
        return ops.sum(ops.random.multivariate_normal(mean, cov, (4,), seed=1))

    by_mean, by_cov = ops.grad(total, argnums=(0, 1))(np.zeros(2, np.float32), np.eye(2, dtype=np.float32))
    assert by_mean.tolist() == [4.0, 4.0]
    assert bool(ops.all(ops.isfinite(by_cov)))
