"""Parameters that a program computes: with the bits of the rule, or with less rounding."""

import math
import pickle
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from emberharmony import Parameter, errors, ops, optim
from emberharmony.backend.numpy.flow import programs as numpy_programs
from emberharmony.core import selection
from emberharmony.optim import layout, stepping
from emberharmony.transforms.observe import Observation, WatchedCall, Watcher
from emberharmony.transforms.recorder import record_rule
from tests.optim.test_vectors import KINDS, assert_same, bits, cells_of, kinds, rows_of, shares, states_of, trained

LARGE = [(2500,), (300, 7), (), (40, 3), (0, 3), (123,)]


def ruled(kind: str, rows: list[list[Any]], dtype: str) -> tuple[list[Any], list[Any]]:
    """Returns the parameters and states after steps in which the rule runs for each parameter."""
    optimizer = KINDS[kind](cells_of(dtype))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(layout, "FEWEST", 10**6)
        patch.setattr(stepping.Updates, "update_for", lambda self, state, hyper: None)
        return trained(optimizer, rows), states_of(optimizer)


def programs(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Returns a list that gets how the active backend runs each program: by making tensors, or by overwriting."""
    kind = type(selection.current())
    found: list[str] = []

    def count(name: str) -> None:
        native = getattr(kind, name)

        def counted(self: Any, *given: Any) -> Any:
            result = native(self, *given)
            if result is not None:
                found.append(name)
            return result

        monkeypatch.setattr(kind, name, counted)

    count("run_update")
    count("overwriting_calls")
    return found


@pytest.fixture
def alone(monkeypatch: pytest.MonkeyPatch) -> None:
    """Lets no parameters be joined, and NumPy compute large ones in several blocks."""
    monkeypatch.setattr(layout, "FEWEST", 10**6)
    monkeypatch.setattr("emberharmony.backend.numpy.flow.programs.BLOCK", 1000)


@pytest.mark.parametrize("dtype", ["float32", "float16", pytest.param("float64", marks=pytest.mark.slow)])
@kinds
def test_programs_give_what_the_rule_gives(
    kind: str, dtype: str, backend: str, alone: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    if (backend, dtype) == ("mlx", "float64"):
        pytest.skip("MLX has no float64 on a GPU")
    monkeypatch.setattr("tests.optim.test_vectors.SHAPES", LARGE)
    given, ran = rows_of(dtype, 3), programs(monkeypatch)
    optimizer = KINDS[kind](cells_of(dtype))
    found = trained(optimizer, given)
    assert len(ran) == (0 if kind == "Rprop" else 3)
    assert not shares(optimizer)
    assert_same((found, states_of(optimizer)), ruled(kind, given, dtype), dtype)


def test_a_program_is_recorded_once(backend: str, alone: None, monkeypatch: pytest.MonkeyPatch) -> None:
    called: list[Any] = []
    native = optim.AdamW.rule

    @optim.elementwise
    def rule(*given: Any) -> Any:
        called.append(given)
        return native(*given)

    optimizer = KINDS["AdamW"](cells_of())
    monkeypatch.setattr(type(optimizer), "rule", staticmethod(rule))
    given = rows_of()
    found = trained(optimizer, given)
    assert len(called) == 1
    assert_same((found, states_of(optimizer)), ruled("AdamW", given, "float32"))


class Warm(optim.SGD):
    """A rule that reads the count of steps, and so has a program for each."""

    @staticmethod
    @optim.elementwise
    def rule(gradient: Any, parameter: Any, state: Any, hyper: Any) -> Any:
        rate = hyper["lr"] if state["step"] > 1 else 0.5
        return ops.subtract(parameter, ops.multiply(gradient, rate)), {"step": state["step"] + 1}

    @staticmethod
    def initial(parameter: Any, hyper: Any) -> Any:
        return {"step": 0}


def test_a_rule_that_reads_a_number_has_a_program_for_each(
    backend: str, alone: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    ran = programs(monkeypatch)
    cells = [Parameter(ops.ones((3,))) for _ in range(2)]
    optimizer = Warm(cells, lr=0.25)
    for wanted in (0.5, 0.0, -0.25, -0.5):
        optimizer.step(dict.fromkeys(cells, ops.ones((3,))))
        assert [float(cell.value[0]) for cell in cells] == [wanted] * 2
    assert [optimizer.state[cell] for cell in cells] == [{"step": 4}] * 2
    assert len(ran) == 4


@pytest.mark.parametrize("kind, names", [("AdamW", ["exp_avg", "exp_avg_sq"]), ("momentum", ["momentum_buffer"])])
def test_a_tensor_from_before_a_step_stays_as_it_was(kind: str, names: list[str], backend: str, alone: None) -> None:
    optimizer = KINDS[kind](cells := cells_of())
    trained(optimizer, rows_of()[:2])
    averages = [optimizer.state[cell][name] for cell in cells for name in names]
    held = [cell.value for cell in [*cells, *averages]]
    before = [bits(Parameter(x)) for x in held]
    trained(optimizer, rows_of()[2:4])
    assert [bits(Parameter(x)) for x in held] == before


def test_after_an_error_all_is_as_before(backend: str, alone: None) -> None:
    optimizer = KINDS["AdamW"](cells_of())
    rows = rows_of()
    trained(optimizer, rows[:2])
    before = pickle.dumps(optimizer)
    with pytest.raises(errors.ShapeError, match=r"the gradient of Parameter\(shape=\(2, 2\).* has shape \(3,\)"):
        trained(optimizer, [[*rows[2][:-1], ops.ones((3,))]])
    assert pickle.dumps(optimizer) == before


@pytest.mark.parametrize("kind", ["SGD", "momentum", "AdamW"])
def test_gradients_of_each_step_are_looked_at(kind: str, backend: str, alone: None) -> None:
    optimizer = KINDS[kind](cells_of())
    rows = rows_of()
    trained(optimizer, rows[:2])
    before = pickle.dumps(optimizer)
    with pytest.raises(errors.ShapeError, match=r"the gradient of Parameter\(shape=\(4, 3\).* has shape \(3, 4\)"):
        trained(optimizer, [[ops.reshape(rows[2][0], (3, 4)), *rows[2][1:]]])
    with pytest.raises(errors.DTypeError, match="has dtype float16, expected float32"):
        trained(optimizer, [[ops.cast(rows[2][0], "float16"), *rows[2][1:]]])
    assert pickle.dumps(optimizer) == before


@pytest.mark.parametrize("kind", ["SGD", "momentum", "AdamW"])
def test_gradients_may_change_their_strides(kind: str, backend: str, alone: None) -> None:
    rows = rows_of()[:5]
    turned = [[ops.transpose(ops.convert_to_tensor(ops.to_numpy(x).T.copy())) for x in row] for row in rows]
    strided = [each[i % 2] for i, each in enumerate(zip(rows, turned, strict=True))]
    found = trained(KINDS[kind](cells_of()), strided)
    assert_same(found, trained(KINDS[kind](cells_of()), rows))


def test_nothing_is_written_over_a_tensor_of_another_shape(backend: str, alone: None) -> None:
    if backend not in ("numpy", "torch"):
        pytest.skip(f"{backend} cannot write into tensors")
    optimizer = KINDS["SGD"](cells := cells_of())
    trained(optimizer, rows_of()[:2])
    plan = optimizer._plan(dict(zip(cells, rows_of()[2], strict=True)), False, [])
    cells[0].value = ops.ones((2,))  # as another thread may do now
    before = [bits(cell) for cell in cells]
    assert not plan.make()
    assert [bits(cell) for cell in cells] == before


@pytest.mark.parametrize("change", ["number", "tensor", "names", "shape"])
def test_a_state_that_somebody_changed_is_used(change: str, backend: str, alone: None) -> None:
    found = []
    for few in (2, 10**6):
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(layout, "FEWEST", few)
            optimizer = KINDS["momentum"](cells := cells_of())
            trained(optimizer, rows_of()[:2])
            entry = optimizer.state[cells[2]]
            if change == "number":
                entry["step"] = 0
            elif change == "tensor":
                entry["momentum_buffer"].value = ops.ones((17,))
            elif change == "names":
                entry["other"] = 1
            else:
                entry["momentum_buffer"].value = ops.ones((1,))
            found.append((trained(optimizer, rows_of()[2:4]), states_of(optimizer)))
            assert optimizer.state[cells[2]]["step"] == (2 if change == "number" else 4)
    assert_same(*found)


def test_options_may_change_between_steps(backend: str, alone: None) -> None:
    found = []
    for few in (2, 10**6):
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(layout, "FEWEST", few)
            optimizer = optim.SGD(cells_of(), lr=0.1)
            trained(optimizer, rows_of()[:1])
            optimizer.param_groups[0]["lr"] = 0.5
            trained(optimizer, rows_of()[1:2])
            optimizer.param_groups[0]["weight_decay"] = 0.5
            found.append(trained(optimizer, rows_of()[2:4]))
    cells = cells_of()
    trained(optim.SGD(cells, lr=0.1), rows_of()[:1])
    trained(optim.SGD(cells, lr=0.5), rows_of()[1:2])
    wanted = trained(optim.SGD(cells, lr=0.5, weight_decay=0.5), rows_of()[2:4])
    for parameters in found:
        assert_same(parameters, wanted)


RULES: dict[str, Callable[[Any, Any], Any]] = {
    "another op": lambda g, p: ops.exp(g),
    "a branch": lambda g, p: g if g else p,
    "a number first": lambda g, p: ops.subtract(1.0, g),
    "a maximum of a number": lambda g, p: ops.maximum(g, 0.0),
    "an operator": lambda g, p: p - g,
    "a method": lambda g, p: p.reshape(-1),
    "a number as result": lambda g, p: 1.0,
}


@pytest.mark.parametrize("name", RULES)
def test_a_rule_that_calls_anything_else_has_no_program(name: str, backend: str) -> None:
    assert record_rule(lambda g, p, state, hyper: (RULES[name](g, p), state), {}, {"lr": 0.1}) is None


def test_the_ops_of_a_rule_are_recorded(backend: str) -> None:
    found = record_rule(optim.SGD.rule, {"step": 3, "momentum_buffer": ops.ones(2)}, optim.SGD(momentum=0.5).defaults)
    assert found is not None
    assert found.program.instructions == (
        ("multiply", (2, 7), 3),
        ("add", (3, 0), 4),
        ("multiply", (4, 8), 5),
        ("subtract", (1, 5), 6),
    )
    assert found.program.numbers == [2, 1]
    assert (found.program.outputs, found.program.output_slots) == ((6, 4), {6: 1, 4: 2})
    assert (found.numbers([3, 0.1]), found.given) == ([3, 0.1, 0.5, 4], ["step", "lr"])
    assert found.made == {"step": 3, "momentum_buffer": None}
    assert found.program.with_fewer_calls.instructions == (
        ("add_multiple", (0, 2, 5), 3),
        ("add_multiple", (1, 3, 6), 4),
    )
    assert found.program.with_fewer_calls.numbers == [2, 5]
    assert found.program.with_fewer_calls.count == 2 * found.program.count == 8


@pytest.mark.parametrize("which", ["record", "profile", "nan"])
def test_a_step_that_is_watched_is_the_same_program(
    which: str, backend: str, alone: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    plain, watched = optim.AdamW(cells_of()), optim.AdamW(cells_of())
    rows, ran = rows_of(), programs(monkeypatch)
    found = trained(plain, rows[:2]), states_of(plain)
    number = len(ran)
    with {"record": ops.record, "profile": ops.profile, "nan": lambda: ops.checked("nan")}[which]():
        assert (trained(watched, rows[:2]), states_of(watched)) == found
    assert number
    # MLX computes the numbers later, so the check of NaN wants the calls of the ops there.
    assert len(ran) == number * (1 if (backend, which) == ("mlx", "nan") else 2)


FEW = pytest.mark.parametrize("few", [2, 10**6], ids=["together", "single"])


@FEW
def test_a_log_shows_programs_instead_of_the_ops_of_a_rule(
    few: int, backend: str, alone: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(layout, "FEWEST", few)
    cells = cells_of()
    optimizer = optim.AdamW(cells)
    trained(optimizer, rows_of()[:1])
    with ops.record() as log:
        trained(optimizer, rows_of()[1:2])
    found = log.calls("program")
    assert {event.op for event in log} <= {"program", "eval", "cast", "convert_to_tensor", "to_numpy"}
    assert {(event.depth, event.path, event.error) for event in found} == {(0, "", "")}
    size = sum(math.prod(cell.value.shape) for cell in cells)
    assert sum(math.prod(shape) for event in found for shape in event.shapes) == 4 * size
    assert sum(math.prod(shape) for event in found for shape in event.results) == 3 * size


@FEW
def test_the_op_of_a_program_that_makes_a_nan_is_named(
    few: int, backend: str, alone: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(layout, "FEWEST", few)
    rows = rows_of()[:1]
    rows[0][2] = ops.multiply(rows[0][2], 1e30)  # whose square is infinite
    cells = cells_of()
    before = [bits(cell) for cell in cells]
    with pytest.raises(errors.NonFiniteError, match=r"square\(\) on backend") as caught, ops.checked("nan"):
        trained(optim.AdamW(cells), rows)
    assert "test_vectors.py" in caught.value.finding.line
    if backend != "mlx":  # where the numbers are looked at when the step is over
        assert [bits(cell) for cell in cells] == before


def test_a_watcher_of_single_ops_sees_those_of_a_program(backend: str, alone: None) -> None:
    names: list[str] = []

    class Names(Watcher):
        def after(self, call: WatchedCall, result: Any) -> None:
            names.append(call.op)

    optimizer = optim.AdamW(cells_of())
    with Observation(Names()), ops.record() as log:
        trained(optimizer, rows_of()[:1])
    assert "program" not in names
    assert {"sqrt", "divide"} <= {*names}
    assert log.calls("sqrt")


def test_a_sign_is_not_written_over_its_operand(backend: str) -> None:
    found = record_rule(optim.Lion.rule, {"exp_avg": ops.ones(2)}, optim.Lion(lr=0.1, maximize=True).defaults)
    assert found is not None
    program = found.program
    signs = [(i, call) for i, call in enumerate(program.calls) if call.function == "sign"]
    assert signs
    for i, call in signs:
        assert program.scratch_slots[call.results[0]] != program.scratch_slots.get(call.args[0])
        assert program.memory_targets.get(i) != call.args[0]


def test_numpy_computes_short_arrays_whole() -> None:
    whole, long = np.ones((3, 4), np.float32), np.ones((2, numpy_programs.BLOCK), np.float32)
    assert numpy_programs._split_into_blocks([whole]) == [whole]
    parts = numpy_programs._split_into_blocks([whole, long, whole])
    assert parts[0] is parts[-1] is whole
    assert [part.shape for part in parts[1:-1]] == [(numpy_programs.BLOCK,)] * 2


def test_pytorch_takes_numbers_as_tensors_only_where_they_cost_less() -> None:
    torch = pytest.importorskip("torch")
    number_in = pytest.importorskip("emberharmony.backend.torch.flow.programs").number_converter
    kinds = (torch.float32, torch.float64, torch.float16, torch.bfloat16)
    assert [type(number_in(kind, True)(0.5)) is torch.Tensor for kind in kinds] == [True, True, False, False]
    assert number_in(torch.float64, True)(0.1).dtype == torch.float64
    assert number_in(torch.float32, False)(0.5) == 0.5
    assert type(number_in(torch.float32, False)(0.5)) is float
