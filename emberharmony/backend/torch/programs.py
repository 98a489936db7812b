"""Runs programs of elementwise ops on PyTorch."""

import functools
from collections.abc import Callable, Sequence
from typing import Any

import torch

from emberharmony.backend.shared.programs import BINARY, COMMUTATIVE, Program, Step, run
from emberharmony.backend.torch.math_ops import TorchMathOps

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


def _sign(x: torch.Tensor, *, out: torch.Tensor | None = None) -> torch.Tensor:
    found = TorchMathOps.sign(x)
    return found if out is None else out.copy_(found)


_NATIVES: dict[str, Callable[..., torch.Tensor]] = {
    **{op: getattr(torch, op) for op in (*BINARY, "negative", "absolute", "square", "sqrt")},
    "sign": _sign,
    "add_multiple": lambda x, y, number, out=None: torch.add(x, y, alpha=number, out=out),
    "lerp": torch.lerp,
    "addcmul": lambda x, y, z, number, out=None: torch.addcmul(x, y, z, value=number, out=out),
    "addcdiv": lambda x, y, z, number, out=None: torch.addcdiv(x, y, z, value=number, out=out),
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

    def operands(step: Step, registers: Sequence[Any]) -> list[Any]:
        found = [registers[register] for register in step.operands]
        if step.op == "square":
            return found * 2
        return found if step.number is None else [*found, number(step.number)]

    def new(step: Step, registers: Sequence[Any]) -> list[torch.Tensor]:
        if step.op == "sign":
            return list(map(TorchMathOps.sign, registers[step.first]))
        return list(_NEW[_name(step)](*operands(_plain(step), registers)))

    def reusing(step: Step, registers: Sequence[Any], register: int) -> bool:
        # `_foreach_mul_` rounds a number to the half precision of the list first, which `_foreach_mul` does not (2.13).
        if step.op == "sign" or (step.number is not None and first.dtype.itemsize < 4):
            return False
        if register != step.first:
            if step.op not in COMMUTATIVE:
                return False
            step = step._replace(first=register, second=step.first)
        _IN_PLACE[_name(step)](*operands(_plain(step), registers))
        return True

    return run(program.added(), columns, new, reusing)


def _name(step: Step) -> str:
    """Returns the op that computes a step, because PyTorch 2.13 subtracts no tensor without axes from a list."""
    if step.op == "square":
        return "multiply"
    return "add" if step.op == "subtract" and step.number is not None else step.op


def _plain(step: Step) -> Step:
    return step._replace(number=-step.number) if step.op == "subtract" and step.number is not None else step


def one_by_one(program: Program, columns: Sequence[Sequence[torch.Tensor]]) -> list[Sequence[torch.Tensor]]:
    """Runs a program over large tensors, by ops that read and write memory as seldom as possible.

    These round once where the ops of the program round twice.
    """
    first = columns[0][0]
    number = number_in(first.dtype, first.is_cpu)

    def operands(step: Step, registers: Sequence[Any]) -> list[Any]:
        found = [registers[register] for register in step.operands]
        if step.number is None:
            return found
        return [*found, number(step.number) if step.op in BINARY else step.number]

    def new(step: Step, registers: Sequence[Any]) -> torch.Tensor:
        return _NATIVES[step.op](*operands(step, registers))

    def reusing(step: Step, registers: Sequence[Any], register: int) -> bool:
        _NATIVES[step.op](*operands(step, registers), out=registers[register])
        return True

    program = program.fused()
    rows = [run(program, tensors, new, reusing) for tensors in zip(*columns, strict=True)]
    return list(zip(*rows, strict=True))
