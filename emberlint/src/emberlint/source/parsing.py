"""Parses Python source."""

import ast
import sys
import warnings
from collections.abc import Iterator
from contextlib import contextmanager

# The parser builds a tree of three times this depth: a flat sum of 4,000 terms needs 4,000 levels. With this limit it
# stays far below the size of the stack.
DEEP = 6000


def parse(text: str, target: tuple[int, int] | None = None) -> ast.Module:
    """Returns the syntax tree of a text.

    Args:
        text: The source.
        target: The oldest Python for which the text is written; its parser refuses newer syntax.

    Raises:
        SyntaxError: if the text is not Python of that version.
        ValueError: if the text holds null bytes.
        RecursionError: if its expressions are nested too deeply.
    """
    try:
        return _parse_or_error(text, target)
    except MemoryError as error:  # the parser of Python 3.11 raises it where its own stack is too short
        raise RecursionError("nested too deeply") from error


def _parse_or_error(text: str, target: tuple[int, int] | None) -> ast.Module:
    feature_version = None if target is None or target >= sys.version_info[:2] else target
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", SyntaxWarning)
        warnings.simplefilter("ignore", DeprecationWarning)
        try:
            return ast.parse(text, feature_version=feature_version)
        except RecursionError:
            with raise_recursion_limit():
                return ast.parse(text, feature_version=feature_version)


@contextmanager
def raise_recursion_limit() -> Iterator[None]:
    """Raises Python's recursion limit while a block runs, for source with long chains of operators."""
    limit_before = sys.getrecursionlimit()
    sys.setrecursionlimit(max(limit_before, DEEP))
    try:
        yield
    finally:
        sys.setrecursionlimit(limit_before)
