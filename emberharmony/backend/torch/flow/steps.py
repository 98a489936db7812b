"""Steps of optimizers on PyTorch: by its kernels for the CPU, which read and write memory once, or by programs.

A kernel looks neither at strides nor at shapes. It rounds the last elements of a tensor, which fill no register, once
where it rounds the others twice.
"""

import contextlib
import functools
import sys
from collections.abc import Callable, Mapping, Sequence
from itertools import chain
from operator import attrgetter
from typing import TYPE_CHECKING, Any

import torch
from torch._utils import _flatten_dense_tensors, _unflatten_dense_tensors

from emberharmony.backend.steps import Steps, Traits
from emberharmony.backend.torch.tracing import is_unwatched
from emberharmony.core.deferred import Deferred

if TYPE_CHECKING:
    from emberharmony.backend.torch.flow import programs
    from emberharmony.transforms.program import Update
else:
    programs = Deferred("emberharmony.backend.torch.flow.programs")

_GUARDED = torch.__version__.startswith(("2.12.", "2.13."))
TensorGuards: Any = getattr(torch._C._dynamo.guards, "TensorGuards", None) if _GUARDED else None
"""A private class: only the versions on which it was tested use it, because other arguments may end the process.

It looks at 200 tensors in 28 µs, which takes 280 in Python (PyTorch 2.13): 1.9 times a step of `SGD` for 100 of them.
"""
_COUNTS = hasattr(torch.Tensor, "_use_count") and hasattr(torch._C, "_storage_Use_Count")
"""Whether PyTorch tells how many refer to the memory of a tensor."""

Columns = Sequence[Sequence[torch.Tensor]]
_IS_CPU = attrgetter("is_cpu")


def _have_kernels(columns: Columns) -> bool:
    """Returns whether PyTorch's optimizer kernels support lists of tensors of these dtypes, devices and layouts.

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


def _run_kernel(update: "Update", columns: Columns) -> list[Sequence[torch.Tensor]] | None:
    """Returns the lists of tensors that an optimizer's kernel computes; None if PyTorch has none for the update."""
    if update.kernel not in KERNELS:
        return None
    copies = [list(map(torch.clone, column)) for column in columns[1:]]
    KERNELS[update.kernel]([columns[0], *copies], update)()
    return list(copies)


def _adam_call(columns: Columns, update: "Update") -> Callable[[], Any]:
    """Returns the call that makes a step of `emberharmony.optim.Adam`."""
    gradients, parameters, means, squares, *largest = columns
    hyperparameters: Mapping[str, Any] = update.options
    step_tensor = torch.tensor(float(update.state["step"] + 1))
    beta1, beta2 = hyperparameters["betas"]
    return functools.partial(
        torch._fused_adamw_ if hyperparameters["decoupled_weight_decay"] else torch._fused_adam_,
        parameters,
        gradients,
        means,
        squares,
        largest[0] if largest else [],
        [step_tensor] * len(parameters),
        lr=float(hyperparameters["lr"]),
        beta1=beta1,
        beta2=beta2,
        weight_decay=hyperparameters["weight_decay"],
        eps=hyperparameters["eps"],
        amsgrad=hyperparameters["amsgrad"],
        maximize=hyperparameters["maximize"],
    )


def _sgd_call(columns: Columns, update: "Update") -> Callable[[], Any]:
    """Returns the call that makes a step of `emberharmony.optim.SGD`."""
    gradients, parameters, *buffers = columns
    hyperparameters: Mapping[str, Any] = update.options
    return functools.partial(
        torch._fused_sgd_,
        parameters,
        gradients,
        buffers[0] if buffers else [],
        lr=float(hyperparameters["lr"]),
        momentum=hyperparameters["momentum"],
        dampening=hyperparameters["dampening"] if buffers and update.state["step"] else 0.0,
        weight_decay=hyperparameters["weight_decay"],
        nesterov=hyperparameters["nesterov"],
        maximize=hyperparameters["maximize"],
        is_first_step=False,
    )


KERNELS: dict[str, Callable[[Columns, "Update"], Callable[[], Any]]] = {"adam": _adam_call, "sgd": _sgd_call}
"""The kernels by the names that rules of optimizers have."""


