"""`emberlint port` of notebooks: the code of the cells, the bytes of the rest, the report by cell."""

import json
import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from click.testing import CliRunner, Result

from emberharmony import ops
from emberlint.cli import main
from tests.emberlint.notebooks import cell, notebook

PICTURE = {"image/png": "iVBORw0KGgo=\n", "text/plain": ["<Figure size 640x480 with 1 Axes>"]}
FIRST = ["%matplotlib inline\n", "import numpy as np\n", "from numpy.linalg import norm\n"]
SECOND = [
    "x = np.linspace(0.0, 1.0, 5)  # é\n",
    "%timeit np.sin(x)\n",
    "def length(v: np.ndarray, *, axis=0):\n",
    "    return np.sqrt(np.sum(v * v, axis=axis, keepdims=True))\n",
    "\n",
    "!ls {norm_of_x}\n",
    "norm_of_x = norm(x)",
]
THIRD = ["%%time\n", "y = np.stack([x, x + 1.0])\n", "z = np.nditer(y)\n", "length(y).astype(np.float32)"]


@pytest.fixture
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Returns a project with one notebook, as Jupyter saves it after it ran, and makes it the current folder."""
    (tmp_path / "pyproject.toml").write_text("[project]\nname = 'library'\n")
    shown = {"data": PICTURE, "metadata": {"needs_background": "light"}, "output_type": "display_data"}
    third = cell(THIRD, metadata={"tags": ["a"]}) | {"id": "c3", "outputs": [shown], "execution_count": 7}
    text = notebook(
        cell(FIRST) | {"id": "c1"},
        cell(["`np.sin` is a *sine*.\n"], kind="markdown"),
        cell(SECOND) | {"id": "c2"},
        cell(["%%bash\n", "echo np.sin"]),
        third,
        metadata={"kernelspec": {"display_name": "Python 3", "language": "python", "name": "python3"}, "x": [1.50, {}]},
    )
    (tmp_path / "n.ipynb").write_bytes(text.encode())
    monkeypatch.chdir(tmp_path)
    return tmp_path


def run(*words: str) -> Result:
    return CliRunner().invoke(main, ["port", *words])


def loaded(project: Path) -> dict[str, Any]:
    return dict(json.loads((project / "n.ipynb").read_text(encoding="utf-8")))


def sources(document: dict[str, Any]) -> list[str]:
    return ["".join(one["source"]) for one in document["cells"] if one["cell_type"] == "code"]


def test_the_cells_are_ported_as_one_module_and_the_rest_stays(project: Path) -> None:
    before = loaded(project)
    text = (project / "n.ipynb").read_text(encoding="utf-8")
    assert run("--mark", ".").exit_code == 0
    after = loaded(project)
    first, second, bash, third = sources(after)
    assert first == "from emberharmony import ops, Tensor\n\n%matplotlib inline\nimport numpy as np\n"  # for %timeit
    assert 'x = ops.linspace(0.0, 1.0, 5, dtype="float64")  # é\n%timeit np.sin(x)\n' in second
    assert (
        "    return ops.sqrt(ops.sum(v * v, axis=axis, keepdims=True))\n\n!ls {norm_of_x}\nnorm_of_x = ops.norm(x)"
        in second
    )
    assert bash == "%%bash\necho np.sin"
    assert third.startswith("%%time\ny = ops.stack([x, x + 1.0])\n# emberlint: port: numpy.nditer: no op")
    for one, other in zip(before["cells"], after["cells"], strict=True):
        assert one | {"source": []} == other | {"source": []}
    assert before | {"cells": []} == after | {"cells": []}
    outside = re.compile(r'"source": \[.*?\n   \]', re.DOTALL)
    now = (project / "n.ipynb").read_text(encoding="utf-8")
    assert len(outside.findall(now)) == 5
    assert outside.sub("", now) == outside.sub("", text)


@pytest.mark.parametrize("options", [(), ("--mark",)], ids=["plain", "marks"])
def test_a_second_port_of_a_notebook_changes_no_byte(project: Path, options: tuple[str, ...]) -> None:
    run(*options, ".")
    once = (project / "n.ipynb").read_bytes()
    again = run("n.ipynb")
    assert "0 of 1 files change" in again.stdout
    assert (project / "n.ipynb").read_bytes() == once
    assert run("--check", ".").exit_code == 0


def test_the_report_counts_by_cell(project: Path) -> None:
    shown = run("--check", ".")
    assert shown.exit_code == 1
    lines = shown.stdout.splitlines()
    assert lines[0].startswith("n.ipynb:cell 5:3: numpy.nditer: no op is known")
    assert lines[1:3] == ["n.ipynb:cell 3: 5 ported, 0 remain", "n.ipynb:cell 5: 3 ported, 1 remain"]
    (file,) = json.loads(run("--check", "--format", "json", ".").stdout)["files"]
    assert {"native": "numpy.stack", "kind": "call", "line": 2, "cell": 5} in file["ported"]
    assert [(one["cell"], one["line"]) for one in file["remaining"]] == [(5, 3)]
    assert "<td>cell 5:3</td>" in run("--check", "--format", "html", ".").stdout
    assert '+    "    return ops.sqrt' in run("--diff", ".").stdout.replace("   +", "+").replace('+   "', '+    "')


def test_the_ported_cells_compute_what_the_native_ones_do(project: Path) -> None:
    def value(document: dict[str, Any]) -> np.ndarray[Any, Any]:
        lines = [line for one in sources(document) if "%%bash" not in one for line in one.splitlines()]
        *body, last = [line for line in lines if not line.startswith(("%", "!"))]
        names: dict[str, Any] = {}
        exec("\n".join(body), names)
        return np.asarray(ops.to_numpy(eval(last, names)))

    with ops.use_backend("numpy"):
        expected = value(loaded(project))
        run(".")
        got = value(loaded(project))
    np.testing.assert_array_equal(expected, got)
    assert expected.dtype == got.dtype == np.float32


def test_a_notebook_that_is_none_is_skipped_with_the_reason(project: Path) -> None:
    (project / "n.ipynb").write_text("x = 1\n")
    result = run(".")
    assert "n.ipynb: skipped: not a notebook" in result.stderr
    assert (project / "n.ipynb").read_text() == "x = 1\n"


@pytest.mark.sampled(2)
def test_the_tests_of_a_check_run_find_the_ported_notebook(project: Path) -> None:
    (project / "test_n.py").write_text(
        "from pathlib import Path\n\n\ndef test_n():\n    assert 'ops.stack' not in Path('n.ipynb').read_text()\n"
    )
    result = run("--check-run", "python -m pytest -q -p no:cacheprovider test_n.py", "n.ipynb")
    assert "numpy: test_n::test_n: passed before, failure after" in result.stdout
