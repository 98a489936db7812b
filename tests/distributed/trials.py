"""Lets a rank fail at random, again and again: `python -m tests.distributed.trials mpi 100 --out FILE`.

Each trial is a run of 3 ranks by `emberharmony launch`, of which one is killed, stopped or sleeps. Results are added to
the file, so that an interrupted series goes on where it was; a table ends it.
"""

import argparse
import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from tests.distributed.failing import plan

FOLDER = Path(__file__).parent
SIZE, TIMEOUT = 3, 3.0


def living(groups: Iterable[int]) -> list[int]:
    """Returns the processes of process groups; one that has ended and waits for its parent does not count."""
    wanted, found = set(groups), []
    for path in Path("/proc").glob("[0-9]*/stat"):
        try:
            state, _, group = path.read_text().rpartition(")")[2].split()[:3]
        except (FileNotFoundError, ProcessLookupError):
            continue
        if state not in "ZX" and int(group) in wanted:
            found.append(int(path.parent.name))
    return found


def trial(transport: str, seed: int, how: str = "") -> dict[str, Any]:
    """Returns what happened in a trial: what the ranks and the launcher said, and the processes that stay."""
    with tempfile.TemporaryDirectory() as folder:
        environ = {**os.environ, "EMBERHARMONY_BACKEND": "numpy", "EMBERHARMONY_TRIAL_RANKS": str(SIZE)}
        environ["PYTHONPATH"] = os.pathsep.join([str(FOLDER.parents[1]), os.environ.get("PYTHONPATH", "")])
        # One that is stopped or sleeps never ends by itself, and the others have noticed it at nearly the same time.
        is_stuck = plan(seed, SIZE, how).how in ("stop", "sleep")
        options = ["-n", str(SIZE), "--transport", transport, "--grace", "2" if is_stuck else "6"]
        program = [str(FOLDER / "failing.py"), folder, str(seed), str(TIMEOUT), how]
        began = time.monotonic()
        done = subprocess.run(
            [sys.executable, "-m", "emberharmony", "launch", *options, *program],
            env=environ,
            capture_output=True,
            text=True,
            check=False,
            timeout=300,
        )
        ended = time.monotonic()
    reports = [json.loads(line.partition("{")[1] + line.partition("{")[2]) for line in done.stdout.splitlines()]
    hits = [each for each in reports if "hit" in each]
    groups = {group for each in reports for group in each.get("groups", ())}
    return {
        "seed": seed,
        "victim": hits[0]["rank"] if hits else None,
        "how": hits[0]["hit"] if hits else None,
        "errors": [each for each in reports if "error" in each],
        "noticed": [round(each["time"] - hits[0]["time"], 2) for each in reports if hits and "error" in each],
        "ended": round(ended - (hits[0]["time"] if hits else began), 2),
        "status": done.returncode,
        "launcher": [line for line in done.stderr.splitlines() if line.startswith("emberharmony launch:")],
        "stayed": living(groups - {os.getpgrp()}),
        "stderr": done.stderr[-3000:],
    }


def faults(transport: str, found: dict[str, Any]) -> list[str]:
    """Returns what is wrong with a trial."""
    victim, wrong = found["victim"], []
    if victim is None:
        return ["no rank was hit"]
    others = sorted(each["rank"] for each in found["errors"] if each["rank"] != victim)
    wanted = [rank for rank in range(SIZE) if rank != victim]
    # When a rank ends with an error, mpirun ends the others at once, before they can say anything.
    if others != wanted and not (transport == "mpi" and found["how"] in ("kill", "raise")):
        wrong.append(f"ranks {others} raise an error, expected {wanted}")
    wrong += [
        f"rank {each['rank']} names ranks {each['ranks']} in {each['call']!r}, expected {[victim]}: {each['text']}"
        for each in found["errors"]
        if each["rank"] != victim and (each["ranks"] != [victim] or "() (call " not in each["call"])
    ]
    said = " ".join(found["launcher"])
    if "() (call " not in said or (found["how"] in ("kill", "raise") and f"rank {victim} ended with" not in said):
        wrong.append(f"the launcher says {said!r}")
    if found["status"] in (0, 2):
        wrong.append(f"the exit status is {found['status']}")
    if found["stayed"]:
        wrong.append(f"the processes {found['stayed']} stay")
    return wrong


def table(transport: str, trials: list[dict[str, Any]]) -> str:
    """Returns how many trials went as they should, and the longest times."""
    lines = [f"{transport}, time-out {TIMEOUT:g} s", "how    trials  right  noticed at most  all ended at most"]
    for how in sorted({each["how"] or "none" for each in trials}):
        rows = [each for each in trials if (each["how"] or "none") == how]
        right = sum(not faults(transport, each) for each in rows)
        noticed = max((seconds for each in rows for seconds in each["noticed"]), default=float("nan"))
        ended = max(each["ended"] for each in rows)
        lines.append(f"{how:6} {len(rows):6} {right:6} {noticed:14.1f} s {ended:16.1f} s")
    return "\n".join(lines)


def main() -> None:
    """Makes the trials that the file lacks."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("transport", choices=["torch", "mlx", "mpi"], help="what connects the ranks")
    parser.add_argument("count", type=int, help="how many trials there are; their seeds are 0 to count - 1")
    parser.add_argument("--out", type=Path, required=True, help="the file of the results")
    options = parser.parse_args()
    found = [json.loads(line) for line in options.out.read_text().splitlines()] if options.out.exists() else []
    for seed in sorted(set(range(options.count)) - {each["seed"] for each in found}):
        found.append(trial(options.transport, seed))
        with options.out.open("a", encoding="utf-8") as file:
            file.write(json.dumps(found[-1]) + "\n")
        wrong = faults(options.transport, found[-1])
        sys.stdout.write(f"{seed} {found[-1]['how']} {found[-1]['ended']} s {'; '.join(wrong) or 'right'}\n")
        sys.stdout.flush()
    sys.stdout.write(table(options.transport, found) + "\n")


if __name__ == "__main__":
    main()
