"""The user's lines: which line outside of the package called an op."""

import sys
from pathlib import Path
from typing import Any

_PACKAGE = str(Path(__file__).parents[2])
_OF_USERS = ("examples", "demo")
"""Folders of the package whose lines count as the user's."""

_INSIDE: dict[str, bool] = {}
"""Whether a file belongs to the package."""

_DISTANCES: dict[tuple[int, int], tuple[Any, ...]] = {}
"""By the code that calls an op and the place in it: how many frames further out the user's frame is, the code of that
frame, the place and the line in it, and the calling code itself, so that its number belongs to no other code."""

_MOST = 10_000
"""So many places are kept."""


def line_of(op: str) -> tuple[str, int]:
    """Returns the file and line of the innermost frame outside of the package; a watcher calls it in `before`.

    A walk over all frames is slow. So the distance of that frame is kept for each place in the package that calls an op
    (`_DISTANCES`); it holds if that frame is at the same place in the same code as then.

    Args:
        op: the name of the op.
    """
    distance = 4  # inside of the caller are the op, the twin's function, `before` and this function
    caller: Any = sys._getframe(distance)
    if caller.f_code.co_name == op:  # the op that looked for the twin
        distance, caller = 5, sys._getframe(5)
    code = caller.f_code
    code_and_offset = id(code), caller.f_lasti
    cached_entry = _DISTANCES.get(code_and_offset)
    if cached_entry is not None:
        further_frames, outer_code, last_instruction, line, _ = cached_entry
        try:
            frame: Any = sys._getframe(distance + further_frames) if further_frames else caller
        except ValueError:  # the stack is not so deep
            frame = None
        if frame is not None and frame.f_lasti == last_instruction and frame.f_code is outer_code:
            return line  # type: ignore[no-any-return]
    further_frames, frame = 0, caller
    while frame is not None and _is_in_package(frame.f_code.co_filename):
        further_frames, frame = further_frames + 1, frame.f_back
    if frame is None:
        return "", 0
    if len(_DISTANCES) >= _MOST:
        _DISTANCES.clear()
    line = frame.f_code.co_filename, frame.f_lineno
    _DISTANCES[code_and_offset] = further_frames, frame.f_code, frame.f_lasti, line, code
    return line


def user_line(frame: Any) -> tuple[str, int]:
    """Returns the file and line of the innermost frame, from one outwards, that does not belong to the package."""
    while frame is not None and _is_in_package(frame.f_code.co_filename):
        frame = frame.f_back
    return ("", 0) if frame is None else (frame.f_code.co_filename, frame.f_lineno)


def line_text(line: tuple[str, int]) -> str:
    """Returns a line as "file:line"; an empty string if the user has none."""
    return f"{line[0]}:{line[1]}" if line[0] else ""


def line_of_error(error: BaseException) -> tuple[str, int]:
    """Returns the file and line of the innermost frame of an error's traceback that does not belong to the package."""
    line, trace = ("", 0), error.__traceback__
    while trace is not None:
        file = trace.tb_frame.f_code.co_filename
        line, trace = (line if _is_in_package(file) else (file, trace.tb_lineno)), trace.tb_next
    return line


def _is_in_package(file: str) -> bool:
    """Returns whether a file belongs to the package."""
    is_in_package = _INSIDE.get(file)
    if is_in_package is None:
        top_folder = file[len(_PACKAGE) + 1 :].replace("\\", "/").partition("/")[0]
        is_in_package = _INSIDE[file] = file.startswith(_PACKAGE) and top_folder not in _OF_USERS
    return is_in_package
