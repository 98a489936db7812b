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


def arguments() -> argparse.Namespace:
    """Returns the arguments of the command."""
    about = f"{__doc__.partition(chr(10))[0]} What follows -- is passed to pytest."
    parser = argparse.ArgumentParser(description=about)
    parser.add_argument("suite", choices=("array-api-tests", "scikit-learn", "scipy", "transforms"))
    parser.add_argument("backend", help="such as mlx")
    parser.add_argument("--path", type=Path, help="the checkout of array-api-tests")
    parser.add_argument("--examples", type=int, default=100, help="how many inputs array-api-tests makes for a test")
    parser.add_argument("--modules", nargs="*", default=SCIPY, help="modules of SciPy")
    parser.add_argument("--list", action="store_true", help="print the failures as rows of the list of known ones")
    cut = sys.argv.index("--") if "--" in sys.argv else len(sys.argv)
    args = parser.parse_args(sys.argv[1:cut])
    args.rest = sys.argv[cut + 1 :]
    return args


def package_folder(package: str) -> Path:
    """Returns the folder of an installed package."""
    spec = importlib.util.find_spec(package)
    if spec is None or spec.origin is None:
        sys.exit(f"{package} is not installed")
    return Path(spec.origin).parent


def command(args: argparse.Namespace) -> tuple[list[str], Path, dict[str, str]]:
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
    plain = ["-c", os.devnull, f"--rootdir={package_folder('sklearn').parent}"]
    if args.suite == "scikit-learn":
        folder = package_folder("sklearn")
        files = [path for path in sorted(folder.rglob("test_*.py")) if _USES.search(path.read_text(encoding="utf-8"))]
        return [*map(str, files), *plain, "-p", "sklearn_plugin", "-k", "emberharmony"], folder.parent, variables
    folders = [str(package_folder("scipy") / module) for module in args.modules]
    return (
        [*folders, *plain, "-p", "scipy_plugin", "-m", "array_api_backends"],
        package_folder("scipy").parent,
        variables,
    )


def run(args: argparse.Namespace) -> dict[str, object]:
    """Returns the failures and the counts of a run."""
    options, folder, variables = command(args)
    with tempfile.TemporaryDirectory() as scratch:
        result = Path(scratch) / "failures.json"
        paths = os.pathsep.join((str(ROOT), str(HERE), os.environ.get("PYTHONPATH", "")))
        environment = os.environ | variables | {"EMBERHARMONY_FAILURES": str(result), "PYTHONPATH": paths}
        call = [sys.executable, "-m", "pytest", *options, "-p", "failures_plugin", "-p", "no:cacheprovider"]
        subprocess.run([*call, "-q", "-W", "ignore", "--tb=no", *args.rest], cwd=folder, env=environment, check=False)
        if not result.exists():
            sys.exit("pytest did not finish")
        report: dict[str, object] = json.loads(result.read_text(encoding="utf-8"))
    return report


def known(suite: str, backend: str) -> dict[str, str]:
    """Returns the causes of the known failures by patterns of their names."""
    with (HERE / "known" / f"{suite}.csv").open(newline="", encoding="utf-8") as file:
        return {row["test"]: row["cause"] for row in csv.DictReader(file) if row["backend"] in (backend, "*")}


def matches(test: str, pattern: str) -> bool:
    """Returns whether a pattern, in which only the star is special, names a test."""
    return fnmatch.fnmatchcase(test, pattern.replace("[", "[[]"))


def main() -> None:
    """Runs a suite and compares its failures with the known ones."""
    args = arguments()
    report = run(args)
    failed = report["failures"]
    assert isinstance(failed, dict)
    causes = known(args.suite, args.backend)
    unknown = [test for test in failed if not any(matches(test, pattern) for pattern in causes)]
    print(", ".join(f"{report[kind]} {kind}" for kind in ("passed", "failed", "skipped")))
    for test in unknown:
        print(f"{args.backend},{test},{failed[test]}" if args.list else f"FAILED and not known: {test}: {failed[test]}")
    folders = tuple(f"scipy/{module}/" for module in args.modules) if args.suite == "scipy" else ("",)
    gone = [
        pattern
        for pattern, cause in causes.items()
        if pattern.startswith(folders)
        and not cause.endswith(_SOMETIMES)
        and not any(matches(test, pattern) for test in failed)
    ]
    if not args.rest:
        for pattern in gone:
            print(f"known, but passes: {pattern}")
        sys.exit(bool(unknown or gone))
    sys.exit(bool(unknown))


if __name__ == "__main__":
    main()
