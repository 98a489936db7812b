"""Counts the native calls that the tests of a package make before and after `emberlint port`.

A call counts if a function, type or method of NumPy, PyTorch, MLX or JAX is called from a ported file; a call site
counts once. Each call of the files is instrumented when they are imported, so that the count does not depend on what
emberlint knows. A site on whose line nothing is called after the port, for instance because an error came before it, is
lost, and not rewritten. The tests themselves are not ported, and must end as before.

    python benchmarks/porting.py ahrs-0.4.0 --port ahrs --default-float float64 -- tests
"""

import argparse
import ast
import difflib
import doctest
import importlib.abc
import importlib.machinery
import importlib.util
import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
from collections import Counter
from collections.abc import Iterable, Sequence
from pathlib import Path
from types import CodeType, ModuleType
from typing import Any, TypeAlias

import numpy as np
import pytest

LIBRARIES = ("numpy", "torch", "mlx", "jax", "jaxlib")
TESTS = {"test", "tests", "testing", "conftest.py"}
NUMBER = re.compile(r"-?\d+\.?\d*(?:e[-+]?\d+)?")
SCALAR = re.compile(rf"(?:array|np\.\w+)\(({NUMBER.pattern})\)")
HOOK = "__native_call__"
Place: TypeAlias = tuple[Any, ...]  # the file, and where a call begins and ends: its line and column, twice
Site = tuple[str, str, int, int, int, int]  # the native name, the file, and where the call begins and ends


class Recorder(importlib.abc.MetaPathFinder):
    """Instruments some files as they are imported, and collects the native calls and the outcomes of the tests."""

    def __init__(self, files: Sequence[str], root: Path) -> None:
        self.files, self.root = frozenset(str((root / file).resolve()) for file in files), root.resolve()
        self.places: list[tuple[str, int, int, int, int]] = []
        self.calls: Counter[Site] = Counter()
        self.reached: set[int] = set()
        self.outcomes: dict[str, str] = {}

    def find_spec(self, name: str, path: Any = None, target: Any = None) -> importlib.machinery.ModuleSpec | None:
        """Returns a spec that instruments the module, if it is one of the files."""
        spec = importlib.machinery.PathFinder.find_spec(name, path, target)
        if spec is not None and spec.origin is not None and str(Path(spec.origin).resolve()) in self.files:
            spec.loader = Instrumenting(name, spec.origin, self)
            return spec
        return None

    def native_call(self, function: Any, site: int) -> Any:
        """Notes a call, counts it if its function is native, and returns the function."""
        self.reached.add(site)
        name = native_name(function)
        if name:
            self.calls[name, *self.places[site]] += 1
        return function

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        """Keeps the outcome of a test: the worst of its phases."""
        if report.when == "call" or report.outcome != "passed":
            self.outcomes[report.nodeid] = report.outcome

    def pytest_collectreport(self, report: pytest.CollectReport) -> None:
        """Keeps the modules that cannot be collected."""
        if report.failed:
            self.outcomes[report.nodeid] = "failed"


class Instrumenting(importlib.machinery.SourceFileLoader):
    """Loads a file with each call passed through the recorder."""

    def __init__(self, name: str, path: str, recorder: Recorder) -> None:
        super().__init__(name, path)
        self.recorder = recorder

    def get_code(self, fullname: str) -> CodeType:
        """Returns the code of the instrumented source; no cached code is used or written."""
        path = Path(self.get_filename(fullname))
        tree = Calls(self.recorder, str(path.resolve().relative_to(self.recorder.root))).visit(
            ast.parse(path.read_bytes())
        )
        return compile(ast.fix_missing_locations(tree), str(path), "exec", dont_inherit=True)

    def exec_module(self, module: ModuleType) -> None:
        """Runs the module with the hook among its names."""
        setattr(module, HOOK, self.recorder.native_call)
        super().exec_module(module)


