"""Records, profiles and checks in rare places: begun inside of a call, beside errors, and past their bounds."""

import contextlib
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from emberharmony import ops
from emberharmony.core.errors import EmberError
from emberharmony.transforms.checks import nonfinite
from emberharmony.transforms.checks.findings import place_text
from emberharmony.transforms.logs import lines
from emberharmony.transforms.observe import is_observing

BLOCKS: dict[str, Callable[[], Any]] = {
    "record": ops.record,
    "profile": ops.profile,
    "profile of memory": lambda: ops.profile(memory=True),
    "checked": lambda: ops.checked("nan", policy="record"),
    "several checks": lambda: ops.checked("nan", "dtype", "device", policy="record"),
}


@pytest.mark.parametrize("name", BLOCKS)
def test_a_block_may_begin_and_end_inside_of_a_call(name: str, backend: str) -> None:
    blocks = contextlib.ExitStack()

    def step(i: Any, x: Any) -> Any:
        if i == 1:
            blocks.enter_context(BLOCKS[name]())
        if i == 3:
            blocks.close()
        return ops.add(x, 1.0)

    assert ops.map(lambda x: step(int(x), x), np.arange(5)).tolist() == [1.0, 2.0, 3.0, 4.0, 5.0]
    assert ops.host_call(lambda x: (blocks.enter_context(BLOCKS[name]()), x)[1], ops.ones(2)).tolist() == [1.0, 1.0]
    assert ops.add(1.0, 2.0) == 3.0
    blocks.close()


@pytest.mark.parametrize("name", ["record", "profile", "several checks"])
def test_a_block_that_begins_inside_of_a_call_sees_no_error_of_it(name: str, backend: str) -> None:
    with contextlib.ExitStack() as blocks:
        log: list[Any] = []

        def begins(x: Any) -> Any:
            log.append(blocks.enter_context(BLOCKS[name]()))
            raise KeyError("mine")

        with pytest.raises((KeyError, EmberError)):
            ops.map(begins, ops.ones(2))
        assert not [event for event in log[0] if getattr(event, "error", "")]


def test_peaks_of_memory_of_calls_inside_of_others_count_for_both() -> None:
    with ops.use_backend("numpy"):
        x = ops.ones((64, 64))
        with ops.profile(memory=True) as p:
            ops.trapezoid(x)
        (outer,) = p.calls("trapezoid")
        inner = [event for event in p if event.outer is outer]
        assert inner
        assert outer.peak is not None
        assert max(event.peak or 0 for event in inner) <= outer.peak


def test_an_error_stands_in_a_trace(backend: str, tmp_path: Path) -> None:
    with ops.profile() as p, pytest.raises(EmberError):
        ops.reshape(ops.ones(6), (4, 2))
    p.save_chrome_trace(tmp_path / "trace.json")
    events = json.loads((tmp_path / "trace.json").read_text())["traceEvents"]
    named = [(event["name"], event["args"]["error"]) for event in events if "error" in event.get("args", {})]
    assert named == [(event.op, event.error) for event in p if event.error]
    assert "reshape" in dict(named)


def test_what_waits_is_looked_at_when_it_is_much(monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("mlx.core")
    monkeypatch.setattr(nonfinite, "_MOST", 3)
    with ops.use_backend("mlx"), ops.checked("nan", policy="record") as found:
        x = ops.divide(ops.array([1.0]), ops.array([0.0]))
        assert not found
        for _ in range(3):
            x = ops.add(x, 1.0)
        assert [finding.op for finding in found] == ["divide"]


def test_an_evaluation_ends_a_graph_that_grows() -> None:
    pytest.importorskip("mlx.core")
    with ops.use_backend("mlx"), ops.checked("lazy", lazy=20, policy="record") as found:
        x = ops.ones(2)
        for i in range(60):
            x = ops.add(x, 1.0)
            if i % 10 == 0:
                ops.eval(x)
        assert found == []


def test_lines_are_found_again_after_they_were_forgotten(backend: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(lines, "_MOST", 1)
    with ops.record() as log:
        ops.add(1.0, 2.0)
        ops.multiply(1.0, 2.0)
    first, second = (event.line for event in log)
    assert first
    assert second
    assert first != second


def test_a_place_names_only_what_is_known() -> None:
    assert place_text("", "") == ""
    assert place_text("model.0", "") == "; in model.0"
    assert place_text("", "f.py:3") == "; at f.py:3"


def test_without_a_frame_of_the_user_an_event_has_no_line(backend: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(lines, "_is_in_package", lambda file: True)
    monkeypatch.setattr(lines, "_DISTANCES", {})
    with ops.record() as log:
        ops.add(1.0, 2.0)
    (event,) = log
    assert event.line == ("", 0)
    assert lines._DISTANCES == {}


def test_the_statistics_of_several_results_are_those_of_each(backend: str) -> None:
    with ops.record(values=True) as log:
        first, second = ops.unstack(ops.asarray([[1.0, 3.0], [np.inf, 5.0]]))
    (event,) = log.calls("unstack")
    assert ops.to_numpy(first).tolist() == [1.0, 3.0]
    assert ops.to_numpy(second).tolist() == [np.inf, 5.0]
    assert [(values.finite, values.size) for values in event.values] == [(2, 2), (1, 2)]
    assert (event.values[0].min, event.values[0].max, event.values[1].max) == (1.0, 3.0, 5.0)


@pytest.mark.parametrize("name", BLOCKS)
def test_a_block_may_be_left_without_or_after_its_end(name: str, backend: str) -> None:
    BLOCKS[name]().__exit__(None, None, None)
    block = BLOCKS[name]()
    with block:
        ops.add(1.0, 2.0)
    block.__exit__(None, None, None)
    assert not is_observing()
    assert ops.add(1.0, 2.0) == 3.0


@pytest.mark.parametrize("name", BLOCKS)
def test_an_interruption_leaves_a_block_usable(name: str, backend: str) -> None:
    def interrupt(x: Any) -> Any:
        raise KeyboardInterrupt

    with BLOCKS[name](), ops.record() as log:
        with pytest.raises(KeyboardInterrupt):
            ops.host_call(interrupt, ops.ones(2))
        ops.add(1.0, 2.0)
    (event,) = log.calls("add")
    assert (event.depth, event.error) == (0, "")
    assert [event.error for event in log.calls("host_call")] == [""]
