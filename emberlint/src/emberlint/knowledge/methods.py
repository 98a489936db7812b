"""The methods of tensors that the table of signatures knows, and the libraries whose tensors have them."""

import ast
import csv
from collections.abc import Mapping, Sequence
from functools import cache
from importlib.resources import files

from emberlint.knowledge.signatures import Signature, UntranslatableError, signatures_of, translate

TENSORS = {"numpy": "numpy.ndarray", "torch": "torch.Tensor", "jax": "jax.Array"}
LIBRARIES = {"numpy": "NumPy", "torch": "PyTorch", "mlx": "MLX", "jax": "JAX"}
# Methods that only tensors of PyTorch have, so that the name tells the library of a value of unknown type.
OF_TORCH = frozenset(
    {"clamp", "clone", "contiguous", "cpu", "detach", "dim", "expand", "index_select", "log_softmax", "logsumexp"}
    | {"masked_fill", "ndimension", "nelement", "numel", "numpy", "permute", "reciprocal", "rsqrt", "softmax", "tile"}
    | {"tril", "triu", "unsqueeze"}
)
ALIKE = frozenset({"ravel", "reshape"})  # ops that count as the same, because their results are equal
# Arguments of NumPy's names, which PyTorch takes besides its own.
_TOO = frozenset({"axis", "keepdims"})


@cache
def libraries_by_method() -> Mapping[str, frozenset[str]]:
    """Returns the libraries whose tensors have a method, by its name."""
    csv_text = files("emberlint.knowledge").joinpath("methods.csv").read_text(encoding="utf-8")
    return {row["method"]: frozenset(row["libraries"].split()) for row in csv.DictReader(csv_text.splitlines())}


def signatures_by_library(method: str) -> dict[str, tuple[Signature, ...]]:
    """Returns the signatures of a method by library, for the libraries that have one."""
    signatures_by_name = {library: signatures_of(f"{name}.{method}") for library, name in TENSORS.items()}
    return {library: library_rows for library, library_rows in signatures_by_name.items() if library_rows}


def op_of(method: str, positional: int, keywords: Sequence[str], library: str = "") -> str:
    """Returns the op that replaces a call of a method, that of a library first, or an empty string."""
    signatures_of_libraries = signatures_by_library(method)
    candidate_signatures = [
        *signatures_of_libraries.get(library, ()),
        *(signature for group in signatures_of_libraries.values() for signature in group),
    ]
    for candidate in candidate_signatures:
        try:
            translate(candidate, 1 + positional, keywords)
        except UntranslatableError:
            continue
        return candidate.op
    return candidate_signatures[0].op if candidate_signatures else ""


def library_tie_reason(method: str, positional: int, keywords: Sequence[str]) -> str:
    """Returns why a call of a method works on the tensors of some libraries only, or an empty string."""
    libraries = libraries_by_method().get(method)
    if libraries is None:
        return ""
    if len(libraries) < len(LIBRARIES):
        return f"{_libraries_text(libraries)} `.{method}()`"
    rows_by_library = signatures_by_library(method)
    for name in keywords:
        accepting_libraries = {
            library
            for library, library_rows in rows_by_library.items()
            if any(name in row.named for row in library_rows) or (library == "torch" and name in _TOO)
        }
        if accepting_libraries == {"torch"} and len(rows_by_library) > 1:
            return f"{_libraries_text(frozenset(accepting_libraries), 'take')} `{name}=` in `.{method}()`"
    if _differs_between_libraries(rows_by_library, positional, keywords):
        return f"`.{method}()` of PyTorch means something else than that of the other libraries"
    return ""


def is_torch_receiver(method: str, call: ast.Call) -> bool:
    """Returns whether the arguments of a method tell that its receiver is a tensor of PyTorch.

    `view` takes numbers there only, and a dtype in NumPy; `size` takes an axis there only, and is a number in NumPy.
    """
    if method in libraries_by_method() and any(keyword.arg in ("dim", "keepdim") for keyword in call.keywords):
        return True
    if method == "size":
        return len(call.args) == 1 and not call.keywords
    return method == "view" and any(isinstance(arg, ast.Starred) or is_number(arg) for arg in call.args)


def is_number(node: ast.expr) -> bool:
    """Returns whether an expression is an integer that is written out."""
    unsigned_node = node.operand if isinstance(node, ast.UnaryOp) else node
    return isinstance(unsigned_node, ast.Constant) and type(unsigned_node.value) is int


def _libraries_text(libraries: frozenset[str], verb: str = "have") -> str:
    """Returns the beginning of a sentence about the libraries that have something."""
    if len(libraries) == 1:
        return f"only tensors of {LIBRARIES[min(libraries)]} {verb}"
    titles_of_others = [title for name, title in LIBRARIES.items() if name not in libraries]
    return f"tensors of {' and '.join(titles_of_others)} do not {verb}"


def _differs_between_libraries(
    rows_by_library: Mapping[str, Sequence[Signature]], positional: int, keywords: Sequence[str]
) -> bool:
    """Returns whether the same call is another op, or has another default, in PyTorch than in NumPy."""
    if set(rows_by_library) == {"torch"}:  # no op equals the methods of the other libraries
        return True
    op_meanings = []
    for library in ("numpy", "torch"):
        for signature in rows_by_library.get(library, ()):
            try:
                translation = translate(signature, 1 + positional, keywords)
            except UntranslatableError:
                continue
            op_meanings.append(
                ("" if signature.op in ALIKE else signature.op, () if signature.op in ALIKE else translation.fills)
            )
            break
    return len(op_meanings) == 2 and op_meanings[0] != op_meanings[1]
