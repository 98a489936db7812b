"""Measures calls, imports, models, gradients and training steps beside other libraries.

The parts are what a call costs, imports, whole models, gradients and training steps. Each contender of a row does the
same work, takes its turn in each round, and is given by its least time in seconds. The first contender of a row is the
reference; it runs twice, and "again" is the noise floor. Peers that are not installed are left out and listed. The
figures go into benchmarks/results/peers.json with the versions, the processor and the date; `docs/performance_plots.py`
draws them, and `docs/performance_table.py` writes them into the README. `make performance` does all three.
"""

import argparse
import datetime
import importlib
import importlib.util
import json
import math
import os
import platform
import subprocess
import sys
from collections.abc import Callable, Iterator
from functools import partial
from importlib.metadata import version
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import gradients
import models
import training
from pairs import Call, evaluating_call, installed_backends, library, restart_with_one_thread

from emberharmony import ops

RESULTS = Path(__file__).parent / "results" / "peers.json"
PEERS = {
    "keras": "keras",
    "autoray": "autoray",
    "array-api-compat": "array_api_compat",
    "tensorly": "tensorly",
    "autograd": "autograd",
    "torch": "torch",
    "mlx": "mlx",
}
"""The modules of the peers by the names of their packages."""
IMPORTS = {
    "numpy": "import numpy; numpy.sin(numpy.ones(1))",
    "again": "import numpy; numpy.sin(numpy.ones(1))",
    "ours": "import numpy; from emberharmony import ops; ops.sin(numpy.ones(1))",
    "keras": "import numpy; import keras; keras.ops.sin(numpy.ones(1))",
    "array-api-compat": "import numpy; from array_api_compat import numpy as xp; xp.sin(numpy.ones(1))",
    "autoray": "import numpy; import autoray; autoray.do('sin', numpy.ones(1))",
}
"""A program that imports a library and makes one call on NumPy, by contender."""
Contenders = dict[str, tuple[str, Call]]
"""The backend that must be active, and the call, by the name of a contender."""


def has_peer(package: str) -> bool:
    """Returns whether a peer is installed."""
    return importlib.util.find_spec(PEERS[package]) is not None


def processor_name() -> str:
    """Returns the kind of the processor."""
    path = Path("/proc/cpuinfo")
    lines = path.read_text(encoding="utf-8").splitlines() if path.exists() else []
    model_name = next((line.partition(":")[2].strip() for line in lines if line.startswith("model name")), "")
    return model_name or platform.processor() or platform.machine()


def call_seconds(rounds: int) -> dict[str, dict[str, float]]:
    """Returns the seconds of a call on one element, by the backend and the call.

    Each backend has a process of its own, because Keras has one backend for each process.
    """
    program = "import json, sys, dispatch; print(json.dumps(dispatch.nanoseconds(sys.argv[1], int(sys.argv[2]))))"
    seconds_by_call: dict[str, dict[str, float]] = {}
    for backend in installed_backends(None):
        for call, row in json.loads(_last_line(program, backend, backend, str(3 * rounds))).items():
            seconds_by_call[f"{backend}: {call}"] = {name: time * 1e-9 for name, time in row.items()}
    return seconds_by_call


def import_seconds(rounds: int) -> dict[str, dict[str, float]]:
    """Returns the CPU seconds of an import and one call on NumPy, without those of the start of Python."""
    present = [name for name in IMPORTS if name not in PEERS or has_peer(name)]
    programs = {"start": ""} | {name: IMPORTS[name] for name in present}
    least_by_name = dict.fromkeys(programs, math.inf)
    for _ in range(rounds):
        for name, program in programs.items():
            seconds = float(_last_line(f"{program}\nimport time; print(time.process_time())", "numpy"))
            least_by_name[name] = min(least_by_name[name], seconds)
    start = least_by_name.pop("start")
    return {"import and one call": {name: seconds - start for name, seconds in least_by_name.items()}}


