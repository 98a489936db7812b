"""The conditions under which layers, loaders and pools equal those of PyTorch, and what they need besides."""

import ast
from collections.abc import Callable, Iterator, Mapping

from emberlint.source.source_file import SourceFile

DATASET = "torch.utils.data.TensorDataset"
LOADER = "torch.utils.data.DataLoader"
# Layers whose result no other name refers to, so that the next layer may write into it.
_FRESH = ("Conv", "Linear", "BatchNorm", "GroupNorm", "LayerNorm", "InstanceNorm", "Bilinear")
Condition = Callable[[SourceFile, ast.Call, Mapping[str, ast.expr]], str | None]


def _reason_for_in_place(file: SourceFile, call: ast.Call, _: Mapping[str, ast.expr]) -> str | None:
    """Returns why a layer with `inplace=True` may change an input that other code reads, or None."""
    inplace_values = [keyword.value for keyword in call.keywords if keyword.arg == "inplace"]
    inplace_values += [arg for arg in call.args if isinstance(arg, ast.Constant) and isinstance(arg.value, bool)]
    if all(isinstance(value, ast.Constant) and value.value is False for value in inplace_values):
        return None
    parent = file.parent(call)
    if (
        isinstance(parent, ast.Call)
        and file.native_origin(parent.func) == "torch.nn.Sequential"
        and call in parent.args[1:]
    ):
        previous_layer = parent.args[parent.args.index(call) - 1]
        previous_name = (file.native_origin(previous_layer.func) or "") if isinstance(previous_layer, ast.Call) else ""
        if previous_name.rpartition(".")[2].startswith(_FRESH):
            return None
    return "with inplace=True it also changes its input, which may be used again"


def _reason_for_pool(file: SourceFile, call: ast.Call, arguments: Mapping[str, ast.expr]) -> str | None:
    """Returns why the number of axes of a pooling layer is unknown, or None."""
    size_node = arguments.get("pool_size")
    size_nodes = (
        size_node.elts
        if isinstance(size_node, ast.Tuple)
        else [size_node]
        if isinstance(size_node, ast.Constant)
        else []
    )
    has_literal_sizes = len(size_nodes) in (1, 2) and all(
        isinstance(size_node, ast.Constant) for size_node in size_nodes
    )
    return (
        None if has_literal_sizes else "the number of axes does not follow from the arguments: write the size as (n, m)"
    )


def _reason_for_flat(file: SourceFile, call: ast.Call, arguments: Mapping[str, ast.expr]) -> str | None:
    """Returns why `flatten` has no equal `ops.reshape`, because the shape cannot be written, or None."""
    first_axis, tensor = arguments.get("shape"), arguments.get("x")
    has_literal_axis = isinstance(first_axis, ast.Constant) and type(first_axis.value) is int and first_axis.value > 0
    if not has_literal_axis or not isinstance(tensor, ast.Name):
        return "ops.reshape needs the shape: write the tensor as a name, and the first axis as a number"
    return None


def _reason_for_dataset(file: SourceFile, call: ast.Call, arguments: Mapping[str, ast.expr]) -> str | None:
    """Returns why a loader's dataset is no TensorDataset of its own, or None."""
    dataset_node = call.args[0] if call.args else None
    dataset_call = _dataset_call(file, dataset_node) if dataset_node is not None else None
    if dataset_call is None:
        return "its dataset is no TensorDataset of several tensors that nothing else uses"
    return None


def _reason_for_tensors(file: SourceFile, call: ast.Call, _: Mapping[str, ast.expr]) -> str | None:
    """Returns why a TensorDataset cannot become a tuple of tensors, or None."""
    parent = file.parent(call)
    result_uses = _result_uses(file, call)
    if isinstance(parent, ast.Call):
        result_uses = [call]
    if len(call.args) < 2 or not result_uses or not all(_is_given_to_loader(file, use) for use in result_uses):
        return "only a DataLoader of several tensors can do without it"
    return None


def _reason_for_axis(file: SourceFile, call: ast.Call, _: Mapping[str, ast.expr]) -> str | None:
    """Returns why `x.size(0)` may not be `x.shape[0]`: it is, of every tensor."""
    return None if not call.keywords else "ops.shape has no argument like `dim=`"


