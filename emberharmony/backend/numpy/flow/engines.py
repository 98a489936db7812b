"""Engines of compiled functions: other libraries that run what was recorded, on NumPy arrays.

A function is recorded once, in two ways that share their registers: as the calls of NumPy, and as the calls of ops that
made them. An engine is a runner of one of these programs and takes the place of the function that repeats the calls of
NumPy; all else of a compiled function stays as it is: its guards, its cells and effects, and that the function itself
runs where the runner raises an error.

PyTorch and JAX run the program of ops. Each library makes it with its own ops, traces it once and compiles it. Its
inputs are arrays alone: those of the function, then random numbers, which NumPy draws before each run, then constants.
Results that are views of an argument are left to NumPy, which shares the memory. Numba makes one loop of each run of
elementwise calls of NumPy.

When an engine is tried, its results are compared with those of NumPy, so a program that the library computes otherwise
is refused. Results that share memory with an argument, with each other or with those of the next run, although those of
NumPy do not, are copied in each run.
"""

import importlib.util
import threading
import time
import warnings
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from typing import Any

import numpy as np

from emberharmony.backend.discovery import install_line, load
from emberharmony.backend.numpy.flow.lowering import NumpyRecorder
from emberharmony.backend.numpy.flow.portable import Runner, runner_by_ops
from emberharmony.backend.numpy.flow.replay import replay_of
from emberharmony.core.errors import BackendUnavailableError, EmberError, EngineWarning
from emberharmony.core.state.draws import Rewinding
from emberharmony.transforms.compilation import AUTO, ENGINES

_SHORTEST = {"torch": 40e-6, "jax": 150e-6, "numba": 8e-6}
"""A program that takes less time is not given to the engine: the call of its compiled function takes that much."""

_GAIN = 0.9
"""An engine is chosen if it takes less than this part of the time of NumPy, so that noise chooses none."""

_TURNS, _TURN, _MOST = 5, 1e-3, 1.0
"""How many turns each candidate takes, the seconds of a turn, and the seconds after which no further turn begins."""

_CLOSE = {"f": 1e-4, "F": 1e-4, "d": 1e-9, "D": 1e-9}
"""How far a result may differ, as a part of its largest element, by the character of its dtype."""


class RefusedError(EmberError):
    """Raised if the results of an engine differ from those of NumPy."""


class Engines:
    """The choice of the engine, a library such as Numba, that runs a compiled function's programs.

    Args:
        name: the name of an engine, or "auto".
        tell: is called with the engine of each program, None for none.

    Raises:
        BackendUnavailableError: if the engine is not installed.
    """

    def __init__(self, name: str, tell: Callable[[str | None], None] = lambda name: None) -> None:
        self.name, self.tell = name, tell
        self._choices: dict[Any, str] = {}
        self._is_warned = False
        if name == AUTO:
            return
        if not _is_installed(name):
            raise BackendUnavailableError(
                f"compile(engine={name!r}): {name} is not installed: {install_line(name)}, or the extra {name!r} of "
                f"emberharmony"
            )
        if name != "numba":
            load(name)

    def try_on_program(
        self, program: Any, recorder: NumpyRecorder, inputs: Sequence[np.ndarray], outputs: Sequence[Any]
    ) -> None:
        """Sets the runner of a program to that of the chosen engine, or to a trial that chooses one later.

        Args:
            program: the program, whose `replay` runs it on NumPy.
            recorder: the record of its calls.
            inputs: its inputs.
            outputs: registers, or arrays that are the same for all inputs.
        """
        size_class = sum(x.size for x in inputs).bit_length()
        engine_key = program.frame, size_class, tuple((x.ndim, x.dtype) for x in inputs)
        numpy_runner = program.replay
        # If the trial is interrupted, it stays in its place for the next call.
        trial = program.replay = EngineTrial(
            self, engine_key, (recorder, len(inputs), outputs), numpy_runner, partial(setattr, program, "replay")
        )
        trial.choose(inputs)

    def candidate_names(self, seconds: float, kind: Any) -> Iterator[str]:
        """Yields the names of the engines to try for a program that takes NumPy `seconds`.

        Args:
            seconds: the time.
            kind: what the program has in common with others, for which one choice serves.
        """
        if self.name != AUTO:
            yield self.name
            return
        for name in [self._choices[kind]] if kind in self._choices else ENGINES:
            if name and seconds > _SHORTEST[name] and _is_installed(name) and (name != "jax" or _uses_64_bits()):
                yield name

    def note_choice(self, kind: Any, name: str) -> None:
        """Stores the choice for a kind of programs: the name of an engine, or "" for NumPy."""
        self._choices[kind] = name

    def warn(self, name: str, error: Exception) -> None:
        """Warns once that the engine that was asked for cannot run a program."""
        if self.name == AUTO or self._is_warned:
            return
        self._is_warned = True
        reason = str(error).strip().partition("\n")[0][:300] or type(error).__name__
        warnings.warn(
            f"compile(engine={name!r}): NumPy computes, because the engine cannot run the program: {reason}",
            EngineWarning,
            stacklevel=8,  # the line that calls the compiled function
        )


