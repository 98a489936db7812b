"""Without rich, a table is plain text and a progress bar does nothing."""

import sys

import pytest

from emberharmony.cli import drawing

ROWS = [("numpy", "1 to 60", "0.5"), ("torch", "61 to 120", "0.25")]


def test_a_table_without_rich_has_aligned_columns(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "rich", None)
    assert drawing.table(("backend", "steps", "loss"), ROWS).split("\n") == [
        "backend  steps      loss",
        "numpy    1 to 60    0.5",
        "torch    61 to 120  0.25",
    ]


def test_a_table_with_rich_has_the_same_cells() -> None:
    pytest.importorskip("rich")
    drawn = drawing.table(("backend", "steps", "loss"), ROWS).split("\n")
    cells = [tuple(cell.strip() for cell in line.strip("│").split("│")) for line in drawn if line.startswith("│")]
    assert cells == ROWS


@pytest.mark.parametrize("installed", [True, False])
def test_a_bar_shows_on_a_terminal_if_rich_is_installed(
    installed: bool, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    if installed:
        pytest.importorskip("rich")
    else:
        monkeypatch.setitem(sys.modules, "rich", None)
    monkeypatch.setenv("FORCE_COLOR", "1")
    monkeypatch.setattr(sys.stdout, "isatty", lambda: True)
    with drawing.progress(2, "training") as advance:
        advance(description="numpy sin")
        advance(0)
        advance()
    assert ("2/2" in capsys.readouterr().out) == installed


def test_a_bar_is_not_drawn_into_a_file(capsys: pytest.CaptureFixture[str]) -> None:
    with drawing.progress(1) as advance:
        advance()
    assert capsys.readouterr().out == ""
