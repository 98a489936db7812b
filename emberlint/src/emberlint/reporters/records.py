"""A finding as a record of plain values, shared by the JSON formats."""

from emberlint.findings import Finding

Record = dict[str, object]


def record(finding: Finding) -> Record:
    """Returns the record of a finding; lines and columns count from 1, in a notebook from the start of the cell."""
    fix = finding.fix
    return {
        "code": finding.code,
        "name": finding.name,
        "path": finding.path,
        "cell": finding.cell or None,
        "line": finding.line,
        "column": finding.column,
        "end_line": finding.end_line,
        "end_column": finding.end_column,
        "message": finding.message,
        "tier": finding.tier.name,
        "reason": finding.reason,
        "fix": None
        if fix is None
        else {"safety": fix.safety.value, "title": fix.title, "replacement": fix.replacement},
    }