class EngineTrial:
    """The runner of a program until an engine is chosen: it runs NumPy's, and in one call times the engines.

    An interruption leaves the choice to the next call.

    Args:
        engines: what chooses.
        kind: see `Engines.candidates`.
        record: the record of the calls, the number of inputs, and the outputs.
        plain: the runner of NumPy.
        adopt: takes the runner that is chosen.
    """

    def __init__(
        self,
        engines: Engines,
        kind: Any,
        record: tuple[NumpyRecorder, int, Sequence[Any]],
        numpy_runner: Runner,
        adopt: Callable[[Runner], None],
    ) -> None:
        self._engines, self._kind, self._numpy_runner, self._adopt = engines, kind, numpy_runner, adopt
        self._record = record
        self._lock, self._is_over = threading.Lock(), False

    def __call__(self, inputs: Sequence[Any]) -> list[Any]:
        """Returns the outputs of the program for inputs."""
        self.choose(inputs)
        return self._numpy_runner(inputs)

    def choose(self, inputs: Sequence[Any]) -> None:
        """Chooses the runner of the program, unless another thread is already choosing it.

        Args:
            inputs: the inputs with which each runner is tried.
        """
        if self._lock.acquire(blocking=False):
            try:
                if not self._is_over:
                    self._choose_engine(inputs)
                    self._is_over = True
            finally:
                self._lock.release()

    def _choose_engine(self, inputs: Sequence[Any]) -> None:
        expected_outputs = outputs_of(self._numpy_runner, inputs)
        seconds = min(_mean_seconds(self._numpy_runner, inputs, 1) for _ in range(2))
        runner_by_engine: dict[str, Runner] = {"": self._numpy_runner}
        for engine_name in self._engines.candidate_names(seconds, self._kind):
            try:
                runner_by_engine[engine_name] = checked_runner(self._runner(engine_name), inputs, expected_outputs)
            except Exception as error:  # noqa: BLE001  (whatever a library raises, NumPy computes)
                self._engines.warn(engine_name, error)
        if self._engines.name == AUTO:
            engine_name = fastest_runner_name(runner_by_engine, inputs, seconds)
            self._engines.note_choice(self._kind, engine_name)
        else:
            engine_name = [*runner_by_engine][-1]
        self._adopt(runner_by_engine[engine_name])
        self._engines.tell(engine_name or None)

    def _runner(self, name: str) -> Runner:
        recorder, inputs, outputs = self._record
        if name == "numba":
            # Imported here, because it imports Numba.
            from emberharmony.backend.numpy.flow.loops import Loops

            return replay_of(recorder, inputs, outputs, runner=Loops)
        return runner_by_ops(load(name), recorder, inputs, outputs)


def outputs_of(runner: Runner, inputs: Sequence[Any]) -> list[Any]:
    """Returns the outputs of a runner, and rewinds the random streams, so that its draws are repeated later."""
    streams = Rewinding()
    try:
        with streams:
            return runner(inputs)
    finally:
        streams.rewind()


def _mean_seconds(runner: Runner, inputs: Sequence[Any], count: int) -> float:
    """Returns the mean time in seconds of `count` runs of a runner."""
    streams = Rewinding()
    try:
        with streams:
            start = time.perf_counter()
            for _ in range(count):
                runner(inputs)
            return (time.perf_counter() - start) / count
    finally:
        streams.rewind()


