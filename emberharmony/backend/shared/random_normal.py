"""Normal numbers of float32 by Box and Muller's method, from random words and plain arithmetic of whole arrays.

Additions, products, square roots and operations on bits give the same results on every processor and with every version
of NumPy, which its logarithm and its sine do not. NumPy's own function makes one number after another.

The errors beside the same formula in float64 are below 2e-6, and near a radius of 0 below 2e-7 over the radius; a test
holds the bits. NumPy's ziggurat, which makes one number after another, is left to draws of less than 2**14 numbers. Its
numbers in whole arrays would take twice as long, for the rare words that need further words.

Source: Box and Muller, A note on the generation of random normal deviates, 1958.
"""

from typing import Any

import numpy as np

MANY = 2**14
"""From this number on they are computed so: of fewer ones, NumPy's function makes most in less time."""
BLOCK = 2**14
"""How many pairs of numbers are computed at a time; their arrays stay in the cache."""

_LOGARITHM = (
    *(-1.99999993623612, 1.0000075011257838, -0.666692120469012, 0.49937813917949797),
    *(-0.39826695764884923, 0.3455641213252531, -0.32252495810741316, 0.1979070147312256),
)
"""The coefficients of `-2 log(1 + x) / x` for 1 + x from sqrt(1/2) to sqrt(2); the error is below 2e-7."""
_SINE = (1.5707963200386008, -0.6459637595835203, 0.07968991832894912, -0.004674143838035816, 0.00015167170360873245)
"""The coefficients of `sin(pi/2 t) / t` in powers of t**2 for t from -1 to 1; the error is below 1e-8."""
_COSINE = (0.9999998138678242, -0.23369459037294643, 0.019939063493222862, -0.0008463062371171835)
"""Those of `cos(pi/2 t) / (1 - t**2)`; the error of the cosine is below 2e-7."""


def _arrays_without_axes(*numbers: float) -> list[Any]:
    """Returns numbers as arrays without axes, with which a ufunc takes less time than with numbers of Python."""
    return [np.asarray(number, np.float32) for number in numbers]


_LOGARITHM_SINGLE, _SINE_SINGLE, _COSINE_SINGLE = (
    _arrays_without_axes(*_LOGARITHM),
    _arrays_without_axes(*_SINE),
    _arrays_without_axes(*_COSINE),
)
_ONE, _UNIT, _SCALE = _arrays_without_axes(1.0, -2.0 * 0.6931471805599453, 2.0**-31)
_BIT, _SIGN, _DIGITS, _MANTISSA, _ROOT_HALF, _LEAST = (
    np.asarray(number, np.int32) for number in (1, 31, 23, 0x7FFFFF, 0x3F3504F3, 0x3F3504F3 + (31 << 23))
)
"""Shifts and masks; the last two are the bits of sqrt(1/2) in float32, and of 2**31 times that."""


def normal(words: np.ndarray) -> np.ndarray:
    """Returns normal numbers of float32, two for each random word of 64 bits, in the memory of the words.

    The first half of the memory gives radii, by 32 bits of which the lowest is the sign of the cosine, and the second
    half angles from -pi/2 to pi/2. The numbers are at most 6.6 in magnitude.

    Args:
        words: random words of 64 bits, a vector of uint64, which is overwritten.
    """
    word_count = len(words)
    integer_words = words.astype("<u8", copy=False).view("<i4").astype(np.int32, copy=False)
    block_length = min(word_count, BLOCK)
    sign_buffer, float_buffers = np.empty(block_length, np.int32), np.empty((3, block_length), np.float32)
    for start in range(0, word_count, BLOCK):
        block_words, second_words = (
            integer_words[start : min(start + BLOCK, word_count)],
            integer_words[word_count + start : min(start + BLOCK, word_count) + word_count],
        )
        sign, (x, square, radius) = sign_buffer[: len(block_words)], float_buffers[:, : len(block_words)]
        cosine, sine = block_words.view(np.float32), second_words.view(np.float32)
        np.left_shift(block_words, _SIGN, sign)
        _write_radii(block_words, square.view(np.int32), x, radius)
        np.copyto(x, second_words, casting="unsafe")
        np.multiply(x, _SCALE, x)
        np.multiply(x, x, square)
        _write_polynomial(_SINE_SINGLE, square, sine)
        np.multiply(sine, x, sine)
        np.multiply(sine, radius, sine)
        _write_polynomial(_COSINE_SINGLE, square, cosine)
        np.subtract(_ONE, square, square)
        np.multiply(cosine, square, cosine)
        np.multiply(cosine, radius, cosine)
        np.bitwise_xor(block_words, sign, block_words)
    return integer_words.view(np.float32)


def _write_radii(bits: np.ndarray, exponent: np.ndarray, x: np.ndarray, out: np.ndarray) -> None:
    """Writes `sqrt(-2 log(u))` into an array, for u = (k + 1) / 2**31, where k is made of the upper 31 bits.

    Args:
        bits: 32 random bits for each number, which are overwritten.
        exponent, x: memory for intermediate results.
        out: memory for the results.
    """
    np.right_shift(bits.view(np.uint32), _BIT.view(np.uint32), bits.view(np.uint32))
    np.copyto(x, bits, casting="unsafe")
    np.add(x, _ONE, x)
    # u = 2**exponent * m, with m from sqrt(1/2) to sqrt(2)
    np.subtract(x.view(np.int32), _LEAST, bits)
    np.right_shift(bits, _DIGITS, exponent)
    np.bitwise_and(bits, _MANTISSA, bits)
    np.add(bits, _ROOT_HALF, bits)
    np.subtract(bits.view(np.float32), _ONE, x)
    _write_polynomial(_LOGARITHM_SINGLE, x, out)
    np.multiply(out, x, out)
    np.copyto(x, exponent, casting="unsafe")
    np.multiply(x, _UNIT, x)
    np.add(out, x, out)
    np.sqrt(out, out)


def _write_polynomial(coefficients: list[Any], x: np.ndarray, out: np.ndarray) -> None:
    """Writes the values of a polynomial into an array; the first coefficient is the constant one."""
    np.multiply(x, coefficients[-1], out)
    for coefficient in coefficients[-2:0:-1]:
        np.add(out, coefficient, out)
        np.multiply(out, x, out)
    np.add(out, coefficients[0], out)
