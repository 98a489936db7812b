"""`compare`: verdicts, control flow, errors, training steps, files of calls, and reports."""

import json
import math
import os
import tempfile
import tracemalloc
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from click.testing import CliRunner

import emberharmony
from emberharmony import nn, ops, optim
from emberharmony.cli.main import command
from emberharmony.errors import ArgumentError, BackendNotFoundError, DeviceError
from emberharmony.rules import RULES
from emberharmony.testing.differences import compare as comparing
from emberharmony.testing.differences.bounds import allowed_error
from emberharmony.testing.differences.report import Report, Row
from emberharmony.transforms.observe import is_observing
from tests.testing.differences.faults import faulty, off
from tests.testing.differences.pair import OTHER, PAIR, X, compare, two_backends


def test_a_right_program_has_no_wrong_op() -> None:
    report = compare(lambda x: ops.sum(ops.softmax(ops.matmul(x, x))), X)
    assert report.ok
    assert report.first is None
    assert [row.op for row in report.rows] == ["matmul", "softmax", "sum"]
    assert report.table().startswith("no op of 3 calls is wrong")
    with pytest.raises(ArgumentError, match="no call is wrong"):
        report.repro("repro.py")


def test_a_parameter_on_the_right_of_an_operator_is_no_difference() -> None:
    class Scaled(nn.Module):
        def __init__(self) -> None:
            self.inner, self.gain = nn.Linear(4, 4), nn.Parameter(2.0)

        def __call__(self, x: Any) -> Any:
            return ops.tanh(self.inner(x) * self.gain)

    report = compare(Scaled(), X)
    assert report.ok, report.table()
    assert [row.op for row in report.rows] == ["linear", "tanh"]


@two_backends
def test_an_op_inside_of_a_composite_is_named() -> None:
    class Part(nn.Module):
        def __call__(self, x: Any) -> Any:
            return ops.squareplus(x)

    class Net(nn.Module):
        def __init__(self) -> None:
            self.part = Part()

        def __call__(self, x: Any) -> Any:
            return ops.tanh(self.part(x))

    report = compare(Net(), X, backends=(OTHER, faulty("numpy", "hypot", off)), stop="all")
    first = report.first
    assert first is not None
    assert (first.op, first.outer, first.wrong, first.cause) == ("hypot", ("squareplus",), "numpy", "local")
    assert first.path == "Net.part"
    assert first.line.startswith(__file__)
    assert first.error["numpy"] > 1 > first.error[OTHER]
    assert [row.verdict for row in report.rows] == ["wrong", "inherited"]
    assert [op for op, _ in first.inside][-1] == "hypot"


@two_backends
def test_the_reference_may_have_the_fault_itself(monkeypatch: pytest.MonkeyPatch) -> None:
    bad = faulty("numpy", "tanh", off)
    from emberharmony.testing.differences import judge

    right = judge.with_host_draws
    monkeypatch.setattr(judge, "with_host_draws", lambda name: right(bad))
    report = compare(ops.tanh, X, backends=(bad, OTHER))
    assert report.first is not None
    assert (report.first.op, report.first.wrong) == ("tanh", "numpy")
    assert "oracle" in report.first.judge


def test_noise_of_the_inputs_explains_differences_unless_the_comparison_is_thorough() -> None:
    """The second op adds less than the first one has left, so only its own error tells that it is off."""
    bad = faulty(OTHER, "negative", lambda f, x: ops.multiply(f(x), 1 + 2e-5))
    program = lambda x: ops.negative(ops.matmul(x, x))
    noisy = faulty("numpy", "matmul", lambda f, *args: ops.multiply(f(*args), 1 + 3e-5))
    tolerant = partial(compare, program, X, backends=(noisy, bad), stop="all")
    assert [row.verdict for row in tolerant().rows] == ["wrong", "inherited"]
    assert [row.verdict for row in tolerant(thorough=True).rows] == ["wrong", "wrong"]


@two_backends
@pytest.mark.parametrize("pair", [PAIR, PAIR[::-1]], ids="-".join)
def test_values_that_change_outside_of_ops_are_named(pair: tuple[str, str]) -> None:
    def program(x: Any) -> Any:
        y = ops.tanh(x)
        z = ops.exp(y)
        if ops.get_backend() == OTHER:
            y = y + 1e-3 if OTHER == "mlx" else y.add_(1e-3)
        return ops.add(ops.sin(y), z)

    report = compare(program, X, backends=pair)
    first = report.first
    assert first is not None
    assert not report.ok
    assert (first.op, first.cause, first.call) == ("sin", "outside", 2)
    place = "between call 1 and call 2" if OTHER == "torch" else "before call 2"
    assert f"outside of ops on {OTHER}, {place}" in first.message
    assert report.summary() == first.message
    assert [row.verdict for row in report.rows][2:] == ["inherited", "inherited"]


