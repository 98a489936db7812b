"""Writes and removes the folder of a step of a training, so that a folder is complete or does not exist."""

import errno
import os
import re
import shutil
import socket
import time
import zlib
from collections.abc import Callable
from contextlib import suppress

from emberharmony.core.state.files import flush_folder

_STEP = re.compile(r"step-(\d{6,})(?:\.\d+)?")
_LEFT = re.compile(r"step-\d{6,}\.tmp-(\d+)-([0-9a-f]{8})-[0-9a-f]{8}")
_DAY = 24 * 3600.0
_WRITING: set[str] = set()
"""The temporary folders that this process is writing."""


def step_folders(folder: str) -> list[tuple[int, str]]:
    """Returns (step, path) for each folder of a step in a folder of checkpoints; temporary ones are left out.

    Raises:
        OSError: if the folder cannot be read, other than because it does not exist.
    """
    try:
        file_names = os.listdir(folder)
    except FileNotFoundError:
        return []
    matches_and_names = [(match, name) for name in sorted(file_names) if (match := _STEP.fullmatch(name))]
    return [(int(match[1]), os.path.join(folder, name)) for match, name in matches_and_names]


def write_folder(folder: str, step: int, fill_folder: Callable[[str], None]) -> str:
    """Writes the folder of a step and returns its path; an error or interruption leaves no new folder.

    The files are written into a temporary folder, which gets its name when all of them are on the disk. A folder that
    the step has already stays; the new one then has a number behind its name.

    Args:
        folder: where the folder of the step is made; it is made if it does not exist.
        step: the step.
        fill_folder: writes the files, and flushes them to the disk.

    Raises:
        OSError: if the folder cannot be written.
    """
    if not os.path.isdir(folder):
        os.makedirs(folder, exist_ok=True)
        flush_folder(os.path.dirname(os.path.abspath(folder)))
    remove_abandoned_folders(folder)
    temporary_path = _temporary_path(folder, step)
    _WRITING.add(temporary_path)
    try:
        os.mkdir(temporary_path)
        fill_folder(temporary_path)
        flush_folder(temporary_path)
        path = _give_free_name(temporary_path, os.path.join(folder, f"step-{step:06}"))
    except BaseException:
        shutil.rmtree(temporary_path, ignore_errors=True)
        raise
    finally:
        _WRITING.discard(temporary_path)
    flush_folder(folder)
    return path


def _give_free_name(temporary: str, path: str) -> str:
    """Renames a temporary folder to a path, or to that path with the first free number, and returns the new path."""
    for suffix_number in range(1, 10_000):
        free_path = path if suffix_number == 1 else f"{path}.{suffix_number}"
        # On POSIX, renaming a folder to the path of an empty folder replaces that folder.
        if not os.path.lexists(free_path):
            try:
                os.rename(temporary, free_path)
            except OSError as error:  # another process may have taken the name
                if error.errno not in (errno.ENOTEMPTY, errno.EEXIST):
                    raise
            else:
                return free_path
    raise FileExistsError(errno.EEXIST, "there are 9,999 folders of this step", path)


def discard_folder(path: str, step: int) -> None:
    """Removes the folder of a step after renaming it to a temporary name, so that no half-removed folder is seen.

    Raises:
        OSError: if the folder cannot be renamed; it is whole then.
    """
    temporary_path = _temporary_path(os.path.dirname(path), step)
    os.rename(path, temporary_path)
    shutil.rmtree(temporary_path, ignore_errors=True)


def remove_abandoned_folders(folder: str) -> None:
    """Removes the temporary folders of processes that have ended."""
    for name in os.listdir(folder):
        path, match = os.path.join(folder, name), _LEFT.fullmatch(name)
        if match and path not in _WRITING and _is_abandoned(path, int(match[1]), match[2]):
            shutil.rmtree(path, ignore_errors=True)


def _temporary_path(folder: str, step: int) -> str:
    return os.path.join(folder, f"step-{step:06}.tmp-{os.getpid()}-{_host_hash()}-{os.urandom(4).hex()}")


def _host_hash() -> str:
    return f"{zlib.crc32(socket.gethostname().encode()):08x}"


def _is_abandoned(path: str, process: int, host: str) -> bool:
    """Returns whether the process that wrote a temporary folder has ended.

    Of a process on another machine nothing is known, so its folder counts as left after a day without a change; so it
    does on Windows, where `os.kill` would end the process.
    """
    if host != _host_hash() or os.name == "nt":
        with suppress(OSError):
            return time.time() - os.stat(path).st_mtime > _DAY
        return False
    if process == os.getpid():  # an earlier process with the same number wrote it
        return True
    try:
        os.kill(process, 0)
    except (ProcessLookupError, OverflowError):
        return True
    except PermissionError:  # the process runs for another user
        return False
    return False
