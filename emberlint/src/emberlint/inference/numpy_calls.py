"""Calls of NumPy that return no array of numbers: arrays of objects or of text, and single random numbers."""

import ast

from emberlint.inference import values as v

# The number of positional arguments before `size`; without a size, the function returns a Python number.
_BEFORE_SIZE = {
    **dict.fromkeys(("rand", "randn", "random", "random_sample", "ranf", "standard_normal", "standard_exponential"), 0),
    **dict.fromkeys(("exponential", "poisson", "geometric", "chisquare", "rayleigh", "standard_gamma"), 1),
    **dict.fromkeys(("randint", "random_integers", "integers", "uniform", "normal", "lognormal", "beta", "gamma"), 2),
    **dict.fromkeys(("binomial", "laplace", "logistic", "gumbel"), 2),
}
_DTYPES = frozenset(("object", "str", "bytes", "object_", "str_", "bytes_"))
_CODES = ("O", "S", "U", "<U", ">U", "|S", "|O")
_MAKING = frozenset(("array", "asarray", "asanyarray", "empty", "full", "zeros", "ones", "fromiter", "ndarray"))


def non_array_result(origin: str, node: ast.Call, given: list[v.Value]) -> v.Value:
    """Returns the result of a call of NumPy if it is no array of numbers, else None."""
    if not origin.startswith("numpy."):
        return None
    function_name = origin.rpartition(".")[2]
    if function_name in _BEFORE_SIZE and ".random." in origin:
        has_size = len(node.args) > _BEFORE_SIZE[function_name] or any(
            keyword.arg in ("size", None) for keyword in node.keywords
        )
        return None if has_size or any(v.holds_tensor(value) for value in given) else v.NUMBER
    if function_name not in _MAKING:
        return None
    dtype_node = next((keyword.value for keyword in node.keywords if keyword.arg == "dtype"), None)
    if dtype_node is None:
        return v.OBJECT if given and isinstance(given[0], v.Sequence) and given[0].element is v.STRING else None
    return v.OBJECT if _is_object_or_text(dtype_node) else None


def _is_object_or_text(dtype: ast.expr) -> bool:
    """Returns whether a dtype is that of objects or of text."""
    if isinstance(dtype, ast.Constant) and isinstance(dtype.value, str):
        return dtype.value in _DTYPES or dtype.value.startswith(_CODES)
    return (dtype.attr if isinstance(dtype, ast.Attribute) else getattr(dtype, "id", "")) in _DTYPES