@two_backends
@pytest.mark.parametrize("in_place", [False, True])
@pytest.mark.parametrize("saved", [False, True])
def test_values_that_change_after_the_last_call_are_named(in_place: bool, saved: bool, tmp_path: Path) -> None:
    def program(x: Any) -> Any:
        y = ops.tanh(x)
        if ops.get_backend() != "numpy":
            return {"y": y.mul_(1.01) if in_place and OTHER == "torch" else y * 1.01}
        return {"y": y}

    if saved:
        for name in PAIR:
            comparing.record(program, X, path=str(tmp_path / name), backend=name)
        report = comparing.compare_logs(*(str(tmp_path / name) for name in PAIR))
    else:
        report = compare(program, X)
    first = report.first
    assert first is not None
    assert (first.op, first.cause, first.call, len(report.rows)) == ("(result)", "outside", 1, 1)
    assert first.message.startswith(f"values that the program returns come from outside of ops on {OTHER}, ")
    assert "the end, and differ by 0.01 of the largest element" in first.message


def test_parts_and_differences_of_results_are_no_values_from_outside() -> None:
    """Their errors are as large as those of the results, which is more of their own elements."""

    def program(x: Any) -> Any:
        y = ops.matmul(x, x)
        return y[:1, :1], y[1:] - 7.111111, y * 1.0

    x = np.ones((64, 64), "float32") / 3
    x[0] *= 1e-6
    noisy = faulty(OTHER, "matmul", lambda f, *args: ops.add(f(*args), 1e-6))
    report = compare(program, x, backends=("numpy", noisy), stop="all", tolerance=20)
    assert report.ok, report.table()


def test_a_result_that_no_op_specifies_is_none_from_outside() -> None:
    other_order = faulty(OTHER, "argpartition", lambda f, *args: ops.flip(f(*args), axis=-1))
    report = compare(lambda x: ops.argpartition(x, 2), X, backends=("numpy", other_order), stop="all")
    assert report.ok, report.table()
    assert [row.verdict for row in report.rows] == ["equal"]


def test_a_comparison_takes_no_more_memory_than_two_of_the_largest_tensors() -> None:
    x = np.random.default_rng(0).normal(size=(1024, 1024)).astype("float32")

    def program(x: Any) -> Any:
        x = ops.reshape(ops.transpose(ops.tanh(ops.multiply(x, 1.1))), x.shape)
        return ops.sum(ops.softmax(ops.exp(x), axis=-1))

    def peak(run: Callable[[], Any]) -> int:
        tracemalloc.start()
        run()
        found = tracemalloc.get_traced_memory()[1]
        tracemalloc.stop()
        return found

    def alone() -> Any:
        with ops.use_backend("numpy"):
            given = x.copy()
            return program(given)

    run = partial(compare, program, x, backends=("numpy", "numpy"), stop="all")
    assert run().ok
    assert peak(run) - peak(alone) <= 2 * x.nbytes


def test_an_op_works_element_by_element_if_its_oracle_does() -> None:
    pytest.importorskip("scipy")
    assert [allowed_error(op).each for op in ("gelu", "tanh", "softmax", "sum", "matmul")] == [
        True,
        True,
        False,
        False,
        False,
    ]


@two_backends
def test_the_side_with_the_wrong_dtype_is_named() -> None:
    bad = faulty(OTHER, "sum", lambda f, *args: ops.cast(f(*args), "float16"))
    first = compare(ops.sum, X, backends=("numpy", bad)).first
    assert first is not None
    assert first.wrong == OTHER
    assert "dtype is float16, expected float32" in first.message


def test_nan_equals_nan_and_cancellation_is_no_fault() -> None:
    x = np.array([np.nan, np.inf, -np.inf, 0.0, 1e-30, 3.0], "float32")
    report = compare(lambda x: (ops.add(x, 1.0), ops.argmax(ops.isnan(x))), x, stop="all")
    assert report.ok
    centred = (X - X.mean()) * 1e4
    assert compare(lambda x: ops.sum(ops.subtract(x, ops.mean(x))), centred, stop="all").ok


