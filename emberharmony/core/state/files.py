"""Atomic replacement of a file.

A file is written under another name in the same folder, flushed and renamed, and then the folder is flushed.
`replace_bytes` is no generator with `contextmanager`: a signal that arrives in the code of `contextlib` would leave the
temporary file until the traceback of the exception is freed. Only `with` holds its `__exit__`, as for `scopes`, so the
block ends as soon as `with` lets go of it.
"""

import errno
import os
import shutil
import stat
from _weakref import ref  # weakref.ref, without the import of weakref
from collections.abc import Callable, Iterable
from contextlib import suppress
from functools import partial
from typing import TYPE_CHECKING, Any, BinaryIO

from emberharmony.core.state.commits import Step, commit


def replace_bytes(path: str, then: Iterable[Step] = (), *, backup: str | None = None) -> "Replacement":
    """Returns a context manager for a binary stream whose content replaces a file when the block ends.

    The file is replaced atomically: at every moment it has either its whole old content or the whole new one, which is
    on the disk when the block has ended. If the block or the replacement raises, `KeyboardInterrupt` included, the old
    file is unchanged and no temporary file remains. A symbolic link stays a link: the file that it refers to is
    replaced. The mode of the file stays; a new file gets the mode that `open` gives. Other hard links keep the old
    content. If several writers replace a file at once, it has the content of one of them.

    The block must not close the stream.

    Args:
        then: steps that run together with the replacement: either all take effect or none.
        backup: the name under which to keep the old file.

    Raises:
        OSError: if the folder cannot be written, or if the path is neither a file nor a link to a file; on Windows also
            if another program has the file open. If the folder cannot be flushed to the disk, the file has the new
            content already.
    """
    return Replacement(path, then, backup)


class Replacement:
    """The context manager that `replace_bytes` returns; it is entered once.

    A signal handler may raise before `with` has registered the block, or before the first instruction of
    `_end_replacement`, where no `finally` helps. But `with` alone holds the function that it gets as `__exit__`. If
    that function is dropped before it has ended the block, a weak reference to it does so.
    """

    def __init__(self, path: str, then: Iterable[Step], backup: str | None) -> None:
        self.target = os.path.realpath(path)
        self.mode = _permissions(self.target)
        self.then, self.backup = then, backup
        # The names do not contain that of the file, because they could become too long.
        path_prefix = os.path.join(os.path.dirname(self.target), f".{os.getpid()}.{os.urandom(6).hex()}")
        self.temporary, self.saved = f"{path_prefix}.new.tmp", f"{path_prefix}.old.tmp"
        self.stream: BinaryIO | None = None

    def __enter__(self) -> BinaryIO:
        self.stream = _create_file(self.temporary, self.mode)
        return self.stream

    if TYPE_CHECKING:

        def __exit__(self, *raised: object) -> None: ...

    def replace(self) -> None:
        """Replaces the file by the content of the stream."""
        assert self.stream is not None
        _sync_and_close(self.stream)
        steps = [(os.replace, self.temporary, self.target)]
        folders = {os.path.dirname(self.target)}
        if self.backup is not None and self.mode is not None:
            with _create_file(self.saved, self.mode) as backup_stream, open(self.target, "rb") as old_file:
                shutil.copyfileobj(old_file, backup_stream)
                _sync_and_close(backup_stream)
            steps.insert(0, (os.replace, self.saved, self.backup))
            folders.add(os.path.dirname(os.path.abspath(self.backup)))
        commit(steps, self.then)
        for folder in folders:
            flush_folder(folder)

    def clean(self, *dropped: object) -> None:
        """Removes the temporary files that are left."""
        # Windows cannot remove an open file. Closing writes the rest of the buffer, which fails again on a full disk.
        if self.stream is not None:
            with suppress(OSError):
                self.stream.close()
        for leftover in (self.temporary, self.saved):
            with suppress(FileNotFoundError):
                os.unlink(leftover)


def _end_replacement(
    replacement: Replacement, exit_references: list[Any], kind: object = None, *raised: object
) -> None:
    try:
        if kind is None:
            replacement.replace()
    finally:
        replacement.clean()
    # The weak reference is dropped last, because until here it must remove the files after an interruption.
    exit_references.clear()


def _end_in_stack(replacement: Replacement, *raised: object) -> None:
    _end_replacement(replacement, [], *raised)


class _Exit:
    """The descriptor of `Replacement.__exit__`: gives `with` a function that ends the block even if it is dropped."""

    def __get__(self, replacement: Replacement | None, kind: type[Replacement]) -> Callable[..., None]:
        if replacement is None:  # contextlib.ExitStack reads it from the class
            return _end_in_stack
        exit_references: list[Any] = []
        exit_function = partial(_end_replacement, replacement, exit_references)
        exit_references.append(ref(exit_function, replacement.clean))
        return exit_function


if not TYPE_CHECKING:
    Replacement.__exit__ = _Exit()


def replace_text(path: str, text: str, then: Iterable[Step] = (), *, backup: str | None = None) -> None:
    """Replaces the text of a file, in UTF-8, as `replace_bytes` does.

    Args:
        then: steps that run together with the replacement: either all take effect or none.
        backup: the name under which to keep the old file.

    Raises:
        OSError: if the folder cannot be written, or if the path is neither a file nor a link to a file.
    """
    with replace_bytes(path, then, backup=backup) as stream:
        stream.write(text.encode())


def _permissions(target: str) -> int | None:
    """Returns the permissions of a file, or None if it does not exist.

    Raises:
        OSError: if the path is neither a file nor a link to a file.
    """
    try:
        mode = os.stat(target).st_mode
    except FileNotFoundError:
        return None
    if stat.S_ISDIR(mode):
        raise IsADirectoryError(errno.EISDIR, os.strerror(errno.EISDIR), target)
    if not stat.S_ISREG(mode):
        raise OSError(errno.EINVAL, "neither a file nor a link to one, so it cannot be replaced", target)
    return stat.S_IMODE(mode)


def _create_file(path: str, mode: int | None) -> BinaryIO:
    """Returns a new file, which has its final mode before its content, so that it is never readable by more users."""
    open_with_mode = partial(os.open, mode=0o666 if mode is None else mode)
    stream = open(path, "xb", opener=open_with_mode)  # noqa: SIM115  (the caller closes it)
    try:
        if mode is not None:
            os.chmod(path, mode)  # adds the bits that the umask has removed
    except BaseException:
        stream.close()
        raise
    return stream


def _sync_and_close(stream: BinaryIO) -> None:
    """Closes a file after its content is on the disk: otherwise a power failure could leave an empty file."""
    stream.flush()
    os.fsync(stream.fileno())
    stream.close()


def flush_folder(folder: str) -> None:
    """Waits until the names of the files in a folder are on the disk, where the system can do so."""
    directory_flag = getattr(os, "O_DIRECTORY", None)
    if directory_flag is None:  # Windows cannot open a folder; it writes the names itself
        return
    try:
        descriptor = os.open(folder, os.O_RDONLY | directory_flag)
    except PermissionError:  # the folder may be written, but not read
        return
    try:
        os.fsync(descriptor)
    except OSError as error:
        if error.errno not in (errno.EINVAL, errno.ENOTSUP):  # some network file systems have no such call
            raise
    finally:
        os.close(descriptor)
