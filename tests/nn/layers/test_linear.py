"""Linear layers on every backend."""

import pickle

import numpy as np
import pytest

from emberharmony import nn, ops
from emberharmony.errors import ArgumentError, ArgumentTypeError, ShapeError
from tests.nn.behaviours import require_behaviours
from tests.nn.oracle import Case, dtypes_of, require_like_torch

CASES = [
    Case("Linear", (3, 4)),
    Case("Linear", (3, 4), ((5, 2, 3),), {"bias": False}),
    Case("Linear", (3, 1), ((3,),)),
    Case("Bilinear", (3, 4, 2), ((5, 3), (5, 4))),
    Case("Bilinear", (3, 4, 2), ((2, 5, 3), (2, 5, 4)), {"bias": False}),
    Case("Identity", (), ((2, 3),)),
]


@pytest.mark.sampled(3)
@pytest.mark.parametrize("case", CASES, ids=str)
def test_layers_compute_what_those_of_torch_do(backend: str, case: Case) -> None:
    for dtype in dtypes_of(backend):
        require_like_torch(case, dtype)


@pytest.mark.parametrize("case", [CASES[0], CASES[3], CASES[5]], ids=str)
def test_copies_transforms_and_half_precision(backend: str, case: Case) -> None:
    require_behaviours(backend, case)


def test_the_initial_values_are_within_the_bound_and_equal_on_every_backend(backend: str) -> None:
    layer = nn.Linear(16, 200, rng=ops.random.Generator(3))
    with ops.use_backend("numpy"):
        other = nn.Linear(16, 200, rng=ops.random.Generator(3)).weight.value
    found = ops.to_numpy(layer.weight.value)
    assert found.tolist() == other.tolist()
    assert abs(found).max() <= 0.25
    assert abs(found).max() > 0.24


def test_ops_random_seed_decides_the_values_of_a_layer_without_a_generator(backend: str) -> None:
    made = []
    for _ in range(2):
        ops.random.seed(5)
        made.append(ops.to_numpy(nn.Linear(3, 2).weight.value).tolist())
    assert made[0] == made[1]


def test_a_wrong_input_names_the_layer_in_its_model(backend: str) -> None:
    net = nn.Sequential(nn.Linear(3, 4), nn.Sequential(nn.Identity(), nn.Linear(5, 2)))
    with pytest.raises(ShapeError, match=rf"backend '{backend}'.*\(2, 4\).*\(2, 5\).*in 1\.1 of Sequential, a Linear"):
        net(ops.zeros((2, 3)))
    with pytest.raises(ShapeError, match=r"expected inputs.*3.*4.*got \(2, 4\) and \(2, 4\) \(in Bilinear\)"):
        nn.Bilinear(3, 4, 1)(ops.zeros((2, 4)), ops.zeros((2, 4)))


def test_wrong_options_are_refused() -> None:
    with pytest.raises(ArgumentError, match="in_features must be at least 1, got 0"):
        nn.Linear(0, 3)
    with pytest.raises(ArgumentTypeError, match=r"out_features must be an integer, got 2\.5"):
        nn.Linear(1, 2.5)  # type: ignore[arg-type]
    with pytest.raises(ArgumentTypeError, match="rng is an ops"):
        nn.Linear(1, 2, rng=7)


def test_a_pickled_layer_gives_the_same_bits(backend: str) -> None:
    layer = nn.Linear(8, 24)
    x = ops.random.normal((5, 2, 8))
    copied = pickle.loads(pickle.dumps(layer))
    assert ops.to_numpy(copied(x)).tobytes() == ops.to_numpy(layer(x)).tobytes()
    if backend == "numpy":
        assert copied.weight.value.dtype is np.dtype("float32")
