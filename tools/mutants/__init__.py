"""Planted faults, and the commands that show whether the tests notice them.

A mutant is one small fault that a user would see: a wrong value or dtype, a missing error, lost data. It names a
module, a function of it, the expression or statement that it replaces and the replacement. The original is found by its
syntax tree, so that formatting, comments and line numbers do not matter. `mutants/areas/` has one file for each area,
each with a list `MUTANTS`.

- `python tools/mutants --check` (a part of `make check`) fails if a mutant no longer applies.
- `python tools/mutants [--area AREA] [--only NAME] [--jobs N] [--fresh]` (`make mutants`) plants each mutant in a copy
  of the tree, runs its tests until one fails, runs that one again without the fault, where it must pass, and prints the
  share that was noticed. `.mutants/results.json` keeps the results, so a
  run can be interrupted and resumed, and only mutants whose module or tests have changed are tried again.
- `python tools/mutants --draw N [--seed S] [--paths PATH ...] [--conditions]` tries N mutants drawn by a seed, and
  prints those that were not noticed. `--conditions` draws only conditions on a dtype, size, layout or option. Their
  tests are those that call the function, the nearest first. A run under coverage, of each test file of ops and of the
  folders that mirror the paths, finds these; its record is kept by test file, so it can be interrupted and resumed.
- `python tools/mutants --branches [--paths PATH ...]` prints from the same record which branches no test takes.

To add a mutant, append it to the list of its area::

    Mutant(
        name="numpy-power-gradient-of-four",
        module="emberharmony/backend/numpy/math_ops.py",
        function="MathOps.power",
        original="exponent - 1",
        replacement="exponent - 2",
        tests=("tests/ops/test_math.py -k power",),
        why="the gradient of power(x, 4) is wrong",
    )

and run `python tools/mutants --only NAME`. `nth` chooses one of several equal places. An entry of `tests` has the
arguments of one run of pytest, and entries are run in order until a test fails, so the narrowest comes first. Code that
is moved takes its mutants along; a mutant is deleted only together with the mechanism that it breaks, and then another
one is planted in the same area.
"""
