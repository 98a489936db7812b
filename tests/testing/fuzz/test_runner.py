"""The fuzzer as a whole: it survives a backend that ends the process, and reports nothing for correct ops."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from emberharmony.testing.fuzz import runner
from emberharmony.testing.fuzz.runner import Finding, Tally, run_calls

SOUND = (
    *(
        "add",
        "broadcast_to",
        "clip",
        "concatenate",
        "cumsum",
        "equal",
        "expand_dims",
        "flip",
        "full",
        "isclose",
        "mean",
    ),
    *("matmul", "maximum", "one_hot", "power", "reshape", "sin", "softmax", "sort", "stack", "sum", "take", "where"),
)
"""Ops that this test calls on every backend; `make deep` calls all."""

FAULTY = """
import os, signal, time
from emberharmony.backend.numpy import NumpyBackend

class Faulty(NumpyBackend):
    name = "faulty"
    def sin(self, x): os.kill(os.getpid(), signal.SIGSEGV)
    def cos(self, x):
        while True: pass
    def tan(self, x): raise SystemExit(3)
    def exp(self, x): os._exit(7)
    def square(self, x):
        if x.size and x.flags.writeable: x.reshape(-1)[:1] = 1
        return x + 0
    def sqrt(self, x): raise RuntimeError("no root")
"""


@pytest.mark.fresh_process
def test_correct_ops_give_no_findings(backend: str) -> None:
    tally = Tally(backend)
    run_calls(tally, 300, 0, SOUND)
    assert not tally.findings, "\n\n".join(f"{f.detail}\n{f.snippet}" for f in tally.findings)
    assert sum(tally.counts.values()) == 300
    assert tally.counts["returned"] > 90
    assert tally.counts["typed"] > 60


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Returns the folder of an installed backend that has every kind of fault."""
    folder = tmp_path_factory.mktemp("faulty")
    (folder / "faulty_backend.py").write_text(FAULTY)
    (folder / "faulty-1.dist-info").mkdir()
    (folder / "faulty-1.dist-info" / "METADATA").write_text("Metadata-Version: 2.1\nName: faulty\nVersion: 1\n")
    (folder / "faulty-1.dist-info" / "entry_points.txt").write_text(
        "[emberharmony.backends]\nfaulty = faulty_backend:Faulty\n"
    )
    return folder


@pytest.fixture(scope="module")
def tally(folder: Path) -> Tally:
    """Returns the tally of the calls of that backend."""
    names, tally, advanced = ("cos", "exp", "negative", "sin", "sqrt", "square", "tan"), Tally("faulty"), []
    with pytest.MonkeyPatch.context() as patch:
        path = os.pathsep.join(filter(None, (str(folder), os.environ.get("PYTHONPATH", ""))))
        patch.setenv("PYTHONPATH", path)
        patch.setattr(runner, "DEATHS", 1)
        run_calls(tally, 70, 1, names, timeout=0.3, advance=advanced.append)
    assert sum(advanced) == 70
    return tally


@pytest.mark.fresh_process
def test_every_kind_of_fault_is_found(tally: Tally) -> None:
    kinds = {finding.op: finding.kind for finding in tally.findings}
    assert kinds == {"cos": "hang", "exp": "exit", "sin": "signal", "square": "changed", "tan": "untyped"}
    assert sorted(tally.skipped) == ["cos", "exp", "sin"]
    assert "no root" in tally.native["sqrt"]
    said = {finding.op: finding.detail for finding in tally.findings}
    assert said["cos"].startswith("takes more than 0.3 s")  # on a busy machine "and computes nothing", by the clock
    assert said["exp"] == "ends the process with status 7"
    assert said["sin"] == "is killed by SIGSEGV"
    assert said["tan"].startswith("raises an untyped exception: SystemExit: 3")
    assert said["square"].startswith("changes its input: ")


@pytest.mark.fresh_process
def test_a_call_that_ends_the_worker_is_repeated_alone(tally: Tally) -> None:
    assert {finding.op: finding.alone for finding in tally.findings if finding.alone is not None} == {
        "cos": True,
        "exp": True,
        "sin": True,
    }


def found(tally: Tally, op: str) -> Finding:
    return next(finding for finding in tally.findings if finding.op == op)


@pytest.mark.fresh_process
@pytest.mark.parametrize(("op", "status"), [("sin", -11), ("exp", 7), ("tan", 3), ("square", 1)])
def test_the_program_of_a_finding_reproduces_it(
    op: str, status: int, tally: Tally, folder: Path, tmp_path: Path
) -> None:
    file = tmp_path / "program.py"
    file.write_text(found(tally, op).snippet)
    path = os.pathsep.join(filter(None, (str(folder), os.environ.get("PYTHONPATH", ""))))
    done = subprocess.run(
        [sys.executable, str(file)],
        env=os.environ | {"PYTHONPATH": path},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == status, done.stderr
    if op == "square":
        assert "AssertionError: an argument was changed" in done.stderr


@pytest.mark.fresh_process
def test_a_worker_that_cannot_start_raises_an_error() -> None:
    with pytest.raises(RuntimeError, match=r"backend 'absent' ended with status 1: (?s:.*)BackendNotFoundError"):
        run_calls(Tally("absent"), 3, 0, ("add",))
