"""`ops.profile`: times, costs, peaks of memory, and files for viewers."""

import itertools
import json
from pathlib import Path
from typing import Any

import pytest

from emberharmony import nn, ops
from emberharmony.core import op_globals
from emberharmony.core.registry import OPS
from emberharmony.errors import ArgumentError
from emberharmony.transforms.logs import roofline
from emberharmony.transforms.logs.costs import cost_of, known_products
from emberharmony.transforms.logs.roofline import Rates

SPEEDSCOPE: dict[str, Any] = {
    "type": "object",
    "required": ["$schema", "shared", "profiles"],
    "properties": {
        "$schema": {"const": "https://www.speedscope.app/file-format-schema.json"},
        "name": {"type": "string"},
        "exporter": {"type": "string"},
        "activeProfileIndex": {"type": "integer"},
        "shared": {
            "type": "object",
            "required": ["frames"],
            "properties": {
                "frames": {
                    "type": "array",
                    "items": {
                        "type": "object",
                        "required": ["name"],
                        "additionalProperties": False,
                        "properties": {
                            "name": {"type": "string"},
                            "file": {"type": "string"},
                            "line": {"type": "number"},
                            "col": {"type": "number"},
                        },
                    },
                }
            },
        },
        "profiles": {
            "type": "array",
            "items": {
                "type": "object",
                "required": ["type", "name", "unit", "startValue", "endValue", "events"],
                "additionalProperties": False,
                "properties": {
                    "type": {"const": "evented"},
                    "name": {"type": "string"},
                    "unit": {"const": "seconds"},
                    "startValue": {"type": "number"},
                    "endValue": {"type": "number"},
                    "events": {
                        "type": "array",
                        "items": {
                            "type": "object",
                            "required": ["type", "frame", "at"],
                            "additionalProperties": False,
                            "properties": {
                                "type": {"enum": ["O", "C"]},
                                "frame": {"type": "integer", "minimum": 0},
                                "at": {"type": "number", "minimum": 0},
                            },
                        },
                    },
                },
            },
        },
    },
}
"""The file format of speedscope, for evented profiles (src/lib/file-format-spec.ts in its repository)."""

CHROME: dict[str, Any] = {
    "type": "object",
    "required": ["traceEvents"],
    "properties": {
        "displayTimeUnit": {"enum": ["ms", "ns"]},
        "traceEvents": {
            "type": "array",
            "items": {
                "type": "object",
                "required": ["name", "ph", "pid", "tid"],
                "properties": {"ph": {"enum": ["X", "M"]}, "args": {"type": "object"}, "name": {"type": "string"}},
                "if": {"properties": {"ph": {"const": "X"}}},
                "then": {
                    "required": ["ts", "dur", "cat"],
                    "properties": {"ts": {"type": "number"}, "dur": {"type": "number", "minimum": 0}},
                },
            },
        },
    },
}
"""Complete events and metadata of the trace event format."""


@pytest.fixture(autouse=True)
def _fixed_rates(monkeypatch: pytest.MonkeyPatch) -> None:
    class Known(dict[Any, Rates]):
        def __contains__(self, key: object) -> bool:
            return True

        def __missing__(self, key: Any) -> Rates:
            return Rates(1e9, 1e9)

    monkeypatch.setattr(roofline, "_MEASURED", Known())


def test_the_rates_are_the_work_of_a_call_by_its_seconds(backend: str, monkeypatch: pytest.MonkeyPatch) -> None:
    for name, value in {
        "_MEASURED": {},
        "_WIDTH": 8,
        "_LENGTH": 16,
        "perf_counter": itertools.count(0, 4).__next__,
    }.items():
        monkeypatch.setattr(roofline, name, value)
    rates = roofline.rates(op_globals.active().backend)
    assert rates == (2 * 8 * 8 * 8 / 4, 2 * 16 * 4 / 4)
    assert rates.least_seconds(512, 32) == 2.0
    assert rates.least_seconds(256, 96) == 3.0


def trained() -> Any:
    net = nn.Sequential(nn.Linear(4, 8), nn.GELU(), nn.Linear(8, 2))
    return lambda: ops.backward(lambda: ops.sum(ops.square(net(ops.ones((3, 4))))), net)


