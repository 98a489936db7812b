"""Runs the examples of the README and of the guide on every backend."""

import doctest
import importlib
import json
import os
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
PAGES = ("README.md", "docs/guide.md", "docs/five_minutes.md")


SWITCHED = ("numpy", "torch", "mlx")
"""The backends between which the programs of the README and of "Five minutes" switch."""


@pytest.mark.sampled(2)
@pytest.mark.parametrize("page", PAGES)
def test_the_python_blocks_of_a_page_run(
    page: str, backend: str, capsys: pytest.CaptureFixture[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    if page != "docs/guide.md" and (missing := {*SWITCHED} - {*ops.available_backends()}):
        pytest.skip(f"the page switches to {', '.join(sorted(missing))} too")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("MPLBACKEND", "agg")
    blocks = _blocks(page)
    space: dict[str, object] = {"__name__": "readme"}
    for block in blocks:
        if block.startswith(">>>"):
            assert _failed_examples(block, space) == 0
        else:
            exec(compile(block, page, "exec"), space)
    lines = capsys.readouterr().out.splitlines()
    if page == "README.md":
        assert [tuple(line.split()[:2]) for line in lines] == [(name, _kind(name)) for name in SWITCHED]
        assert float(lines[-1].split()[2]) < 0.5
        assert [file.name for file in tmp_path.iterdir()] == ["digits.safetensors"]
    if page == "docs/five_minutes.md":
        assert lines[:3] == [f"{name} {_kind(name)} [-7.0, -10.0]" for name in SWITCHED]
        assert int(lines[3].partition("%")[0]) > 90
        assert lines[4] == "200"
        assert (tmp_path / "loss.png").stat().st_size > 5000


def _blocks(page: str) -> list[str]:
    """Returns the programs of a page."""
    blocks = re.findall(r"```python\n(.*?)```", (ROOT / page).read_text(encoding="utf-8"), re.DOTALL)
    assert blocks
    return blocks


def _kind(name: str) -> str:
    """Returns the name of the class of the tensors of a backend."""
    with ops.use_backend(name):
        return type(ops.zeros(1)).__name__


@pytest.mark.fresh_process
@pytest.mark.slow
@pytest.mark.parametrize("page", ["README.md", "docs/five_minutes.md", "docs/index.md"])
def test_the_programs_of_a_page_print_no_warning_with_all_extras(page: str, tmp_path: Path) -> None:
    if missing := {*SWITCHED} - {*ops.available_backends()}:
        pytest.skip(f"the page switches to {', '.join(sorted(missing))} too")
    done = subprocess.run(
        [sys.executable, "-c", "\n".join(_blocks(page))],
        capture_output=True,
        text=True,
        check=True,
        cwd=tmp_path,
        env=os.environ | {"MPLBACKEND": "agg", "PYTHONPATH": os.pathsep.join([str(ROOT), *sys.path])},
    )
    assert done.stderr == ""


def test_the_readme_is_short_and_says_how_to_install_before_the_index_has_it() -> None:
    text = (ROOT / "README.md").read_text(encoding="utf-8")
    assert len(text.splitlines()) <= 90
    [block] = _blocks("README.md")
    assert len([line for line in block.splitlines() if line]) <= 15
    assert "not on the package index yet" in text
    assert 'pip install ".[torch,mlx]"' in text


@pytest.mark.parametrize("page", ["README.md", "docs/made.md"])
def test_a_page_that_says_that_no_gpu_or_mac_has_run_the_tests_has_no_report_of_one(page: str) -> None:
    text = (ROOT / page).read_text(encoding="utf-8")
    assert re.search(r"no GPU, Mac or Windows|\*\*GPUs\*\*: neither CUDA nor Metal", text)
    for path in (ROOT / "docs" / "reports").glob("*.json"):
        report = json.loads(path.read_text(encoding="utf-8"))
        assert report["system"].startswith("Linux"), f"{page} says that no other system has run the tests"
        assert {one["device"] for one in report["backends"].values()} == {"cpu"}, f"{page} says that no GPU has"


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


def test_the_make_targets_that_the_pages_name_exist() -> None:
    text = "".join((ROOT / page).read_text(encoding="utf-8") for page in ("README.md", "docs/made.md"))
    targets = set(re.findall(r"`make ([\w-]+)", text))
    makefile = (ROOT / "Makefile").read_text(encoding="utf-8")
    assert {"demo", "test", "bench", "docs", "mutants", "zoo"} <= targets
    for target in targets:
        assert re.search(rf"^{target}:", makefile, re.MULTILINE), target


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


def test_the_page_on_installing_names_every_extra_and_all_has_every_extra() -> None:
    extras = _extras()
    users = extras.keys() - DEVELOPERS
    listed = re.search(r"The extras are (.*?)\. Only", (ROOT / "docs" / "install.md").read_text(), re.DOTALL)
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
        named.update(
            re.findall(r'^ +require_packages\("\w+", "(\w+)"', text, re.MULTILINE)
        )  # `cli.extras.require_packages` writes the message
    assert {"conformance", "plot", "bfloat16"} <= named
    assert named <= _extras().keys()