def _last_line(program: str, backend: str, *arguments: str) -> str:
    """Returns the last line that a program prints in a process of its own, with a backend active."""
    environment = os.environ | {"KERAS_BACKEND": backend, "EMBERHARMONY_BACKEND": backend}
    environment["PYTHONPATH"] = os.pathsep.join(map(str, _import_paths()))
    environment.pop("PYTHONDONTWRITEBYTECODE", None)  # an import is timed as users have it, with bytecode
    command = [sys.executable, "-c", program, *arguments]
    completed_process = subprocess.run(command, capture_output=True, text=True, check=True, env=environment)
    return completed_process.stdout.splitlines()[-1]


def _import_paths() -> Iterator[Path | str]:
    yield Path(__file__).parent
    yield Path(__file__).parents[1]
    yield from filter(None, [os.environ.get("PYTHONPATH")])


def _perceptron_functions(call: Callable[[str], Callable[..., Any]]) -> Any:
    """Returns the functions of the perceptron of `models.py`, from a function that gives those of NumPy by name."""
    names = ("add", "subtract", "multiply", "matmul", "tanh", "exp", "log", "sum", "max")
    f = SimpleNamespace(**{name: call(name) for name in names})

    def logsumexp(x: Any) -> Any:
        largest = f.max(x, axis=-1, keepdims=True)
        return f.add(f.log(f.sum(f.exp(f.subtract(x, largest)), axis=-1)), largest[..., 0])

    f.logsumexp, f.total, f.mean = logsumexp, lambda x: f.sum(x, axis=-1), lambda x: call("mean")(x)
    return f


def _peer_functions(backend: str) -> Iterator[tuple[str, Any]]:
    """Yields the peers whose functions run the perceptron on tensors of a backend, and these functions."""
    if backend == "numpy" and has_peer("autoray"):
        do = importlib.import_module("autoray").do
        yield "autoray", _perceptron_functions(lambda name: partial(do, name))
    if backend == "numpy" and has_peer("array-api-compat"):
        of = importlib.import_module("array_api_compat").array_namespace
        yield (
            "array-api-compat",
            _perceptron_functions(lambda name: lambda x, *a, **k: getattr(of(x), name)(x, *a, **k)),
        )
    if has_peer("keras") and importlib.import_module("keras").config.backend() == backend:
        yield "keras", _perceptron_functions(lambda name: getattr(importlib.import_module("keras").ops, name))


def model_rows() -> Iterator[tuple[str, Contenders]]:
    """Yields the forward passes of a perceptron and of a transformer block, with a batch of 4."""
    programs = {
        "perceptron 784-256-256-10": (models.perceptron_loss, models.perceptron_arrays),
        "transformer block, width 256": (models.block_loss, models.block_arrays),
    }
    for title, (program, arrays) in programs.items():
        for backend in installed_backends(None):
            ops.set_backend(backend)
            tensors = [ops.convert_to_tensor(x) for array_group in arrays(4) for x in array_group]

            def contender(
                functions: Any, program: Any = program, backend: str = backend, tensors: Any = tensors
            ) -> Any:
                return backend, evaluating_call(backend, partial(program(functions), *tensors))

            row: Contenders = {
                "native": contender(models.native_functions(backend)),
                "ours": contender(models.functions_of_ops()),
            }
            if program is models.perceptron_loss:
                row |= {name: contender(functions) for name, functions in _peer_functions(backend)}
            yield f"{backend}: {title}", row


def gradient_rows() -> Iterator[tuple[str, Contenders]]:
    """Yields the value and the gradient of a perceptron in two sizes."""
    for size in ("mlp small", "mlp medium"):
        contenders = gradients.contenders(*gradients.SIZES[size])
        widths = "-".join(map(str, gradients.SIZES[size][1][1:]))
        row = {"by hand": contenders["by hand"]}
        for name, contender in contenders.items():
            if name not in ("by hand", "forward in NumPy"):
                row[name.replace("HIPS ", "")] = contender
        yield f"perceptron {widths}, batch {gradients.SIZES[size][1][0]}", row


