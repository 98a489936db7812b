"""Checks the English of docstrings, comments and pages: `python tools/prose.py [FILE ...]`.

Each rule is a pattern with advice; CONTRIBUTING.md gives the reasons. Without arguments it checks all files that git
tracks. The exit status is 1 if it finds anything. A line that ends in `prose: ignore` is skipped.

`python tools/prose.py --sample COUNT SEED [FILE ...]` prints comments and docstrings drawn at random, for a reader who
restates each one. A text that comes back with another meaning needs rewriting.
"""

import ast
import io
import random
import re
import subprocess
import sys
import tokenize
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

ROOT = Path(__file__).resolve().parent.parent
SUFFIXES = (".py", ".md")
LEFT_OUT = (
    "tests/emberlint/labelled/",
    "emberharmony/data/",
    "CHANGELOG.md",
    "tools/prose.py",
    "docs/_build/",
    "docs/api/",
)


class Rule(NamedTuple):
    """A pattern that is hard to read, and the advice what to write instead."""

    name: str
    pattern: re.Pattern[str]
    advice: str


def _make_rule(name: str, pattern: str, advice: str) -> Rule:
    return Rule(name, re.compile(pattern), advice)


_IMPERATIVE = (
    r"^(?:Return|Yield|Raise|Make|Give|Check|Compute|Add|Write|Read) "
    r"(?:the|an?|whether|what|how|why|each|this|all)\b"
)
RULES = (
    _make_rule(
        "inverted",
        r"\b[Oo]f (?:what|whom|which|those|these|an?|the|no) [^.;:,]{0,60}\bthere (?:is|are)\b",
        "begin with the subject",
    ),
    _make_rule(
        "nominal-what",
        r"(?:^|[.;:(] ?)What (?:is|was|are|does|has|can|cannot|stands|lies)\b(?![^.]*\?)",
        "use the noun: the tensor that …",
    ),
    _make_rule(
        "no-noun",
        r"\b(?:is|are) no (?:tensor|number|name|op|integer|axis|error|backend|dtype|shape|function|index|key|list)\b",
        "is not a …",
    ),
    _make_rule("is-told", r"\b(?:is|are|was|be) told\b", "say who raises or reports what"),
    _make_rule("for-want-of", r"\bfor want of\b", "because there is no …"),
    _make_rule("kin", r"\b(?:its|and their|and its|their) kin\b", "name them"),
    _make_rule("is-wanted", r"\b(?:is|are) wanted\b", "expected …, got …"),
    _make_rule("such-as", r"\bsuch as there (?:is|are)\b", "drop it"),
    _make_rule(
        "riddle",
        r"\bhas no say\b|\b(?:lies?|lie) on its mean\b|\btakes? the long way\b|\bnowhere\b(?= *[.;])|\balike but\b",
        "say the cause and the consequence",
    ),
    _make_rule(
        "imperative",
        _IMPERATIVE,
        "Returns, Yields, Raises …: third person",
    ),
)


class Finding(NamedTuple):
    """A line to rewrite, and the rule that it breaks."""

    path: str
    line: int
    rule: Rule
    text: str


def main(arguments: list[str]) -> int:
    """Prints the findings, or a sample for a reader, and returns the exit status."""
    if arguments[:1] == ["--sample"]:
        count, seed = map(int, arguments[1:3])
        texts = [
            one for path in _files_to_check(arguments[3:]) if path.suffix == ".py" for one in _comment_blocks(path)
        ]
        print(f"{count} of {len(texts)} comments and docstrings, seed {seed}")
        for where, text in random.Random(seed).sample(texts, count):
            print(f"\n{where}\n{text}")
        return 0
    findings = [one for path in _files_to_check(arguments) for one in check_file(path)]
    for path, line, rule, text in findings:
        print(f"{path}:{line}: {rule.name}: {text.strip()[:100]!r}: {rule.advice}")
    print(f"{len(findings) or 'no'} sentence{'' if len(findings) == 1 else 's'} to rewrite")
    return 1 if findings else 0


def check_file(path: Path) -> Iterator[Finding]:
    """Yields the findings in a Python or Markdown file."""
    text = path.read_text(encoding="utf-8")
    shown_path = path.relative_to(ROOT).as_posix() if path.is_relative_to(ROOT) else str(path)
    lines = _comment_lines(text) if path.suffix == ".py" else _page_lines(text)
    for number, line, opens in lines:
        if line.rstrip().endswith("prose: ignore"):
            continue
        for rule in RULES:
            if (rule.name != "imperative" or opens) and rule.pattern.search(line):
                yield Finding(shown_path, number, rule, line)


def _comment_blocks(path: Path) -> Iterator[tuple[str, str]]:
    """Yields each docstring, and each comment of one or more lines, of a Python file with its place."""
    shown_path = path.relative_to(ROOT).as_posix() if path.is_relative_to(ROOT) else str(path)
    last, block = 0, ""
    for number, line, opens in [*sorted(_comment_lines(path.read_text(encoding="utf-8"))), (-1, "", True)]:
        if opens or number != last + 1:
            if len(block.split()) > 3:
                yield f"{shown_path}:{last - block.count(chr(10))}", block
            block = line
        else:
            block += f"\n{line}"
        last = number


def _files_to_check(arguments: list[str]) -> list[Path]:
    if arguments:
        paths = [Path(one).resolve() for one in arguments]
    else:
        listing = subprocess.run(["git", "ls-files"], cwd=ROOT, capture_output=True, text=True, check=True).stdout
        paths = [ROOT / one for one in listing.split("\n") if one]
    return [path for path in paths if path.suffix in SUFFIXES and path.is_file() and not _is_left_out(path)]


def _is_left_out(path: Path) -> bool:
    shown_path = path.relative_to(ROOT).as_posix() if path.is_relative_to(ROOT) else path.as_posix()
    return shown_path.startswith(LEFT_OUT)


def _comment_lines(text: str) -> Iterator[tuple[int, str, bool]]:
    """Yields the lines of docstrings and comments, as (number, text, whether the line is the first of a docstring)."""
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef) and node.body:
            first_statement = node.body[0]
            if (
                isinstance(first_statement, ast.Expr)
                and isinstance(first_statement.value, ast.Constant)
                and isinstance(first_statement.value.value, str)
            ):
                for i, line in enumerate(first_statement.value.value.split("\n")):
                    yield first_statement.lineno + i, line.strip(), i == 0
    for token in tokenize.generate_tokens(io.StringIO(text).readline):
        if token.type == tokenize.COMMENT:
            yield token.start[0], token.string.lstrip("#: "), False


def _page_lines(text: str) -> Iterator[tuple[int, str, bool]]:
    """Yields the lines of a Markdown page outside of code blocks, in the form of `_comments`."""
    is_in_code = False
    for number, line in enumerate(text.split("\n"), 1):
        if line.lstrip().startswith(("```", ":::")):
            is_in_code = not is_in_code
        elif not is_in_code:
            yield number, re.sub(r"`[^`]*`", "x", line), False


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
