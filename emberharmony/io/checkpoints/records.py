"""`state.json`, the record of a checkpoint: what was saved, and the digests of the files of tensors beside it."""

import hashlib
import json
import os
from typing import Any, NamedTuple

from emberharmony.core.errors import CheckpointError, brief
from emberharmony.core.state.files import replace_text

NAME = "state.json"
FILES = ("model.safetensors", "optimizer.safetensors", "state.safetensors")
VERSION = 1
"""The version of the layout; a checkpoint of a later version cannot be read."""

_FIELDS = {"version": int, "step": int, "serial": int, "written": dict, "files": dict, "parts": dict, "extra": dict}


class Record(NamedTuple):
    """A checkpoint whose file `state.json` has been read: the path of its folder, and the content of the file.

    Attributes:
        path: the folder.
        content: the record.
    """

    path: str
    content: dict[str, Any]

    @property
    def step(self) -> int:
        """The step of the training after which the checkpoint was saved."""
        return int(self.content["step"])

    @property
    def serial(self) -> int:
        """The number of checkpoints that were saved before this one."""
        return int(self.content["serial"])


def write_record(folder: str, content: dict[str, Any]) -> None:
    """Writes the record of a checkpoint, with the digests of the files that are in its folder.

    Raises:
        OSError: if it cannot be written.
    """
    entry_by_file = {}
    for name in FILES:
        path = os.path.join(folder, name)
        if os.path.exists(path):
            entry_by_file[name] = {"sha256": digest(path), "bytes": os.path.getsize(path)}
    record = {**content, "files": entry_by_file}
    replace_text(os.path.join(folder, NAME), json.dumps({"sha256": _digest_of(record), **record}, indent=1))


def read_record(folder: str) -> Record:
    """Returns the record of a checkpoint after a check that it is whole and that no file is missing or cut off.

    Raises:
        CheckpointError: if it is not.
    """
    try:
        with open(os.path.join(folder, NAME), "rb") as stream:
            content = json.load(stream)
    except FileNotFoundError as error:
        raise CheckpointError("damaged", folder, f"has no {NAME}, so it is no whole checkpoint") from error
    except (OSError, ValueError, RecursionError) as error:
        raise CheckpointError("damaged", folder, f"{NAME} cannot be read: {brief(error)}") from error
    if not isinstance(content, dict) or content.get("sha256") != _digest_of(content):
        raise CheckpointError("damaged", folder, f"{NAME} has changed since it was written: its digest differs")
    if type(content.get("version")) is int and content["version"] > VERSION:
        raise CheckpointError(
            "damaged",
            folder,
            f"has version {content['version']}, but this EmberHarmony reads versions up to {VERSION}; update it",
        )
    wrong_fields = [name for name, field_class in _FIELDS.items() if type(content.get(name)) is not field_class]
    if wrong_fields or not content["files"].keys() <= set(FILES):
        raise CheckpointError("damaged", folder, f"{NAME} has wrong fields: {wrong_fields or list(content['files'])}")
    for name, file_fields in content["files"].items():
        try:
            file_size = os.path.getsize(os.path.join(folder, name))
        except OSError as error:
            raise CheckpointError("damaged", folder, f"{name} is missing") from error
        if file_size != file_fields.get("bytes"):
            raise CheckpointError(
                "damaged", folder, f"{name} has {file_size} bytes, expected {file_fields.get('bytes')}"
            )
    return Record(folder, content)


def checked_file_path(record: Record, name: str) -> str:
    """Returns the path of a file of tensors after a check that its bytes are those that were written.

    Raises:
        CheckpointError: if they are not.
    """
    path = os.path.join(record.path, name)
    try:
        actual_digest = digest(path)
    except OSError as error:
        raise CheckpointError("damaged", record.path, f"{name} cannot be read: {error}") from error
    if actual_digest != record.content["files"][name].get("sha256"):
        raise CheckpointError("damaged", record.path, f"{name} has changed since it was written: its digest differs")
    return path


def digest(path: str) -> str:
    """Returns the SHA-256 of a file in hexadecimal digits."""
    with open(path, "rb") as stream:
        return hashlib.file_digest(stream, "sha256").hexdigest()


def _digest_of(content: dict[str, Any]) -> str:
    digested_fields = {name: value for name, value in content.items() if name != "sha256"}
    return hashlib.sha256(json.dumps(digested_fields, sort_keys=True).encode()).hexdigest()
