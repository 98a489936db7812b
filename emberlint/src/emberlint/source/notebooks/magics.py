"""IPython's own syntax in the cells of a notebook: magics, commands of the shell and questions for help."""

import re
from collections.abc import Iterator

# The cell magics whose cell runs as Python in the notebook's own process; the cells of the others are not checked.
PYTHON_CELLS = frozenset({"capture", "debug", "ipytest", "prun", "time", "timeit"})
LINE = re.compile(r"[^\r\n]*(?:\r\n|\r|\n)|[^\r\n]+")
_ESCAPED = ("%", "!", "?", ",", ";", "/")
_MAYBE = re.compile(r"^[ \t]*[%!?,;/]|=[ \t]*[%!]|\?[ \t]*$", re.MULTILINE)
_ASSIGNED = re.compile(r"[^=!<>%'\"#]*=[ \t]*(?=[!%](?!=))")
_PART = re.compile(r"#|\"\"\"|'''|\"(?:[^\"\\]|\\.)*\"?|'(?:[^'\\]|\\.)*'?|[(\[{]|[)\]}]|\\\Z")


def cell_magic(source: str) -> str | None:
    """Returns the name of the magic of a whole cell, such as `time` of `%%time`, or None."""
    first_text = source.lstrip("\n")
    return first_text[2:].split(maxsplit=1)[0].rstrip("!") if re.match(r"%%\w", first_text) else None


def python_of_magics(source: str) -> dict[int, str]:
    """Returns Python text for each line of a cell that is not Python, by the number of the line.

    `    %matplotlib inline` becomes `    pass`, and `files = !ls` becomes `files = get_ipython()`. The line of a cell
    magic becomes an empty line.
    """
    if not _MAYBE.search(source):
        return {}
    return {number: text for number, text in enumerate(_stand_ins(LINE.findall(source))) if text is not None}


def _stand_ins(lines: list[str]) -> Iterator[str | None]:
    """Yields for each line the Python text that stands for it, or None if it is Python."""
    line_state = _LineState()
    indent: str | None = None  # the indentation of a magic that continues on the next line
    is_first = True
    for line in lines:
        line_text = line.rstrip("\r\n")
        command_text = line_text.strip(" \t")
        stand_in = None
        if indent is not None:
            stand_in = f"{indent}pass"
        elif line_state.is_start:
            stand_in = "" if is_first and command_text.startswith("%%") else _python_of_line(line_text)
            indent = line_text[: len(line_text) - len(line_text.lstrip())] if stand_in is not None else None
        is_first = is_first and not command_text
        if stand_in is None:
            line_state.read_line(line_text)
            if line_state.is_start and not line_state.is_comment and command_text.endswith("?"):
                stand_in = f"{line_text[: len(line_text) - len(line_text.lstrip())]}pass"  # `ops.sin?`
        elif not line_text.endswith("\\"):
            indent = None
        yield stand_in


def _python_of_line(text: str) -> str | None:
    command_text = text.lstrip(" \t")
    indent = text[: len(text) - len(command_text)]
    if command_text.startswith(_ESCAPED):
        return f"{indent}pass"
    assignment_match = _ASSIGNED.match(text)
    return f"{assignment_match[0].rstrip()} get_ipython()" if assignment_match else None


class _LineState:
    """The state after a line: an open string, open brackets, a backslash at the end, or a comment."""

    def __init__(self) -> None:
        self.quote = ""
        self.depth = 0
        self.is_continued = self.is_comment = False

    @property
    def is_start(self) -> bool:
        """Whether the next line begins a statement."""
        return not (self.quote or self.depth > 0 or self.is_continued)

    def read_line(self, text: str) -> None:
        """Updates the state by a line of Python."""
        offset = 0
        self.is_continued = self.is_comment = False
        while offset < len(text):
            if self.quote:
                token_match = re.compile(rf"(?:[^\\]|\\.)*?{self.quote}").match(text, offset)
                if token_match is None:
                    return
                self.quote = ""
            else:
                token_match = _PART.search(text, offset)
                if token_match is None:
                    return
                token_text = token_match[0]
                if token_text == "#":
                    self.is_comment = True
                    return
                if token_text in ('"""', "'''"):
                    self.quote = token_text
                elif token_text in "([{":
                    self.depth += 1
                elif token_text in ")]}":
                    self.depth -= 1
                elif token_text == "\\" or (token_text[0] in "\"'" and token_text.endswith("\\")):
                    self.is_continued = True
            offset = token_match.end()
