"""Parses Python source, and says which Python can parse what this one cannot."""

import ast
import re
import sys
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

# The parser builds a tree of three times this depth: a flat sum of 4,000 terms needs 4,000 levels. With this limit it
# stays far below the size of the stack.
DEEP = 6000

# Python's tokenizer refuses more brackets inside each other.
BRACKETS = 200
_TRIPLE = r'"{3}(?:\\.|[^\\])*?"{3}|' + r"'{3}(?:\\.|[^\\])*?'{3}"
_SINGLE = r'"(?:\\.|[^"\\\n])*"|' + r"'(?:\\.|[^'\\\n])*'"
_STRING_OR_COMMENT = re.compile(rf"{_TRIPLE}|{_SINGLE}|#[^\n]*", re.DOTALL)


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
        return _parse(text, target)
    except MemoryError as error:  # the parser of Python 3.11 raises it where its own stack is too short
        raise RecursionError("nested too deeply") from error


def _parse(text: str, target: tuple[int, int] | None) -> ast.Module:
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

    LibCST has a parser of its own, which knows newer syntax than the Python that runs it. That parser overflows the
    stack on some 1,400 nested brackets (LibCST 1.9), so it gets no text that every Python refuses for its brackets.
    """
    if _is_deep(text):
        return ""
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


def _is_deep(text: str) -> bool:
    """Returns whether brackets may be nested more deeply than Python allows, also if those in strings count."""
    return any(_depth(each) > BRACKETS for each in (text, _STRING_OR_COMMENT.sub("", text)))


def _depth(text: str) -> int:
    """Returns the greatest number of open brackets."""
    depth = deepest = 0
    for bracket in re.findall(r"[][(){}]", text):
        depth = depth + 1 if bracket in "([{" else max(depth - 1, 0)
        deepest = max(deepest, depth)
    return deepest


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
