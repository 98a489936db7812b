"""Dropout on every backend."""

import copy
import math
import pickle
from typing import Any

import numpy as np
import pytest

from emberharmony import nn, ops
from emberharmony.errors import ArgumentError, ArgumentTypeError, ShapeError
from tests.nn.behaviours import quick_compiler, require_behaviours
from tests.nn.oracle import Case, dtypes_of, require_close, require_like_torch

IMAGES = (2, 3, 4, 5)
CASES = [
    Case("Dropout", (), ((3, 4),)),
    Case("Dropout", (0.2,), ((3, 4),)),
    Case("Dropout1d", (0.2,), ((2, 3, 4),)),
    Case("Dropout2d", (0.2,), (IMAGES,)),
    Case("Dropout3d", (0.2,), ((2, 3, 4, 5, 2),)),
    Case("AlphaDropout", (0.2,), ((3, 4),)),
    Case("FeatureAlphaDropout", (0.2,), (IMAGES,)),
]
OURS = [Case("GaussianDropout", (0.2,)), Case("GaussianNoise", (0.2,)), Case("DropPath", (0.2,))]
LOWEST = -1.7580993408473766


def seeded(kind: type[Any], *args: Any, seed: int = 3, **kwargs: Any) -> Any:
    return kind(*args, **kwargs, rng=ops.random.Generator(seed))


def mask(p: float, shape: tuple[int, ...], seed: int = 3) -> np.ndarray:
    """Returns which elements are kept: the layers draw uniform numbers in this shape."""
    return ops.random.Generator(seed).uniform(shape) < 1 - p


@pytest.mark.parametrize("case", CASES, ids=str)
def test_after_eval_and_without_a_probability_the_layers_do_what_those_of_torch_do(backend: str, case: Case) -> None:
    for dtype in dtypes_of(backend):
        require_like_torch(case._replace(train=False), dtype)
        require_like_torch(case._replace(args=(0.0,)), dtype)


@pytest.mark.parametrize("p", [0.0, 1.0])
@pytest.mark.parametrize("name", sorted({case.name for case in CASES}))
def test_the_extreme_probabilities_are_those_of_torch(backend: str, name: str, p: float) -> None:
    shape = next(case.shapes for case in CASES if case.name == name)
    require_like_torch(Case(name, (p,), shape), "float32")


@pytest.mark.parametrize("case", [*CASES[1:], *OURS], ids=lambda case: case.name)
def test_layers_stay_the_same_under_transforms_and_copies(backend: str, case: Case) -> None:
    require_behaviours(backend, case._replace(train=False))


@pytest.mark.parametrize(
    ("layer", "shape", "masked"),
    [
        ("Dropout", (40, 5), (40, 5)),
        ("Dropout1d", (20, 6, 3), (20, 6, 1)),
        ("Dropout1d", (60, 3), (60, 1)),
        ("Dropout2d", (20, 6, 2, 2), (20, 6, 1, 1)),
        ("Dropout2d", (20, 6, 3), (20, 6, 1)),
        ("Dropout3d", (20, 6, 2, 2, 1), (20, 6, 1, 1, 1)),
        ("Dropout3d", (60, 2, 2, 1), (60, 1, 1, 1)),
        ("DropPath", (60, 2, 2), (60, 1, 1)),
    ],
)
def test_masks_come_from_the_generator_and_the_rest_is_scaled(
    backend: str, layer: str, shape: tuple[int, ...], masked: tuple[int, ...]
) -> None:
    x = np.random.default_rng(0).standard_normal(shape).astype("float32")
    kept = mask(0.3, masked)
    assert 0.5 < kept.mean() < 0.9
    require_close(seeded(getattr(nn, layer), 0.3)(x), np.where(kept, x / 0.7, 0), 2e-7, layer)


