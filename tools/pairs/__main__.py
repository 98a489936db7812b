"""Compares public models written in two libraries, with and without planted faults: `make pairs`.

`python tools/pairs right`, `faults --seed 1 --count 30` and `last --seed 2 --count 30` make the rounds one by one.
"""

import argparse
import os
import sys

os.environ.setdefault("KERAS_BACKEND", "torch")

from pairs import FIRST, LAST, MORE
from rounds import faults, right

from emberharmony import ops


def main() -> None:
    """Makes a round, and ends with status 1 if it misses its aim."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("round", choices=("right", "faults", "last"))
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--count", type=int, default=30)
    given = parser.parse_args()
    ops.set_backend("numpy")
    if given.round == "right":
        rows = right([*FIRST, *MORE, *LAST], given.seed)
        accused = [row["pair"] for row in rows if not row["ok"]]
        print(f"{len(rows)} right pairs, {len(accused)} accused {accused}")
        sys.exit(bool(accused))
    rows = faults(FIRST if given.round == "faults" else LAST, given.count, given.seed)
    named, sided = (sum(row[key] for row in rows) for key in ("named", "sided"))
    print(f"{len(rows)} faults of seed {given.seed}: {named} named to the module, {sided} to the right side")
    sys.exit(named < 0.95 * len(rows))


main()
