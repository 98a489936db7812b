"""Comments written by `--add-ignore`: where they stand, what they join, and that they silence."""

from pathlib import Path

import pytest

from emberlint.config.settings import Settings
from emberlint.run.engine import check, check_texts
from emberlint.run.ignore import add_comments, silence
from emberlint.run.registry import all_rules
from tests.emberlint.notebooks import cell, notebook

CODES = frozenset(all_rules())
USE = "from emberharmony import ops\n\nx = ops.ones(3)\n"


def found(text: str) -> dict[int, list[str]]:
    report = check_texts({"library/module.py": text}, Settings(root=Path("/nowhere")), CODES)
    lines: dict[int, list[str]] = {}
    for one in report.findings:
        lines.setdefault(one.line, []).append(one.code)
    return lines


@pytest.mark.parametrize(
    "line, wanted",
    [
        ("y = x + 1", "y = x + 1  # noqa: EMB201"),
        ("y = x + 1   ", "y = x + 1  # noqa: EMB201"),
        ("y = x + 1  # one more", "y = x + 1  # one more  # noqa: EMB201"),
        ("y = x + 1  # noqa", "y = x + 1  # noqa  # noqa: EMB201"),
        ("y = x + 1  # noqa: E501 -- long", "y = x + 1  # noqa: E501, EMB201 -- long"),
        ("y = x + 1  # NOQA:E501,F401", "y = x + 1  # NOQA:E501,F401, EMB201"),
        ("y = -x < 1  # noqa: EMB202", "y = -x < 1  # noqa: EMB202, EMB201"),
        ("y = -x < 1", "y = -x < 1  # noqa: EMB201, EMB202"),
        ("y = '#' + str(x + 1)", "y = '#' + str(x + 1)  # noqa: EMB201"),
        ("y = x + 1  # emberlint: ignore[EMB202]", "y = x + 1  # emberlint: ignore[EMB202]  # noqa: EMB201"),
        ("if (\n    x < 1\n):\n    pass", "if (\n    x < 1  # noqa: EMB202, EMB203\n):\n    pass"),
        ("y = (x +  # a\n     1)", "y = (x +  # a  # noqa: EMB201\n     1)"),
        ("y = x + \\\n    1", "y = x + \\\n    1  # noqa: EMB201"),
        ('y = f(x + 1, """a\nb\nc""")', 'y = f(x + 1, """a\nb\nc""")  # noqa: EMB201'),
        ("y = f(x + 1, \"\"\"a\nb\"\"\", '''c\nd''')", "y = f(x + 1, \"\"\"a\nb\"\"\", '''c\nd''')  # noqa: EMB201"),
        ('y = f(x + 1, f"""a\n{f"{1}"}\nc""" \\\n)', 'y = f(x + 1, f"""a\n{f"{1}"}\nc""" \\\n)  # noqa: EMB201'),
        ("while x:\n    '''a\n'''", "while x:  # noqa: EMB203\n    '''a\n'''"),
    ],
)
@pytest.mark.parametrize("end", ["\n", "\r\n", ""], ids=["lf", "crlf", "none"])
def test_a_comment_silences_the_findings_of_its_line(line: str, wanted: str, end: str) -> None:
    newline = end or "\n"
    text = (USE + line).replace("\n", newline) + end
    findings = found(text)
    codes = {number: [one for one in some if one < "EMB9"] for number, some in findings.items()}
    after = add_comments(text, {number: some for number, some in codes.items() if some})
    assert after == (USE + wanted).replace("\n", newline) + end
    assert not [code for some in found(after).values() for code in some if code < "EMB9"]
    assert add_comments(after, codes) == after


def test_a_comment_joins_no_line_of_the_interpreter() -> None:
    text = "#!/usr/bin/env python3\nx = 1\n"
    assert add_comments(text, {1: ["EMB305"]}) == text
    assert add_comments("", {1: ["EMB305"]}) == "# noqa: EMB305"
    assert add_comments('"""A.\n\nB."""\n', {1: ["EMB305"]}) == '"""A.\n\nB."""  # noqa: EMB305\n'


def test_a_text_that_does_not_parse_stays() -> None:
    assert add_comments("x = (\n", {1: ["EMB201"]}) == "x = (\n"


def silenced(root: Path, name: str, content: bytes) -> bytes:
    (root / name).write_bytes(content)
    settings = Settings(root=root)
    for _ in range(2):
        report = check({name: root / name}, settings, CODES, cached=False)
        silence(report.findings, settings, write=True)
    assert report.findings == []
    return (root / name).read_bytes()


@pytest.mark.parametrize("end", [b"\n", b"\r\n"])
@pytest.mark.parametrize("coding", ["utf-8", "latin-1"])
def test_a_file_keeps_its_encoding_and_line_ends(tmp_path: Path, coding: str, end: bytes) -> None:
    def encoded(line: str) -> bytes:
        return f"# coding: {coding}\n# é\n{USE}{line}\n".encode(coding).replace(b"\n", end)

    assert silenced(tmp_path, "m.py", encoded("y = x + 1")) == encoded("y = x + 1  # noqa: EMB201")
    assert [one.name for one in tmp_path.iterdir()] == ["m.py"]


def test_cells_of_a_notebook_get_comments(tmp_path: Path) -> None:
    cells = [cell(["%%time\n", "from emberharmony import ops\n"]), cell(["!ls\n", "y = ops.ones(3) + 1"])]
    content = notebook(*cells)
    wanted = content.replace("+ 1", "+ 1  # noqa: EMB201")
    assert silenced(tmp_path, "n.ipynb", content.encode()) == wanted.encode()


def test_what_no_comment_can_silence_is_left(tmp_path: Path) -> None:
    (tmp_path / "m.py").write_text("x = (\n")
    (tmp_path / "n.py").write_text("x = 1  # emberlint: ignore\n")
    report = check({name: tmp_path / name for name in ("m.py", "n.py")}, Settings(root=tmp_path), CODES, cached=False)
    assert [one.code for one in report.findings] == ["EMB000", "EMB903"]
    assert silence(report.findings, Settings(root=tmp_path), write=True) == {}
