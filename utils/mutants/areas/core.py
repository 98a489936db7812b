"""Faults of dispatch, selection, settings, the registry, dtypes, trees and cells."""

from mutants.mutant import Mutant

MUTANTS = [
    Mutant(
        name="promotion-half-floats",
        module="emberharmony/core/numeric/promotion.py",
        function="_pair",
        original="float32 if {low, high} == {float16, bfloat16} else high",
        replacement="high",
        tests=("tests/core/numeric/test_promotion.py",),
        why="float16 with bfloat16 gives one of the two, which cannot hold the other's numbers",
    ),
    Mutant(
        name="promotion-of-complex-half",
        module="emberharmony/core/numeric/promotion.py",
        function="_pair",
        original="part if part.bits > high.bits else high",
        replacement="high",
        tests=("tests/core/numeric/test_promotion.py",),
        why="float64 with complex64 loses digits",
    ),
    Mutant(
        name="range-of-signed-integers",
        module="emberharmony/core/numeric/promotion.py",
        function="check_fits",
        original="low <= number <= high",
        replacement="low <= number <= high + 1",
        tests=("tests/core/numeric/test_promotion.py", "tests/ops/test_math.py --ember-backend numpy"),
        why="int8 + 128 wraps instead of raising RangeError",
    ),
]
