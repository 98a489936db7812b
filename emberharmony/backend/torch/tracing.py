"""Traced tensors, on PyTorch: recognises them, and refuses to read numbers from them."""

import functools
import sys
import threading
from collections.abc import Sequence
from typing import Any

import torch
from torch._C import _functorch
from torch._functorch.pyfunctorch import retrieve_current_functorch_interpreter
from torch.autograd import forward_ad
from torch.utils import checkpoint

from emberharmony.core import op_globals
from emberharmony.core.errors import TracedTensorError
from emberharmony.core.state.handlers import PASSING
from emberharmony.core.tracing import TELLERS, outside_function_message

_STEPS = frozenset(f"{name}Backward{i}" for name in ("Floor", "Ceil", "Trunc", "Round") for i in range(2))
"""The nodes of PyTorch's graph whose derivative is zero: no gradient reaches the nodes before them."""

# `torch.utils.checkpoint` raises this exception when it has recomputed what a gradient needs.
PASSING.append(checkpoint._StopRecomputationError)

_interpreter = _functorch.peek_interpreter_stack

op_globals.publish(
    traced_by_torch=torch.compiler.is_compiling,
    traced_by_dynamo=torch.compiler.is_dynamo_compiling,
    mapped_by_torch=_interpreter,
)
HAS_VALUES = "{0}.__class__ is native_type and {0}.is_cpu and not traced_by_dynamo() and mapped_by_torch() is None"
"""When a compiled op may rely on the checks of kernels: no tensor is traced or mapped, and the first is on the CPU.

It says less often than `has_values` that the values are known, in a third of the time. To other tracers than Dynamo a
tensor is of another class.
"""


_include: Any = torch._C._dispatch_tls_set_dispatch_key_included
"""Sets whether this thread includes a dispatch key, in a seventh of the time of PyTorch's guard."""


class _Gradients(threading.local):
    """A stack of the leaves of all gradients that this thread is computing by `torch.autograd`, the innermost last."""

    leaves: tuple[Sequence[torch.Tensor], ...] = ()


_GRADIENTS = _Gradients()


class Watched:
    """A context in which reading a number from a traced tensor raises `TracedTensorError`.

    A transform runs the function that it differentiates in this context, and calls `leave` afterwards, because an
    interruption may have come while the context was entered or left.

    Args:
        leaves: the arguments of the function if `torch.autograd` differentiates it; `torch.func` marks its arguments
            itself.
    """

    __slots__ = ("_key", "_leaves", "_outer")

    def __init__(self, leaves: Sequence[torch.Tensor] = ()) -> None:
        self._leaves, self._key, self._outer = leaves, _register_kernels()[0], _GRADIENTS.leaves

    def __enter__(self) -> None:
        _GRADIENTS.leaves = (*self._outer, self._leaves)
        _include(self._key, True)

    def __exit__(self, *raised: object) -> None:
        _GRADIENTS.leaves = self._outer
        _include(self._key, bool(self._outer))

    leave = __exit__


def is_watched(times: int = 1) -> bool:
    """Returns whether at least `times` of our transforms are differentiating the function that runs in this thread."""
    return len(_GRADIENTS.leaves) >= times


def is_recorded() -> bool:
    """Returns whether a transform of the package is differentiating, by `torch.autograd`, what this thread runs."""
    return not torch.compiler.is_compiling() and any(_GRADIENTS.leaves)


def has_values(x: torch.Tensor) -> bool:
    """Returns whether the values of a tensor may steer the computation: on the CPU, if nothing traces or maps it."""
    if torch.compiler.is_compiling() or type(x) is not torch.Tensor or not x.is_cpu:
        return False
    return not _functorch.is_functorch_wrapped_tensor(x)


def in_functional_transform() -> bool:
    """Returns whether a transform of `torch.func` is running, in which a tensor cannot become a NumPy array."""
    return _interpreter() is not None


def is_unwatched(*tensors: torch.Tensor) -> bool:
    """Returns whether no graph, transform or compiler records operations on tensors, which may then be overwritten."""
    if torch.compiler.is_compiling() or _interpreter() is not None or forward_ad._current_level >= 0:
        return False
    for x in tensors:  # noqa: SIM110  (faster than `any`)
        # A tensor made in inference mode cannot be written to outside of it.
        if x.requires_grad or (x.is_inference() and not torch.is_inference_mode_enabled()):
            return False
    return True


def is_traced(x: torch.Tensor, below: bool = True) -> bool:
    """Returns whether a running transform differentiates with respect to this tensor, or to one it was computed from.

    A tensor that only the user's own autograd graph records, such as a `torch.nn.Parameter`, is not traced.

    Args:
        x: the tensor.
        below: whether to look for tangents of outer transforms too.
    """
    if forward_ad._current_level >= 0 and _has_tangent(x, below):
        return True
    if not torch.is_grad_enabled():
        return False
    while _functorch.is_functorch_wrapped_tensor(x):
        # The level of a wrapper that outlived its transform is -2.
        is_alive = _functorch.is_gradtrackingtensor(x) and _functorch.maybe_get_level(x) > 0
        if is_alive and x.requires_grad and _depends_on(x, None):
            return True
        x = _functorch.get_unwrapped(x)
    return x.requires_grad and any(_depends_on(x, leaves) for leaves in _GRADIENTS.leaves)


