"""SARIF 2.1.0, which code hosts and editors read."""

import json
from collections.abc import Iterator, Sequence
from urllib.parse import quote

from emberlint.findings import Finding
from emberlint.rule import AnyRule
from emberlint.run.registry import all_rules

SCHEMA = "https://json.schemastore.org/sarif-2.1.0.json"


def report(findings: Sequence[Finding]) -> Iterator[str]:
    """Yields the document."""
    rules = all_rules()
    driver = {"name": "emberlint", "rules": [_rule(rule) for rule in rules.values()]}
    order = {code: index for index, code in enumerate(rules)}
    results = [_result(one, order[one.code]) for one in findings]
    run = {"tool": {"driver": driver}, "columnKind": "unicodeCodePoints", "results": results}
    yield json.dumps({"$schema": SCHEMA, "version": "2.1.0", "runs": [run]}, indent=2)


def _rule(rule: AnyRule) -> dict[str, object]:
    return {
        "id": rule.code,
        "name": rule.name,
        "shortDescription": {"text": (type(rule).__doc__ or rule.name).split("\n")[0]},
        "fullDescription": {"text": rule.why},
    }


def _result(finding: Finding, index: int) -> dict[str, object]:
    region = {
        "startLine": finding.line,
        "startColumn": finding.column,
        "endLine": finding.end_line,
        "endColumn": finding.end_column,
    }
    place = {"artifactLocation": {"uri": quote(finding.path.encode(errors="surrogateescape"))}, "region": region}
    result: dict[str, object] = {
        "ruleId": finding.code,
        "ruleIndex": index,
        "level": "error",
        "message": {"text": finding.message},
        "locations": [{"physicalLocation": place}],
        "properties": {"tier": finding.tier.name, "reason": finding.reason},
    }
    if finding.fingerprint:
        result["partialFingerprints"] = {"emberlint/v1": finding.fingerprint}
    return result
