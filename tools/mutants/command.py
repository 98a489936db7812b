"""The command line of `python tools/mutants`."""

import argparse
import signal
import sys
from collections.abc import Sequence
from pathlib import Path

from mutants import branches
from mutants.catalogue import areas, faults
from mutants.drawing import draw
from mutants.mutant import ROOT, Mutant
from mutants.reach import Reach
from mutants.results import INVALID, NOTICED, Results
from mutants.trials import Trials, shares

STATE = ROOT / ".mutants" / "results.json"
BAR, BAR_OF_AN_AREA = 0.95, 0.90


def main(arguments: Sequence[str] | None = None, state: Path = STATE) -> int:
    """Runs the command and returns its exit status."""
    parser = argparse.ArgumentParser(
        prog="python tools/mutants", description="Plants faults, and shows which the tests notice."
    )
    parser.add_argument("--check", action="store_true", help="only check that each mutant still applies")
    parser.add_argument("--area", action="append", help="try the mutants of this area (more than once: of these)")
    parser.add_argument("--only", action="append", metavar="NAME", help="try the mutants whose name contains NAME")
    parser.add_argument("--jobs", type=int, default=1, help="how many to try at a time (default: 1)")
    parser.add_argument("--fresh", action="store_true", help="try all again, also those whose results are kept")
    parser.add_argument("--draw", type=int, metavar="N", help="try N mutants that are drawn instead of planted ones")
    parser.add_argument("--seed", type=int, default=0, help="draw others (default: 0)")
    parser.add_argument("--paths", nargs="+", default=["emberharmony"], help="draw from these files and folders")
    parser.add_argument("--conditions", action="store_true", help="draw conditions on dtype, size, layout and options")
    parser.add_argument("--branches", action="store_true", help="show which branches of --paths no test takes")
    options = parser.parse_args(arguments)
    catalogue = areas()
    if options.check:
        return _check(catalogue)
    if options.branches:
        reach = Reach()
        reach.update(_say, options.paths)
        print(branches.report(reach, options.paths))
        return 0
    if options.draw is not None:
        return _draw(options, Results(state))
    chosen = _select(catalogue, options.area, options.only)
    if not any(chosen.values()):
        parser.error(f"no mutant has this name; the areas are {', '.join(catalogue)}")
    messages = list(faults(chosen, floor=0))
    if messages:
        print(*messages, sep="\n", file=sys.stderr)
        return 1
    results = Results(state)
    mutants = [mutant for members in chosen.values() for mutant in members]
    if options.fresh:
        results.forget(mutant.name for mutant in mutants)
    if not _try_all(Trials(results, options.jobs, _say), mutants):
        return 1
    return _table(chosen, results)


def _draw(options: argparse.Namespace, results: Results) -> int:
    """Tries drawn mutants and prints those that no test noticed, in the form in which an area lists them."""
    reach = Reach()
    reach.update(_say, options.paths)
    mutants = draw(options.draw, options.seed, options.paths, reach, options.conditions)
    if options.fresh:
        results.forget(mutant.name for mutant in mutants)
    if not _try_all(Trials(results, options.jobs, _say), mutants):
        return 1
    # No run of tests succeeds with a drawn mutant that breaks the import; a planted one should be a finer fault.
    left = [mutant for mutant in mutants if results.mutants[mutant.name].outcome not in (NOTICED, INVALID)]
    for mutant in left:
        print(f"\n{results.mutants[mutant.name].outcome}: {mutant.name} in {mutant.function}\n  {mutant.why}")
    print(f"\n{len(mutants) - len(left)} of {len(mutants)} drawn mutants were noticed")
    return 0


def _say(line: str) -> None:
    print(line, flush=True)


def _try_all(trials: Trials, mutants: Sequence[Mutant]) -> bool:
    """Returns whether all mutants were tried."""
    # A shell starts background jobs with SIGINT ignored; SIGTERM would leave the copies and their processes.
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, signal.default_int_handler)
    try:
        trials.run(mutants)
    except KeyboardInterrupt:
        print("interrupted: the same command goes on from here", file=sys.stderr)
        return False
    return True


def _check(catalogue: dict[str, list[Mutant]]) -> int:
    messages = list(faults(catalogue))
    for message in messages:
        print(message, file=sys.stderr)
    count = sum(map(len, catalogue.values()))
    print(f"{count} mutants in {len(catalogue)} areas" + (f", {len(messages)} faults" if messages else " apply"))
    return int(bool(messages))


def _select(
    catalogue: dict[str, list[Mutant]], wanted: list[str] | None, names: list[str] | None
) -> dict[str, list[Mutant]]:
    chosen = {area: catalogue[area] for area in catalogue if wanted is None or area in wanted}
    if names is None:
        return chosen
    selected = {area: [m for m in members if any(name in m.name for name in names)] for area, members in chosen.items()}
    return {area: members for area, members in selected.items() if members}


def _table(chosen: dict[str, list[Mutant]], results: Results) -> int:
    rows = list(shares(chosen, results))
    planted, noticed = sum(row[1] for row in rows), sum(row[2] for row in rows)
    print(f"\n{'area':20} planted noticed  share  not noticed")
    failed = noticed < BAR * planted
    for area, count, seen, left in rows:
        low = seen < BAR_OF_AN_AREA * count
        failed |= low
        names = ", ".join(f"{mutant.name} ({results.mutants[mutant.name].outcome})" for mutant in left)
        print(f"{area:20} {count:7} {seen:7} {seen / max(count, 1):6.0%}{' !' if low else '  '}{names}")
    print(f"{'all':20} {planted:7} {noticed:7} {noticed / planted:6.1%}")
    if failed:
        print(f"fewer than {BAR:.0%} in all or {BAR_OF_AN_AREA:.0%} of an area: strengthen the tests", file=sys.stderr)
    return int(failed)
