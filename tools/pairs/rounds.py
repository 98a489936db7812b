"""Rounds: right pairs, which must not be accused, and planted faults, which must be named."""

import json
import time
import traceback
from collections.abc import Sequence
from typing import Any

import numpy as np
from pairs import make_inputs, make_model
from planting import plant_fault, relative_path

import emberharmony


def compare_right_pairs(names: Sequence[str], seed: int) -> list[dict[str, Any]]:
    """Compares right pairs, and returns what was said."""
    rows = []
    for name in names:
        kind, one, other = name.split()
        models, start_time = (make_model(kind, one, seed), make_model(kind, other, seed)), time.perf_counter()
        report = emberharmony.compare(*models, *make_inputs(kind, one, seed), stop="all")
        seconds = time.perf_counter() - start_time
        rows.append({"pair": name, "ok": report.ok, "calls": len(report.rows), "said": report.summary(), "s": seconds})
        print(json.dumps(rows[-1]), flush=True)
    return rows


def judge_planted_faults(names: Sequence[str], count: int, seed: int) -> list[dict[str, Any]]:
    """Plants faults in pairs in turn, each kind once before one comes again, and returns which are named."""
    rng = np.random.default_rng(seed)
    used_kinds: dict[str, set[str]] = {}
    models: dict[str, Any] = {}
    rows: list[dict[str, Any]] = []
    for number in range(count):
        name = names[number % len(names)]
        kind, *libraries = name.split()
        if name not in models:
            models[name] = [make_model(kind, library, seed) for library in libraries]
        side = int(rng.integers(2))
        rows.append(
            _judge_planted_fault(
                rng, name, kind, libraries, models[name], side, used_kinds.setdefault(libraries[side], set())
            )
        )
        print(json.dumps(rows[-1]), flush=True)
    return rows


def _judge_planted_fault(
    rng: Any, name: str, kind: str, libraries: Any, pair: Any, side: int, used_kinds: set[str]
) -> dict[str, Any]:
    batch = make_inputs(kind, libraries[0], int(rng.integers(1000)))
    with plant_fault(rng, kind, libraries[side], pair[side], bool(side), used_kinds) as fault:
        used_kinds.add(fault.kind)
        row: dict[str, Any] = {"pair": name, "side": side, "kind": fault.kind, "at": fault.path}
        row["everywhere"] = fault.everywhere
        start_time = time.perf_counter()
        try:
            report = emberharmony.compare(*pair, *batch)
        except Exception:  # noqa: BLE001  (an error is a miss, which the row shows)
            return row | {"named": False, "sided": False, "said": traceback.format_exc()[-600:]}
        first_difference = report.first
        if first_difference is None:
            return row | {"named": False, "sided": False, "said": "nothing: " + "; ".join(report.notes)}
        is_named = relative_path(first_difference.path if side == 0 else first_difference.other) in fault.accepted
        row |= {
            "named": is_named,
            "sided": is_named and first_difference.wrong == report.sides[side],
            "by": first_difference.judge,
        }
        return row | {"s": round(time.perf_counter() - start_time, 1), "said": first_difference.message}