@pytest.mark.parametrize(
    ("layer", "shape", "masked"),
    [
        ("Dropout1d", (20, 3, 6), (20, 1, 6)),
        ("Dropout2d", (20, 2, 2, 6), (20, 1, 1, 6)),
        ("Dropout3d", (2, 2, 1, 60), (1, 1, 1, 60)),
    ],
)
def test_the_channels_may_be_the_last_axis(
    backend: str, layer: str, shape: tuple[int, ...], masked: tuple[int, ...]
) -> None:
    found = seeded(getattr(nn, layer), 0.3, data_format="channels_last")(ops.ones(shape))
    wanted = np.where(np.broadcast_to(mask(0.3, masked), shape), 1 / 0.7, 0)
    require_close(found, wanted, 2e-7, layer)
    images = seeded(nn.FeatureAlphaDropout, 0.3, data_format="channels_last")(ops.ones((20, 2, 2, 6)))
    same = seeded(nn.FeatureAlphaDropout, 0.3)(ops.ones((20, 6, 2, 2)))
    require_close(images, np.moveaxis(ops.to_numpy(same), 1, -1), 0.0, "FeatureAlphaDropout")


def test_samples_need_not_be_scaled(backend: str) -> None:
    found = seeded(nn.DropPath, 0.3, scale_by_keep=False)(ops.ones((60, 2)))
    assert ops.to_numpy(found).tolist() == np.broadcast_to(mask(0.3, (60, 1)), (60, 2)).astype("float32").tolist()


@pytest.mark.parametrize("p", [0.2, 0.7])
def test_alpha_dropout_follows_the_formula_of_torch_and_keeps_mean_and_variance(backend: str, p: float) -> None:
    x = np.random.default_rng(0).standard_normal((200, 300)).astype("float32")
    scale = 1 / math.sqrt((LOWEST**2 * p + 1) * (1 - p))
    for kind, shape in ((nn.AlphaDropout, x.shape), (nn.FeatureAlphaDropout, x.shape)):
        found = seeded(kind, p)(x)
        require_close(found, scale * (np.where(mask(p, shape), x, LOWEST) - p * LOWEST), 2e-6, kind.__name__)
        assert abs(ops.to_numpy(found).mean()) < 0.02
        assert abs(ops.to_numpy(found).std() - 1) < 0.02
    channels = ops.to_numpy(seeded(nn.FeatureAlphaDropout, p)(ops.ones((50, 4, 6))))
    assert (channels == channels[..., :1]).all()


def test_gaussian_layers_have_the_mean_and_the_deviation(backend: str) -> None:
    factors = ops.to_numpy(seeded(nn.GaussianDropout, 0.2)(ops.ones((200, 300))))
    assert abs(factors.mean() - 1) < 0.005
    assert abs(factors.std() - 0.5) < 0.005
    added = ops.to_numpy(seeded(nn.GaussianNoise, 0.25)(ops.full((200, 300), 3.0)))
    assert abs(added.mean() - 3) < 0.005
    assert abs(added.std() - 0.25) < 0.005


@pytest.mark.parametrize("name", ["Dropout", "AlphaDropout", "GaussianDropout", "GaussianNoise", "DropPath"])
def test_the_random_numbers_are_equal_on_every_backend_and_copies_continue(backend: str, name: str) -> None:
    layer, x = seeded(getattr(nn, name), 0.4), np.ones((8, 5), "float32")
    first = ops.to_numpy(layer(x))
    copies = [copy.deepcopy(layer), pickle.loads(pickle.dumps(layer))]
    second = ops.to_numpy(layer(x))
    assert not np.array_equal(first, second)
    for copied in copies:
        np.testing.assert_array_equal(ops.to_numpy(copied(x)), second)
    with ops.use_backend("numpy"):
        np.testing.assert_array_equal(seeded(getattr(nn, name), 0.4)(x), first)


