"""Typed errors derive from the builtin error that a caller would catch; suggestions find the nearest name."""

import pytest

from emberharmony.core import errors


@pytest.mark.parametrize(
    ("typed", "builtin"),
    [
        (errors.ShapeError, ValueError),
        (errors.AxisError, ValueError),
        (errors.AxisError, IndexError),
        (errors.DTypeError, TypeError),
        (errors.RangeError, OverflowError),
        (errors.OutOfMemoryError, MemoryError),
        (errors.IndexOutOfBoundsError, IndexError),
        (errors.LinAlgError, ValueError),
        (errors.BackendMismatchError, TypeError),
        (errors.BackendNotFoundError, ValueError),
        (errors.BackendUnavailableError, ImportError),
        (errors.UnsupportedOpError, NotImplementedError),
        (errors.DeviceError, ValueError),
    ],
)
def test_an_error_is_an_ember_error_and_the_builtin(typed: type[Exception], builtin: type[Exception]) -> None:
    assert issubclass(typed, builtin)
    assert issubclass(typed, errors.EmberError)


def test_suggest_names_the_nearest_name() -> None:
    assert errors.suggest("torhc", ["numpy", "torch", "mlx"]) == "; did you mean 'torch'?"


def test_suggest_is_empty_when_no_name_is_near() -> None:
    assert errors.suggest("zzz", ["numpy", "torch", "mlx"]) == ""


def test_brief_cuts_long_values() -> None:
    assert errors.brief("x" * 58) == repr("x" * 58)
    assert errors.brief("x" * 59) == f"'{'x' * 56}…"
    assert errors.brief([1, 2]) == "[1, 2]"
