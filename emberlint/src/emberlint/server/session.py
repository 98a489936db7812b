"""Checks and repairs the documents of an editor, with the settings of their projects.

A document is checked as the command checks standard input, with the other files read from the disk. The rules that need
the whole project run in a thread when a file is opened or saved; while it is edited, their findings move with their
lines. An edit is computed when the user chooses the action.
"""

from collections import Counter
from collections.abc import Mapping, Sequence
from functools import cached_property
from pathlib import Path
from typing import NamedTuple

from emberlint.config.configuration import find_root, load_settings
from emberlint.config.settings import Settings, pattern_predicate
from emberlint.findings import Finding
from emberlint.fixes import fix
from emberlint.rule import ProjectRule
from emberlint.run import baseline
from emberlint.run.check import source_file
from emberlint.run.engine import check_document, check_texts
from emberlint.run.file_cache import FileCache
from emberlint.run.garbage import pause_collection
from emberlint.run.ignore import add_comments
from emberlint.run.library import Library, Shelf
from emberlint.run.registry import all_rules, chosen_codes
from emberlint.run.repair import repair_text
from emberlint.run.selection import check_ignores
from emberlint.server.surroundings import Surroundings
from emberlint.source.discover import relative
from emberlint.source.modules import Modules
from emberlint.source.notebooks.magics import LINE
from emberlint.source.source_file import SourceFile

Stamp = tuple[int, int] | None  # the time and size of a file, which tell whether it changed


class ProjectState(NamedTuple):
    """The settings of a project, the codes of the rules to run, and the results of earlier checks."""

    settings: Settings
    codes: frozenset[str]
    cache: FileCache
    stamp: Stamp

    @property
    def needs_whole_project(self) -> bool:
        """Whether some rules look at the whole project, which may take seconds."""
        return bool(self.settings.project_folders) and self.single_file_codes != self.codes

    @property
    def single_file_codes(self) -> frozenset[str]:
        """The codes of the rules that look at one file only."""
        return frozenset(code for code in self.codes if not isinstance(all_rules()[code], ProjectRule))


class Checked:
    """A checked document with its findings, which can be repaired or silenced.

    Args:
        path: The path of the document, relative to the root of its project.
        text: The text.
        project: The project.
        findings: The findings in the text.
    """

    def __init__(self, path: str, text: str, project: ProjectState, findings: Sequence[Finding]) -> None:
        self.path, self.text, self.project, self.findings = path, text, project, findings

    @cached_property
    def file(self) -> SourceFile | None:
        """The parsed text, or None if it is not Python."""
        try:
            return source_file(self.path, self.text, self.project.settings)
        except (SyntaxError, ValueError, RecursionError):
            return None

    def text_after_repair(self, finding: Finding) -> str:
        """Returns the text with one finding repaired, which may change a dtype or a device."""
        with pause_collection():
            return self.text if self.file is None else fix(self.file, [finding], unsafe=True).text

    def text_after_safe_repairs(self) -> str:
        """Returns the text with all safe repairs."""
        return repair_text(
            self.path, self.text, self.project.settings, self.project.single_file_codes, unsafe=False
        ).after

    def text_after_ignore(self, finding: Finding) -> str:
        """Returns the text with a comment that silences a finding."""
        return add_comments(self.text, {finding.line: [finding.code]})


