"""Which of many cases a run tries: a share that rotates with the seed, or all.

`EMBERHARMONY_TEST_SEED=N` chooses the share and the inputs that hypothesis generates. Without it all runs are equal.
`HYPOTHESIS_PROFILE=whole` tries all cases, and so does `deep`, in which hypothesis generates many more inputs.
"""

import os
from collections.abc import Sequence
from random import Random
from typing import TypeVar
from zlib import crc32

T = TypeVar("T")

VARIABLE = "EMBERHARMONY_TEST_SEED"
SEED = int(os.environ.get(VARIABLE, "0"))
PROFILE = os.environ.get("HYPOTHESIS_PROFILE", "quick")
DEEP = PROFILE == "deep"
WHOLE = PROFILE in ("whole", "deep")


XLA_FLAGS = (
    "--xla_backend_optimization_level=0 --xla_cpu_use_fusion_emitters=false "
    "--xla_llvm_disable_expensive_passes=true --xla_cpu_parallel_codegen_split_count=1"
)
"""Options by which XLA compiles in half the time. Other runs than those of all cases compile with them."""


def is_tried(name: str, share: int, whole: bool | None = None) -> bool:
    """Returns whether a run tries a case, if it tries one of `share` cases.

    Args:
        whole: whether it tries all; by default its profile says that.
    """
    return (WHOLE if whole is None else whole) or crc32(name.encode()) % share == SEED % share


def portion(cases: Sequence[T], share: int) -> Sequence[T]:
    """Returns the cases that a run tries, if it tries one of `share` cases.

    It takes one of each `share` cases that follow each other, now this one, now that one: each second case of a list
    may be of one kind.
    """
    if WHOLE:
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
