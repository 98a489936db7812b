"""How fast emberlint reads: `python benchmarks/lint.py [FOLDER ...] [--lines N]`.

Copies Python files of the folders to a temporary place until they hold N lines, checks them with every rule, and
prints lines per CPU second of one process, beside what parsing alone costs, and how long a cold and a warm run of the
command take. Where no folder is named, that is done for the standard library, which holds no tensors, and for SciPy and
Matplotlib, which hold little else. Ratios are what counts: the machine is not yours.
"""

import argparse
import ast
import platform
import shutil
import subprocess
import sys
import sysconfig
import tempfile
import time
import warnings
from pathlib import Path

from emberlint.config.configuration import load
from emberlint.run.check import check_text
from emberlint.run.file_cache import FOLDER
from emberlint.run.pool import default_jobs
from emberlint.run.registry import all_rules, chosen
from emberlint.source.discover import discover
from emberlint.source.reading import read_text

ROUNDS = 3
PACKAGES = Path(sysconfig.get_path("purelib"))
DEFAULTS = [[Path(sysconfig.get_path("stdlib"))], [PACKAGES / "scipy", PACKAGES / "matplotlib"]]


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("folders", nargs="*", type=Path)
    parser.add_argument("--lines", type=int, default=150_000)
    asked = parser.parse_args()
    print(f"Python {platform.python_version()}, {platform.machine()}, {default_jobs()} cores")
    for folders in [asked.folders] if asked.folders else DEFAULTS:
        with tempfile.TemporaryDirectory() as name:
            measure(Path(name), folders, asked.lines)


def measure(tree: Path, folders: list[Path], limit: int) -> None:
    """Measure on a copy of some folders."""
    (tree / "pyproject.toml").write_text("[project]\nname = 'measured'\n", encoding="utf-8")
    lines, files = copy(folders, tree / "package", limit)
    print(f"\n{', '.join(one.name for one in folders)}: {lines} lines in {files} files")
    if lines:
        measure_rules(tree, lines)
        measure_command(tree)


def copy(folders: list[Path], target: Path, limit: int) -> tuple[int, int]:
    """Copy files that parse until they hold enough lines; return lines and files."""
    lines = files = 0
    for folder in folders:
        for file in sorted(folder.rglob("*.py")):
            if lines >= limit or {"site-packages", "lib2to3", "test", "tests"} & {*file.relative_to(folder).parts}:
                continue
            try:
                text = read_text(file.read_bytes())
                parse(text)
            except (SyntaxError, ValueError):
                continue
            place = target / folder.name / file.relative_to(folder)
            place.parent.mkdir(parents=True, exist_ok=True)
            shutil.copyfile(file, place)
            lines += text.count("\n")
            files += 1
    return lines, files


def parse(text: str) -> ast.Module:
    """Return the tree of a text, silently."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return ast.parse(text)


def measure_rules(tree: Path, lines: int) -> None:
    """Print lines per CPU second in this process: parsing alone, then all rules."""
    settings = load(tree)
    codes = chosen((), ())
    texts = {path: read_text(file.read_bytes()) for path, file in discover([tree], settings).items()}
    parsing, checking, found = [], [], 0
    for _ in range(ROUNDS):
        start = time.process_time()
        for text in texts.values():
            parse(text)
        middle = time.process_time()
        found = sum(len(check_text(path, text, settings, codes).findings) for path, text in texts.items())
        end = time.process_time()
        parsing.append(middle - start)
        checking.append(end - middle)
    print(f"parsing alone     {lines / min(parsing):10,.0f} lines per CPU second")
    print(f"all {len(all_rules())} rules      {lines / min(checking):10,.0f} lines per CPU second, {found} findings")


def measure_command(tree: Path) -> None:
    """Print the wall time of the command, cold and warm, on one process and on as many as there are cores."""
    command = [sys.executable, "-m", "emberlint", "check", str(tree), "--exit-zero"]
    for jobs in (["-j", "1"], []):
        colds, warms = [], []
        for _ in range(ROUNDS):
            shutil.rmtree(tree / FOLDER, ignore_errors=True)
            colds.append(timed([*command, *jobs]))
            warms.append(timed([*command, *jobs]))
        cold, warm = min(colds), min(warms)
        name = " ".join(jobs) or "all cores"
        print(f"command, {name:9} cold {cold:6.2f} s, warm {warm:5.2f} s, {cold / warm:5.1f} times faster")


def timed(command: list[str]) -> float:
    """Return how long a command takes."""
    start = time.perf_counter()
    subprocess.run(command, check=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    return time.perf_counter() - start


if __name__ == "__main__":
    main()
