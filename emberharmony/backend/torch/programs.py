"""Runs programs of elementwise ops on PyTorch."""

import functools
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import torch

from emberharmony.backend.shared.programs import BINARY, COMMUTATIVE, Program, Step, in_blocks, run
from emberharmony.backend.torch.math_ops import sign

_LISTS = {
    "add": "add",
    "subtract": "sub",
    "multiply": "mul",
    "divide": "div",
    "maximum": "maximum",
    "minimum": "minimum",
    "negative": "neg",
    "absolute": "abs",
    "sqrt": "sqrt",
}
_NEW = {op: getattr(torch, f"_foreach_{name}") for op, name in _LISTS.items()}
_IN_PLACE = {op: getattr(torch, f"_foreach_{name}_") for op, name in _LISTS.items()}
_FUSED: dict[str, tuple[Callable[..., Any], str]] = {
    "add_multiple": (torch.add, "alpha"),
    "lerp": (torch.lerp, "weight"),
    "addcmul": (torch.addcmul, "value"),
    "addcdiv": (torch.addcdiv, "value"),
}
"""The ops that stand for several, with the names of their last operands."""


def _sign(x: torch.Tensor, *, out: torch.Tensor | None = None) -> torch.Tensor:
    found = sign(x)
    return found if out is None else out.copy_(found)


_NATIVES: dict[str, Callable[..., torch.Tensor]] = {
    **{op: getattr(torch, op) for op in (*BINARY, "negative", "absolute", "square", "sqrt")},
    "sign": _sign,
}


def number_in(dtype: torch.dtype, cpu: bool) -> Callable[[float], Any]:
    """Returns the function that gives a number the form in which it costs a native function the least.

    On the CPU a tensor takes half of the time of a number, which PyTorch 2.13 wraps for each tensor. Half precision
    multiplies by the number in float32.
    """
    if cpu and dtype in (torch.float32, torch.float64):
        return functools.partial(torch.tensor, dtype=dtype)
    return float


def listed(program: Program, columns: Sequence[Sequence[torch.Tensor]]) -> list[Sequence[torch.Tensor]]:
    """Runs a program over lists of tensors; see `Backend.evaluated`."""
    first = columns[0][0]
    number = number_in(first.dtype, first.is_cpu)

    def new(step: Step, registers: Sequence[Any]) -> list[torch.Tensor]:
        if step.op == "sign":
            return list(map(sign, registers[step.first]))
        return list(_call(_NEW, step, registers, number)())

    def reusing(step: Step, registers: Sequence[Any], register: int) -> bool:
        found = _swapped(step, registers, registers[register])
        if found is None or not _writes(step, first):
            return False
        _call(_IN_PLACE, found, registers, number)()
        return True

    return run(_prepared(program, first), columns, new, reusing)


def overwriting_lists(program: Program, columns: Sequence[Sequence[torch.Tensor]]) -> list[tuple[Any, ...]] | None:
    """Returns the calls that write the outputs of a program over lists of tensors; see `Backend.overwriting`."""
    first = columns[0][0]
    program = _prepared(program, first)
    places = program.places()
    if places is None or not all(_writes(step, first) for step in program.steps):
        return None
    number = number_in(first.dtype, first.is_cpu)
    registers: list[Any] = list(columns)
    calls: list[tuple[Any, ...]] = []
    for i, step in enumerate(program.steps):
        place = places.get(program.inputs + i)
        if place is None and not calls:
            registers.append(list(_call(_NEW, step, registers, number)()))
            continue
        target = list(map(torch.empty_like, columns[1])) if place is None else columns[place]
        found = _swapped(step, registers, target)
        if found is None:
            if step.second is not None and registers[step.second] is target:
                return None
            calls.append((torch._foreach_copy_, target, registers[step.first]))
            found = step._replace(first=len(registers))
        registers.append(target)
        calls.append((_call(_IN_PLACE, found, registers, number),))
    return calls


