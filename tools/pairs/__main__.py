"""Compares public models written in two libraries, with and without planted faults: `make pairs`.

`python tools/pairs right` compares the right pairs, and `python tools/pairs third --seed 3 --count 30` plants faults.
"""

import argparse
import os
import sys

os.environ.setdefault("KERAS_BACKEND", "torch")

from pairs import MORE, ROUNDS
from rounds import compare_right_pairs, judge_planted_faults

from emberharmony import ops


def main() -> None:
    """Makes a round, and ends with status 1 if it misses its aim."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("round", choices=("right", "all", *ROUNDS))
    parser.add_argument("--of", choices=tuple(ROUNDS), help="the round whose right pairs are compared")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--count", type=int, default=30)
    options = parser.parse_args()
    ops.set_backend("numpy")
    all_pairs = [*MORE, *(name for names in ROUNDS.values() for name in names)]
    if options.round == "right":
        rows = compare_right_pairs(ROUNDS[options.of] if options.of else all_pairs, options.seed)
        accused_pairs = [row["pair"] for row in rows if not row["ok"]]
        print(f"{len(rows)} right pairs, {len(accused_pairs)} accused {accused_pairs}")
        sys.exit(bool(accused_pairs))
    rows = judge_planted_faults(
        all_pairs if options.round == "all" else ROUNDS[options.round], options.count, options.seed
    )
    named, sided = (sum(row[key] for row in rows) for key in ("named", "sided"))
    print(f"{len(rows)} faults of seed {options.seed}: {named} named to the module, {sided} to the right side")
    sys.exit(named < 0.9 * len(rows))


main()
