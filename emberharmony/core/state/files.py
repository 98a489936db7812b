"""Writing a file in one step."""

import errno
import os
import stat
from collections.abc import Iterable
from functools import partial

from emberharmony.core.state.commits import Step, commit


def replace_text(path: str, text: str, then: Iterable[Step] = (), *, backup: str | None = None) -> None:
    """Writes a file so that at every moment either the old text or the new one is there, whole.

    An interruption, too, leaves one of the two, and no temporary file. A symbolic link stays, and the file that it
    names is written; the mode of the file stays; a new file gets the mode that `open` gives.

    Args:
        then: steps made together with the replacement: all of it happens, or nothing.
        backup: the old file stays under this name.

    Raises: OSError if the folder cannot be written, or if the path names something else than a file; the old file is
    then untouched.
    """
    target = os.path.realpath(path)
    mode = _mode(target)
    temporary, saved = (f"{target}.{os.getpid()}.{os.urandom(6).hex()}.{kind}.tmp" for kind in ("new", "old"))
    try:
        _write(temporary, text.encode(), mode)
        steps = [(os.replace, temporary, target)]
        if backup is not None and mode is not None:
            _write(saved, _content(target), mode)
            steps.insert(0, (os.replace, saved, backup))
        commit(steps, then)
    finally:
        for left in (temporary, saved):
            if os.path.exists(left):
                os.unlink(left)


def _mode(target: str) -> int | None:
    """Returns the permissions of a file, or None if there is none."""
    try:
        found = os.stat(target).st_mode
    except FileNotFoundError:
        return None
    if stat.S_ISDIR(found):
        raise IsADirectoryError(errno.EISDIR, os.strerror(errno.EISDIR), target)
    if not stat.S_ISREG(found):
        raise OSError(errno.EINVAL, "neither a file nor a link to one, so it cannot be replaced", target)
    return stat.S_IMODE(found)


def _write(path: str, content: bytes, mode: int | None) -> None:
    """Writes a new file, which nobody may read meanwhile who may not read it later."""
    with open(path, "xb", opener=partial(os.open, mode=0o666 if mode is None else mode)) as stream:
        if mode is not None:
            os.chmod(path, mode)
        stream.write(content)
        stream.flush()
        os.fsync(stream.fileno())


def _content(path: str) -> bytes:
    with open(path, "rb") as stream:
        return stream.read()
