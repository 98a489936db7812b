"""Runs a project's tests before and after a port, each in a copy, and compares their outcomes."""

import contextlib
import os
import shlex
import shutil
import signal
import subprocess
import tempfile
import xml.etree.ElementTree as ElementTree
from collections.abc import Iterator, Mapping, Sequence
from importlib.util import find_spec
from pathlib import Path
from typing import NamedTuple

from emberlint.config.errors import UsageError

LIBRARIES = {"numpy": "numpy", "torch": "torch", "mlx": "mlx", "jax": "jax"}
SKIPPED = shutil.ignore_patterns(
    ".git", ".hg", ".venv", "venv", "node_modules", "__pycache__", ".*_cache", ".tox", ".nox"
)
MISSING = "missing"


class Run(NamedTuple):
    """The result of a command: its exit status, and the outcome of each test if pytest ran."""

    status: int
    outcomes: Mapping[str, str]
    output: str


class Parted(NamedTuple):
    """A test, or the command itself, whose outcome on a backend differs before and after the port."""

    backend: str
    test: str
    before: str
    after: str


class Trial(NamedTuple):
    """The runs of a command: before the port, after it on each backend, and the backends that are not installed."""

    command: str
    before: Run
    after: Mapping[str, Run]
    absent: tuple[str, ...]

    @property
    def changed_outcomes(self) -> tuple[Parted, ...]:
        """The tests whose outcome the port changed, or the whole command if it reports no tests."""
        return tuple(
            outcome for backend, run in self.after.items() for outcome in _compare_outcomes(backend, self.before, run)
        )


def run_trial(
    command: str, root: Path, sources: Sequence[str], texts: Mapping[str, str], backends: Sequence[str]
) -> Trial:
    """Runs a command in a copy of a project, and in one with ported texts on each backend.

    The project itself is only read. An interruption ends the command and deletes the copies.

    Args:
        command: The command, which a shell does not see; it finds the copy as current folder and on PYTHONPATH.
        root: The folder of the project.
        sources: The folders below the root in which Python finds the packages.
        texts: The ported text of each changed file, by path relative to the root.
        backends: The backends of ops to run the ported project on.

    Raises:
        UsageError: if the command cannot be started.
    """
    present_backends = [backend for backend in backends if find_spec(LIBRARIES[backend]) is not None]
    with tempfile.TemporaryDirectory(prefix="emberlint-port-") as temporary_folder:
        project_copy = Path(temporary_folder) / root.name
        shutil.copytree(root, project_copy, ignore=SKIPPED, symlinks=True)
        native_run = _run_tests(command, project_copy, sources, None)
        for path, text in texts.items():
            (project_copy / path).write_bytes(text.encode())
        run_by_backend = {backend: _run_tests(command, project_copy, sources, backend) for backend in present_backends}
    return Trial(
        command, native_run, run_by_backend, tuple(backend for backend in backends if backend not in present_backends)
    )


def _run_tests(command: str, folder: Path, sources: Sequence[str], backend: str | None) -> Run:
    """Runs the command in a folder, in a group of processes of its own, so that all of them end together."""
    results_file = folder.parent / "results.xml"
    results_file.unlink(missing_ok=True)
    search_folders = [
        str(folder),
        *(str(folder / source) for source in ("src", *sources)),
        os.environ.get("PYTHONPATH", ""),
    ]
    environment = os.environ | {
        "PYTHONPATH": os.pathsep.join(folder_or_empty for folder_or_empty in search_folders if folder_or_empty),
        "PYTHONDONTWRITEBYTECODE": "1",
        "PYTEST_ADDOPTS": f"{os.environ.get('PYTEST_ADDOPTS', '')} --junitxml={shlex.quote(str(results_file))}",
    }
    if backend is not None:
        environment["EMBERHARMONY_BACKEND"] = backend
    try:
        process = subprocess.Popen(
            shlex.split(command),
            cwd=folder,
            env=environment,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            start_new_session=True,
        )
    except (OSError, ValueError, IndexError) as error:
        raise UsageError(f"--check-run {command!r} cannot be started: {error}") from error
    try:
        output, _ = process.communicate()
    except BaseException:
        _end_process(process)
        raise
    return Run(process.returncode, _test_outcomes(results_file), output.decode(errors="replace"))


def _end_process(process: subprocess.Popen[bytes]) -> None:
    """Ends a process and all processes that it started."""
    if hasattr(os, "killpg"):
        with contextlib.suppress(ProcessLookupError):  # the process has ended by itself
            os.killpg(process.pid, signal.SIGKILL)
    else:
        process.kill()
    process.communicate()


def _test_outcomes(results_file: Path) -> dict[str, str]:
    """Returns the outcome of each test in a file of pytest; none if pytest did not run to its end."""
    if not results_file.exists():
        return {}
    outcome_by_test = {}
    for test_case in ElementTree.parse(results_file).iter("testcase"):
        test_name = "::".join(
            name_part for name_part in (test_case.get("classname", ""), test_case.get("name", "")) if name_part
        )
        case_tags = {element.tag for element in test_case}
        outcome_by_test[test_name] = next(
            (tag for tag in ("error", "failure", "skipped") if tag in case_tags), "passed"
        )
    return outcome_by_test


def _compare_outcomes(backend: str, before: Run, after: Run) -> Iterator[Parted]:
    """Yields the tests whose outcomes differ, or else the command if its exit status does."""
    test_names = [*before.outcomes, *(outcome for outcome in after.outcomes if outcome not in before.outcomes)]
    names_and_outcomes = [
        (name, before.outcomes.get(name, MISSING), after.outcomes.get(name, MISSING)) for name in test_names
    ]
    differing_outcomes = [Parted(backend, *pair) for pair in names_and_outcomes if pair[1] != pair[2]]
    yield from differing_outcomes
    if not differing_outcomes and before.status != after.status:
        yield Parted(backend, "the command", f"exit status {before.status}", f"exit status {after.status}")
