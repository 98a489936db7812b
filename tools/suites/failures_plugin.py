"""Plugin of pytest: writes the names of the tests that fail, and how many ran, into the file EMBERHARMONY_FAILURES.

JAX compiles a program for each shape. Some thousands of them exhaust the areas of memory that Linux gives one process
(65,530), and the process ends. So what JAX has compiled is dropped after each test.
"""

import json
import os
import sys
from pathlib import Path
from typing import Any

_FAILED: dict[str, str] = {}
_COUNTS = {"passed": 0, "failed": 0, "skipped": 0}


def pytest_runtest_logreport(report: Any) -> None:
    """Counts a test when it was called, or failed or was skipped before."""
    if report.when == "call" or report.outcome != "passed":
        is_expected = hasattr(report, "wasxfail")
        _COUNTS["skipped" if is_expected else report.outcome] += 1
        if report.outcome == "failed" and not is_expected:
            _FAILED[report.nodeid] = str(getattr(report.longrepr, "reprcrash", "")).partition("\n")[0][-200:]


def pytest_runtest_teardown() -> None:
    """Drops the programs of JAX."""
    if "jax" in sys.modules:
        sys.modules["jax"].clear_caches()


def pytest_sessionfinish() -> None:
    """Writes the file."""
    Path(os.environ["EMBERHARMONY_FAILURES"]).write_text(json.dumps({"failures": _FAILED, **_COUNTS}), encoding="utf-8")
