"""Shows which branches of the package no test takes, from what `reach` has recorded."""

import contextlib
import io
import tempfile
from collections.abc import Sequence
from pathlib import Path

import coverage

from mutants.mutant import ROOT
from mutants.reach import Reach


def branch_report(reach: Reach, paths: Sequence[str]) -> str:
    """Returns the report of coverage: the share of each file of which a part was not entered, and those lines.

    A file that has changed since its tests were recorded is left out, and so is one that no test has called.

    Args:
        reach: what the tests have entered.
        paths: files and folders of the package.
    """
    taken_branches = {
        str(ROOT / module): pairs for module, pairs in reach.taken_branches().items() if module.startswith(tuple(paths))
    }
    report_stream = io.StringIO()
    with tempfile.TemporaryDirectory(prefix="mutants-") as folder, contextlib.chdir(ROOT):
        file = str(Path(folder) / "data")
        coverage_data = coverage.CoverageData(file)
        coverage_data.add_arcs(taken_branches)
        coverage_data.write()
        coverage_report = coverage.Coverage(data_file=file, branch=True, config_file=str(ROOT / "pyproject.toml"))
        coverage_report.load()
        coverage_report.report(show_missing=True, skip_covered=True, file=report_stream)
    return report_stream.getvalue()
