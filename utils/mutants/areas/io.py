"""Faults of reading and writing files of weights, and of checkpoints."""

from mutants.mutant import Mutant

MUTANTS = [
    Mutant(
        name="save-takes-a-transpose-for-a-tie",
        module="emberharmony/io/saving.py",
        function="_described",
        original="(bits.ctypes.data, bits.shape, bits.strides, packed.dtype)",
        replacement="(bits.ctypes.data, bits.shape, packed.dtype)",
        tests=("tests/io/test_saving.py --ember-backend numpy",),
        why="save({'a': x, 'b': x.T}) of a square x stores x under both names",
    ),
]
