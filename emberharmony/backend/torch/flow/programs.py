"""Runs programs of elementwise ops on PyTorch, by ops that read and write memory as seldom as possible.

These round once where the ops of the program round twice, except in half precision.
"""

import functools
import operator
from collections.abc import Callable, Sequence
from typing import Any

import torch

from emberharmony.backend.torch.math_ops import sign
from emberharmony.transforms.program import BINARY, CHOICE, UNARY, Number, Program, ProgramCall, Update

_FUSED: dict[str, tuple[Callable[..., Any], str]] = {
    "add_multiple": (torch.add, "alpha"),
    "lerp": (torch.lerp, "weight"),
    "addcmul": (torch.addcmul, "value"),
    "addcdiv": (torch.addcdiv, "value"),
}
"""The ops that stand for several, with the names of their last operands."""


def _sign(x: torch.Tensor, *, out: torch.Tensor | None = None) -> torch.Tensor:
    signs = sign(x)
    return signs if out is None else out.copy_(signs)


def _choose_into(x: torch.Tensor, y: torch.Tensor, condition: Any, *, out: torch.Tensor | None = None) -> torch.Tensor:
    return torch.clone(x if condition else y) if out is None else out.copy_(x if condition else y)


_NATIVES: dict[str, Callable[..., torch.Tensor]] = {
    **{op: getattr(torch, op) for op in (*UNARY, *BINARY)},
    "sign": _sign,
    CHOICE: _choose_into,
}
_PYTHONS = ("sign", CHOICE)
"""The functions that are no functions of C."""


def number_converter(dtype: torch.dtype, cpu: bool) -> Callable[[float], Any]:
    """Returns a function that converts a number to the form, number or tensor, that native functions take fastest.

    On the CPU a tensor takes half of the time of a number, which PyTorch 2.13 wraps for each tensor. Half precision
    multiplies by the number in float32.
    """
    if cpu and dtype in (torch.float32, torch.float64):
        return functools.partial(torch.tensor, dtype=dtype)
    return float


def run_update(update: Update, columns: Sequence[Sequence[torch.Tensor]]) -> list[Sequence[torch.Tensor]]:
    """Runs a program over lists of tensors; see `Backend.run_update`."""
    program, numbers = _program_for(update, columns[0][0])
    rows = [_run_program(program, numbers, tensors) for tensors in zip(*columns, strict=True)]
    return list(zip(*rows, strict=True))


def _run_program(program: Program, numbers: list[Any], tensors: Sequence[torch.Tensor]) -> list[torch.Tensor]:
    """Returns the tensors that a program computes from tensors; it reuses the memory of intermediate results."""
    registers: list[Any] = list(tensors)
    for i, call in enumerate(program.calls):
        bound_call, target = _bind_call(call, registers, numbers), program.memory_targets.get(i)
        registers.append(bound_call() if target is None else bound_call(out=registers[target]))
    return [registers[register] for register in program.outputs]


def can_overwrite_inputs(program: Program) -> bool:
    """Returns whether calls of C functions can write the results of a program over its inputs."""
    return program.output_slots is not None and not any(call.function in _PYTHONS for call in program.calls)


def overwriting_calls(update: Update, columns: Sequence[Sequence[torch.Tensor]]) -> list[tuple[Any, ...]]:
    """Returns the calls that write the results of a program over its inputs; see `Backend.overwriting_calls`."""
    program, numbers = _program_for(update, columns[0][0])
    output_slots, scratch_slots = program.output_slots or {}, program.scratch_slots
    largest_size = max(x.numel() for x in columns[0])
    scratch_memory = [columns[0][0].new_empty(largest_size) for _ in program.registers_by_slot]
    write_calls: list[tuple[Any, ...]] = []
    for tensors in zip(*columns, strict=True):
        registers = list(tensors)
        for i, call in enumerate(program.calls, program.inputs):
            if i in output_slots:
                target = registers[output_slots[i]]
            else:
                target = scratch_memory[scratch_slots[i]][: tensors[0].numel()].view(tensors[0].shape)
            write_calls.append((functools.partial(_bind_call(call, registers, numbers), out=target),))
            registers.append(target)
    return write_calls


def _program_for(update: Update, like: torch.Tensor) -> tuple[Program, list[Any]]:
    """Returns an update's program for tensors like this one, and its numbers in the form that functions take."""
    program, numbers = update.program, update.numbers
    if like.dtype.itemsize >= 4:
        program = program.with_fewer_calls
        numbers = [*numbers, *map(operator.neg, numbers)]
    to_native_number, native_numbers = number_converter(like.dtype, like.is_cpu), list(numbers)
    # The fused functions, which replace several ops, take Python numbers only.
    fused_registers = {call.args[-1] for call in program.calls if call.function in _FUSED}
    for number_register in program.numbers:  # others only serve to compute these
        if number_register not in fused_registers and numbers[number_register].__class__ is not bool:
            native_numbers[number_register] = to_native_number(numbers[number_register])
    return program, native_numbers


def _bind_call(call: ProgramCall, registers: Sequence[Any], numbers: Sequence[Any]) -> Callable[..., Any]:
    """Returns a call of a program, bound to its registers and numbers, as a function without arguments."""
    args = [numbers[x] if x.__class__ is Number else registers[x] for x in call.args]
    if call.function in _FUSED:
        native_function, argument_name = _FUSED[call.function]
        return functools.partial(native_function, *args[:-1], **{argument_name: args[-1]})
    return functools.partial(_NATIVES[call.function], *args)
