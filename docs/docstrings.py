"""Turns docstrings in Google style into Markdown."""

import inspect
import re
from collections.abc import Callable, Sequence

_BLOCK = re.compile(r"(Args|Attributes|Returns|Yields|Raises|Examples?|See also|Shape|Dtype|Source):(?: (.+))?")
_ENTRY = re.compile(r"(?P<names>\*{0,2}\w+(?:, \*{0,2}\w+)*)(?: \((?P<kind>[^)]+)\))?: (?P<text>.+)")


def as_markdown(docstring: str) -> str:
    """Returns a docstring in Google style as Markdown.

    `Args:` and `Raises:` become definition lists, the other blocks become paragraphs with a bold head, and examples
    are fenced.
    """
    lines = inspect.cleandoc(docstring).splitlines()
    parts: list[str] = []
    while lines:
        block = _BLOCK.fullmatch(lines[0])
        if parts and parts[-1]:
            parts.append("")
        if block is None:
            parts += _fenced(_taken(lines, lambda line: not _BLOCK.fullmatch(line)))
        elif block[2]:  # the text begins on the line of the head, and ends with the paragraph
            paragraph = _taken(lines, lambda line: bool(line) and not _BLOCK.fullmatch(line))
            parts += [f"**{block[1]}:** {block[2]}", *paragraph[1:]]
        else:
            body = _taken(lines, lambda line: not line or line.startswith(" "))[1:]
            parts += [f"**{block[1]}**", "", *_definitions(inspect.cleandoc("\n".join(["", *body])).splitlines())]
    return re.sub(r"\n{3,}", "\n\n", "\n".join(parts)).strip()


def _taken(lines: list[str], belongs: Callable[[str], bool]) -> list[str]:
    """Returns the first line, and those after it while they belong to it, and removes these from `lines`."""
    end = next((i for i, line in enumerate(lines[1:], 1) if not belongs(line)), len(lines))
    taken, lines[:] = lines[:end], lines[end:]
    return taken


def _definitions(lines: list[str]) -> list[str]:
    """Returns the entries `name: text` of a block as a definition list; other text stays as it is."""
    if not lines or not _ENTRY.fullmatch(lines[0]):
        return _fenced(lines)
    found: list[str] = []
    for line in lines:
        entry = _ENTRY.fullmatch(line)
        if entry is None:
            found.append(f"  {line.strip()}".rstrip())
        else:
            names = ", ".join(f"`{name}`" for name in entry["names"].split(", "))
            kind = f" ({entry['kind']})" if entry["kind"] else ""
            found += ["", f"{names}{kind}", f": {entry['text']}"]
    return found[1:]


def _fenced(lines: Sequence[str]) -> list[str]:
    """Returns lines of text in which examples, from `>>>` to the next empty line, are fenced."""
    found: list[str] = []
    fenced = False
    for line in (*lines, ""):
        if line.startswith(">>>") and not fenced:
            found.append("```pycon")
            fenced = True
        elif not line and fenced:
            found.append("```")
            fenced = False
        found.append(line)
    return found[:-1]
