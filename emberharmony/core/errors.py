"""The errors and warnings of the library.

Each error is an `EmberError`, and also the builtin exception that a caller would catch: a `ShapeError` is a
`ValueError`.
"""

import re
from collections.abc import Iterable
from typing import Any


class EmberError(Exception):
    """The base of every error that the library raises on purpose."""


class ShapeError(EmberError, ValueError):
    """Raised when shapes do not broadcast, or do not suit the op."""


class AxisError(EmberError, ValueError, IndexError):
    """Raised when an axis is out of range, repeated, or cannot be used as asked."""


class DTypeError(EmberError, TypeError):
    """Raised when a dtype is unknown, not supported by the op or the device, or would be narrowed silently."""


class RangeError(EmberError, OverflowError, ValueError):
    """Raised when a Python number does not fit into the dtype that it would take."""


class OutOfMemoryError(EmberError, MemoryError):
    """Raised when a tensor does not fit into the memory of the machine."""


class IndexOutOfBoundsError(EmberError, IndexError):
    """Raised when an index is outside its axis."""


class LinAlgError(EmberError, ValueError):
    """Raised when a matrix is singular or not positive-definite, or a decomposition does not converge."""


class ArgumentError(EmberError, ValueError):
    """Raised when the op cannot take the value of an argument."""


class ArgumentTypeError(EmberError, TypeError):
    """Raised when the op cannot take the type of an argument."""


class BackendMismatchError(EmberError, TypeError):
    """Raised when an op of one backend gets a tensor of another."""


class BackendNotFoundError(EmberError, ValueError):
    """Raised when no backend has the requested name."""


class BackendUnavailableError(EmberError, ImportError):
    """Raised when a known backend cannot be loaded; the message has the command that installs it."""


class BackendProtocolError(EmberError, TypeError):
    """Raised when a backend lacks ops that it must define, or defines them with another signature."""


class DeviceError(EmberError, ValueError):
    """Raised when a device is unknown or absent; the message lists the devices that exist."""


class UnsupportedOpError(EmberError, NotImplementedError):
    """Raised when a backend or a transform does not support an op; the message has the reason."""


class StateDictError(EmberError, KeyError):
    """Raised when the names or shapes of given tensors are not those of a model; the message lists all differences."""

    __str__ = Exception.__str__


class UninitializedParameterError(EmberError, ValueError):
    """Raised when a parameter is used whose shape is not known yet, because the layer has not seen an input."""


class TracedTensorError(EmberError, TypeError):
    """Raised when a tensor that is being differentiated is used as a plain array.

    Args:
        message: the text of the error.
        traced: that tensor. If an op raised the error, dispatch reads it here and runs the op on its tape instead. None
            if it is not known.
    """

    def __init__(self, message: str = "", traced: Any = None) -> None:
        super().__init__(message)
        self.traced = traced


class BackendExecutionError(EmberError, RuntimeError):
    """Raised when a native error has no more specific type; the native error is the cause."""


class CaptureError(EmberError, ValueError):
    """Raised when a model of another library cannot be captured as a program, or when a saved program is damaged."""


class CheckError(EmberError, RuntimeError):
    """Raised by a check of `ops.checked`.

    Args:
        message: what was found.
        finding: the same as a `Finding`; None if there is none.
    """

    def __init__(self, message: str = "", finding: Any = None) -> None:
        super().__init__(message)
        self.finding = finding


class NonFiniteError(CheckError, FloatingPointError):
    """Raised by `ops.checked("nan")` for the op that made the first NaN or infinity.

    Args:
        finding: the same as a `Finding`; None if there is none.
    """


class WeightFileError(EmberError, ValueError):
    """Raised when a file of tensors is damaged, is no file of tensors, or cannot be read or written.

    Args:
        kind: what is wrong, as a word for programs: "truncated", "overlap", "duplicate" (`docs/weights.md` has all).
        path: the path of the file.
        reason: what was found, and what was expected.
        tensor: the name of the tensor that is wrong; None if it is not one.
        hint: the way out, if there is one.
    """

    def __init__(self, kind: str, path: str, reason: str, tensor: str | None = None, hint: str = "") -> None:
        super().__init__(kind, path, reason, tensor, hint)
        self.kind, self.path, self.reason, self.tensor, self.hint = kind, path, reason, tensor, hint

    def __str__(self) -> str:
        tensor_text = "" if self.tensor is None else f", tensor {brief(self.tensor)}"
        return f"{self.path}{tensor_text}: {self.reason}" + (f"; {self.hint}" if self.hint else "")


