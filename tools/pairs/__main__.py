"""Compares public models written in two libraries, with and without planted faults: `make pairs`.

`python tools/pairs right` compares the right pairs, and `python tools/pairs third --seed 3 --count 30` plants faults.
"""

import argparse
import os
import sys

os.environ.setdefault("KERAS_BACKEND", "torch")

from pairs import MORE, ROUNDS
from rounds import faults, right

from emberharmony import ops


def main() -> None:
    """Makes a round, and ends with status 1 if it misses its aim."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("round", choices=("right", "all", *ROUNDS))
    parser.add_argument("--of", choices=tuple(ROUNDS), help="the round whose right pairs are compared")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--count", type=int, default=30)
    given = parser.parse_args()
    ops.set_backend("numpy")
    every = [*MORE, *(name for names in ROUNDS.values() for name in names)]
    if given.round == "right":
        rows = right(ROUNDS[given.of] if given.of else every, given.seed)
        accused = [row["pair"] for row in rows if not row["ok"]]
        print(f"{len(rows)} right pairs, {len(accused)} accused {accused}")
        sys.exit(bool(accused))
    rows = faults(every if given.round == "all" else ROUNDS[given.round], given.count, given.seed)
    named, sided = (sum(row[key] for row in rows) for key in ("named", "sided"))
    print(f"{len(rows)} faults of seed {given.seed}: {named} named to the module, {sided} to the right side")
    sys.exit(named < 0.9 * len(rows))


main()
