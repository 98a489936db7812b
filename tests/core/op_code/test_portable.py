"""Where codes are not exchanged, ops are ordinary functions that behave the same, only slower."""

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from emberharmony.backend import current
from emberharmony.core import op_globals
from emberharmony.core.op_code import code_swap, portable
from emberharmony.core.registry import OPS, OpSpec

CHECKS = Path(__file__).with_name("portable_checks.py")


@pytest.mark.sampled(2)
@pytest.mark.fresh_process
def test_a_process_without_exchanged_codes() -> None:
    environment = {**os.environ, code_swap.ENVIRONMENT: "portable"}
    ran = subprocess.run([sys.executable, str(CHECKS)], capture_output=True, text=True, env=environment, check=False)
    assert ran.returncode == 0, ran.stderr
    assert ran.stdout.split() == re.findall(r"^def (check_\w+)", CHECKS.read_text(encoding="utf-8"), re.MULTILINE)


def test_both_forms_have_the_same_signature_and_read_the_same_names(backend: str) -> None:
    for spec in OPS.values():
        pairs = [(portable.looked_up_op(spec), code_swap.looked_up_op(spec))]
        pairs += [(portable.compile_op(spec, current()), code_swap.compile_op(spec, current()))]
        for one, other in pairs:
            a, b = one.__code__, other.__code__
            assert (a.co_varnames, a.co_names) == (b.co_varnames, b.co_names)
            assert (a.co_argcount, a.co_kwonlyargcount, a.co_flags) == (b.co_argcount, b.co_kwonlyargcount, b.co_flags)
            assert (a.co_filename, a.co_firstlineno, a.co_name) == (b.co_filename, b.co_firstlineno, b.co_name)
            assert {line for _, _, line in a.co_lines()} - {None, a.co_firstlineno} == {a.co_firstlineno + 1}
            assert (one.__defaults__, one.__kwdefaults__) == (other.__defaults__, other.__kwdefaults__)
            assert one.__globals__ is other.__globals__ is vars(op_globals)


def test_a_parameter_may_have_the_name_of_a_global_of_the_source() -> None:
    def odd(active: int, *inner: int, isinstance: int = 3, p0: int = 4) -> tuple[object, ...]:
        return active, inner, isinstance, p0

    spec = OpSpec("odd", odd)  # type: ignore[arg-type]
    made = portable.looked_up_op(spec)
    names = made.__code__.co_varnames
    assert names == odd.__code__.co_varnames
    assert (made.__name__, made.__kwdefaults__) == ("odd", {"isinstance": 3, "p0": 4})
