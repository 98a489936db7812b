"""Faults of the engines of `ops.compile`: what they compute, whose memory results have, and which one is chosen."""

from mutants.mutant import Mutant

ENGINES = "tests/backend/numpy/flow/test_engines.py"
MODULE = "emberharmony/backend/numpy/flow/engines.py"
PORTABLE = "emberharmony/backend/numpy/flow/portable.py"

MUTANTS = [
    Mutant(
        name="results-of-engines-that-differ",
        module=MODULE,
        function="checked_runner",
        original="_check_close(one, other)",
        replacement="None",
        tests=(f"{ENGINES} -k close",),
        why="an engine that computes something else than NumPy runs",
    ),
    Mutant(
        name="nan-that-numpy-does-not-give",
        module=MODULE,
        function="_check_close",
        original="(array != array) & (expected != expected)",
        replacement="array != array",
        tests=(f"{ENGINES} -k close",),
        why="an engine that gives NaN where NumPy gives numbers runs",
    ),
    Mutant(
        name="results-of-engines-in-shared-memory",
        module=MODULE,
        function="checked_runner",
        original="_is_shared(i, first, second, inputs, expected)",
        replacement="False",
        tests=(f"{ENGINES} -k shares",),
        why="a write into a result of an engine changes an argument or another result",
    ),
    Mutant(
        name="results-that-the-next-run-of-an-engine-overwrites",
        module=MODULE,
        function="_is_shared",
        original="any((np.may_share_memory(array, x) for x in second))",
        replacement="False",
        tests=(f"{ENGINES} -k shares",),
        why="a write into a result of an engine changes that of the next call",
    ),
    Mutant(
        name="broadcast-results-of-engines",
        module=MODULE,
        function="checked_runner",
        original="outputs[i].flags.writeable = False",
        replacement="pass",
        tests=(f"{ENGINES} -k reading_alone",),
        why="a write into one element of a broadcast result changes others",
    ),
    Mutant(
        name="draws-while-an-engine-is-tried",
        module=MODULE,
        function="outputs_of",
        original="streams.rewind()",
        replacement="pass",
        tests=(f"{ENGINES} -k random",),
        why="a function with an engine draws other random numbers than without one",
    ),
    Mutant(
        name="choice-after-an-interruption",
        module=MODULE,
        function="EngineTrial.choose",
        original="not self._is_over",
        replacement="False",
        tests=(f"{ENGINES} -k interruption",),
        why="an engine that was asked for never runs",
    ),
    Mutant(
        name="engine-that-saves-little",
        module=MODULE,
        function="fastest",
        original="_GAIN * least['']",
        replacement="least['']",
        tests=(f"{ENGINES} -k tenth",),
        why="noise in a measurement chooses an engine that is slower",
    ),
    Mutant(
        name="views-of-arguments-by-engines",
        module=PORTABLE,
        function="runner_by_ops",
        original="x.__class__ is not Register or _is_view(recorder, inputs, calls, x)",
        replacement="x.__class__ is not Register",
        tests=(f"{ENGINES} -k memory_of_their_own",),
        why="a result that is a view of an argument has memory of its own with an engine",
    ),
    Mutant(
        name="scalars-of-numpy-in-programs-of-ops",
        module=PORTABLE,
        function="_portable",
        original="np.asarray(value) if is_tensor else value.item()",
        replacement="value.item()",
        tests=(f"{ENGINES} -k gives_what",),
        why="with an engine a scalar of NumPy is a weak number, so that a result has another dtype",
    ),
    Mutant(
        name="indices-of-a-program-of-jax",
        module="emberharmony/backend/jax/flow/host_programs.py",
        function="_may_refuse",
        original="bool(template.operands)",
        replacement="False",
        tests=(f"{ENGINES} -k one_warning",),
        why="with the engine JAX an index out of bounds raises no error",
    ),
]
