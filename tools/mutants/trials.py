"""Tries mutants: runs the tests with each fault in turn, and the test that fails again without the fault."""

import re
import shlex
import tempfile
import threading
from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait
from contextlib import ExitStack
from pathlib import Path
from queue import SimpleQueue
from typing import Any, NamedTuple

from mutants.copies import Copy
from mutants.mutant import Mutant
from mutants.planting import Module, plant
from mutants.results import INVALID, NOTICED, RED, SURVIVED, UNTRIED, Result, Results

NO_TESTS = 5
"""The exit status of pytest if it has run no test."""

NOT_FOUND = 4
"""The exit status of pytest if a test does not exist, or an option."""

LONGEST, LONGEST_IMPORT = 300.0, 60.0
"""The seconds after which a run of tests counts as endless: a narrow one takes some seconds."""


MOST_RED = 3
"""So many tests of a mutant may fail without it before it is given up."""


class _Seen(NamedTuple):
    """What a mutant's tests have shown.

    Attributes:
        outcome: one of `results`.
        by: the test that failed, or what else happened.
        again: the arguments of pytest that must succeed without the fault.
        seconds: how long it took.
    """

    outcome: str
    by: str = ""
    again: str = ""
    seconds: float = 0.0


class Trials:
    """Copies of the tree, one for each job, and the results of the mutants that were tried in them."""

    def __init__(self, results: Results, jobs: int, say: Callable[[str], None] = print) -> None:
        self.results = results
        self.jobs = jobs
        self.say = say
        self._lock = threading.Lock()
        self._copies: SimpleQueue[Copy] = SimpleQueue()

    def run(self, mutants: Sequence[Mutant]) -> None:
        """Tries the mutants whose results are missing or out of date."""
        wanted = [(mutant, mutant.key()) for mutant in mutants]
        wanted = [(mutant, key) for mutant, key in wanted if not self.results.has(mutant.name, key)]
        self.say(f"{len(wanted)} mutants to try, {len(mutants) - len(wanted)} results kept")
        if not wanted:
            return
        with ExitStack() as stack:
            folder = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="mutants-")))
            for job in range(min(self.jobs, len(wanted))):
                self._copies.put(stack.enter_context(Copy(folder / str(job))))
            pool = ThreadPoolExecutor(self.jobs)
            try:
                numbered = enumerate(wanted, 1)
                pending = {pool.submit(self._try, *item, f"{number:4}/{len(wanted)}") for number, item in numbered}
                _await(pending)
            finally:
                pool.shutdown(wait=False, cancel_futures=True)

    def _try(self, mutant: Mutant, key: str, number: str) -> None:
        copy = self._copies.get()
        try:
            source = (copy.folder / mutant.module).read_text(encoding="utf-8")
            planted = plant(mutant, Module.parse(mutant.module, source))
            red: list[str] = []
            for _ in range(MOST_RED):
                with copy.replace_file(mutant.module, planted):
                    seen = _run_tests(copy, mutant, red)
                if seen.outcome != NOTICED or copy.ask({"arguments": shlex.split(seen.again)}, LONGEST)["status"] == 0:
                    break
                red.append(seen.by)
                seen = seen._replace(outcome=RED)
        finally:
            self._copies.put(copy)
        with self._lock:
            self.results.add(mutant.name, Result(key, seen.outcome, seen.by, seen.seconds))
            by = f" by {seen.by}" if seen.by else ""
            self.say(f"{number} {seen.seconds:6.1f} s  {mutant.name}: {seen.outcome}{by}")


def _run_tests(copy: Copy, mutant: Mutant, red: Sequence[str]) -> _Seen:
    """Returns what the tests show, while the fault is planted in the copy.

    Args:
        copy: the copy.
        mutant: the fault.
        red: tests that fail without the fault too, and are left out.
    """
    seconds, ran = 0.0, False
    left_out = [word for test in red for word in ("--deselect", test)]
    for entry in mutant.tests:
        answer = _ask_for_tests(copy, [*shlex.split(entry), *left_out])
        seconds = round(seconds + answer["seconds"], 1)
        if answer["status"] in (0, NO_TESTS):
            ran = ran or answer.get("passed", 0) > 0
            continue
        failure = answer.get("failure")
        if failure is not None and failure["phase"] != "collect":
            return _Seen(NOTICED, failure["test"], shlex.quote(failure["test"]) + _backend(entry), seconds)
        if answer["status"] is None:
            return _Seen(NOTICED, f"{answer['reason']} of {entry}", entry, seconds)
        name = mutant.module.removesuffix(".py").removesuffix("/__init__").replace("/", ".")
        if copy.ask({"module": name}, LONGEST_IMPORT)["status"] != 0:
            return _Seen(INVALID, seconds=seconds)
        return _Seen(NOTICED, f"the collection of {entry}", entry, seconds)
    return _Seen(SURVIVED if ran else UNTRIED, seconds=seconds)


def _ask_for_tests(copy: Copy, arguments: list[str]) -> dict[str, Any]:
    """Returns how a run of tests ended; it leaves out tests of which a case is gone since their calls were recorded."""
    answer = copy.ask({"arguments": arguments}, LONGEST)
    if answer["status"] == NOT_FOUND:
        gone = set(re.findall(r"not found: (\S+)", copy.output()))
        known = [word for word in arguments if str(copy.folder / word.partition("[")[0]) not in gone]
        if any("::" in word for word in known) and len(known) < len(arguments):
            return copy.ask({"arguments": known}, LONGEST)
    return answer


def _backend(entry: str) -> str:
    """Returns `--ember-backend` of an entry, without which a test id may be unknown."""
    words = shlex.split(entry)
    return f" --ember-backend {words[words.index('--ember-backend') + 1]}" if "--ember-backend" in words else ""


def _await(pending: set[Future[None]]) -> None:
    """Waits for all, and lets Ctrl-C through meanwhile."""
    while pending:
        done, pending = wait(pending, timeout=0.5, return_when=FIRST_COMPLETED)
        for future in done:
            future.result()


def shares(catalogue: dict[str, list[Mutant]], results: Results) -> Iterable[tuple[str, int, int, list[Mutant]]]:
    """Yields each area with the number of its mutants, of those that were noticed, and those that were not."""
    for area, mutants in catalogue.items():
        left = [mutant for mutant in mutants if results.mutants[mutant.name].outcome != NOTICED]
        yield area, len(mutants), len(mutants) - len(left), left
