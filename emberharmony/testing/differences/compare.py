"""Comparison of a program on two backends, which names the op that is wrong, and the backend on which it is wrong."""

import contextlib
import functools
import inspect
import math
import os
import tempfile
import zipfile
from collections.abc import Callable, Sequence
from operator import methodcaller
from typing import Any

import numpy as np

from emberharmony import ops
from emberharmony.core.errors import ArgumentError
from emberharmony.core.trees.tree import tree_leaves, tree_map
from emberharmony.testing.differences.copies import copy_program, stateful_objects
from emberharmony.testing.differences.judge import Judge
from emberharmony.testing.differences.live import Following
from emberharmony.testing.differences.lockstep import Lockstep
from emberharmony.testing.differences.report import Report, environment
from emberharmony.testing.differences.runs import Stopped, Watch, run_program, to_host_array, with_host_draws
from emberharmony.testing.differences.spool import MEMORY, Calls, Reader, Writer


def compare_backends(
    fn: Callable[..., Any],
    *inputs: Any,
    backends: Sequence[Any] = ("torch", "mlx"),
    reference: str = "float64",
    stop: str = "first",
    tolerance: float | None = None,
    gradients: bool = False,
    device: str | None = None,
    thorough: bool = False,
) -> Report:
    """Returns the comparison of a program on two backends; see `emberharmony.compare`."""
    _check_arguments(backends, reference, stop, tolerance)
    first_backend, second_backend = map(with_host_draws, backends)
    report = _new_report(backends, first_backend, second_backend, tolerance)
    program = _program_with_gradients(fn) if gradients else fn
    host_inputs = tree_map(to_host_array, inputs)
    with tempfile.TemporaryDirectory(prefix="emberharmony-") as folder, contextlib.ExitStack() as stack:
        writers = [Writer(os.path.join(folder, name), MEMORY) for name in ("first", "second")]
        for writer in writers:
            stack.callback(writer.close)

        first_calls = Calls()
        keep_record = methodcaller("keep", writers[1])
        lockstep = Lockstep(
            report, first_calls, (first_backend, second_backend), Judge(tolerance), keep_record, stop, thorough
        )
        run_watchers = Watch(first_calls.add, writers[0]), Following(lockstep.compare_next)
        error_texts = [
            run_program(*copy_program(program, host_inputs), side, watch, device or "")
            for side, watch in zip((first_backend, second_backend), run_watchers, strict=True)
        ]
        lockstep.finish(error_texts)
    return report


def record(
    fn: Callable[..., Any], *inputs: Any, path: str, backend: Any, gradients: bool = False, device: str | None = None
) -> None:
    """Runs a program on a backend and writes its calls with all values into a file, for `compare_logs`.

    Args:
        fn: see `emberharmony.compare`.
        inputs: see `emberharmony.compare`.
        path: the file.
        backend: the name of the backend, or a backend.
        gradients: see `emberharmony.compare`.
        device: see `compare`.
    """
    host_drawing_backend = with_host_draws(backend)
    folder, name = os.path.split(os.path.abspath(path))
    with tempfile.TemporaryDirectory(prefix=f".{name}-", dir=folder) as temporary_folder:
        writer = Writer(os.path.join(temporary_folder, name))
        try:
            program = _program_with_gradients(fn) if gradients else fn
            run_watcher = Watch(writer.add, writer)
            error_text = run_program(
                *copy_program(program, tree_map(to_host_array, inputs)), host_drawing_backend, run_watcher, device or ""
            )
            writer.close(
                {
                    "backend": host_drawing_backend.name,
                    "error": error_text,
                    "environment": environment([host_drawing_backend]),
                }
            )
        finally:
            writer.close()
        os.replace(os.path.join(temporary_folder, name), path)


