"""Ops that pass no gradient to their arguments, by reason: constant, leaving the tape, or refused."""

CONSTANT = frozenset(
    (
        *("all", "any", "argmax", "argmin", "argsort", "argpartition", "searchsorted", "lexsort", "nonzero", "isin"),
        *("equal", "not_equal", "less", "less_equal", "greater", "greater_equal", "isclose", "allclose", "array_equal"),
        *("logical_and", "logical_or", "logical_xor", "logical_not", "isnan", "isinf", "isfinite", "signbit"),
        *("floor", "ceil", "trunc", "round", "floor_divide", "gcd"),
        *("zeros_like", "ones_like", "empty_like", "one_hot", "result_type", "dtype", "shape", "ndim", "size"),
        *("is_tensor", "is_traced", "get_device", "eval", "stop_gradient"),
        *("bitwise_and", "bitwise_or", "bitwise_xor", "bitwise_not", "bitwise_left_shift", "bitwise_right_shift"),
    )
)
"""Ops whose derivative is zero wherever it exists, and ops that only return properties of a tensor."""

LEAVING = frozenset(("to_numpy", "from_dlpack"))
"""Ops that read the values of a tensor in a way that the tape cannot follow."""

REFUSED = {
    "view": "it reinterprets bits, which is not a differentiable function",
    "kaiser": "its window is computed on the host; pass a number as 'beta', or ops.stop_gradient(x)",
    "arange": "the length of its result depends on 'start', 'stop' and 'step'",
}
"""Ops whose result varies with an argument but that have no gradient here, each with the reason or the way out."""
