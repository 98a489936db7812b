"""Ops that pass no gradient to their arguments, by reason: leaving the tape, or refused.

Those whose derivative is zero wherever it exists say so in their declaration: `@op(gradient="zero")`.
"""

LEAVING = frozenset(("to_numpy", "from_dlpack"))
"""Ops that read the values of a tensor in a way that the tape cannot follow."""

REFUSED = {
    "view": "it reinterprets bits, which is not a differentiable function",
    "kaiser": "its window is computed on the host; pass a number as 'beta', or ops.stop_gradient(x)",
    "arange": "the length of its result depends on 'start', 'stop' and 'step'",
}
"""Ops whose result varies with an argument but that have no gradient here, each with the reason or the way out."""
