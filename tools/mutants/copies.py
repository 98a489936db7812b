"""A copy of the working tree in which mutants are planted, and the process that runs tests there."""

import contextlib
import itertools
import json
import os
import shutil
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from types import TracebackType
from typing import Any

from mutants.mutant import ROOT

LIBRARIES = ("numpy", "torch", "mlx.core", "scipy.special", "pytest")
"""The imports that forks save. JAX is not among them: it starts threads when it is imported, which a fork lacks."""

XLA_FLAGS = (
    "--xla_backend_optimization_level=0 --xla_cpu_use_fusion_emitters=false "
    "--xla_llvm_disable_expensive_passes=true --xla_cpu_parallel_codegen_split_count=1"
)
"""Those of `make jax-and-dask`: XLA compiles in half the time with them."""

SERVER = Path(__file__).parent / "server.py"


class Copy:
    """A copy of the files that git tracks or would track, with a server that runs pytest there.

    Args:
        folder: a folder for it, which does not exist.
        profile: which cases tests try, see `tests/sampling.py`, unless the environment says so.
    """

    def __init__(self, folder: Path, profile: str = "whole") -> None:
        self.folder = folder / "tree"
        self.report = folder / "report.json"
        self.log = folder / "log.txt"
        listing = subprocess.run(
            ["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"],
            cwd=ROOT,
            capture_output=True,
            text=True,
            check=True,
        )
        for name in filter(None, listing.stdout.split("\0")):
            if (ROOT / name).is_file():
                (self.folder / name).parent.mkdir(parents=True, exist_ok=True)
                shutil.copy2(ROOT / name, self.folder / name)
        # Bytecode is valid for the second of its source's time, so each version of a file gets a second of its own.
        self._seconds = itertools.count(int(time.time()) - 10**6)
        paths = (self.folder, self.folder / "emberlint" / "src")
        environment = {name: value for name, value in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"}
        environment |= {
            "PYTHONPATH": os.pathsep.join(map(str, paths)),
            "OMP_NUM_THREADS": "1",
            "JAX_ENABLE_X64": "1",
            "PYTHONHASHSEED": "0",
            "DASK_SCHEDULER": "synchronous",
            "XLA_FLAGS": XLA_FLAGS,
            "HYPOTHESIS_PROFILE": os.environ.get("HYPOTHESIS_PROFILE", profile),
        }
        self._process = subprocess.Popen(
            [sys.executable, str(SERVER), *LIBRARIES],
            cwd=self.folder,
            env=environment,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )

    def __enter__(self) -> "Copy":
        return self

    def __exit__(
        self, kind: type[BaseException] | None, value: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self._process.terminate()
        self._process.communicate()
        shutil.rmtree(self.folder.parent, ignore_errors=True)

    def send_request(self, request: dict[str, Any], timeout: float) -> dict[str, Any]:
        """Runs pytest with `arguments`, or imports a `module`; returns the exit status and the recorded failure."""
        self.report.unlink(missing_ok=True)
        request |= {"report": str(self.report), "log": str(self.log), "timeout": timeout}
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._process.stdin.write(json.dumps(request) + "\n")
        self._process.stdin.flush()
        answer = self._process.stdout.readline()
        if not answer:
            raise RuntimeError("the process that runs the tests has ended")
        record_text = self.report.read_text(encoding="utf-8") if self.report.exists() else "{}"
        return {**json.loads(answer), **json.loads(record_text)}

    def output(self) -> str:
        """Returns the end of the output of the last request."""
        with contextlib.suppress(FileNotFoundError):
            return self.log.read_text(encoding="utf-8", errors="replace")[-4000:]
        return ""

    @contextlib.contextmanager
    def replace_file(self, path: str, source: str) -> Iterator[None]:
        """Replaces a file of the copy within the block."""
        original_content = (self.folder / path).read_bytes()
        try:
            self._write_file(path, source.encode())
            yield
        finally:
            self._write_file(path, original_content)

    def _write_file(self, path: str, content: bytes) -> None:
        (self.folder / path).write_bytes(content)
        modified_second = next(self._seconds)
        os.utime(self.folder / path, (modified_second, modified_second))
