"""Exports a module by `torch.export`, decomposing only operators that the table of ATen lacks."""

import traceback
import warnings
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import torch
from torch._decomp import decomposition_table
from torch.export import ExportedProgram

from emberharmony.core.errors import CaptureError, EmberError
from emberharmony.interop.torch.aten import find_function

_TORCH = Path(torch.__file__).parent
_OWN = Path(__file__).parents[2]


def export_module(
    module: torch.nn.Module, args: Sequence[Any], kwargs: Mapping[str, Any], dynamic: Any, train: bool
) -> ExportedProgram:
    """Returns the exported graph of a module in training or evaluation mode; the module's state stays unchanged.

    Raises:
        CaptureError: if PyTorch cannot follow the module, or it uses a `torch.autograd.Function`.
    """
    with _switch_mode(module, train), _refuse_functions(), warnings.catch_warnings():
        # PyTorch 2.13 itself calls a function that it has deprecated, so this warning is of no use to the caller.
        warnings.filterwarnings("ignore", ".*treespec.*", FutureWarning)
        warnings.filterwarnings(
            "ignore", r"The tensor attributes? self\..*_flat_weights", UserWarning
        )  # the same tensor objects
        try:
            program = torch.export.export(module, tuple(args), dict(kwargs), dynamic_shapes=dynamic, strict=False)
            for graph_module in program.graph_module.modules():
                if isinstance(graph_module, torch.fx.GraphModule):
                    _detach_without_grad(graph_module.graph)
            decomposed_program: ExportedProgram = program.run_decompositions(_decompositions())
        except EmberError:
            raise
        except Exception as error:
            raise _capture_error(module, error) from error
    return decomposed_program


@contextmanager
def _switch_mode(module: torch.nn.Module, train: bool) -> Iterator[None]:
    """Puts a module into training or evaluation mode for a block; each submodule gets its own mode back."""
    submodules_and_modes = [(submodule, submodule.training) for submodule in module.modules()]
    if module.training != train:
        module.train(train)
    try:
        yield
    finally:
        for inner_module, was_training in submodules_and_modes:
            inner_module.training = was_training


@contextmanager
def _refuse_functions() -> Iterator[None]:
    """Makes calls of `torch.autograd.Function` an error in a block, because the graph would lose their `backward`."""
    original_apply = torch.autograd.Function.__dict__["apply"]

    def apply_or_refuse(cls: Any, *args: object, **kwargs: object) -> Any:
        if cls.__module__.startswith("torch._library"):  # an operator of `torch.library`
            return original_apply.__get__(None, cls)(*args, **kwargs)
        raise CaptureError(
            f"the model calls {cls.__name__}, a torch.autograd.Function, {_model_line_of_stack()}. A captured program "
            f"would lose its backward(): replace the call by torch operators, or by a torch.library.custom_op that "
            f"emberharmony.register_aten() knows, whose gradient an ops.custom_gradient defines"
        )

    torch.autograd.Function.apply = classmethod(apply_or_refuse)  # type: ignore[arg-type, assignment, method-assign]
    try:
        yield
    finally:
        torch.autograd.Function.apply = original_apply  # type: ignore[method-assign]


def _detach_without_grad(graph: torch.fx.Graph) -> None:
    """Inserts `detach` after each part of a graph under `torch.no_grad()`, because decomposition drops that block."""
    for node in list(graph.nodes):
        if "wrap_with_set_grad_enabled" not in str(node.target) or node.args[0] is not False:
            continue
        for user in list(node.users):
            with graph.inserting_after(user):
                detach_node = graph.call_function(torch.ops.aten.detach.default, (user,))
                detach_node.meta.update(user.meta)

            def is_other_reader(reader: torch.fx.Node, stop: torch.fx.Node = detach_node) -> bool:
                return reader is not stop

            user.replace_all_uses_with(detach_node, delete_user_cb=is_other_reader)


def _decompositions() -> Any:
    """Returns PyTorch's decompositions of the operators that the table of ATen lacks."""
    decomposition_by_operator: Any = torch.export.default_decompositions()
    for op in list(decomposition_by_operator.keys()):
        if op._overloadname != "out" and find_function(str(op)) is not None:
            decomposition_by_operator.pop(op)
    for op, rule in decomposition_table.items():
        is_aten = isinstance(op, torch._ops.OpOverload) and str(op).startswith("aten.")
        if is_aten and find_function(str(op)) is None and op not in decomposition_by_operator:
            decomposition_by_operator[op] = rule
    return decomposition_by_operator


def _capture_error(module: torch.nn.Module, error: Exception) -> CaptureError:
    """Returns the error for a model that `torch.export` cannot follow: the line, what it does, and the way out."""
    error_name = type(error).__name__
    error_text = str(error)
    model_line = _model_line_of_traceback(error)
    if "data-dependent" in error_text or "GuardOnDataDependent" in error_name:
        hint = (
            "the program would depend on the values of tensors. If this is a random choice, as layerdrop, set its "
            "probability to 0 in the model's options; otherwise replace the `if` by torch.where"
        )
    elif "Constraint" in error_name or "constraints violated" in error_text.lower():
        hint = f"an axis in `dynamic` cannot have any length: {_first_lines(error_text, 6)}"
    else:
        hint = _first_lines(error_text, 3)
    return CaptureError(f"{type(module).__name__} cannot be captured {model_line}: {hint}")


def _first_lines(text: str, count: int) -> str:
    return " ".join(line.strip() for line in text.strip().splitlines()[:count])


def _is_model_file(path: str) -> bool:
    """Returns whether a file belongs to a model, rather than to PyTorch or this package."""
    file_path = Path(path)
    return file_path.exists() and _TORCH not in file_path.parents and _OWN not in file_path.parents


def _last_model_line(frames: Sequence[traceback.FrameSummary]) -> str:
    """Returns the last line of a stack that is in a file of a model, for messages."""
    for frame in reversed(frames):
        if _is_model_file(frame.filename):
            return f"at {frame.filename}:{frame.lineno} ({(frame.line or '').strip()})"
    return "in a line that PyTorch does not tell"


def _model_line_of_traceback(error: Exception) -> str:
    return _last_model_line(traceback.extract_tb(error.__traceback__))


def _model_line_of_stack() -> str:
    return _last_model_line(traceback.extract_stack())


def source_place(node: torch.fx.Node) -> str:
    """Returns the line of the model that a node of a graph is from, as "file:line in function"; "" if it is unknown."""
    stack_trace: str = node.meta.get("stack_trace") or ""
    call_lines = [line.strip() for line in stack_trace.splitlines() if line.strip().startswith("File ")]
    user_call_lines = [call for call in call_lines if str(_TORCH) not in call]
    if not (user_call_lines or call_lines):
        return ""
    file, line_number, *rest_of_line = [
        field.strip() for field in (user_call_lines or call_lines)[-1].removeprefix("File ").split(",")
    ]
    return f"{file.strip(chr(34))}:{line_number.removeprefix('line ')}{' ' + rest_of_line[0] if rest_of_line else ''}"