class Calls(ast.NodeTransformer):
    """Replaces the function `f` of each call by `__native_call__(f, site)`."""

    def __init__(self, recorder: Recorder, path: str) -> None:
        self.recorder, self.path = recorder, path

    def visit_Call(self, node: ast.Call) -> ast.Call:
        """Instruments a call and those inside it."""
        self.generic_visit(node)
        site = len(self.recorder.places)
        place = (node.lineno, node.col_offset, node.end_lineno or 0, node.end_col_offset or 0)
        self.recorder.places.append((self.path, *place))
        hook = ast.Call(ast.Name(HOOK, ast.Load()), [node.func, ast.Constant(site)], [])
        node.func = ast.copy_location(hook, node.func)
        return node


def native_name(function: Any) -> str:
    """Returns the name of a native function, type or method, or an empty string."""
    owner = getattr(function, "__self__", None)
    kind = owner if isinstance(owner, type) else type(owner)
    name = getattr(function, "__qualname__", None) or getattr(function, "__name__", "")
    modules = [str(getattr(function, "__module__", None)), str(getattr(type(function), "__module__", ""))]
    if owner is not None and not isinstance(owner, ModuleType):
        modules.append(str(kind.__module__))
    if type(function) is np.ufunc and getattr(np, str(name), None) is not function:
        return ""  # SciPy's functions have the type of NumPy's
    module = next((module_name for module_name in modules if module_name.partition(".")[0] in LIBRARIES), "")
    return f"{module}.{name}" if module else ""


def record_run(files: Sequence[str], out: Path, default_float: str, arguments: list[str]) -> int:
    """Runs the tests below the current folder, and writes what ran."""
    recorder = Recorder(files, Path.cwd())
    sys.meta_path.insert(0, recorder)
    sys.path[:0] = [str(Path.cwd()), str(Path.cwd() / "src")]
    from emberharmony import ops

    ops.set_default_float("float64" if default_float == "float64" else "float32")
    compare_numbers()
    status = pytest.main(["-q", "-p", "no:cacheprovider", "-p", "no:randomly", *arguments], plugins=[recorder])
    calls = [{"native": site[0], "place": site[1:], "calls": count} for site, count in sorted(recorder.calls.items())]
    reached = [recorder.places[site] for site in sorted(recorder.reached)]
    run_record = {"status": int(status), "outcomes": recorder.outcomes, "calls": calls, "reached": reached}
    out.write_text(json.dumps(run_record))
    return 0


def compare_numbers() -> None:
    """Makes doctests compare numbers: to a tolerance, a scalar like an array of no axis, which ops returns instead."""
    exact = doctest.OutputChecker.check_output

    def check_output(self: doctest.OutputChecker, want: str, got: str, optionflags: int) -> bool:
        if exact(self, want, got, optionflags):
            return True
        texts = [SCALAR.sub(r"\1", one) for one in (want, got)]
        numbers = [[float(one) for one in NUMBER.findall(text)] for text in texts]
        texts_without_numbers = ["".join(NUMBER.sub("0", text).split()) for text in texts]
        return texts_without_numbers[0] == texts_without_numbers[1] and np.allclose(numbers[0], numbers[1], rtol=1e-5)

    doctest.OutputChecker.check_output = check_output  # type: ignore[method-assign]


def files_to_port(root: Path, wanted: Sequence[str]) -> list[str]:
    """Returns the files to port below the root, without tests."""
    files = [
        file for one in wanted for file in ([root / one] if one.endswith(".py") else sorted((root / one).rglob("*.py")))
    ]
    names = [file.relative_to(root) for file in files]
    return [str(name) for name in names if not TESTS.intersection(name.parts) and not name.name.startswith("test_")]


def measure(root: Path, files: list[str], options: argparse.Namespace, out: Path) -> dict[str, Any]:
    """Runs the recorder in a process of its own, and returns what it wrote."""
    record_command = [
        sys.executable,
        __file__,
        str(root),
        "--record",
        str(out),
        "--default-float",
        options.default_float,
    ]
    words = [word for file in files for word in ("--port", file)]
    subprocess.run([*record_command, *words, "--", *options.tests], cwd=root, stdout=sys.stderr, check=True)
    return dict(json.loads(out.read_text()))


