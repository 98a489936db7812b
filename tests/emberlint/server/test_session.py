"""The documents of an editor: settings of their projects, findings while they change, repairs."""

from pathlib import Path

import pytest

from emberlint.config.errors import UsageError
from emberlint.server.session import Session

BAD = "from emberharmony import ops\n\nx = ops.ones(3)\ny = x + 1\n"
CONTRACT = """
[tool.emberlint]
exclude = ["library/generated.py"]
baseline = "accepted.json"

[[tool.emberlint.contracts]]
type = "layers"
layers = ["library.nn", "library.core"]
"""


@pytest.fixture
def library(tmp_path: Path) -> Path:
    (tmp_path / "pyproject.toml").write_text("[project]\nname = 'library'\n" + CONTRACT)
    (tmp_path / "library").mkdir()
    for name in ("__init__", "nn", "core", "generated"):
        (tmp_path / "library" / f"{name}.py").write_text("")
    return tmp_path / "library"


def codes(session: Session, file: Path, text: str, whole: bool = True) -> list[str]:
    return [f"{one.line}:{one.code}" for one in session.check(file, text, whole).findings]


def test_a_document_is_checked_with_the_settings_of_its_project(library: Path) -> None:
    session = Session()
    assert codes(session, library / "nn.py", BAD) == ["4:EMB201"]
    assert codes(session, library / "new.py", BAD) == ["4:EMB201"]  # not saved yet
    assert codes(session, library / "generated.py", BAD) == []
    assert codes(session, library.parent / "tests" / "test_nn.py", BAD) == []
    assert codes(session, library / "nn.py", "x = (\n") == ["1:EMB000"]
    settings = library.parent / "pyproject.toml"
    settings.write_text("[tool.emberlint]\nignore = ['EMB201']\n")
    assert codes(session, library / "nn.py", BAD) == []
    for text in ("[tool.emberlint]\nx = 1\n", "[tool.emberlint.per-file-ignores]\n'a' = ['EMB999']\n"):
        settings.write_text(text)
        with pytest.raises(UsageError):
            session.check(library / "nn.py", BAD)


def test_other_files_of_the_project_are_read_from_the_disk(library: Path) -> None:
    session, text = Session(), "from library.core import made\n\ny = made() + 1\n"
    assert codes(session, library / "nn.py", text) == []
    for _ in range(2):
        (library / "core.py").write_text("from emberharmony import ops\n\ndef made():\n    return ops.ones(3)\n")
        assert codes(session, library / "nn.py", text) == ["3:EMB201"]
        (library / "core.py").write_text("def made():\n    return 3\n")
        assert codes(session, library / "nn.py", text) == []


def test_findings_of_the_whole_project_move_with_their_lines(library: Path) -> None:
    session, text = Session(), "import math\nfrom library import nn\n"
    assert codes(session, library / "core.py", text) == ["2:EMB301"]
    assert codes(session, library / "core.py", "\n\n" + text, whole=False) == ["4:EMB301"]
    assert codes(session, library / "core.py", "import math\n", whole=False) == []
    assert codes(session, library / "core.py", text, whole=False) == ["2:EMB301"]
    session.forget(library / "core.py")
    assert codes(session, library / "core.py", text, whole=False) == []


def test_the_baseline_of_the_project_holds(library: Path) -> None:
    session = Session()
    (finding,) = session.check(library / "nn.py", BAD).findings
    entry = f'{{"path": "library/nn.py", "code": "EMB201", "fingerprint": "{finding.fingerprint}", "count": 1}}'
    for entries, found in (("[]", ["4:EMB201"]), (f"[{entry}]", [])):
        (library.parent / "accepted.json").write_text(f'{{"version": 1, "entries": {entries}}}')
        assert codes(session, library / "nn.py", BAD) == found


def test_a_finding_is_repaired_or_ignored(library: Path) -> None:
    text = BAD.replace("\n", "\r\n") + "import torch\r\nz = torch.sin(x)\r\nw = x * 2\r\n"
    checked = Session().check(library / "nn.py", text)
    by_code = {(one.line, one.code): one for one in checked.findings}
    assert checked.text_after_repair(by_code[4, "EMB201"]) == text.replace("x + 1", "ops.add(x, 1)")
    assert "z = ops.sin(x)\r\n" in checked.text_after_repair(by_code[6, "EMB102"])
    assert checked.text_after_repair(by_code[5, "EMB101"]) == text
    safe = text.replace("x + 1", "ops.add(x, 1)").replace("x * 2", "ops.multiply(x, 2)")
    assert checked.text_after_safe_repairs() == safe
    assert checked.text_after_ignore(by_code[6, "EMB102"]) == text.replace("(x)\r", "(x)  # noqa: EMB102\r")
    broken = Session().check(library / "nn.py", "x = (\n")
    assert broken.text_after_repair(by_code[4, "EMB201"]) == broken.text_after_ignore(by_code[4, "EMB201"]) == "x = (\n"