class MissingFileError(WeightFileError, FileNotFoundError):
    """Raised when a file of tensors is not there; see `WeightFileError`."""


class CheckpointError(EmberError, ValueError):
    """Raised when a checkpoint cannot be saved or restored; nothing of the model or the optimizer is changed then.

    Args:
        kind: what is wrong, as a word for programs: "missing", "damaged", "different" or "unwritable".
        path: the folder of the checkpoint.
        reason: what was found, and what was expected.
        faults: all that is missing in the checkpoint or in what it is restored into, or that differs.
    """

    def __init__(self, kind: str, path: str, reason: str, faults: Iterable[str] = ()) -> None:
        super().__init__(kind, path, reason, tuple(faults))
        self.kind, self.path, self.reason, self.faults = kind, path, reason, self.args[3]

    def __str__(self) -> str:
        faults_text = "".join(f"\n  {fault}" for fault in self.faults)
        return f"{self.path}: {self.reason}{faults_text}"


class DistributedError(EmberError, RuntimeError):
    """Raised when the processes of a run cannot go on together: one is missing or stalled, or their calls differ.

    Args:
        message: what was found.
        call: the collective in which it was found, such as "all_sum() (call 17)".
        ranks: the ranks that are missing or stalled, or that differ from the others, as far as they are known.
    """

    def __init__(self, message: str = "", call: str = "", ranks: Iterable[int] = ()) -> None:
        super().__init__(message)
        self.call, self.ranks = call, tuple(ranks)


class SettingsError(EmberError, ValueError):
    """Raised when the settings file cannot be changed without damage to the rest of it."""


class SettingsWarning(UserWarning):
    """Issued when the settings file cannot be read and is ignored."""


class CheckpointWarning(UserWarning):
    """Issued when a checkpoint is restored, but something that it holds cannot be, or differs from what is here."""


class BackendFallbackWarning(UserWarning):
    """Issued when another backend is loaded than the one that was requested."""


class BackendSwitchWarning(UserWarning):
    """Issued in checked mode when a parameter or buffer changes its backend again and again, which copies it."""


class EngineWarning(UserWarning):
    """Issued when the engine of a compiled function cannot run it, so that NumPy does."""


class CheckWarning(UserWarning):
    """Issued by a check of `ops.checked` with the policy "warn"."""


class TrainingWarning(UserWarning):
    """Issued when a training loop does something that trains nothing, such as a step without gradients."""


_WARNINGS = (
    SettingsWarning,
    CheckpointWarning,
    BackendFallbackWarning,
    BackendSwitchWarning,
    EngineWarning,
    CheckWarning,
    TrainingWarning,
)
for _class in (EmberError, *EmberError.__subclasses__(), NonFiniteError, MissingFileError, *_WARNINGS):
    _class.__module__ = "emberharmony.errors"  # the public module, so that tracebacks and pickles name it


def suggest(name: object, known: Iterable[str], near: float = 0.5) -> str:
    """Returns `"; did you mean 'x'?"` for the nearest known name, or an empty string.

    Args:
        name: the unknown name; for what is no string nothing is near.
        known: the known names.
        near: how alike two names must be, from 0 to 1.
    """
    import difflib  # imported here because it costs 2 ms and only misspelt names need it

    if not isinstance(name, str):
        return ""
    word_by_lower_case = {word.lower(): word for word in known}
    closest_words = difflib.get_close_matches(name.lower(), list(word_by_lower_case), n=1, cutoff=near)
    return f"; did you mean {word_by_lower_case[closest_words[0]]!r}?" if closest_words else ""


def brief(value: object) -> str:
    """Returns the repr of a value for a message: on one line, cut to 60 characters."""
    try:
        repr_text = " ".join(repr(value).split())
    except Exception as error:  # noqa: BLE001  (whatever a repr raises must not replace the message)
        repr_text = f"<a {type(value).__name__} whose repr raises {type(error).__name__}>"
    return repr_text if len(repr_text) <= 60 else f"{repr_text[:57]}…"


def has_message(error: BaseException | None, kinds: tuple[type[BaseException], ...], pattern: str = "") -> bool:
    """Returns whether an error, or one in its chain of causes, has one of these types and a matching message.

    Args:
        pattern: a regular expression, searched without regard to case.
    """
    while error is not None:
        if isinstance(error, kinds) and re.search(pattern, str(error), re.IGNORECASE):
            return True
        error = error.__cause__ or error.__context__
    return False