class Session:
    """The projects and checked documents of one connection of an editor."""

    def __init__(self) -> None:
        self._projects: dict[Path, ProjectState] = {}
        self._last_findings: dict[Path, tuple[list[str], list[Finding]]] = {}
        self._around: dict[Path, tuple[ProjectState, Surroundings]] = {}
        self._last: tuple[ProjectState, Surroundings] | None = None
        self._baselines: dict[Path, tuple[Stamp, Mapping[baseline.Entry, int]]] = {}

    def check(self, file: Path, text: str, whole: bool = True) -> Checked:
        """Returns a document with its findings; other files of its project are read from the disk.

        Args:
            file: The absolute path of the document.
            text: Its text, which may differ from the file.
            whole: Whether to run the rules that need the whole project too; if not, what they found in the document
                before moves with its lines.

        Raises:
            UsageError: if the project's settings are wrong.
        """
        project = self._project_state(file)
        settings = project.settings
        path = relative(file, settings.root)
        if pattern_predicate(settings.exclude)(path):
            return Checked(path, text, project, [])
        document_lines = LINE.findall(text)
        if whole:
            library = Library(Modules(settings, [path]))
            findings = check_texts({path: text}, settings, project.codes, library=library, cache=project.cache).findings
            self._last_findings[file] = (
                document_lines,
                [finding for finding in findings if finding.code not in project.single_file_codes],
            )
        else:
            with pause_collection():
                findings = check_document(
                    path, text, settings, project.single_file_codes, self._shelf(file, path, text, project)
                )
            old_lines, project_findings = self._last_findings.get(file, ([], []))
            findings += [
                moved_finding
                for old_finding in project_findings
                if (moved_finding := _moved_finding(old_finding, old_lines, document_lines)) is not None
            ]
        return Checked(path, text, project, self._findings_not_accepted(findings, settings))

    def forget(self, file: Path) -> None:
        """Drops the stored results of a document that was closed."""
        self._last_findings.pop(file, None)
        self._around.pop(file, None)

    def _shelf(self, file: Path, path: str, text: str, project: ProjectState) -> Shelf:
        """Returns the shelf through which the check of a document sees other files."""
        project_and_surroundings = self._around.get(file)
        if (
            project_and_surroundings is None
            or project_and_surroundings[0] is not project
            or not project_and_surroundings[1].is_valid_for(text)
        ):
            earlier_surroundings = self._last[1] if self._last is not None and self._last[0] is project else None
            project_and_surroundings = (
                project,
                Surroundings(path, text, project.settings, project.cache, earlier_surroundings),
            )
            self._around[file] = self._last = project_and_surroundings
        return project_and_surroundings[1].shelf

    def _project_state(self, file: Path) -> ProjectState:
        project_root = find_root([file])
        file_stamp = _file_stamp(project_root / "pyproject.toml")
        project = self._projects.get(project_root)
        if project is None or project.stamp != file_stamp:
            settings = load_settings(project_root)
            check_ignores(settings)
            selected_words = (*settings.select, *settings.extend_select) if settings.select else ()
            codes = chosen_codes(selected_words, settings.ignore)
            project = ProjectState(
                settings, codes, FileCache(settings, codes), file_stamp
            )  # the cache of the command is shared, but never saved here
            self._projects[project_root] = project
        return project

    def _findings_not_accepted(self, findings: list[Finding], settings: Settings) -> list[Finding]:
        """Returns the findings that the baseline of the project does not accept."""
        baseline_file = settings.root / settings.baseline
        file_stamp = _file_stamp(baseline_file) if settings.baseline else None
        if file_stamp is None:
            return findings
        cached_baseline = self._baselines.get(baseline_file)
        if cached_baseline is None or cached_baseline[0] != file_stamp:
            cached_baseline = self._baselines[baseline_file] = file_stamp, baseline.read_entries(baseline_file)
        return baseline.apply_baseline(findings, Counter(cached_baseline[1]))[0]


def _file_stamp(file: Path) -> Stamp:
    try:
        file_status = file.stat()
    except OSError:
        return None
    return file_status.st_mtime_ns, file_status.st_size


def _moved_finding(finding: Finding, old_lines: Sequence[str], new_lines: Sequence[str]) -> Finding | None:
    """Returns a finding at the nearest line with the same text, or None if there is none."""
    line_text = old_lines[finding.line - 1] if finding.line <= len(old_lines) else ""
    equal_line_numbers = [number for number, new_line in enumerate(new_lines, 1) if new_line == line_text]
    if not equal_line_numbers:
        return None
    nearest_line = min(equal_line_numbers, key=lambda number: abs(number - finding.line))
    return finding._replace(line=nearest_line, end_line=finding.end_line + nearest_line - finding.line)
