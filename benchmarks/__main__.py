"""Runs a benchmark: `python -m benchmarks NAME [OPTION ...]`; without a name it lists all of them.

Each benchmark is a script of its own, whose options `python -m benchmarks NAME --help` prints. All write their results
in one format, with `--json FILE`, or into `benchmarks/results/NAME.json` with `--record`; the page "Benchmarks" of the
documentation shows what is recorded.
"""

import ast
import subprocess
import sys
from pathlib import Path

FOLDER = Path(__file__).parent
SUITE = ("dispatch", "kernels", "models", "gradients", "batching", "memory", "composites", "creation", "io")
"""What `python -m benchmarks all` runs, followed by two that compile."""


def questions() -> dict[str, str]:
    """Returns what each benchmark measures, by name: the scripts of this folder that have a `main`."""
    scripts = {}
    for path in sorted(FOLDER.glob("[!_]*.py")):
        tree = ast.parse(path.read_text(encoding="utf-8"))
        if any(isinstance(node, ast.FunctionDef) and node.name == "main" for node in tree.body):
            scripts[path.stem] = (ast.get_docstring(tree) or "").partition("\n")[0]
    return scripts


def run_benchmark(name: str, arguments: list[str]) -> int:
    """Runs a benchmark in a process of its own, and returns its exit status."""
    if "--record" in arguments and name != "check":  # whose records are counts of instructions by version
        flag_index = arguments.index("--record")
        arguments = [
            *arguments[:flag_index],
            "--json",
            str(FOLDER / "results" / f"{name}.json"),
            *arguments[flag_index + 1 :],
        ]
    return subprocess.call([sys.executable, str(FOLDER / f"{name}.py"), *arguments])


def main() -> int:
    """Runs what the command line names, and returns the exit status."""
    question_by_name, (name, *arguments) = questions(), sys.argv[1:] or [""]
    if name == "all":
        return max(run_benchmark(script_name, arguments) for script_name in (*SUITE, "decoding", "compiled"))
    if name in question_by_name:
        return run_benchmark(name, arguments)
    print((__doc__ or "").partition("\n")[0])
    for script_name, question in question_by_name.items():
        print(f"  {script_name:16}{question}")
    return 0 if name in ("", "-h", "--help") else 2


if __name__ == "__main__":
    sys.exit(main())
