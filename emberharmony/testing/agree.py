"""`assert_agree`: checks that a function returns on every backend what NumPy returns in float64."""

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import numpy as np

from emberharmony import ops
from emberharmony.backend.discovery import usual_backend_names
from emberharmony.core.errors import ArgumentError
from emberharmony.core.trees.tree import TreeDef, tree_flatten, tree_map
from emberharmony.core.types import BackendLike

TOLERANCES = {"float64": 1e-10, "float32": 1e-5, "float16": 5e-3, "bfloat16": 4e-2}
"""The default `rtol` and `atol` by the dtype of a result.

A complex dtype has those of its real part; results of all other dtypes must be equal.
"""


def assert_agree(
    fn: Callable[..., Any],
    *args: Any,
    rtol: float | None = None,
    atol: float | None = None,
    backends: Sequence[BackendLike] | None = None,
) -> None:
    """Checks that a function returns the same on all installed backends as on NumPy in float64.

    The result may be any tree of tensors and numbers. Its structure and shapes must agree with NumPy's, and its dtypes
    must be the same on all backends.

    Args:
        fn: the function; it is called once on NumPy in float64, and once on each backend.
        args: trees of NumPy arrays and Python numbers; each backend gets the arrays as its own tensors.
        rtol: the allowed error relative to the magnitude of the expected number; None chooses it by the result's dtype.
        atol: the allowed absolute error, which is added to that; None chooses it by the result's dtype.
        backends: the names of the backends to run on; None for all that are installed but JAX and Dask, which take far
            longer.

    Raises:
        AssertionError: if a backend disagrees; it names the backend and the first leaf that differs, with both numbers.
        ArgumentError: if an argument holds a tensor of one library, which not every backend can convert.

    Example:
        >>> from emberharmony import ops
        >>> from emberharmony.testing.agree import assert_agree
        >>> assert_agree(lambda x: {"mean": ops.mean(x), "parts": [ops.exp(x)]}, np.ones(3, "float32"))
    """
    backend_names = usual_backend_names() if backends is None else list(backends)
    with ops.use_backend("numpy"), _default_to_float64():
        expected_leaves, structure = _host_results(fn, tree_map(_widen_leaf, args))
    leaf_paths = list(_leaf_paths(structure, ""))
    first_dtype_names: list[str] = []
    for name in backend_names:
        with ops.use_backend(name):
            results, result_structure = _host_results(fn, args)
        if result_structure != structure:
            raise AssertionError(
                f"the result on backend {name!r} has the structure {result_structure}, but on NumPy in float64 it has "
                f"{structure}"
            )
        for path, actual, expected_value in zip(leaf_paths, results, expected_leaves, strict=True):
            difference_text = _difference_text(actual, expected_value, rtol, atol)
            if difference_text:
                raise AssertionError(f"result{path} differs on backend {name!r}: {difference_text}")
        dtype_names = [str(leaf.dtype) for leaf in results]
        for path, dtype_name, first_dtype_name in zip(
            leaf_paths, dtype_names, first_dtype_names or dtype_names, strict=True
        ):
            if dtype_name != first_dtype_name:
                raise AssertionError(
                    f"result{path} has dtype {dtype_name} on backend {name!r}, "
                    f"but {first_dtype_name} on backend {backend_names[0]!r}"
                )
        first_dtype_names = first_dtype_names or dtype_names


@contextmanager
def _default_to_float64() -> Iterator[None]:
    default_before = ops.default_float()
    ops.set_default_float("float64")
    try:
        yield
    finally:
        ops.set_default_float(default_before)


def _widen_leaf(leaf: Any) -> Any:
    if isinstance(leaf, np.ndarray) and leaf.dtype.kind in "fcV":
        return leaf.astype(np.complex128 if leaf.dtype.kind == "c" else np.float64)
    return leaf


