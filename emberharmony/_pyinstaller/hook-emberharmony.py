"""Includes in a frozen program the modules that EmberHarmony imports by name: backends, gradient rules, transforms.

PyInstaller cannot find such imports by itself. A backend whose library is installed is included together with that
library; `--exclude-module torch` leaves PyTorch out. Modules that only tests and the command line need are left out
unless the program imports them.
"""

from PyInstaller.utils.hooks import collect_data_files, collect_submodules

_LEFT_OUT = {"_pyinstaller", "cli", "demo", "examples", "testing"}


def _runs(name: str) -> bool:
    """Returns whether a program that calls ops may need a module of the package."""
    return _LEFT_OUT.isdisjoint(name.split(".")[1:2])


hiddenimports = collect_submodules("emberharmony", filter=_runs, on_error="ignore")
datas = collect_data_files("emberharmony.data")
