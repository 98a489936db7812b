"""Typed errors are the builtin a caller would catch, and suggestions find the nearest name."""

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
def test_error_is_ours_and_the_builtin(typed: type[Exception], builtin: type[Exception]) -> None:
    assert issubclass(typed, builtin)
    assert issubclass(typed, errors.EmberError)


def test_suggest_names_the_nearest() -> None:
    assert errors.suggest("torhc", ["numpy", "torch", "mlx"]) == "; did you mean 'torch'?"


def test_suggest_keeps_silent_when_nothing_is_near() -> None:
    assert errors.suggest("zzz", ["numpy", "torch", "mlx"]) == ""
