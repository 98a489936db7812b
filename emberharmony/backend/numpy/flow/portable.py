"""Programs of ops that another library runs on NumPy arrays.

Its inputs are arrays alone, so nothing of a process is in it, and the library's cache on disk can know it again.
"""

from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np

from emberharmony.backend.numpy.flow.lowering import NumpyRecorder
from emberharmony.backend.numpy.flow.replay import replay_of
from emberharmony.core.registry import OPS
from emberharmony.transforms.program import Program, ProgramCall, Register
from emberharmony.transforms.recorder import UnrecordableError

Runner = Callable[[Sequence[Any]], list[Any]]
"""Returns the outputs of a program for its inputs, which are arrays."""


def runner_by_ops(backend: Any, recorder: NumpyRecorder, inputs: int, outputs: Sequence[Any]) -> Runner:
    """Returns the function of the inputs that lets another backend run the recorded ops.

    Args:
        backend: the backend.
        recorder: the record of the calls.
        inputs: the number of inputs.
        outputs: registers, or arrays that are the same for all inputs, of which the function returns copies.

    Raises:
        UnrecordableError: if nothing is computed.
    """
    calls = recorder.ops or []
    left_out_flags = [x.__class__ is not Register or _is_view(recorder, inputs, calls, x) for x in outputs]
    computed_outputs = [x for x, is_left in zip(outputs, left_out_flags, strict=True) if not is_left]
    program, _ = recorder.program(inputs, computed_outputs, calls)
    if not any(isinstance(call.function, str) for call in program.calls):
        raise UnrecordableError("it computes nothing")
    drawing_calls = [call for call in program.calls if call.draws]
    program, constants = _program_of_arrays(recorder, program, drawing_calls)
    draw_functions = [call.function for call in drawing_calls]
    run_program = backend.compile_program(program)
    if not draw_functions and not constants and not any(left_out_flags):
        return run_program
    drawless_calls = [call for call in recorder.calls if not call.draws]
    replay = replay_of(recorder, inputs, [x for x, y in zip(outputs, left_out_flags, strict=True) if y], drawless_calls)

    def run_all(input_arrays: Sequence[Any]) -> list[Any]:
        arrays = iter(run_program([*input_arrays, *[draw() for draw in draw_functions], *constants]))
        replayed_outputs = iter(replay(input_arrays))
        return [next(replayed_outputs if is_left else arrays) for is_left in left_out_flags]

    return run_all


def _is_view(recorder: NumpyRecorder, inputs: int, calls: Sequence[ProgramCall], register: Register) -> bool:
    """Returns whether a value may have the memory of an input or of a constant."""
    register_value, input_arrays = recorder.values[register], recorder.values[:inputs]
    constants = (x for call in calls for x in _arrays_in((call.args, call.keywords)))
    return any(np.may_share_memory(register_value, x) for x in (*input_arrays, *constants))


def _program_of_arrays(
    recorder: NumpyRecorder, program: Program, drawing_calls: Sequence[ProgramCall]
) -> tuple[Program, list[np.ndarray]]:
    """Returns a program whose random draws and constant arrays are further inputs, and these constants."""
    calls = [call._replace(**_portable_arguments(recorder, call)) for call in program.calls if not call.draws]
    constant_by_id = {id(x): x for call in calls for x in _arrays_in((call.args, call.keywords))}
    registers = [x for call in calls for x in call.results]
    register_by_index: dict[int, Register] = {i: Register(i) for i in range(program.inputs)}
    for x in [*(call.results[0] for call in drawing_calls)]:
        register_by_index[x] = Register(len(register_by_index))
    first_index = len(register_by_index)
    register_by_id = {key: Register(first_index + i) for i, key in enumerate(constant_by_id)}
    register_by_index.update({x: Register(first_index + len(register_by_id) + i) for i, x in enumerate(registers)})
    converted_calls = [
        call._replace(
            args=_replace_registers(call.args, register_by_index, register_by_id),
            keywords=_replace_registers(call.keywords, register_by_index, register_by_id),
            results=tuple(register_by_index[x] for x in call.results),
        )
        for call in calls
    ]
    outputs = tuple(register_by_index[x] for x in program.outputs)
    return Program(first_index + len(register_by_id), tuple(converted_calls), outputs), [*constant_by_id.values()]


def _portable_arguments(recorder: NumpyRecorder, call: ProgramCall) -> dict[str, Any]:
    """Returns the arguments of a recorded op call without objects of NumPy, such as scalars, other than arrays."""
    parameter_by_name = {parameter.name: parameter for parameter in OPS[call.function].parameters}
    positional_parameters = [parameter for parameter in parameter_by_name.values() if not parameter.keyword_only]

    def portable_value(value: Any, is_tensor: bool) -> Any:
        if isinstance(value, np.generic):
            return np.asarray(value) if is_tensor else value.item()
        if value.__class__ is tuple or value.__class__ is list:
            return value.__class__([portable_value(x, is_tensor) for x in value])
        if value.__class__ is slice:
            return slice(*[portable_value(x, False) for x in (value.start, value.stop, value.step)])
        return value

    args = tuple(
        [
            portable_value(x, positional_parameters[min(i, len(positional_parameters) - 1)].role != "Value")
            for i, x in enumerate(call.args)
        ]
    )
    options = tuple([(name, portable_value(x, parameter_by_name[name].role != "Value")) for name, x in call.keywords])
    return {"args": args, "keywords": options}


def _arrays_in(value: Any) -> Iterator[np.ndarray]:
    """Yields the arrays in nested tuples and lists."""
    if value.__class__ is np.ndarray:
        yield value
    elif value.__class__ is tuple or value.__class__ is list:
        for item in value:
            yield from _arrays_in(item)


def _replace_registers(value: Any, register_by_index: dict[int, Register], register_by_id: dict[int, Register]) -> Any:
    """Returns nested tuples and lists with registers renumbered, and arrays replaced by registers."""
    if value.__class__ is Register:
        return register_by_index[value]
    if value.__class__ is np.ndarray:
        return register_by_id[id(value)]
    if value.__class__ is tuple or value.__class__ is list:
        return value.__class__([_replace_registers(x, register_by_index, register_by_id) for x in value])
    return value
