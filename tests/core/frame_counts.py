"""Counts the Python frames and bytecodes of single calls: `python tests/core/frame_counts.py [--record]`.

Run as a program it prints the counts of the installed backends as JSON; with `--record` it writes them into
`frame_counts.json` beside it, for this version of Python. CPython counts the bytecodes itself, so the numbers depend on
neither the machine nor its load: `sys.monitoring` reports each instruction, or before CPython 3.12 `sys.settrace`.
"""

import gc
import importlib.util
import json
import sys
from collections.abc import Callable
from pathlib import Path
from types import CodeType
from typing import Any

RECORD = Path(__file__).with_suffix(".json")
VERSION = f"{sys.version_info[0]}.{sys.version_info[1]}"
MODULES = {"numpy": "numpy", "torch": "torch", "mlx": "mlx.core"}
CALLS = (
    "sin(x)",
    "exp(x)",
    "add(x, y)",
    "add(x, 2.0)",
    "maximum(x, y)",
    "less(x, y)",
    "matmul(x, y)",
    "sum(x, axis=0)",
)
Counts = list[int]
"""The number of frames and the number of bytecodes."""


def counted(call: Callable[[], object]) -> Counts:
    """Returns how many frames a call enters, and how many bytecodes run in them; its own frame is left out."""
    call()
    call()
    # A collection in the call would run finalizers and the callbacks of others, which would be counted.
    collecting = gc.isenabled()
    gc.disable()
    try:
        return (_monitored if sys.version_info >= (3, 12) else _traced)(call)
    finally:
        if collecting:
            gc.enable()


def _traced(call: Callable[[], object]) -> Counts:
    frames = bytecodes = 0

    def trace(frame: Any, event: str, argument: object) -> Any:
        nonlocal frames, bytecodes
        if event == "call":
            if frame.f_code is call.__code__:  # type: ignore[attr-defined]
                return None
            frames += 1
            frame.f_trace_opcodes, frame.f_trace_lines = True, False
        elif event == "opcode":
            bytecodes += 1
        return trace

    before = sys.gettrace()
    sys.settrace(trace)
    try:
        call()
    finally:
        sys.settrace(before)
    return [frames, bytecodes]


def _monitored(call: Callable[[], object]) -> Counts:
    monitoring: Any = sys.monitoring  # type: ignore[attr-defined]
    events, tool = monitoring.events, 4
    frames = bytecodes = 0

    def started(code: CodeType, offset: int) -> None:
        nonlocal frames
        frames += code is not own

    def ran(code: CodeType, offset: int) -> None:
        nonlocal bytecodes
        bytecodes += code is not own and code is not this

    own, this = call.__code__, sys._getframe().f_code  # type: ignore[attr-defined]
    monitoring.use_tool_id(tool, "frame counts")
    monitoring.register_callback(tool, events.PY_START, started)
    monitoring.register_callback(tool, events.INSTRUCTION, ran)
    try:
        monitoring.set_events(tool, events.PY_START | events.INSTRUCTION)
        call()
        monitoring.set_events(tool, 0)
    finally:
        monitoring.set_events(tool, 0)
        monitoring.free_tool_id(tool)
    return [frames, bytecodes]


def counts_of(backend: str) -> dict[str, Counts]:
    """Returns the counts of a backend, which becomes that of the process; the tensors have one element."""
    from emberharmony import ops
    from emberharmony.backend import current

    native = importlib.import_module(MODULES[backend])
    ops.set_backend(backend)
    x, y = (ops.ones((1,), dtype="float32") for _ in range(2))
    space = {"x": x, "y": y, "name": backend, "ops": ops, "m": native}
    code = {call: eval(f"lambda: ops.{call}", space) for call in CALLS}

    def block() -> None:
        with ops.use_backend(backend):
            pass

    found = {call: counted(code[call]) for call in CALLS}
    found["use_backend"] = counted(block)
    other = type(current())()
    with ops.use_backend(other):
        pass  # a block of any other backend, even of an equal one, leaves the ops looked up
    found |= {f"{call}, looked up": counted(code[call]) for call in CALLS}

    def change() -> None:
        with ops.use_backend(other):
            pass

    found["use_backend of another"] = counted(change)
    return found


def main() -> None:
    """Counts all installed backends and prints or records the result."""
    found = {name: counts_of(name) for name in MODULES if importlib.util.find_spec(name) is not None}
    if sys.argv[1:] == ["--record"]:
        record = json.loads(RECORD.read_text(encoding="utf-8")) if RECORD.exists() else {}
        record[VERSION] = record.get(VERSION, {}) | found
        lines = [
            f'  "{version}": {{\n'
            + ",\n".join(
                f'    "{backend}": {{\n'
                + ",\n".join(f"      {json.dumps(row)}: {json.dumps(counts)}" for row, counts in rows.items())
                + "\n    }"
                for backend, rows in backends.items()
            )
            + "\n  }"
            for version, backends in sorted(record.items())
        ]
        RECORD.write_text("{\n" + ",\n".join(lines) + "\n}\n", encoding="utf-8")
    else:
        sys.stdout.write(json.dumps(found) + "\n")


if __name__ == "__main__":
    main()
