"""Tries mutants: first runs the tests without a fault, then with each fault in turn."""

import hashlib
import shlex
import tempfile
import threading
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait
from contextlib import ExitStack
from pathlib import Path
from queue import SimpleQueue
from typing import TypeVar

from mutants.copies import Copy
from mutants.mutant import ROOT, Mutant
from mutants.planting import Module, plant
from mutants.results import INVALID, NOTICED, SURVIVED, Result, Results

T = TypeVar("T")

# The first run of a test compiles bytecode and may share its processor.
SLOWEST, SHORTEST_TIMEOUT, LONGEST = 10.0, 60.0, 60.0
NO_TESTS, TIMEOUT_OF_IMPORT = 5, 60.0


class RedError(Exception):
    """Tests fail without a fault, so they say nothing about mutants."""


def tree_hash(folders: Sequence[str] = ("emberharmony", "tests")) -> str:
    """Returns a hash of all source files, which decides whether tests must be run again without a fault."""
    digest = hashlib.sha256()
    for folder in folders:
        for file in sorted((ROOT / folder).rglob("*.py")):
            digest.update(str(file.relative_to(ROOT)).encode() + b"\0" + file.read_bytes())
    return digest.hexdigest()[:20]


class Trials:
    """Copies of the tree, one for each job, and the results of the mutants that were tried in them."""

    def __init__(self, results: Results, jobs: int, say: Callable[[str], None] = print) -> None:
        self.results = results
        self.jobs = jobs
        self.say = say
        self._lock = threading.Lock()
        self._copies: SimpleQueue[Copy] = SimpleQueue()
        self._tree = tree_hash()

    def run(self, mutants: Sequence[Mutant], confirm: bool = False) -> None:
        """Tries the mutants whose results are missing or out of date.

        Args:
            mutants: the mutants.
            confirm: instead of running all tests without a fault before, run a test that has failed again without it.

        Raises:
            RedError: if a test fails without a fault.
        """
        wanted = [(mutant, mutant.key()) for mutant in mutants]
        wanted = [(mutant, key) for mutant, key in wanted if not self.results.has(mutant.name, key)]
        if not wanted:
            return
        entries = sorted({entry for mutant, _ in wanted for entry in mutant.tests}) if not confirm else []
        entries = [entry for entry in entries if self.results.seconds(entry, self._tree) is None]
        with ExitStack() as stack:
            folder = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="mutants-")))
            for job in range(min(self.jobs, max(len(wanted), len(entries)))):
                self._copies.put(stack.enter_context(Copy(folder / str(job))))
            if entries:
                self.say(f"{len(entries)} runs of tests without a fault")
                self._all(self._without_a_fault, entries)
            self.say(f"{len(wanted)} mutants")
            self._all(self._confirmed if confirm else self._with_a_fault, wanted)

    def _all(self, function: Callable[[Copy, T, str], None], items: Sequence[T]) -> None:
        """Calls the function for each item, each call with a copy of its own."""

        def call(number: int, item: T) -> None:
            copy = self._copies.get()
            try:
                function(copy, item, f"{number:4}/{len(items)}")
            finally:
                self._copies.put(copy)

        pool = ThreadPoolExecutor(self.jobs)
        try:
            pending = {pool.submit(call, number, item) for number, item in enumerate(items, 1)}
            for future in _completed(pending):
                future.result()
        finally:
            pool.shutdown(wait=False, cancel_futures=True)

    def _without_a_fault(self, copy: Copy, entry: str, number: str) -> None:
        answer = copy.ask({"arguments": shlex.split(entry)}, timeout=1800)
        if answer["status"] == NO_TESTS or (answer["status"] == 0 and not answer["passed"]):
            raise RedError(f"pytest {entry}: no test was run: correct the entry of `tests`")
        if answer["status"] != 0:
            failure = answer.get("failure")
            what = f"{failure['test']}\n{failure['text']}" if failure else copy.output() or answer.get("reason")
            raise RedError(f"pytest {entry} fails without a fault: mend it first\n{what}")
        with self._lock:
            self.results.add_passed(entry, self._tree, answer["seconds"])
            self.say(f"{number} {answer['seconds']:6.1f} s  {answer['passed']} tests of {entry}")

    def _with_a_fault(self, copy: Copy, item: tuple[Mutant, str], number: str) -> None:
        mutant, key = item
        source = (copy.folder / mutant.module).read_text(encoding="utf-8")
        with copy.changed(mutant.module, plant(mutant, Module.parse(mutant.module, source))):
            outcome, by, seconds = self._outcome(copy, mutant)
        with self._lock:
            self.results.add(mutant.name, Result(key, outcome, by, seconds))
            self.say(f"{number} {seconds:6.1f} s  {mutant.name}: {outcome}{' by ' if by else ''}{by}")

    def _outcome(self, copy: Copy, mutant: Mutant) -> tuple[str, str, float]:
        seconds = 0.0
        for entry in mutant.tests:
            usual = self.results.seconds(entry, self._tree) or LONGEST
            answer = copy.ask({"arguments": shlex.split(entry)}, max(SHORTEST_TIMEOUT, SLOWEST * usual))
            seconds += answer["seconds"]
            if answer["status"] in (0, NO_TESTS):
                continue
            failure = answer.get("failure")
            if failure is not None and failure["phase"] != "collect":
                return NOTICED, failure["test"], seconds
            if answer["status"] is None:
                return NOTICED, f"{answer['reason']} of {entry}", seconds
            name = mutant.module.removesuffix(".py").removesuffix("/__init__").replace("/", ".")
            if copy.ask({"module": name}, TIMEOUT_OF_IMPORT)["status"] != 0:
                return INVALID, "", seconds
            return NOTICED, f"the collection of {entry}", seconds
        return SURVIVED, "", seconds

    def _confirmed(self, copy: Copy, item: tuple[Mutant, str], number: str) -> None:
        """Tries a mutant, and runs the test that failed again without the fault."""
        mutant, _ = item
        self._with_a_fault(copy, item, number)
        by = self.results.mutants[mutant.name].by
        if "::" in by and copy.ask({"arguments": [by]}, SLOWEST * LONGEST)["status"] != 0:
            raise RedError(f"pytest {by!r} fails without a fault: mend it first\n{copy.output()}")


def _completed(pending: set[Future[None]]) -> Iterator[Future[None]]:
    """Yields futures as they end, and lets Ctrl-C through between them."""
    while pending:
        done, pending = wait(pending, timeout=0.5, return_when=FIRST_COMPLETED)
        yield from done


def shares(catalogue: dict[str, list[Mutant]], results: Results) -> Iterable[tuple[str, int, int, list[Mutant]]]:
    """Yields each area with the number of its mutants, of those that were noticed, and those that were not."""
    for area, mutants in catalogue.items():
        left = [mutant for mutant in mutants if results.mutants[mutant.name].outcome != NOTICED]
        yield area, len(mutants), len(mutants) - len(left), left
