"""Bessel functions of the first kind, by series; see `special`.

Source: the Chebyshev series were computed with 50 digits. Cephes takes out roots in the same way. DLMF 10.17.3 has the
form for large arguments.
"""

import math
from collections.abc import Sequence
from typing import Any

from emberharmony.backend.shared.elementwise.elementary import at_least, at_most, chebyshev, replace_outside

# The Chebyshev coefficients in x * x, up to 8, of j0(x), and of j1(x) / x, over the factors of the first three roots.
_J0_NEAR = (
    *(2.944153449430916e-21, -1.8254143152188351e-19, 9.903132380228728e-18, -4.654628053852989e-16),
    *(1.8735723318054736e-14, -6.370558956177209e-13, 1.799863023385093e-11, -4.140375614344942e-10),
    *(7.558465121356463e-09, -1.0588155950196776e-07, 1.086700486952261e-06, -7.631650837510544e-06),
    *(3.275539238265576e-05, -6.837824934687584e-05),
)
_J1_NEAR = (
    *(8.49851937094241e-23, -5.585912398144852e-21, 3.2237947605492447e-19, -1.618220820699693e-17),
    *(6.987055292740725e-16, -2.561199020659572e-14, 7.845621917440618e-13, -1.9697009660487488e-11),
    *(3.9542097799456666e-10, -6.145000881067649e-09, 7.067369727478163e-08, -5.623691032268321e-07),
    *(2.762287685049543e-06, -6.56677731440147e-06),
)
# The Chebyshev coefficients in (8 / x) ** 2, for x > 8, of the factors P and Q / (x / 8) of cosine and sine.
_J0_P = (
    *(1.6305919233744186e-17, -1.0011513723467786e-16, 6.748072215733873e-16, -5.069034095935236e-15),
    *(4.3265957431549404e-14, -4.3045788699253914e-13, 5.168262387349193e-12, -7.86409137723707e-11),
    *(1.6306464635151382e-09, -5.1705945376060975e-08, 3.0751847875194745e-06, -0.0005365220468132117),
    *(1.9989206986950374,),
)
_J0_Q = (
    *(1.0473158973776097e-18, -4.952892629886516e-18, 2.4865952389390515e-17, -1.3348852171502517e-16),
    *(7.729703176242605e-16, -4.87994410531204e-15, 3.4041800321963686e-14, -2.6690625482579414e-13),
    *(2.404916100281365e-12, -2.565397936797308e-11, 3.376097523734991e-10, -5.817532749493056e-09),
    *(1.4377965798375193e-07, -5.9315987288485175e-06, 0.0005470815954089319, -0.24889367368539214),
)
_J1_P = (
    *(3.0492991197665872e-18, -1.7312313216116335e-17, 1.0667689114335412e-16, -7.221180842274018e-16),
    *(5.452674896044717e-15, -4.6842237839904895e-14, 4.699195515230542e-13, -5.704863640395645e-12),
    *(8.816898659582339e-11, -1.8718907491063067e-09, 6.177633960644299e-08, -3.987284300488908e-06),
    *(0.0008989898330859408, 2.0018060817200274),
)
_J1_Q = (
    *(5.2192649196714085e-18, -2.626761589838529e-17, 1.4141084390211833e-16, -8.215318025458595e-16),
    *(5.206626366226707e-15, -3.649001916061838e-14, 2.8774212663332235e-13, -2.61145253946232e-12),
    *(2.8121750359748866e-11, -3.749090950541556e-10, 6.583354662120443e-09, -1.676782510726674e-07),
    *(7.3108922063643636e-06, -0.0007702178839325664, 0.7484445931125652),
)
_ROOTS_0 = (
    (2.404825557695773, -1.176691651530894e-16),
    (5.520078110286311, 8.088597146146722e-17),
    (8.653727912911013, -2.92812607320779e-16),
)
_ROOTS_1 = (
    (3.8317059702075125, -1.5269184090088067e-16),
    (7.015586669815619, -9.414165653410389e-17),
    (10.173468135062722, 4.482162274768888e-16),
)
Roots = Sequence[tuple[float, float]]
"""Roots, each as the sum of two numbers."""


def _bessel_below_8(x: Any, coefficients: Sequence[float], roots: Roots) -> Any:
    bessel_value = chebyshev(x * x * (1.0 / 16.0) - 2.0, coefficients)
    for root, root_remainder in roots:
        bessel_value = bessel_value * ((x - root) - root_remainder) * (x + root)
    return bessel_value


def _bessel_beyond_8(xp: Any, x: Any, p: Sequence[float], q: Sequence[float], is_first_order: bool) -> Any:
    """Returns the Bessel function of order 0 or 1 for x >= 8, by Chebyshev series of its amplitudes."""
    inverse = 8.0 / x
    chebyshev_argument = inverse * inverse * 4.0 - 2.0
    sine, cosine = xp.sin(x), xp.cos(x)
    # The cosine and the sine of x - pi / 4, or of x - 3 pi / 4, times the square root of 2.
    cosine_part, sine_part = (sine - cosine, -sine - cosine) if is_first_order else (sine + cosine, sine - cosine)
    oscillation = (
        chebyshev(chebyshev_argument, p) * cosine_part - chebyshev(chebyshev_argument, q) * (inverse / 8.0) * sine_part
    )
    return oscillation / xp.sqrt(math.pi * x)


def j0(xp: Any, x: Any) -> Any:
    """Returns the Bessel function of order 0; 0 at infinity."""
    magnitude = xp.abs(x)
    is_regular = magnitude < math.inf
    y = replace_outside(xp, is_regular, magnitude, 1.0)
    near_result = _bessel_below_8(at_most(xp, y, 8.0), _J0_NEAR, _ROOTS_0)
    bessel_value = xp.where(y <= 8.0, near_result, _bessel_beyond_8(xp, at_least(xp, y, 8.0), _J0_P, _J0_Q, False))
    return xp.where(xp.isnan(x), x, xp.where(is_regular, bessel_value, 0.0))


def j1(xp: Any, x: Any) -> Any:
    """Returns the Bessel function of the first order; 0 at infinity."""
    magnitude = xp.abs(x)
    is_regular = magnitude < math.inf
    y = replace_outside(xp, is_regular, magnitude, 1.0)
    near_result = _bessel_below_8(at_most(xp, y, 8.0), _J1_NEAR, _ROOTS_1) * y
    bessel_value = xp.where(y <= 8.0, near_result, _bessel_beyond_8(xp, at_least(xp, y, 8.0), _J1_P, _J1_Q, True))
    bessel_value = xp.where(x < 0.0, -bessel_value, bessel_value)
    return xp.where(xp.isnan(x), x, xp.where(is_regular, bessel_value, 0.0))
