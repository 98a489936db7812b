"""Finds the rules, and resolves the codes, names and prefixes by which a user selects some of them."""

import pkgutil
from collections.abc import Iterable, Mapping
from functools import cache
from importlib import import_module

from emberlint import rules as package
from emberlint.config.errors import UsageError, suggestion
from emberlint.config.groups import GROUPS as GROUPS
from emberlint.rule import AnyRule, EngineRule, ProjectRule, Rule

ALWAYS = frozenset({"EMB000"})  # always selected: a file that cannot be read must never count as clean


@cache
def all_rules() -> Mapping[str, AnyRule]:
    """Returns every rule by its code, in the order of the codes."""
    rule_by_code: dict[str, AnyRule] = {}
    for module_info in pkgutil.walk_packages(package.__path__, f"{package.__name__}."):
        module = import_module(module_info.name)
        for value in vars(module).values():
            is_class = isinstance(value, type) and issubclass(value, AnyRule)
            if is_class and value.__module__ == module.__name__ and value not in (Rule, ProjectRule, EngineRule):
                rule_by_code[value.code] = value()
    return dict(sorted(rule_by_code.items()))


@cache
def codes_by_word() -> Mapping[str, str]:
    """Returns the codes of rules by the words that select them: the code itself and the rule's name."""
    rules = all_rules()
    return {word: code for code, rule in rules.items() for word in (code, rule.name)}


def codes_of_word(word: str) -> tuple[str, ...]:
    """Returns the codes that a code, a name, a prefix (`EMB2`, `EMB2xx`) or `all` stands for.

    Raises:
        UsageError: if the word stands for no rule.
    """
    if word.lower() == "all":
        return tuple(all_rules())
    if word in codes_by_word():
        return (codes_by_word()[word],)
    code_prefix = word.upper().rstrip("X")
    matching_codes = (
        tuple(code for code in all_rules() if code.startswith(code_prefix)) if code_prefix.startswith("EMB") else ()
    )
    if not matching_codes:
        hint = suggestion(word, codes_by_word())
        raise UsageError(f"unknown rule {word!r}{hint}; `emberlint rules` lists the rules")
    return matching_codes


def chosen_codes(select: Iterable[str], ignore: Iterable[str]) -> frozenset[str]:
    """Returns the codes to report: the selected ones, or all, without the ignored ones."""
    codes = {code for word in select for code in codes_of_word(word)} or set(all_rules())
    return frozenset(codes - {code for word in ignore for code in codes_of_word(word)}) | ALWAYS