def lines_after(before: str, after: str) -> dict[int, int]:
    """Returns the line of a ported text for each line of the text before."""
    lines_before, new_lines = before.splitlines(), after.splitlines()
    line_map: dict[int, int] = {}
    for kind, start, end, new_start, new_end in difflib.SequenceMatcher(
        None, lines_before, new_lines, autojunk=False
    ).get_opcodes():
        if kind in ("equal", "replace") and new_end > new_start:
            line_map.update((at + 1, min(new_start + at - start, new_end - 1) + 1) for at in range(start, end))
    return line_map


def lost_sites(ran: Iterable[Place], reached: Iterable[Place], roots: Sequence[Path]) -> set[Place]:
    """Returns the sites on whose lines nothing is called after the port."""
    called_lines = {(path, line) for path, begin, _, end, _ in reached for line in range(begin, end + 1)}
    lines_by_path: dict[str, dict[int, int]] = {}
    lost_places = set()
    for place in ran:
        path, begin, _, end, _ = place
        if path not in lines_by_path:
            lines_by_path[path] = lines_after(*((root / path).read_text(encoding="utf-8") for root in roots))
        if not any((path, lines_by_path[path].get(line)) in called_lines for line in range(begin, end + 1)):
            lost_places.add(place)
    return lost_places


def compare_port(options: argparse.Namespace) -> dict[str, Any]:
    """Measures a package before and after its port, each in a copy."""
    with tempfile.TemporaryDirectory() as folder:
        roots = [Path(options.keep or folder).resolve() / name for name in ("before", "after")]
        for root in roots:
            shutil.copytree(options.package, root)
        root_before, root_after = roots
        files = files_to_port(root_before, options.port)
        port = [sys.executable, "-m", "emberlint", "port", "--default-float", options.default_float]
        subprocess.run([*port, *files], cwd=root_after, check=True, stdout=sys.stderr)
        check_process = subprocess.run([*port, "--check", *files], cwd=root_after, capture_output=True, check=False)
        first_report, second_report = (measure(root, files, options, root.with_suffix(".json")) for root in roots)
        native_sites, left_sites = (
            {tuple(call["place"]) for call in report["calls"]} for report in (first_report, second_report)
        )
        lost_places = lost_sites(native_sites, map(tuple, second_report["reached"]), roots)
    call_count, left_count = (
        sum(call["calls"] for call in report["calls"]) for report in (first_report, second_report)
    )
    tests = {
        name for name, outcome in first_report["outcomes"].items() if second_report["outcomes"].get(name) != outcome
    }
    return {
        "sites": len(native_sites),
        "lost": len(lost_places),
        "rewritten": len(native_sites) - len(lost_places) - len(left_sites),
        "share": 1 - (len(lost_places) + len(left_sites)) / len(native_sites) if native_sites else 1.0,
        "calls": call_count,
        "calls_left": left_count,
        "tests": Counter(first_report["outcomes"].values()),
        "parted": sorted(tests | (second_report["outcomes"].keys() - first_report["outcomes"].keys())),
        "stable": check_process.returncode == 0,
        "left": Counter(call["native"] for call in second_report["calls"]).most_common(),
    }


def main() -> int:
    """Prints what a port did to a package, as JSON."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("package", type=Path, help="the unpacked source of a package")
    parser.add_argument("--port", action="append", required=True, help="a folder or file to port; may be repeated")
    parser.add_argument("--default-float", default="float32", choices=["float32", "float64"])
    parser.add_argument("--keep", help="an empty folder for the copies, which are deleted otherwise")
    parser.add_argument("--record", type=Path, help=argparse.SUPPRESS)
    parser.epilog = "The words after -- go to pytest."
    split = sys.argv.index("--") if "--" in sys.argv else len(sys.argv)
    options = parser.parse_args(sys.argv[1:split], argparse.Namespace(tests=sys.argv[split + 1 :]))
    if options.record is not None:
        return record_run(options.port, options.record, options.default_float, options.tests)
    print(json.dumps(compare_port(options), indent=1))
    return 0


if __name__ == "__main__":
    os.environ.setdefault("OMP_NUM_THREADS", "1")
    sys.exit(main())
