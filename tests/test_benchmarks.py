"""The benchmarks run, and write the figures that their pages promise; no test asserts on a time."""

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from emberharmony.backend.discovery import is_installed
from tests.sampling import portion

FOLDER = Path(__file__).parents[1] / "benchmarks"
COLUMNS = {"native", "again", "ours", "again median", "ours median"}
SHORT = {
    "batching.py": (["--rounds", "1", "small"], {"perceptron, small", "gradients of each sample, small"}),
    "creation.py": (["--rounds", "1", "--seconds", "0", ", 16$"], {"arange(n), 16", "eye(m), 16", "hanning(n), 16"}),
    "models.py": (["--rounds", "1", "--batch", "1", "mlp|lstm fo"], {"mlp step, batch 1", "lstm forward, batch 1"}),
    "nn.py": (["--rounds", "1", "AdamW, 100 small, torch"], {"AdamW, 100 small, torch"}),
    "kernels.py": (
        ["--rounds", "1", "--seconds", "0", "--size", "4", "float32"],
        {"sum(x, 0), float32, 4", "where(x, x, y), float32, 4", "matmul(x, y), float32, 4"},
    ),
}


OTHERS = [pytest.param(name, marks=pytest.mark.slow) for name in ("torch", "mlx")]


def test_the_runner_lists_each_benchmark_and_runs_one() -> None:
    command = [sys.executable, "-m", "benchmarks"]
    where: dict[str, Any] = {"cwd": FOLDER.parent, "env": os.environ | {"PYTHONPATH": str(FOLDER.parent)}}
    listed = subprocess.run(command, capture_output=True, text=True, check=True, **where)
    names = {line.split()[0] for line in listed.stdout.splitlines() if line.startswith("  ")}
    assert names == {path.stem for path in FOLDER.glob("*.py") if "\ndef main() " in path.read_text()} - {"__main__"}
    helped = subprocess.run([*command, "walk", "-h"], capture_output=True, check=True, **where)
    assert b"--calls" in helped.stdout
    wrong = subprocess.run([*command, "speed"], capture_output=True, check=False, **where)
    assert wrong.returncode == 2


@pytest.mark.parametrize("path", sorted((FOLDER / "results").iterdir()), ids=lambda path: path.stem)
def test_recorded_results_have_the_one_format(path: Path) -> None:
    result = json.loads(path.read_text(encoding="utf-8"))
    assert set(result) == {"benchmark", "machine", "figures"}
    assert result["benchmark"] == path.stem
    assert "date" in result["machine"]
    assert (FOLDER / f"{path.stem}.py").is_file()
    rows = [row for group in result["figures"].values() for row in group.values()]
    assert all(isinstance(number, int | float) for row in rows for number in row.values())


@pytest.mark.parametrize("script", portion([*SHORT], 5))
@pytest.mark.parametrize("backend", ["numpy", *OTHERS])
def test_a_benchmark_writes_the_ratios_of_each_pair(script: str, backend: str, tmp_path: Path) -> None:
    if not is_installed(backend):
        pytest.skip(f"{backend} is not installed")
    if script == "nn.py":
        pytest.importorskip("torch")
    arguments, rows = SHORT[script]
    path = tmp_path / "figures.json"
    command = [sys.executable, str(FOLDER / script), "--backend", backend, "--json", str(path), *arguments]
    environment = os.environ | {"PYTHONPATH": str(FOLDER.parent)}
    done = subprocess.run(command, capture_output=True, text=True, env=environment, check=False)
    assert done.returncode == 0, done.stderr
    written = json.loads(path.read_text())
    compared = {"torch"} if script == "nn.py" else set()
    assert set(written["machine"]) == {"date", "python", "platform", "cores", backend} | compared
    figures = written["figures"][backend]
    assert rows <= set(figures)
    assert all(set(row) == COLUMNS and row["native"] > 0 and row["ours"] > 0 for row in figures.values())


def test_the_benchmark_of_programs_writes_a_row_for_each_size(tmp_path: Path) -> None:
    path = tmp_path / "figures.json"
    command = [sys.executable, str(FOLDER / "programs.py"), "--sizes", "1e2,1e3", "--rounds", "1", "--json", str(path)]
    environment = os.environ | {"PYTHONPATH": str(FOLDER.parent)}
    done = subprocess.run([*command, "softmax|mlp"], capture_output=True, text=True, env=environment, check=False)
    assert done.returncode == 0, done.stderr
    written = json.loads(path.read_text())
    assert set(written["figures"]["numpy"]) == {
        f"{name}, {size}" for name in ("softmax", "mlp") for size in (100, 1000)
    }
    assert all(set(row) == COLUMNS | {"first ms"} for row in written["figures"]["numpy"].values())


