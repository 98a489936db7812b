"""`assert_agree`: which results agree, and what it reports about the first leaf that differs."""

from typing import Any, NamedTuple

import numpy as np
import pytest

from emberharmony import ops
from emberharmony.backend.discovery import BUILTIN, is_installed
from emberharmony.core.errors import ArgumentError
from emberharmony.testing import assert_agree

INSTALLED = [name for name in BUILTIN if is_installed(name)]
X = np.linspace(-2, 2, 12).reshape(3, 4)


class Step(NamedTuple):
    loss: Any
    aux: Any


def on(name: str, wrong: Any, right: Any) -> Any:
    """Returns `wrong` while the backend `name` is active, else `right`."""
    return wrong if ops.get_backend() == name else right


def message_of(fn: Any, *args: Any, **options: Any) -> str:
    with pytest.raises(AssertionError) as caught:
        assert_agree(fn, *args, **options)
    return str(caught.value)


@pytest.mark.parametrize("dtype", ["float64", "float32", "float16"])
def test_trees_of_equal_results_agree(dtype: str) -> None:
    before = ops.get_backend(), ops.default_float()
    seen: list[tuple[str, str]] = []

    def fn(x: Any, options: dict[str, Any]) -> Any:
        seen.append((ops.get_backend(), ops.dtype(x).name))
        return {"soft": ops.softmax(x * options["scale"]), "count": [ops.sum(ops.cast(x > 0, "int64")), None]}

    assert_agree(fn, X.astype(dtype), {"scale": 2.0})
    assert seen == [("numpy", "float64"), *((name, dtype) for name in INSTALLED)]
    assert (ops.get_backend(), ops.default_float()) == before


def test_python_numbers_and_strings_in_results_are_compared() -> None:
    assert_agree(lambda x, y: (float(ops.mean(x)), ops.exp(y), x.shape[0], "name"), X.astype("float32"), 0.3)


@pytest.mark.parametrize("name", INSTALLED)
def test_the_error_names_the_first_leaf_that_differs(name: str) -> None:
    if name == "numpy":
        pytest.skip("NumPy is also the reference")
    message = message_of(lambda x: {"a": x, "b": [x, Step(x, on(name, x + 1e-3, x))]}, X)
    assert message.startswith(f"result['b'][1].aux differs on backend {name!r}: at index (")
    assert "off by 0.001 (rtol 1e-10, atol 1e-10)" in message


def test_given_tolerances_replace_the_defaults() -> None:
    def fn(x: Any) -> Any:
        return on("torch", x + 1e-3, x)

    if "torch" in INSTALLED:
        assert_agree(fn, X, atol=2e-3)
        assert "rtol 0" in message_of(fn, X, rtol=0.0)
        assert_agree(fn, X, backends=["numpy"])


@pytest.mark.skipif(INSTALLED[-1] == "numpy", reason="needs a backend beside the reference")
def test_shape_dtype_structure_and_integers_must_agree() -> None:
    name = INSTALLED[-1]
    assert "got shape (12,), but NumPy in float64 gives (3, 4)" in message_of(lambda x: on(name, ops.ravel(x), x), X)
    assert f"has dtype float32 on backend {name!r}" in message_of(
        lambda x: on(name, ops.cast(x, "float32"), x), np.ones(3), rtol=1e-5
    )
    assert f"the result on backend {name!r} has the structure dict(a: *)" in message_of(
        lambda x: on(name, {"a": x}, [x]), X
    )
    assert "at index (1,) got 3, but NumPy in float64 gives 2 (must be equal)" in message_of(
        lambda x: on(name, ops.convert_to_tensor([1, 3]), ops.convert_to_tensor([1, 2])), X
    )


@pytest.mark.skipif(INSTALLED[-1] == "numpy", reason="needs a backend beside the reference")
def test_nan_agrees_only_with_nan() -> None:
    name = INSTALLED[-1]
    assert_agree(lambda x: x, np.array([np.nan, np.inf, -np.inf]))
    assert "got nan, but NumPy in float64 gives 1.0" in message_of(lambda x: on(name, x * np.nan, x), np.ones(2))
    assert "got 1.0, but NumPy in float64 gives nan" in message_of(lambda x: on(name, x, x * np.nan), np.ones(2))


def test_a_tensor_of_one_backend_is_refused() -> None:
    with ops.use_backend(INSTALLED[-1]):
        x = ops.ones(3)
    if INSTALLED[-1] == "numpy":
        pytest.skip("every backend accepts NumPy arrays")
    with pytest.raises(ArgumentError, match="takes NumPy arrays"):
        assert_agree(ops.exp, x)
