"""The calls of a run that is compared while it runs: their tensors are read in the run's memory, without copies."""

import copy
import sys
from collections.abc import Callable
from typing import Any

from emberharmony.backend.shared.random import Generator
from emberharmony.core.tracing import TensorProxy
from emberharmony.testing.differences.measures import distance
from emberharmony.testing.differences.records import NO_OPTIONS, Array, Host, Record, bits_of, encode, tensor_reference
from emberharmony.testing.differences.runs import Watch, path_of, stream_states
from emberharmony.testing.differences.spool import Tensors, Writer
from emberharmony.transforms.logs.lines import line_text, user_line
from emberharmony.transforms.observe import WatchedCall

_LATER = frozenset(("args", "kwargs", "tensors", "seen", "line"))


class Near(Host):
    """A tensor in the memory of the running program, whose bits are read on demand."""

    __slots__ = ("_backend", "_native")

    def __init__(self, native: Any, backend: Any) -> None:
        super().__init__(*bits_of(native, backend))
        self._backend, self._native = backend, native

    @property
    def bits(self) -> Array:
        """The bits, as an array of the shape."""
        if self._bits is None:
            self._bits, _ = bits_of(self._native, self._backend)
        return self._bits

    @property
    def native(self) -> Any:
        """The native tensor of the running program."""
        return self._native

    def set_native(self, native: Any) -> None:
        """Sets the reference to the native tensor again after `release` has dropped it."""
        self._native = native

    def release(self) -> None:
        """Drops the reference to the tensor; its shape and measured properties stay."""
        self._native = self._bits = None  # type: ignore[assignment]


class Nearby(Record):
    """A recorded call whose tensors are in the memory of the running program."""

    __slots__ = ()

    def refresh(self, one: Record) -> None:
        """Measures anew how far the arguments are from those of the other side, and sees which ones have changed."""
        for index, (a, b) in enumerate(zip(one.inputs(), self.inputs(), strict=False)):
            distance_before, b.measured = b.measured, None
            tensor_distance, last_call_number = distance(a, b), self.seen[index]
            if last_call_number >= 0 and (distance_before is None or distance_before[0] is not a):
                self.seen[index] = -1
            elif (
                last_call_number >= 0
                and distance_before is not None
                and distance_before[1].share != tensor_distance.share
            ):
                self.seen[index] = -2 - last_call_number

    def keep(self, writer: Writer) -> Record:
        """Returns the call with its tensors in a file."""
        near_tensors: Any = self.tensors
        return self.with_tensors([writer.keep(host.native, host, self.number)[0] for host in near_tensors])


class Live(Nearby):
    """A call of the running program, valid until the next call, whose tensors are in the memory of the program.

    Most calls are compared by their results alone, so the arguments are read when they are asked for.
    """

    __slots__ = ("_arguments", "_call", "_frame", "_watch")

    _arguments: tuple[Any, Any]
    _call: WatchedCall
    _frame: Any
    _watch: "Following"

    def __init__(self, call: WatchedCall, number: int, watch: "Following") -> None:
        caller_frame = sys._getframe(3)
        module_path = (
            call.path if call.path or call.gradient_of else path_of(call, caller_frame, user_line(caller_frame)[0])
        )
        self.op, self.path, self.gradient_of = call.spec.name, module_path, call.gradient_of
        self.backend, self.number, self.error = call.backend.name, number, ""
        self.streams, self._arguments = call.kept.pop(watch) or (None, (call.args, call.kwargs))
        self._call, self._watch, self._frame = call, watch, caller_frame
        self._inputs = None

    def __getattr__(self, name: str) -> Any:
        """Returns an attribute of the record that is computed on first use: the arguments, or the user's line."""
        if name not in _LATER:
            raise AttributeError(name)
        if name == "line":
            self.line = line_text(user_line(self._frame))
        else:
            self._read_arguments()
        return getattr(self, name)

    def inputs(self) -> list[Host]:
        """Returns the tensors of the arguments."""
        if self._inputs is None:
            self._read_arguments()
        return super().inputs()

    def record_result(self, result: Any) -> None:
        """Records the result of the call."""
        backend, result_hosts = self._call.backend, list[Host]()
        if result.__class__ is backend.tensor_type and result.__class__ is not TensorProxy:  # the usual case
            self.result, self._results = tensor_reference(0), [self._watch.add_new_tensor(result, backend, self.number)]
            return

        def add_tensor(tensor: Any) -> int:
            result_hosts.append(self._watch.add_new_tensor(tensor, backend, self.number))
            return len(result_hosts) - 1

        self.result = encode(result, backend, add_tensor)
        self._results = result_hosts

    def _read_arguments(self) -> None:
        results, argument_hosts, last_call_numbers = self.results(), list[Host](), list[int]()

        def add_tensor(tensor: Any) -> int:
            host, last_call_number = self._watch.host_of(tensor, self._call.backend, self.number)
            argument_hosts.append(host)
            last_call_numbers.append(last_call_number)
            return len(results) + len(argument_hosts) - 1

        args, kwargs = self._arguments
        self.args = encode(args, self._call.backend, add_tensor)
        self.kwargs = encode(kwargs, self._call.backend, add_tensor) if kwargs else NO_OPTIONS
        self._inputs, self.seen = argument_hosts, last_call_numbers
        self.tensors = [*results, *argument_hosts]


