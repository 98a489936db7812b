"""Programs of NumPy calls: a function of Python without branches that repeats them.

Functions of NumPy that can write into an array write into one that no later call reads. They never write into an
argument, a constant or a result, nor into an array with another layout than NumPy would give the result, because the
order in which a later sum adds depends on it.
"""

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from typing import Any

import numpy as np

from emberharmony.backend.numpy.arrays.indexing_ops import where
from emberharmony.backend.numpy.flow.lowering import METHODS, REDUCTIONS
from emberharmony.backend.numpy.flow.programs import Blocks, NumpySource
from emberharmony.core.dtypes import default_float
from emberharmony.transforms.elementwise_runs import join_runs
from emberharmony.transforms.program import Program, ProgramCall, ProgramMemory, Register, memory_targets
from emberharmony.transforms.recorder import Recorder

_FOREIGN = -1
"""Stands for memory that neither an input nor a call of NumPy owns."""

_WEAK = frozenset((np.add, np.subtract, np.multiply, np.divide))
"""The ufuncs whose operand may be a number, which is made an array once."""

_KNOWN = frozenset((np.matmul, np.where, where, *REDUCTIONS.values(), *METHODS))
"""Functions, besides ufuncs, whose results have a shape that the shapes of the operands determine.

They return either a view in all calls with such shapes and layouts, or in none.
"""

_LARGE = 2**16
"""Arrays of this many bytes are let go of as soon as nothing needs them."""


class ShapeChangedError(Exception):
    """Raised in a program if the shape of a result depends on values, which have changed."""


def replay_of(
    recorder: Recorder,
    inputs: int,
    outputs: Sequence[Any],
    calls: Sequence[ProgramCall] | None = None,
    runner: type[Blocks] = Blocks,
) -> Callable[..., list[Any]]:
    """Returns the function of the inputs that makes the recorded calls and returns the outputs.

    Args:
        recorder: the record of the calls.
        inputs: the number of inputs.
        outputs: registers, or arrays that are the same for all inputs, of which the function returns copies.
        calls: the calls; by default all that were noted.
        runner: what makes runs of elementwise calls.
    """
    program, output_registers = recorder.program(inputs, outputs, calls)
    recorded_values = recorder.values
    program = join_runs(
        program, partial(_block_shape_and_dtype, recorded_values, runner), lambda x: not recorded_values[x].ndim, runner
    )
    memory = _ArrayMemory(recorder, program, output_registers)
    source = _ReplaySource(program, memory_targets(program, memory), memory)
    return source.function(source.expressions(outputs, output_registers))


def guard_of(leaves: Sequence[Any], kind: Callable[[Any], Any]) -> Callable[[Sequence[Any]], bool]:
    """Returns a function that returns whether other arguments surely have the same kinds as these.

    Args:
        leaves: arrays and other objects.
        kind: returns the kind of a leaf that is no array.
    """
    scope: dict[str, Any] = {"ndarray": np.ndarray, "kind": kind, "default": default_float, "float": default_float()}
    conditions = ["default() is float"]
    for i, leaf in enumerate(leaves):
        if leaf.__class__ is not np.ndarray:
            scope[f"k{i}"] = kind(leaf)
            conditions.append(f"kind(i{i}) == k{i}")
            continue
        scope[f"d{i}"] = leaf.dtype
        layout_condition = f"i{i}.flags.c_contiguous" if leaf.flags.c_contiguous else f"i{i}.strides == {leaf.strides}"
        # Equal dtypes that are other objects fail this test by `is`, and only cost another recording.
        conditions.append(
            f"i{i}.__class__ is ndarray and i{i}.dtype is d{i} and i{i}.shape == {leaf.shape} and {layout_condition}"
        )
    unpacking_line = f"{''.join(f'i{i}, ' for i in range(len(leaves)))} = leaves\n " if leaves else ""
    source = f" if len(leaves) != {len(leaves)}: return False\n {unpacking_line}return {' and '.join(conditions)}"
    exec(f"def fits(leaves):\n{source}\n", scope)
    guard: Callable[[Sequence[Any]], bool] = scope["fits"]
    return guard


