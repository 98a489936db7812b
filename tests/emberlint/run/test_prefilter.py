"""Rules that skip a file because its text lacks their words find the same as rules that look at every file."""

from pathlib import Path

import pytest

import emberlint
from emberlint.config.settings import Settings
from emberlint.run.check import check_text
from emberlint.run.registry import chosen_codes
from emberlint.source.names import Names
from emberlint.source.source_file import SourceFile

FOLDERS = [Path(emberlint.__file__).parent, Path(__file__).parent.parent / "labelled"]
FILES = [file for folder in FOLDERS for file in sorted(folder.rglob("*.py*")) if file.suffix in (".py", ".txt")]


class _Everything(set[str]):
    def __contains__(self, word: object) -> bool:
        return True


def _findings() -> list[tuple[object, ...]]:
    results = (
        check_text(f"library/{one.stem}.py", one.read_text(encoding="utf-8"), Settings(), chosen_codes((), ()))
        for one in FILES
    )
    return [one.findings for one in results]


def test_the_filter_hides_no_finding(monkeypatch: pytest.MonkeyPatch):
    filtered = _findings()
    monkeypatch.setattr(SourceFile, "mentions", lambda self, word: True)
    monkeypatch.setattr(SourceFile, "calls_method", lambda self, methods: True)
    monkeypatch.setattr(Names, "may_have_origin", lambda self, node, naming: True)
    monkeypatch.setattr(Names, "names_leading_to", lambda self, tops: _Everything())
    assert filtered == _findings()
    assert sum(map(len, filtered)) > 500