def test_the_walk_counts_the_calls_of_a_training_step() -> None:
    command = [sys.executable, str(FOLDER / "walk.py"), "--backend", "numpy", "--calls"]
    environment = os.environ | {"PYTHONPATH": str(FOLDER.parent)}
    done = subprocess.run(command, capture_output=True, text=True, env=environment, check=False)
    assert done.returncode == 0, done.stderr
    rows = {line[:24].strip(): line for line in done.stdout.splitlines() if line.startswith("numpy")}
    assert set(rows) == {"numpy   backward", "numpy   AdamW.step"}
    assert "optim/optimizer.py  Optimizer.step" in done.stdout


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["definition", "gradient", "batching", "shape"])
def test_the_benchmark_of_bodies_compares_what_stands_beside_them(kind: str) -> None:
    command = [sys.executable, str(FOLDER / "bodies.py"), kind, "^(expand_dims|hypot)$", "--rounds", "1"]
    environment = os.environ | {"PYTHONPATH": str(FOLDER.parent)}
    done = subprocess.run(command, capture_output=True, text=True, env=environment, check=False)
    assert done.returncode == 0, done.stderr
    found = [line.split()[:1] for line in done.stdout.splitlines()]
    assert found == [["expand_dims"]] + [["hypot"]] * (kind in ("definition", "gradient"))
    assert " to " in done.stdout
    assert ("wrong" in done.stdout) == (kind == "gradient")  # the second derivatives of the body of hypot


@pytest.mark.slow
def test_the_benchmark_of_files_writes_its_figures(tmp_path: Path) -> None:
    path = tmp_path / "figures.json"
    command = [sys.executable, str(FOLDER / "io.py"), "--megabytes", "1", "--rounds", "1", "--json", str(path)]
    environment = os.environ | {"PYTHONPATH": str(FOLDER.parent)}
    done = subprocess.run(command, capture_output=True, text=True, env=environment, check=False)
    assert done.returncode == 0, done.stderr
    assert {"save", "load", "load by a map"} <= set(json.loads(path.read_text())["figures"])


@pytest.mark.parametrize("backend", ["numpy", pytest.param("torch", marks=pytest.mark.slow)])
def test_the_benchmark_of_decompositions_compares_with_tensorly(backend: str, tmp_path: Path) -> None:
    pytest.importorskip("tensorly")
    if not is_installed(backend):
        pytest.skip(f"{backend} is not installed")
    path = tmp_path / "figures.json"
    command = [sys.executable, str(FOLDER / "decompositions.py"), "--backend", backend, "--rounds", "1"]
    environment = os.environ | {"PYTHONPATH": str(FOLDER.parent)}
    for options in (*portion([[], ["--by-hand"]], 2), ["--calls"]):
        run = [*command, *options, "--json", str(path), "tensor_train"]
        done = subprocess.run(run, capture_output=True, text=True, env=environment, check=False)
        assert done.returncode == 0, done.stderr
        figures = json.loads(path.read_text())["figures"][backend]
        assert set(figures) == (set() if options == ["--calls"] else {"tensor_train"})
    assert "tensor_train: shape" in done.stdout
    assert "svd 2" in done.stdout


@pytest.mark.slow
def test_the_benchmark_of_compiled_models_counts_compilations(tmp_path: Path) -> None:
    pytest.importorskip("torch")
    pytest.importorskip("mlx.core")
    path = tmp_path / "figures.json"
    command = [sys.executable, str(FOLDER / "compiled.py"), "--backend", "mlx", "--json", str(path), "--rounds", "1"]
    command.append("small")
    environment = os.environ | {"PYTHONPATH": str(FOLDER.parent)}
    done = subprocess.run(command, capture_output=True, text=True, env=environment, check=False)
    assert done.returncode == 0, done.stderr
    figures = json.loads(path.read_text())["figures"]["mlx"]
    assert set(figures) == {"step, small", "decoding, small"}
    for row in figures.values():
        assert set(row) > COLUMNS
        assert row["compiled native"] == row["compiled ours"] == 1


@pytest.mark.slow
def test_the_benchmark_of_imports_compares_two_checkouts(tmp_path: Path) -> None:
    path = tmp_path / "figures.json"
    options = ["--backend", "numpy", "--rounds", "1", "--beside", str(FOLDER.parent), "--json", str(path)]
    command = [sys.executable, str(FOLDER / "imports.py"), *options]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    (row,) = json.loads(path.read_text())["figures"]["numpy"].values()  # twice the same checkout
    assert row["ratio"] == pytest.approx((row["native"] + row["added"]) / row["native"])
