"""Checks one file: parse it, run the rules, keep what its role and the settings let through."""

import ast
import warnings
from collections.abc import Iterator
from hashlib import blake2b

from emberlint.config.settings import Settings, matches
from emberlint.findings import Finding
from emberlint.inference import infer
from emberlint.rule import AnyRule, Rule
from emberlint.run.registry import all_rules, resolve
from emberlint.run.results import FileResult
from emberlint.run.suppress import directives
from emberlint.source.imports import imports
from emberlint.source.source_file import SourceFile


def source_file(path: str, text: str, settings: Settings) -> SourceFile:
    """Return the parsed file; SyntaxError, ValueError (null bytes) or RecursionError where it cannot be."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", SyntaxWarning)
        warnings.simplefilter("ignore", DeprecationWarning)
        return SourceFile(path, text, settings, ast.parse(text), infer)


def check_text(path: str, text: str, settings: Settings, codes: frozenset[str]) -> FileResult:
    """Return what the rules for single files find in a text."""
    try:
        file = source_file(path, text, settings)
        found = tuple(_run(file, codes))
    except (SyntaxError, ValueError, RecursionError) as error:
        return FileResult((_broken(path, error),), directives(text, None), ())
    imported = imports(file.tree, file.module, path.endswith("__init__.py"))
    return FileResult(found, directives(text, file.tree), imported)


def _run(file: SourceFile, codes: frozenset[str]) -> Iterator[Finding]:
    silenced = ignored(file.path, file.settings)
    for code, rule in all_rules().items():
        if code in codes and code not in silenced and isinstance(rule, Rule) and file.role.kind in rule.roles:
            for finding in rule.check(file):
                if is_sure(rule, finding, file.settings):
                    yield finding._replace(fingerprint=fingerprint(finding, file.lines))


def _broken(path: str, error: Exception) -> Finding:
    line, column = 1, 1
    reason = "nested too deeply" if isinstance(error, RecursionError) else str(error)
    if isinstance(error, SyntaxError):
        line, column, reason = error.lineno or 1, max(error.offset or 1, 1), error.msg
    return all_rules()["EMB000"].at(path, (line, column, line, column), what=reason)


def is_sure(rule: AnyRule, finding: Finding, settings: Settings) -> bool:
    """Return whether the evidence of a finding is strong enough for its rule, or for the tier asked for."""
    return finding.tier >= (rule.min_tier if settings.min_tier is None else settings.min_tier)


def ignored(path: str, settings: Settings) -> frozenset[str]:
    """Return the codes that the settings ignore in a file."""
    words = (word for pattern, some in settings.per_file_ignores.items() if matches(path, pattern) for word in some)
    return frozenset(code for word in words for code in resolve(word))


def fingerprint(finding: Finding, lines: list[str]) -> str:
    """Return a short hash of the rule and the source text found; moving the lines leaves it as it is."""
    text = " ".join(line.strip() for line in lines[finding.line - 1 : finding.end_line])
    return blake2b(f"{finding.code} {text}".encode(), digest_size=6).hexdigest()
