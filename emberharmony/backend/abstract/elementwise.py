"""The ops that work element by element, as shapes."""

from emberharmony.backend.abstract.rules import pointwise


class AbstractElementwise:
    """Holds the primitives whose result has the shape to which the arguments broadcast."""

    # ops/comparison.py, ops/bitwise.py
    equal, not_equal, less, less_equal = pointwise(), pointwise(), pointwise(), pointwise()
    greater, greater_equal, isclose = pointwise(), pointwise(), pointwise()
    logical_and, logical_or, logical_xor, logical_not = pointwise(), pointwise(), pointwise(), pointwise()
    isnan, isinf, isfinite = pointwise(), pointwise(), pointwise()
    bitwise_and, bitwise_or, bitwise_xor, bitwise_not = pointwise(), pointwise(), pointwise(), pointwise()
    bitwise_left_shift, bitwise_right_shift = pointwise(), pointwise()

    # ops/math.py, ops/rounding.py
    add, subtract, multiply, divide = pointwise(), pointwise(), pointwise(), pointwise()
    floor_divide, mod, fmod, power, divide_no_nan = pointwise(), pointwise(), pointwise(), pointwise(), pointwise()
    negative, positive, absolute, sign, square = pointwise(), pointwise(), pointwise(), pointwise(), pointwise()
    reciprocal, sqrt, rsqrt, hypot = pointwise(), pointwise(), pointwise(), pointwise()
    maximum, minimum, heaviside, gcd = pointwise(), pointwise(), pointwise(), pointwise()
    floor, ceil, trunc, round, nan_to_num = pointwise(), pointwise(), pointwise(), pointwise(), pointwise()
    copysign, signbit, nextafter, ldexp = pointwise(), pointwise(), pointwise(), pointwise()

    # ops/elementary.py, ops/special.py
    exp, expm1, exp2, log, log1p, log2, log10 = (pointwise() for _ in range(7))
    logaddexp, logaddexp2 = pointwise(), pointwise()
    sin, cos, tan, arcsin, arccos, arctan, arctan2 = (pointwise() for _ in range(7))
    sinh, cosh, tanh, arcsinh, arccosh, arctanh = (pointwise() for _ in range(6))
    erf, erfc, erfinv, erfcx, i0, i0e, i1, i1e = (pointwise() for _ in range(8))
    gammaln, digamma, polygamma, zeta, gammainc, gammaincc = (pointwise() for _ in range(6))
    beta, betaln, betainc, xlogy, xlog1py = (pointwise() for _ in range(5))
    ndtr, log_ndtr, ndtri = pointwise(), pointwise(), pointwise()

    # ops/complex_numbers.py, ops/indexing.py
    real, imag, conj, where = pointwise(), pointwise(), pointwise(), pointwise()