@pytest.mark.parametrize("name", ["Dropout", "AlphaDropout", "GaussianDropout", "GaussianNoise"])
def test_transforms_draw_as_plain_calls_do(backend: str, name: str) -> None:
    x = ops.convert_to_tensor(np.random.default_rng(0).standard_normal((4, 5)).astype("float32"))
    kind = getattr(nn, name)
    plain = seeded(kind, 0.4)
    outputs = [ops.to_numpy(plain(x)), ops.to_numpy(plain(x))]
    mapped = ops.to_numpy(ops.vmap(seeded(kind, 0.4))(ops.stack([ops.reshape(x, (-1,))] * 2)))
    np.testing.assert_allclose(mapped.reshape(2, 4, 5), outputs, rtol=1e-6, err_msg="vmap draws for each slice")

    def loss(layer: Any) -> Any:
        return ops.grad(lambda x: ops.sum(ops.square(layer(x))))(x)

    wanted = ops.to_numpy(loss(seeded(kind, 0.4)))
    require_close(loss(ops.checkpoint(seeded(kind, 0.4))), wanted, 1e-6, "checkpoint")
    assert np.isfinite(wanted).all()


def test_a_compiled_layer_draws_a_new_mask_at_each_call(backend: str) -> None:
    plain, layer = seeded(nn.Dropout, 0.4), seeded(nn.Dropout, 0.4)
    with quick_compiler(backend):
        compiled = ops.compile(layer)
        for _ in range(3):
            np.testing.assert_array_equal(
                ops.to_numpy(compiled(ops.ones((4, 5)))), ops.to_numpy(plain(ops.ones((4, 5))))
            )


@pytest.mark.parametrize("dtype", ["float16", "bfloat16"])
def test_half_precision_stays(backend: str, dtype: Any) -> None:
    if dtype == "bfloat16" and backend == "numpy":
        pytest.importorskip("ml_dtypes")
    x = ops.cast(ops.ones((4, 5, 2)), dtype)
    for case in [*CASES, *OURS]:
        layer = getattr(nn, case.name)(0.4)
        y = layer(ops.reshape(x, (4, 5, *(1,) * (len(case.shapes[0]) - 3), 2)))
        assert ops.dtype(y).name == dtype
        assert np.isfinite(ops.to_numpy(ops.cast(y, "float32"))).all()


def test_a_stream_of_rngs_decides_the_mask(backend: str) -> None:
    one, other = (nn.Dropout(0.5, rng=nn.Rngs(params, dropout=7)) for params in (0, 1))
    assert one(ops.ones(50)).tolist() == other(ops.ones(50)).tolist()
    ops.random.seed(4)
    first = nn.Dropout(0.5)(ops.ones(50)).tolist()
    ops.random.seed(4)
    assert nn.Dropout(0.5)(ops.ones(50)).tolist() == first


def test_wrong_options_and_inputs_are_refused(backend: str) -> None:
    with pytest.raises(ArgumentError, match=r"p must be a probability from 0 to 1, got 1\.5"):
        nn.Dropout(1.5)
    with pytest.raises(ArgumentTypeError, match="p must be a number, got 'half'"):
        nn.Dropout2d("half")  # type: ignore[arg-type]
    with pytest.raises(ArgumentError, match="rate must be less than 1"):
        nn.GaussianDropout(1.0)
    with pytest.raises(ArgumentError, match="stddev must be at least 0, got -1"):
        nn.GaussianNoise(-1.0)
    with pytest.raises(ArgumentTypeError, match="rng is an ops"):
        nn.Dropout(rng=7)
    net = nn.Sequential(nn.Dropout(), nn.Dropout2d())
    with pytest.raises(ShapeError, match=r"4 axes, or 3 .*got shape \(2, 3\).*in 1 of Sequential, a Dropout2d"):
        net(ops.zeros((2, 3)))
    with pytest.raises(ShapeError, match=r"expected a batch, got shape \(\) \(in DropPath\)"):
        nn.DropPath()(ops.zeros(()))
    with pytest.raises(ShapeError, match=r"expected a batch with channels, got shape \(3,\)"):
        nn.FeatureAlphaDropout()(ops.zeros(3))


def test_a_probability_of_0_draws_no_numbers(backend: str) -> None:
    layer = nn.Dropout(0.0, rng=ops.random.Generator(0))
    before = layer.rng.state_dict()
    assert layer(ops.ones(3)).tolist() == [1.0, 1.0, 1.0]
    assert layer.rng.state_dict() == before
