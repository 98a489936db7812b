"""Rows of `ops/distributions.py`: the oracles draw by NumPy from the same seed.

`tests/ops/test_distributions.py` tests the laws.
"""

from typing import Any

import numpy as np

from emberharmony.core.errors import LinAlgError, ShapeError
from emberharmony.testing.gradient_row import covariance_row, double_row
from emberharmony.testing.refused import SADDLE
from emberharmony.testing.sample import Sample, by_tests, case
from emberharmony.testing.samples.random import HIGH, LOW, SHAPE, drawing_oracle, random_sample, seeded_generator

_COV = np.array([[2.0, 0.5], [0.5, 1.0]])


def _draw_normal_vectors_oracle(mean: Any, cov: Any, shape: Any = None, seed: int = 0) -> Any:
    batch_shape = np.broadcast_shapes(mean.shape[:-1], cov.shape[:-2]) if shape is None else shape
    noise = seeded_generator().standard_normal((*batch_shape, mean.shape[-1]), np.float32).astype(np.float64)
    return mean + (np.linalg.cholesky(cov) @ noise[..., None])[..., 0]


def _draw_truncated_oracle(shape: Any, mean: Any = 0.0, stddev: Any = 1.0, seed: int = 0) -> Any:
    generator = np.random.Generator(np.random.Philox(key=seeded_generator().integers(0, 2**64, 2, np.uint64)))
    normal_numbers = generator.standard_normal(shape, np.float32)
    while (is_outside := np.abs(normal_numbers) > 2).any():
        normal_numbers[is_outside] = generator.standard_normal(int(is_outside.sum()), np.float32)
    return mean + stddev * normal_numbers.astype(np.float64)


def _bernoulli_oracle(shape: Any, p: Any = 0.5, seed: int = 0) -> Any:
    return np.where(seeded_generator().random(shape, np.float32) < np.float32(p), 1.0, 0.0)


SAMPLES = [
    random_sample(
        "random_truncated_normal",
        _draw_truncated_oracle,
        (1.0, 2.0),
        (LOW, HIGH),
        (LOW, 0.5),
        differentiable=True,
        gradient=double_row("random_truncated_normal"),
    ),
    random_sample(
        "random_gumbel",
        drawing_oracle("gumbel"),
        (1.0, 2.0),
        (LOW, HIGH),
        (1.0, HIGH),
        differentiable=True,
        gradient=double_row("random_gumbel"),
    ),
    random_sample(
        "random_laplace",
        drawing_oracle("laplace"),
        (1.0, 2.0),
        (LOW, HIGH),
        (LOW, 0.5),
        differentiable=True,
        gradient=double_row("random_laplace"),
    ),
    random_sample(
        "random_exponential",
        drawing_oracle("exponential"),
        (2.0,),
        (HIGH,),
        differentiable=True,
        gradient=double_row("random_exponential"),
    ),
    Sample(
        "random_multivariate_normal",
        _draw_normal_vectors_oracle,
        (
            case(LOW, _COV, (3,), seed=0),
            case(LOW, _COV, seed=0),
            case(HIGH * LOW, _COV, (2, 3), seed=0),
            case(LOW, np.stack([_COV, 2 * _COV]), (3, 2), seed=0),
        ),
        ("float32",),
        result="float32",
        differentiable=True,
        tolerance=4.0,
        fixed=True,
        named=True,
        gradient=covariance_row("random_multivariate_normal"),
        refuses=(
            (LinAlgError, case(np.ones(2), SADDLE)),
            (ShapeError, case(np.ones(3), SADDLE)),
            (ShapeError, case(np.ones((3, 2)), np.eye(2), (2,))),
        ),
    ),
    Sample(
        "random_gamma",
        drawing_oracle("gamma"),
        (case(SHAPE, 2.0, seed=0), case(SHAPE, HIGH, seed=0), case(SHAPE, 0.5, seed=0, scale=HIGH)),
        ("float32",),
        result="float32",
        tolerance=2.0,
    ),
    random_sample("random_beta", drawing_oracle("beta"), (2.0, 3.0), (HIGH, np.array([0.5, 4.0]))),
    random_sample("random_poisson", drawing_oracle("poisson"), (2.0,), (HIGH,), tolerance=0.0),
    random_sample(
        "random_binomial",
        drawing_oracle("binomial"),
        (9, 0.25),
        (np.array([[1], [9], [90]]), np.array([0.25, 0.5])),
        tolerance=0.0,
    ),
    random_sample(
        "random_bernoulli",
        _bernoulli_oracle,
        (0.25,),
        (np.array([0.0, 1.0]),),
        (np.array([[0.25], [0.5], [0.75]]),),
        tolerance=0.0,
    ),
    by_tests("random_categorical", ("ops.zeros((2, 3))", "5")),
]
