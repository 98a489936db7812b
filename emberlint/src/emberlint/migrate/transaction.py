"""Changes several files in one transaction: all of them or none."""

import ast
import difflib
import os
import tempfile
from collections.abc import Collection, Mapping
from contextlib import suppress
from pathlib import Path


class MigrationError(Exception):
    """Raised when the migration would break something; no file was written."""


def unified_diff(before: Mapping[str, str | None], after: Mapping[str, str | None]) -> str:
    """Returns the unified diff of some files; None stands for a missing file."""
    file_diffs: list[str] = []
    for path in sorted(after):
        old_text, new_text = before[path], after[path]
        if old_text == new_text:
            continue
        old_label, new_label = ("/dev/null" if text is None else path for text in (old_text, new_text))
        diff_lines = difflib.unified_diff(
            (old_text or "").splitlines(True), (new_text or "").splitlines(True), old_label, new_label
        )
        file_diffs.extend(
            line if line.endswith("\n") else f"{line}\n\\ No newline at end of file\n" for line in diff_lines
        )
    return "".join(file_diffs)


def ends_in_crlf(content: bytes) -> bool:
    """Returns whether most lines of a file end in CR LF."""
    return 2 * content.count(b"\r\n") > content.count(b"\n")


def write_files(root: Path, after: Mapping[str, str | None], windows: Collection[str] = ()) -> None:
    """Writes, creates and removes files; on any failure, restores those already changed.

    A file keeps its line ends; `windows` are the new files whose lines end in CR LF.

    Every text is parsed before the first file is written, and each file is replaced in one step, so that a reader sees
    either the old file or the new one.

    Raises:
        SyntaxError: if a text does not parse.
        OSError: if a file cannot be written.
    """
    for path, text in after.items():
        if text is not None:
            ast.parse(text, path)
    old_content_by_path = {path: (root / path).read_bytes() if (root / path).exists() else None for path in after}
    written_paths: list[str] = []
    try:
        for path, text in sorted(after.items(), key=lambda item: (item[1] is None, item[0])):
            written_paths.append(path)
            _replace_or_remove(
                root / path, None if text is None else _encode_text(text, old_content_by_path[path], path in windows)
            )
    except BaseException:
        for path in reversed(written_paths):
            _replace_or_remove(root / path, old_content_by_path[path])
        raise
    for path, text in after.items():
        if text is None:
            _remove_empty_folders((root / path).parent, root)


def _encode_text(text: str, old_content: bytes | None, is_windows: bool) -> bytes:
    uses_crlf = is_windows if old_content is None else ends_in_crlf(old_content)
    text_with_lf = text.replace("\r\n", "\n")
    return (text_with_lf.replace("\n", "\r\n") if uses_crlf else text_with_lf).encode()


def _replace_or_remove(path: Path, content: bytes | None) -> None:
    if content is None:
        path.unlink(missing_ok=True)
        return
    path.parent.mkdir(parents=True, exist_ok=True)
    file_descriptor, temporary_path = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}.")
    try:
        with os.fdopen(file_descriptor, "wb") as file:
            file.write(content)
            file.flush()
            os.fsync(file.fileno())
        if path.exists():
            os.chmod(temporary_path, path.stat().st_mode & 0o7777)
        else:
            os.chmod(temporary_path, 0o644)
        os.replace(temporary_path, path)
    except BaseException:
        with suppress(FileNotFoundError):
            os.unlink(temporary_path)
        raise


def _remove_empty_folders(folder: Path, root: Path) -> None:
    """Removes folders that contain nothing but compiled files."""
    while folder != root and folder.is_dir():
        remaining_paths = [path_inside for path_inside in folder.iterdir() if path_inside.name != "__pycache__"]
        if remaining_paths:
            return
        cache_folder = folder / "__pycache__"
        if cache_folder.is_dir():
            for file in cache_folder.iterdir():
                file.unlink()
            cache_folder.rmdir()
        folder.rmdir()
        folder = folder.parent
