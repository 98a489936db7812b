"""The hook that PyInstaller finds through the entry point `pyinstaller40`."""

from pathlib import Path


def get_hook_dirs() -> list[str]:
    """Returns the folders of hooks."""
    return [str(Path(__file__).parent)]
