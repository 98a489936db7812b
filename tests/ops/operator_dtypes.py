"""What the page "Operators" says of operators beside ops, by dtype: each cell of its first table is computed here."""

import ast
import operator
import warnings
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

from emberharmony import ops

SYMBOLS: dict[type, tuple[Callable[..., Any], Callable[..., Any]]] = {
    ast.Add: (operator.add, ops.add),
    ast.Sub: (operator.sub, ops.subtract),
    ast.Mult: (operator.mul, ops.multiply),
    ast.Div: (operator.truediv, ops.divide),
    ast.FloorDiv: (operator.floordiv, ops.floor_divide),
    ast.Mod: (operator.mod, ops.mod),
    ast.Pow: (operator.pow, ops.power),
    ast.MatMult: (operator.matmul, ops.matmul),
    ast.BitAnd: (operator.and_, ops.bitwise_and),
    ast.Lt: (operator.lt, ops.less),
    ast.LtE: (operator.le, ops.less_equal),
    ast.Gt: (operator.gt, ops.greater),
    ast.GtE: (operator.ge, ops.greater_equal),
    ast.Eq: (operator.eq, ops.equal),
    ast.NotEq: (operator.ne, ops.not_equal),
    ast.USub: (operator.neg, ops.negative),
    ast.UAdd: (operator.pos, ops.positive),
    ast.Invert: (operator.invert, ops.bitwise_not),
}
EDGES = (0.0, -0.0, 1.0, -1.0, 0.1, 2.5, -2.5, 1e30, 1e-30, float("inf"), float("-inf"), float("nan"), 7.3)
MATRICES = ([[0.5, -1.0], [2.0, 0.25]], [[1.5, 3.0], [-0.5, 2.0]])


def operands(wide: str, pair: int) -> dict[str, Any]:
    """Returns the tensors by their letters, the left or the right ones; matrices, as `@` needs them."""
    values = np.array(MATRICES[pair])
    return {
        "f": ops.array(values, dtype=wide),
        "d": ops.array(values, dtype="float64"),
        "h": ops.array(values, dtype="bfloat16"),
        "i": ops.array([[7, -2], [3, 5]] if pair == 0 else [[2, 3], [-2, 4]], dtype="int64"),
        "b": ops.array([[True, False], [True, True]] if pair == 0 else [[True, True], [False, True]], dtype="bool"),
        "np": np,
    }


def cell(row: str) -> str:
    """Returns what the table says of the expressions of a row on the active backend."""
    found = {one for text in row.strip("`").split("`, `") for one in _outcomes(text)}
    return "same" if found == {"same"} else ", ".join(sorted(found - {"same"}))


def _outcomes(text: str) -> Iterator[str]:
    """Yields what an operator gives in place of the op's result, for float32 and, of `f` alone, for float64."""
    node = ast.parse(text, mode="eval").body
    for wide in (
        ("float32", "float64") if "f" in text and not set("dihb") & set(text.replace("abs", "")) else ("float32",)
    ):
        left, right = operands(wide, 0), operands(wide, 1)
        if isinstance(node, ast.UnaryOp):
            yield _compared(*SYMBOLS[type(node.op)], (left["fhib"["fhib".index(text[-1])]],))
        elif isinstance(node, ast.Call):
            yield _compared(abs, ops.absolute, (left["f"],))
        else:
            first, symbol, second = _parts(node)
            pair = tuple(eval(ast.unparse(one), names) for one, names in ((first, left), (second, right)))
            yield _compared(*SYMBOLS[type(symbol)], pair)
            if {ast.unparse(first), ast.unparse(second)} == {"f"} and not isinstance(symbol, ast.MatMult):
                grid = np.array([(a, b) for a in EDGES for b in EDGES])
                edges = (ops.array(grid[:, 0], dtype=wide), ops.array(grid[:, 1], dtype=wide))
                yield _compared(*SYMBOLS[type(symbol)], edges)


def _parts(node: ast.expr) -> tuple[ast.expr, ast.AST, ast.expr]:
    if isinstance(node, ast.BinOp):
        return node.left, node.op, node.right
    assert isinstance(node, ast.Compare)
    return node.left, node.ops[0], node.comparators[0]


def _compared(symbol: Callable[..., Any], op: Callable[..., Any], pair: tuple[Any, ...]) -> str:
    """Returns "same", the dtype that the operator gives, "error", or "values"."""
    with warnings.catch_warnings(action="ignore"):
        wanted, found = (_result(function, pair) for function in (op, symbol))
    if found is None or wanted is None:
        return "same" if found is wanted else "error" if found is None else _name(found)
    if _name(found) != _name(wanted):
        return _name(found)
    x, y = (np.asarray(ops.to_numpy(ops.convert_to_tensor(one))).astype("float64") for one in (found, wanted))
    digits = 2e-2 if _name(found) == "bfloat16" else 1e-6
    equal = x.shape == y.shape and np.allclose(x, y, rtol=digits, atol=0.0, equal_nan=True)
    return "same" if equal and (np.signbit(x) == np.signbit(y))[x == 0].all() else "values"


def _result(function: Callable[..., Any], pair: tuple[Any, ...]) -> Any:
    try:
        return function(*pair)
    except Exception:  # noqa: BLE001  (the table says "error")
        return None


def _name(result: Any) -> str:
    return str(ops.dtype(result))
