"""Rows of `ops/random_ops.py`: the oracles draw by NumPy from the same seed.

`tests/ops/test_random.py` tests the distributions and the streams.
"""

from typing import Any

import numpy as np

from emberharmony.testing.sample import Sample, case

_LOW, _HIGH = np.array([-2.0, 0.5]), np.array([[1.0], [2.5], [64.0]])
_SHAPE, _COV = (3, 2), np.array([[2.0, 0.5], [0.5, 1.0]])


def _source() -> np.random.Generator:
    return np.random.Generator(np.random.Philox(np.random.SeedSequence(0)))


def _normal(shape: Any, mean: Any = 0.0, stddev: Any = 1.0, seed: int = 0) -> Any:
    return mean + stddev * _source().standard_normal(shape, np.float32).astype(np.float64)


def _vectors(mean: Any, cov: Any, shape: Any = None, seed: int = 0) -> Any:
    drawn = np.broadcast_shapes(mean.shape[:-1], cov.shape[:-2]) if shape is None else shape
    noise = _source().standard_normal((*drawn, mean.shape[-1]), np.float32).astype(np.float64)
    return mean + (np.linalg.cholesky(cov) @ noise[..., None])[..., 0]


def _truncated(shape: Any, mean: Any = 0.0, stddev: Any = 1.0, seed: int = 0) -> Any:
    source = np.random.Generator(np.random.Philox(key=_source().integers(0, 2**64, 2, np.uint64)))
    drawn = source.standard_normal(shape, np.float32)
    while (outside := np.abs(drawn) > 2).any():
        drawn[outside] = source.standard_normal(int(outside.sum()), np.float32)
    return mean + stddev * drawn.astype(np.float64)


def _uniform(shape: Any, minval: Any = 0.0, maxval: Any = 1.0, seed: int = 0) -> Any:
    share = _source().random(shape, np.float32).astype(np.float64)
    return minval * (1.0 - share) + maxval * share


def _bernoulli(shape: Any, p: Any = 0.5, seed: int = 0) -> Any:
    return np.where(_source().random(shape, np.float32) < np.float32(p), 1.0, 0.0)


def _drawn(law: str) -> Any:
    """Returns the oracle that draws by a method of `np.random.Generator`."""

    def draw(shape: Any, *parameters: Any, seed: int = 0, scale: Any = 1.0) -> Any:
        return getattr(_source(), law)(*parameters, size=shape) * scale

    return draw


def _row(op: str, oracle: Any, *cases: Any, differentiable: bool = False, **options: Any) -> Sample:
    """Returns the row of an op; `cases` are the parameters of its distribution, as numbers or as tensors."""
    calls = tuple(case(_SHAPE, *parameters, seed=0) for parameters in cases)
    return Sample(
        op,
        oracle,
        calls,
        ("float32",),
        result="float32",
        differentiable=differentiable,
        **{"tolerance": 2.0, **options},
    )


SAMPLES = [
    _row("random_normal", _normal, (1.0, 2.0), (_LOW, _HIGH), (_LOW, 0.5), (1.0, _HIGH), differentiable=True),
    _row("random_uniform", _uniform, (-1.0, 3.0), (_LOW, _HIGH), (_LOW, 7.0), (-3.0, _HIGH), differentiable=True),
    _row("random_truncated_normal", _truncated, (1.0, 2.0), (_LOW, _HIGH), (_LOW, 0.5), differentiable=True),
    _row("random_gumbel", _drawn("gumbel"), (1.0, 2.0), (_LOW, _HIGH), (1.0, _HIGH), differentiable=True),
    _row("random_laplace", _drawn("laplace"), (1.0, 2.0), (_LOW, _HIGH), (_LOW, 0.5), differentiable=True),
    _row("random_exponential", _drawn("exponential"), (2.0,), (_HIGH,), differentiable=True),
    Sample(
        "random_multivariate_normal",
        _vectors,
        (
            case(_LOW, _COV, (3,), seed=0),
            case(_LOW, _COV, seed=0),
            case(_HIGH * _LOW, _COV, (2, 3), seed=0),
            case(_LOW, np.stack([_COV, 2 * _COV]), (3, 2), seed=0),
        ),
        ("float32",),
        result="float32",
        differentiable=True,
        tolerance=4.0,
        fixed=True,
        named=True,
    ),
    Sample(
        "random_gamma",
        _drawn("gamma"),
        (case(_SHAPE, 2.0, seed=0), case(_SHAPE, _HIGH, seed=0), case(_SHAPE, 0.5, seed=0, scale=_HIGH)),
        ("float32",),
        result="float32",
        tolerance=2.0,
    ),
    _row("random_beta", _drawn("beta"), (2.0, 3.0), (_HIGH, np.array([0.5, 4.0]))),
    _row("random_poisson", _drawn("poisson"), (2.0,), (_HIGH,), tolerance=0.0),
    _row(
        "random_binomial",
        _drawn("binomial"),
        (9, 0.25),
        (np.array([[1], [9], [90]]), np.array([0.25, 0.5])),
        tolerance=0.0,
    ),
    _row(
        "random_bernoulli",
        _bernoulli,
        (0.25,),
        (np.array([0.0, 1.0]),),
        (np.array([[0.25], [0.5], [0.75]]),),
        tolerance=0.0,
    ),
    Sample(
        "random_randint",
        _drawn("integers"),
        (case(_SHAPE, -5, 7, seed=0), case(_SHAPE, np.array([0, 100]), np.array([[120], [200], [2**40]]), seed=0)),
        ("float32",),
        result="int64",
    ),
    *(
        Sample(op, str, (), reference="tests")
        for op in (
            *("random_seed", "standard_uniform", "standard_normal", "random_categorical", "random_permutation"),
            *("random_shuffle", "random_choice", "dropout"),
        )
    ),
]
