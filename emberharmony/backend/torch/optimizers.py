"""Computes steps of optimizers by PyTorch's own kernels for the CPU, which read and write memory once.

A kernel looks neither at strides nor at shapes. It rounds the last elements of a tensor, which fill no register, once
where it rounds the others twice.

`optim.updates.computed_by` names the rules that have a kernel, which takes contiguous float32 or float64 on the CPU. It
needs no vectors.
"""

import functools
from collections.abc import Callable, Mapping, Sequence
from itertools import chain
from operator import attrgetter
from typing import Any

import torch

from emberharmony.transforms.program import Update

Columns = Sequence[Sequence[torch.Tensor]]
_IS_CPU = attrgetter("is_cpu")


def have_kernels(columns: Columns) -> bool:
    """Returns whether the kernels take lists of tensors, in which those at the same place have the same shape.

    In half precision the kernels round less often than the ops. On an accelerator they read numbers from there.

    Args:
        columns: gradients, parameters, and tensors of the state, all of one dtype.
    """
    tensors = [*chain.from_iterable(columns)]
    return (
        tensors[0].dtype in (torch.float32, torch.float64)
        and all(map(_IS_CPU, tensors))
        and all(map(torch.Tensor.is_contiguous, tensors))
    )


def computed(update: Update, columns: Columns) -> list[Sequence[torch.Tensor]] | None:
    """Returns what an update makes of lists of tensors; None if PyTorch has no kernel for it."""
    if update.kernel not in KERNELS:
        return None
    made = [list(map(torch.clone, column)) for column in columns[1:]]
    KERNELS[update.kernel]([columns[0], *made], update)()
    return list(made)


def _adam(columns: Columns, update: Update) -> Callable[[], Any]:
    """Returns the call that makes a step of `emberharmony.optim.Adam`."""
    gradients, parameters, means, squares, *largest = columns
    hyper: Mapping[str, Any] = update.options
    count = torch.tensor(float(update.state["step"] + 1))
    beta1, beta2 = hyper["betas"]
    return functools.partial(
        torch._fused_adamw_ if hyper["decoupled_weight_decay"] else torch._fused_adam_,
        parameters,
        gradients,
        means,
        squares,
        largest[0] if largest else [],
        [count] * len(parameters),
        lr=float(hyper["lr"]),
        beta1=beta1,
        beta2=beta2,
        weight_decay=hyper["weight_decay"],
        eps=hyper["eps"],
        amsgrad=hyper["amsgrad"],
        maximize=hyper["maximize"],
    )


def _sgd(columns: Columns, update: Update) -> Callable[[], Any]:
    """Returns the call that makes a step of `emberharmony.optim.SGD`."""
    gradients, parameters, *buffers = columns
    hyper: Mapping[str, Any] = update.options
    return functools.partial(
        torch._fused_sgd_,
        parameters,
        gradients,
        buffers[0] if buffers else [],
        lr=float(hyper["lr"]),
        momentum=hyper["momentum"],
        dampening=hyper["dampening"] if buffers and update.state["step"] else 0.0,
        weight_decay=hyper["weight_decay"],
        nesterov=hyper["nesterov"],
        maximize=hyper["maximize"],
        is_first_step=False,
    )


KERNELS: dict[str, Callable[[Columns, Update], Callable[[], Any]]] = {"adam": _adam, "sgd": _sgd}
"""The kernels by the names that rules of optimizers have."""