def _block_shape_and_dtype(values: Sequence[Any], runner: type[Blocks], call: ProgramCall) -> Any:
    """Returns the shape and the dtype of the arrays of a call that may be made block by block; None if it may not."""
    result_array, function = values[call.results[0]], call.function
    if not isinstance(function, np.ufunc) or function.signature is not None or call.keywords:
        return None
    if (
        result_array.nbytes < runner.least
        or result_array.dtype.char not in "fd"
        or len(call.args) != function.nin
        or call.several
    ):
        return None
    for x in (call.results[0], *call.args):
        if x.__class__ in (int, float):
            if not math.isfinite(x) or abs(x) > np.finfo(result_array.dtype).max:
                return None
            continue
        operand = values[x] if x.__class__ is Register else x
        if operand.__class__ is not np.ndarray or operand.dtype != result_array.dtype:
            return None
        is_full_array = x.__class__ is Register and operand.shape == result_array.shape and operand.flags.c_contiguous
        if operand.ndim and not is_full_array:
            return None
    return result_array.shape, result_array.dtype


class _ArrayMemory(ProgramMemory):
    """Facts about the memory of recorded arrays: which share it, and which may be overwritten.

    Args:
        recorder: the record of the calls.
        program: the calls that are made.
        places: the register that has the value of each recorded register.
    """

    def __init__(self, recorder: Recorder, program: Program, places: Sequence[Register]) -> None:
        super().__init__()
        self.values, self._inputs, self.wrap = recorder.values, program.inputs, recorder.backend.wrap
        memory_sources = {
            result: operands for call in recorder.calls for result, operands in self._memory_sources(call)
        }
        self.before = self._roots(recorder.calls, memory_sources, [Register(i) for i in range(len(self.values))])
        self._owners = self._roots(program.calls, memory_sources, places)

    def _memory_sources(self, call: ProgramCall) -> Iterator[tuple[Register, list[Register]]]:
        """Yields each result of a recorded call with the operands with which it may share memory."""
        for result in call.results:
            result_array = self.values[result]
            # An unknown function may return an operand or a new array, depending on values.
            yield (
                result,
                [
                    x
                    for x in call.operands
                    if not has_known_shape(call) or np.may_share_memory(result_array, self.values[x])
                ],
            )

    def _roots(
        self, calls: Sequence[ProgramCall], memory_sources: dict[Register, list[Register]], places: Sequence[Register]
    ) -> dict[int, frozenset[int]]:
        """Returns, for each register, those that own the memory of its value; `_FOREIGN` if others may own it."""
        roots_by_register = {i: frozenset((i,)) for i in range(self._inputs)}
        for call in calls:
            for result in call.results:
                owns_result = (
                    has_known_shape(call) and call.function not in METHODS and self.values[result].base is None
                )
                owner_sets = [roots_by_register[places[x]] for x in memory_sources[result]]
                if not owner_sets or not has_known_shape(call):
                    owner_sets.append(frozenset((int(result) if owns_result else _FOREIGN,)))
                roots_by_register[result] = frozenset().union(*owner_sets)
        return roots_by_register

    def roots(self, register: int) -> frozenset[int]:
        """Returns the registers that own the memory of a value."""
        return self._owners[register]

    def layout(self, register: int) -> Any:
        """Returns the dtype, the shape and the strides of a value."""
        array = self.values[register]
        return array.dtype, array.shape, array.strides

    def takes_target(self, call: ProgramCall) -> bool:
        """Returns whether NumPy allocates the result of a call, and may instead write it into another array."""
        function = call.function
        if not isinstance(function, np.ufunc) or any(value is not ... for _, value in call.keywords):
            return False
        return len(call.args) == function.nin and function.nout == 1 and self.values[call.results[0]].ndim > 0

    def overwrites(self, call: ProgramCall) -> bool:
        """Returns whether a call may write its result over an operand, because it works element by element."""
        return call.function.signature is None

    def is_large(self, register: int) -> bool:
        """Returns whether the memory of a value is so large that it should be freed as soon as possible."""
        owner_arrays = [self.values[root] for root in self.roots(register) if root != _FOREIGN]
        return any(x.nbytes >= _LARGE for x in owner_arrays)