def fastest_runner_name(runners: dict[str, Runner], inputs: Sequence[Any], seconds: float) -> str:
    """Returns the name of the fastest runner, which is "" unless an engine saves a tenth of the time.

    They take turns, so that the load of the machine meets all alike, and the least time of each counts.

    Args:
        runners: the runners by name, that of NumPy with the name "".
        inputs: the inputs.
        seconds: about the time that the runner of NumPy takes.
    """
    if len(runners) == 1:
        return ""
    run_count, deadline = max(1, int(_TURN / seconds)), time.perf_counter() + _MOST
    least_seconds_by_engine = dict.fromkeys(runners, float("inf"))
    for _ in range(_TURNS):
        for name, runner in runners.items():
            least_seconds_by_engine[name] = min(least_seconds_by_engine[name], _mean_seconds(runner, inputs, run_count))
        if time.perf_counter() > deadline:
            break
    name = min(least_seconds_by_engine, key=least_seconds_by_engine.__getitem__)
    return name if least_seconds_by_engine[name] < _GAIN * least_seconds_by_engine[""] else ""


def checked_runner(runner: Runner, inputs: Sequence[Any], expected_outputs: Sequence[np.ndarray]) -> Runner:
    """Returns the runner of an engine, after a check that its outputs equal those of NumPy.

    Raises:
        RefusedError: if they are not.
    """
    first_outputs, second_outputs = outputs_of(runner, inputs), outputs_of(runner, inputs)
    for first_result, second_result in zip(first_outputs, expected_outputs, strict=True):
        _check_close(first_result, second_result)
    copied_indices = [
        i
        for i in range(len(first_outputs))
        if _shares_memory(i, first_outputs, second_outputs, inputs, expected_outputs)
    ]
    readonly_indices = [i for i, array in enumerate(expected_outputs) if not array.flags.writeable]
    if not copied_indices and not readonly_indices:
        return runner

    def run(inputs: Sequence[Any]) -> list[Any]:
        outputs = runner(inputs)
        for i in copied_indices:
            outputs[i] = outputs[i].copy()
        for i in readonly_indices:
            outputs[i].flags.writeable = False
        return outputs

    return run


def _shares_memory(
    i: int,
    first: Sequence[np.ndarray],
    second: Sequence[np.ndarray],
    inputs: Sequence[np.ndarray],
    expected_outputs: Sequence[np.ndarray],
) -> bool:
    """Returns whether an engine's output shares memory with an input or another output, although NumPy's does not.

    Args:
        i: the number of the output.
        first: the outputs of a run.
        second: those of the next run with the same inputs.
        inputs: the inputs.
        expected_outputs: the outputs of NumPy.
    """
    array, expected_array = first[i], expected_outputs[i]
    array_pairs = [*zip(first[:i], expected_outputs[:i], strict=True), *zip(inputs, inputs, strict=True)]
    if any(np.may_share_memory(array, x) and not np.may_share_memory(expected_array, y) for x, y in array_pairs):
        return True
    shares_input = any(np.may_share_memory(array, x) for x in inputs)
    return not shares_input and any(np.may_share_memory(array, x) for x in second)


def _check_close(array: np.ndarray, expected_array: np.ndarray) -> None:
    """Checks that an array equals an expected array up to rounding errors.

    Raises:
        RefusedError: if it is not.
    """
    if array.shape != expected_array.shape or array.dtype != expected_array.dtype:
        raise RefusedError(
            f"it returns {array.dtype} of shape {array.shape}, where NumPy returns {expected_array.dtype} of "
            f"{expected_array.shape}"
        )
    is_equal = array == expected_array
    if array.dtype.kind not in "biu":
        with np.errstate(all="ignore"):
            tolerance = _CLOSE.get(array.dtype.char, 1e-2)
            largest_magnitude = np.max(np.abs(expected_array), where=np.isfinite(expected_array), initial=0.0)
            is_equal |= np.abs(array - expected_array) <= tolerance * largest_magnitude
            is_equal |= (array != array) & (expected_array != expected_array)
    if not np.all(is_equal):
        raise RefusedError("its results differ from those of NumPy by more than rounding")


def _is_installed(name: str) -> bool:
    try:
        return importlib.util.find_spec(name) is not None
    except ImportError:  # an import hook forbids the library
        return False


def _uses_64_bits() -> bool:
    """Returns whether JAX computes in 64 bits already, which to load its backend would mean for the whole process."""
    import sys

    jax = sys.modules.get("jax")
    return jax is not None and bool(jax.config.jax_enable_x64)
