"""PyInstaller hooks: a frozen program contains the modules that the package imports by name."""

import subprocess
import sys
import tomllib
from importlib import import_module
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
PROGRAM = """\
from emberharmony import create_backend, ops

create_backend("numpy", fallback=None)
x = ops.convert_to_tensor([0.0, 0.0])
print(ops.softmax(x).tolist())
print(ops.grad(lambda x: ops.sum(ops.sin(x)))(x).tolist())
print(ops.vmap(ops.sin)(x).tolist())
print(ops.compile(ops.cos)(x).tolist())
print(ops.ctc_decode([[[0.1, 0.9]]], [1])[0].tolist())
"""


def test_the_entry_point_names_the_folder_of_the_hook() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    module, _, name = project["entry-points"]["pyinstaller40"]["hook-dirs"].partition(":")
    folders = getattr(import_module(module), name)()
    assert [(Path(folder) / "hook-emberharmony.py").is_file() for folder in folders] == [True]


@pytest.mark.slow
@pytest.mark.fresh_process
def test_a_frozen_program_prints_what_the_script_prints(tmp_path: Path) -> None:
    pytest.importorskip("PyInstaller", reason="PyInstaller is not installed")
    (tmp_path / "app.py").write_text(PROGRAM)
    subprocess.run(
        [sys.executable, "-m", "PyInstaller", "--noconfirm", "--log-level", "WARN", "app.py"], cwd=tmp_path, check=True
    )
    here = subprocess.run([sys.executable, "app.py"], cwd=tmp_path, capture_output=True, text=True, check=True)
    frozen = subprocess.run([tmp_path / "dist/app/app"], cwd=tmp_path, capture_output=True, text=True, check=True)
    assert frozen.stdout == here.stdout != ""