def compare_logs(
    one: str, other: str, stop: str = "first", tolerance: float | None = None, thorough: bool = False
) -> Report:
    """Compares two files that `record` wrote, perhaps on two machines; see `emberharmony.compare`.

    Raises:
        ArgumentError: if a file is no such log, or is damaged.
        OSError: if a file cannot be read.
    """
    _check_arguments(("", ""), "float64", stop, tolerance)
    with contextlib.ExitStack() as stack:
        readers = []
        for path in (one, other):
            readers.append(Reader(path))
            stack.callback(readers[-1].close)
        log_notes = [_notes_of_log(reader) for reader in readers]
        backend_names = [str(note.get("backend", "?")) for note in log_notes]
        report = Report(_distinct_names(backend_names), {})
        report._tolerance = tolerance
        for side, note in zip(report.sides, log_notes, strict=True):
            library_versions = note.get("environment", {})
            report.environment |= {f"{key} of {side}": value for key, value in library_versions.items()}
        backends = [_available_backend(name) for name in backend_names]
        lockstep = Lockstep(report, readers[0], backends, Judge(tolerance), lambda record: record, stop, thorough)
        with contextlib.suppress(Stopped):
            while (record := readers[1].next()) is not None:
                lockstep.compare_next(record)
        lockstep.finish([str(note.get("error", "")) for note in log_notes])
    return report


def _check_arguments(backends: Sequence[Any], reference: str, stop: str, tolerance: float | None) -> None:
    if isinstance(backends, str) or len(backends) != 2:
        raise ArgumentError(f"compare() takes two backends, such as ('torch', 'mlx'), not {backends!r}")
    if reference != "float64":
        raise ArgumentError(f"compare() judges by 'float64', not {reference!r}")
    if stop not in ("first", "all"):
        raise ArgumentError(f"compare() stops at 'first' or compares 'all', not {stop!r}")
    if tolerance is not None and not 0 < tolerance < math.inf:
        raise ArgumentError(f"tolerance is a positive number, not {tolerance!r}")


def _new_report(backends: Sequence[Any], one: Any, other: Any, tolerance: float | None) -> Report:
    report = Report(_distinct_names([one.name, other.name]), environment([one, other]))
    report._tolerance = tolerance
    return report


def _distinct_names(names: Sequence[str]) -> list[str]:
    return list(names) if names[0] != names[1] else [f"{names[0]} (1)", f"{names[1]} (2)"]


def _notes_of_log(reader: Reader) -> dict[str, Any]:
    """Returns the notes at the end of a file of recorded calls: the backend, the environment and the error of the run.

    Raises:
        ArgumentError: if it has none.
    """
    if not reader.notes:
        raise ArgumentError(f"the log {reader.path} ends without its notes: the run was interrupted")
    return reader.notes


def _available_backend(name: str) -> Any:
    try:
        return with_host_draws(name)
    except Exception:  # noqa: BLE001  (the log may come from a machine with other libraries)
        return None


def _program_with_gradients(fn: Callable[..., Any]) -> Callable[..., Any]:
    """Returns a program that also computes the gradients of the sum of its results."""

    def program(*arguments: Any) -> Any:
        def sum_results(*inputs: Any) -> Any:
            float_leaves = [x for x in tree_leaves(fn(*inputs)) if ops.is_tensor(x) and ops.dtype(x).is_floating]
            if not float_leaves:
                return ops.zeros(())
            # The sum is made by `ops.add`, because MLX's operator `+` refuses a constant beside a traced tensor.
            return functools.reduce(ops.add, map(ops.sum, float_leaves))

        trained_objects = stateful_objects(fn)
        if trained_objects:
            return ops.backward(lambda: sum_results(*arguments), trained_objects)
        float_positions = [i for i, x in enumerate(arguments) if ops.is_tensor(x) and ops.dtype(x).is_floating]
        if not float_positions:
            raise ArgumentError("compare(gradients=True) finds neither parameters nor floating inputs")
        return ops.value_and_grad(sum_results, argnums=float_positions)(*arguments)

    return program


def inputs_of(path: str, fn: Callable[..., Any]) -> list[Any]:
    """Returns the arrays of an npz file as arguments: in the order of the parameters of `fn`, or else of the file.

    Raises:
        ArgumentError: if the file is no npz file of arrays.
        OSError: if it cannot be read.
    """
    try:
        with np.load(path) as archive:
            array_by_name = dict(archive.items())
    except (ValueError, AttributeError, TypeError, zipfile.BadZipFile) as error:
        raise ArgumentError(f"{path} is no npz file of arrays, as numpy.savez writes: {error}") from error
    with contextlib.suppress(TypeError, ValueError):
        parameter_names = [name for name in inspect.signature(fn).parameters if name in array_by_name]
        if len(parameter_names) == len(array_by_name):
            return [array_by_name[name] for name in parameter_names]
    return list(array_by_name.values())
