"""Every rule on its own examples: the findings to report, the code to accept, and the repairs to make."""

import re
from pathlib import Path

import pytest

from emberlint.config.configuration import settings_from_table
from emberlint.findings import Finding
from emberlint.rule import AnyRule, Example
from emberlint.run.engine import check_texts
from emberlint.run.registry import all_rules
from tests.together import together

RULES = all_rules()
NOWHERE = Path("/nowhere/project")  # the examples exist in memory only


def cases(kind: str) -> list[pytest.param]:
    return [
        pytest.param(rule, example, id=f"{code}-{number}")
        for code, rule in RULES.items()
        for number, example in enumerate(getattr(rule, kind))
    ]


def found(rule: AnyRule, example: Example) -> list[Finding]:
    settings = settings_from_table({"min-tier": rule.min_tier.name, **example.settings}, NOWHERE)
    texts = {example.path: example.source, **example.files}
    report = check_texts(texts, settings, frozenset(RULES))
    return [one for one in report.findings if one.code == rule.code and one.path == example.path]


@together("rule, example", cases("INVALID"))
def test_invalid_examples_have_findings(rule: AnyRule, example: Example) -> None:
    findings = found(rule, example)
    assert len(findings) == example.count, findings
    lines = example.source.count("\n") + 1
    for one in findings:
        assert 1 <= one.line <= one.end_line <= lines
        assert (one.line, one.column) <= (one.end_line, one.end_column)
        assert "{" not in one.message or "{" in example.source


@together("rule, example", cases("VALID"))
def test_valid_examples_are_clean(rule: AnyRule, example: Example) -> None:
    assert found(rule, example) == []


@together("rule, example", [one for one in cases("INVALID") if one.values[1].fixed is not None])
def test_the_repaired_form_is_clean(rule: AnyRule, example: Example) -> None:
    assert found(rule, Example(example.fixed, example.path, files=example.files, settings=example.settings)) == []


@pytest.mark.parametrize("rule", RULES.values(), ids=RULES)
def test_a_rule_has_a_code_a_name_a_message_and_a_reason(rule: AnyRule) -> None:
    assert re.fullmatch(r"EMB\d{3}", rule.code)
    assert re.fullmatch(r"[a-z]+(-[a-z]+)*", rule.name)
    assert all((rule.message, rule.why, type(rule).__doc__))
    assert type(rule).__module__.rpartition(".")[2] == rule.name.replace("-", "_")
    # EMB905 is about the baseline, which is not a source file; tests/emberlint/run/test_baseline.py tests it.
    assert rule.code == "EMB905" or (rule.VALID and rule.INVALID)


def test_names_and_codes_are_unique() -> None:
    assert len({rule.name for rule in RULES.values()}) == len(RULES)
