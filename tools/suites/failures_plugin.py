"""Plugin of pytest: writes the names of the tests that fail, and how many ran, into the file EMBERHARMONY_FAILURES."""

import json
import os
from pathlib import Path
from typing import Any

_FAILED: dict[str, str] = {}
_COUNTS = {"passed": 0, "failed": 0, "skipped": 0}


def pytest_runtest_logreport(report: Any) -> None:
    """Counts a test when it was called, or failed or was skipped before."""
    if report.when == "call" or report.outcome != "passed":
        expected = hasattr(report, "wasxfail")
        _COUNTS["skipped" if expected else report.outcome] += 1
        if report.outcome == "failed" and not expected:
            _FAILED[report.nodeid] = str(getattr(report.longrepr, "reprcrash", "")).partition("\n")[0][-200:]


def pytest_sessionfinish() -> None:
    """Writes the file."""
    Path(os.environ["EMBERHARMONY_FAILURES"]).write_text(json.dumps({"failures": _FAILED, **_COUNTS}), encoding="utf-8")
