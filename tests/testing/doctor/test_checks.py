"""The doctor's checks of a backend, each with a stand-in that has the fault."""

import subprocess
import sys
import threading
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from emberharmony.backend.discovery import load
from emberharmony.backend.numpy import NumpyBackend
from emberharmony.errors import DTypeError
from emberharmony.testing.doctor.checks import CHECKS, run_check
from emberharmony.testing.doctor.finding import BROKEN, DIFFERS, OK, ROWS, Finding
from emberharmony.testing.doctor.process import repro_of


def found(check: str, **faults: Any) -> Finding:
    """Returns what a check finds about NumPy with some ops replaced."""
    defined = {name: staticmethod(op) if callable(op) else op for name, op in faults.items()}
    return run_check(type("Standin", (NumpyBackend,), defined)(), check)


def is_broken(finding: Finding, *words: str) -> None:
    assert finding.verdict == BROKEN
    assert all(word in finding.detail for word in words), finding.detail
    assert len(finding.repro.splitlines()) == 3


@pytest.mark.parametrize("check", [name for name in CHECKS if name != "speed"])
def test_a_backend_that_works_is_ok_or_has_documented_differences(check: str, backend: str) -> None:
    finding = run_check(load(backend), check)  # type: ignore[arg-type]
    known = backend == "mlx" and check in ("index out of bounds", "lazy tensors of threads")
    assert (finding.verdict, finding.row) == ((DIFFERS, ROWS["remaining"]) if known else (OK, "")), finding


def rounded(x: Any) -> Any:
    """Returns numbers rounded to 11 bits, as TF32 rounds factors."""
    return (np.asarray(x, np.float32).view(np.uint32) + 0x1000 & 0xFFFFE000).view(np.float32)


def coarse(a: Any, b: Any) -> Any:
    return rounded(a) @ rounded(b)


def test_products_in_tf32_are_named(monkeypatch: pytest.MonkeyPatch) -> None:
    is_broken(found("product precision", matmul=coarse), "off by 0.0", "processor", "another BLAS")
    allowed = found("product precision", matmul=coarse, precision_key=lambda: ("tf32",))
    assert (allowed.verdict, allowed.row) == (DIFFERS, ROWS["precision"])
    assert "tf32, off by" in allowed.detail
    on_a_gpu = found("product precision", matmul=coarse, get_default_device=lambda: "gpu")
    assert on_a_gpu.verdict == DIFFERS


def test_a_blas_that_computes_nonsense_is_named() -> None:
    is_broken(found("product precision", matmul=lambda a, b: 1.1 * (a @ b)), "off by 0.1")
    is_broken(found("product precision", matmul=lambda a, b: a @ b + np.float32("nan")), "off by nan")
    nothing = {"matmul": lambda a, b: a @ b + np.float32("nan"), "get_default_device": lambda: "gpu"}
    is_broken(found("product precision", **nothing), "off by nan, and float32 is")
    is_broken(found("convolution precision", conv=lambda *_: np.zeros((2, 14, 14, 32), np.float32)), "off by 1")


def test_flushed_numbers_are_named() -> None:
    torch = pytest.importorskip("torch")
    if not torch.set_flush_denormal(True):
        pytest.skip("this processor keeps subnormal numbers")
    try:
        finding = run_check(load("torch"), "subnormal numbers")
    finally:
        torch.set_flush_denormal(False)
    assert (finding.verdict, finding.row) == (DIFFERS, ROWS["remaining"])


def saturated(a: Any, b: Any) -> Any:
    limits = np.iinfo(a.dtype)
    return np.clip(a.astype(object) + b.astype(object), limits.min, limits.max).astype(a.dtype)


def unsafe(a: Any, b: Any) -> Any:
    if threading.current_thread() is not threading.main_thread():
        raise RuntimeError("not in this thread")
    return a @ b


FAULTS: dict[str, tuple[str, dict[str, Any], str]] = {
    "integers saturate": ("integer overflow", {"add": saturated}, "int8 127 + 1 is 127"),
    "max ignores NaN": ("NaN in max", {"max": lambda x, *_: np.nanmax(x)}, "ops.max"),
    "maximum ignores NaN": ("NaN in max", {"maximum": np.fmax}, "ops.maximum with NaN"),
    "sort puts NaN first": (
        "NaN in sort",
        {"sort": lambda x, *_: np.roll(np.sort(x), 1)},
        "ops.sort puts NaN elsewhere",
    ),
    "indices wrap": (
        "index out of bounds",
        {"take": lambda x, i, *_: np.take(x, i, mode="wrap")},
        "index 5 of 3",
    ),
    "threads fail": ("threads", {"matmul": unsafe}, "not in this thread"),
    "float64 is float32": ("float64", {"divide": lambda a, b: np.divide(a, b).astype("f4")}, "1/3 in float64 is"),
    "bfloat16 is truncated": (
        "bfloat16",
        {"cast": lambda x, dtype: (np.asarray(x, "f4").view("u4") & 0xFFFF0000).view("f4").astype(dtype)},
        "rounded to bfloat16",
    ),
    "an op raises": ("subnormal numbers", {"multiply": lambda a, b: 1 // 0}, "by zero"),
}


@pytest.mark.parametrize("fault", FAULTS)
def test_a_fault_is_broken_and_has_a_program(fault: str) -> None:
    check, ops, words = FAULTS[fault]
    is_broken(found(check, **ops), words)


def refuse(*args: Any, **kwargs: Any) -> Any:
    raise DTypeError("there is none on this device")


def test_a_dtype_that_the_device_lacks_is_a_difference() -> None:
    finding = found("float64", array=refuse)
    assert (finding.verdict, finding.row) == (DIFFERS, ROWS["remaining"])
    assert "there is none on this device" in finding.detail
    assert found("bfloat16", cast=refuse).verdict == DIFFERS


def test_other_random_numbers_are_broken(monkeypatch: pytest.MonkeyPatch) -> None:
    from emberharmony import ops

    integers: Callable[..., Any] = ops.random.Generator.integers
    monkeypatch.setattr(ops.random.Generator, "integers", lambda *args: integers(*args) + 1)
    is_broken(found("random numbers"), "on other machines")


def test_the_speed_is_measured_and_a_slow_product_named(monkeypatch: pytest.MonkeyPatch) -> None:
    from emberharmony.testing.doctor import checks

    monkeypatch.setattr(checks, "_least_seconds", lambda function, seconds=0.4: 0.5)
    monkeypatch.setattr(checks, "_host_product_seconds", lambda: 0.4)
    usual = found("speed")
    assert (usual.verdict, set(usual.figures)) == (OK, {"product GFLOP/s", "copy GB/s"})
    monkeypatch.setattr(checks, "_host_product_seconds", lambda: 0.01)
    assert found("speed").row == ROWS["speed"]


@pytest.mark.fresh_process
def test_the_programs_run() -> None:
    programs = [repro_of("numpy", check) for check in ["import", "fork", *CHECKS]]
    guarded = "\n".join(
        f"try:\n    exec({program!r})\nexcept errors.IndexOutOfBoundsError:\n    print('raised')"
        for program in programs
    )
    done = subprocess.run(
        [sys.executable, "-W", "ignore", "-c", f"from emberharmony import errors\n{guarded}"],
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    assert "raised" in done.stdout
    assert "-128" in done.stdout
