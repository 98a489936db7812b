"""One check, step by step: reads the files, runs the rules on each, runs the rules on the project, reports.

The caller has read the configuration and discovered the files.

A check reads each file once and parses it once. Six habits keep it fast: the index knows for each type of node which
fields hold nodes; a rule looks at a file only if the text has one of its words or calls one of its methods (a test
compares the findings without that filter); the scopes are asked for the origin of a name only if an import leads to
that name; each folder is read once, instead of asking for each file that a module could be; a file is split into tokens
only if it has a suppression; and a checked file drops its circles of references, so that the garbage collector stays
off.
"""

from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path

from emberlint.config.settings import Settings
from emberlint.findings import Finding, Report
from emberlint.run.check import check_text, source_file, unreadable_result
from emberlint.run.file_cache import FileCache
from emberlint.run.files import Files, read_contents
from emberlint.run.library import Library, Shelf
from emberlint.run.project_check import check_project
from emberlint.run.results import FileResult
from emberlint.run.selection import active_codes_of, check_ignores, is_reported
from emberlint.run.suppress import apply_directives
from emberlint.source.modules import Modules
from emberlint.source.notebooks.joined import Joined
from emberlint.source.project import Project
from emberlint.source.reading import read_source
from emberlint.source.source_file import SourceFile


def check(
    files: Mapping[str, Path], settings: Settings, codes: frozenset[str], jobs: int = 1, cached: bool = True
) -> Report:
    """Checks files on disk and returns the report.

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
    contents = read_contents(files)
    cache = FileCache(settings, codes, cached)
    library = Library(Modules(settings))
    check_run = Files(contents.sources, settings, codes, cache, library)
    file_results = check_run.check(jobs)
    result_by_path = {path: contents.broken.get(path) or file_results[path] for path in files}
    project_findings = check_project(_project_of_results(settings, result_by_path), codes, cache)
    cache.save()
    reported_findings = (
        finding_in_cell(finding, contents.notebooks.get(finding.path))
        for finding in _merge_findings(result_by_path, project_findings, settings, codes)
    )
    return Report([*reported_findings], tuple(files), check_run.paths_beyond, check_run.absent_paths)


def check_texts(
    texts: Mapping[str, str],
    settings: Settings,
    codes: frozenset[str],
    cached: bool = False,
    library: Library | None = None,
    cache: FileCache | None = None,
) -> Report:
    """Checks texts that are not on disk, such as examples.

    Args:
        texts: The texts by path.
        settings: The settings of the project.
        codes: The codes of the rules to run.
        cached: Whether to read and write the cache for the other files of the project.
        library: The summaries of files on disk from an earlier check, if there was one.
        cache: The cache for the texts too, which the caller saves.
    """
    cache = cache or FileCache(settings, codes, cached)
    result_by_path = Files(texts, settings, codes, cache, library or Library(Modules(settings, texts))).check(jobs=1)
    project_findings = check_project(_project_of_results(settings, result_by_path, texts), codes, cache)
    return Report([*_merge_findings(result_by_path, project_findings, settings, codes)], tuple(texts))


def check_document(path: str, text: str, settings: Settings, codes: frozenset[str], shelf: Shelf) -> list[Finding]:
    """Returns the findings of the rules for single files in a text; `shelf` shows the files that it imports."""
    return [*_merge_findings({path: check_text(path, text, settings, codes, shelf)}, (), settings, codes)]


def check_content(path: str, content: bytes, settings: Settings, codes: frozenset[str], cached: bool = True) -> Report:
    """Checks bytes from standard input as the content of the file at `path`, and returns the report."""
    try:
        text, notebook = read_source(path, content)
    except (SyntaxError, UnicodeDecodeError) as error:
        return Report([*unreadable_result(path, error).findings], (path,))
    report = check_texts({path: text}, settings, codes, cached)
    return report._replace(findings=[finding_in_cell(finding, notebook) for finding in report.findings])


def source_file_with_imports(path: str, text: str, settings: Settings) -> SourceFile:
    """Returns the parsed file, whose inference knows the files that it imports.

    Raises:
        SyntaxError: if the text is not Python.
        ValueError: if the text holds null bytes.
        RecursionError: if its expressions are nested too deeply.
    """
    return source_file(path, text, settings, shelf_for(path, text, settings, Library(Modules(settings, [path]))))


def shelf_for(path: str, text: str, settings: Settings, library: Library) -> Shelf:
    """Returns the shelf through which the inference of a text sees the files that it imports."""
    cache = FileCache(settings, (), enabled=False)
    return Files({path: text}, settings, frozenset(), cache, library).shelf(path)


def finding_in_cell(finding: Finding, notebook: Joined | None) -> Finding:
    """Returns a finding with its place in a cell, if its file is a notebook."""
    if notebook is None or not notebook.cells:
        return finding
    start_place, end_place = notebook.place(finding.line), notebook.place(finding.end_line)
    if end_place.cell != start_place.cell:
        end_place = start_place
    return finding._replace(
        line=start_place.line,
        end_line=end_place.line,
        reason=notebook.reword_lines(finding.reason),
        cell=start_place.cell,
        file_line=start_place.file_line,
    )


def _project_of_results(
    settings: Settings, results: Mapping[str, FileResult], texts: Mapping[str, str] | None = None
) -> Project:
    """Returns the project, which need not parse the checked files again to know their imports."""
    return Project(
        settings, texts=texts or {}, known={path: file_result.imports for path, file_result in results.items()}
    )


def _merge_findings(
    results: Mapping[str, FileResult], project_findings: Iterable[Finding], settings: Settings, codes: frozenset[str]
) -> Iterator[Finding]:
    """Yields the findings that no suppression comment silences, file by file, sorted by place within a file."""
    project_findings_by_path: dict[str, list[Finding]] = {}
    for finding in project_findings:
        project_findings_by_path.setdefault(finding.path, []).append(finding)
    for path, file_result in results.items():
        active_codes = active_codes_of(path, settings, codes)
        reported_findings = [
            finding
            for finding in project_findings_by_path.get(path, ())
            if is_reported(finding, settings, active_codes)
        ]
        unsilenced_findings = apply_directives(
            path, [*file_result.findings, *reported_findings], file_result.directives, active_codes
        )
        yield from sorted(unsilenced_findings, key=lambda one: (one.line, one.column, one.code))