def _keras_step() -> Call:
    keras = importlib.import_module("keras")
    x, y = training.mlp_data()
    net = keras.Sequential([keras.layers.Dense(128, activation="relu"), keras.layers.Dense(10)])
    net.compile("adamw", keras.losses.SparseCategoricalCrossentropy(from_logits=True))
    return lambda: net.train_on_batch(x, y)


def training_rows() -> Iterator[tuple[str, Contenders]]:
    """Yields the training steps of a perceptron 64-128-10 with AdamW and a batch of 32, and of a transformer block."""
    makers = {
        "step of a perceptron 64-128-10": (training.our_mlp, training.torch_mlp, training.mlx_mlp),
        "step of a transformer block": (training.our_block, training.torch_block, training.mlx_block),
    }
    for title, (ours, of_torch, of_mlx) in makers.items():
        row: Contenders = {}
        if has_peer("torch"):
            library("torch")
            row["torch.nn"] = "torch", of_torch()
        if has_peer("mlx"):
            row["mlx.nn"] = "mlx", of_mlx()
        for backend in installed_backends(None):
            ops.set_backend(backend)
            row[f"ours on {backend}"] = backend, ours()
        if has_peer("keras") and title.endswith("64-128-10"):
            row[f"keras on {importlib.import_module('keras').config.backend()}"] = "numpy", _keras_step()
        yield title, row


PARTS = {"models": model_rows, "gradients": gradient_rows, "training": training_rows}
PROCESSES = {"calls": call_seconds, "imports": import_seconds}
"""The parts that are measured in processes of their own."""


def measure(rows: Iterator[tuple[str, Contenders]], rounds: int) -> dict[str, dict[str, float]]:
    """Returns the least seconds of each contender by row; the reference runs again as "again"."""
    seconds = {}
    for title, row in rows:
        reference = next(iter(row))
        seconds[title] = gradients.measure_calls(row | {"again": row[reference]}, rounds)
        ratios = ", ".join(f"{name} {time / seconds[title][reference]:.2f}" for name, time in seconds[title].items())
        print(f"{title}: {reference} {seconds[title][reference] * 1e6:.1f} us; over it: {ratios}", flush=True)
    return seconds


def main() -> None:
    """Measures the parts and writes the figures."""
    restart_with_one_thread()
    os.environ.setdefault("KERAS_BACKEND", "torch")  # Keras trains on it, and does not on NumPy
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("part", nargs="*", choices=[*PROCESSES, *PARTS, []], help="only these parts; needs --json")
    parser.add_argument("--rounds", type=int, default=30, help="how often each contender takes its turn")
    parser.add_argument("--json", type=Path, default=RESULTS, help="the file for the figures")
    options = parser.parse_args()
    if options.part and options.json == RESULTS:
        parser.error(f"{RESULTS.name} has all parts; name another file for some of them by --json")
    present = [name for name in PEERS if has_peer(name)]
    machine_facts: dict[str, Any] = {
        "date": datetime.datetime.now(datetime.UTC).date().isoformat(),
        "processor": processor_name(),
        "cores": os.cpu_count(),
        "load": round(os.getloadavg()[0], 1) if hasattr(os, "getloadavg") else None,
        "rounds": options.rounds,
        "python": platform.python_version(),
        "versions": {name: version(name) for name in ("numpy", *present)},
        "absent": [name for name in PEERS if name not in present],
    }
    chosen_parts = options.part or [*PROCESSES, *PARTS]
    figures = {part: measure(PARTS[part](), options.rounds) for part in PARTS if part in chosen_parts}
    figures |= {part: PROCESSES[part](options.rounds) for part in PROCESSES if part in chosen_parts}
    report = {"benchmark": "peers", "machine": machine_facts, "figures": figures}
    options.json.write_text(json.dumps(report, indent=1) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
