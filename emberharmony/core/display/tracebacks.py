"""Tracebacks without the frames of the library, and warnings at the user's line.

`EMBERHARMONY_TRACEBACK=full` shows all frames. It is read when an error is shown, so a cell of a notebook can set it in
`os.environ`. Only what is shown changes: the error has its whole traceback again afterwards, for debuggers and logs.
"""

import os
import site
import sys
import sysconfig
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import FrameType, TracebackType
from typing import Any

from emberharmony.core.display.hints import hint_for
from emberharmony.core.errors import EmberError

VARIABLE = "EMBERHARMONY_TRACEBACK"
"""The environment variable that shows all frames if it is "full"."""

_OWN = sys.modules[__name__.partition(".")[0]].__path__[0] + os.sep
_LIBRARIES = tuple(
    {folder + os.sep for folder in (sysconfig.get_path("stdlib"), *site.getsitepackages(), site.getusersitepackages())}
)
_FEW = 2
"""So many hidden frames are not mentioned."""

_SEEN: set[tuple[str, int, str]] = set()
"""The lines of users at which a warning was shown, each with its text."""


def show_error(show_original: Callable[..., Any], error: BaseException, trace: TracebackType | None) -> None:
    """Shows an error that ends a program, without the frames of the library, and with a hint.

    Args:
        show_original: shows the error: the former `sys.excepthook`.
        error: the error.
        trace: its traceback.
    """
    with shorten_error(error, trace) as short_trace:
        show_original(type(error), error, short_trace)


def lines_of_error(
    lines_of_original: Callable[..., Any], kind: Any, error: Any, trace: Any = None, *arguments: Any, **options: Any
) -> Any:
    """Returns the lines that IPython prints of an error, without the frames of the library, and with a hint.

    Args:
        lines_of_original: IPython's method, which gets all other arguments.
        kind: the class of the error.
        error: the error.
        trace: its traceback.
        arguments: further arguments.
        options: further arguments.
    """
    if not isinstance(trace, TracebackType) or not isinstance(error, BaseException):
        return lines_of_original(kind, error, trace, *arguments, **options)
    with shorten_error(error, trace) as short_trace:
        return lines_of_original(kind, error, short_trace, *arguments, **options)


def show_warning(
    show_original: Callable[..., Any], message: Any, category: Any, filename: str, lineno: int, *arguments: Any
) -> None:
    """Shows a warning; one that a line of the library caused is shown at the line of the user that called it.

    NumPy warns at the innermost line of Python, which is one of the library, and Python shows each line once.
    """
    if filename.startswith(_OWN) and not _shows_all_frames():
        message_text, was_shown = str(message), False
        frame: FrameType | None = sys._getframe(1)
        while frame is not None and _is_library_file(frame.f_code.co_filename):
            # Python notes that this line has warned, and would not warn for another line of the user: drop its note.
            was_shown |= bool(
                frame.f_globals.get("__warningregistry__", {}).pop((message_text, category, lineno), False)
            )
            frame = frame.f_back
        if frame is not None:
            filename, lineno, arguments = frame.f_code.co_filename, frame.f_lineno, arguments[:1]
        if was_shown and (filename, lineno, message_text) in _SEEN:
            return
        _SEEN.add((filename, lineno, message_text))
    show_original(message, category, filename, lineno, *arguments)


@contextmanager
def shorten_error(error: BaseException, trace: TracebackType | None) -> Iterator[TracebackType | None]:
    """Returns a block in which an error lacks the frames of the library, and has a hint as a note if there is one.

    The block gives the traceback to show. The errors that caused one of the library are left out if they came from
    inside of it, because its message says what they say.
    """
    old_state = error.__traceback__, error.__cause__, error.__context__, error.__suppress_context__
    notes = list(getattr(error, "__notes__", ()))
    short_trace, hidden_count = (
        (trace, 0) if _shows_all_frames() or not _is_for_users(error, trace) else _hide_library_frames(trace)
    )
    user_frame = _frame_of_user(trace)
    hint = "" if user_frame is None else hint_for(error, user_frame)
    try:
        if hint:
            error.add_note(f"hint: {hint}")
        if hidden_count > _FEW:
            error.add_note(f"({hidden_count} frames of emberharmony are hidden; {VARIABLE}=full shows them)")
        if hidden_count:
            error.__traceback__ = short_trace
            if isinstance(error, EmberError) and _is_internal(error.__cause__ or error.__context__):
                error.__cause__, error.__context__ = None, None
        yield short_trace
    finally:
        error.__traceback__, error.__cause__, error.__context__, error.__suppress_context__ = old_state
        if hint or hidden_count:
            error.__notes__ = notes


def _shows_all_frames() -> bool:
    return os.environ.get(VARIABLE, "").lower() == "full"


def _files_of_trace(trace: TracebackType | None) -> list[str]:
    files = []
    while trace is not None:
        files.append(trace.tb_frame.f_code.co_filename)
        trace = trace.tb_next
    return files


def _frame_of_user(trace: TracebackType | None) -> FrameType | None:
    """Returns the innermost frame of a traceback that belongs to no library."""
    frame = None
    while trace is not None:
        if not _is_library_file(trace.tb_frame.f_code.co_filename):
            frame = trace.tb_frame
        trace = trace.tb_next
    return frame


def _is_in_package(file: str) -> bool:
    return file.startswith((_OWN, "<emberharmony"))


def _is_library_file(file: str) -> bool:
    """Returns whether code belongs to this library, another one that is installed, or Python."""
    return file.startswith((_OWN, "<emberharmony", "<frozen ", *_LIBRARIES))


def _is_for_users(error: BaseException, trace: TracebackType | None) -> bool:
    """Returns whether an error concerns the user's code; an unexpected one from inside the library does not."""
    user_error_classes = (EmberError, AttributeError, NotImplementedError, KeyboardInterrupt, Warning)
    return isinstance(error, user_error_classes) or not any(map(_is_in_package, _files_of_trace(trace)[-1:]))


def _is_internal(cause: BaseException | None) -> bool:
    return cause is not None and all(map(_is_library_file, _files_of_trace(cause.__traceback__)))


def _hide_library_frames(trace: TracebackType | None) -> tuple[TracebackType | None, int]:
    """Returns a traceback without the frames of the library and those that it called, and their number.

    Functions of the user that the library calls stay. A traceback that would be empty is whole.
    """
    user_entries: list[TracebackType] = []
    hidden_count, is_inside, entry = 0, False, trace
    while entry is not None:
        file = entry.tb_frame.f_code.co_filename
        is_inside = _is_in_package(file) or (is_inside and _is_library_file(file))
        if is_inside:
            hidden_count += 1
        else:
            user_entries.append(entry)
        entry = entry.tb_next
    if not user_entries or not hidden_count:
        return trace, 0
    short_traceback: TracebackType | None = None
    for entry in reversed(user_entries):
        short_traceback = TracebackType(short_traceback, entry.tb_frame, entry.tb_lasti, entry.tb_lineno)
    return short_traceback, hidden_count
