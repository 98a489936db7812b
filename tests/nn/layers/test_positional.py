"""Positional encodings on every backend."""

from typing import Any

import numpy as np
import pytest

from emberharmony import nn, ops
from emberharmony.errors import ArgumentError, ShapeError
from tests.nn.behaviours import require_behaviours
from tests.nn.oracle import Case, require_close

DRAW = np.random.default_rng(3)


def _rotated(x: Any, dims: int, traditional: bool, base: float, scale: float, offset: Any) -> Any:
    """Returns what RoPE computes, in float64 by complex numbers."""
    positions = (np.asarray(offset)[..., None] + np.arange(x.shape[-2])) * scale
    angles = positions[..., None] * base ** (-2 * np.arange(dims // 2) / dims)
    while np.ndim(offset) and angles.ndim < x.ndim:
        angles = angles[:, None]
    x = x.astype("float64")
    head, tail = x[..., :dims], x[..., dims:]
    one, other = (head[..., ::2], head[..., 1::2]) if traditional else np.split(head, 2, -1)
    turned = (one + 1j * other) * np.exp(1j * angles)
    parts = [turned.real, turned.imag]
    found = np.stack(parts, -1).reshape(head.shape) if traditional else np.concatenate(parts, -1)
    return np.concatenate([found, tail], -1)


ROTATIONS: list[dict[str, Any]] = [
    {},
    {"traditional": True},
    {"base": 100.0},
    {"scale": 0.5, "traditional": True},
    {"base": 500000.0, "scale": 2.0},
]


@pytest.mark.parametrize("options", ROTATIONS, ids=str)
@pytest.mark.parametrize("dims", [2, 6, 8])
def test_rope_rotates_pairs(backend: str, options: dict[str, Any], dims: int) -> None:
    full = {"traditional": False, "base": 10000.0, "scale": 1.0, **options}
    layer = nn.RoPE(dims, **options)
    for shape in ((5, 8), (2, 5, 8), (2, 3, 5, 8)):
        for offset in (0, 7):
            x = DRAW.standard_normal(shape).astype("float32")
            require_close(layer(x, offset=offset), _rotated(x, dims, **full, offset=offset), 2e-6, "rotated")
            require_close(layer(x, ops.array(offset)), _rotated(x, dims, **full, offset=offset), 2e-6, "rotated")
    x = DRAW.standard_normal((2, 3, 5, 8)).astype("float32")
    each = np.array([4, 0])
    require_close(layer(x, ops.array(each)), _rotated(x, dims, **full, offset=each), 2e-6, "with an offset each")
    moved = np.moveaxis(x, 2, 1)
    require_close(layer(moved, 5, axis=1), np.moveaxis(_rotated(x, dims, **full, offset=5), 2, 1), 2e-6, "another axis")
    frequencies = [full["base"] ** (-2 * i / dims) for i in range(dims // 2)]
    given = nn.RoPE(dims, full["traditional"], scale=full["scale"], frequencies=frequencies)
    require_close(given(x), _rotated(x, dims, **full, offset=0), 2e-6, "with frequencies")
    gradient = ops.grad(lambda y: ops.sum(ops.multiply(layer(y), x)))(x)
    back = {**full, "scale": -full["scale"]}  # the transpose of a rotation turns the other way
    require_close(gradient, _rotated(x, dims, **back, offset=0), 1e-5, "gradient")


@pytest.mark.parametrize("options", ROTATIONS, ids=str)
def test_rope_is_that_of_mlx(options: dict[str, Any]) -> None:
    layers: Any = pytest.importorskip("mlx.nn")
    mx: Any = pytest.importorskip("mlx.core")
    x = DRAW.standard_normal((2, 3, 5, 8)).astype("float32")
    right = layers.RoPE(6, **options)(mx.array(x), offset=3)
    with ops.use_backend("mlx"):
        require_close(nn.RoPE(6, **options)(x, offset=3), np.array(right), 2e-6, "rotated")


@pytest.mark.parametrize("heads", [1, 2, 3, 8, 12])
def test_alibi_is_that_of_mlx(backend: str, heads: int) -> None:
    layers: Any = pytest.importorskip("mlx.nn")
    mx: Any = pytest.importorskip("mlx.core")
    scores, mask = DRAW.standard_normal((2, heads, 3, 5)).astype("float32"), np.triu(np.full((3, 5), -9.0), 1)
    for offset in (0, 2):
        for added in (None, mask.astype("float32")):
            theirs = layers.ALiBi()(mx.array(scores), offset, None if added is None else mx.array(added))
            require_close(nn.ALiBi()(scores, offset, added), np.array(theirs), 2e-6, "scores")
    attention = nn.MultiheadAttention(heads * 4, heads, batch_first=True)
    x = ops.random.normal((2, 3, heads * 4))
    bias = nn.ALiBi().bias(heads, 3, 3)
    many = ops.reshape(ops.repeat(bias, 2, 0), (2 * heads, 3, 3))
    found = ops.to_numpy(attention(x, attn_mask=bias)[0])
    np.testing.assert_allclose(found, ops.to_numpy(attention(x, attn_mask=many, need_weights=False)[0]), atol=2e-6)


@pytest.mark.parametrize(
    "options",
    [{}, {"scale": 1.0}, {"cos_first": True}, {"full_turns": True}, {"min_freq": 0.01, "max_freq": 3.0}],
    ids=str,
)
@pytest.mark.parametrize("dims", [2, 4, 10])
def test_sinusoidal_encodings_are_those_of_mlx(backend: str, options: dict[str, Any], dims: int) -> None:
    full: dict[str, Any] = {"min_freq": 1e-4, "max_freq": 1.0, "scale": None, "cos_first": False, "full_turns": False}
    full |= options
    frequencies = np.geomspace(full["max_freq"], full["min_freq"], dims // 2)
    positions = np.arange(12).reshape(3, 4)
    angles = positions[..., None] * frequencies * (2 * np.pi if full["full_turns"] else 1)
    parts = [np.cos(angles), np.sin(angles)] if full["cos_first"] else [np.sin(angles), np.cos(angles)]
    right = np.concatenate(parts, -1) * (np.sqrt(2 / dims) if full["scale"] is None else full["scale"])
    layer = nn.SinusoidalPositionalEncoding(dims, **options)
    share = 1e-5 if full["full_turns"] else 3e-6  # the angles, up to 69, are rounded to float32
    require_close(layer(positions), right, share, "of integers")
    require_close(layer(positions.astype("float32")), right, share, "of floats")
    layers, mx = pytest.importorskip("mlx.nn"), pytest.importorskip("mlx.core")
    theirs = np.array(layers.SinusoidalPositionalEncoding(dims, **options)(mx.array(positions)))
    require_close(layer(positions), theirs, 2e-5, "of mlx")


def test_learned_positions_are_added(backend: str) -> None:
    layer = nn.LearnedPositional(6, 4, rng=ops.random.Generator(0))
    table = ops.to_numpy(layer.weight.value)
    assert 0.005 < table.std() < 0.05
    x = DRAW.standard_normal((2, 3, 4)).astype("float32")
    require_close(layer(x), x + table[:3], 1e-7, "from 0")
    require_close(layer(x, offset=3), x + table[3:], 1e-7, "from 3")
    layer.time_axis = 0
    require_close(layer(x), x + table[:2, None], 1e-7, "with the time first")
    ops.backward(lambda: ops.sum(layer(x)), layer)
    require_close(layer.weight.grad, [[3.0] * 4] * 2 + [[0.0] * 4] * 4, 1e-7, "gradient")


def test_wrong_inputs_and_options_are_refused(backend: str) -> None:
    with pytest.raises(ArgumentError, match="dims must be even, because the features form pairs, got 5"):
        nn.RoPE(5)
    with pytest.raises(ArgumentError, match="dims must be even"):
        nn.SinusoidalPositionalEncoding(3)
    with pytest.raises(ArgumentError, match="min_freq and max_freq must be positive, got 0 and 1"):
        nn.SinusoidalPositionalEncoding(4, min_freq=0)
    with pytest.raises(ArgumentError, match="expected 2 frequencies, dims / 2, got 1"):
        nn.RoPE(4, frequencies=[1.0])
    with pytest.raises(ShapeError, match=r"in RoPE"):
        nn.RoPE(8)(ops.zeros((5, 6)))
    with pytest.raises(ShapeError, match=r"expected logits of shape \(batch, heads, queries, keys\), got \(2, 2\)"):
        nn.ALiBi()(ops.zeros((2, 2)))
    with pytest.raises(ShapeError, match=r"expected x of shape \(\.\.\., time, 4\), got \(3, 5\)"):
        nn.LearnedPositional(6, 4)(ops.zeros((3, 5)))
    with pytest.raises(ShapeError, match="expected positions below num_positions, 6, got 3 from 4 on"):
        nn.LearnedPositional(6, 4)(ops.zeros((3, 4)), 4)


@pytest.mark.parametrize(
    "case",
    [
        Case("RoPE", (4,), ((2, 3, 4),)),
        Case("RoPE", (4, True), ((2, 3, 6),)),
        Case("ALiBi", (), ((2, 3, 4, 4),)),
        Case("SinusoidalPositionalEncoding", (4,), ((2, 3),)),
        Case("LearnedPositional", (5, 4), ((2, 3, 4),)),
    ],
    ids=str,
)
def test_layers_behave_as_layers(backend: str, case: Case) -> None:
    require_behaviours(backend, case)


@pytest.mark.parametrize("dtype", ["float16", "float32", "float64"])
def test_sinusoids_of_large_positions_have_the_digits_of_their_dtype(dtype: str, backend: str) -> None:
    layer, positions = nn.SinusoidalPositionalEncoding(8), [1000.0, 4095.0]
    x = ops.convert_to_tensor(positions, dtype)
    found = layer(x)
    assert ops.dtype(found).name == dtype
    exact = ops.to_numpy(layer(ops.cast(x, "float64")))
    limit = {"float16": 1e-3, "float32": 2e-3, "float64": 1e-12}[dtype]
    np.testing.assert_allclose(ops.to_numpy(found), exact, atol=limit)
