"""What the words of a command line come to: settings, rules, files, and paths as they are shown."""

from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import NamedTuple

from emberlint.config.configuration import find_root, load
from emberlint.config.groups import GROUPS
from emberlint.config.settings import Settings, one_of
from emberlint.config.tiers import Tier
from emberlint.findings import Finding
from emberlint.source.discover import discover, relative


def words(given: Iterable[str]) -> list[str]:
    """Return the words of an option that may be repeated or hold commas."""
    return [word.strip() for one in given for word in one.split(",") if word.strip()]


def settings_for(paths: Sequence[Path], min_tier: str | None = None) -> Settings:
    """Return the settings of the project that the paths lie in."""
    settings = load(find_root(paths or [Path.cwd()]))
    return settings if min_tier is None else settings.with_(min_tier=Tier[min_tier])


class Choice(NamedTuple):
    """The words that choose rules."""

    select: tuple[str, ...]
    ignore: tuple[str, ...]

    @property
    def words(self) -> tuple[str, ...]:
        """The words on one line, fit to tell two choices apart."""
        return (*self.select, "but", *self.ignore)

    @property
    def codes(self) -> frozenset[str]:
        """The codes to report; UsageError for a word that names no rule."""
        from emberlint.run.registry import chosen  # not at the top: it imports every rule

        return chosen(self.select, self.ignore)


def choice(settings: Settings, select: Iterable[str], ignore: Iterable[str], groups: Iterable[str]) -> Choice:
    """Return what options and configuration choose: options win."""
    wanted = [*words(select), *(code for group in groups for code in GROUPS[group])]
    return Choice(tuple(wanted or settings.select), (*settings.ignore, *words(ignore)))


def codes_for(
    settings: Settings, select: Iterable[str], ignore: Iterable[str], groups: Iterable[str]
) -> frozenset[str]:
    """Return the codes to report."""
    return choice(settings, select, ignore, groups).codes


def files_for(paths: Sequence[Path], settings: Settings, force_exclude: bool = False) -> dict[str, Path]:
    """Return the files below the paths, the current folder where there are none.

    What is named is not excluded, unless that is forced: a hook names whatever was committed.
    """
    found = discover(paths or [Path.cwd()], settings)
    excluded = one_of(settings.exclude) if force_exclude else lambda path: False
    return {path: file for path, file in found.items() if not excluded(path)}


def shown(path: str, settings: Settings) -> str:
    """Return a path of the project as seen from the current folder."""
    seen = relative(settings.root / path, Path.cwd())
    return str(settings.root / path) if seen.startswith("../") else seen


def at_hand(findings: Sequence[Finding], settings: Settings) -> list[Finding]:
    """Return findings with their paths as seen from the current folder."""
    seen = {path: shown(path, settings) for path in {one.path for one in findings}}
    return [one if seen[one.path] == one.path else one._replace(path=seen[one.path]) for one in findings]
