"""A run of a program on one backend, with a watcher that passes each call to a function."""

import contextlib
import functools
import os
import sys
from collections.abc import Callable, Iterator
from contextvars import ContextVar
from pathlib import Path
from typing import Any

import numpy as np

from emberharmony import ops
from emberharmony.backend.discovery import load
from emberharmony.backend.shared.random import Generator
from emberharmony.backend.shared.random_parameters import floating_dtype
from emberharmony.backend.shared.random_streams import HOST
from emberharmony.core import selection
from emberharmony.core.dispatch import Bound
from emberharmony.core.errors import ArgumentTypeError, EmberError, TracedTensorError, brief
from emberharmony.core.registry import OpSpec
from emberharmony.core.trees.tree import tree_map
from emberharmony.testing.differences.arguments import RESULT
from emberharmony.testing.differences.records import NO_OPTIONS, Host, Record, encode, to_host
from emberharmony.testing.differences.spool import Writer
from emberharmony.transforms.logs.lines import line_of, line_text
from emberharmony.transforms.observe import Observation, WatchedCall, Watcher

STREAM: ContextVar[Generator] = ContextVar("emberharmony_compared_stream")
"""The random stream on the host for ops without a seed, so that both runs draw the same numbers."""

_LEFT_OUT = frozenset(("eval", "synchronize"))
"""The ops that are not recorded: they return nothing, and their arguments are results of recorded calls."""


OPTIMIZER = "(optimizer)"
"""The path of the calls that optimizers make; which ones these are may depend on the backend."""

_OPTIMIZERS = str(Path(ops.__file__).parents[1] / "optim") + os.sep


class Stopped(BaseException):
    """Raised to stop a run early; it is no `Exception`, so that the program does not catch it."""


class _Portable:
    """A mixin of backend classes that draws random numbers on the host, and makes optimizers call the same ops."""

    bound: Bound
    joinable = 2**14

    def standard_uniform(self, shape: Any, dtype: Any = None) -> Any:
        """Returns uniform random numbers that are drawn on the host."""
        return self._tensor(STREAM.get().uniform(shape, floating_dtype(dtype)), floating_dtype(dtype))

    def standard_normal(self, shape: Any, dtype: Any = None) -> Any:
        """Returns normal random numbers that are drawn on the host."""
        return self._tensor(STREAM.get().normal(shape, floating_dtype(dtype)), floating_dtype(dtype))

    def _tensor(self, array: Any, dtype: Any) -> Any:
        return self.bound.cast(self.bound.convert_to_tensor(array), dtype)


def with_host_draws(name_or_backend: Any) -> Any:
    """Returns a backend that stands for another one and draws its numbers on the host; there is one for each.

    Args:
        name_or_backend: the name of a backend, or a backend.

    Raises:
        BackendNotFoundError: if the name is unknown.
        BackendUnavailableError: if its library is missing.
    """
    plain_backend = (load(name_or_backend) if isinstance(name_or_backend, str) else name_or_backend).without_watchers
    backend: Any = plain_backend.__dict__.get("_portable")
    if backend is None:
        backend_class: Any = type(plain_backend)
        backend = object.__new__(
            type(backend_class.__name__, (_Portable, backend_class), {"__module__": backend_class.__module__})
        )
        vars(backend).update({name: value for name, value in vars(plain_backend).items() if not name.startswith("_")})
        backend.take_prefix()
        backend.bound = Bound(backend)
        plain_backend.__dict__["_portable"] = backend
    return backend


@contextlib.contextmanager
def separate_streams() -> Iterator[None]:
    """Starts the random streams anew for a `with` block, and restores their states after it."""
    host_streams = HOST.get()
    state_before = host_streams.state_dict()
    stream_token = STREAM.set(Generator(0))
    try:
        yield
    finally:
        STREAM.reset(stream_token)
        host_streams.load_state_dict(state_before)


