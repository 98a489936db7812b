"""The files around a document are known until one of them, a folder or the imports change."""

from pathlib import Path

import pytest

from emberlint.config.settings import Settings
from emberlint.run import check as single
from emberlint.run import run_cache
from emberlint.run.file_cache import FileCache
from emberlint.server.session import Session
from emberlint.server.surroundings import Surroundings

TEXT = "from library.core import made\n\ny = made() + 1\n"


@pytest.fixture
def root(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setattr(run_cache, "TICK", -1_000_000_000)  # a test cannot set the ctime of a file
    (tmp_path / "pyproject.toml").write_text("[project]\nname = 'library'\n")
    (tmp_path / "library").mkdir()
    (tmp_path / "library" / "core.py").write_text("from library.low import f as made\n")
    (tmp_path / "library" / "low.py").write_text("def f():\n    return 3\n")
    (tmp_path / "library" / "user.py").write_text("")
    return tmp_path


def around(root: Path) -> Surroundings:
    settings = Settings(root=root)
    return Surroundings("library/user.py", TEXT, settings, FileCache(settings, (), enabled=False))


def test_they_hold_while_only_the_document_changes(root: Path) -> None:
    kept = around(root)
    (root / "library" / "user.py").write_text(TEXT)
    assert kept.is_valid_for(TEXT)
    assert kept.is_valid_for(TEXT + "z = y * 2\nimport math\n")


@pytest.mark.parametrize("text", ["", "import library.low\n" + TEXT, "def f():\n    " + TEXT.split("\n")[0]])
def test_another_import_of_the_document_ends_them(root: Path, text: str) -> None:
    assert not around(root).is_valid_for(text)


def test_a_change_of_a_file_that_is_imported_indirectly_ends_them(root: Path) -> None:
    kept = around(root)
    (root / "library" / "low.py").write_text("def f():\n    return 34\n")
    assert not kept.is_valid_for(TEXT)


@pytest.mark.parametrize("name", ["library/core/__init__.py", "library.py"])
def test_a_new_file_that_a_module_may_be_ends_them(root: Path, name: str) -> None:
    kept = around(root)
    (root / name).parent.mkdir(exist_ok=True)
    (root / name).write_text("")
    assert not kept.is_valid_for(TEXT)


def test_a_file_that_is_gone_ends_them(root: Path) -> None:
    kept = around(root)
    (root / "library" / "low.py").unlink()
    assert not kept.is_valid_for(TEXT)


def test_files_that_may_change_without_another_time_are_read_again(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(run_cache, "TICK", 3_600_000_000_000)
    assert not around(root).is_valid_for(TEXT)


def test_another_document_makes_no_summary_again(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    seen: list[str] = []
    check_text = single.check_text
    monkeypatch.setattr(single, "check_text", lambda path, *rest: (seen.append(path), check_text(path, *rest))[1])
    session = Session()
    session.check(root / "library" / "user.py", TEXT, whole=False)
    assert seen == ["library/low.py", "library/core.py"]
    session.check(root / "library" / "user.py", TEXT + "from library import low\n", whole=False)
    session.check(root / "library" / "core.py", "from library.low import f as made\n", whole=False)
    assert seen == ["library/low.py", "library/core.py"]
    session.check(root / "library" / "new.py", TEXT, whole=False)  # nothing was known of a file of this name
    assert len(seen) == 2


MODULES = {
    "a.py": "from library.b import g\nfrom emberharmony import ops\n\ndef f(x):\n    return ops.exp(g(x))\n",
    "b.py": "from emberharmony import ops\n\ndef g(x):\n    from library import a\n    return a.f(x) + ops.ones(3)\n",
    "c.py": "from library.a import f\nfrom library.b import g\n\ny = f(3) + g(4) * 2\n",
    "d.py": "from library.c import y\n\nz = y + 1\n",
}


def test_the_findings_do_not_depend_on_the_documents_that_were_open_before(root: Path) -> None:
    for name, text in MODULES.items():
        (root / "library" / name).write_text(text)
    expected = {name: found(Session(), root, name, text) for name, text in MODULES.items()}
    assert [len(one) for one in expected.values()] == [0, 1, 2, 1]
    session = Session()
    for name in [*MODULES, *reversed(MODULES)]:
        assert found(session, root, name, MODULES[name]) == expected[name]
        found(session, root, name, f"import library.d\nimport library.c\n{MODULES[name]}")
        assert found(session, root, name, MODULES[name]) == expected[name]
        found(session, root, name, "")


def found(session: Session, root: Path, name: str, text: str) -> list[str]:
    findings = session.check(root / "library" / name, text, whole=False).findings
    return [f"{one.line}:{one.column}:{one.code}" for one in findings]
