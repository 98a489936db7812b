"""The persisted settings: one small TOML file in the user's configuration folder.

`EMBERHARMONY_CONFIG` names another file. Reading never fails the program: what cannot be read is a warning.
Writing replaces the file in one step, keeps every line it does not own, and happens only when asked for.
"""

import os
import re
import tempfile
import tomllib
import warnings
from pathlib import Path

from emberharmony.core.errors import SettingsWarning

KEYS = ("backend",)


def path() -> Path:
    """Returns the file the settings live in, whether it exists or not."""
    named = os.environ.get("EMBERHARMONY_CONFIG")
    if named:
        return Path(named)
    from platformdirs import user_config_path  # imported when needed: 5 ms that most programs need not pay

    return user_config_path("emberharmony", appauthor=False) / "config.toml"


def read(key: str) -> str | None:
    """Returns a setting, or None if it is not set or, with a `SettingsWarning`, if the file cannot be read."""
    file = path()
    try:
        value = tomllib.loads(file.read_text(encoding="utf-8")).get(key)
    except FileNotFoundError:
        return None
    except (OSError, UnicodeDecodeError, tomllib.TOMLDecodeError) as error:
        _warn(f"{file} cannot be read and is passed over: {error}")
        return None
    if value is not None and not isinstance(value, str):
        _warn(f"{file}: {key} is {value!r}, not a string, and is passed over")
        return None
    return value


def write(key: str, value: str | None) -> Path:
    """Sets a setting, or removes it if `value` is None; returns the file.

    A file that is no TOML is kept beside the new one as `<name>.bak`. Raises: OSError if the folder cannot be written;
    the old file is then untouched.
    """
    if key not in KEYS:
        raise ValueError(f"unknown setting {key!r} (known: {', '.join(KEYS)})")
    file = path()
    lines = _kept_lines(file, key)
    if value is not None:
        lines.insert(0, f'{key} = "{value}"')
    file.parent.mkdir(parents=True, exist_ok=True)
    handle, temporary = tempfile.mkstemp(prefix=file.name, suffix=".tmp", dir=file.parent)
    try:
        with os.fdopen(handle, "w", encoding="utf-8") as stream:
            stream.write("".join(f"{line}\n" for line in lines))
            stream.flush()
            os.fsync(stream.fileno())
        os.replace(temporary, file)
    except BaseException:
        os.unlink(temporary)
        raise
    return file


def _kept_lines(file: Path, key: str) -> list[str]:
    """Returns the lines of the file but the one that sets `key` at top level."""
    try:
        text = file.read_text(encoding="utf-8")
        tomllib.loads(text)
    except FileNotFoundError:
        return []
    except (UnicodeDecodeError, tomllib.TOMLDecodeError):
        os.replace(file, file.with_name(file.name + ".bak"))
        return []
    lines = text.splitlines()
    first_table = next((i for i, line in enumerate(lines) if line.lstrip().startswith("[")), len(lines))
    return [line for i, line in enumerate(lines) if i > first_table or not re.match(rf"\s*{re.escape(key)}\s*=", line)]


def _warn(message: str) -> None:
    warnings.warn(message, SettingsWarning, stacklevel=4)
