"""GitLab's code quality report: a list of issues with fingerprints that stay the same when lines move."""

import json
from collections import Counter
from collections.abc import Iterator, Sequence
from hashlib import sha256

from emberlint.config.tiers import Tier
from emberlint.findings import Finding

SEVERITIES = {Tier.A: "major", Tier.B: "minor", Tier.C: "info"}  # the severity of a finding by its evidence


def report(findings: Sequence[Finding]) -> Iterator[str]:
    """Yields the GitLab code quality report as a JSON document."""
    count_by_fingerprint: Counter[str] = Counter()
    issues = []
    for finding in findings:
        fingerprint_text = "\0".join((finding.path, finding.code, finding.fingerprint or finding.message))
        count_by_fingerprint[fingerprint_text] += 1
        hashed_bytes = f"{fingerprint_text}\0{count_by_fingerprint[fingerprint_text]}".encode(errors="surrogateescape")
        file_lines = finding.file_lines
        issues.append(
            {
                "description": f"{finding.code} {finding.name}: {finding.message}",
                "check_name": finding.name,
                "fingerprint": sha256(hashed_bytes).hexdigest()[:40],
                "severity": SEVERITIES[finding.tier],
                "location": {"path": finding.path, "lines": {"begin": file_lines[0], "end": file_lines[-1]}},
            }
        )
    yield json.dumps(issues, indent=2)
