"""The error for a wrong call or configuration, and suggestions for misspelt words."""

from collections.abc import Iterable
from difflib import get_close_matches


class UsageError(ValueError):
    """Raised for a wrong configuration, rule name or path; the command exits with 2."""


def suggestion(word: str, known: Iterable[str]) -> str:
    """Returns `; did you mean 'x'?` for the closest known word, or an empty string."""
    close_words = get_close_matches(word, list(known), n=1)
    return f"; did you mean {close_words[0]!r}?" if close_words else ""