def test_parted_control_flow_says_why() -> None:
    def program(x: Any) -> Any:
        total = ops.sum(ops.exp(ops.multiply(x, 5.0)))
        return ops.tanh(x) if float(total) > limit else ops.sin(x)

    with ops.use_backend("numpy"):
        limit = float(ops.sum(ops.exp(X * 5))) * 1.0005
    bad = faulty(OTHER, "multiply", lambda f, *args: ops.add(f(*args), 0.0005))
    found = compare(program, X, backends=("numpy", bad), stop="all", tolerance=1e5)
    assert found.first is not None
    assert found.first.cause == "control flow"
    assert "tanh() on" in found.first.message
    assert "sum() before it gives" in found.first.message
    assert not found.ok


@two_backends
def test_runs_of_different_lengths() -> None:
    def program(x: Any) -> Any:
        return ops.tanh(x) if ops.get_backend() == "numpy" else ops.exp(ops.tanh(x))

    first = compare(program, X).first
    assert first is not None
    assert f"the end on numpy, exp() on {OTHER}" in first.message


@pytest.mark.parametrize("pair", [PAIR, PAIR[::-1]], ids="-".join)
@two_backends
def test_the_next_call_of_both_sides_is_named_where_one_makes_more_calls(pair: tuple[str, str]) -> None:
    class Net(nn.Module):
        def __call__(self, x: Any) -> Any:
            x = ops.exp(x)
            if ops.get_backend() == OTHER:
                x = ops.cast(ops.cast(x, "float16"), "float32")
            return ops.tanh(x)

    first = compare(Net(), ops.zeros((2,)), backends=pair).first
    assert first is not None
    line = Net.__call__.__code__.co_firstlineno + 3
    texts = {"numpy": f"tanh() on numpy ({__file__}:{line + 1})", OTHER: f"cast() on {OTHER}"}
    assert (first.op, first.path, first.line, first.call) == ("cast", "Net", f"{__file__}:{line}", 1)
    assert first.message.startswith(
        f"control flow parts at call 1 in Net ({first.line}): {', '.join(texts[side] for side in pair)}; no result"
    )


@two_backends
def test_calls_of_a_gradient_on_one_side_alone_are_no_parting_of_the_control_flow(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setitem(RULES, "sin", RULES["sin"])  # type: ignore[arg-type]

    @emberharmony.register_vjp("sin")
    def rule(g: Any, y: Any, x: Any) -> tuple[Any]:
        return (ops.multiply(g, ops.cos(x) if ops.get_backend() == OTHER else ops.sin(ops.add(x, math.pi / 2))),)

    def program(x: Any) -> Any:
        gradient = ops.grad(lambda x: ops.sum(ops.sin(x)))(x)
        return ops.exp(gradient) if ops.get_backend() == OTHER else ops.tanh(gradient)

    report = compare(program, X, stop="all")
    first = report.first
    assert first is not None
    assert (first.op, first.call) == ("tanh", len(report.rows))
    assert report.rows[-1].op == "multiply"
    assert f"tanh() on numpy, exp() on {OTHER}; " in first.message


@two_backends
def test_an_error_on_one_side() -> None:
    def refuse(f: Any, *args: Any) -> Any:
        raise ArgumentError("no")

    first = compare(lambda x: ops.exp(ops.tanh(x)), X, backends=("numpy", faulty(OTHER, "exp", refuse))).first
    assert first is not None
    assert (first.op, first.wrong, first.cause) == ("exp", OTHER, "error")

    def program(x: Any) -> Any:
        y = ops.exp(x)
        if ops.get_backend() == OTHER:
            raise ValueError("odd")
        return y

    report = compare(program, X)
    assert report.first is not None
    assert f"raises an error on {OTHER} alone" in report.first.message
    assert any("ValueError: odd" in note for note in report.notes)


def test_an_interruption_leaves_nothing(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))

    def program(x: Any) -> Any:
        y = ops.exp(x)
        if ops.get_backend() == OTHER:
            raise KeyboardInterrupt
        return y

    with pytest.raises(KeyboardInterrupt):
        compare(program, X)
    assert not os.listdir(tmp_path)
    assert not is_observing()


