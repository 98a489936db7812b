"""Runs the examples of the README and of the guide on every backend."""

import doctest
import importlib
import json
import re
import subprocess
import sys
import tomllib
from pathlib import Path
from types import ModuleType

import pytest

from emberharmony import ops
from emberharmony.backend.discovery import BUILTIN, OPTIONAL

ROOT = Path(__file__).parents[1]
PAGES = ("README.md", "docs/guide.md")


@pytest.mark.sampled(2)
@pytest.mark.parametrize("page", PAGES)
def test_the_python_blocks_of_a_page_run(
    page: str, backend: str, capsys: pytest.CaptureFixture[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    blocks = re.findall(r"```python\n(.*?)```", (ROOT / page).read_text(encoding="utf-8"), re.DOTALL)
    assert blocks
    space: dict[str, object] = {"__name__": "readme"}
    for block in blocks:
        if block.startswith(">>>"):
            assert _failed_examples(block, space) == 0
        else:
            exec(compile(block, page, "exec"), space)
    if page == "README.md":
        names = list(ops.available_backends())
        lines = capsys.readouterr().out.splitlines()
        slopes, within, losses = lines[: len(names)], lines[len(names)], lines[len(names) + 1 :]
        assert slopes == [f"{name} {_kind(name)} [-7.0, -10.0]" for name in names]
        assert within == "numpy [[11]]"
        assert [line.split()[0] for line in losses] == names
        assert float(losses[-1].split()[1]) < 2.0 / len(names)
        assert [file.name for file in tmp_path.iterdir()] == ["digits.safetensors"]


def _kind(name: str) -> str:
    """Returns the name of the class of the tensors of a backend."""
    with ops.use_backend(name):
        return type(ops.zeros(1)).__name__


def test_a_program_of_the_readme_has_at_most_fifteen_lines() -> None:
    blocks = re.findall(r"```python\n(.*?)```", (ROOT / "README.md").read_text(encoding="utf-8"), re.DOTALL)
    assert len(blocks) == 2
    for block in blocks:
        assert len([line for line in block.splitlines() if line]) <= 15


def test_every_link_of_the_readme_leads_to_a_file() -> None:
    text = (ROOT / "README.md").read_text(encoding="utf-8")
    links = set(re.findall(r"\]\(((?!http)[^)#]+)", text))
    assert len(links) > 10
    for link in links:
        assert (ROOT / link).exists(), link


@pytest.fixture(scope="module")
def table() -> ModuleType:
    sys.path.insert(0, str(ROOT / "docs"))
    try:
        return importlib.import_module("performance_table")
    finally:
        sys.path.remove(str(ROOT / "docs"))


def test_the_readme_says_of_other_libraries_what_was_measured(table: ModuleType) -> None:
    """`make performance` measures, and writes the figures and the versions."""
    recorded = json.loads(table.RESULTS.read_text(encoding="utf-8"))
    text = (ROOT / "README.md").read_text(encoding="utf-8")
    assert table.written(text, recorded) == text


def test_the_figures_of_the_readme_come_from_the_record(table: ModuleType) -> None:
    calls = [{"native": 1e-6, "ours": 1e-6 + ns * 1e-9, "array_api_compat": 2.26e-6} for ns in (900, 52, 60)]
    recorded = {
        "machine": {"versions": {"autoray": "0.12.3"}},
        "figures": {
            "calls": {**{f"numpy: {i}": row for i, row in enumerate(calls)}, "torch: 0": {"native": 1.0, "ours": 9.0}},
            "imports": {"import and one call": {"numpy": 0.1, "ours": 0.1904, "autoray": 3.8402}},
        },
    }
    text = "| | keras.ops 3.15 | autoray 0.11 |\n| one call on one element adds |\n| CPU time of it | 1 ms |\n| CPU |\n"
    assert table.written(text, recorded).splitlines() == [
        "| | keras.ops 3.15 | autoray 0.12 |",
        "| one call on one element adds (NumPy) | 0.06 µs | not measured | 1.3 µs | not measured |",
        "| CPU time of the import and one call (NumPy's: 100 ms) | 190 ms | not measured | not measured | 3,800 ms |",
        "| CPU |",
    ]
    with pytest.raises(ValueError, match="one row that begins with 'CPU time', found 0"):
        table.written("| one call on one element adds |\n", recorded)


OTHERS = """
import sys
from importlib.util import find_spec
if find_spec("keras"):
    import os, warnings
    os.environ["KERAS_BACKEND"] = "numpy"
    import keras, numpy as np
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        keras.config.set_backend("torch")
    assert type(keras.ops.ones(2)) is np.ndarray, "Keras has switched"
    assert not {"grad", "vjp", "value_and_grad", "jacobian", "hessian"} & set(dir(keras.ops))
    model = keras.Sequential([keras.layers.Dense(2)])
    model.compile("sgd", "mse")
    try:
        model.fit(np.ones((4, 3)), np.ones((4, 2)), verbose=0)
        raise AssertionError("Keras trains on NumPy")
    except NotImplementedError:
        pass
for name in ("array_api_compat", "autoray"):
    if find_spec(name):
        library = __import__(name)
        assert not any(callable(getattr(library, each, None)) for each in ("grad", "vjp", "value_and_grad")), name
"""


@pytest.mark.slow
def test_what_the_readme_says_of_other_libraries_holds() -> None:
    done = subprocess.run([sys.executable, "-c", OTHERS], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr


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
