"""Atomic replacement of a file."""

import errno
import os
import stat
from collections.abc import Iterable
from functools import partial

from emberharmony.core.state.commits import Step, commit


def replace_text(path: str, text: str, then: Iterable[Step] = (), *, backup: str | None = None) -> None:
    """Replaces the text of a file atomically: at every moment the file has either its whole old text or the new one.

    This holds if the call is interrupted, and no temporary file remains then. A symbolic link stays a link: the file
    that it refers to is replaced. The mode of the file stays; a new file gets the mode that `open` gives. If an error
    is raised, the old file is unchanged.

    Args:
        then: steps that run together with the replacement: either all take effect or none.
        backup: the name under which to keep the old file.

    Raises:
        OSError: if the folder cannot be written, or if the path is neither a file nor a link to a file.
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
    """Returns the permissions of a file, or None if it does not exist.

    Raises:
        OSError: if the path is neither a file nor a link to a file.
    """
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
    """Writes a new file, which has its final mode before its content, so that it is never readable by more users."""
    with open(path, "xb", opener=partial(os.open, mode=0o666 if mode is None else mode)) as stream:
        if mode is not None:
            os.chmod(path, mode)  # adds the bits that the umask has removed
        stream.write(content)
        # The content must be on the disk before the file is renamed, or a power failure could leave an empty file.
        stream.flush()
        os.fsync(stream.fileno())


def _content(path: str) -> bytes:
    with open(path, "rb") as stream:
        return stream.read()