def test_both_sides_draw_the_same_numbers() -> None:
    generator = ops.random.Generator(3)

    def program(x: Any) -> Any:
        drawn = ops.dropout(ops.add(x, ops.random.normal((4, 4))), 0.5)
        return ops.add(drawn, ops.random.uniform((4, 4), generator=generator))

    state = generator.state_dict()
    with ops.use_backend(OTHER):
        before = ops.random.get_state()
        report = compare(program, X, stop="all")
        assert report.ok
        assert all(row.carried < 1e-6 for row in report.rows)
        assert ops.random.get_state() == before
    assert generator.state_dict() == state


def test_a_training_step_is_compared_and_changes_nothing() -> None:
    net = nn.Sequential(
        nn.Linear(4, 8, rng=ops.random.Generator(0)),
        nn.Dropout(0.5, rng=ops.random.Generator(1)),
        nn.Linear(8, 1, rng=ops.random.Generator(2)),
    )
    optimizer = optim.AdamW(net.parameters(), 1e-2)

    def step(x: Any) -> Any:
        loss = ops.backward(lambda: ops.mean(ops.square(net(x))), net)
        optimizer.step()
        return loss

    before = {name: value.copy() for name, value in net.state_dict(host=True).items()}
    report = compare(step, X, stop="all")
    assert report.ok, report.table()
    assert len(report.rows) > 20
    after = net.state_dict(host=True)
    assert all(np.array_equal(before[name], after[name]) for name in before)


def test_optimizers_make_the_same_calls_on_all_backends() -> None:
    net = nn.Sequential(*(nn.Linear(100, 100, rng=ops.random.Generator(0)) for _ in range(4)))
    optimizer = optim.AdamW(net.parameters(), 1e-2)

    def step(x: Any) -> Any:
        loss = ops.backward(lambda: ops.mean(ops.square(net(x))), net)
        optimizer.step()
        return loss

    report = compare(step, np.ones((2, 100), "float32"), stop="all")
    assert report.ok, report.table()
    made = [row for row in report.rows if row.path == "(optimizer)"]
    assert made
    assert all(row.carried < 0.1 for row in made)


@two_backends
def test_a_fault_of_the_backward_pass_is_named() -> None:
    first = compare(ops.sin, X, backends=("numpy", faulty(OTHER, "cos", off)), gradients=True).first
    assert first is not None
    assert (first.op, first.wrong, first.gradient_of) == ("cos", OTHER, "sin")
    assert "in the gradient of sin()" in first.message
    by_inputs = compare(ops.tanh, X, stop="all", gradients=True)
    assert by_inputs.ok
    assert any(row.op != "tanh" for row in by_inputs.rows)


def test_gradients_of_a_model_are_those_of_its_parameters() -> None:
    report = compare(nn.Embedding(5, 3), np.array([1, 4, 1]), stop="all", gradients=True)
    assert report.ok
    assert any(row.gradient_of for row in report.rows)


