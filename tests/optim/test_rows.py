"""Parameters that a program computes, in lists and in blocks: with the bits of the rule, or with less rounding."""

import math
import pickle
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from emberharmony import Parameter, errors, ops, optim
from emberharmony.backend.numpy import programs as numpy_programs
from emberharmony.backend.shared.programs import Program, Step
from emberharmony.core import selection
from emberharmony.optim import vectors
from emberharmony.optim.recording import recorded
from emberharmony.transforms.observe import Call, Observation, Watcher
from tests.optim.test_vectors import KINDS, assert_same, bits, cells_of, kinds, rows_of, shares, states_of, trained

LARGE = [(2500,), (300, 7), (), (40, 3), (0, 3), (123,)]


def ruled(kind: str, rows: list[list[Any]], dtype: str) -> tuple[list[Any], list[Any]]:
    """Returns the parameters and states after steps in which the rule runs for each parameter."""
    optimizer = KINDS[kind](cells_of(dtype))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(vectors, "FEWEST", 10**6)
        return trained(optimizer, rows), states_of(optimizer)


def evaluations(monkeypatch: pytest.MonkeyPatch) -> list[bool]:
    """Returns a list that gets whether tensors are large for each program that the active backend runs."""
    kind, found = type(selection.current()), []

    def count(name: str) -> None:
        native = getattr(kind, name)

        def counted(self: Any, program: Any, columns: Any, large: bool, *alike: bool) -> Any:
            result = native(self, program, columns, large, *alike)
            if result is not None:
                found.append(large)
            return result

        monkeypatch.setattr(kind, name, counted)

    count("evaluated")
    count("overwriting")
    return found


@pytest.fixture
def lists(monkeypatch: pytest.MonkeyPatch) -> None:
    """Lets small parameters be computed in lists, however many ops the rule has."""
    monkeypatch.setattr(vectors, "FEWEST", 2)
    monkeypatch.setattr(type(selection.current()), "listed", 100)


@pytest.fixture
def blocks(monkeypatch: pytest.MonkeyPatch) -> None:
    """Lets all parameters be computed as large ones are."""
    monkeypatch.setattr(vectors, "FEWEST", 2)
    monkeypatch.setattr(vectors, "WORTH", 0)
    monkeypatch.setattr(type(selection.current()), "blocked", min(1, type(selection.current()).blocked))
    monkeypatch.setattr("emberharmony.backend.numpy.programs.BLOCK", 1000)
    if selection.current().name == "mlx":
        monkeypatch.setattr("emberharmony.backend.mlx.programs.CHUNK", 1000)


