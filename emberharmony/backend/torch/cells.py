"""Makes functions of PyTorch accept a parameter or buffer of the package in place of its tensor."""

from typing import Any

import torch

from emberharmony.core.cells.tensor_methods import TensorMethods, in_place_error, replace_cells_by


def _torch_function(cls: type, function: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
    """Calls a function of PyTorch with the parameters and buffers among its arguments replaced by their tensors.

    Raises:
        ArgumentTypeError: if the function would write into a cell.
        TypeError: for a product of matrices while Dynamo traces, which then leaves the expression to Python.
    """
    name = function.__name__
    if isinstance(kwargs and kwargs.get("out"), TensorMethods) or (
        name[-1] == "_" and name[-2] != "_" and isinstance([*args, *(kwargs or {}).values()][0], TensorMethods)
    ):
        raise in_place_error(f"torch's {name}", "the new tensor")
    if name == "matmul" and isinstance(args[1], TensorMethods) and torch.compiler.is_dynamo_compiling():
        # Dynamo of PyTorch 2.13 traces `p @ x` of an object with `__torch_function__` as `x @ p`.
        raise TypeError("x @ p of a parameter is not traced: write ops.matmul(x, p)")
    return function(*replace_cells_by(args), **replace_cells_by(kwargs or {}))


def _trace_within_callers(function: Any) -> None:
    """Makes `torch.compile` trace a function as a part of its callers only, and never compile it by itself.

    PyTorch 2.13 compiles a function that takes a method of PyTorch as an argument, and calls it later with another one
    as if that were the first. `docs/upstream.md` shows when this may go. The names are private, as in PyTorch 2.12.
    """
    eval_frame: Any = torch._C._dynamo.eval_frame
    action_class = eval_frame._FrameAction
    eval_frame.set_code_exec_strategy(
        function.__code__, eval_frame._FrameExecStrategy(action_class.SKIP, action_class.DEFAULT)
    )


_trace_within_callers(_torch_function)
TensorMethods.__torch_function__ = classmethod(_torch_function)