def test_files_of_calls(tmp_path: Path) -> None:
    one, other, bad = (str(tmp_path / name) for name in ("a.log", "b.log", "bad.log"))
    program = lambda x: ops.sum(ops.gelu(ops.cast(x, "bfloat16")))
    comparing.record(program, X, path=one, backend="numpy")
    comparing.record(program, X, path=other, backend=OTHER)
    comparing.record(program, X, path=bad, backend=faulty(OTHER, "gelu", off))
    assert comparing.compare_logs(one, other, "all").ok
    assert [row.op for row in comparing.compare_logs(one, other).rows] == ["cast", "gelu", "sum"]
    data = Path(one).read_bytes()
    for cut in (4, 20, len(data) // 2, len(data) - 3):
        (tmp_path / "cut.log").write_bytes(data[:cut])
        with pytest.raises(ArgumentError):
            comparing.compare_logs(str(tmp_path / "cut.log"), other)


def test_wrong_arguments() -> None:
    with pytest.raises(ArgumentError, match="two backends"):
        emberharmony.compare(ops.exp, X, backends=("numpy",))
    with pytest.raises(ArgumentError, match="float64"):
        compare(ops.exp, X, reference="float32")
    with pytest.raises(ArgumentError, match="stops at"):
        compare(ops.exp, X, stop="last")
    with pytest.raises(ArgumentError, match="positive"):
        compare(ops.exp, X, tolerance=0)
    with pytest.raises(BackendNotFoundError):
        emberharmony.compare(ops.exp, X, backends=("numpy", "nunpy"))


def test_the_repro_is_small_and_fails_where_the_op_is_wrong(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    bad = faulty(OTHER, "softmax", lambda f, x, axis: ops.roll(f(x, axis), 1))
    x = np.random.default_rng(0).normal(size=(16, 24)).astype("float32")
    report = compare(lambda x: ops.softmax(ops.tanh(x)), x, backends=("numpy", bad))
    monkeypatch.chdir(tmp_path)
    report.repro("repro.py")
    text = Path("repro.py").read_text()
    assert len(text.splitlines()) <= 20
    with np.load("repro.npz") as data:
        assert data["x0"].size == 2
    exec(text, {})
    with pytest.raises(AssertionError):
        exec(text.replace(f"use_backend({OTHER!r})", "use_backend(bad)"), {"bad": bad})


def test_a_call_that_draws_numbers_has_no_repro(tmp_path: Path) -> None:
    report = compare(lambda x: ops.dropout(x, 0.5), X, backends=("numpy", faulty(OTHER, "dropout", off)))
    assert report.first is not None
    with pytest.raises(ArgumentError, match="draws other numbers"):
        report.repro(str(tmp_path / "repro.py"))
    assert not os.listdir(tmp_path)


def test_the_page_has_all_calls(tmp_path: Path) -> None:
    bad = faulty(OTHER, "rsqrt", off)
    report = compare(lambda x: ops.tanh(ops.rsqrt(ops.abs(x))), X, backends=("numpy", bad), stop="all")
    report.html(str(tmp_path / "page.html"))
    text = (tmp_path / "page.html").read_text(encoding="utf-8")
    assert "rsqrt() is wrong" in text
    assert "http" not in text
    read = json.loads(report.to_json())
    assert (read["ok"], read["first"]["op"], len(read["calls"])) == (False, "rsqrt", 3)
    many = Report(("a", "b"), {})
    many.rows = [
        Row(i, "add</script>", "net.h", "f.py:1", ((2, 3),), 1e-7, (None, 0.5), "rounding") for i in range(20000)
    ]
    many.rows[0].errors = (None, math.inf)
    assert json.loads(many.to_json(), parse_constant=pytest.fail)["calls"][0]["errors"] == [None, "inf"]
    many.html(str(tmp_path / "many.html"))
    assert os.path.getsize(tmp_path / "many.html") < 2_000_000
    assert "add</script>" not in (tmp_path / "many.html").read_text(encoding="utf-8")


@two_backends
def test_the_command(tmp_path: Path) -> None:
    source = tmp_path / "program.py"
    source.write_text(
        "from emberharmony import ops\n\ndef good(x, y):\n    return ops.sum(ops.matmul(x, y))\n\n"
        "def parts(x, y):\n    return ops.exp(x) if ops.get_backend() == 'numpy' else ops.sin(x)\n"
    )
    np.savez(tmp_path / "batch.npz", y=X, x=X)
    base = ["--inputs", str(tmp_path / "batch.npz"), "--backends", ",".join(PAIR)]
    page, log = str(tmp_path / "out.html"), str(tmp_path / "a.log")

    def run(*arguments: str) -> Any:
        return CliRunner().invoke(command, ["compare", *arguments])

    good = run(f"{source}:good", *base, "--json", "--html", page)
    assert good.exit_code == 0, good.output
    assert json.loads(good.stdout)["ok"]
    assert os.path.exists(page)
    parts = run(f"{source}:parts", *base)
    assert parts.exit_code == 1
    assert "control flow parts" in parts.output
    assert run(f"{source}:good", *base, "--save", log).exit_code == 0
    assert run(log, log).exit_code == 0
    assert run(f"{source}:good", *base, "--device", "cpu", "--thorough").exit_code == 0
    absent = run(f"{source}:good", *base, "--device", "gpu:99")
    assert absent.exit_code not in (0, 1)
    assert "gpu:99" in str(absent.exception) + absent.output
    with pytest.raises(DeviceError, match="gpu:99"):
        compare(ops.exp, X, device="gpu:99")
    nowhere = str(tmp_path / "missing" / "out.html")
    for arguments in ([f"{source}:good", "--backends", ",".join(PAIR)], [log, log, "--html", nowhere]):
        assert run(*arguments).exit_code == 2, arguments
    for arguments in ([f"{source}:god", *base], ["x.py:f"], ["a", "b", "c"], [str(source)], [log, str(source)]):
        assert run(*arguments).exit_code == 2, arguments
