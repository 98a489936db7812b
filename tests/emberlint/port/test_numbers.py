"""`emberlint port` of NumPy's functions on Python numbers, objects and texts."""

import pytest

from emberlint.port import Ported, port
from tests.emberlint.port.porting import parsed


def ported(returned: str, default_float: str = "float64") -> Ported:
    """Returns the port of a file with a function that returns an expression."""
    exact = "from decimal import Decimal\n" if "Decimal" in returned else ""
    text = (
        f"from datetime import date\n{exact}import numpy as np\n\n\nclass C:\n    pass\n\n\n"
        "def f(n: int, w: float, names: list[str], q, eps=1e-3):\n"
        f"    empty, rows, mask = [], [], q > 0\n    rows.append(q)\n    return {returned}\n"
    )
    return port(parsed(text), parsed, default_float, mark=True)


@pytest.mark.parametrize(
    "returned",
    [
        "np.array([[None] * n])",
        "np.array([None, 1])",
        "np.array((None,) * n)",
        "np.array([[None] * n for _ in range(3)])",
        "np.array(['a', 'b'])",
        "np.array([q.name, 'b'])",
        "np.array(names)",
        "np.asarray(None)",
        "np.array([str(n), f'{n}'])",
        "np.array([Decimal(1), Decimal(n)])",
        "np.array([Decimal(1)] * n)",
        "np.array([date(2020, 1, 1)])",
        "np.array([{'a': 1}, dict(b=2)])",
        "np.array([C(), C()])",
        "np.full(n, None)",
        "np.full((2, 2), 'a')",
        "np.where(q, 'a', 'b')",
        "np.sort(names)",
    ],
)
def test_arrays_of_objects_and_texts_are_left(returned: str) -> None:
    result = ported(returned)
    (use,) = result.remaining
    assert "may hold something else than numbers, which ops refuse" in use.reason
    assert f"return {returned}\n" in result.after


@pytest.mark.parametrize(
    "returned",
    [
        "np.array([[0] * n])",
        "np.array(q)",
        "np.array(empty)",
        "np.array(rows)",
        "np.sum(q, axis=None)",
        "np.full(n, w)",
    ],
)
def test_arrays_of_numbers_and_of_what_is_unknown_are_ported(returned: str) -> None:
    assert not ported(returned).remaining


@pytest.mark.parametrize("line", ["from decimal import Decimal", "import fractions"])
def test_a_file_of_exact_numbers_keeps_the_functions_that_may_be_given_them(line: str) -> None:
    text = f"{line}\nimport numpy as np\n\n\ndef f(q):\n    return np.{{}}\n"
    for call in ("where(q > 0, q, 0)", "broadcast_arrays(q, 1)", "exp(q)", "array(q)", "cumsum(np.asarray(q))"):
        some = port(parsed(text.format(call)), parsed, "float64").remaining
        assert some, call
        assert all("numbers NumPy takes as objects, and which ops refuse" in use.reason for use in some), some
    for call in ("zeros(3)", "exp(2.0)", "array([1, 2])"):
        assert not port(parsed(text.format(call)), parsed, "float64").remaining, call


@pytest.mark.parametrize("argument", ["n", "n + 1", "n / 2", "w", "eps", "len(q)", "q.shape[0]", "2"])
def test_a_function_of_a_number_is_left_unless_the_default_float_is_that_of_numpy(argument: str) -> None:
    (use,) = ported(f"np.sqrt({argument})", "float32").remaining
    assert use.reason == "ops.sqrt gives float32 for Python numbers, where numpy may not"
    assert not ported(f"np.sqrt({argument})").remaining


@pytest.mark.parametrize("argument", ["q", "mask", "q * n"])
def test_a_function_of_what_may_be_an_array_is_ported(argument: str) -> None:
    assert not ported(f"np.sum({argument})", "float32").remaining


@pytest.mark.parametrize(
    "lines, reason",
    [
        ("return np.argmax(np.ma.masked_greater(q, 2.0), axis=1)", "has a mask, which ops refuse"),
        ("if isinstance(q, Iterable):\n        return np.array(q)", "may be a list of something else than numbers"),
        ("try:\n        return np.array(q)\n    except:\n        raise ValueError", "may be a list of something else"),
        (
            "try:\n        return np.array(q)\n    except (KeyError, ValueError):\n        return None",
            "may be a list of",
        ),
    ],
)
def test_values_that_an_array_may_not_hold_are_left(lines: str, reason: str) -> None:
    text = f"from typing import Iterable\nimport numpy as np\n\n\ndef f(q):\n    {lines}\n"
    result = port(parsed(text), parsed, "float64", mark=False)
    assert any(reason in use.reason for use in result.remaining)
    assert result.after == text


def test_a_conversion_is_ported_where_a_handler_catches_something_else() -> None:
    text = "import numpy as np\n\ndef f(q):\n    try:\n        return np.array(q)\n    except KeyError:\n        pass\n"
    assert "ops.array(q)" in port(parsed(text), parsed, "float64", mark=False).after