def _host_results(fn: Callable[..., Any], args: Any) -> tuple[list[np.ndarray[Any, Any]], TreeDef]:
    """Returns the leaves of the result as host arrays, and its structure."""
    result_leaves, structure = tree_flatten(fn(*tree_map(_to_active_backend, args)))
    return [_leaf_on_host(leaf) for leaf in result_leaves], structure


def _leaf_on_host(leaf: Any) -> np.ndarray[Any, Any]:
    if hasattr(leaf, "dtype"):
        return np.asarray(ops.to_numpy(leaf))
    # A Python float in a result most likely comes from a tensor (`float(x)`), so it is compared in the default float.
    return np.asarray(leaf, ops.default_float().name if isinstance(leaf, float) else None)


def _to_active_backend(leaf: Any) -> Any:
    """Returns a NumPy array as a tensor of the active backend, and any other leaf unchanged."""
    if isinstance(leaf, np.ndarray):
        return ops.convert_to_tensor(leaf)
    if hasattr(leaf, "__dlpack__"):
        raise ArgumentError(
            f"assert_agree takes NumPy arrays and Python numbers, which every backend can convert, not {type(leaf)}; "
            f"convert the tensor by ops.to_numpy(x)"
        )
    return leaf


def _difference_text(
    result: np.ndarray[Any, Any], expected_leaf: np.ndarray[Any, Any], rtol: float | None, atol: float | None
) -> str:
    """Returns a text that says how a leaf differs from the expected one; "" if it does not."""
    if result.shape != expected_leaf.shape:
        return f"got shape {result.shape}, but NumPy in float64 gives {expected_leaf.shape}"
    float_dtype = {"complex64": "float32", "complex128": "float64"}.get(result.dtype.name, result.dtype.name)
    usual_tolerance = TOLERANCES.get(float_dtype, 0.0)
    rtol, atol = usual_tolerance if rtol is None else rtol, usual_tolerance if atol is None else atol
    if expected_leaf.dtype.kind not in "fc" or result.dtype.kind not in "fcV":
        is_unequal = np.asarray(result != expected_leaf)
        return (
            f"{_example_text(result, expected_leaf, int(np.argmax(is_unequal)))} (must be equal)"
            if is_unequal.any()
            else ""
        )
    wide_result = result.astype(expected_leaf.dtype)
    with np.errstate(all="ignore"):
        is_equal = (wide_result == expected_leaf) | (np.isnan(wide_result) & np.isnan(expected_leaf))
        absolute_error = np.where(is_equal, 0.0, np.abs(wide_result - expected_leaf))
        excess_error = np.where(
            is_equal, 0.0, np.nan_to_num(absolute_error - (atol + rtol * np.abs(expected_leaf)), nan=np.inf)
        )
    if not excess_error.size or excess_error.max() <= 0:
        return ""
    worst_index = int(np.argmax(excess_error))
    example_text = _example_text(result, expected_leaf, worst_index)
    return f"{example_text}, off by {absolute_error.reshape(-1)[worst_index]:.3g} (rtol {rtol:g}, atol {atol:g})"


def _example_text(result: np.ndarray[Any, Any], expected_leaf: np.ndarray[Any, Any], flat_index: int) -> str:
    coordinates = tuple(map(int, np.unravel_index(flat_index, expected_leaf.shape)))
    location = f"at index {coordinates} " if coordinates else ""
    return (
        f"{location}got {result.reshape(-1)[flat_index]}, but NumPy in float64 gives "
        f"{expected_leaf.reshape(-1)[flat_index]}"
    )


def _leaf_paths(structure: TreeDef, path: str) -> Iterator[str]:
    """Yields the path of each leaf as Python source, such as `['loss'][0]` or `.weight`."""
    if structure.kind == "leaf":
        yield path
    has_field_names = structure.kind in ("dataclass", "namedtuple")
    for key, child_structure in zip(structure.keys, structure.children, strict=True):
        yield from _leaf_paths(child_structure, f"{path}.{key}" if has_field_names else f"{path}[{key!r}]")
