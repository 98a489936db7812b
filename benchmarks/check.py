"""Counts the instructions of calls and imports, and fails if they take 5 % more than recorded.

`make bench-check` fails if a row takes 5 % more instructions than recorded; `make bench-record` writes the counts into
`benchmarks/instructions.json`. No time is measured, so the load of the machine does not matter. A row of a call is the
difference to the native call as a user writes it; for the compiled gradient that is a backward pass written by hand.

One process for each backend imports it, and a copy of this process (`os.fork`) runs each row: 500 calls that are not
counted, then 1,000 that are. The counts repeat exactly on NumPy and MLX, but for `sum`, which varies by 50
instructions; those of PyTorch vary by 10. So differences of up to 30 instructions pass.

A record holds for one version of Python, one compiler of it, one version of the library, and one set of vector
instructions. Callgrind simulates a processor without AVX-512 wherever there is AVX2. So glibc, NumPy and OpenBLAS
choose the same code on all these machines, which share a record, as patch releases of Python do. The rest depends on
the machine only through the native call, and the difference removes it.
"""

import argparse
import gc
import importlib
import json
import os
import platform
import re
import shutil
import subprocess
import sys
import sysconfig
import tempfile
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from importlib.metadata import version
from pathlib import Path

import dispatch

RECORD = Path(__file__).with_name("instructions.json")
SHARE, FLOOR = 0.05, 30
"""A row fails if it takes more than this share and more than this number of instructions above the recorded count."""

WARM, COUNTED = 500, 1000
LOOKED_UP = ("sin(x)", "add(x, y)")
COMPILED = "value_and_grad of mlp small, compiled, over that by hand"
IMPORTS = {
    "import emberharmony.ops, backend named": "import emberharmony.ops",
    "import emberharmony.ops, backend named, three calls": (
        "from emberharmony import ops; x = numpy.ones((2, 2)); ops.sum(ops.matmul(ops.add(x, x), x))"
    ),
}
"""What follows `import numpy` in a program with EMBERHARMONY_BACKEND=numpy."""

SPARE_TYPES = (0, 7)
"""How many types are made before those of the library. Rows are counted with each number, and the least count stands.

CPython's cache of attributes finds its places by numbers of types. Two attributes that share a place miss it at every
look-up, so one type more or less somewhere changed the count of a gradient by 6 %.
"""

Row = tuple[str, str, int]
"""The name of a row, what runs it ("native" or "ours"), and the number of calls."""


class UncountableError(Exception):
    """The instructions cannot be counted on this machine; the message says why."""


def counting_environment(backend: str = "") -> dict[str, str]:
    """Returns the environment of the programs that are counted: one thread, fixed hashes, cached bytecode."""
    other_variables = {
        name: value for name, value in os.environ.items() if not name.startswith(("EMBERHARMONY_", "PYTHON"))
    }
    if "PYTHONPATH" in os.environ:
        other_variables["PYTHONPATH"] = os.environ["PYTHONPATH"]
    threads = dict.fromkeys(("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"), "1")
    backend_variable = {"EMBERHARMONY_BACKEND": backend} if backend else {}
    return other_variables | threads | {"PYTHONHASHSEED": "0"} | backend_variable


def block_loop(backend: str) -> Callable[[int], None]:
    """Returns a function that enters a `use_backend` block of the process's backend `n` times."""
    from emberharmony import ops

    return dispatch.statement_loop(f"with use_backend({backend!r}): pass", {"use_backend": ops.use_backend})


def gradient_loop(compiled: bool) -> Callable[[int], None]:
    """Returns a function that takes value and gradient of the small multilayer perceptron on NumPy `n` times."""
    import gradients

    arrays = gradients.mlp_parameters(*gradients.SIZES["mlp small"][1])
    return dispatch.statement_loop(
        "call()", {"call": gradients.our_call("numpy", gradients.mlp_ops, arrays, 2, compiled)}
    )


def loop_by_hand() -> Callable[[int], None]:
    """Returns a function that makes the same computation in NumPy, written by hand, `n` times."""
    import gradients

    arrays = gradients.mlp_parameters(*gradients.SIZES["mlp small"][1])
    return dispatch.statement_loop("call()", {"call": lambda: gradients.mlp_by_hand(*arrays)})


def look_up_ops() -> None:
    """Makes all ops looked up, as a `use_backend` block of any other backend, even of an equal one, leaves them."""
    from emberharmony import ops
    from emberharmony.backend import current

    with ops.use_backend(type(current())()):
        pass


