"""Parses Python source, and says which Python can parse what this one cannot."""

import ast
import sys
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

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
    version = None if target is None or target >= sys.version_info[:2] else target
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", SyntaxWarning)
        warnings.simplefilter("ignore", DeprecationWarning)
        try:
            return ast.parse(text, feature_version=version)
        except RecursionError:
            with deep():
                return ast.parse(text, feature_version=version)


@contextmanager
def deep() -> Iterator[None]:
    """Raises the limit of recursion for source with long chains of operators."""
    before = sys.getrecursionlimit()
    sys.setrecursionlimit(max(before, DEEP))
    try:
        yield
    finally:
        sys.setrecursionlimit(before)


def later_python(text: str) -> str:
    """Returns a hint if a text that this Python cannot parse is correct for a later Python, else an empty string.

    LibCST has a parser of its own, which knows newer syntax than the Python that runs it.
    """
    try:
        import libcst as cst
    except ImportError:  # only `emberlint fix` needs it
        return ""
    try:
        tree = cst.parse_module(text)
    except Exception:  # noqa: BLE001 -- a text that LibCST refuses too is simply wrong
        return ""
    running = sys.version_info[:2]
    later = [(since, what) for since, what in _newer(tree) if since > running]
    here = ".".join(map(str, running))
    if not later:
        return f"; it may be code for a later Python than {here}, which runs emberlint"
    since, what = max(later)
    version = ".".join(map(str, since))
    return f"; Python {version} parses it ({what}), but Python {here} runs emberlint: run it with Python {version}"


def _newer(tree: Any) -> Iterator[tuple[tuple[int, int], str]]:
    """Yields the syntax newer than 3.11 in a tree of LibCST, with the Python that introduced it."""
    import libcst as cst

    pending = [tree]
    while pending:
        node = pending.pop()
        kind = type(node).__name__
        if kind == "TypeParam" and getattr(node, "default", None) is not None:
            yield (3, 13), "a default of a type parameter"
        elif kind in ("TypeParameters", "TypeAlias"):
            yield (3, 12), "type parameters"
        elif kind == "FormattedString":
            yield (3, 12), "quotes or lines inside an f-string"
        elif kind == "ExceptHandler" and isinstance(node.type, cst.Tuple) and not node.type.lpar:
            yield (3, 14), "several exceptions without parentheses"
        elif kind == "TemplatedString":
            yield (3, 14), "a template string"
        pending.extend(node.children)
