"""Rows of `ops/random_ops.py`: the oracles draw by NumPy from the same seed.

`tests/ops/test_random.py` tests the streams.
"""

from typing import Any

import numpy as np

from emberharmony.testing.gradient_row import double_row
from emberharmony.testing.sample import Sample, by_tests, case

LOW, HIGH = np.array([-2.0, 0.5]), np.array([[1.0], [2.5], [64.0]])
SHAPE = (3, 2)


def seeded_generator() -> np.random.Generator:
    """Returns the NumPy generator that an op with `seed=0` draws from."""
    return np.random.Generator(np.random.Philox(np.random.SeedSequence(0)))


def _normal_oracle(shape: Any, mean: Any = 0.0, stddev: Any = 1.0, seed: int = 0) -> Any:
    return mean + stddev * seeded_generator().standard_normal(shape, np.float32).astype(np.float64)


def _uniform_oracle(shape: Any, minval: Any = 0.0, maxval: Any = 1.0, seed: int = 0) -> Any:
    uniform_values = seeded_generator().random(shape, np.float32).astype(np.float64)
    return minval * (1.0 - uniform_values) + maxval * uniform_values


def drawing_oracle(law: str) -> Any:
    """Returns an oracle that draws by a method of `np.random.Generator`, seeded as the op."""

    def draw(shape: Any, *parameters: Any, seed: int = 0, scale: Any = 1.0) -> Any:
        return getattr(seeded_generator(), law)(*parameters, size=shape) * scale

    return draw


def random_sample(op: str, oracle: Any, *cases: Any, differentiable: bool = False, **options: Any) -> Sample:
    """Returns the sample row of a random op; `cases` are the parameters of its distribution."""
    cases_with_seed = tuple(case(SHAPE, *parameters, seed=0) for parameters in cases)
    return Sample(
        op,
        oracle,
        cases_with_seed,
        ("float32",),
        result="float32",
        differentiable=differentiable,
        **{"tolerance": 2.0, **options},
    )


SAMPLES = [
    random_sample(
        "random_normal",
        _normal_oracle,
        (1.0, 2.0),
        (LOW, HIGH),
        (LOW, 0.5),
        (1.0, HIGH),
        differentiable=True,
        gradient=double_row("random_normal"),
    ),
    random_sample(
        "random_uniform",
        _uniform_oracle,
        (-1.0, 3.0),
        (LOW, HIGH),
        (LOW, 7.0),
        (-3.0, HIGH),
        differentiable=True,
        left_out={"large offsets": "the lower bound would exceed the upper one"},
        gradient=double_row("random_uniform"),
    ),
    Sample(
        "random_randint",
        drawing_oracle("integers"),
        (case(SHAPE, -5, 7, seed=0), case(SHAPE, np.array([0, 100]), np.array([[120], [200], [2**40]]), seed=0)),
        ("float32",),
        result="int64",
    ),
    by_tests("random_seed", ("3",)),
    by_tests("random_get_state", ()),
    by_tests("random_set_state", ("ops.random.get_state()",)),
    by_tests("standard_uniform", ("(2, 3)",)),
    by_tests("standard_normal", ("(2, 3)",)),
    by_tests("random_permutation", ("6",), ("ops.ones((3,))",)),
    by_tests("random_shuffle", ("ops.ones((3,))",)),
    by_tests("random_choice", ("5", "(2,)", "False"), ("ops.ones((3,))", "(4,)", "True", "[0.5, 0.25, 0.25]")),
    by_tests("dropout", ("ops.ones((4, 5))", "0.5")),
]
