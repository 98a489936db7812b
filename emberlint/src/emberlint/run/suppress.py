"""Suppression comments: parses them, applies them, and finds those that have no effect."""

import ast
import io
import re
import tokenize
from collections.abc import Iterable, Iterator, Sequence
from typing import NamedTuple

from emberlint.config.errors import suggestion
from emberlint.findings import Finding
from emberlint.run.registry import all_rules, codes_by_word

_COMMENT = re.compile(r"#\s*emberlint:\s*(?P<verb>[\w-]+)\s*(?:\[(?P<codes>[^\]]*)\])?")
NOQA = re.compile(r"#\s*noqa:\s*(?P<codes>[A-Z]+\d+(?:[,\s]+[A-Z]+\d+)*)", re.IGNORECASE)
_MARKED = re.compile(r"noqa:[^\n]*emb")
MARK = "port"  # the verb of the marks of `emberlint port`, which silence nothing
VERBS = ("ignore", "file-ignore", "off", "on")
END = 1 << 30


class Directive(NamedTuple):
    """One suppression comment: its verb, the codes it names, its place, and the lines it covers."""

    verb: str
    codes: tuple[str, ...]  # empty means all codes
    unknown: tuple[str, ...]
    line: int
    column: int
    end_column: int
    first: int
    last: int

    def covers(self, finding: Finding) -> bool:
        """Returns whether the comment silences a finding."""
        names_code = finding.code in self.codes or not (self.codes or self.unknown)
        return names_code and self.first <= finding.line <= self.last

    @property
    def place(self) -> tuple[int, int, int, int]:
        """The place of the comment: line, column, end line, end column."""
        return self.line, self.column, self.line, self.end_column


def directives(text: str, tree: ast.Module | None) -> tuple[Directive, ...]:
    """Returns the suppression comments of a file; text inside strings does not count."""
    # Most files have none, and splitting a file into tokens takes longer than parsing it.
    if "emberlint:" not in text and not _MARKED.search(text.lower()):
        return ()
    found_directives: list[Directive] = []
    for token in _comment_tokens(text):
        comment_match = _COMMENT.search(token.string)
        if comment_match and comment_match["verb"] != MARK:
            line, offset = token.start
            comment_place = (line, offset + comment_match.start() + 1, offset + len(token.string.rstrip()) + 1)
            found_directives.append(
                _parse_directive(comment_match["verb"], comment_match["codes"] or "", comment_place)
            )
        found_directives += _noqa_directive(token)
    if tree is None or all(comment.verb != "ignore" for comment in found_directives):
        return tuple(_directives_with_ranges(found_directives, {}))
    return tuple(_directives_with_ranges(found_directives, _statement_lines(text, tree)))


def _comment_tokens(text: str) -> Iterator[tokenize.TokenInfo]:
    try:
        for token in tokenize.generate_tokens(io.StringIO(text).readline):
            if token.type == tokenize.COMMENT:
                yield token
    except (tokenize.TokenError, SyntaxError):
        return  # EMB000 reports the file; comments before the error still count


def _noqa_directive(token: tokenize.TokenInfo) -> Iterator[Directive]:
    """Yields the directive of `# noqa: EMB201`, as ruff and flake8 write it; codes of other linters do not count."""
    noqa_match = NOQA.search(token.string)
    codes = (
        [code for code in re.split(r"[,\s]+", noqa_match["codes"].upper()) if code.startswith("EMB")]
        if noqa_match
        else []
    )
    if noqa_match and codes:
        line, offset = token.start
        yield _parse_directive(
            "ignore", ",".join(codes), (line, offset + noqa_match.start() + 1, offset + noqa_match.end() + 1)
        )


def _parse_directive(verb: str, codes_text: str, place: tuple[int, int, int]) -> Directive:
    code_texts = [word.strip() for word in codes_text.split(",") if word.strip()]
    code_by_word = codes_by_word()
    codes = tuple(code_by_word[word] for word in code_texts if word in code_by_word)
    return Directive(verb, codes, tuple(word for word in code_texts if word not in code_by_word), *place, 0, 0)


def _statement_lines(text: str, tree: ast.Module) -> dict[int, tuple[int, int]]:
    """Returns the first and last line of the statements on each line; a compound one ends with its header."""
    text_lines = text.split("\n")
    range_by_line: dict[int, tuple[int, int]] = {}
    for node in ast.walk(tree):
        if isinstance(node, ast.stmt):
            first_line, last_line = _line_span(node, text_lines)
            for line in range(first_line, last_line + 1):
                known_range = range_by_line.get(line, (first_line, last_line))
                range_by_line[line] = min(known_range[0], first_line), max(known_range[1], last_line)
    return range_by_line


