"""The persistent settings: one small TOML file in the user's configuration folder.

The environment variable `EMBERHARMONY_CONFIG` names another file. A file that cannot be read causes a warning and never
an error. The file is written only on request, is replaced atomically, and keeps all lines but that of the setting.
"""

import os
import stat
import sys
import warnings
from collections.abc import Iterable

from emberharmony.core.errors import SettingsError, SettingsWarning, suggest
from emberharmony.core.state.commits import Step
from emberharmony.core.state.handlers import passing_error

KEYS = ("backend",)
_LARGEST = 2**20
"""The size in bytes of the largest settings file that is read."""


def path() -> str:
    """Returns the path of the settings file, whether the file exists or not."""
    environment_path = os.environ.get("EMBERHARMONY_CONFIG")
    if environment_path:
        return environment_path
    from platformdirs import user_config_dir  # imported here: it costs 5 ms, and few programs need it

    return os.path.join(user_config_dir("emberharmony", appauthor=False), "config.toml")


def cache_folder(name: str) -> str | None:
    """Returns the folder in which a library may keep what it has compiled; None if it cannot be made."""
    from platformdirs import user_cache_dir  # as above

    folder_path = os.path.join(user_cache_dir("emberharmony", appauthor=False), name)
    try:
        os.makedirs(folder_path, exist_ok=True)
    except OSError:
        return None
    return folder_path


def exists() -> bool:
    """Returns whether the settings file exists."""
    return not _is_surely_absent() and os.path.exists(path())


def read(key: str) -> str | None:
    """Returns a setting, or None if it is not set.

    If the file cannot be read or the setting is not a string, issues a `SettingsWarning` and returns None.
    """
    if not exists():
        return None
    file_path = path()
    import tomllib  # imported here: it costs 6 ms, and most programs have no settings file

    try:
        value_by_key = tomllib.loads(_file_text(file_path))
    except RecursionError:
        _warn(f"{file_path} cannot be read and is ignored: it is nested too deeply")
        return None
    except (OSError, UnicodeDecodeError, tomllib.TOMLDecodeError, SettingsError) as error:
        if passing_error(error):
            raise
        _warn(f"{file_path} cannot be read and is ignored: {error}")
        return None
    setting = value_by_key.get(key)
    for unknown_key in value_by_key.keys() - KEYS:
        _warn(f"{file_path}: {unknown_key!r} is no setting and is ignored{suggest(unknown_key, KEYS)}")
    if setting is not None and not isinstance(setting, str):
        _warn(f"{file_path}: {key} is ignored, because it must be a string, not {setting!r}")
        return None
    return setting


def write(key: str, value: str | None, then: Iterable[Step] = ()) -> str:
    """Writes a setting, or removes it if `value` is None, and returns the path of the file.

    A file that is not TOML is kept beside the new one as `<name>.bak`. If an error is raised, the old file is
    unchanged.

    Args:
        then: steps that run together with the replacement of the file: either all take effect or none.

    Raises:
        OSError: if the folder cannot be written.
        SettingsError: if the file cannot be changed without damage to the rest of it.
        ValueError: if the key is unknown.
    """
    if key not in KEYS:
        raise ValueError(f"unknown setting {key!r} (known: {', '.join(KEYS)})")
    import tomllib  # imported here: few programs write settings

    from emberharmony.core.state.files import replace_text
    from emberharmony.core.state.toml import CannotEditError, edit_key

    file_path = path()
    backup_path = None
    try:
        new_text = edit_key(_file_text(file_path), key, value)
    except (UnicodeDecodeError, tomllib.TOMLDecodeError):
        backup_path, new_text = f"{file_path}.bak", edit_key("", key, value)
    except FileNotFoundError:
        new_text = edit_key("", key, value)
    except RecursionError as error:
        raise _change_error(file_path, key, value, "it is nested too deeply") from error
    except (CannotEditError, SettingsError) as error:
        raise _change_error(file_path, key, value, str(error)) from error
    os.makedirs(os.path.dirname(os.path.realpath(file_path)), exist_ok=True)
    replace_text(file_path, new_text, then, backup=backup_path)
    return file_path


def _change_error(file: str, key: str, value: str | None, reason: str) -> SettingsError:
    change_text = f"remove {key} from it" if value is None else f'write {key} = "{value}" into it'
    return SettingsError(
        f"{file} cannot be changed: {reason}; {change_text} by hand, or name another file in EMBERHARMONY_CONFIG"
    )


def _is_surely_absent() -> bool:
    """Returns whether the settings file certainly does not exist; on Linux this saves the import of platformdirs."""
    if sys.platform != "linux" or os.environ.get("EMBERHARMONY_CONFIG"):
        return False
    folder = os.environ.get("XDG_CONFIG_HOME", "").strip() or os.path.expanduser("~/.config")
    return not os.path.exists(os.path.join(folder, "emberharmony"))


def _file_text(file: str) -> str:
    """Returns the text of a file with its line ends, or an empty text for the null device.

    Raises:
        SettingsError: if the path is not a file, such as a pipe, which might never end, or if the file is too large.
        OSError: if the file cannot be read.
        UnicodeDecodeError: if the file is not UTF-8.
    """
    if os.path.realpath(file) == os.path.realpath(os.devnull):
        return ""
    if not stat.S_ISREG(os.stat(file).st_mode):
        raise SettingsError("it is not a file")
    with open(file, "rb") as stream:
        content_bytes = stream.read(_LARGEST + 1)
    if len(content_bytes) > _LARGEST:
        raise SettingsError(f"it is larger than {_LARGEST} bytes")
    return content_bytes.decode()


def _warn(message: str) -> None:
    warnings.warn(message, SettingsWarning, stacklevel=4)
