"""The errors the library raises: each is an `EmberError` and the builtin a caller would catch."""

import re
from collections.abc import Iterable


class EmberError(Exception):
    """Is the root of every error the library raises on purpose."""


class ShapeError(EmberError, ValueError):
    """Tells that shapes do not fit together or do not suit the op."""


class AxisError(EmberError, ValueError, IndexError):
    """Tells that an axis is out of range, repeated, or cannot be used as asked."""


class DTypeError(EmberError, TypeError):
    """Tells that a dtype is unknown, unsupported by the op or the device, or would be narrowed silently."""


class RangeError(EmberError, OverflowError, ValueError):
    """Tells that a Python number does not fit the dtype it would have to take."""


class IndexOutOfBoundsError(EmberError, IndexError):
    """Tells that an index lies outside the axis it points into."""


class LinAlgError(EmberError, ValueError):
    """Tells that a matrix is singular, not positive-definite, or that a decomposition did not converge."""


class ArgumentError(EmberError, ValueError):
    """Tells that an argument has a value the op cannot take."""


class ArgumentTypeError(EmberError, TypeError):
    """Tells that an argument has a type the op cannot take."""


class BackendMismatchError(EmberError, TypeError):
    """Tells that a tensor of one backend was handed to an op of another."""


class BackendNotFoundError(EmberError, ValueError):
    """Tells that no backend has the name that was asked for."""


class BackendUnavailableError(EmberError, ImportError):
    """Tells that a known backend cannot be loaded here, and which command installs it."""


class BackendProtocolError(EmberError, TypeError):
    """Tells that a backend lacks ops it must define, or defines them with another signature."""


class DeviceError(EmberError, ValueError):
    """Tells that a device is unknown or absent, and lists those there are."""


class UnsupportedOpError(EmberError, NotImplementedError):
    """Tells that a backend declares an op unsupported, and why."""


class TracedTensorError(EmberError, TypeError):
    """Tells that a tensor which stands for a value being differentiated was used as a plain array."""


class BackendExecutionError(EmberError, RuntimeError):
    """Carries a native failure that has no narrower type; the native error is its cause."""


class SettingsError(EmberError, ValueError):
    """Tells that the settings file cannot be changed without harm to what else it holds."""


class SettingsWarning(UserWarning):
    """Warns that the settings file could not be read and was passed over."""


class BackendFallbackWarning(UserWarning):
    """Warns that another backend than the one asked for was loaded."""


def suggest(name: str, known: Iterable[str]) -> str:
    """Returns `"; did you mean 'x'?"` for the nearest known name, or an empty string."""
    import difflib  # imported when something is misspelt: it costs 2 ms

    lowered = {each.lower(): each for each in known}
    near = difflib.get_close_matches(name.lower(), list(lowered), n=1, cutoff=0.5)
    return f"; did you mean {lowered[near[0]]!r}?" if near else ""


def says(error: BaseException | None, kinds: tuple[type[BaseException], ...], pattern: str = "") -> bool:
    """Returns whether an error, or one that it comes from, is of these kinds and has the pattern in its message."""
    while error is not None:
        if isinstance(error, kinds) and re.search(pattern, str(error), re.IGNORECASE):
            return True
        error = error.__cause__ or error.__context__
    return False
