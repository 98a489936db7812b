"""The report in SARIF 2.1.0, which code hosts and editors read."""

import json
from collections.abc import Iterator, Sequence
from functools import cache
from urllib.parse import quote

from emberlint import __version__
from emberlint.config.tiers import Tier
from emberlint.findings import Finding, Safety
from emberlint.rule import AnyRule
from emberlint.run.explanation import PAGE, explanation_lines, rule_address
from emberlint.run.registry import all_rules

LEVELS = {Tier.A: "error", Tier.B: "warning", Tier.C: "note"}  # the level of a finding by the strength of its evidence
SCHEMA = "https://json.schemastore.org/sarif-2.1.0.json"


def report(findings: Sequence[Finding]) -> Iterator[str]:
    """Yields the SARIF document, with a line for each finding."""
    rules = all_rules()
    driver_record = {
        "name": "emberlint",
        "version": __version__,
        "semanticVersion": __version__,
        "informationUri": PAGE,
        "rules": [_rule_object(rule) for rule in rules.values()],
    }
    index_by_code = {code: index for index, code in enumerate(rules)}
    run_record = {"tool": {"driver": driver_record}, "columnKind": "unicodeCodePoints", "results": []}
    closing_text = "]}]}"
    yield json.dumps({"$schema": SCHEMA, "version": "2.1.0", "runs": [run_record]}).removesuffix(closing_text)
    yield ",\n".join(json.dumps(_result_object(finding, index_by_code[finding.code])) for finding in findings)
    yield closing_text


@cache
def _path_uri(path: str) -> str:
    return quote(path.encode(errors="surrogateescape"))


def _rule_object(rule: AnyRule) -> dict[str, object]:
    return {
        "id": rule.code,
        "name": rule.name,
        "shortDescription": {"text": (type(rule).__doc__ or rule.name).split("\n")[0]},
        "fullDescription": {"text": rule.why},
        "help": {"text": rule.why, "markdown": "\n".join(explanation_lines(rule))},
        "helpUri": rule_address(rule),
        "defaultConfiguration": {"level": LEVELS[rule.min_tier]},
    }


def _result_object(finding: Finding, index: int) -> dict[str, object]:
    region_record = {"startLine": finding.file_lines[0]}
    if not finding.cell:  # a finding in a notebook has no columns of the file
        region_record.update(startColumn=finding.column, endLine=finding.end_line, endColumn=finding.end_column)
    physical_location = {"artifactLocation": {"uri": _path_uri(finding.path)}, "region": region_record}
    location_record: dict[str, object] = {"physicalLocation": physical_location}
    if finding.cell:
        location_record["logicalLocations"] = [{"name": f"cell {finding.cell}, line {finding.line}"}]
    result_record: dict[str, object] = {
        "ruleId": finding.code,
        "ruleIndex": index,
        "level": LEVELS[finding.tier],
        "message": {"text": finding.message},
        "locations": [location_record],
        "properties": {"tier": finding.tier.name, "reason": finding.reason},
    }
    if (
        finding.fix is not None
        and not finding.cell
        and finding.fix.safety is not Safety.GUIDED
        and finding.fix.replacement
    ):
        replacement_record = {"deletedRegion": region_record, "insertedContent": {"text": finding.fix.replacement}}
        artifact_change = {
            "artifactLocation": physical_location["artifactLocation"],
            "replacements": [replacement_record],
        }
        result_record["fixes"] = [{"description": {"text": finding.fix.title}, "artifactChanges": [artifact_change]}]
    if finding.fingerprint:
        result_record["partialFingerprints"] = {"emberlint/v1": finding.fingerprint}
    return result_record
