"""What notebooks show: tables of HTML in which every text is escaped."""

from collections.abc import Callable
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import pytest

import emberharmony
from emberharmony import io, nn, ops
from emberharmony.core.display.html import html_table


class _Reader(HTMLParser):
    """Reads rows of cells and paragraphs, and checks that each tag is closed."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.open: list[str] = []
        self.rows: list[list[str]] = []
        self.paragraphs: list[str] = []
        self.feed(text)
        self.close()
        assert not self.open

    def handle_starttag(self, tag: str, attrs: Any) -> None:
        assert tag in ("div", "p", "table", "thead", "tbody", "tr", "th", "td")
        self.open.append(tag)
        if tag == "tr":
            self.rows.append([])
        elif tag in ("th", "td"):
            self.rows[-1].append("")
        elif tag == "p":
            self.paragraphs.append("")

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag

    def handle_data(self, data: str) -> None:
        if self.open[-1] == "p":
            self.paragraphs[-1] += data
        else:
            self.rows[-1][-1] += data


def test_a_table_has_all_texts_escaped() -> None:
    text = html_table("<a> & b\nsecond", ["x<", "y"], [["<script>", '"1"'], ["&amp;", "2"]], notes="<c>")
    assert "<script" not in text
    found = _Reader(text)
    assert found.rows == [["x<", "y"], ["<script>", '"1"'], ["&amp;", "2"]]
    assert found.paragraphs == ["<a> & b", "second", "<c>"]


def test_a_table_without_rows_is_its_title() -> None:
    assert html_table("nothing", ["x"], []) == "<div><p>nothing</p></div>"


def test_text_is_on_the_left_and_numbers_on_the_right() -> None:
    text = html_table("", ["a", "b"], [["c", "1"]])
    assert text.count("left") == text.count("right") == 2


def test_a_module_is_shown_as_its_layers_with_their_options(backend: str) -> None:
    model = nn.Sequential(nn.Linear(4, 8), nn.BatchNorm1d(8), nn.Dropout(0.1))
    found = _Reader(model._repr_html_())
    assert found.rows[0] == ["name", "module", "parameters", "bytes"]
    assert [row[:3] for row in found.rows[1:3]] == [["", "Sequential", "56"], ["0", "Linear(4, 8)", "40"]]
    assert found.rows[-1] == ["2", "Dropout(p=0.1)", "0", "0"]
    assert found.paragraphs == ["Sequential", *model.summary().splitlines()[-1:]]


@pytest.mark.parametrize("watch", [ops.record, ops.profile])
def test_a_log_is_shown_as_its_table(watch: Callable[[], Any], backend: str) -> None:
    with watch() as log:
        ops.add(ops.ones(3), 1.0)
    found = _Reader(log._repr_html_())
    header, rows = log.cells()
    assert found.rows == [header, *rows]
    assert {row[0] for row in rows} >= {"add", "ones"}
    assert found.paragraphs[0].startswith("Log of ")


def test_a_long_log_is_shown_in_part(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("emberharmony.transforms.logs.log._SHOWN", 2)
    with ops.record() as log, ops.use_backend("numpy"):
        x = ops.exp(ops.sin(ops.add([1.0], 1.0)))
    found = _Reader(log._repr_html_())
    assert len(found.rows) == 3
    assert f"and {len({event.op for event in log}) - 2} more ops; table() has all" in found.paragraphs
    assert x.shape == (1,)


def test_a_comparison_is_shown_as_its_divergences() -> None:
    report = emberharmony.compare(ops.tanh, [1.0], backends=("numpy", "numpy"))
    assert _Reader(report._repr_html_()).paragraphs == ["no op of 1 calls is wrong"]

    def broken(x: Any) -> Any:
        return ops.convert_to_tensor([len(draws), 1.0]) if draws.append(1) is None else x

    draws: list[int] = []
    report = emberharmony.compare(lambda x: ops.exp(broken(x)), [1.0, 2.0], backends=("numpy", "numpy"))
    found = _Reader(report._repr_html_())
    assert found.paragraphs[0] == report.summary()
    assert len(found.rows) == 1 + len(report.divergences) > 1


def test_a_check_of_a_file_is_shown_with_its_largest_tensors(tmp_path: Path, backend: str) -> None:
    file = tmp_path / "a.safetensors"
    io.save({"<b>": ops.ones((2, 3)), **{f"w{i}": ops.ones(1) for i in range(20)}}, file)
    found = _Reader(io.check(file)._repr_html_())
    assert found.rows[:2] == [["name", "dtype", "shape", "bytes"], ["<b>", "float32", "(2, 3)", "24"]]
    assert len(found.rows) == 21
    assert found.paragraphs[-1] == "and 1 smaller tensors"
