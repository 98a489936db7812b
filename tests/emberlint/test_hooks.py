"""The pre-commit hooks: the tests run their entries on a repository, with the file names that pre-commit passes."""

import re
import shlex
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
MANIFEST = ROOT / ".pre-commit-hooks.yaml"
GOOD = "from emberharmony import ops\n\nx = ops.sin(1.0)\n"
OPERATOR = "from emberharmony import ops\n\nx = ops.sin(1.0) + 1  # one more\n"
IMPORT = "import numpy as np\n\nx = np.sin(1.0)\n"
CONTRACT = """
[tool.emberlint]
exclude = ["library/generated"]

[[tool.emberlint.contracts]]
name = "floors"
type = "layers"
layers = ["library.nn", "library.ops", "library.core"]
"""


def hooks() -> dict[str, dict[str, str]]:
    """Returns the keys and values of each hook; in the manifest each key has a line of its own."""
    found = {}
    for text in MANIFEST.read_text(encoding="utf-8").split("- id: ")[1:]:
        keys = dict(re.findall(r"^  ([a-z_]+): ([^#\n]*[^#\s])", text, re.MULTILINE))
        found[text.partition("\n")[0]] = keys
    return found


def git(folder: Path, *words: str) -> str:
    identity = ["-c", "user.name=a", "-c", "user.email=a@example.org", "-c", "commit.gpgsign=false"]
    return subprocess.run(["git", *identity, *words], cwd=folder, check=True, capture_output=True, text=True).stdout


@pytest.fixture
def repository(tmp_path: Path) -> Path:
    files = {
        "pyproject.toml": "[project]\nname = 'library'\n" + CONTRACT,
        "library/__init__.py": "",
        "library/ops.py": GOOD,
        "library/core.py": "",
        "library/generated/old.py": IMPORT,
        "tests/test_ops.py": IMPORT,
        "README.md": "import numpy\n",
    }
    for path, text in files.items():
        (tmp_path / path).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / path).write_text(text)
    git(tmp_path, "init", "-q", "-b", "trunk")
    git(tmp_path, "add", ".")
    git(tmp_path, "commit", "-q", "-m", "start")
    return tmp_path


def commit(repository: Path, name: str, **files: str) -> subprocess.CompletedProcess[str]:
    """Stages files and runs a hook as pre-commit does: in the root of the repository, on the staged Python files."""
    for stem, text in files.items():
        (repository / "library" / f"{stem}.py").write_text(text)
    git(repository, "add", ".")
    staged = git(repository, "diff", "--staged", "--name-only", "--diff-filter=ACMRTUXB").split()
    hook = hooks()[name]
    program, *words = shlex.split(hook["entry"])
    assert program == "emberlint"
    names = (
        [one for one in staged if one.endswith((".py", ".pyi", ".ipynb"))]
        if hook.get("pass_filenames") != "false"
        else []
    )
    command = [sys.executable, "-m", "emberlint", *words, *names]
    return subprocess.run(command, cwd=repository, capture_output=True, text=True, check=False)


def test_the_manifest_defines_three_hooks() -> None:
    assert [*hooks()] == ["emberlint", "emberlint-fix", "emberlint-contracts"]
    for hook in hooks().values():
        assert hook["language"] == "python"
        assert hook["additional_dependencies"] == '["./emberlint"]'
        assert hook["types_or"] == "[python, pyi, jupyter]"
        assert hook["require_serial"] == "true"  # emberlint starts its own processes
    scripts = tomllib.loads((ROOT / "emberlint" / "pyproject.toml").read_text())["project"]["scripts"]
    assert scripts["emberlint"] == "emberlint.__main__:main"


def test_pre_commit_accepts_the_manifest() -> None:
    clientlib = pytest.importorskip("pre_commit.clientlib")
    assert [one["id"] for one in clientlib.load_manifest(str(MANIFEST))] == [*hooks()]


@pytest.mark.fresh_process
def test_emberlint_checks_the_files_of_the_commit(repository: Path) -> None:
    assert commit(repository, "emberlint", ops=GOOD + "y = 1\n").returncode == 0
    done = commit(repository, "emberlint", nn=IMPORT)
    assert done.returncode == 1
    assert [line.split(": ")[0] for line in done.stdout.splitlines()] == ["library/nn.py:1:1", "library/nn.py:3:5"]


@pytest.mark.fresh_process
def test_an_excluded_file_is_skipped_even_if_the_hook_names_it(repository: Path) -> None:
    (repository / "library/generated/old.py").write_text(IMPORT + "y = 1\n")
    (repository / "tests/test_ops.py").write_text(IMPORT + "y = 1\n")
    done = commit(repository, "emberlint")
    assert (done.returncode, done.stdout) == (0, "")
    assert "in 1 file" in done.stderr


@pytest.mark.sampled(2)
@pytest.mark.fresh_process
def test_emberlint_fix_repairs_the_files_of_the_commit(repository: Path) -> None:
    (repository / "library/untouched.py").write_text(OPERATOR)
    git(repository, "add", ".")
    git(repository, "commit", "-q", "-m", "more")
    done = commit(repository, "emberlint-fix", nn=OPERATOR)
    assert done.returncode == 0
    assert (repository / "library/nn.py").read_text() == OPERATOR.replace(
        "ops.sin(1.0) + 1", "ops.add(ops.sin(1.0), 1)"
    )
    # The hook changed the file, so pre-commit would stop the commit.
    assert git(repository, "diff", "--name-only") == "library/nn.py\n"
    assert commit(repository, "emberlint-fix").returncode == 0
    assert git(repository, "diff", "--name-only") == ""
    assert commit(repository, "emberlint-fix", nn=IMPORT).returncode == 1  # it reports what it cannot repair


@pytest.mark.fresh_process
def test_emberlint_contracts_checks_the_whole_project(repository: Path) -> None:
    assert commit(repository, "emberlint-contracts", nn="from library import ops\n").returncode == 0
    git(repository, "commit", "-q", "-m", "a floor")
    (repository / "library/core.py").write_text("from library import nn\n")
    git(repository, "add", ".")
    git(repository, "commit", "-q", "-m", "upside down")
    done = commit(repository, "emberlint-contracts", ops=GOOD + "y = 1\n")
    assert done.returncode == 1
    assert "library/core.py:1:1: EMB301 layer-order" in done.stdout
    assert "EMB101" not in done.stdout
