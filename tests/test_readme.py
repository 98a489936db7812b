"""Runs the examples of the README and of the guide on every backend."""

import doctest
import re
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

from emberharmony import ops
from emberharmony.backend.discovery import BUILTIN, OPTIONAL

ROOT = Path(__file__).parents[1]
PAGES = ("README.md", "docs/guide.md")


@pytest.mark.parametrize("page", PAGES)
def test_the_python_blocks_of_a_page_run(page: str, backend: str, capsys: pytest.CaptureFixture[str]) -> None:
    blocks = re.findall(r"```python\n(.*?)```", (ROOT / page).read_text(), re.DOTALL)
    assert blocks
    space: dict[str, object] = {"__name__": "readme"}
    for block in blocks:
        if block.startswith(">>>"):
            assert _failed_examples(block, space) == 0
        else:
            exec(compile(block, page, "exec"), space)
    if page == "README.md":
        names = ops.available_backends()
        output, losses = (lines := capsys.readouterr().out.splitlines())[: -len(names)], lines[-len(names) :]
        assert output[-2:] == ["numpy [[11]]", "[2.0, 4.0]"]
        assert [line.split()[0] for line in losses] == list(names)
        assert float(losses[-1].split()[1]) < 2.0 / len(names)
        assert all(line.endswith("[0.0, 0.0]") for line in output[:-2])
        assert {line.split()[0] for line in output[:-2]} == set(ops.available_backends())


def _failed_examples(block: str, space: dict[str, object]) -> int:
    """Runs the examples of an interactive session, which see and change the names in `space`."""
    session = doctest.DocTestParser().get_doctest(block, {}, "session", None, 0)
    session.globs = space
    runner = doctest.DocTestRunner()
    runner.run(session, clear_globs=False)
    return runner.failures


def test_the_make_targets_that_the_readme_names_exist() -> None:
    text = (ROOT / "README.md").read_text()
    targets = set(re.findall(r"make (\w+)", text))
    makefile = (ROOT / "Makefile").read_text()
    assert {"demo", "test", "bench", "docs"} <= targets
    assert all(re.search(rf"^{target}:", makefile, re.MULTILINE) for target in targets - {"the"})


def test_the_files_that_the_pages_name_exist() -> None:
    text = "".join((ROOT / page).read_text() for page in (*PAGES, "CONTRIBUTING.md", "docs/backends.md"))
    for name in set(re.findall(r"`((?:docs|tests|emberharmony|examples)/[\w/.]+\.\w+)`", text)):
        assert (ROOT / name).exists(), name


def test_the_committed_generated_files_are_current() -> None:
    subprocess.run([sys.executable, str(ROOT / "utils" / "generate.py"), "--check"], check=True)


DEVELOPERS = {"test", "models-test", "recipes", "docs", "dev", "bench"}
"""The extras that only work on the project itself needs."""


def _extras() -> dict[str, list[str]]:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    return dict(project["optional-dependencies"])


def test_the_readme_names_every_extra_and_all_has_every_extra() -> None:
    extras = _extras()
    users = extras.keys() - DEVELOPERS
    listed = re.search(r"The extras are (.*?)\. Only", (ROOT / "README.md").read_text(), re.DOTALL)
    assert listed is not None
    assert users <= set(re.findall(r"`([\w]+)`", listed[1]))
    [everything] = extras["all"]
    assert set(re.findall(r"\w+", everything)) == users - {"all"} | {"emberharmony"}


def test_an_extra_that_a_message_or_page_names_exists() -> None:
    named: set[str] = {*BUILTIN, *OPTIONAL} - {"numpy"}  # `install_line` writes the name of a backend
    for path in (ROOT / "README.md", *(ROOT / "docs").glob("*.md"), *(ROOT / "emberharmony").rglob("*.py")):
        text = path.read_text(encoding="utf-8")
        for extras in re.findall(r"emberharmony\[([\w,]+)\]", text):
            named.update(extras.split(","))
        named.update(re.findall(r'^ +need\("\w+", "(\w+)"', text, re.MULTILINE))  # `cli.extras.need` writes the message
    assert {"conformance", "plot", "bfloat16"} <= named
    assert named <= _extras().keys()
