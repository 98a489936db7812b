"""utils/on_device.sh with a stand-in for Python that makes no environment and runs no command of it."""

import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import pytest

SCRIPT = Path(__file__).parents[2] / "utils" / "on_device.sh"
PYTHON = f"""\
#!/bin/sh
here=$(dirname "$0")
case "$*" in
    *"-m venv"*)
        for folder; do :; done
        mkdir -p "$folder/bin"
        cp "$0" "$folder/bin/python"
        printf '#!/bin/sh\\necho "$@"\\n[ "$1" != "$SLOW" ] || exec sleep 60\\n%s\\n' \\
            'case "$*" in *tf32*) exit 2 ;; "$BROKEN"*) exit 1 ;; esac' > "$folder/bin/emberharmony"
        chmod +x "$folder/bin/emberharmony" ;;
    "-c import sysconfig"*) echo "$here" ;;
    "-c import "*) exec {sys.executable} "$@" ;;
    *) echo "$@" ;;
esac
"""
STEPS = ["install", "install-checks", "doctor", "conformance-float32", "conformance-tf32", "models", "distributed"]

pytestmark = [
    pytest.mark.fresh_process,
    pytest.mark.skipif(sys.platform == "win32", reason="the script needs a shell"),
]


def start(folder: Path, *arguments: str, **environ: str) -> "subprocess.Popen[str]":
    """Starts the script on a machine that has nothing, in a process group of its own, as a terminal does."""
    python = folder / "python"
    python.write_text(PYTHON, encoding="utf-8")
    python.chmod(0o755)
    (folder / "temporary").mkdir(exist_ok=True)
    return subprocess.Popen(
        ["bash", SCRIPT, *arguments],
        env={**os.environ, "PYTHON": str(python), "TMPDIR": str(folder / "temporary"), "BROKEN": "none", **environ},
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        start_new_session=True,
    )


def statuses(results: Path) -> dict[str, str]:
    """Returns the exit status of each step."""
    lines = (results / "status.txt").read_text(encoding="utf-8").splitlines()
    return {name: rest.split()[2].rstrip(",") for name, _, rest in (line.partition(": ") for line in lines)}


def wait_until(happened: Callable[[], bool]) -> None:
    """Waits a minute for something."""
    end = time.monotonic() + 60
    while not happened():
        assert time.monotonic() < end
        time.sleep(0.02)


def is_gone(group: int) -> bool:
    """Returns whether no process of a group is left."""
    try:
        os.killpg(group, 0)
    except ProcessLookupError:
        return True
    return False


def test_each_step_leaves_its_output_and_status_in_one_folder(tmp_path: Path) -> None:
    results = tmp_path / "results"
    process = start(tmp_path, "cuda", "mlx", str(results))
    output = process.communicate(timeout=60)[0]
    assert process.returncode == 0, output
    expected = dict.fromkeys([*STEPS, "distributed-speed"], "0") | {"conformance-tf32": "2"}
    done = statuses(results)
    done.pop("build", None)  # where there is no folder of wheels
    assert done == expected, output
    assert (results / "doctor.txt").read_text() == "doctor --backend mlx --device cuda --report doctor-cuda.json\n"
    assert "--device cuda --precision float32" in (results / "conformance-float32.txt").read_text()
    assert "--backend mlx --rounds 5" in (results / "models.txt").read_text()
    assert list((tmp_path / "temporary").iterdir()) == []
    again = start(tmp_path, "cuda", "mlx", str(results))
    assert "is not empty: name another folder" in again.communicate(timeout=60)[0]
    assert again.returncode == 2


def test_a_step_that_fails_does_not_stop_those_after_it(tmp_path: Path) -> None:
    process = start(tmp_path, "gpu", "jax", str(tmp_path / "results"), BROKEN="doctor")
    output = process.communicate(timeout=60)[0]
    assert process.returncode == 1, output
    done = statuses(tmp_path / "results")
    assert (done["doctor"], done["distributed"], "models" in done) == ("1", "0", False)
    assert output.splitlines()[-1].startswith("doctor: exit status 1")


def test_an_interrupt_ends_the_script_and_keeps_what_is_there(tmp_path: Path) -> None:
    results = tmp_path / "results"
    process = start(tmp_path, "cuda", "mlx", str(results), SLOW="conformance")
    output = results / "conformance-float32.txt"
    wait_until(lambda: bool(output.exists() and output.read_text()))
    os.killpg(process.pid, signal.SIGINT)
    process.communicate(timeout=60)
    assert process.returncode in (130, -signal.SIGINT)
    assert statuses(results)["doctor"] == "0"
    assert not (results / "two.py").exists()
    assert list((tmp_path / "temporary").iterdir()) == []
    wait_until(lambda: is_gone(process.pid))
