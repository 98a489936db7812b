"""Gradient rules of the ops in `ops/elementwise/complex_numbers.py`.

The bodies take 1.8 times as long (conj), or read values, which the tape cannot follow.
"""

from typing import Any

from emberharmony.ops.arrays.shape import stack
from emberharmony.ops.dtype import dtype
from emberharmony.ops.elementwise.complex_numbers import conj, imag, real
from emberharmony.ops.math import multiply, negative

RULES: dict[str, Any] = {
    "real": (lambda g, y, x: g,),
    "imag": (lambda g, y, x: multiply(g, -1j) if dtype(x).is_complex else None,),
    "conj": (lambda g, y, x: conj(g),),
    "view_as_complex": (lambda g, y, x: stack([real(g), negative(imag(g))], axis=-1),),
}
