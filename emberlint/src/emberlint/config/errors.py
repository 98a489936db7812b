"""What goes wrong before any file is read."""

from collections.abc import Iterable
from difflib import get_close_matches


class UsageError(ValueError):
    """A wrong configuration, rule name or path; the command exits with 2."""


def suggestion(word: str, known: Iterable[str]) -> str:
    """Return `; did you mean 'x'?` for the closest known word, or nothing."""
    close = get_close_matches(word, list(known), n=1)
    return f"; did you mean {close[0]!r}?" if close else ""
