"""Which of many cases a run tries: in the deep profile all, otherwise a share that rotates with the seed.

`EMBERHARMONY_TEST_SEED=N` chooses the share and the inputs that hypothesis generates. Without it all runs are equal.
"""

import os
from collections.abc import Sequence
from random import Random
from typing import TypeVar
from zlib import crc32

T = TypeVar("T")

VARIABLE = "EMBERHARMONY_TEST_SEED"
SEED = int(os.environ.get(VARIABLE, "0"))
DEEP = os.environ.get("HYPOTHESIS_PROFILE") == "deep"


def is_tried(name: str, share: int) -> bool:
    """Returns whether a run tries a case, if it tries one of `share` cases."""
    return DEEP or crc32(name.encode()) % share == SEED % share


def portion(cases: Sequence[T], share: int) -> Sequence[T]:
    """Returns the cases that a run tries, if it tries one of `share` cases.

    It takes one of each `share` cases that follow each other, now this one, now that one: each second case of a list
    may be of one kind.
    """
    if DEEP:
        return cases
    parts = [cases[start : start + share] for start in range(0, len(cases), share)]
    return [part[(crc32(b"%d" % i) + SEED) % len(part)] for i, part in enumerate(parts)]


def place(seed: int, name: str) -> tuple[float, float]:
    """Returns by what tests are sorted: a random number for the file of a test, then one for the test.

    Args:
        seed: the seed of both.
        name: the name of the test, as pytest prints it.
    """
    return Random(f"{seed} {name.partition('::')[0]}").random(), Random(f"{seed} {name}").random()
