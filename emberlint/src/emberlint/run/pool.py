"""Checks many files, in this process or in a pool of processes."""

import os
import signal
from collections.abc import Iterator, Mapping
from contextlib import contextmanager

from emberlint.config.settings import Settings
from emberlint.findings import Encoded
from emberlint.run.check import check_bytes
from emberlint.run.results import encode

POOL_FROM = 400_000  # bytes; to check fewer, one process is faster than starting several
BATCH = 24  # files handed to a worker at a time


def check_all(
    contents: Mapping[str, bytes], settings: Settings, codes: frozenset[str], jobs: int
) -> Iterator[tuple[str, Encoded]]:
    """Yields each path with its encoded result, in the order of `contents`."""
    pending = [*contents.items()]
    if jobs <= 1 or sum(map(len, contents.values())) < POOL_FROM:
        yield from _check_batch(pending, settings, codes)
        return
    # Not at the top: a run whose files are cached needs no pool, and this import would take a tenth of that run.
    from concurrent.futures import ProcessPoolExecutor
    from multiprocessing import active_children

    others = active_children()
    batches = [pending[start : start + BATCH] for start in range(0, len(pending), BATCH)]
    with ProcessPoolExecutor(min(jobs, len(batches))) as pool:
        try:
            with _interrupts_held():
                running = [pool.submit(_check_batch, batch, settings, codes) for batch in batches]
            for done in running:
                yield from done.result()
        except BaseException:
            # Without this, an interrupt would wait until the workers finish their batches.
            for worker in active_children():
                if worker not in others:
                    worker.terminate()
            raise


def default_jobs() -> int:
    """Returns how many processes can run at a time: the number of cores that this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def _check_batch(
    batch: list[tuple[str, bytes]], settings: Settings, codes: frozenset[str]
) -> list[tuple[str, Encoded]]:
    return [(path, encode(check_bytes(path, content, settings, codes))) for path, content in batch]


@contextmanager
def _interrupts_held() -> Iterator[None]:
    """Blocks Ctrl-C while workers start: they inherit the blocked signal, so only the parent process handles it."""
    if not hasattr(signal, "pthread_sigmask"):
        yield
        return
    before = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)
