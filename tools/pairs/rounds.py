"""Rounds: right pairs, which must not be accused, and planted faults, which must be named."""

import json
import time
import traceback
from collections.abc import Sequence
from typing import Any

import numpy as np
from pairs import inputs, make
from planting import plain, planted

import emberharmony


def right(names: Sequence[str], seed: int) -> list[dict[str, Any]]:
    """Compares right pairs, and returns what was said."""
    rows = []
    for name in names:
        kind, one, other = name.split()
        models, started = (make(kind, one, seed), make(kind, other, seed)), time.perf_counter()
        report = emberharmony.compare(*models, *inputs(kind, one, seed), stop="all")
        seconds = time.perf_counter() - started
        rows.append({"pair": name, "ok": report.ok, "calls": len(report.rows), "said": report.summary(), "s": seconds})
        print(json.dumps(rows[-1]), flush=True)
    return rows


def faults(names: Sequence[str], count: int, seed: int) -> list[dict[str, Any]]:
    """Plants faults in pairs in turn, each kind once before one comes again, and returns which are named."""
    draw = np.random.default_rng(seed)
    used: dict[str, set[str]] = {}
    models: dict[str, Any] = {}
    rows: list[dict[str, Any]] = []
    for number in range(count):
        name = names[number % len(names)]
        kind, *libraries = name.split()
        if name not in models:
            models[name] = [make(kind, library, seed) for library in libraries]
        side = int(draw.integers(2))
        rows.append(_one(draw, name, kind, libraries, models[name], side, used.setdefault(libraries[side], set())))
        print(json.dumps(rows[-1]), flush=True)
    return rows


def _one(draw: Any, name: str, kind: str, libraries: Any, pair: Any, side: int, used: set[str]) -> dict[str, Any]:
    batch = inputs(kind, libraries[0], int(draw.integers(1000)))
    with planted(draw, kind, libraries[side], pair[side], bool(side), used) as fault:
        used.add(fault.kind)
        row: dict[str, Any] = {"pair": name, "side": side, "kind": fault.kind, "at": fault.path}
        row["everywhere"] = fault.everywhere
        started = time.perf_counter()
        try:
            report = emberharmony.compare(*pair, *batch)
        except Exception:  # noqa: BLE001  (an error is a miss, which the row shows)
            return row | {"named": False, "sided": False, "said": traceback.format_exc()[-600:]}
        first = report.first
        if first is None:
            return row | {"named": False, "sided": False, "said": "nothing: " + "; ".join(report.notes)}
        named = plain(first.path if side == 0 else first.other) in fault.accepted
        row |= {"named": named, "sided": named and first.wrong == report.sides[side], "by": first.judge}
        return row | {"s": round(time.perf_counter() - started, 1), "said": first.message}
