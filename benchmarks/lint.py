"""Measures how many lines emberlint checks in a second, and how long an editor waits.

It copies Python files from the folders to a temporary one until they have N lines, and checks them with every rule.
It prints the lines per CPU second of one process: of parsing alone, of each file by itself, and of a whole cold
check, in which the files know each other. Then it prints the CPU time of an editor's requests on files of about 1,000
lines, and the times of the command with an empty cache (cold) and with a filled one (warm). By default it does so for
150,000 lines of the standard library, which has no tensors, and for as many of SciPy and Matplotlib, which have many.
Compare ratios only: the absolute times depend on the machine.
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

from emberlint.config.configuration import load_settings
from emberlint.findings import Safety
from emberlint.run.check import check_text
from emberlint.run.engine import check
from emberlint.run.file_cache import FOLDER
from emberlint.run.pool import default_jobs
from emberlint.run.registry import all_rules, chosen_codes
from emberlint.server.session import Session
from emberlint.source.discover import discover
from emberlint.source.reading import read_text

ROUNDS = 3
PACKAGES = Path(sysconfig.get_path("purelib"))
DEFAULTS = [[Path(sysconfig.get_path("stdlib"))], [PACKAGES / "scipy", PACKAGES / "matplotlib"]]


def main() -> None:
    """Measures the folders, and prints the results."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("folders", nargs="*", type=Path)
    parser.add_argument("--lines", type=int, default=150_000)
    options = parser.parse_args()
    print(f"Python {platform.python_version()}, {platform.machine()}, {default_jobs()} cores")
    for folders in [options.folders] if options.folders else DEFAULTS:
        with tempfile.TemporaryDirectory() as name:
            measure_folders(Path(name), folders, options.lines)


def measure_folders(tree: Path, folders: list[Path], limit: int) -> None:
    """Measures a copy of some folders, made in `tree`."""
    (tree / "pyproject.toml").write_text("[project]\nname = 'measured'\n", encoding="utf-8")
    lines, files = copy_files(folders, tree / "package", limit)
    print(f"\n{', '.join(folder.name for folder in folders)}: {lines} lines in {files} files")
    if lines:
        measure_rules(tree, lines)
        measure_editor(tree)
        measure_command(tree)


def copy_files(folders: list[Path], target: Path, limit: int) -> tuple[int, int]:
    """Copies files that can be parsed, until they have `limit` lines; returns the numbers of lines and of files."""
    lines = files = 0
    for folder in folders:
        for file in sorted(folder.rglob("*.py")):
            if lines >= limit or {"site-packages", "lib2to3", "test", "tests"} & {*file.relative_to(folder).parts}:
                continue
            try:
                text = read_text(file.read_bytes())
                parse_quietly(text)
            except (SyntaxError, ValueError):
                continue
            target_file = target / folder.name / file.relative_to(folder)
            target_file.parent.mkdir(parents=True, exist_ok=True)
            shutil.copyfile(file, target_file)
            lines += text.count("\n")
            files += 1
    return lines, files


def parse_quietly(text: str) -> ast.Module:
    """Returns the syntax tree of a text, without warnings about it."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return ast.parse(text)


def measure_rules(tree: Path, lines: int) -> None:
    """Prints the lines per CPU second in this process: for parsing alone, then for all rules."""
    settings = load_settings(tree)
    codes = chosen_codes((), ())
    files = discover([tree], settings)
    texts = {path: read_text(file.read_bytes()) for path, file in files.items()}
    parsing, checking, together, finding_count = [], [], [], 0
    for _ in range(ROUNDS):
        start = time.process_time()
        for text in texts.values():
            parse_quietly(text)
        middle = time.process_time()
        for path, text in texts.items():
            check_text(path, text, settings, codes)
        end = time.process_time()
        finding_count = len(check(files, settings, codes, cached=False).findings)
        together.append(time.process_time() - end)
        parsing.append(middle - start)
        checking.append(end - middle)
    print(f"parsing alone     {lines / min(parsing):10,.0f} lines per CPU second")
    print(f"all {len(all_rules())} rules      {lines / min(checking):10,.0f} lines per CPU second")
    print(f"across files      {lines / min(together):10,.0f} lines per CPU second, {finding_count} findings")


def measure_editor(tree: Path) -> None:
    """Prints the CPU time of an editor's requests on files of about 1,000 lines: the median file and the slowest.

    The command has checked the tree before, so a document that is opened finds the other files in its cache; the
    first one, which also reads this cache, does not count.
    """
    settings = load_settings(tree)
    files = discover([tree], settings)
    check(files, settings, chosen_codes((), ()))
    texts = {file: read_text(file.read_bytes()) for file in files.values()}
    files_of_1000_lines = {file: text for file, text in texts.items() if 900 <= text.count("\n") <= 1100}
    session = Session()
    opening_seconds = [timed_request(session, file, text)[0] for file, text in files_of_1000_lines.items()][1:]
    imports, checks, repairs = [], [], []
    for file, text in files_of_1000_lines.items():
        module = f"import {file.relative_to(tree / 'package').parts[0]}"
        changes = [(f"{text}\n{module}\n", text) for _ in range(ROUNDS)]
        imports.append(min(timed_request(session, file, edited_text)[0] for pair in changes for edited_text in pair))
        rounds = [timed_request(session, file, f"{text}\nchanged = {number}\n") for number in range(2 * ROUNDS)]
        checks.append(min(edited_text for edited_text, _ in rounds))
        repairs.append(min(two for _, two in rounds))
    rows = {
        "opening": opening_seconds,
        "import added": imports,
        "change": checks,
        "repair": [edited_text for edited_text in repairs if edited_text],
    }
    for name, times in rows.items():
        if times:
            middle, slowest = 1e3 * sorted(times)[len(times) // 2], 1e3 * max(times)
            print(f"editor, {name:12} {middle:5.1f} ms, {slowest:5.1f} ms on the slowest of {len(times)} files")


def timed_request(session: Session, file: Path, text: str) -> tuple[float, float]:
    """Returns the CPU seconds of the diagnostics after a change, and of a repair, or 0 if nothing can be repaired."""
    start = time.process_time()
    check_result = session.check(file, text, whole=False)
    middle = time.process_time()
    repairable = [
        finding
        for finding in check_result.findings
        if finding.fix is not None and finding.fix.safety is not Safety.GUIDED
    ]
    if not repairable:
        return middle - start, 0.0
    check_result.text_after_repair(repairable[len(repairable) // 2])
    return middle - start, time.process_time() - middle


def measure_command(tree: Path) -> None:
    """Prints the wall time of the command, cold and warm, with one process and with one per core."""
    command = [sys.executable, "-m", "emberlint", "check", str(tree), "--exit-zero"]
    for jobs in (["-j", "1"], []):
        colds, warms = [], []
        for _ in range(ROUNDS):
            shutil.rmtree(tree / FOLDER, ignore_errors=True)
            colds.append(time_command([*command, *jobs]))
            warms.append(time_command([*command, *jobs]))
        cold, warm = min(colds), min(warms)
        name = " ".join(jobs) or "all cores"
        print(f"command, {name:9} cold {cold:6.2f} s, warm {warm:5.2f} s, {cold / warm:5.1f} times faster")


def time_command(command: list[str]) -> float:
    """Returns the wall time of a command in seconds."""
    start = time.perf_counter()
    subprocess.run(command, check=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    return time.perf_counter() - start


if __name__ == "__main__":
    main()
