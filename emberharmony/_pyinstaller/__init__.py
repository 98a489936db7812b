"""The hooks for PyInstaller, which finds them through the entry point `pyinstaller40`."""

from pathlib import Path


def get_hook_dirs() -> list[str]:
    """Returns the folders that contain the hooks."""
    return [str(Path(__file__).parent)]