def _line_span(node: ast.stmt, lines: list[str]) -> tuple[int, int]:
    block_nodes = [child for name in ("body", "cases", "handlers") for child in getattr(node, name, [])]
    last_line = node.end_lineno or node.lineno
    if block_nodes:
        last_line = max(node.lineno, min(map(_first_line, block_nodes)) - 1)
        while last_line > node.lineno and lines[last_line - 1].lstrip()[:1] in ("", "#"):
            last_line -= 1
    return _first_line(node), last_line


def _first_line(node: ast.AST) -> int:
    if isinstance(node, ast.match_case):
        return node.pattern.lineno
    decorators: list[ast.expr] = getattr(node, "decorator_list", [])
    return min([int(getattr(node, "lineno", 1)), *(decorator.lineno for decorator in decorators)])


def _directives_with_ranges(
    directives_found: Sequence[Directive], statements: dict[int, tuple[int, int]]
) -> Iterator[Directive]:
    for index, directive in enumerate(directives_found):
        if directive.verb == "file-ignore":
            yield directive._replace(first=1, last=END)
        elif directive.verb == "off":
            closing_lines = (
                later_directive.line
                for later_directive in directives_found[index + 1 :]
                if closes(later_directive, directive)
            )
            yield directive._replace(first=directive.line, last=next(closing_lines, END))
        elif directive.verb == "ignore":
            first_line, last_line = statements.get(directive.line, (directive.line, directive.line))
            yield directive._replace(first=first_line, last=last_line)
        else:
            yield directive._replace(first=1, last=0)


def closes(closing: Directive, opening: Directive) -> bool:
    """Returns whether an `on[...]` ends an `off[...]`."""
    if closing.verb != "on" or closing.line <= opening.line:
        return False
    return set(opening.codes) <= set(closing.codes) if closing.codes or closing.unknown else True


def apply_directives(
    path: str, findings: Iterable[Finding], directives_found: Sequence[Directive], selected: frozenset[str]
) -> Iterator[Finding]:
    """Yields the findings that no comment silences, and the findings about the comments themselves."""
    used_directives: set[tuple[int, str]] = set()
    directives_by_line: dict[int, list[int]] = {}  # `ignore` comments by the lines they cover, for fast look-up
    block_directives: list[int] = []
    for index, directive in enumerate(directives_found):
        for line in range(directive.first, directive.last + 1) if directive.verb == "ignore" else ():
            directives_by_line.setdefault(line, []).append(index)
        if directive.verb != "ignore":
            block_directives.append(index)
    for finding in findings:
        covering_indices = [
            index
            for index in (*directives_by_line.get(finding.line, ()), *block_directives)
            if directives_found[index].covers(finding)
        ]
        used_directives.update((index, finding.code) for index in covering_indices)
        if not covering_indices or not is_silenceable(finding):
            yield finding
    for finding in _unused_directives(path, directives_found, used_directives, selected):
        if not any(
            directive.verb == "file-ignore" and finding.code in directive.codes for directive in directives_found
        ):
            yield finding


def is_silenceable(finding: Finding) -> bool:
    """Returns whether a comment can silence a finding: neither a file that cannot be read nor a comment's own fault."""
    return not finding.code.startswith(("EMB0", "EMB9"))


def _unused_directives(
    path: str, directives_found: Sequence[Directive], used_directives: set[tuple[int, str]], selected: frozenset[str]
) -> Iterator[Finding]:
    rule_by_code = {code: rule for code, rule in all_rules().items() if code in selected}
    for index, directive in enumerate(directives_found):
        is_known_verb = directive.verb in VERBS
        if "EMB901" in rule_by_code and is_known_verb and directive.verb != "on":
            for code in directive.codes:
                if (index, code) not in used_directives and code in selected and not code.startswith("EMB9"):
                    yield rule_by_code["EMB901"].finding_at(path, directive.place, what=all_rules()[code].name)
        if "EMB902" in rule_by_code:
            if not is_known_verb:
                yield rule_by_code["EMB902"].finding_at(
                    path, directive.place, what=repr(directive.verb), hint=suggestion(directive.verb, VERBS)
                )
            for unknown_word in directive.unknown:
                hint = suggestion(unknown_word, codes_by_word())
                yield rule_by_code["EMB902"].finding_at(path, directive.place, what=repr(unknown_word), hint=hint)
        if "EMB903" in rule_by_code and is_known_verb and not directive.codes and not directive.unknown:
            yield rule_by_code["EMB903"].finding_at(path, directive.place, what=directive.verb)
        if "EMB904" in rule_by_code and _lacks_partner(directive, directives_found):
            yield rule_by_code["EMB904"].finding_at(
                path, directive.place, what=directive.verb, other="on" if directive.verb == "off" else "off"
            )


def _lacks_partner(directive: Directive, directives: Sequence[Directive]) -> bool:
    """Returns whether a comment `off` has no `on` after it, or an `on` no `off` before it."""
    if directive.verb == "off":
        return directive.last == END
    return directive.verb == "on" and not any(
        opening_directive.verb == "off" and closes(directive, opening_directive) for opening_directive in directives
    )
