"""`ops.record`: what the log has, its tables and files."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from emberharmony import Log, nn, ops
from emberharmony.errors import ArgumentError, ShapeError
from emberharmony.nn.layers.activation_base import Activation


def test_an_event_has_what_is_known_of_a_call(backend: str) -> None:
    x, w = ops.ones((2, 3)), ops.ones((3, 4), "float16" if backend == "torch" else "float32")
    with ops.record() as log:
        ops.matmul(x, ops.cast(w, "float32"))
        ops.concat([x, x], axis=0)
        with pytest.raises(ShapeError):
            ops.matmul(x, x)
    found = log.calls("matmul")[0]
    assert found.shapes == ((2, 3), (3, 4))
    assert found.dtypes == ("float32", "float32")
    assert (found.results, found.result_dtypes, found.bytes) == (((2, 4),), ("float32",), 32)
    assert found.seconds > 0
    assert found.frame.rpartition(":")[0] == __file__
    assert (found.path, found.depth, found.backend, found.error) == ("", 0, backend, "")
    assert log.calls("concat")[0].shapes == ((2, 3), (2, 3))
    assert log[-1].error
    assert log[-1].results == ()
    assert "matmul(float32[2, 3], float32[3, 4]) -> float32[2, 4]" in repr(found)
    assert [event.op for event in log][:2] == [event.op for event in log[:2]]


def test_calls_inside_know_their_composite(backend: str) -> None:
    with ops.record(backward=True) as log:
        ops.grad(lambda x: ops.sum(ops.gelu(x)))(ops.ones(3))
    inner = next(event for event in log if event.depth == 1)
    assert inner.outer is not None
    assert inner.outer.op == "gelu"
    own = log.own_seconds()
    assert own[inner.outer] < inner.outer.seconds
    assert any(event.gradient_of == "sum" for event in log)


def test_the_log_has_what_modules_returned(backend: str) -> None:
    net = nn.Sequential(nn.Linear(3, 2), nn.Sequential(nn.Tanh()))
    x = ops.ones((1, 3))
    with ops.record() as log:
        y = net(x)
        ops.backward(lambda: ops.sum(net(x)), net)
    assert log.modules == ["Sequential.0", "Sequential.1.0", "Sequential.1", "Sequential"]
    assert np.array_equal(ops.to_numpy(log["1"]), ops.to_numpy(y))
    assert np.array_equal(ops.to_numpy(log["Sequential"]), ops.to_numpy(log["1.0"]))
    assert not ops.is_traced(log["0"])
    with pytest.raises(ArgumentError, match=r"module '2'"):
        log["2"]
    with ops.record(capture="1.*") as log:
        net(x)
    assert log.modules == ["Sequential.1.0"]
    with ops.record(capture=[]) as log:
        net(x)
    assert log.modules == []


def test_two_models_are_told_apart() -> None:
    class Other(nn.Sequential):
        pass

    with ops.record() as log:
        nn.Sequential(nn.Identity())(1.0)
        Other(nn.Identity())(2.0)
    assert (log["Sequential.0"], log["Other.0"]) == (1.0, 2.0)
    with pytest.raises(ArgumentError, match=r"Sequential\.0, Other\.0"):
        log["0"]


def test_tables(backend: str) -> None:
    net = nn.Sequential(nn.Linear(3, 2), nn.GELU())
    with ops.record() as log:
        net(ops.ones((1, 3)))
    for by, row in (("op", "linear"), ("module", "Sequential.1"), ("line", f"{__file__}:")):
        head, *lines = log.table(by).splitlines()
        assert head.split()[0] == by
        assert any(line.startswith(row) for line in lines)
    with pytest.raises(ArgumentError, match="'module'"):
        log.table("size")
    assert "calls" in repr(log)


def test_a_log_is_saved_and_loaded(backend: str, tmp_path: Path) -> None:
    with ops.record() as log:
        nn.Sequential(nn.Linear(3, 2), nn.GELU())(ops.ones((1, 3)))
        ops.compile(ops.sin)(1.0)
    log.save(tmp_path / "a.json")
    read = Log.load(tmp_path / "a.json")
    assert read.to_json() == log.to_json()
    assert read.table("op") == log.table("op")
    assert list(map(repr, read)) == list(map(repr, log))
    assert read.notes == log.notes != []


@pytest.mark.parametrize("text", ["", "[]", "{}", '{"format": 9, "notes": [], "events": []}', '{"format": 1}'])
def test_another_file_is_no_log(text: str) -> None:
    with pytest.raises(ArgumentError, match="no log"):
        Log.from_json(text)


def test_a_gradient_is_the_same_while_it_is_recorded(backend: str) -> None:
    rng = np.random.default_rng(0)
    x = ops.convert_to_tensor(rng.normal(size=(4, 3)).astype("float32"))

    def loss(x: Any) -> Any:
        return ops.mean(ops.square(ops.softmax(ops.matmul(x, ops.transpose(x)))))

    plain = ops.to_numpy(ops.grad(loss)(x))
    with ops.record():
        assert np.array_equal(ops.to_numpy(ops.grad(loss)(x)), plain)
    with ops.record(backward=True):
        assert ops.to_numpy(ops.grad(loss)(x)) == pytest.approx(plain, abs=1e-6)


def test_a_tensor_of_the_tape_is_a_tensor(backend: str) -> None:
    seen = []

    def loss(x: Any) -> Any:
        seen.append(ops.is_tensor(ops.square(x)))
        return ops.sum(ops.square(x))

    with ops.record(backward=True):
        ops.grad(loss)(ops.ones(3))
    assert seen == [True]


def test_an_activation_whose_class_is_made_in_the_block_has_a_path(backend: str) -> None:
    """Layers are imported at their first use, which may be inside of the block."""
    with ops.record() as log:

        class Cube(Activation, op=lambda x: ops.power(x, 3)):
            pass

        Cube()(ops.array([1.0, 2.0]))
    assert [event.path for event in log.calls("power")] == ["Cube"]


def test_statistics_of_results_are_kept_and_saved(backend: str) -> None:
    values = np.random.default_rng(0).normal(3.0, 2.0, (300, 401)).astype("float32")  # more than one part
    with ops.record(values=True) as log:
        x = ops.convert_to_tensor(values)
        ops.divide(ops.array([1.0, -2.0]), ops.array([0.0, 1.0]))
        ops.array([True, False, True])
        ops.multiply(ops.array([3 + 4j, 0j]), 1.0)
        ops.divide(ops.zeros(2), 0.0)
        with pytest.raises(ShapeError):
            ops.matmul(x, x)
    [found] = log.calls("convert_to_tensor")[0].values
    wide = values.astype("float64")
    wanted = wide.mean(), wide.std(), wide.min(), wide.max(), np.linalg.norm(wide), wide.size, wide.size
    assert found == pytest.approx(wanted, rel=1e-12)
    assert log.calls("divide")[0].values == ((-2.0, 0.0, -2.0, -2.0, 2.0, 1, 2),)
    assert log.calls("multiply")[0].values == ((2.5, 2.5, 0.0, 5.0, 5.0, 2, 2),)
    assert log.calls("divide")[-1].values == ((None, None, None, None, None, 0, 2),)
    assert log.calls("matmul")[0].values is None
    read = Log.from_json(log.to_json())
    assert [event.values for event in read] == [event.values for event in log]
    with ops.record() as log:
        ops.sin(1.0)
    assert log[0].values is None


def test_statistics_of_the_backward_pass(backend: str) -> None:
    with ops.record(backward=True, values=True) as log:
        ops.grad(lambda x: ops.sum(ops.square(x)))(ops.array([3.0, 4.0]))
    assert {each.norm for event in log if event.gradient_of == "square" for each in event.values} >= {10.0}


def test_values_that_cannot_be_read_are_noted(backend: str) -> None:
    with ops.record(values=True) as log:
        ops.eval(ops.vmap(ops.sin)(ops.ones((2, 3))))
    unread = [event for event in log if event.values is None]
    assert bool(unread) == any("no statistics" in note for note in log.notes)
    assert len(log.calls("sin")) >= 1


def test_tensors_in_keyword_arguments_and_in_dicts_are_described(backend: str) -> None:
    x, least = ops.ones((2, 3)), ops.zeros((3,))
    with ops.record() as log:
        ops.clip(x, min=least)
        ops.map(lambda row: {"sum": ops.sum(row)}, x)
    first, mapped = (event for event in log if event.outer is None)
    assert [tuple(shape) for shape in first.given[::2]] == [(2, 3), (3,)]
    assert [tuple(shape) for shape in mapped.made[::2]] == [(2,)]


def test_a_subclass_of_a_tensor_is_described() -> None:
    torch = pytest.importorskip("torch")
    with ops.use_backend("torch"), ops.record() as log:
        ops.sum(torch.nn.Parameter(torch.ones(2, 3)))
        ops.concatenate([torch.nn.Parameter(torch.ones(2)), torch.ones(1)])
    outer = [event for event in log if event.outer is None]
    assert [[tuple(shape) for shape in event.given[::2]] for event in outer] == [[(2, 3)], [(2,), (1,)]]
