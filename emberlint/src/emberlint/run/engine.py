"""One check, step by step: reads the files, runs the rules on each, runs the rules on the project, reports.

The caller has read the configuration and discovered the files.
"""

from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path

from emberlint.config.settings import Settings
from emberlint.findings import Finding, Report
from emberlint.run.check import check_text, unreadable
from emberlint.run.file_cache import FileCache, digest
from emberlint.run.pool import check_all
from emberlint.run.project_check import check_project
from emberlint.run.results import FileResult, decode
from emberlint.run.selection import active, check_ignores, is_reported
from emberlint.run.suppress import apply
from emberlint.source.project import Project
from emberlint.source.reading import read_text


def check(
    files: Mapping[str, Path], settings: Settings, codes: frozenset[str], jobs: int = 1, cached: bool = True
) -> Report:
    """Checks files on disk.

    Args:
        files: The files by their path relative to the project's root.
        settings: The settings of the project.
        codes: The codes of the rules to run.
        jobs: How many processes may run at a time.
        cached: Whether to read and write the cache.

    Raises:
        UsageError: if the settings name a rule or a package that does not exist.
    """
    check_ignores(settings)
    contents, broken = _read(files)
    cache = FileCache(settings, codes, cached)
    checked = _check_files(contents, settings, codes, jobs, cache)
    results = {path: broken[path] if path in broken else checked[path] for path in files}
    beyond = check_project(_project(settings, results), codes, cache)
    cache.save()
    return Report([*_merge(results, beyond, settings, codes)], tuple(files))


def check_texts(texts: Mapping[str, str], settings: Settings, codes: frozenset[str], cached: bool = False) -> Report:
    """Checks texts that are not on disk, such as examples; `cached` is about the other files of the project."""
    results = {path: check_text(path, text, settings, codes) for path, text in texts.items()}
    beyond = check_project(_project(settings, results, texts), codes, FileCache(settings, codes, cached))
    return Report([*_merge(results, beyond, settings, codes)], tuple(texts))


def check_content(path: str, content: bytes, settings: Settings, codes: frozenset[str], cached: bool = True) -> Report:
    """Checks the bytes that stand for the file at `path`: standard input."""
    try:
        text = read_text(content)
    except (SyntaxError, UnicodeDecodeError) as error:
        return Report([*unreadable(path, error).findings], (path,))
    return check_texts({path: text}, settings, codes, cached)


def _read(files: Mapping[str, Path]) -> tuple[dict[str, bytes], dict[str, FileResult]]:
    """Returns the contents of the files, and the results of those that cannot be read."""
    contents: dict[str, bytes] = {}
    broken: dict[str, FileResult] = {}
    for path, file in files.items():
        try:
            contents[path] = file.read_bytes()
        except OSError as error:
            broken[path] = unreadable(path, error)
    return contents, broken


def _check_files(
    contents: Mapping[str, bytes], settings: Settings, codes: frozenset[str], jobs: int, cache: FileCache
) -> dict[str, FileResult]:
    """Returns the result of each content: from the cache if it is there, else from a check, which is then cached."""
    keys = {path: digest(content) for path, content in contents.items()}
    kept = {path: cache.get(path, key) for path, key in keys.items()}
    results = {path: decode(entry) for path, entry in kept.items() if entry is not None}
    missing = {path: content for path, content in contents.items() if path not in results}
    for path, encoded in check_all(missing, settings, codes, jobs):
        cache.put(path, keys[path], encoded)
        results[path] = decode(encoded)
    return results


def _project(settings: Settings, results: Mapping[str, FileResult], texts: Mapping[str, str] | None = None) -> Project:
    """Returns the project, which need not parse the checked files again to know their imports."""
    return Project(settings, texts=texts or {}, known={path: result.imports for path, result in results.items()})


def _merge(
    results: Mapping[str, FileResult], beyond: Iterable[Finding], settings: Settings, codes: frozenset[str]
) -> Iterator[Finding]:
    """Yields the findings that no suppression comment silences, file by file, sorted by place within a file."""
    by_path: dict[str, list[Finding]] = {}
    for finding in beyond:
        by_path.setdefault(finding.path, []).append(finding)
    for path, result in results.items():
        kept = active(path, settings, codes)
        reported = [one for one in by_path.get(path, ()) if is_reported(one, settings, kept)]
        found = apply(path, [*result.findings, *reported], result.directives, kept)
        yield from sorted(found, key=lambda one: (one.line, one.column, one.code))