def test_a_profile_has_times_costs_and_shares(backend: str) -> None:
    step = trained()
    with ops.profile(backward=True) as p:
        step()
    rows = {row.name: row for row in p.rows()}
    assert rows["linear"].operations >= 3 * (2 * 4 * 8 + 8) + 3 * (2 * 8 * 2 + 2)
    assert all(row.seconds >= row.own_seconds >= 0 for row in rows.values())
    assert sum(row.own_seconds for row in rows.values()) == pytest.approx(
        sum(event.seconds for event in p if event.outer is None)
    )
    linear = rows["linear"]
    least = sum(max(cost[:2]) / 1e9 for event, cost in p.costs().items() if event.op == "linear")
    assert linear.share == pytest.approx(least / linear.seconds)
    totals = [sum(row.operations for row in p.rows(by)) for by in ("op", "module", "line")]
    assert totals[0] == totals[1] == totals[2] > 0
    assert {"Sequential.0", "Sequential.1", "Sequential.2"} <= {row.name for row in p.rows("module")}
    for by in ("op", "module", "line"):
        assert p.table(by).splitlines()[0].split()[:2] == [by, "calls"]
    assert len(p.table(most=2).splitlines()) == 3
    assert "GFLOP/s" in p.summary()
    with pytest.raises(ArgumentError, match="'line'"):
        p.rows("size")


def test_operations_of_the_same_program_agree_between_backends(backend: str) -> None:
    with ops.profile() as p:
        ops.matmul(ops.ones((5, 3, 4)), ops.ones((4, 7)))
        ops.conv(ops.ones((2, 9, 9, 3)), ops.ones((3, 3, 3, 8)))
        ops.dot_product_attention(*[ops.ones((2, 6, 4, 8))] * 3)
        ops.exp(ops.ones((10, 10)))
        ops.sum(ops.ones((10, 10)))
        ops.reshape(ops.ones((10, 10)), (100,))
    rows = {row.name: row.operations for row in p.rows()}
    assert rows["matmul"] == 2 * 5 * 3 * 4 * 7
    assert rows["conv"] == 2 * (2 * 7 * 7 * 8) * (3 * 3 * 3)
    assert rows["dot_product_attention"] == 4 * (2 * 6 * 4 * 8) * 6
    assert (rows["exp"], rows["sum"], rows["reshape"]) == (100, 100, 0)


def test_formulas_of_products() -> None:
    one = ("float32",)

    def count(op: str, shapes: Any, result: Any) -> int:
        return cost_of(op, shapes, one * len(shapes), [result], one).operations

    assert count("tensordot", [(2, 3, 4), (3, 4, 5)], (2, 5)) == 2 * 2 * 3 * 4 * 5
    assert count("outer", [(3,), (4,)], (3, 4)) == 12
    assert count("dot", [(6,), (6,)], ()) == 12
    assert count("depthwise_conv", [(1, 5, 5, 2), (3, 3, 2, 1)], (1, 3, 3, 2)) == 2 * 18 * 9
    assert count("conv_transpose", [(1, 5, 5, 2), (3, 3, 4, 2)], (1, 7, 7, 4)) == 2 * 50 * 36
    assert count("matmul", [(0, 3), (3, 4)], (0, 4)) == 0
    assert count("tensordot", [(0,), (0,)], (0,)) == 0
    assert cost_of("transpose", [(4, 5)], one, [(5, 4)], one) == (0, 0, False)
    assert cost_of("add", [(4, 1), (1, 5)], one * 2, [(4, 5)], one)[:2] == (20, 4 * (4 + 5 + 20))
    assert set(known_products()) <= set(OPS)


def test_peaks_of_memory(backend: str) -> None:
    x = ops.ones((256, 256))
    ops.eval(x)
    with ops.profile(memory=True) as p:
        ops.add(x, x)
        ops.std(x)
    if backend == "torch":
        assert all(event.peak is None for event in p)
        assert "not known" in p.notes[0]
    else:
        assert p.calls("add")[0].peak >= 256 * 256 * 4
        std = p.calls("std")[0]
        assert all(event.peak <= std.peak for event in p if event.outer is std)
        assert "peak MB" in p.table()


