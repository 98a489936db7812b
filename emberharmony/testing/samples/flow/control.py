"""Rows of `ops/flow/control.py`. The arguments are functions, so `tests/ops/flow/test_control.py` checks these ops."""

from emberharmony.testing.sample import by_tests

SAMPLES = [
    by_tests(
        "cond", ("True", "lambda: 1.0", "lambda: 2.0"), ("ops.array(False)", "ops.sin", "ops.cos", "ops.ones((3,))")
    ),
    by_tests("switch", ("1", "[ops.sin, ops.cos]", "ops.ones((3,))")),
    by_tests(
        "while_loop",
        ("Below(3)", "lambda x: ops.add(x, 1)", "ops.ones((3,))"),
        ("Below(9)", "lambda x: (x,)", "(ops.ones((3,)),)", "4"),
    ),
    by_tests("fori_loop", ("0", "3", "lambda i, x: ops.add(x, i)", "ops.ones((3,))")),
    by_tests(
        "scan",
        ("lambda c, x: (ops.add(c, x), c)", "0.0", "ops.ones((3,))"),
        ("lambda c, x: (c, c)", "ops.ones((3,))", "None", "3"),
    ),
    by_tests("map", ("lambda x: ops.square(x)", "ops.ones((3, 2))")),
    by_tests("associative_scan", ("lambda x, y: ops.add(x, y)", "ops.ones((3, 2))")),
]