def _arguments_with_copied_generators(call: WatchedCall) -> tuple[Any, Any]:
    """Returns the arguments of a call, with generators that no op draws from."""

    def copy_generator(value: Any) -> Any:
        return copy.deepcopy(value) if isinstance(value, Generator) else value

    return tuple(map(copy_generator, call.args)), {name: copy_generator(value) for name, value in call.kwargs.items()}


class Following(Watch):
    """A watcher that passes each finished call of a program to a function, without copying its tensors.

    Args:
        tell: the function; what it keeps of a call it must copy.
    """

    returned = Nearby

    def __init__(self, tell: Callable[[Any], None]) -> None:
        super().__init__(tell)
        self._seen_tensors = Tensors()
        self._read: set[Near] = set()

    def before(self, call: WatchedCall) -> None:
        """Records the states of the random streams and generators before an op draws from them."""
        if not self._is_hidden(call):
            random_states = stream_states(call)
            call.kept[self] = random_states and (random_states, _arguments_with_copied_generators(call))

    def after(self, call: WatchedCall, result: Any) -> None:
        """Passes a finished call with its result to the function."""
        if self in call.kept:
            self._tell_call(call, result, "")

    def on_error(self, call: WatchedCall, error: Exception) -> None:
        """Passes a call that raised an error to the function."""
        if self in call.kept and not getattr(error, "of_watcher", False):
            self._tell_call(call, (), f"{type(error).__name__}: {error}")

    def finish(self, result: Any, backend: Any) -> None:
        """Passes the program's results to the function, as the argument of a last call."""
        try:
            super().finish(result, backend)
        finally:
            self._release_tensors()

    def _host_and_last_call(self, tensor: Any, backend: Any, number: int) -> tuple[Host, int]:
        return self.host_of(tensor, backend, number)

    def _release_tensors(self) -> None:
        for host in self._read:
            host.release()
        self._read.clear()

    def _tell_call(self, call: WatchedCall, result: Any, error: str) -> None:
        number = self._count
        self._count += 1
        record = Live(call, number, self)
        record.error = error
        record.record_result(result)
        try:
            self._tell(record)
        finally:
            self._release_tensors()
            seen_tensors = self._seen_tensors.seen
            for value in call.args:
                seen_tensor = seen_tensors.get(id(value))
                if seen_tensor is not None:
                    seen_tensor.call = number

    def add_new_tensor(self, tensor: Any, backend: Any, number: int) -> Near:
        """Returns the record of a tensor that no earlier call had, and keeps it for later calls."""
        near_host = Near(tensor, backend)
        self._read.add(near_host)
        self._seen_tensors.add(tensor, near_host, number)
        return near_host

    def host_of(self, tensor: Any, backend: Any, number: int) -> tuple[Host, int]:
        """Returns the record of an argument tensor, and the number of the last call that had it; -1 without one."""
        near_tensor = self._seen_tensors.of(tensor)
        if near_tensor is None or near_tensor.host.shape != tuple(tensor.shape):
            return self.add_new_tensor(tensor, backend, number), -1
        near_host: Near = near_tensor.host
        near_host.set_native(tensor)
        self._read.add(near_host)
        return near_host, near_tensor.call
