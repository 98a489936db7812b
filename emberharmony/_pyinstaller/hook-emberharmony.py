"""Includes in a frozen program what EmberHarmony imports by name: backends, gradient rules, transforms.

A backend whose library is installed comes along with that library; `--exclude-module torch` leaves PyTorch out.
What tests and the command line need is left out unless the program imports it.
"""

from PyInstaller.utils.hooks import collect_data_files, collect_submodules

_LEFT_OUT = {"_pyinstaller", "cli", "demo", "examples", "testing"}


def _runs(name: str) -> bool:
    """Returns whether a program that calls ops may need a module."""
    return _LEFT_OUT.isdisjoint(name.split(".")[1:2])


hiddenimports = collect_submodules("emberharmony", filter=_runs, on_error="ignore")
datas = collect_data_files("emberharmony.data")
