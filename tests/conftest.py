"""Fixtures of all tests: a test with the parameter `backend` runs once on each installed backend.

`--order-seed N` runs the tests in a random order, and `EMBERHARMONY_TEST_SEED=N` rotates samples, see
`tests/sampling.py`.
"""

import functools
import gc
import importlib
import os
import shlex
import signal
from collections.abc import Generator, Iterator

import pytest
from _pytest.runner import runtestprotocol
from hypothesis import settings

from emberharmony.backend.shared.random_streams import start_streams
from emberharmony.core.registry import OPS
from emberharmony.rules import RULES
from tests.sampling import PROFILE, SEED, VARIABLE, WHOLE, XLA_FLAGS, is_tried, place

settings.register_profile("quick", max_examples=25, deadline=None, derandomize=not SEED)
settings.register_profile("whole", settings.get_profile("quick"))
settings.register_profile("deep", max_examples=1000, deadline=None, derandomize=not SEED)
settings.load_profile(PROFILE)

THRESHOLDS = gc.get_threshold()

# The JAX backend computes in 64 bits, and warns if it has to switch them on.
os.environ.setdefault("JAX_ENABLE_X64", "1")
if not WHOLE:
    os.environ.setdefault("XLA_FLAGS", XLA_FLAGS)

if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    # A shell starts background jobs with SIGINT ignored, and child processes inherit this. Some tests start programs
    # and interrupt them, so SIGINT must have its default handler.
    signal.signal(signal.SIGINT, signal.default_int_handler)


@pytest.fixture
def backend(ember_backend: str) -> str:
    """Returns the name of the active backend: each installed one in turn. A shorter name for `ember_backend`."""
    if ember_backend == "dask":
        _prepare_dask()
    return ember_backend


@pytest.fixture
def own_ops() -> Iterator[None]:
    """Removes the ops that a test registers, which later tests would take for those of the library."""
    before = set(OPS)
    yield
    for name in set(OPS) - before:
        del OPS[name]
        RULES.pop(name, None)


@functools.cache
def _prepare_dask() -> None:
    """Makes Dask compute in one thread, and gives its arrays the method `tolist`, by which tests read tensors."""
    dask, da = (importlib.import_module(name) for name in ("dask", "dask.array"))
    dask.config.set(scheduler="synchronous")
    da.Array.tolist = lambda x: x.compute().tolist()


@pytest.fixture
def quick(backend: str, monkeypatch: pytest.MonkeyPatch) -> str:
    """Makes torch.compile only trace, because its default compiler takes seconds for each function."""
    if backend == "torch":
        torch = importlib.import_module("torch")
        monkeypatch.setattr(torch, "compile", functools.partial(torch.compile, backend="eager"))
    return backend


def pytest_collection() -> None:
    """Stops garbage collection while tests are collected, of which it took a quarter of the time.

    The collector stays enabled: Dask restores the state in which it was imported each time it takes a slice.
    """
    gc.set_threshold(0)


def pytest_collection_finish() -> None:
    """Exempts the millions of objects that live until the end from garbage collection, which took half a second."""
    gc.set_threshold(*THRESHOLDS)
    gc.collect()
    gc.freeze()


def pytest_addoption(parser: pytest.Parser) -> None:
    """Adds `--order-seed`."""
    parser.addoption("--order-seed", type=int, metavar="N", help="run files, and tests in them, in a random order")


@pytest.hookimpl(tryfirst=True)  # before the plugin of hypothesis, which reads its option
def pytest_configure(config: pytest.Config) -> None:
    """Declares the mark of the tests that run in part, and gives hypothesis the seed."""
    config.addinivalue_line(
        "markers",
        "sampled(n, everywhere=False): outside of the profiles whole and deep, an n-th of the cases on other backends "
        "than NumPy, or also on NumPy; a test without `backend` is such a case",
    )
    if SEED and config.getoption("--hypothesis-seed") is None:
        config.option.hypothesis_seed = str(SEED)


def pytest_report_header(config: pytest.Config) -> str:
    """Prints the seeds by which a run can be repeated."""
    order = config.getoption("--order-seed")
    return f"{VARIABLE}={SEED}" + ("" if order is None else f", --order-seed {order}")


@pytest.hookimpl(trylast=True)  # so that nothing sorts the tests afterwards
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Leaves out most cases of the tests that run in part, but for those on NumPy, and shuffles the tests.

    These are the tests marked as `sampled`; those that start processes, each of which imports the library again; and
    those of functions that PyTorch traces, which takes it a second for each.
    """
    left_out = [item for item in items if _is_left_out(item)]
    config.hook.pytest_deselected(items=left_out)
    out = set(left_out)
    items[:] = [item for item in items if item not in out]
    order = config.getoption("--order-seed")
    if order is not None:
        items.sort(key=lambda item: place(order, item.nodeid))


def pytest_runtest_setup() -> None:
    """Restarts the streams of random numbers, so that what a test draws does not depend on the tests before it."""
    start_streams(SEED)


@pytest.hookimpl(tryfirst=True)
def pytest_runtest_protocol(item: pytest.Item, nextitem: pytest.Item | None) -> bool | None:
    """Runs a test in a worker of xdist, and sends only those reports from which the controller prints something.

    Otherwise a worker sends six messages for each test, which takes 0.5 ms of processor time and wakes the controller
    six times.
    """
    if not hasattr(item.config, "workerinput"):
        return None
    for report in runtestprotocol(item, log=False, nextitem=nextitem):
        if is_printed(report):
            item.ihook.pytest_runtest_logreport(report=report)
    return True


def is_printed(report: pytest.TestReport) -> bool:
    """Returns whether a report counts: setting up and tearing down do if they fail, skip, print or take 0.1 s."""
    return report.when == "call" or not report.passed or bool(report.sections) or report.duration >= 0.1


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(
    item: pytest.Item, call: pytest.CallInfo[None]
) -> Generator[None, pytest.TestReport, pytest.TestReport]:
    """Adds to the report of a failure how to repeat it, if a seed has chosen the case or the order."""
    report = yield
    order = item.config.getoption("--order-seed")
    if report.failed and (SEED or order is not None):
        profile = "" if PROFILE == "quick" else f"HYPOTHESIS_PROFILE={PROFILE} "
        arguments = [item.nodeid] if order is None else [*item.config.invocation_params.args]
        report.sections.append(("to repeat", f"{VARIABLE}={SEED} {profile}python -m pytest {shlex.join(arguments)}"))
    return report


def _is_left_out(item: pytest.Item) -> bool:
    mark = item.get_closest_marker("sampled")
    backend = getattr(item, "callspec", None) and item.callspec.params.get("ember_backend")  # type: ignore[attr-defined]
    if backend is None:
        return mark is not None and not is_tried(item.name, int(mark.args[0]))
    if backend == "numpy" and not (mark and mark.kwargs.get("everywhere")):
        return False
    if mark:
        share = int(mark.args[0])
    elif item.get_closest_marker("fresh_process"):
        share = 3
    else:
        share = 2 if "quick" in item.fixturenames else 1  # type: ignore[attr-defined]
    return not is_tried(item.name, share)
