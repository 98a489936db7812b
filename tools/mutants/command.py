"""The command line of `python tools/mutants`."""

import argparse
import signal
import sys
from collections.abc import Sequence
from pathlib import Path

from mutants import branches
from mutants.catalogue import fault_messages, mutants_by_area
from mutants.drawing import draw_mutants
from mutants.mutant import ROOT, Mutant
from mutants.reach import Reach
from mutants.results import INVALID, NOTICED, Results
from mutants.trials import Trials, noticed_shares

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
    catalogue = mutants_by_area()
    if options.check:
        return _check_catalogue(catalogue)
    if options.branches:
        reach = Reach()
        reach.update_records(_print_line, options.paths)
        print(branches.branch_report(reach, options.paths))
        return 0
    if options.draw is not None:
        return _try_drawn(options, Results(state))
    chosen_areas = _select_mutants(catalogue, options.area, options.only)
    if not any(chosen_areas.values()):
        parser.error(f"no mutant has this name; the areas are {', '.join(catalogue)}")
    messages = list(fault_messages(chosen_areas, floor=0))
    if messages:
        print(*messages, sep="\n", file=sys.stderr)
        return 1
    results = Results(state)
    mutants = [mutant for members in chosen_areas.values() for mutant in members]
    if options.fresh:
        results.forget_results(mutant.name for mutant in mutants)
    if not _try_all(Trials(results, options.jobs, _print_line), mutants):
        return 1
    return _print_table(chosen_areas, results)


def _try_drawn(options: argparse.Namespace, results: Results) -> int:
    """Tries drawn mutants and prints those that no test noticed, in the form in which an area lists them."""
    reach = Reach()
    reach.update_records(_print_line, options.paths)
    mutants = draw_mutants(options.draw, options.seed, options.paths, reach, options.conditions)
    if options.fresh:
        results.forget_results(mutant.name for mutant in mutants)
    if not _try_all(Trials(results, options.jobs, _print_line), mutants):
        return 1
    # No run of tests succeeds with a drawn mutant that breaks the import; a planted one should be a finer fault.
    unnoticed_mutants = [mutant for mutant in mutants if results.mutants[mutant.name].outcome not in (NOTICED, INVALID)]
    for mutant in unnoticed_mutants:
        print(f"\n{results.mutants[mutant.name].outcome}: {mutant.name} in {mutant.function}\n  {mutant.why}")
    print(f"\n{len(mutants) - len(unnoticed_mutants)} of {len(mutants)} drawn mutants were noticed")
    return 0


def _print_line(line: str) -> None:
    print(line, flush=True)


def _try_all(trials: Trials, mutants: Sequence[Mutant]) -> bool:
    """Returns whether all mutants were tried."""
    # A shell starts background jobs with SIGINT ignored; SIGTERM would leave the copies and their processes.
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, signal.default_int_handler)
    try:
        trials.try_mutants(mutants)
    except KeyboardInterrupt:
        print("interrupted: the same command goes on from here", file=sys.stderr)
        return False
    return True


def _check_catalogue(catalogue: dict[str, list[Mutant]]) -> int:
    messages = list(fault_messages(catalogue))
    for message in messages:
        print(message, file=sys.stderr)
    mutant_count = sum(map(len, catalogue.values()))
    print(f"{mutant_count} mutants in {len(catalogue)} areas" + (f", {len(messages)} faults" if messages else " apply"))
    return int(bool(messages))


def _select_mutants(
    catalogue: dict[str, list[Mutant]], area_names: list[str] | None, names: list[str] | None
) -> dict[str, list[Mutant]]:
    chosen_areas = {area: catalogue[area] for area in catalogue if area_names is None or area in area_names}
    if names is None:
        return chosen_areas
    selected = {
        area: [m for m in members if any(name in m.name for name in names)] for area, members in chosen_areas.items()
    }
    return {area: members for area, members in selected.items() if members}


def _print_table(chosen_areas: dict[str, list[Mutant]], results: Results) -> int:
    rows = list(noticed_shares(chosen_areas, results))
    planted, noticed = sum(row[1] for row in rows), sum(row[2] for row in rows)
    print(f"\n{'area':20} planted noticed  share  not noticed")
    has_failed = noticed < BAR * planted
    for area, count, seen, unnoticed_mutants in rows:
        is_low = seen < BAR_OF_AN_AREA * count
        has_failed |= is_low
        names_text = ", ".join(
            f"{mutant.name} ({results.mutants[mutant.name].outcome})" for mutant in unnoticed_mutants
        )
        print(f"{area:20} {count:7} {seen:7} {seen / max(count, 1):6.0%}{' !' if is_low else '  '}{names_text}")
    print(f"{'all':20} {planted:7} {noticed:7} {noticed / planted:6.1%}")
    if has_failed:
        print(f"fewer than {BAR:.0%} in all or {BAR_OF_AN_AREA:.0%} of an area: strengthen the tests", file=sys.stderr)
    return int(has_failed)
