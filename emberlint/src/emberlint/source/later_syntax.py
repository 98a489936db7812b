"""Says which later Python can parse a text that this one cannot: `python -m emberlint.source.later_syntax < FILE`.

LibCST has a parser of its own, which knows newer syntax than the Python that runs it. That parser takes minutes for
some thousand calls or signs in a row, and overflows the stack on some 1,400 nested brackets (LibCST 1.9). It gets a
process of its own, which may end badly.
"""

import re
import subprocess
import sys
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import libcst

_SECONDS = 5.0
_MARKS = re.compile(
    r"^\s*type\s+\w+|\b(?:def|class)\s+\w+\s*\[|\bexcept\b[^:\n]*,|\b(?:t|rt|tr)[\"']", re.IGNORECASE | re.MULTILINE
)
_FORMATTED = re.compile(r"\b(?:f|rf|fr)[\"']", re.IGNORECASE)


def later_python_hint(text: str, line: int) -> str:
    """Returns a hint if a text that this Python cannot parse is correct for a later Python, else an empty string.

    Args:
        text: The source.
        line: The line, from 1, at which this Python stops.
    """
    source_lines = text.splitlines()
    if not (_MARKS.search(text) or _FORMATTED.search("\n".join(source_lines[max(line - 2, 0) : line]))):
        return ""
    source_bytes = text.encode(errors="replace")
    command = [sys.executable, "-m", __name__]
    try:
        parser_run = subprocess.run(command, input=source_bytes, capture_output=True, timeout=_SECONDS, check=False)
    except subprocess.TimeoutExpired:
        return ""
    return parser_run.stdout.decode() if parser_run.returncode == 0 else ""


def syntax_hint(text: str) -> str:
    """Returns the hint of `later_python_hint`, from LibCST in this process."""
    import libcst as cst

    try:
        tree = cst.parse_module(text)
    except Exception:  # noqa: BLE001 -- a text that LibCST refuses too is simply wrong
        return ""
    running_version = sys.version_info[:2]
    later_features = [(version, feature) for version, feature in _newer_syntax(tree) if version > running_version]
    running_text = ".".join(map(str, running_version))
    if not later_features:
        return f"; it may be code for a later Python than {running_text}, which runs emberlint"
    first_version, feature = max(later_features)
    version_text = ".".join(map(str, first_version))
    advice_text = f"run it with Python {version_text}"
    return f"; Python {version_text} parses it ({feature}), but Python {running_text} runs emberlint: {advice_text}"


def _newer_syntax(tree: "libcst.Module") -> Iterator[tuple[tuple[int, int], str]]:
    """Yields the syntax newer than 3.11 in a tree of LibCST, with the Python that introduced it."""
    import libcst as cst

    pending_nodes: list[Any] = [tree]
    while pending_nodes:
        node = pending_nodes.pop()
        node_type_name = type(node).__name__
        if node_type_name == "TypeParam" and getattr(node, "default", None) is not None:
            yield (3, 13), "a default of a type parameter"
        elif node_type_name in ("TypeParameters", "TypeAlias"):
            yield (3, 12), "type parameters"
        elif node_type_name == "FormattedString":
            yield (3, 12), "quotes or lines inside an f-string"
        elif node_type_name == "ExceptHandler" and isinstance(node.type, cst.Tuple) and not node.type.lpar:
            yield (3, 14), "several exceptions without parentheses"
        elif node_type_name == "TemplatedString":
            yield (3, 14), "a template string"
        pending_nodes.extend(node.children)


if __name__ == "__main__":
    sys.stdout.write(syntax_hint(sys.stdin.buffer.read().decode()))