def _has_tangent(x: torch.Tensor, below: bool) -> bool:
    """Returns whether a tensor has a tangent in the innermost transform or, if `below`, in one around it."""
    if forward_ad.unpack_dual(x).tangent is not None:
        return True
    if not below or _functorch.peek_interpreter_stack() is None:
        return False
    innermost_interpreter = retrieve_current_functorch_interpreter()
    is_wrapped = _functorch.maybe_get_level(x) == innermost_interpreter.level()
    with innermost_interpreter.lower():
        return _has_tangent(_functorch.get_unwrapped(x) if is_wrapped else x, below)


def _depends_on(x: torch.Tensor, leaves: Sequence[torch.Tensor] | None) -> bool:
    """Returns whether `x`, which requires a gradient, was computed from one of `leaves`, or from any leaf if None."""
    leaf_ids = {id(leaf) for leaf in leaves or () if leaf.grad_fn is None}
    root_nodes = {leaf.grad_fn for leaf in leaves or () if leaf.grad_fn is not None}
    if x.grad_fn is None:
        return leaves is None or id(x) in leaf_ids
    pending_nodes = [x.grad_fn]
    seen_nodes = set(pending_nodes)
    while pending_nodes:
        node = pending_nodes.pop()
        leaf_tensor = getattr(node, "variable", None)
        if node in root_nodes or (leaf_tensor is not None and (leaves is None or id(leaf_tensor) in leaf_ids)):
            return True
        if node.name() in _STEPS:
            continue
        for parent, _ in node.next_functions:
            if parent is not None and parent not in seen_nodes:
                seen_nodes.add(parent)
                pending_nodes.append(parent)
    return False


@functools.cache
def _register_kernels() -> tuple[Any, Any, Any]:
    """Registers kernels that intercept every read of a number.

    They are registered for a dispatch key that PyTorch reserves for experiments. They run only in threads that include
    the key, as `Watched` does. Ops without such a kernel skip the key at no cost, whereas a `TorchFunctionMode` costs
    2.4 µs for each op.

    Returns:
        The dispatch key, and the two libraries that keep the kernels registered as long as they live.
    """
    mode_name = "TESTING_ONLY_GenericMode"
    dispatch_key = torch._C._dispatch_key_parse(mode_name)
    implementations: Any = torch.library.Library("_", "IMPL", mode_name)
    aten_library = torch.library.Library("aten", "IMPL", mode_name)
    implementations.m.fallback_fallthrough()
    torch._ops._HIGHER_ORDER_OP_DEFAULT_FALLTHROUGH_DISPATCH_KEYS.append(dispatch_key)  # for operators defined later
    for operator in torch._ops._higher_order_ops.values():
        operator.fallthrough(dispatch_key)
    excluded_keys = torch._C.DispatchKeySet(dispatch_key)

    def call_without_key(op: Any, x: torch.Tensor) -> Any:
        with torch._C._ExcludeDispatchKeyGuard(excluded_keys):
            return op(x)

    def read_number(x: torch.Tensor) -> Any:
        # Reads below autograd come from PyTorch's own kernels. Outer transforms need no check here, because PyTorch
        # repeats the read once for each of them.
        is_excluded = torch._C._dispatch_tls_is_dispatch_key_excluded(torch.DispatchKey.AutogradFunctionality)
        if not is_excluded and is_traced(x, below=False):
            raise TracedTensorError(outside_function_message("float(), item() or another way to read a number"))
        return call_without_key(torch.ops.aten._local_scalar_dense.default, x)

    def resolve_neg(x: torch.Tensor) -> torch.Tensor:
        # `tolist` reads the memory directly; `resolve_neg` is the only op that it calls first (PyTorch 2.13).
        if "tolist" in sys._getframe(1).f_code.co_names and is_traced(x):
            raise TracedTensorError(outside_function_message("tolist()"))
        tensor: torch.Tensor = call_without_key(torch.ops.aten.resolve_neg.default, x)
        return tensor

    def read_truth(x: torch.Tensor) -> bool:
        # Allow `if` on a value: the branch taken is piecewise constant, so no gradient is lost.
        return bool(call_without_key(torch.ops.aten.is_nonzero.default, x.detach()))

    aten_library.impl("_local_scalar_dense", read_number)
    aten_library.impl("resolve_neg", resolve_neg)
    aten_library.impl("is_nonzero", read_truth)
    return dispatch_key, implementations, aten_library


TELLERS[torch.Tensor] = is_traced