def test_vectorized_functions_are_profiled(backend: str) -> None:
    with ops.profile() as p:
        found = ops.vmap(lambda x: ops.sum(ops.exp(x)))(ops.ones((3, 2)))
    assert found.shape == (3,)
    assert {"exp", "sum"} <= {event.op for event in p}


def test_files_for_viewers_fit_their_formats(backend: str, tmp_path: Path) -> None:
    step = trained()
    with ops.profile(backward=True) as p:
        step()
    p.save_chrome_trace(tmp_path / "chrome.json", "test")
    p.save_speedscope(tmp_path / "speedscope.json", "test")
    p.save_report(tmp_path / "report.json")
    chrome, speedscope, report = (
        json.loads((tmp_path / f"{name}.json").read_text()) for name in ("chrome", "speedscope", "report")
    )
    jsonschema = pytest.importorskip("jsonschema")
    jsonschema.validate(chrome, CHROME)
    jsonschema.validate(speedscope, SPEEDSCOPE)
    assert {"cat": "backward"}.items() <= chrome["traceEvents"][-1].items() or any(
        row.get("cat") == "backward" for row in chrome["traceEvents"]
    )
    assert len(chrome["traceEvents"]) == len(p) + 2
    assert {row["name"] for row in report["op"]} == {event.op for event in p}


def test_calls_in_a_chrome_trace_lie_in_each_other_or_apart(backend: str, tmp_path: Path) -> None:
    """Viewers draw the complete events of a thread as a stack, so events must nest, in order of their start."""
    step = trained()
    with ops.profile(backward=True) as p:
        step()
        ops.std(ops.ones((3, 2)))
    p.save_chrome_trace(tmp_path / "chrome.json")
    rows = [row for row in json.loads((tmp_path / "chrome.json").read_text())["traceEvents"] if row["ph"] == "X"]
    rows.sort(key=lambda row: (row["ts"], -row["dur"]))
    rounding = 0.01  # of microseconds as float64
    open_until: list[float] = []
    depths = []
    for row in rows:
        end = row["ts"] + row["dur"]
        while open_until and open_until[-1] <= row["ts"] + rounding:
            open_until.pop()
        assert not open_until or end <= open_until[-1] + rounding, row
        depths.append(len(open_until))
        open_until.append(end)
    assert sorted(depths) == sorted(event.depth for event in p)
    starts = [event.started for event in p if event.outer is None]
    assert starts == sorted(starts)


def test_a_speedscope_file_opens_and_closes_each_call(backend: str, tmp_path: Path) -> None:
    """Viewers refuse a file in which times go back, or in which another frame closes than the one opened last."""
    step = trained()
    with ops.profile(backward=True) as p:
        step()
        ops.std(ops.ones((3, 2)))
        ops.scan(lambda carry, x: (ops.add(carry, x), x), ops.zeros(()), ops.ones(3))
    p.save_speedscope(tmp_path / "speedscope.json")
    read = json.loads((tmp_path / "speedscope.json").read_text())
    names = [frame["name"] for frame in read["shared"]["frames"]]
    [profile] = read["profiles"]
    stack: list[int] = []
    stacks, calls, last = set(), 0, profile["startValue"]
    for row in profile["events"]:
        assert row["at"] >= last
        last = row["at"]
        if row["type"] == "O":
            stack.append(row["frame"])
            stacks.add(tuple(names[frame] for frame in stack))
            calls += "file" in read["shared"]["frames"][row["frame"]]
        else:
            assert stack.pop() == row["frame"]
    assert stack == []
    assert last == profile["endValue"]
    assert calls == len(p)
    assert ("Sequential", "Sequential.0", "linear") in stacks
    ended = max(event.started + event.seconds for event in p)
    assert last == pytest.approx(ended, abs=1e-5)


def test_an_empty_profile_has_empty_tables() -> None:
    with ops.profile() as p:
        pass
    assert p.rates is None
    assert p.rows() == []
    assert p.table().split()[0] == "op"
    assert p.summary() == "0 calls of ops, 0.0 ms"