class _ReplaySource(NumpySource):
    """The source of the function that repeats recorded calls.

    Args:
        program: the program.
        targets: by the place of a call the register into whose memory it writes.
        memory: that of the recorded arrays.
    """

    def __init__(self, program: Program, targets: Mapping[int, int], memory: _ArrayMemory) -> None:
        super().__init__(program, targets)
        self.memory, self.values = memory, memory.values
        self.scope |= {"Changed": ShapeChangedError, "wrap": memory.wrap}
        self._arrays: dict[tuple[str, Any], np.ndarray] = {}
        last_use_by_register: dict[int, int] = {}
        for i, call in enumerate(program.calls):
            last_use_by_register.update(dict.fromkeys((*call.operands, *call.results), i))
        kept_registers = {*targets.values(), *(x for x in program.outputs if x.__class__ is Register)}
        self._unused_by_place: dict[int, list[str]] = {}
        for x, i in last_use_by_register.items():
            if x >= program.inputs and x not in kept_registers and memory.is_large(x):
                self._unused_by_place.setdefault(i, []).append(self.names[x])

    def expressions(self, outputs: Sequence[Any], places: Sequence[Register]) -> list[str]:
        """Returns the source expression of each output of a program.

        Args:
            outputs: the outputs in the record as it was.
            places: the register that has the value of each recorded register.
        """
        merged_registers = {int(register) for i, register in enumerate(places) if register != i}
        expressions: list[str] = []
        earlier_pairs: list[tuple[Register, Register]] = []
        for value, output in zip(outputs, self.program.outputs, strict=True):
            if output.__class__ is not Register:
                expressions.append(f"{self.name_of(output)}.copy()")
                continue
            # Equal calls are merged into one, but the results that the function returns for them must not share memory.
            common_roots, roots_before_merging = merged_registers & self.memory.roots(output), self.memory.before
            sharing_values = [
                x
                for x, y in earlier_pairs
                if common_roots & self.memory.roots(y) and not roots_before_merging[value] & roots_before_merging[x]
            ]
            if not sharing_values:
                earlier_pairs.append((value, output))
            expressions.append(self.names[output] + (".copy()" if sharing_values else ""))
        return expressions

    def statements(self, place: int, call: ProgramCall) -> list[str]:
        """Returns the statements of a call, and the one that deletes the values that no later call needs."""
        freed_registers = self._unused_by_place.get(place)
        return [*self._statements(call), *([f"del {', '.join(freed_registers)}"] if freed_registers else [])]

    def _statements(self, call: ProgramCall) -> list[str]:
        function, needs_wrap = call.function, call.wrapped
        keywords = tuple(pair for pair in call.keywords if pair[1] is not ...)
        replayed_call = call._replace(args=self._with_numbers_as_arrays(call), keywords=keywords)
        if call.results[0] in self.targets:
            return super().statements(0, replayed_call)
        if needs_wrap and (isinstance(function, np.ufunc) or function in REDUCTIONS.values()):
            # With `out=...` the result is an array without axes, not a scalar, which `wrap` would have to convert.
            if function in REDUCTIONS.values():
                x, axis, _, _, keepdims, *initial = replayed_call.args
                options = ("keepdims", keepdims), *(("initial", number) for number in initial)
                replayed_call = replayed_call._replace(args=(x, axis), keywords=options)
            replayed_call = replayed_call._replace(keywords=(*replayed_call.keywords, ("out", ...)))
            needs_wrap = False
        elif len(keywords) < len(call.keywords) and not self.values[call.results[0]].ndim:
            replayed_call = replayed_call._replace(keywords=(*keywords, ("out", ...)))
        (line,) = super().statements(0, replayed_call)
        targets, _, expression = line.partition(" = ")
        lines = [f"{targets} = wrap({expression})" if needs_wrap else line]
        if not has_known_shape(call):
            shapes = [(self.names[result], self.values[result].shape) for result in call.results]
            lines += [f"if {name}.shape != {shape}: raise Changed" for name, shape in shapes]
        return lines

    def _with_numbers_as_arrays(self, call: ProgramCall) -> tuple[Any, ...]:
        """Returns the arguments of a call with an array for a number beside a tensor, which NumPy converts faster."""
        if call.function not in _WEAK or len(call.args) != 2:
            return call.args
        for number, other_operand in (call.args[::-1], call.args):
            if number.__class__ in (int, float) and other_operand.__class__ is Register:
                dtype = self.values[other_operand].dtype
                if dtype.char in "efd" and math.isfinite(number) and abs(number) <= np.finfo(dtype).max:
                    array = self._arrays.setdefault((repr(float(number)), dtype), np.asarray(number, dtype))
                    return tuple(array if x is number else x for x in call.args)
        return call.args


def has_known_shape(call: ProgramCall) -> bool:
    """Returns whether the shapes of a call's operands determine the shape of its result."""
    function = call.function
    if isinstance(function, (np.ufunc, Blocks)) or function in _KNOWN:
        return True
    return getattr(function, "__module__", None) == "numpy.fft"