class Watch(Watcher):
    """A watcher that records the outermost calls of a program and passes each record to a function.

    Calls inside of functions that `ops.scan` and others call are calls of the program.

    Args:
        tell: the function.
        writer: keeps the tensors; without it they are in memory.
        inside: whether it also tells calls inside of composites, before the composite.
    """

    backward = True
    returned = Record
    """The class of the record of what the program returned."""

    def __init__(self, tell: Callable[[Record], None], writer: Writer | None = None, inside: bool = False) -> None:
        self._tell, self._writer, self._inside = tell, writer, inside
        self._count = 0

    def before(self, call: WatchedCall) -> None:
        """Records the arguments of a call before its op runs, because the op may change them."""
        if self._is_hidden(call):
            return
        backend, tensors, last_call_numbers = call.backend, list[Host](), list[int]()
        call_number = self._count
        self._count += 1

        def add_tensor(tensor: Any) -> int:
            host, last_call_number = self._host_and_last_call(tensor, backend, call_number)
            tensors.append(host)
            last_call_numbers.append(last_call_number)
            return len(tensors) - 1

        encoded_arguments = encode(call.args, backend, add_tensor)
        encoded_keywords = encode(call.kwargs, backend, add_tensor) if call.kwargs else NO_OPTIONS
        op_name = call.spec.name
        file_and_line = line_of(op_name)
        module_path = path_of(call, sys._getframe(2), file_and_line[0])
        record = Record(
            op_name,
            module_path,
            line_text(file_and_line),
            call.gradient_of,
            backend.name,
            encoded_arguments,
            encoded_keywords,
            tensors,
            last_call_numbers,
            call_number,
        )
        record._inputs, record.streams = tensors, stream_states(call)
        call.kept[self] = record

    def after(self, call: WatchedCall, result: Any) -> None:
        """Adds the result to the record of a call, and passes the record to the function."""
        record: Record | None = call.kept.pop(self, None)
        if record is not None:
            results, tensors, writer, backend = list[Host](), record.tensors, self._writer, call.backend

            def add_tensor(tensor: Any) -> int:
                host_tensor = to_host(tensor, backend)
                if writer is not None:
                    host_tensor, _ = writer.keep(tensor, host_tensor, record.number)
                results.append(host_tensor)
                return len(tensors) + len(results) - 1

            record.result = encode(result, backend, add_tensor)
            record._results = results
            record.tensors = [*tensors, *results]
            self._tell(record)

    def on_error(self, call: WatchedCall, error: Exception) -> None:
        """Passes the record of a call that raised an error to the function."""
        record: Record | None = call.kept.pop(self, None)
        if record is not None and not getattr(error, "of_watcher", False):
            record.error, record.result = f"{type(error).__name__}: {error}", {"u": []}
            self._tell(record)

    def on_unseen_calls(self, text: str) -> None:
        """Stops the run at a call that watchers cannot see, because the other run's calls would have no counterpart.

        Raises:
            TracedTensorError: always.
        """
        raise TracedTensorError(text)

    def finish(self, result: Any, backend: Any) -> None:
        """Passes the program's results to the function, as the argument of a last record.

        Args:
            result: what it returned.
            backend: the backend.
        """
        tensors, last_call_numbers, call_number = list[Host](), list[int](), self._count

        def add_tensor(tensor: Any) -> int:
            host, last_call_number = self._host_and_last_call(tensor, backend, call_number)
            tensors.append(host)
            last_call_numbers.append(last_call_number)
            return len(tensors) - 1

        encoded_arguments = {"u": [encode(result, backend, add_tensor)]}
        record = self.returned(
            RESULT,
            "",
            "",
            "",
            backend.name,
            encoded_arguments,
            NO_OPTIONS,
            tensors,
            last_call_numbers,
            call_number,
            {"u": []},
        )
        record._inputs, record._results = tensors, []
        self._tell(record)

    def _host_and_last_call(self, tensor: Any, backend: Any, number: int) -> tuple[Host, int]:
        """Returns a tensor on the host, and the number of the call that had it last, as in `Record.seen`."""
        host_tensor = to_host(tensor, backend)
        # The op may write into its arguments, and a host array may share their memory.
        return (
            (host_tensor.copy_in_memory(), -1)
            if self._writer is None
            else self._writer.keep(tensor, host_tensor, number)
        )

    def _is_hidden(self, call: WatchedCall) -> bool:
        if call.spec.name in _LEFT_OUT or _takes_callable(call.spec):
            return True
        outer_call = call.outer
        while outer_call is not None and not self._inside:
            if not _takes_callable(outer_call.spec):
                return True
            outer_call = outer_call.outer
        return False


@functools.cache
def _takes_callable(spec: OpSpec) -> bool:
    return spec.takes_callable


@functools.cache
def draws_numbers(spec: OpSpec) -> bool:
    """Returns whether an op draws random numbers."""
    return spec.category in ("random", "distributions") or spec.name == "dropout"


def stream_states(call: WatchedCall) -> Any:
    """Returns the states of the streams that a random op is about to draw from; None for other ops."""
    if not draws_numbers(call.spec):
        return None
    return [STREAM.get().state_dict(), HOST.get().state_dict()]


def path_of(call: WatchedCall, frame: Any, end: str) -> str:
    """Returns the path of the `nn` module that makes a call, or `OPTIMIZER` for a call of an optimizer.

    Args:
        call: the call.
        frame: a frame of the call.
        end: the file of the user's line.
    """
    if not call.path and not call.gradient_of:
        while frame is not None and frame.f_code.co_filename != end:
            if frame.f_code.co_filename.startswith(_OPTIMIZERS):
                return OPTIMIZER
            frame = frame.f_back
    return call.path


def run_program(fn: Callable[..., Any], inputs: Any, backend: Any, watch: Watch, device: str = "") -> str:
    """Runs a program on a backend; returns the error that it raised, or "".

    Args:
        fn: the program.
        inputs: its arguments: trees of arrays and other values.
        backend: a backend that `with_host_draws` returned.
        watch: sees the calls.
        device: the device to run on; "" for the default.
    """
    with contextlib.ExitStack() as stack:
        stack.enter_context(separate_streams())
        stack.enter_context(selection.Override(backend))
        if device and backend.name != "numpy":
            stack.enter_context(ops.device(device))
        input_tensors = tree_map(_to_active_backend, tuple(inputs))
        stack.enter_context(Observation(watch))
        try:
            watch.finish(fn(*input_tensors), backend)
        except Stopped:
            return ""
        except Exception as error:
            if getattr(error, "of_watcher", False):
                raise
            return f"{type(error).__name__}: {error}"
    return ""


def to_host_array(leaf: Any) -> Any:
    """Returns a tensor of any backend as a host array; anything else unchanged.

    Raises:
        ArgumentTypeError: if a tensor belongs to no backend.
    """
    if isinstance(leaf, (np.ndarray, np.generic)) or not hasattr(leaf, "__dlpack__"):
        return leaf
    try:
        with ops.use_backend(like=leaf):
            return np.asarray(ops.to_numpy(leaf))
    except EmberError as error:
        raise ArgumentTypeError(f"compare() cannot convert {brief(leaf)}: {error}") from error


def _to_active_backend(leaf: Any) -> Any:
    """Returns a host array as a tensor of the active backend; anything else unchanged."""
    return ops.convert_to_tensor(leaf, copy=True) if isinstance(leaf, (np.ndarray, np.generic)) else leaf
