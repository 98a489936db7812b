"""Decides which rules run on a file, and which of their findings are reported."""

from emberlint.config.settings import Settings, matches
from emberlint.findings import Finding
from emberlint.rule import ProjectRule, Rule
from emberlint.run.registry import all_rules, codes_of_word
from emberlint.source.source_file import SourceFile


def check_ignores(settings: Settings) -> None:
    """Checks that every word in `per-file-ignores` chooses a rule.

    Raises:
        UsageError: if a word does not.
    """
    for words in settings.per_file_ignores.values():
        for word in words:
            codes_of_word(word)


def active_codes_of(path: str, settings: Settings, codes: frozenset[str]) -> frozenset[str]:
    """Returns those of `codes` that `per-file-ignores` does not switch off in a file."""
    words_to_ignore = {
        word
        for pattern, ignored_words in settings.per_file_ignores.items()
        if matches(path, pattern)
        for word in ignored_words
    }
    return codes - {code for word in words_to_ignore for code in codes_of_word(word)}


def file_rules(file: SourceFile, codes: frozenset[str]) -> list[Rule]:
    """Returns the rules for single files that run on a file, in the order of their codes."""
    active_codes, role_kind = active_codes_of(file.path, file.settings, codes), file.role.kind
    rules = [rule for code, rule in all_rules().items() if code in active_codes and isinstance(rule, Rule)]
    return [rule for rule in rules if role_kind in rule.roles]


def project_rules(codes: frozenset[str]) -> list[ProjectRule]:
    """Returns the rules for the whole project among `codes`, in their order."""
    return [rule for code, rule in all_rules().items() if code in codes and isinstance(rule, ProjectRule)]


def is_sure(finding: Finding, settings: Settings) -> bool:
    """Returns whether the evidence of a finding is strong enough: `min-tier` of the settings, else of its rule."""
    return finding.tier >= (all_rules()[finding.code].min_tier if settings.min_tier is None else settings.min_tier)


def is_reported(finding: Finding, settings: Settings, active_codes: frozenset[str]) -> bool:
    """Returns whether a project rule may report a finding in its file, whose active codes are `kept`."""
    rule = all_rules()[finding.code]
    return (
        finding.code in active_codes and settings.role(finding.path).kind in rule.roles and is_sure(finding, settings)
    )
