"""Ops that pass no gradient on: those whose result does not vary with their arguments, and those that are refused."""

CONSTANT = frozenset(
    (
        *("all", "any", "argmax", "argmin", "argsort", "argpartition", "searchsorted", "lexsort", "nonzero", "isin"),
        *("equal", "not_equal", "less", "less_equal", "greater", "greater_equal", "isclose", "allclose", "array_equal"),
        *("logical_and", "logical_or", "logical_xor", "logical_not", "isnan", "isinf", "isfinite", "signbit"),
        *("floor", "ceil", "trunc", "round", "floor_divide", "gcd"),
        *("zeros_like", "ones_like", "empty_like", "one_hot", "result_type", "dtype", "shape", "ndim", "size"),
        *("is_tensor", "get_device", "eval", "stop_gradient"),
        *("bitwise_and", "bitwise_or", "bitwise_xor", "bitwise_not", "bitwise_left_shift", "bitwise_right_shift"),
    )
)
"""Ops whose derivative is zero wherever there is one, and those that ask about a tensor."""

LEAVING = frozenset(("to_numpy", "from_dlpack"))
"""Ops that take values out of what is differentiated."""

REFUSED = {
    "view": "its result has no derivative by the bits it reads",
    "arange": "the length of its result depends on the argument",
    "geomspace": "write ops.exp(ops.linspace(ops.log(start), ops.log(stop), num))",
}
"""Ops that could vary with an argument but have no gradient here, each with the reason and the way out."""
