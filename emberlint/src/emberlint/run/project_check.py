"""Runs the rules that need the whole project, and caches their findings by the content of all its files."""

from collections.abc import Iterator
from dataclasses import replace

from emberlint.findings import Finding, decode_finding, encode_finding
from emberlint.rule import ProjectRule
from emberlint.run.check import fingerprint
from emberlint.run.file_cache import FileCache, digest
from emberlint.run.results import decode_result
from emberlint.run.selection import project_rules
from emberlint.source.imports import Import
from emberlint.source.project import Project

KEY = "<project>"  # the cache key of the project findings
IMPORTS = "imports of "  # the start of the cache key of a file of which only the imports were read


def check_project(project: Project, codes: frozenset[str], cache: FileCache) -> list[Finding]:
    """Returns the findings of the project rules among `codes`, from the cache if no file has changed."""
    rules = project_rules(codes)
    if not project.settings.project_folders or not rules:
        return []
    project_paths = {path for folder in project.settings.project_folders for path in project.files(folder)}
    digest_by_path = {path: _digest_of(project, path) for path in sorted(project_paths)}
    content_digest = digest("\n".join(f"{path} {digest}" for path, digest in digest_by_path.items()))
    cached_findings = cache.get(KEY, content_digest)
    if cached_findings is not None:
        return [decode_finding(encoded_finding) for encoded_finding in cached_findings]
    imports_by_path = {
        path: file_imports
        for path, digest in digest_by_path.items()
        if (file_imports := _imports_of_file(path, digest, cache)) is not None
    }
    project = replace(project, known={**imports_by_path, **project.known})
    findings = [*_project_findings(rules, project)]
    for path, file_imports in project.parsed.items():
        cache.put(IMPORTS + path, digest_by_path[path], [*file_imports])
    cache.put(KEY, content_digest, [encode_finding(finding) for finding in findings])
    return findings


def _imports_of_file(path: str, key: str, cache: FileCache) -> tuple[Import, ...] | None:
    """Returns the imports of a file from its cached result, or from an earlier check of the project."""
    cached_result = cache.get(path, key)
    if cached_result is not None:
        return decode_result(cached_result).imports
    cached_imports = cache.get(IMPORTS + path, key)
    return None if cached_imports is None else tuple(Import(*import_) for import_ in cached_imports)


def _digest_of(project: Project, path: str) -> str:
    if path in project.texts:
        return digest(project.texts[path])
    try:
        return digest((project.settings.root / path).read_bytes())
    except OSError:
        return "unreadable"


def _project_findings(rules: list[ProjectRule], project: Project) -> Iterator[Finding]:
    for rule in rules:
        for finding in rule.check(project):
            file_lines = project.text(finding.path).split("\n")
            yield finding._replace(fingerprint=fingerprint(finding, file_lines))
