"""`emberharmony op` shows the code that runs."""

import dis
from types import CodeType

import pytest
from click.testing import CliRunner

from emberharmony import ops
from emberharmony.backend import current
from emberharmony.cli.main import command
from emberharmony.core.dispatch import DISPATCH, REASON, SWAP
from emberharmony.core.op_code.portable import source_of
from emberharmony.core.registry import OPS

JUMPS = {*dis.hasjrel, *dis.hasjabs}


def shown(*arguments: str) -> tuple[int, str]:
    result = CliRunner().invoke(command, ["op", *arguments])
    return result.exit_code, result.output


def same(source: str, runs: CodeType) -> bool:
    module = compile(source, "<shown>", "exec")
    code = next(const for const in module.co_consts if isinstance(const, CodeType))
    return (code.co_varnames, code.co_names, instructions(code)) == (
        runs.co_varnames,
        runs.co_names,
        instructions(runs),
    )


def instructions(code: CodeType) -> list[tuple[str, object]]:
    """Returns the instructions but NOPs, whose number depends on where lines end, and what each has but for a jump."""
    found = [step for step in dis.get_instructions(code) if step.opname not in ("NOP", "EXTENDED_ARG")]
    return [(step.opname, None if step.opcode in JUMPS else step.argval) for step in found]


@pytest.mark.sampled(3)
def test_the_source_shown_is_the_code_that_runs(backend: str) -> None:
    ops.set_backend(backend)
    active = current()
    for spec in OPS.values():
        assert same(source_of(spec, active), getattr(active.bound, spec.name).__code__)
    other = next((name for name in ops.available_backends() if name != backend), None)
    if other is None:
        pytest.skip("needs a second backend, whose override makes ops guarded")
    arguments = (active, True) if DISPATCH == SWAP else ()
    with ops.use_backend(other):
        assert all(same(source_of(spec, *arguments), spec.function.__code__) for spec in OPS.values())


def test_the_dispatch_and_why_it_runs() -> None:
    output = shown("sin", "--backend", "numpy")[1]
    assert f"dispatch: {DISPATCH} ({REASON})" in output
    assert "return active().sin(x)" in output
    info = CliRunner().invoke(command, ["info"]).output
    assert f"dispatch: {DISPATCH} ({REASON})" in info


def test_a_primitive_is_shown_with_declaration_source_rule_and_tolerance(backend: str) -> None:
    status, output = shown("add", "--backend", backend)
    assert status == 0
    assert f"ops.add: a primitive, which each backend defines; on {backend} math_ops." in output
    assert "def add(x1: Operand, x2: Operand) -> Tensor:" in output
    assert f"return slow({backend}_backend, 'add', (x1, x2))" in output
    assert "emberharmony/rules/math.py:" in output
    assert "within 1 eps; with gradient" in output


def test_what_happens_to_other_operands_is_told() -> None:
    output = shown("power", "--backend", "numpy")[1]
    assert (
        "operands become tensors of one dtype that is not bool, and then emberharmony.backend.numpy.math_ops." in output
    )
    assert "def _power(x1: np.ndarray, x2: np.ndarray)" in output


def test_composites_are_told_from_overrides() -> None:
    assert "a composite: numpy runs the body of its declaration" in shown("hard_tanh", "--backend", "numpy")[1]
    pytest.importorskip("torch")
    assert "a composite that torch overrides in activation_ops." in shown("softmax", "--backend", "torch")[1]


@pytest.mark.parametrize("name", ["linalg.det", "ops.linalg.det", "det"])
def test_names_with_and_without_namespace_are_accepted(name: str) -> None:
    assert shown(name, "--backend", "numpy")[1].startswith("ops.det")


def test_an_alias_shows_its_op() -> None:
    assert shown("asin", "--backend", "numpy")[1].startswith("ops.arcsin, also asin")


def test_an_unknown_op_raises_with_a_suggestion() -> None:
    status, output = shown("sofmax")
    assert status == 2
    assert "there is no op 'sofmax'; did you mean 'softmax'?" in output


def test_an_op_with_a_constant_result_has_a_zero_gradient() -> None:
    assert "the result is constant: its gradient is zero" in shown("argmax", "--backend", "numpy")[1]
