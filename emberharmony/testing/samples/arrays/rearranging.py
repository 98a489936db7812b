"""Sample rows of `ops/arrays/rearranging.py`."""

from typing import Any

import numpy as np

from emberharmony.core.errors import ArgumentError
from emberharmony.testing.refused import ONES_3_4
from emberharmony.testing.sample import COMPLEX, FLOATS, HALVES, WHOLE, Sample, case, grid

_X = grid(-3, 3, 24).reshape(2, 3, 4)
_IMAGE = grid(-1, 1, 96).reshape(2, 4, 6, 2)
_DEEP = grid(-1, 1, 96).reshape(2, 2, 3, 8)
D: dict[str, Any] = {
    "dtypes": FLOATS + HALVES + COMPLEX,
    "integers": (*WHOLE, "uint16", "uint32", "uint64"),
    "differentiable": True,
}


def _rearrange_oracle(x, pattern, lengths=None):
    return {
        "a b c -> c (b a)": lambda: x.transpose(2, 1, 0).reshape(4, 6),
        "a b (c d) -> (a c) b d": lambda: x.reshape(2, 3, 2, 2).transpose(0, 2, 1, 3).reshape(4, 3, 2),
        "... c -> c ...": lambda: np.moveaxis(x, -1, 0),
        "a ... -> (...) 1 a ()": lambda: np.moveaxis(x, 0, -1).reshape(12, 1, 2, 1),
    }[pattern]()


def _to_depth_oracle(x, b, data_format="channels_last"):
    if data_format == "channels_first":
        return np.moveaxis(_to_depth_oracle(np.moveaxis(x, 1, -1), b), -1, 1)
    n, h, w, c = x.shape
    return x.reshape(n, h // b, b, w // b, b, c).transpose(0, 1, 3, 2, 4, 5).reshape(n, h // b, w // b, b * b * c)


def _to_space_oracle(x, b, data_format="channels_last"):
    if data_format == "channels_first":
        return np.moveaxis(_to_space_oracle(np.moveaxis(x, 1, -1), b), -1, 1)
    n, h, w, c = x.shape
    c //= b * b
    return x.reshape(n, h, w, b, b, c).transpose(0, 1, 3, 2, 4, 5).reshape(n, h * b, w * b, c)


SAMPLES = [
    Sample("fliplr", np.fliplr, (case(_X),), **D),
    Sample("flipud", np.flipud, (case(_X),), **D),
    Sample("rot90", np.rot90, (case(_X), case(_X, 2), case(_X, 3, (1, 2)), case(_X, 4)), **D),
    Sample(
        "rearrange",
        _rearrange_oracle,
        (
            case(_X, "a b c -> c (b a)"),
            case(_X, "a b (c d) -> (a c) b d", {"d": 2}),
            case(_X, "... c -> c ..."),
            case(_X, "a ... -> (...) 1 a ()"),
        ),
        **D,
        refuses=((ArgumentError, case(ONES_3_4, "a b -> c")),),
    ),
    Sample(
        "space_to_depth", _to_depth_oracle, (case(_IMAGE, 2), case(_DEEP, 1), case(_IMAGE, 2, "channels_first")), **D
    ),
    Sample(
        "depth_to_space", _to_space_oracle, (case(_DEEP, 2), case(_IMAGE.transpose(0, 1, 3, 2)[:, :, :, :4], 2)), **D
    ),
]
