"""Both expressions of each row of the pages "Coming from ..." are equal, or differ if the third column says how."""

import contextlib
import importlib
import re
import warnings
from importlib.util import find_spec
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
import pytest

from emberharmony import ops

DOCS = Path(__file__).parents[2] / "docs"
LIBRARIES = {"numpy": "numpy", "pytorch": "torch", "jax": "jax", "keras": "keras", "sklearn": "sklearn"}
ROW = re.compile(r"\| `(.+?)` \| `(.+?)` \| ?(.*?) ?\|")


def rows() -> list[Any]:
    """Returns a parameter for each row of each page: the page, both expressions, and what differs."""
    found = []
    for page in LIBRARIES:
        text = (DOCS / f"from_{page}.md").read_text(encoding="utf-8")
        for theirs, ours, differs in (match.groups() for match in map(ROW.fullmatch, text.splitlines()) if match):
            expressions = (theirs.replace(r"\|", "|"), ours.replace(r"\|", "|"))
            found.append(pytest.param(page, *expressions, differs, id=f"{page}: {expressions[0]} | {expressions[1]}"))
    return found


def variables(page: str) -> dict[str, Any]:
    """Runs the last program before the first row of a page, and returns its variables."""
    text = (DOCS / f"from_{page}.md").read_text(encoding="utf-8")
    first = next(line for line in text.splitlines() if ROW.fullmatch(line))
    *_, code = re.findall(r"```python\n(.*?)```", text.partition(first)[0], re.DOTALL)
    values: dict[str, Any] = {"changed": changed, "np": np}
    with pytest.MonkeyPatch.context() as environment:  # the program chooses the backend of Keras in it
        environment.setenv("KERAS_BACKEND", "torch")
        exec(code, values)
    return values


def changed(x: Any, write: Any) -> Any:
    """Returns a copy of an array that a function has written into."""
    copied = x.copy()
    write(copied)
    return copied


def arrays(result: Any) -> list[np.ndarray[Any, Any]]:
    """Returns the tensors of a result as NumPy arrays."""
    if isinstance(result, tuple | list):
        return [each for part in result for each in arrays(part)]
    return [ops.to_numpy(result) if ops.is_tensor(result) else np.asarray(result)]


def evaluated(expression: str, names: dict[str, Any]) -> list[np.ndarray[Any, Any]] | None:
    """Returns the tensors of an expression as NumPy arrays, and None if it raises an error for its values."""
    try:
        with warnings.catch_warnings(action="ignore"):
            return arrays(eval(expression, names))
    except (ValueError, IndexError, RuntimeError):
        return None


def are_equal(a: list[np.ndarray[Any, Any]], b: list[np.ndarray[Any, Any]]) -> bool:
    """Returns whether two results have the same dtypes, shapes and, to within rounding, values."""
    return len(a) == len(b) and all(
        x.dtype == y.dtype and x.shape == y.shape and np.allclose(x, y, rtol=1e-5, atol=1e-6, equal_nan=True)
        for x, y in zip(a, b, strict=True)
    )


def test_the_program_for_users_of_scikit_learn_learns(backend: str, capsys: pytest.CaptureFixture[str]) -> None:
    pytest.importorskip("sklearn")
    text = (DOCS / "from_sklearn.md").read_text(encoding="utf-8")
    exec(re.findall(r"```python\n(.*?)```", text, re.DOTALL)[0], {"__name__": "page"})
    assert float(capsys.readouterr().out) > 0.9


def test_both_training_loops_of_the_page_for_users_of_pytorch_learn(
    backend: str, capsys: pytest.CaptureFixture[str]
) -> None:
    pytest.importorskip("torch")
    text = (DOCS / "from_pytorch.md").read_text(encoding="utf-8").partition("## Variables")[0]
    for program in re.findall(r"```python\n(.*?)```", text, re.DOTALL):
        exec(program, {"__name__": "page"})
    theirs, ours = map(float, capsys.readouterr().out.split())
    assert max(theirs, ours) < 0.02


@pytest.mark.parametrize(("page", "theirs", "ours", "differs"), rows())
@pytest.mark.filterwarnings("ignore")
@pytest.mark.sampled(4)
def test_a_row_says_whether_both_sides_agree(backend: str, page: str, theirs: str, ours: str, differs: str) -> None:
    if find_spec(LIBRARIES[page]) is None:
        pytest.skip(f"{LIBRARIES[page]} is not installed")
    # The tests switch 64 bits on for the JAX backend, but the page speaks of JAX as it is.
    usual = importlib.import_module("jax").enable_x64(False) if page == "jax" else contextlib.nullcontext()
    with usual:
        native = variables(page)
        expected = evaluated(theirs, native)
    own = {
        name: ops.convert_to_tensor(arrays(value)[0])
        for name, value in native.items()
        if hasattr(value, "shape") and not isinstance(value, ModuleType)
    }
    found = evaluated(ours, {"ops": ops} | own)
    assert (expected is not None and found is not None) or differs
    agree = expected is not None and found is not None and are_equal(expected, found)
    assert agree is not bool(differs), (expected, found)
