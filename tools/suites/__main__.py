"""Runs a test suite of another project on the arrays of `emberharmony.xp`: `python tools/suites SUITE BACKEND`.

Nothing of these projects is part of this repository. The tests of the array API standard lie where `--path` says, a
checkout of data-apis/array-api-tests with its submodule; those of scikit-learn and SciPy are in the installed packages.
The suite `transforms` is here: it differentiates, maps and compiles functions of these projects (`functions.py`).
`known/SUITE.csv` lists the failures by their cause. A failure that is not listed fails the run, and so does a test that
is listed but passes, so the list can only shrink.
"""

import argparse
import csv
import fnmatch
import importlib.util
import json
import os
import re
import subprocess
import sys
import tempfile
from pathlib import Path

HERE = Path(__file__).resolve().parent
ROOT = HERE.parents[1]
SCIPY = ("special", "stats", "integrate", "fft", "cluster", "differentiate", "linalg", "spatial", "interpolate")
"""The modules of SciPy whose tests run unless others are named."""
_USES = re.compile(r"yield_namespaces|yield_namespace_device_dtype_combinations")
_SOMETIMES = " (sometimes)"
"""At the end of a cause: the test makes random inputs, and fails for some of them."""


def parse_arguments() -> argparse.Namespace:
    """Returns the arguments of the command."""
    description = f"{__doc__.partition(chr(10))[0]} What follows -- is passed to pytest."
    parser = argparse.ArgumentParser(description=description)
    parser.add_argument("suite", choices=("array-api-tests", "scikit-learn", "scipy", "transforms"))
    parser.add_argument("backend", help="such as mlx")
    parser.add_argument("--path", type=Path, help="the checkout of array-api-tests")
    parser.add_argument("--examples", type=int, default=100, help="how many inputs array-api-tests makes for a test")
    parser.add_argument("--modules", nargs="*", default=SCIPY, help="modules of SciPy")
    parser.add_argument("--list", action="store_true", help="print the failures as rows of the list of known ones")
    separator_index = sys.argv.index("--") if "--" in sys.argv else len(sys.argv)
    args = parser.parse_args(sys.argv[1:separator_index])
    args.rest = sys.argv[separator_index + 1 :]
    return args


def package_folder(package: str) -> Path:
    """Returns the folder of an installed package."""
    spec = importlib.util.find_spec(package)
    if spec is None or spec.origin is None:
        sys.exit(f"{package} is not installed")
    return Path(spec.origin).parent


def pytest_command(args: argparse.Namespace) -> tuple[list[str], Path, dict[str, str]]:
    """Returns the arguments of pytest, the folder to run it in, and the environment."""
    name = f"emberharmony.xp.{args.backend}"
    variables = {"EMBERHARMONY_SUITE": name, "SCIPY_ARRAY_API": "1", "JAX_ENABLE_X64": "1"}
    if args.suite == "array-api-tests":
        if args.path is None:
            sys.exit("array-api-tests needs --path, a checkout of github.com/data-apis/array-api-tests")
        variables |= {"ARRAY_API_TESTS_MODULE": name, "ARRAY_API_TESTS_VERSION": "2025.12"}
        return ["array_api_tests", f"--max-examples={args.examples}", "--disable-deadline"], args.path, variables
    if args.suite == "transforms":
        return [str(HERE / "transforms.py"), "-c", os.devnull, f"--rootdir={HERE}"], HERE, variables
    base_options = ["-c", os.devnull, f"--rootdir={package_folder('sklearn').parent}"]
    if args.suite == "scikit-learn":
        folder = package_folder("sklearn")
        files = [path for path in sorted(folder.rglob("test_*.py")) if _USES.search(path.read_text(encoding="utf-8"))]
        return [*map(str, files), *base_options, "-p", "sklearn_plugin", "-k", "emberharmony"], folder.parent, variables
    folders = [str(package_folder("scipy") / module) for module in args.modules]
    return (
        [*folders, *base_options, "-p", "scipy_plugin", "-m", "array_api_backends"],
        package_folder("scipy").parent,
        variables,
    )


def run_suite(args: argparse.Namespace) -> dict[str, object]:
    """Returns the failures and the counts of a run."""
    options, folder, variables = pytest_command(args)
    with tempfile.TemporaryDirectory() as scratch:
        result_file = Path(scratch) / "failures.json"
        paths = os.pathsep.join((str(ROOT), str(HERE), os.environ.get("PYTHONPATH", "")))
        environment = os.environ | variables | {"EMBERHARMONY_FAILURES": str(result_file), "PYTHONPATH": paths}
        base_command = [sys.executable, "-m", "pytest", *options, "-p", "failures_plugin", "-p", "no:cacheprovider"]
        subprocess.run(
            [*base_command, "-q", "-W", "ignore", "--tb=no", *args.rest], cwd=folder, env=environment, check=False
        )
        if not result_file.exists():
            sys.exit("pytest did not finish")
        report: dict[str, object] = json.loads(result_file.read_text(encoding="utf-8"))
    return report


def known_causes(suite: str, backend: str) -> dict[str, str]:
    """Returns the causes of the known failures by patterns of their names."""
    with (HERE / "known" / f"{suite}.csv").open(newline="", encoding="utf-8") as file:
        return {row["test"]: row["cause"] for row in csv.DictReader(file) if row["backend"] in (backend, "*")}


def matches_pattern(test: str, pattern: str) -> bool:
    """Returns whether a pattern, in which only the star is special, names a test."""
    return fnmatch.fnmatchcase(test, pattern.replace("[", "[[]"))


def main() -> None:
    """Runs a suite and compares its failures with the known ones."""
    args = parse_arguments()
    report = run_suite(args)
    failure_by_test = report["failures"]
    assert isinstance(failure_by_test, dict)
    causes = known_causes(args.suite, args.backend)
    unknown_tests = [test for test in failure_by_test if not any(matches_pattern(test, pattern) for pattern in causes)]
    print(", ".join(f"{report[kind]} {kind}" for kind in ("passed", "failed", "skipped")))
    for test in unknown_tests:
        print(
            f"{args.backend},{test},{failure_by_test[test]}"
            if args.list
            else f"FAILED and not known: {test}: {failure_by_test[test]}"
        )
    folders = tuple(f"scipy/{module}/" for module in args.modules) if args.suite == "scipy" else ("",)
    passing_patterns = [
        pattern
        for pattern, cause in causes.items()
        if pattern.startswith(folders)
        and not cause.endswith(_SOMETIMES)
        and not any(matches_pattern(test, pattern) for test in failure_by_test)
    ]
    if not args.rest:
        for pattern in passing_patterns:
            print(f"known, but passes: {pattern}")
        sys.exit(bool(unknown_tests or passing_patterns))
    sys.exit(bool(unknown_tests))


if __name__ == "__main__":
    main()
