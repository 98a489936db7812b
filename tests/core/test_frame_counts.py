"""A call through `ops` enters no more Python frames, and runs no more bytecodes, than are recorded.

The record is `frame_counts.json`, by version of Python and backend: `[frames, bytecodes]` of one call. If a change of
dispatch is meant to cost more, `python tests/core/frame_counts.py --record` renews it, once with each Python. Counts
below the record pass; renew it then, or the test cannot see them rise again.
"""

import importlib.util
import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from emberharmony import ops
from emberharmony.backend import current
from emberharmony.core import dispatch, op_globals

PROGRAM = Path(__file__).with_name("frame_counts.py")
RECORD = json.loads(PROGRAM.with_suffix(".json").read_text(encoding="utf-8"))
VERSION = f"{sys.version_info[0]}.{sys.version_info[1]}"

_spec = importlib.util.spec_from_file_location("frame_counts", PROGRAM)
assert _spec is not None
assert _spec.loader is not None
frame_counts = importlib.util.module_from_spec(_spec)
_spec.loader.exec_module(frame_counts)


@pytest.mark.fresh_process
@pytest.mark.skipif(VERSION not in RECORD, reason="no counts are recorded for this version of Python")
@pytest.mark.skipif(dispatch.DISPATCH != dispatch.SWAP, reason="the counts are those of exchanged codes")
def test_no_call_takes_more_frames_or_bytecodes_than_recorded() -> None:
    """Counts in a fresh process: what other tests did before decides which code an op has."""
    environment = {name: value for name, value in os.environ.items() if name != "EMBERHARMONY_BACKEND"}
    done = subprocess.run([sys.executable, str(PROGRAM)], capture_output=True, text=True, env=environment, check=True)
    found = json.loads(done.stdout)
    assert found, "no backend was counted"
    for backend, rows in found.items():
        recorded = RECORD[VERSION].get(backend, {})
        for row, (frames, bytecodes) in rows.items():
            assert row in recorded, f"{backend}: {row} is not recorded; run {PROGRAM.name} --record"
            assert frames <= recorded[row][0], f"{backend}: {row} enters {frames} frames, recorded {recorded[row][0]}"
            message = f"{backend}: {row} runs {bytecodes} bytecodes, recorded {recorded[row][1]}"
            assert bytecodes <= recorded[row][1], message


def test_a_planted_frame_is_counted(backend: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Plants a Python function around the native function, which every call of the op reaches."""
    x = ops.ones((1,))
    before = frame_counts.counted(lambda: ops.sin(x))
    name = f"{current().prefix}_sin"
    native = vars(op_globals)[name]

    def planted(*arguments: object) -> object:
        return native(*arguments)

    monkeypatch.setattr(op_globals, name, planted)
    after = frame_counts.counted(lambda: ops.sin(x))
    assert after[0] == before[0] + 1
    assert after[1] > before[1]


def test_the_counter_counts_frames_and_bytecodes() -> None:
    def outer() -> None:
        inner()

    def inner() -> None:
        pass

    one = frame_counts.counted(inner)
    two = frame_counts.counted(outer)
    assert one == [0, 0]
    assert two[0] == 1
    assert 1 <= two[1] <= 3
