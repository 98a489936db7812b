"""Ports the text of a file that stands alone."""

from pathlib import Path

from emberlint.config.settings import Settings
from emberlint.port import Ported, port
from emberlint.run.check import source_file
from emberlint.source.source_file import SourceFile

SETTINGS = Settings(root=Path("/nowhere"))


def parsed(text: str) -> SourceFile:
    """Returns the file with a text."""
    return source_file("library/a.py", text, SETTINGS)


def ported(text: str) -> Ported:
    """Returns the port of the file with a text, with marks."""
    return port(parsed(text), parsed, mark=True)
