"""What Windows lacks is not needed: programs run where the names of Unix are taken away."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

pytestmark = pytest.mark.fresh_process

WITHOUT_UNIX = """
import os, signal, sys
import concurrent.futures.process, logging, multiprocessing.util, random, threading  # which ask for them on Unix
for module, names in (
    (os, "register_at_fork sched_getaffinity sysconf getuid killpg O_NOFOLLOW O_DIRECTORY"),
    (signal, "SIGALRM SIGPROF SIGUSR1 setitimer getitimer pthread_sigmask ITIMER_REAL ITIMER_PROF"),
):
    for name in names.split():
        if hasattr(module, name):
            delattr(module, name)
for name in ("fcntl", "grp", "pwd", "resource", "termios"):
    sys.modules[name] = None
"""
"""A `sitecustomize`, which Python runs at each start, so that workers lack the names too."""


@pytest.fixture
def environment(tmp_path: Path) -> dict[str, str]:
    """Returns an environment whose processes have none of the names that only Unix has."""
    folder = tmp_path / "site"
    folder.mkdir()
    (folder / "sitecustomize.py").write_text(WITHOUT_UNIX)
    path = os.pathsep.join(filter(None, (str(folder), os.environ.get("PYTHONPATH", ""))))
    settings = str(tmp_path / "config.toml")
    return {**os.environ, "PYTHONPATH": path, "EMBERHARMONY_BACKEND": "numpy", "EMBERHARMONY_CONFIG": settings}


def run(*arguments: str, environment: dict[str, str], status: int = 0) -> str:
    done = subprocess.run(
        [sys.executable, *arguments], env=environment, capture_output=True, text=True, check=False, timeout=240
    )
    assert done.returncode == status, done.stderr
    return done.stdout


def test_the_names_are_gone(environment: dict[str, str]) -> None:
    program = (
        "import os, signal, sys\nprint(hasattr(os, 'sysconf'), hasattr(signal, 'setitimer'), sys.modules['fcntl'])"
    )
    assert run("-c", program, environment=environment) == "False False None\n"


def test_ops_devices_and_random_streams_run(environment: dict[str, str]) -> None:
    program = (
        "from emberharmony import ops\n"
        "print(ops.sum(ops.ones((2, 3))).item(), sorted(ops.memory_info()), ops.random.normal((2,), seed=1).shape)\n"
    )
    assert run("-c", program, environment=environment).startswith("6.0 ['reserved', 'total', 'used'] (2,)")


def test_settings_are_written_and_read(environment: dict[str, str], tmp_path: Path) -> None:
    run("-m", "emberharmony", "backend", "set", "numpy", environment=environment)
    assert (tmp_path / "config.toml").read_text() == 'backend = "numpy"\n'
    del environment["EMBERHARMONY_BACKEND"]
    assert "numpy" in run("-m", "emberharmony", "info", environment=environment)


@pytest.mark.sampled(2)
def test_the_fuzzer_ends_a_call_that_hangs(environment: dict[str, str], tmp_path: Path) -> None:
    package = tmp_path / "site"
    (package / "hanging_backend.py").write_text(
        "from emberharmony.backend.numpy import NumpyBackend\n\n"
        "class Hanging(NumpyBackend):\n"
        "    name = 'hanging'\n"
        "    def cos(self, x):\n"
        "        while True: pass\n"
    )
    info = package / "hanging-1.dist-info"
    info.mkdir()
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: hanging\nVersion: 1\n")
    (info / "entry_points.txt").write_text("[emberharmony.backends]\nhanging = hanging_backend:Hanging\n")
    program = (
        "import json\n"
        "from emberharmony.testing.fuzz import runner\n"
        "from emberharmony.testing.fuzz.runner import Tally, run_calls\n"
        "runner.DEATHS, tally = 1, Tally('hanging')\n"
        "run_calls(tally, 12, 1, ('cos', 'sin'), timeout=0.2)\n"
        "print(json.dumps([sum(tally.counts.values()), [(f.op, f.kind) for f in tally.findings], tally.skipped]))\n"
    )
    counted, findings, skipped = json.loads(run("-c", program, environment=environment))
    assert (findings, skipped) == ([["cos", "hang"]], ["cos"])
    assert counted > 5


def test_emberlint_runs_in_parallel_and_writes_its_repairs(environment: dict[str, str], tmp_path: Path) -> None:
    project = tmp_path / "project"
    project.mkdir()
    for number in range(8):
        (project / f"m{number}.py").write_text("import numpy as np\n\n\ndef f(x):\n    return np.sin(x)\n")
    found = run("-m", "emberlint", "-j", "2", str(project), environment=environment, status=1)
    assert found.count("numpy.sin ties this code to numpy") == 8
    run("-m", "emberlint", "fix", "--unsafe-fixes", str(project), environment=environment)
    assert "ops.sin(x)" in (project / "m7.py").read_text()