def rows_of_backend(backend: str) -> list[Row]:
    """Returns the rows of a backend."""
    counted_rows = [(call, dispatcher, COUNTED) for call in dispatch.CALLS for dispatcher in ("native", "ours")]
    shared_rows = [
        *counted_rows,
        *((f"{call} looked up", "ours", COUNTED) for call in LOOKED_UP),
        ("use_backend", "ours", COUNTED),
    ]
    gradients = [("value_and_grad of mlp small", "ours", 20), (COMPILED, "ours", 20), (COMPILED, "native", 20)]
    return [*shared_rows, *gradients] if backend == "numpy" else shared_rows


def row_runner(backend: str, row: Row) -> Callable[[int], None]:
    """Returns the function that runs a row `n` times."""
    name, dispatcher, _ = row
    if name == "use_backend":
        return block_loop(backend)
    if name.startswith("value_and_grad"):
        return gradient_loop(name == COMPILED) if dispatcher == "ours" else loop_by_hand()
    call = name.removesuffix(" looked up")
    run = dispatch.statement_loop(
        dispatch.statement_of(call, dispatcher), dispatch.statement_names(backend, dispatcher)
    )
    if name != call:
        run(1)
        look_up_ops()
    return run


def count_in_children(backend: str, types: int) -> None:
    """Counts all rows of a backend, each in a process of its own, and prints as JSON what the caller needs."""
    from callgrind import DUMP, START, ZERO, Client

    for i in range(types):
        hasattr(type(f"Spare{i}", (), {}), "found")  # the first look-up gives a type its number
    client = Client()
    dispatch.statement_names(backend, "ours")
    features = importlib.import_module("numpy._core._multiarray_umath").__cpu_features__
    vectors = [name for name, on in features.items() if on and name.startswith(("AVX", "X86_V"))]
    print(json.dumps({"vectors": vectors}), flush=True)
    for row in rows_of_backend(backend):
        process = os.fork()
        if process == 0:
            try:
                run = row_runner(backend, row)
                gc.disable()  # when the collector runs, and what it costs, depends on all other objects
                client.request(START)
                run(WARM * row[2] // COUNTED)
                client.request(ZERO)
                run(row[2])
                client.request(DUMP)
                print(json.dumps({"row": row, "process": os.getpid()}), flush=True)
            finally:
                os._exit(0)
        os.waitpid(process, 0)


def run_in_callgrind(command: list[str], out: Path, surroundings: dict[str, str], *options: str) -> str:
    """Runs a program in callgrind and returns what it prints; the counts are in the folder `out`."""
    program = ["valgrind", "--tool=callgrind", f"--callgrind-out-file={out}/%p", *options, sys.executable, *command]
    completed_process = subprocess.run(program, capture_output=True, text=True, env=surroundings, check=False)
    if completed_process.returncode:
        raise UncountableError(completed_process.stderr[-800:])
    return completed_process.stdout


def instruction_total(file: Path) -> int:
    """Returns the number of instructions in a file of callgrind."""
    total_match = re.search(r"^(?:summary|totals): (\d+)", file.read_text(encoding="utf-8"), re.MULTILINE)
    if total_match is None:
        raise UncountableError(f"{file} has no counts")
    return int(total_match[1])


def count_rows(backend: str) -> tuple[str, dict[str, float]]:
    """Returns the key of the record of a backend, and the instructions of each row."""
    instructions_by_row: dict[tuple[str, str], float] = {}
    for types in SPARE_TYPES:
        with tempfile.TemporaryDirectory() as folder:
            command = [__file__, "--child", backend, str(types)]
            printed = run_in_callgrind(command, Path(folder), counting_environment(), "--instr-atstart=no")
            head, *lines = map(json.loads, printed.splitlines())
            for line in lines:
                name, dispatcher, calls = line["row"]
                instructions = instruction_total(Path(folder, f"{line['process']}.1")) / calls
                instructions_by_row[name, dispatcher] = min(
                    instructions, instructions_by_row.get((name, dispatcher), instructions)
                )
    missing_rows = [
        name for name, dispatcher, _ in rows_of_backend(backend) if (name, dispatcher) not in instructions_by_row
    ]
    if missing_rows:
        raise UncountableError(f"{backend} cannot run {', '.join(missing_rows)}; run benchmarks/dispatch.py to see why")
    added_instructions = {}
    for (name, dispatcher), instructions in instructions_by_row.items():
        if dispatcher == "ours":
            added_instructions[name] = round(
                instructions - instructions_by_row.get((name.removesuffix(" looked up"), "native"), 0)
            )
    return record_key(backend, head["vectors"]), added_instructions


def count_import(program: str) -> int:
    """Returns the number of instructions of a program on NumPy, whose bytecode is cached."""
    subprocess.run([sys.executable, "-c", program], env=counting_environment("numpy"), check=True)
    with tempfile.TemporaryDirectory() as folder:
        run_in_callgrind(["-c", program], Path(folder), counting_environment("numpy"))
        return instruction_total(next(Path(folder).iterdir()))


def import_instructions() -> dict[str, float]:
    """Returns the instructions of each import that are added to those of `import numpy`."""
    numpy_instructions = count_import("import numpy")
    return {name: count_import(f"import numpy; {program}") - numpy_instructions for name, program in IMPORTS.items()}


def record_key(backend: str, vectors: list[str]) -> str:
    """Returns what the counts depend on."""
    build_options = sysconfig.get_config_var("CONFIG_ARGS") or ""
    optimization_text = "optimized" if "--enable-optimizations" in build_options else "not optimized"
    python = f"{platform.python_implementation()} {'.'.join(platform.python_version_tuple()[:2])}"
    library = f"{backend} {version(backend).partition('+')[0]}"
    return (
        f"{library}, {python} ({platform.python_compiler()}, {optimization_text}), {platform.machine()} {vectors[-1]}"
    )


def compare_rows(title: str, current_counts: dict[str, float], recorded: dict[str, float]) -> list[str]:
    """Prints the rows beside the recorded ones and returns the names of those that take more, or are not recorded."""
    print(f"\n{title}\n{'instructions added':42}{'recorded':>12}{'now':>12}{'difference':>12}")
    worse_rows = []
    for name, value in current_counts.items():
        recorded_count = recorded.get(name)
        if recorded_count is None:
            print(f"{name:42}{'-':>12}{value:12.0f}   NOT RECORDED")
            worse_rows.append(name)
            continue
        is_more = value - recorded_count > max(FLOOR, SHARE * abs(recorded_count))
        fewer = recorded_count - value > max(FLOOR, SHARE * abs(recorded_count))
        note = "   MORE" if is_more else "   fewer: record it" if fewer else ""
        print(f"{name:42}{recorded_count:12.0f}{value:12.0f}{value - recorded_count:+12.0f}{note}")
        worse_rows += [name] if is_more else []
    return worse_rows


def measure_backends(backends: list[str]) -> dict[str, dict[str, float]]:
    """Returns the instructions by key and row; the backends run side by side, which changes no count."""
    with ThreadPoolExecutor(os.cpu_count()) as pool:
        import_future = pool.submit(import_instructions) if "numpy" in backends else None
        counts = dict(pool.map(count_rows, backends))
    if import_future is not None:
        counts[next(name for name in counts if name.startswith("numpy"))] |= import_future.result()
    return counts


def main() -> int:
    """Counts, compares or records, and returns the exit status."""
    if sys.argv[1:2] == ["--child"]:
        count_in_children(sys.argv[2], int(sys.argv[3]))
        return 0
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--record", action="store_true", help="write the counts into benchmarks/instructions.json")
    parser.add_argument("--backend", action="append", choices=list(dispatch.MODULES), help="only this one (repeatable)")
    options = parser.parse_args()
    if not shutil.which("valgrind"):
        print("valgrind is not installed, so no instructions can be counted (Debian: apt-get install valgrind)")
        return 1
    backends = options.backend or [name for name, module in dispatch.MODULES.items() if dispatch.is_installed(module)]
    for name in sorted(set(dispatch.MODULES) - set(backends)):
        print(f"{name} is left out: it is not installed, or --backend names others")
    try:
        counts = measure_backends(backends)
    except UncountableError as error:
        print(f"the instructions cannot be counted:\n{error}")
        return 1
    record: dict[str, dict[str, float]] = json.loads(RECORD.read_text(encoding="utf-8")) if RECORD.exists() else {}
    worse_rows, unknown_keys = [], []
    for name, current_counts in counts.items():
        worse_rows += (
            compare_rows(name, current_counts, record.get(name, {})) if name in record or options.record else []
        )
        unknown_keys += [] if name in record else [name]
    if options.record:
        RECORD.write_text(json.dumps(record | counts, indent=1, sort_keys=True) + "\n", encoding="utf-8")
        print(f"\nrecorded in {RECORD.name}")
        return 0
    for name in unknown_keys:
        print(f"\nno counts are recorded for: {name}")
        print("check out the commit to compare with, run `make bench-record`, and come back to this one")
    for name in worse_rows:
        print(f"\n{name}: more instructions than recorded; if they are meant, run `make bench-record`")
    return 1 if worse_rows or unknown_keys else 0


if __name__ == "__main__":
    sys.exit(main())
