"""The results that the project promises, called as a user would call them, on every backend.

In each case some native library alone gives a wrong result or ends the process.
"""

import hashlib
import math
from collections.abc import Callable

import numpy as np
import pytest

from emberharmony import ops
from emberharmony.backend.discovery import BUILTIN, is_installed
from emberharmony.core.errors import IndexOutOfBoundsError, LinAlgError
from emberharmony.core.registry import OPS

N = 10**6
EPS = 2.0**-23
INSTALLED = [name for name in BUILTIN if is_installed(name)]


def test_the_standard_deviation_of_numbers_far_from_zero_is_precise(backend: str) -> None:
    far = (1e4 + np.random.default_rng(0).standard_normal(N)).astype(np.float32)
    result = ops.std(ops.convert_to_tensor(far))
    assert ops.dtype(result) == ops.float32
    assert float(result) == pytest.approx(far.astype(np.float64).std(), rel=4 * EPS)


def test_the_error_function_is_precise_near_zero(backend: str) -> None:
    result = ops.erf(ops.convert_to_tensor(np.float32(1e-6)))
    assert float(result) == pytest.approx(math.erf(float(np.float32(1e-6))), rel=4 * EPS)


def test_the_sum_of_a_million_tenths_is_precise(backend: str) -> None:
    tenth = ops.full((N,), 0.1)
    assert ops.dtype(tenth) == ops.float32
    assert float(ops.sum(tenth)) == pytest.approx(float(np.float32(0.1)) * N, rel=4 * EPS)
    assert float(ops.mean(tenth)) == pytest.approx(float(np.float32(0.1)), rel=4 * EPS)


@pytest.mark.parametrize("dtype", ["int8", "int16", "int32", "int64"])
def test_dividing_the_least_integer_by_minus_one_wraps(dtype: str, backend: str) -> None:
    least = np.iinfo(dtype).min
    dividend = ops.convert_to_tensor(np.array([least, 7], dtype))
    for minus_one in (-1, ops.convert_to_tensor(np.array([-1, -1], dtype))):
        assert ops.floor_divide(dividend, minus_one).tolist() == [least, -7]
        assert ops.remainder(dividend, minus_one).tolist() == [0, 0]
    assert ops.floor_divide(dividend, 0).tolist() == [0, 0]
    assert ops.remainder(dividend, 0).tolist() == [0, 0]


def test_cholesky_refuses_a_matrix_that_is_not_positive_definite(backend: str) -> None:
    with pytest.raises(LinAlgError, match=rf"cholesky\(\) on backend '{backend}'"):
        ops.eval(ops.cholesky([[1.0, 2.0], [2.0, 1.0]]))
    with pytest.raises(ValueError, match=r"positive.definite"):
        ops.eval(ops.linalg.cholesky(ops.convert_to_tensor([[1.0, 2.0], [2.0, 1.0]])))


def test_an_index_beyond_the_end_is_refused(backend: str) -> None:
    x = ops.arange(5)
    for index, seen in (([99], 99), (99, 99), ([-6], -6), (np.array([99]), 99)):
        with pytest.raises(IndexOutOfBoundsError, match=rf"take\(\) on backend '{backend}': .*{seen} is out of bounds"):
            ops.take(x, index)


P = np.array([0.1, 0.2, 0.3, 0.4])
COVARIANCE = [[4.0, 2.0], [2.0, 5.0]]
DRAWS: dict[str, Callable[[ops.random.Generator], object]] = {
    "dropout": lambda g: ops.dropout(ops.ones((40, 5)), 0.4, generator=g),
    "random_bernoulli": lambda g: ops.random_bernoulli((100,), 0.3, generator=g),
    "random_beta": lambda g: ops.random_beta((100,), 2.0, 0.5, generator=g),
    "random_binomial": lambda g: ops.random_binomial((100,), 10, 0.3, generator=g),
    "random_categorical": lambda g: ops.random_categorical(np.log(P[None]), 100, generator=g),
    "random_choice": lambda g: ops.random_choice(4, (100,), p=P, generator=g),
    "random_exponential": lambda g: ops.random_exponential((100,), 2.0, generator=g),
    "random_gamma": lambda g: ops.random_gamma((100,), 0.5, generator=g),
    "random_gumbel": lambda g: ops.random_gumbel((100,), 1.0, 2.0, generator=g),
    "random_laplace": lambda g: ops.random_laplace((100,), 1.0, 2.0, generator=g),
    "random_multivariate_normal": lambda g: ops.random_multivariate_normal([1.0, 2.0], COVARIANCE, (50,), generator=g),
    "random_normal": lambda g: ops.random_normal((100,), 1.0, 2.0, generator=g),
    "random_permutation": lambda g: ops.random_permutation(100, generator=g),
    "random_poisson": lambda g: ops.random_poisson((100,), 3.0, generator=g),
    "random_randint": lambda g: ops.random_randint((100,), -5, 2**40, generator=g),
    "random_shuffle": lambda g: ops.random_shuffle(ops.arange(100), generator=g),
    "random_truncated_normal": lambda g: ops.random_truncated_normal((100,), 1.0, 2.0, generator=g),
    "random_uniform": lambda g: ops.random_uniform((100,), -3.0, 7.0, generator=g),
}


def _digest(draw: Callable[[ops.random.Generator], object], backend: str) -> tuple[str, str]:
    with ops.use_backend(backend):
        generator = ops.random.Generator(20251)
        parts = [np.ascontiguousarray(ops.to_numpy(draw(generator))) for _ in range(3)]
    return str(parts[0].dtype), hashlib.sha256(b"".join(part.tobytes() for part in parts)).hexdigest()


@pytest.mark.parametrize("name", sorted(DRAWS))
def test_one_seed_gives_the_same_bits_on_every_backend(name: str) -> None:
    digests = {backend: _digest(DRAWS[name], backend) for backend in INSTALLED}
    assert len(set(digests.values())) == 1, digests


def test_the_draws_above_cover_every_op_with_a_generator() -> None:
    random = [spec for spec in OPS.values() if spec.category in ("random", "distributions")]
    assert {spec.name for spec in random if any(p.name == "generator" for p in spec.parameters)} == set(DRAWS)
