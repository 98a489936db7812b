"""Finds out whether an exception comes from the library or from a function that the caller passed to it."""

import os
import sys
from typing import Any

_STANDARD = os.path.dirname(os.__file__) + os.sep
_OWN = sys.modules[__name__.partition(".")[0]].__path__[0] + os.sep
_INSTALLED = ("site-packages", "dist-packages")


def passed_through_caller(error: BaseException, backend: Any) -> bool:
    """Returns whether an exception passed through the caller's code before it reached the frame that handles it.

    The caller's code is all code outside this package, the backend, the backend's library and the standard library.
    """
    library_folders = (_OWN, *map(_package_folder, (backend.tensor_type, type(backend))))
    traceback = error.__traceback__
    while traceback is not None:
        file = traceback.tb_frame.f_code.co_filename
        if not file.startswith((*library_folders, "<frozen ")) and not _is_standard(file):
            return True
        traceback = traceback.tb_next
    return False


def _package_folder(kind: type) -> str:
    """Returns the folder of the top-level package of a class, or the file if that is a module."""
    module = sys.modules[kind.__module__.partition(".")[0]]
    folders = list(getattr(module, "__path__", ()))
    return folders[0] + os.sep if folders else str(getattr(module, "__file__", None) or _OWN)


def _is_standard(file: str) -> bool:
    # On some systems third-party packages are in a folder inside that of the standard library.
    return file.startswith(_STANDARD) and not any(folder in file for folder in _INSTALLED)
