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

    def try_mutants(self, mutants: Sequence[Mutant]) -> None:
        """Tries the mutants whose results are missing or out of date."""
        mutants_and_keys = [(mutant, mutant.key()) for mutant in mutants]
        mutants_and_keys = [
            (mutant, key) for mutant, key in mutants_and_keys if not self.results.has_result(mutant.name, key)
        ]
        self.say(f"{len(mutants_and_keys)} mutants to try, {len(mutants) - len(mutants_and_keys)} results kept")
        if not mutants_and_keys:
            return
        with ExitStack() as stack:
            folder = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="mutants-")))
            for job in range(min(self.jobs, len(mutants_and_keys))):
                self._copies.put(stack.enter_context(Copy(folder / str(job))))
            pool = ThreadPoolExecutor(self.jobs)
            try:
                numbered_mutants = enumerate(mutants_and_keys, 1)
                pending = {
                    pool.submit(self._try_mutant, *item, f"{number:4}/{len(mutants_and_keys)}")
                    for number, item in numbered_mutants
                }
                _wait_for_all(pending)
            finally:
                pool.shutdown(wait=False, cancel_futures=True)

    def _try_mutant(self, mutant: Mutant, key: str, number: str) -> None:
        copy = self._copies.get()
        try:
            source = (copy.folder / mutant.module).read_text(encoding="utf-8")
            planted_source = plant(mutant, Module.parse(mutant.module, source))
            red_tests: list[str] = []
            for _ in range(MOST_RED):
                with copy.replace_file(mutant.module, planted_source):
                    finding = _run_tests(copy, mutant, red_tests)
                if (
                    finding.outcome != NOTICED
                    or copy.send_request({"arguments": shlex.split(finding.again)}, LONGEST)["status"] == 0
                ):
                    break
                red_tests.append(finding.by)
                finding = finding._replace(outcome=RED)
        finally:
            self._copies.put(copy)
        with self._lock:
            self.results.add_result(mutant.name, Result(key, finding.outcome, finding.by, finding.seconds))
            by_text = f" by {finding.by}" if finding.by else ""
            self.say(f"{number} {finding.seconds:6.1f} s  {mutant.name}: {finding.outcome}{by_text}")


def _run_tests(copy: Copy, mutant: Mutant, red_tests: Sequence[str]) -> _Seen:
    """Returns what the tests show, while the fault is planted in the copy.

    Args:
        copy: the copy.
        mutant: the fault.
        red: tests that fail without the fault too, and are left out.
    """
    seconds, has_run = 0.0, False
    deselections = [word for test in red_tests for word in ("--deselect", test)]
    for entry in mutant.tests:
        answer = _ask_for_tests(copy, [*shlex.split(entry), *deselections])
        seconds = round(seconds + answer["seconds"], 1)
        if answer["status"] in (0, NO_TESTS):
            has_run = has_run or answer.get("passed", 0) > 0
            continue
        failure = answer.get("failure")
        if failure is not None and failure["phase"] != "collect":
            return _Seen(NOTICED, failure["test"], shlex.quote(failure["test"]) + _backend_option(entry), seconds)
        if answer["status"] is None:
            return _Seen(NOTICED, f"{answer['reason']} of {entry}", entry, seconds)
        name = mutant.module.removesuffix(".py").removesuffix("/__init__").replace("/", ".")
        if copy.send_request({"module": name}, LONGEST_IMPORT)["status"] != 0:
            return _Seen(INVALID, seconds=seconds)
        return _Seen(NOTICED, f"the collection of {entry}", entry, seconds)
    return _Seen(SURVIVED if has_run else UNTRIED, seconds=seconds)


def _ask_for_tests(copy: Copy, arguments: list[str]) -> dict[str, Any]:
    """Returns how a run of tests ended; it leaves out tests of which a case is gone since their calls were recorded."""
    answer = copy.send_request({"arguments": arguments}, LONGEST)
    if answer["status"] == NOT_FOUND:
        missing_tests = set(re.findall(r"not found: (\S+)", copy.output()))
        remaining_arguments = [
            word for word in arguments if str(copy.folder / word.partition("[")[0]) not in missing_tests
        ]
        if any("::" in word for word in remaining_arguments) and len(remaining_arguments) < len(arguments):
            return copy.send_request({"arguments": remaining_arguments}, LONGEST)
    return answer


def _backend_option(entry: str) -> str:
    """Returns `--ember-backend` of an entry, without which a test id may be unknown."""
    words = shlex.split(entry)
    return f" --ember-backend {words[words.index('--ember-backend') + 1]}" if "--ember-backend" in words else ""


def _wait_for_all(pending: set[Future[None]]) -> None:
    """Waits for all, and lets Ctrl-C through meanwhile."""
    while pending:
        done, pending = wait(pending, timeout=0.5, return_when=FIRST_COMPLETED)
        for future in done:
            future.result()


def noticed_shares(
    catalogue: dict[str, list[Mutant]], results: Results
) -> Iterable[tuple[str, int, int, list[Mutant]]]:
    """Yields each area with the number of its mutants, of those that were noticed, and those that were not."""
    for area, mutants in catalogue.items():
        unnoticed_mutants = [mutant for mutant in mutants if results.mutants[mutant.name].outcome != NOTICED]
        yield area, len(mutants), len(mutants) - len(unnoticed_mutants), unnoticed_mutants
