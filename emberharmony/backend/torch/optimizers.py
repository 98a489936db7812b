"""Computes steps of optimizers by PyTorch's own kernels for the CPU, which read and write memory once.

A kernel looks neither at strides nor at shapes. It rounds the last elements of a tensor, which fill no register, once
where it rounds the others twice.
"""

import functools
from collections.abc import Callable, Mapping, Sequence
from itertools import chain, product, starmap
from typing import Any

import torch

from emberharmony.backend.shared.programs import Program, cached


def have_kernels(columns: Sequence[Sequence[torch.Tensor]], contiguous: int = 0) -> bool:
    """Returns whether the kernels take lists of tensors, in which those at the same place have the same shape.

    In half precision the kernels round less often than the ops. On an accelerator they read numbers from there.

    Args:
        columns: gradients, parameters, and tensors of the state; parameters have one dtype, which is that of the
            gradients, and one device. PyTorch raises an error if a gradient is on another one.
        contiguous: how many of the columns are known to be contiguous.
    """
    first = columns[1][0]
    return (
        first.is_cpu
        and first.dtype in (torch.float32, torch.float64)
        and all(x.is_cpu and x.dtype == first.dtype for x in chain.from_iterable(columns[2:]))
        and all(map(torch.Tensor.is_contiguous, chain.from_iterable(columns[contiguous:])))
    )


def adam(
    gradient: torch.Tensor, held: Sequence[torch.Tensor], step: int, hyper: Mapping[str, Any]
) -> list[torch.Tensor]:
    """Returns what a step of Adam makes of a parameter and its averages; see `Backend.adam`."""
    made = list(map(torch.clone, held))
    kernel = torch._fused_adamw_ if hyper["decoupled_weight_decay"] else torch._fused_adam_
    beta1, beta2 = hyper["betas"]
    kernel(
        [made[0]],
        [gradient],
        [made[1]],
        [made[2]],
        made[3:],
        [torch.tensor(float(step))],
        lr=float(hyper["lr"]),
        beta1=beta1,
        beta2=beta2,
        weight_decay=hyper["weight_decay"],
        eps=hyper["eps"],
        amsgrad=hyper["amsgrad"],
        maximize=hyper["maximize"],
    )
    return made


def sgd(program: Program, columns: Sequence[Sequence[torch.Tensor]]) -> list[Sequence[torch.Tensor]] | None:
    """Returns what a program computes, if it is a step of SGD; see `Backend.evaluated`."""
    options = sgd_options(program)
    if options is None or not have_kernels(columns):
        return None
    made = [list(map(torch.clone, column)) for column in columns[1:]]
    overwriting_sgd([columns[0], *made], options)()
    return list(made)


def overwriting_sgd(columns: Sequence[Sequence[torch.Tensor]], options: Mapping[str, Any]) -> Callable[[], Any]:
    """Returns the call that writes a step of SGD with the options of `sgd_options` over lists of tensors."""
    gradients, parameters, *buffers = columns
    return functools.partial(torch._fused_sgd_, parameters, gradients, buffers[0] if buffers else [], **options)


@cached
def sgd_options(program: Program) -> dict[str, Any] | None:
    """Returns the options with which `torch._fused_sgd_` computes a program; None if that is no step of SGD."""
    names = _sgd_programs().get((program.inputs, program.outputs, tuple(step[:3] for step in program.steps)))
    if names is None:
        return None
    found = {name: step.number or 0.0 for name, step in zip(names, program.steps, strict=True)}
    options = {name: found.get(name, 0.0) for name in ("lr", "momentum", "weight_decay")}
    if found.get("ahead", options["momentum"]) != options["momentum"]:
        return None
    flags = {"nesterov": "ahead" in found, "maximize": "rising" in found, "is_first_step": False}
    return {**options, **flags, "dampening": 1.0 - found["share"] if "share" in found else 0.0}


@functools.cache
def _sgd_programs() -> dict[Any, list[str]]:
    """Returns the steps of SGD by their inputs, outputs and ops; a value names the number of each op."""
    return dict(starmap(_sgd_program, product((False, True), (False, True), ("", "plain", "dampened", "nesterov"))))


def _sgd_program(rising: bool, decay: bool, momentum: str) -> tuple[Any, list[str]]:
    """Returns what `emberharmony.optim.SGD` calls with some options, as a key and value of `_sgd_programs`."""
    inputs, outputs = 3 if momentum else 2, []
    names: list[str] = []
    steps: list[tuple[str, int, int | None]] = []

    def step(op: str, first: int, second: int | None = None, name: str = "") -> int:
        names.append(name)
        steps.append((op, first, second))
        return inputs + len(steps) - 1

    direction = gradient = step("negative", 0, name="rising") if rising else 0
    if decay:
        direction = gradient = step("add", gradient, step("multiply", 1, name="weight_decay"))
    if momentum:
        kept = step("multiply", 2, name="momentum")
        added = step("multiply", gradient, name="share") if momentum == "dampened" else gradient
        direction = step("add", kept, added)
        outputs = [direction]
    if momentum == "nesterov":
        direction = step("add", gradient, step("multiply", direction, name="ahead"))
    after = step("subtract", 1, step("multiply", direction, name="lr"))
    return (inputs, (after, *outputs), tuple(steps)), names
