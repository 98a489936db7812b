"""Captures public models and compares them with PyTorch: `python tools/zoo`, which goes on where it was interrupted.

Each model is measured in a process of its own, so that a crash loses only that one; the results are JSON files in a
folder. `--table` prints the table of the docs from them.
"""

import argparse
import fnmatch
import functools
import json
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

HERE = Path(__file__).resolve().parent


def model_names() -> list[str]:
    """Returns the names of all models."""
    program = "import measure, registry; print(*registry.MODELS, sep='\\n')"
    completed_process = subprocess.run(
        [sys.executable, "-W", "ignore", "-c", program], cwd=HERE, capture_output=True, text=True, check=True
    )
    return completed_process.stdout.split()


def result_line(report: dict[str, Any]) -> str:
    """Returns the results of a model on one line."""
    return " | ".join(f"{mode} {mode_summary(report.get(mode, {'failure': 'crashed'}))}" for mode in ("eval", "train"))


def mode_summary(entry: dict[str, Any]) -> str:
    """Returns the results of a model in one mode: the time of the capture, and errors of outputs and gradients."""
    if "failure" in entry:
        return f"FAILED {entry['failure'][:300]}"
    summary_parts = [f"{entry['capture_s']:.1f} s {entry['calls']} calls, eager {error_text(entry['eager'])}"]
    return "; ".join([*summary_parts, *(f"{name} {error_text(values)}" for name, values in entry["backends"].items())])


def error_text(values: dict[str, Any]) -> str:
    """Returns the error of outputs and that of gradients."""
    failure = values.get("failure")
    return str(failure)[:300] if failure else f"{values['error']:.0e} {values['gradient']:.0e}"


def docs_table(folder: Path) -> str:
    """Returns the table of the docs."""
    rows = [
        "| model | capture, s | calls | PyTorch's float32 | NumPy | PyTorch | MLX | JAX |",
        "|---|---|---|---|---|---|---|---|",
    ]
    for path in sorted(folder.glob("*.json")):
        report = json.loads(path.read_text())
        entry = report["eval"]
        if "failure" in entry:
            rows.append(f"| {report['name']} | {entry['failure'].splitlines()[0][:100]} | | | | | | |")
            continue
        backend_results = [entry["backends"].get(name) for name in ("numpy", "torch", "mlx", "jax")]
        cells = [error_text(entry["eager"]), *(error_text(each) if each else "" for each in backend_results)]
        cells = [cell.replace("e-0", "e-") for cell in cells]
        rows.append(f"| {report['name']} | {entry['capture_s']:.1f} | {entry['calls']} | {' | '.join(cells)} |")
    return "\n".join(rows)


def lacks_backends(report: dict[str, Any], backends: list[str]) -> bool:
    """Returns whether a model has to be measured on a backend."""
    return "failure" not in report["eval"] and not set(backends) <= set(report["eval"]["backends"])


def drawn_names(seed: int) -> list[list[str]]:
    """Returns the names of models of timm and of transformers in a random order."""
    program = f"import json, measure, drawing; print('NAMES', json.dumps(drawing.shuffled_names({seed})))"
    completed_process = subprocess.run(
        [sys.executable, "-W", "ignore", "-c", program], cwd=HERE, capture_output=True, text=True, check=True
    )
    pools: list[list[str]] = json.loads(completed_process.stdout.partition("NAMES ")[2])
    return pools


@functools.cache
def measuring_process() -> Any:
    """Returns the process that measures models."""
    command = [sys.executable, "-W", "ignore", "measure.py"]
    return subprocess.Popen(command, cwd=HERE, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)


def request_measurement(name: str, path: Path, options: argparse.Namespace) -> str:
    """Has a model measured, and returns how that failed, or an empty text."""
    print(json.dumps([name, str(path), options.backends, options.timeout]), file=measuring_process().stdin, flush=True)
    for answer in measuring_process().stdout:
        if answer.startswith("DONE "):
            return str(json.loads(answer[5:]))
    raise SystemExit(f"measure.py ended with {measuring_process().wait()}")


def measure_model(name: str, options: argparse.Namespace) -> dict[str, Any]:
    """Returns the results of a model, measured in a process of its own unless they are in the folder; prints them."""
    path = (options.folder / f"{name.replace('/', '-').replace(':', '-')}.json").resolve()
    time_text = "before"
    if options.again:
        path.unlink(missing_ok=True)
    if not path.exists() or lacks_backends(json.loads(path.read_text()), options.backends):
        start = time.perf_counter()
        failure = request_measurement(name, path, options)
        if failure and not path.exists():
            path.write_text(json.dumps({"name": name, "eval": {"failure": failure}}))
        time_text = f"{time.perf_counter() - start:.0f} s"
    report: dict[str, Any] = json.loads(path.read_text())
    print(f"{name} ({time_text}): {result_line(report)}", flush=True)
    return report


def main() -> None:
    """Measures the models that have no result yet."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("patterns", nargs="*", default=["*"], help="names of models, in which * stands for any text")
    parser.add_argument("--folder", type=Path, default=Path("build/zoo"), help="where the results are")
    parser.add_argument("--backends", nargs="+", default=["numpy", "torch", "mlx"], help="where the models run")
    parser.add_argument("--again", action="store_true", help="measure models again that have a result")
    parser.add_argument("--timeout", type=int, default=600, help="seconds for a model")
    parser.add_argument("--table", action="store_true", help="print the table of the docs from the results")
    parser.add_argument(
        "--draw", type=int, default=0, help="measure so many models of timm and transformers instead, drawn by a seed"
    )
    parser.add_argument("--seed", type=int, default=2026, help="the seed of the draw")
    options = parser.parse_args()
    if options.table:
        print(docs_table(options.folder))
        return
    options.folder.mkdir(parents=True, exist_ok=True)
    if options.draw:
        for pool in drawn_names(options.seed):
            count = 0
            for name in pool:
                report = measure_model(name, options)
                is_made = not report["eval"].get("failure", "").startswith("NotMadeError")
                count += is_made
                if count == options.draw // 2:
                    break
        return
    chosen_names = [
        name for name in model_names() if any(fnmatch.fnmatch(name, pattern) for pattern in options.patterns)
    ]
    for name in chosen_names:
        measure_model(name, options)


if __name__ == "__main__":
    main()