def _reason_for_exact_gelu(file: SourceFile, call: ast.Call, _: Mapping[str, ast.expr]) -> str | None:
    """Returns why a call of `gelu` may not use the exact formula with the error function, or None."""
    if _gelu_formula(call) == "none":
        return None
    return "approximate= is not written as 'none' or 'tanh'"


def _reason_for_tanh_gelu(file: SourceFile, call: ast.Call, _: Mapping[str, ast.expr]) -> str | None:
    """Returns why a call of `gelu` may not use the approximation with tanh, or None."""
    return None if _gelu_formula(call) == "tanh" else "approximate= is not written as 'tanh'"


def _gelu_formula(call: ast.Call) -> object:
    """Returns the value of `approximate` in a call of PyTorch's `gelu`, or None if it is no literal text."""
    approximate_values = [keyword.value for keyword in call.keywords if keyword.arg == "approximate"]
    return next((value.value if isinstance(value, ast.Constant) else None for value in approximate_values), "none")


CONDITIONS: Mapping[str, Condition] = {
    "axis": _reason_for_axis,
    "exact gelu": _reason_for_exact_gelu,
    "tanh gelu": _reason_for_tanh_gelu,
    "in place": _reason_for_in_place,
    "pair": _reason_for_pool,
    "flat": _reason_for_flat,
    "dataset": _reason_for_dataset,
    "tensors": _reason_for_tensors,
}


def _dataset_call(file: SourceFile, node: ast.expr) -> ast.Call | None:
    """Returns the call of TensorDataset that an expression is, or is bound to, if it can be a tuple."""
    if isinstance(node, ast.Name):
        dataset_bindings = file.names.bindings(node)
        node = (
            dataset_bindings[0].value
            if len(dataset_bindings) == 1 and isinstance(dataset_bindings[0].value, ast.expr)
            else node
        )
    is_dataset_call = isinstance(node, ast.Call) and file.native_origin(node.func) == DATASET
    return node if is_dataset_call and _reason_for_tensors(file, node, {}) is None else None  # type: ignore[arg-type,return-value]


def _result_uses(file: SourceFile, call: ast.Call) -> list[ast.expr]:
    """Returns the places that read the name to which the result of a call is bound."""
    parent = file.parent(call)
    target = parent.targets[0] if isinstance(parent, ast.Assign) and len(parent.targets) == 1 else None
    if not isinstance(target, ast.Name) or len(file.names.bindings(target)) != 1:
        return []
    scope_bindings = file.names.lookup(target)
    return [
        node
        for node in file.index.nodes(ast.Name)
        if node.id == target.id and isinstance(node.ctx, ast.Load) and scope_bindings == file.names.lookup(node)
    ]


def _is_given_to_loader(file: SourceFile, node: ast.expr) -> bool:
    parent = file.parent(node)
    return isinstance(parent, ast.Call) and node in parent.args[:1] and file.native_origin(parent.func) == LOADER


def argument_insertions(when: str, call: ast.Call) -> Iterator[tuple[ast.expr, str, str]]:
    """Yields arguments with the texts to insert before and after them, such as `*` before a loader's tensors."""
    value_by_keyword = {keyword.arg: keyword.value for keyword in call.keywords}
    if when == "dataset":
        yield call.args[0], "*", ""
    elif when == "pair":
        size_node = value_by_keyword.get("kernel_size") or call.args[1]
        if isinstance(size_node, ast.Constant):
            yield size_node, "(", f", {size_node.value!r})"
    elif when == "flat":
        is_method = isinstance(call.func, ast.Attribute) and len(call.args) < 2 and "input" not in value_by_keyword
        argument_nodes = (
            [call.func.value, *call.args] if isinstance(call.func, ast.Attribute) and is_method else call.args
        )
        start_node = value_by_keyword.get("start_dim") or argument_nodes[1]
        tensor_node = value_by_keyword.get("input") or argument_nodes[0]
        yield start_node, f"(*{getattr(tensor_node, 'id', '')}.shape[:", "], -1)"
