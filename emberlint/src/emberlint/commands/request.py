"""Turns command-line words into settings, rules and files, and paths into the form that is displayed."""

from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

from emberlint.config.configuration import find_root, load_settings, require_version
from emberlint.config.groups import GROUPS
from emberlint.config.settings import Settings, pattern_predicate
from emberlint.config.tiers import Tier
from emberlint.findings import Finding
from emberlint.source.discover import discover, relative


def split_words(given: Iterable[str]) -> list[str]:
    """Returns the words of an option that may be repeated or contain commas."""
    return [word.strip() for text in given for word in text.split(",") if word.strip()]


def settings_for(
    paths: Sequence[Path],
    min_tier: str | None = None,
    exclude: Iterable[str] = (),
    target_version: str | None = None,
    preset: str | None = None,
) -> Settings:
    """Returns the settings of the project that contains the paths; options take precedence."""
    return settings_at(find_root(paths or [Path.cwd()]), min_tier, exclude, target_version, preset)


def settings_at(
    root: Path,
    min_tier: str | None = None,
    exclude: Iterable[str] = (),
    target_version: str | None = None,
    preset: str | None = None,
) -> Settings:
    """Returns the settings of the project with a root; options take precedence."""
    settings = load_settings(root, preset)
    if min_tier is not None:
        settings = settings.with_changes(min_tier=Tier[min_tier])
    if target_version is not None:
        settings = settings.with_changes(target_version=require_version("--target-version", target_version))
    return settings.with_changes(exclude=(*settings.exclude, *split_words(exclude)))


class RuleChoice(NamedTuple):
    """The words of options and settings that select and ignore rules, and the codes that they choose."""

    select: tuple[str, ...]
    ignore: tuple[str, ...]

    @property
    def words(self) -> tuple[str, ...]:
        """The words of all lists in one tuple, which is unequal for different choices."""
        return (*self.select, "but", *self.ignore)

    @property
    def codes(self) -> frozenset[str]:
        """The codes of the rules to report.

        Raises:
            UsageError: if a word names no rule.
        """
        from emberlint.run.registry import chosen_codes  # not at the top: it imports every rule

        return chosen_codes(self.select, self.ignore)


def rule_choice(
    settings: Settings,
    select: Iterable[str],
    ignore: Iterable[str],
    groups: Iterable[str],
    extend_select: Iterable[str] = (),
) -> RuleChoice:
    """Returns the rules that options and configuration choose; options take precedence."""
    wanted_codes = [*split_words(select), *(code for group in groups for code in GROUPS[group])] or [*settings.select]
    extended_codes = [*settings.extend_select, *split_words(extend_select)] if wanted_codes else []
    return RuleChoice((*wanted_codes, *extended_codes), (*settings.ignore, *split_words(ignore)))


def codes_for(
    settings: Settings, select: Iterable[str], ignore: Iterable[str], groups: Iterable[str]
) -> frozenset[str]:
    """Returns the codes of the rules to report, from options and configuration."""
    return rule_choice(settings, select, ignore, groups).codes


def files_for(paths: Sequence[Path], settings: Settings, force_exclude: bool = False) -> dict[str, Path]:
    """Returns the files below the paths, or below the current folder if there are no paths.

    A path that the user names is checked even if it is excluded, unless `force_exclude` is set. Commit hooks need this
    option, because they name every committed file.
    """
    files_below = discover(paths or [Path.cwd()], settings)
    is_excluded = pattern_predicate(settings.exclude) if force_exclude else lambda path: False
    return {path: file for path, file in files_below.items() if not is_excluded(path)}


def nested_projects(files: Mapping[str, Path], settings: Settings) -> dict[Path, dict[str, Path]]:
    """Returns the files of projects inside of a project, by their roots and by their paths there.

    A folder below the root is such a project if its pyproject.toml has a table `[tool.emberlint]`.
    """
    # The nearest root of each folder, relative to the root of the settings.
    root_by_folder: dict[str, str] = {"": "", ".": ""}
    paths_by_root: dict[Path, dict[str, Path]] = {}
    for path, file in files.items():
        nearest_root = _nearest_root(path.rpartition("/")[0], settings.root, root_by_folder)
        if nearest_root:
            paths_by_root.setdefault(settings.root / nearest_root, {})[path.removeprefix(f"{nearest_root}/")] = file
    return paths_by_root


def _nearest_root(folder: str, top: Path, roots: dict[str, str]) -> str:
    if folder.startswith(".."):
        return ""
    if folder not in roots:
        pyproject_file = top / folder / "pyproject.toml"
        is_root = pyproject_file.is_file() and b"[tool.emberlint" in pyproject_file.read_bytes()
        roots[folder] = folder if is_root else _nearest_root(folder.rpartition("/")[0], top, roots)
    return roots[folder]


def display_path(path: str, settings: Settings) -> str:
    """Returns a path of the project relative to the current folder."""
    relative_path = relative(settings.root / path, Path.cwd())
    return str(settings.root / path) if relative_path.startswith("../") else relative_path


def shown_paths(paths: Iterable[str], settings: Settings) -> dict[str, str]:
    """Returns paths of the project with each one relative to the current folder."""
    is_root = Path.cwd() == settings.root  # the usual case, which needs no computation
    return {path: path if is_root and not path.startswith("../") else display_path(path, settings) for path in paths}


def findings_with_shown_paths(findings: Sequence[Finding], settings: Settings) -> list[Finding]:
    """Returns findings with their paths relative to the current folder."""
    shown_path_by_path = shown_paths({finding.path for finding in findings}, settings)
    return [
        finding
        if shown_path_by_path[finding.path] == finding.path
        else finding._replace(path=shown_path_by_path[finding.path])
        for finding in findings
    ]
