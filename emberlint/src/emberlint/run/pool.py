"""Checks groups of files in this process or in a pool of processes, each group after those that it imports from."""

import os
import signal
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import lru_cache
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, NamedTuple

from emberlint.config.settings import Settings
from emberlint.findings import Encoded
from emberlint.run.check import check_bytes
from emberlint.run.garbage import pause_collection
from emberlint.run.library import Library, Shelf
from emberlint.run.results import FileResult, decode_result, encode_result
from emberlint.source.modules import Modules

if TYPE_CHECKING:
    from concurrent.futures import Future, ProcessPoolExecutor

POOL_FROM = 400_000  # the least number of bytes to check for which several processes are faster than one
BATCH = 24  # the number of files that a worker gets at a time


class Task(NamedTuple):
    """The task of checking a file: its content, its imports, and the files that it may not see."""

    path: str
    content: bytes | str
    near: tuple[str, ...]
    hidden: frozenset[str]
    codes: frozenset[str]


class Work(NamedTuple):
    """The files to check in groups, with their imports and the functions that prepare and finish a check.

    Attributes:
        groups: The files, each group after those that it imports from.
        near: The files that each file imports.
        prepare: Returns the tasks of files whose turn has come; files without a task are known already.
        finish: Receives the path and the result of each task.
        size: The number of bytes to check.
    """

    groups: Sequence[Sequence[str]]
    near: Mapping[str, tuple[str, ...]]
    prepare: Callable[[Sequence[str]], list[Task]]
    finish: Callable[[str, FileResult], None]
    size: int


Done = list[tuple[str, Encoded]]


def check_groups(work: Work, library: Library, settings: Settings, jobs: int) -> None:
    """Checks groups of files with up to `jobs` processes."""
    if jobs > 1 and work.size >= POOL_FROM:
        with TemporaryDirectory(prefix="emberlint") as folder:
            library.share_summaries(Path(folder))
            _check_in_processes(work, settings, jobs, folder)
            library.share_summaries(None)
        return
    with pause_collection():
        for group in work.groups:
            for path in group:
                for task in work.prepare([path]):
                    work.finish(path, _check_task(task, settings, library))


def default_jobs() -> int:
    """Returns how many processes can run at a time: the number of cores that this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def _check_task(task: Task, settings: Settings, library: Library) -> FileResult:
    import_shelf = Shelf(library, task.path, task.near, task.hidden)
    return check_bytes(task.path, task.content, settings, task.codes, import_shelf)


def _check_batch(batch: list[Task], settings: Settings, folder: str) -> Done:
    library = _shared_library(settings.root, folder)
    library.modules.settings = settings
    file_results = []
    with pause_collection():
        for task in batch:
            file_result = _check_task(task, settings, library)
            library.put(task.path, file_result.summary)
            file_results.append((task.path, encode_result(file_result)))
    return file_results


@lru_cache(maxsize=1)
def _shared_library(root: Path, folder: str) -> Library:
    return Library(Modules(Settings(root=root)), Path(folder))


def _check_in_processes(work: Work, settings: Settings, jobs: int, folder: str) -> None:
    # Not at the top: a run whose files are cached needs no pool, and this import would take a tenth of that run.
    from concurrent.futures import FIRST_COMPLETED, ProcessPoolExecutor, wait
    from multiprocessing import active_children

    earlier_children = active_children()
    schedule = _Schedule(work)
    with ProcessPoolExecutor(jobs) as pool:
        try:
            group_by_future: dict[Future[Done], list[int]] = {}
            with hold_interrupts():
                _submit_groups(pool, schedule, group_by_future, settings, folder, jobs)
            while group_by_future:
                finished_groups, _ = wait(group_by_future, return_when=FIRST_COMPLETED)
                for group in finished_groups:
                    for path, encoded_result in group.result():
                        work.finish(path, decode_result(encoded_result))
                    schedule.finish_groups(group_by_future.pop(group))
                _submit_groups(pool, schedule, group_by_future, settings, folder, jobs)
        except BaseException:
            # Without this, an interrupt would wait until the workers finish their batches.
            for worker in active_children():
                if worker not in earlier_children:
                    worker.terminate()
            raise


def _submit_groups(
    pool: "ProcessPoolExecutor",
    schedule: "_Schedule",
    running_groups: "dict[Future[Done], list[int]]",
    settings: Settings,
    folder: str,
    jobs: int,
) -> None:
    while len(running_groups) < 2 * jobs:
        group_numbers, batch = schedule.next_batch()
        if not batch:
            return
        running_groups[pool.submit(_check_batch, batch, settings, folder)] = group_numbers


class _Schedule:
    """The schedule of groups of files: those whose imports are all checked, and those that wait."""

    def __init__(self, work: Work) -> None:
        self.work = work
        self.ready: list[int] = []
        owner_by_path = {path: group_number for group_number, group in enumerate(work.groups) for path in group}
        self.readers: list[list[int]] = [[] for _ in work.groups]
        self.waiting: list[int] = []
        for group_number, group in enumerate(work.groups):
            needed_groups = {
                owner_by_path[near_path]
                for path in group
                for near_path in work.near.get(path, ())
                if near_path in owner_by_path
            } - {group_number}
            self.waiting.append(len(needed_groups))
            for needed_group in needed_groups:
                self.readers[needed_group].append(group_number)
            if not needed_groups:
                self.ready.append(group_number)

    def next_batch(self) -> tuple[list[int], list[Task]]:
        """Returns the numbers of some groups that are ready, and their tasks."""
        group_numbers: list[int] = []
        tasks: list[Task] = []
        while self.ready and len(tasks) < BATCH:
            group_number = self.ready.pop(0)
            group_tasks = self.work.prepare(self.work.groups[group_number])
            if group_tasks:
                group_numbers.append(group_number)
                tasks += group_tasks
            else:
                self.finish_groups([group_number])
        return group_numbers, tasks

    def finish_groups(self, numbers: Sequence[int]) -> None:
        """Records that groups are checked, so that the groups that import from them may begin."""
        for group_number in numbers:
            for dependent_group in self.readers[group_number]:
                self.waiting[dependent_group] -= 1
                if not self.waiting[dependent_group]:
                    self.ready.append(dependent_group)


@contextmanager
def hold_interrupts() -> Iterator[None]:
    """Blocks Ctrl-C while workers start: they inherit the blocked signal, so only the parent process handles it."""
    if not hasattr(signal, "pthread_sigmask"):
        yield
        return
    signal_mask_before = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, signal_mask_before)
