"""Environments in which the tests run, besides that of `make test`.

`nox` runs all of them; `nox -s lowest -- tests/core` runs the tests in `tests/core` in one of them.
"""

import os
import re
import tomllib
from pathlib import Path

import nox

ROOT = Path(__file__).parent
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
LINT = tomllib.loads((ROOT / "emberlint" / "pyproject.toml").read_text())["project"]
PYTHONS = re.findall(r"Python :: (3\.\d+)", "\n".join(PROJECT["classifiers"]))
PINNED = ("--constraint", "constraints.txt", "--editable", "emberlint", "--editable")

nox.needs_version = ">=2025.2.9"
nox.options.default_venv_backend = "venv"
nox.options.error_on_missing_interpreters = False


def run_tests(session: nox.Session, *usual: str) -> None:
    """Runs the tests that are named after `--` on the command line, by default the usual ones, or all."""
    jobs = os.environ.get("JOBS", "2")
    chosen = session.posargs or usual or ["tests"]
    session.run("python", "-m", "pytest", "-q", "-n", jobs, *chosen, env={"OMP_NUM_THREADS": "1"})


@nox.session(python=PYTHONS)
def tests(session: nox.Session) -> None:
    """Runs the tests on each version of Python, with PyTorch if it has a wheel for that version."""
    session.install(*PINNED, ".[mlx,test]")
    # Exit status 1 is allowed: PyTorch may have no wheel yet for a new Python, and the tests then run without it.
    session.install("--constraint", "constraints.txt", "--only-binary", ":all:", "torch", success_codes=[0, 1])
    run_tests(session)


@nox.session(python=PYTHONS[0])
def numpy_only(session: nox.Session) -> None:
    """Runs the tests without PyTorch and MLX."""
    session.install(*PINNED, ".[test]")
    run_tests(session)


@nox.session(python=PYTHONS[0])
def lowest(session: nox.Session) -> None:
    """Runs the tests with the lowest versions that pyproject.toml allows, of MLX too."""
    # create_tmp() would put the temporary projects of the tests below .nox, which emberlint leaves out.
    floors = session.cache_dir / "floors.txt"
    extras = [one["optional-dependencies"].values() for one in (PROJECT, LINT)]
    named = (line for groups in extras for lines in groups for line in lines)
    needed = (*PROJECT["dependencies"], *LINT["dependencies"], *named)
    found = {m[1]: m[2] for m in (re.match(r"([\w.-]+)(?:\[\w+\])?>=([\d.]+)", line) for line in needed) if m}
    floors.write_text("".join(f"{name}=={version}\n" for name, version in found.items() if name != "emberlint"))
    session.install("--constraint", str(floors), "--editable", "emberlint", "--editable", ".[mlx,test]")
    run_tests(session)


@nox.session(python=PYTHONS[1:])
def newest_numpy(session: nox.Session) -> None:
    """Runs the tests with the newest NumPy, which the pinned one is not: it needs Python 3.12."""
    constraints = session.cache_dir / "newest_numpy.txt"
    pins = (ROOT / "constraints.txt").read_text().splitlines()
    constraints.write_text("".join(f"{pin}\n" for pin in pins if not pin.startswith("numpy==")))
    session.install(
        "--constraint", str(constraints), "--editable", "emberlint", "--editable", ".[mlx,test]", "numpy>=2.5"
    )
    run_tests(session)


@nox.session(python=["3.14", "3.14t"])
def next_python(session: nox.Session) -> None:
    """Runs the tests on versions of Python that are not declared yet, where the dispatch is the portable one."""
    session.install("--editable", "emberlint", "--editable", ".[mlx,test]")
    run_tests(session)


@nox.session(python=PYTHONS[0], default=False)
@nox.parametrize("torch", ["2.8.0", "2.9.1", "2.10.0", "2.11.0", "2.12.1"])
def torch_versions(session: nox.Session, torch: str) -> None:
    """Runs the tests of PyTorch with older versions, for a lower floor.

    PIP_EXTRA_INDEX_URL has to name an index with builds for the CPU: the usual one has builds of a gigabyte for CUDA.
    """
    session.install(*PINNED, ".[test]")
    session.install("--only-binary", ":all:", f"torch=={torch}+cpu")
    run_tests(session, "tests/backend", "tests/ops", "tests/conformance", "--ember-backend", "torch")


@nox.session(python=PYTHONS[0])
def portable(session: nox.Session) -> None:
    """Runs the tests with ops that are ordinary functions, as on a Python on which codes are not exchanged."""
    session.install(*PINNED, ".[torch,mlx,test]")
    session.env["EMBERHARMONY_DISPATCH"] = "portable"
    run_tests(session)


@nox.session(python=PYTHONS[0])
def wheel(session: nox.Session) -> None:
    """Runs the example of the README in an empty folder, with the wheel installed instead of the checkout."""
    folder = Path(session.create_tmp())
    wheels, empty = folder / "wheels", folder / "empty"
    empty.mkdir(exist_ok=True)
    for old in wheels.glob("*.whl"):
        old.unlink()
    session.run("python", "-m", "pip", "wheel", "-q", "--no-deps", "--wheel-dir", str(wheels), ".", "./emberlint")
    built = next(wheels.glob("emberharmony-*.whl"))
    linter = next(wheels.glob("emberlint-*.whl"))
    session.install("--constraint", "constraints.txt", str(linter), f"{built}[torch,mlx,cli,lint]")
    example = re.search(r"```python\n(.*?)```", (ROOT / "README.md").read_text(encoding="utf-8"), re.DOTALL)
    assert example is not None
    (empty / "example.py").write_text(example[1], encoding="utf-8")
    session.chdir(empty)
    session.run("python", "example.py")
    session.run("emberharmony", "info")
    session.run("emberharmony", "demo", env={"OMP_NUM_THREADS": "1"})
    session.run("emberlint", "example.py", success_codes=[0, 1])  # the example prints numbers, which emberlint reports


@nox.session(python=PYTHONS[0])
def installed(session: nox.Session) -> None:
    """Installs the wheel, then the checkout, as users do; checks types and completion from outside."""
    session.install("--constraint", "constraints.txt", "build", "jedi", "mypy", "pyright")
    session.run("python", "tools/installed.py")
    session.run("python", "tools/installed.py", "--editable")


@nox.session(python=PYTHONS[0])
def frozen(session: nox.Session) -> None:
    """Freezes a program with PyInstaller and runs it."""
    session.install(*PINNED, ".[test]", "pyinstaller")
    limit = "faulthandler_timeout=3600"
    session.run("python", "-m", "pytest", "-q", "-o", limit, "-m", "slow or not slow", "tests/test_frozen.py")
