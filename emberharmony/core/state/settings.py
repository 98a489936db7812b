"""The persisted settings: one small TOML file in the user's configuration folder.

`EMBERHARMONY_CONFIG` names another file. Reading never fails the program: what cannot be read is a warning.
Writing replaces the file in one step, keeps every line it does not own, and happens only when asked for.
"""

import os
import stat
import sys
import warnings
from collections.abc import Iterable

from emberharmony.core.errors import SettingsError, SettingsWarning
from emberharmony.core.state.commits import Step
from emberharmony.core.state.handlers import passing

KEYS = ("backend",)
_LARGEST = 2**20
"""The most bytes of a file that is read as settings."""


def path() -> str:
    """Returns the file the settings live in, whether it exists or not."""
    named = os.environ.get("EMBERHARMONY_CONFIG")
    if named:
        return named
    from platformdirs import user_config_dir  # imported when needed: 5 ms that a program told its backend need not pay

    return os.path.join(user_config_dir("emberharmony", appauthor=False), "config.toml")


def exists() -> bool:
    """Returns whether there is a settings file."""
    return not _never_written() and os.path.exists(path())


def read(key: str) -> str | None:
    """Returns a setting, or None if it is not set or, with a `SettingsWarning`, if the file cannot be read."""
    if not exists():
        return None
    file = path()
    import tomllib  # imported when needed: most programs have no settings file, and these modules cost 6 ms

    try:
        value = tomllib.loads(_text(file)).get(key)
    except RecursionError:
        _warn(f"{file} cannot be read and is passed over: it is nested too deeply")
        return None
    except (OSError, UnicodeDecodeError, tomllib.TOMLDecodeError, SettingsError) as error:
        if passing(error):
            raise
        _warn(f"{file} cannot be read and is passed over: {error}")
        return None
    if value is not None and not isinstance(value, str):
        _warn(f"{file}: {key} is {value!r}, not a string, and is passed over")
        return None
    return value


def write(key: str, value: str | None, then: Iterable[Step] = ()) -> str:
    """Sets a setting, or removes it if `value` is None; returns the file.

    A file that is not TOML is kept beside the new one as `<name>.bak`.

    Args:
        then: steps made together with the replacement of the file.

    Raises: OSError if the folder cannot be written; SettingsError if the file cannot be changed without harm. Whatever
    is raised, the old file is untouched.
    """
    if key not in KEYS:
        raise ValueError(f"unknown setting {key!r} (known: {', '.join(KEYS)})")
    import tomllib  # imported when needed: few programs write settings

    from emberharmony.core.state.files import replace_text
    from emberharmony.core.state.toml import CannotEditError, edited

    file = path()
    backup = None
    try:
        text = edited(_text(file), key, value)
    except (UnicodeDecodeError, tomllib.TOMLDecodeError):
        backup, text = f"{file}.bak", edited("", key, value)
    except FileNotFoundError:
        text = edited("", key, value)
    except RecursionError as error:
        raise _cannot_change(file, key, value, "it is nested too deeply") from error
    except (CannotEditError, SettingsError) as error:
        raise _cannot_change(file, key, value, str(error)) from error
    os.makedirs(os.path.dirname(os.path.realpath(file)), exist_ok=True)
    replace_text(file, text, then, backup=backup)
    return file


def _cannot_change(file: str, key: str, value: str | None, reason: str) -> SettingsError:
    wanted = f"remove {key} from it" if value is None else f'write {key} = "{value}" into it'
    return SettingsError(
        f"{file} cannot be changed: {reason}; {wanted} by hand, or name another file in EMBERHARMONY_CONFIG"
    )


def _never_written() -> bool:
    """Returns whether there is certainly no settings file: told on Linux without platformdirs, which costs 7 ms."""
    if sys.platform != "linux" or os.environ.get("EMBERHARMONY_CONFIG"):
        return False
    folder = os.environ.get("XDG_CONFIG_HOME", "").strip() or os.path.expanduser("~/.config")
    return not os.path.exists(os.path.join(folder, "emberharmony"))


def _text(file: str) -> str:
    """Returns what a file says, the null device an empty one; its line ends stay as they are.

    Raises: SettingsError for what is not a file, such as a pipe, which might never end; FileNotFoundError and others.
    """
    if os.path.realpath(file) == os.path.realpath(os.devnull):
        return ""
    if not stat.S_ISREG(os.stat(file).st_mode):
        raise SettingsError("it is not a file")
    with open(file, "rb") as stream:
        content = stream.read(_LARGEST + 1)
    if len(content) > _LARGEST:
        raise SettingsError(f"it is larger than {_LARGEST} bytes")
    return content.decode()


def _warn(message: str) -> None:
    warnings.warn(message, SettingsWarning, stacklevel=4)