def _prepared(program: Program, like: torch.Tensor) -> Program:
    """Returns a program for lists; it rounds a multiple that is subtracted only once, except in half precision."""
    return program.added() if like.dtype.itemsize < 4 else program.shifted()


def _call(
    natives: Mapping[str, Callable[..., Any]], step: Step, registers: Sequence[Any], number: Callable[[float], Any]
) -> Callable[[], Any]:
    """Returns the call of a native function for lists that computes a step."""
    operands = [registers[register] for register in step.operands]
    if step.op == "add_multiple":
        return functools.partial(natives["add"], *operands, alpha=step.number)
    if step.op == "square":
        return functools.partial(natives["multiply"], *operands, *operands)
    if step.number is None:
        return functools.partial(natives[step.op], *operands)
    # PyTorch 2.13 subtracts no tensor without axes from a list.
    name, value = ("add", -step.number) if step.op == "subtract" else (step.op, step.number)
    return functools.partial(natives[name], *operands, number(value))


def _writes(step: Step, like: torch.Tensor) -> bool:
    """Returns whether the function that writes into a list gives the bits of the one that makes a new list.

    `_foreach_mul_` rounds a number to the half precision of the list first, which `_foreach_mul` does not (2.13).
    """
    return step.op != "sign" and (step.number is None or like.dtype.itemsize >= 4)


def _swapped(step: Step, registers: Sequence[Any], target: Any) -> Step | None:
    """Returns the step with the list `target` as first operand, which the native function writes into, if it may be."""
    if registers[step.first] is target:
        return step
    if step.op in COMMUTATIVE and step.second is not None and registers[step.second] is target:
        return step._replace(first=step.second, second=step.first)
    return None


def one_by_one(program: Program, columns: Sequence[Sequence[torch.Tensor]]) -> list[Sequence[torch.Tensor]]:
    """Runs a program over large tensors, by ops that read and write memory as seldom as possible.

    These round once where the ops of the program round twice.
    """
    first = columns[0][0]
    number = number_in(first.dtype, first.is_cpu)

    def new(step: Step, registers: Sequence[Any]) -> torch.Tensor:
        made: torch.Tensor = _single(step, registers, number)()
        return made

    def reusing(step: Step, registers: Sequence[Any], register: int) -> bool:
        _single(step, registers, number)(out=registers[register])
        return True

    program = program.fused()
    rows = [run(program, tensors, new, reusing) for tensors in zip(*columns, strict=True)]
    return list(zip(*rows, strict=True))


def overwriting_one_by_one(program: Program, columns: Sequence[Sequence[torch.Tensor]]) -> list[tuple[Any, ...]] | None:
    """Returns the calls that write the outputs of a program over large tensors; see `Backend.overwriting`."""
    program = program.fused()
    places = program.places()
    if places is None or any(step.op == "sign" for step in program.steps):  # which runs bytecodes
        return None
    first = columns[0][0]
    number = number_in(first.dtype, first.is_cpu)
    scratch = in_blocks(program, dict.fromkeys((*_NATIVES, *_FUSED)), lambda step: None).scratch
    longest = max(x.numel() for x in columns[0])
    memory = [first.new_empty(longest) for _ in {*scratch.values()}]
    calls: list[tuple[Any, ...]] = []
    for tensors in zip(*columns, strict=True):
        registers = list(tensors)
        for i, step in enumerate(program.steps):
            place = places.get(program.inputs + i)
            if place is None:
                target = memory[scratch[program.inputs + i]][: tensors[0].numel()].view(tensors[0].shape)
            else:
                target = registers[place]
            calls.append((functools.partial(_single(step, registers, number), out=target),))
            registers.append(target)
    return calls


def _single(step: Step, registers: Sequence[Any], number: Callable[[float], Any]) -> Callable[..., Any]:
    """Returns the call of a native function that computes a step for one tensor."""
    operands = [registers[register] for register in step.operands]
    if step.op in _FUSED:
        native, name = _FUSED[step.op]
        return functools.partial(native, *operands, **{name: step.number})
    return functools.partial(_NATIVES[step.op], *operands, *([] if step.number is None else [number(step.number)]))
