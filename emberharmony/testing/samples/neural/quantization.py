"""Sample rows of `ops/neural/quantization.py`."""

from typing import Any

import numpy as np

from emberharmony.core.errors import ArgumentError, DTypeError, ShapeError
from emberharmony.testing.sample import FLOATS, HALVES, Array, Sample, case, grid

_DRAWN = np.random.default_rng(0)
_W = _DRAWN.uniform(-1.0, 0.8, (3, 128))  # numbers from -1 to 1 in half precision would be rounded at ties
_WORDS = _DRAWN.integers(0, 2**32, (3, 16), np.uint32)
_SCALES, _BIASES = grid(-0.06, 0.06, 6).reshape(3, 2), grid(1, -1, 6).reshape(3, 2)
_BYTE_SCALES, _BYTE_BIASES = _SCALES[:, :1] / 16, _BIASES[:, :1]
_X, _Y = grid(-1, 1, 512).reshape(2, 2, 128), grid(-1, 1, 6).reshape(2, 3)
D: dict[str, Any] = {"dtypes": FLOATS + HALVES, "differentiable": True}


def _unpack_integers(packed_words: Array, bits: int) -> Array:
    """Returns the integers in the words, those of the lowest bits first."""
    bit_shifts = np.arange(0, 32, bits, dtype=np.uint64)
    numbers = (packed_words[..., None].astype(np.uint64) >> bit_shifts) & np.uint64(2**bits - 1)
    return numbers.reshape(*packed_words.shape[:-1], -1).astype(np.float64)


def _quantize_oracle(w: Array, bits: int = 4, group_size: int = 64) -> Any:
    packed_words, scales, biases = [], [], []
    for group in w.reshape(-1, group_size):
        largest_level = 2**bits - 1
        level_step = max((group.max() - group.min()) / largest_level, 1e-7)
        edge_value, level_step = (
            (group.min(), level_step) if abs(group.min()) > abs(group.max()) else (group.max(), -level_step)
        )
        level_count = np.rint(edge_value / level_step)
        scale, bias = (edge_value / level_count, edge_value) if level_count else (level_step, 0.0)
        levels = np.clip(np.rint((group - bias) / scale), 0, largest_level)
        packed_words += [sum(int(q) << bits * i for i, q in enumerate(word)) for word in levels.reshape(-1, 32 // bits)]
        scales.append(scale)
        biases.append(bias)
    leading_shape = w.shape[:-1]
    return np.array(packed_words, np.uint32).reshape(*leading_shape, -1), *(
        np.array(x).reshape(*leading_shape, -1) for x in (scales, biases)
    )


def _dequantize_oracle(w: Array, scales: Array, biases: Array, bits: int = 4, group_size: int = 64) -> Array:
    scaled_integers = _unpack_integers(w, bits) * scales.repeat(group_size, -1)
    return np.asarray(scaled_integers + biases.repeat(group_size, -1))


def _quantized_matmul_oracle(
    x: Array, w: Array, scales: Array, biases: Array, transpose: bool = True, group_size: int = 64, bits: int = 4
) -> Array:
    matrix = _dequantize_oracle(w, scales, biases, bits, group_size)
    return np.asarray(x @ (matrix.T if transpose else matrix))


SAMPLES = [
    Sample(
        "quantize",
        _quantize_oracle,
        (
            case(_W),
            case(_W, bits=8, group_size=32),
            case(np.abs(_W[0]), group_size=128),
            case(-np.abs(_W), bits=8),
            case(np.stack([np.zeros(64), np.full(64, 0.75)])),
        ),
        dtypes=FLOATS + HALVES,
        tolerance=1,
        result=("uint32", "promoted", "promoted"),
        fixed=True,
        refuses=(
            (ShapeError, case(np.ones((2, 33)))),
            (ArgumentError, case(np.ones((2, 64)), bits=3)),
            (ArgumentError, case(np.ones((2, 64)), group_size=16)),
        ),
    ),
    Sample(
        "dequantize",
        _dequantize_oracle,
        (
            case(_WORDS, _SCALES, _BIASES),
            case(_WORDS[:, :8], _BYTE_SCALES, _BYTE_BIASES, bits=8, group_size=32),
            case(_WORDS[0, :4], _SCALES[0, :1], _BIASES[0, :1], group_size=32),
        ),
        tolerance=2,
        fixed=True,
        **D,
        refuses=(
            (ShapeError, case(np.ones((2, 8), np.uint32), np.ones((2, 2)), np.ones((2, 2)))),
            (DTypeError, case(np.ones((2, 8), np.int32), np.ones((2, 1)), np.ones((2, 1)))),
        ),
    ),
    Sample(
        "quantized_matmul",
        _quantized_matmul_oracle,
        (
            case(_X, _WORDS, _SCALES, _BIASES),
            case(_X[0, :, :32], _WORDS[:, :8], _BYTE_SCALES, _BYTE_BIASES, group_size=32, bits=8),
            case(_X[0, 0], _WORDS, _SCALES, _BIASES),
            case(_Y, _WORDS, _SCALES, _BIASES, transpose=False),
            case(_X[:0], _WORDS, _SCALES, _BIASES),
        ),
        tolerance=4,
        floor=16,
        fixed=True,
        **D,
        refuses=(
            (ShapeError, case(np.ones((2, 32)), np.ones((3, 8), np.uint32), np.ones((3, 1)), np.ones((3, 1)))),
            (DTypeError, case(np.ones((2, 64)), np.ones((3, 8), np.int32), np.ones((3, 1)), np.ones((3, 1)))),
        ),
    ),
]