@pytest.mark.parametrize("dtype", ["float32", "float16", pytest.param("float64", marks=pytest.mark.slow)])
@kinds
def test_lists_give_what_the_rule_gives(
    kind: str, dtype: str, backend: str, lists: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    if (backend, dtype) == ("mlx", "float64"):
        pytest.skip("MLX has no float64 on a GPU")
    rows, ran = rows_of(dtype, 3), evaluations(monkeypatch)
    optimizer = KINDS[kind](cells_of(dtype))
    found = trained(optimizer, rows)
    assert bool(ran) is (kind != "Rprop")
    assert_same((found, states_of(optimizer)), ruled(kind, rows, dtype), dtype)


@pytest.mark.parametrize("dtype", ["float32", pytest.param("float64", marks=pytest.mark.slow)])
@kinds
def test_blocks_give_what_the_rule_gives(
    kind: str, dtype: str, backend: str, blocks: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("tests.optim.test_vectors.SHAPES", LARGE)
    rows, ran = rows_of(dtype, 3), evaluations(monkeypatch)
    optimizer = KINDS[kind](cells_of(dtype))
    found = trained(optimizer, rows)
    assert ran == ([True] * 3 if kind != "Rprop" else [])
    assert not shares(optimizer) or kind == "Rprop"
    assert_same(found, ruled(kind, rows, dtype)[0], dtype)


@pytest.mark.parametrize("kind, names", [("AdamW", ["exp_avg", "exp_avg_sq"]), ("momentum", ["momentum_buffer"])])
def test_a_tensor_from_before_a_step_stays_as_it_was(kind: str, names: list[str], backend: str, blocks: None) -> None:
    optimizer = KINDS[kind](cells := cells_of())
    trained(optimizer, rows_of()[:2])
    averages = [optimizer.state[cell][name] for cell in cells for name in names]
    held = [cell.value for cell in [*cells, *averages]]
    before = [bits(Parameter(x)) for x in held]
    trained(optimizer, rows_of()[2:4])
    assert [bits(Parameter(x)) for x in held] == before


def test_after_an_error_all_is_as_before(backend: str, blocks: None) -> None:
    optimizer = KINDS["AdamW"](cells_of())
    rows = rows_of()
    trained(optimizer, rows[:2])
    before = pickle.dumps(optimizer)
    with pytest.raises(errors.ShapeError, match=r"the gradient of Parameter\(shape=\(2, 2\).* has shape \(3,\)"):
        trained(optimizer, [[*rows[2][:-1], ops.ones((3,))]])
    assert pickle.dumps(optimizer) == before


@pytest.mark.parametrize("kind", ["SGD", "momentum", "AdamW"])
def test_gradients_of_each_step_are_looked_at(kind: str, backend: str, lists: None) -> None:
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
def test_gradients_may_change_their_strides(kind: str, backend: str, lists: None) -> None:
    rows = rows_of()[:5]
    turned = [[ops.transpose(ops.convert_to_tensor(ops.to_numpy(x).T.copy())) for x in row] for row in rows]
    strided = [each[i % 2] for i, each in enumerate(zip(rows, turned, strict=True))]
    found = trained(KINDS[kind](cells_of()), strided)
    assert_same(found, trained(KINDS[kind](cells_of()), rows))


def test_nothing_is_written_over_a_tensor_of_another_shape(backend: str, lists: None) -> None:
    if selection.current().likeness([ops.ones((2,))] * 2, False) is None:
        pytest.skip(f"{backend} looks at each tensor")
    optimizer = KINDS["SGD"](cells := cells_of())
    trained(optimizer, rows_of()[:2])
    plan = optimizer._planned(dict(zip(cells, rows_of()[2], strict=True)), False, [])
    cells[0].value = ops.ones((2,))  # as another thread may do now
    before = [bits(cell) for cell in cells]
    assert not plan.make()
    assert [bits(cell) for cell in cells] == before


def test_a_few_large_parameters_are_computed_with_small_ones(
    backend: str, lists: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(type(selection.current()), "blocked", 100)
    rows, ran = rows_of(steps=2), evaluations(monkeypatch)
    found = trained(KINDS["SGD"](cells_of()), rows)
    assert ran == [False] * 2
    assert_same(found, ruled("SGD", rows, "float32")[0])


def test_a_step_of_sgd_is_one_program_for_all_sizes(backend: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(vectors, "WORTH", 0)
    monkeypatch.setattr(type(selection.current()), "blocked", 100)
    rows, ran = rows_of(steps=3), evaluations(monkeypatch)
    found = trained(KINDS["SGD"](cells_of()), rows)
    assert ran == [True] * 3
    assert_same(found, ruled("SGD", rows, "float32")[0])


@pytest.mark.parametrize("change", ["number", "tensor", "names", "shape"])
def test_a_state_that_somebody_changed_is_used(change: str, backend: str, lists: None) -> None:
    found = []
    for few in (2, 10**6):
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(vectors, "FEWEST", few)
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
    assert_same(*found)


def test_options_may_change_between_steps(backend: str, lists: None) -> None:
    found = []
    for few in (2, 10**6):
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(vectors, "FEWEST", few)
            optimizer = optim.SGD(cells_of(), lr=0.1)
            trained(optimizer, rows_of()[:1])
            optimizer.param_groups[0]["lr"] = 0.5
            trained(optimizer, rows_of()[1:2])
            optimizer.param_groups[0]["weight_decay"] = 0.5
            found.append(trained(optimizer, rows_of()[2:4]))
    assert_same(*found)


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
    assert recorded(lambda g, p, state, hyper: (RULES[name](g, p), state), {}, {}) is None


def test_a_chain_is_a_program_whose_results_are_read_once_by_the_next_step() -> None:
    product = Step("multiply", 0, number=0.5)
    assert Program(2, (product, Step("subtract", 1, 2)), (3,)).is_chain()
    assert not Program(2, (product, Step("subtract", 1, 2)), (3, 2)).is_chain()
    assert not Program(2, (product, Step("multiply", 2, 2)), (3,)).is_chain()
    assert not Program(2, (product, Step("sqrt", 1), Step("subtract", 3, 2)), (4,)).is_chain()


def test_the_ops_of_a_rule_are_recorded(backend: str) -> None:
    found = recorded(optim.SGD.rule, {"step": 3, "momentum_buffer": ops.ones(2)}, optim.SGD(momentum=0.5).defaults)
    steps = (
        Step("multiply", 2, number=0.5),
        Step("add", 3, 0),
        Step("multiply", 4, number=1e-3),
        Step("subtract", 1, 5),
    )
    assert found == (Program(3, steps, (6, 4)), ["momentum_buffer"], {"step": 4})
    assert found.program.fused().steps == (
        Step("add_multiple", 0, 2, 0.5),
        Step("add_multiple", 1, 3, -1e-3),
    )
    assert found.program.shifted().steps == (*steps[:2], Step("add_multiple", 1, 4, -1e-3))
    assert found.program.shifted().places() == {3: 2, 4: 2, 5: 1}
    assert found.program.added().steps[2:] == (Step("multiply", 4, number=-1e-3), Step("add", 5, 1))


@pytest.mark.parametrize("which", ["record", "profile", "nan"])
def test_a_step_that_is_watched_is_the_same_program(
    which: str, backend: str, blocks: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    plain, watched = optim.AdamW(cells_of()), optim.AdamW(cells_of())
    rows, ran = rows_of(), evaluations(monkeypatch)
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
    few: int, backend: str, blocks: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(vectors, "FEWEST", few)
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
    few: int, backend: str, blocks: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(vectors, "FEWEST", few)
    rows = rows_of()[:1]
    rows[0][2] = ops.multiply(rows[0][2], 1e30)  # whose square is infinite
    cells = cells_of()
    before = [bits(cell) for cell in cells]
    with pytest.raises(errors.NonFiniteError, match=r"square\(\) on backend") as caught, ops.checked("nan"):
        trained(optim.AdamW(cells), rows)
    assert "test_vectors.py" in caught.value.finding.line
    if backend != "mlx":  # where the numbers are looked at when the step is over
        assert [bits(cell) for cell in cells] == before


def test_a_watcher_of_single_ops_sees_those_of_a_program(backend: str, blocks: None) -> None:
    names: list[str] = []

    class Names(Watcher):
        def after(self, call: Call, result: Any) -> None:
            names.append(call.op)

    optimizer = optim.AdamW(cells_of())
    with Observation(Names()), ops.record() as log:
        trained(optimizer, rows_of()[:1])
    assert "program" not in names
    assert {"sqrt", "divide"} <= {*names}
    assert log.calls("sqrt")


def test_numpy_computes_short_arrays_whole_and_lists_without_new_axes() -> None:
    whole, long = np.ones((3, 4), np.float32), np.ones((2, numpy_programs.BLOCK), np.float32)
    parts = numpy_programs._in_blocks([whole, long, whole])
    assert parts[0] is parts[-1] is whole
    assert [part.shape for part in parts[1:-1]] == [(numpy_programs.BLOCK,)] * 2
    assert len(numpy_programs._in_blocks([long], 2)) == 1
    with_axes, without = numpy_programs._makers([[whole]]), numpy_programs._makers([[whole, np.asarray(1.0)]])
    assert type(with_axes["negative"](np.asarray(1.0))) is np.float64
    assert type(without["negative"](np.asarray(1.0))) is np.ndarray


def test_pytorch_takes_numbers_as_tensors_only_where_they_cost_less() -> None:
    torch = pytest.importorskip("torch")
    number_in = pytest.importorskip("emberharmony.backend.torch.programs").number_in
    kinds = (torch.float32, torch.float64, torch.float16, torch.bfloat16)
    assert [type(number_in(kind, True)(0.5)) is torch.Tensor for kind in kinds] == [True, True, False, False]
    assert number_in(torch.float64, True)(0.1).dtype == torch.float64
    assert number_in(torch.float32, False)(0.5) == 0.5
    assert type(number_in(torch.float32, False)(0.5)) is float
