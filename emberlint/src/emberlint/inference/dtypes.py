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


def common(left: v.Value, right: v.Value) -> str:
    """Returns the floating dtype of two operands: of both tensors, or of the tensor beside a Python number."""
    if isinstance(left, v.Tensor) and isinstance(right, v.Tensor):
        return left.dtype if left.dtype == right.dtype else ""
    for first_operand, second_operand in ((left, right), (right, left)):
        if isinstance(first_operand, v.Tensor) and second_operand is v.REAL:
            return first_operand.dtype
    return ""


def result(operator: ast.operator, left: v.Value, right: v.Value) -> str:
    """Returns the dtype of the result of a safe binary operator, or "" for another operator."""
    dtype = common(left, right) if isinstance(operator, SAFE) else ""
    if isinstance(operator, ast.MatMult) and (dtype == "bfloat16" or v.REAL in (left, right)):
        return ""  # NumPy gives float32
    return dtype


def is_safe(node: ast.expr, values: Mapping[ast.AST, v.Value]) -> bool:
    """Returns whether an expression is an operator on tensors that is safe."""
    if isinstance(node, ast.BinOp):
        return result(node.op, values.get(node.left), values.get(node.right)) != ""
    if isinstance(node, ast.UnaryOp):
        operand = values.get(node.operand)
        return isinstance(node.op, SAFE) and isinstance(operand, v.Tensor) and operand.dtype != ""
    if isinstance(node, ast.Compare) and len(node.ops) == 1 and isinstance(node.ops[0], COMPARING):
        return common(values.get(node.left), values.get(node.comparators[0])) != ""
    if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id == "abs" and node.args:
        operand = values.get(node.args[0])
        return isinstance(operand, v.Tensor) and operand.dtype != ""
    return False


def of_call(
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
    options = {keyword.arg: keyword.value for keyword in node.keywords}
    if None in options or any(isinstance(arg, ast.Starred) for arg in node.args):
        return ""
    position = places.index("dtype") if "dtype" in places else len(node.args)
    dtype = options.pop("dtype", None) or (node.args[position] if position < len(node.args) else None)
    if dtype is not None:
        return _named_dtype(dtype)
    name = origin.rpartition(".")[2]
    if name in MAKING and ".special." not in origin:
        return "float" if all(value is v.REAL for value in positional[1:]) else ""
    if name not in KEEPING or ".random." in origin:
        return ""
    pairs = [*zip(node.args, positional, strict=True)]
    pairs += [(node, named.get(option or "")) for option, node in options.items()]
    dtypes = {_argument_dtype(*pair) for pair in pairs} - {None}
    return dtypes.pop() or "" if len(dtypes) == 1 else ""


def _named_dtype(node: ast.expr) -> str:
    """Returns the floating dtype that an expression names."""
    text = node.value if isinstance(node, ast.Constant) else getattr(node, "attr", "")
    return text if isinstance(text, str) and text in _NAMES else ""


def _argument_dtype(node: ast.expr, value: v.Value) -> str | None:
    """Returns the dtype of an argument, None for a number or another option, and "" if it is unknown."""
    if isinstance(value, v.Tensor):
        return value.dtype
    if isinstance(value, v.Sequence) and v.holds_tensor(value):
        return _of_all(value)
    leaves = [*_leaves_of_lists(node)]
    if isinstance(node, (ast.List, ast.Tuple)) and all(_is_number(leaf) for leaf in leaves):
        return "float" if any(isinstance(leaf, ast.Constant) and type(leaf.value) is float for leaf in leaves) else None
    are_numbers = isinstance(value, v.Sequence) and value.element is v.REAL
    return None if are_numbers or value is v.REAL or isinstance(node, ast.Constant) else ""


def _of_all(value: v.Sequence) -> str:
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