class TorchSteps(Steps):
    """The steps of optimizers on PyTorch."""

    def as_vector(self, tensors: Sequence[torch.Tensor]) -> torch.Tensor:
        """Returns all elements of tensors of one dtype and device as one vector, perhaps in their memory."""
        vector: torch.Tensor = _flatten_dense_tensors(list(tensors))  # type: ignore[no-untyped-call]
        return vector

    def split_vector(self, vector: torch.Tensor, likes: Sequence[torch.Tensor]) -> list[torch.Tensor]:
        """Returns the elements of a vector as tensors of the shapes of others, each with memory of its own."""
        tensors = [torch.empty_like(like) for like in likes]
        pieces = _unflatten_dense_tensors(vector, tensors)  # type: ignore[no-untyped-call]
        torch._foreach_copy_(tensors, list(pieces))
        return tensors

    def has_kernel(self, update: "Update", like: torch.Tensor) -> bool:
        """Returns whether a kernel computes an update of tensors, if they are contiguous."""
        return update.kernel in KERNELS and _have_kernels([[like]])

    def run_update(self, update: "Update", columns: Columns) -> list[Sequence[torch.Tensor]] | None:
        """Returns the lists of tensors that a program computes; None while a graph or compiler records operations."""
        if not is_unwatched():
            return None
        return _run_kernel(update, columns) or programs.run_update(update, columns)

    def traits_of(self, columns: Columns) -> Traits:
        """Returns the facts about lists of tensors; a program needs plain tensors of one dtype without a graph."""
        tensors = [*chain.from_iterable(columns)]
        has_plain_class = {*map(type, tensors)} == {torch.Tensor}
        is_fusable = has_plain_class and len({x.dtype for x in tensors}) == 1 and is_unwatched(*tensors)
        has_kernels = is_fusable and _have_kernels(columns)
        if not (has_plain_class and TensorGuards):
            property_tuples = list(map(_compared_properties, tensors))
            return Traits(
                lambda *others: list(map(_compared_properties, others)) == property_tuples, is_fusable, has_kernels
            )
        # It looks at what torch.compile guards, and does not keep the tensors; the options may not be left out.
        guards = TensorGuards(*tensors, dynamic_dims_sizes=None, dynamic_dims_strides=None)
        return Traits(guards.check, is_fusable, has_kernels)

    def evaluate(self, tensors: list[torch.Tensor]) -> None:
        """Does nothing: PyTorch computes at once, or in a queue of the accelerator."""

    def owns_memory(self, tensors: Sequence[torch.Tensor]) -> bool:
        """Returns whether PyTorch has made the memory of these tensors, and nothing else refers to it."""
        storages = list(map(torch.Tensor.untyped_storage, tensors))
        addresses = map(attrgetter("_cdata"), storages)
        # The list, the tensor and the call are three references to a storage; a user's reference would be one more.
        return (
            max(map(torch.Tensor._use_count, tensors)) == 1  # type: ignore[attr-defined]
            and max(map(torch._C._storage_Use_Count, addresses)) == 2
            and max(map(sys.getrefcount, storages)) <= 3
            and all(map(torch.UntypedStorage.resizable, storages))
            and not any(map(torch.UntypedStorage.is_shared, storages))
        )

    def can_overwrite(self, update: "Update") -> bool:
        """Returns whether functions of C can write the results of a program over its inputs."""
        return _COUNTS and (update.kernel in KERNELS or programs.can_overwrite_inputs(update.program))

    def overwriting_calls(self, update: "Update", columns: Columns, kept: dict[Any, Any]) -> Any:
        """Returns the calls that write a program's results over its inputs; None while operations are recorded."""
        if not is_unwatched():
            return None
        if update.kernel in KERNELS:
            return [[(KERNELS[update.kernel](columns, update),)]]
        return [programs.overwriting_calls(update, columns)] if programs.can_overwrite_inputs(update.program) else None

    def writing_scope(self) -> contextlib.AbstractContextManager[Any]:
        """Returns the context manager in which no graph is recorded, and all tensors can be written to."""
        return torch.inference_mode()

    def run_uncompiled(self, function: Callable[..., Any], *args: Any) -> Any:
        """Calls a function, which `torch.compile` leaves out of what it traces."""
        if torch.compiler.is_compiling():
            return torch._dynamo.disable(function)(*args)  # type: ignore[no-untyped-call]
        return function(*args)


def _compared_properties(x: torch.Tensor) -> tuple[Any, ...]:
    """Returns the properties of a tensor that `Traits.match` compares where PyTorch has no guards."""
    strides = x.stride() if x.layout == torch.strided else ()
    return type(x), x.shape, x.dtype, x.device, strides, x.requires_grad, x.is_inference()
