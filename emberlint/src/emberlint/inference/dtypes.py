"""The floating dtypes of tensors, as far as they are certain, and the operators that are safe on them.

An operator is safe if every library gives the value, the dtype and the gradient of the op: between tensors of one
floating dtype, or such a tensor and a Python int or float. `//` and `%` differ at infinities and in the sign of zeros.
A dtype is a name such as `float64`, or `float` for the default float; "" stands for an unknown dtype or another one.
"""

import ast
from collections.abc import Iterator, Mapping

from emberlint.inference import values as v
from emberlint.knowledge.ops_table import KEEPING, MAKING

SAFE = (ast.Add, ast.Sub, ast.Mult, ast.Div, ast.Pow, ast.MatMult, ast.USub, ast.UAdd)
COMPARING = (ast.Lt, ast.LtE, ast.Gt, ast.GtE, ast.Eq, ast.NotEq)
_NAMES = ("float16", "bfloat16", "float32", "float64")


def common_dtype(left: v.Value, right: v.Value) -> str:
    """Returns the floating dtype of two operands: of both tensors, or of the tensor beside a Python number."""
    if isinstance(left, v.Tensor) and isinstance(right, v.Tensor):
        return left.dtype if left.dtype == right.dtype else ""
    for first_operand, second_operand in ((left, right), (right, left)):
        if isinstance(first_operand, v.Tensor) and second_operand is v.REAL:
            return first_operand.dtype
    return ""


def result_dtype(operator: ast.operator, left: v.Value, right: v.Value) -> str:
    """Returns the dtype of the result of a safe binary operator, or "" for another operator."""
    dtype = common_dtype(left, right) if isinstance(operator, SAFE) else ""
    if isinstance(operator, ast.MatMult) and (dtype == "bfloat16" or v.REAL in (left, right)):
        return ""  # NumPy's product of bfloat16 is float32
    return dtype


def is_safe_operator(node: ast.expr, values: Mapping[ast.AST, v.Value]) -> bool:
    """Returns whether an expression is an operator on tensors that is safe."""
    if isinstance(node, ast.BinOp):
        return result_dtype(node.op, values.get(node.left), values.get(node.right)) != ""
    if isinstance(node, ast.UnaryOp):
        operand_value = values.get(node.operand)
        return isinstance(node.op, SAFE) and isinstance(operand_value, v.Tensor) and operand_value.dtype != ""
    if isinstance(node, ast.Compare) and len(node.ops) == 1 and isinstance(node.ops[0], COMPARING):
        return common_dtype(values.get(node.left), values.get(node.comparators[0])) != ""
    if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id == "abs" and node.args:
        operand_value = values.get(node.args[0])
        return isinstance(operand_value, v.Tensor) and operand_value.dtype != ""
    return False


def dtype_of_call(
    origin: str, node: ast.Call, positional: list[v.Value], named: dict[str, v.Value], places: tuple[str, ...]
) -> str:
    """Returns the dtype of the tensor that an op returns.

    Args:
        origin: the dotted name of the op.
        node: the call.
        positional: the values of its positional arguments.
        named: the values of the others.
        places: the names of the positional parameters, empty if they are not known.
    """
    option_nodes = {keyword.arg: keyword.value for keyword in node.keywords}
    if None in option_nodes or any(isinstance(arg, ast.Starred) for arg in node.args):
        return ""
    dtype_position = places.index("dtype") if "dtype" in places else len(node.args)
    dtype_node = option_nodes.pop("dtype", None) or (
        node.args[dtype_position] if dtype_position < len(node.args) else None
    )
    if dtype_node is not None:
        return _named_dtype(dtype_node)
    op_name = origin.rpartition(".")[2]
    if op_name in MAKING and ".special." not in origin:
        return "float" if all(value is v.REAL for value in positional[1:]) else ""
    if op_name not in KEEPING or ".random." in origin:
        return ""
    arguments_and_values = [*zip(node.args, positional, strict=True)]
    arguments_and_values += [(node, named.get(option or "")) for option, node in option_nodes.items()]
    dtypes = {_argument_dtype(*pair) for pair in arguments_and_values} - {None}
    return dtypes.pop() or "" if len(dtypes) == 1 else ""


def _named_dtype(node: ast.expr) -> str:
    """Returns the floating dtype that an expression names."""
    dtype_name = node.value if isinstance(node, ast.Constant) else getattr(node, "attr", "")
    return dtype_name if isinstance(dtype_name, str) and dtype_name in _NAMES else ""


def _argument_dtype(node: ast.expr, value: v.Value) -> str | None:
    """Returns the dtype of an argument, None for a number or another option, and "" if it is unknown."""
    if isinstance(value, v.Tensor):
        return value.dtype
    if isinstance(value, v.Sequence) and v.holds_tensor(value):
        return _dtype_of_items(value)
    leaf_nodes = [*_leaves_of_lists(node)]
    if isinstance(node, (ast.List, ast.Tuple)) and all(_is_number(leaf) for leaf in leaf_nodes):
        return (
            "float"
            if any(isinstance(leaf, ast.Constant) and type(leaf.value) is float for leaf in leaf_nodes)
            else None
        )
    are_numbers = isinstance(value, v.Sequence) and value.element is v.REAL
    return None if are_numbers or value is v.REAL or isinstance(node, ast.Constant) else ""


def _dtype_of_items(value: v.Sequence) -> str:
    """Returns the common dtype of the tensors in a list."""
    item_values = value.items if value.items is not None else [value.element]
    dtypes = {item.dtype if isinstance(item, v.Tensor) else "" for item in item_values}
    return dtypes.pop() if len(dtypes) == 1 else ""


def _leaves_of_lists(node: ast.expr) -> Iterator[ast.expr]:
    """Yields the elements of nested lists, a negative number without its sign."""
    if isinstance(node, (ast.List, ast.Tuple)):
        for elt in node.elts:
            yield from _leaves_of_lists(elt)
    else:
        yield node.operand if isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.USub) else node


def _is_number(node: ast.expr) -> bool:
    return isinstance(node, ast.Constant) and type(node.value) in (int, float)
