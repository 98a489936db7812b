"""The ops that replace native functions; the table was made by running the functions of all three libraries."""

import csv
from collections.abc import Mapping
from functools import cache
from importlib.resources import files
from typing import NamedTuple

from emberlint.knowledge.native import DTYPES

# Modules that repeat the names of another library.
ALIASES = (
    ("jax.numpy.", "numpy."),
    ("cupy.", "numpy."),
    ("tensorflow.experimental.numpy.", "numpy."),
    ("jax.nn.", "torch.nn.functional."),
    ("jax.scipy.special.", "torch.special."),
    ("tensorflow.math.", "numpy."),
    ("tensorflow.nn.", "torch.nn.functional."),
    ("tensorflow.", "numpy."),
)


DTYPE_NAMES = {
    "half": "float16",
    "single": "float32",
    "float": "float32",
    "double": "float64",
    "short": "int16",
    "int": "int32",
    "long": "int64",
    "int_": "int64",
    "intc": "int32",
    "byte": "int8",
    "ubyte": "uint8",
    "bool": "bool_",
    "cfloat": "complex64",
    "cdouble": "complex128",
    "csingle": "complex64",
}


NEUTRAL = frozenset(
    {f"{kind}{bits}" for kind in ("int", "uint") for bits in (8, 16, 32, 64)}
    | {"float16", "float32", "float64", "bfloat16", "complex64", "complex128", "bool_"}
)


# What `x.type(torch.LongTensor)` makes of a tensor, which it also moves to the CPU.
TENSOR_TYPES = {
    f"torch.{name}Tensor": dtype
    for name, dtype in (
        *(("Half", "float16"), ("BFloat16", "bfloat16"), ("Float", "float32"), ("Double", "float64")),
        *(
            ("Char", "int8"),
            ("Short", "int16"),
            ("Int", "int32"),
            ("Long", "int64"),
            ("Byte", "uint8"),
            ("Bool", "bool_"),
        ),
    )
}


# What to write by hand instead of functions that no call of an op equals.
WAYS = {
    "jax.checkpoint": "ops.checkpoint, if the function closes over no tensor that is differentiated",
    "jax.jvp": "ops.jvp(fn, primals, tangents)",
    "jax.lax.associative_scan": "ops.associative_scan(fn, elems)",
    "jax.lax.cond": "ops.cond(pred, true_fn, false_fn, *operands)",
    "jax.lax.fori_loop": "ops.fori_loop(lower, upper, body, init), if the bounds are Python integers",
    "jax.lax.scan": "ops.scan(f, init, xs), which is a loop of Python",
    "jax.lax.while_loop": "ops.while_loop(cond, body, [init])[0]",
    "jax.tree.map": "ops.tree_map(f, tree)",
    "jax.tree_util.tree_map": "ops.tree_map(f, tree)",
    "jax.vjp": "y, pull = ops.vjp(fn, x), which gives the conjugate for complex numbers",
    "mlx.core.checkpoint": "ops.checkpoint, if the function closes over no tensor that is differentiated",
    "mlx.core.eval": "ops.eval(x)",
    "mlx.core.jvp": "result, tangent = ops.jvp(fn, primals, tangents), tensors instead of lists",
    "mlx.core.vjp": "result, pull = ops.vjp(fn, *primals), then pull(cotangent)",
    "torch.autograd.grad": "ops.grad(fn)(x)",
    "torch.dtype": "ops.DType",
    "torch.enable_grad": "nothing: only ops.grad, ops.backward and the like compute gradients",
    "torch.func.grad_and_value": "value, gradient = ops.value_and_grad(fn)(x)",
    "torch.func.jvp": "ops.jvp(fn, primals, tangents)",
    "torch.func.vjp": "y, pull = ops.vjp(fn, x)",
    "torch.inference_mode": "nothing: only ops.grad, ops.backward and the like compute gradients",
    "torch.no_grad": "nothing: only ops.grad, ops.backward and the like compute gradients",
    "torch.set_default_dtype": "ops.set_default_float(dtype)",
    "torch.utils.checkpoint.checkpoint": "ops.checkpoint(fn)(x)",
}


# Why no call of an op equals that of a native function, though it computes the same.
NONE = "no op is known to equal this call"
_SIGNS = "fixes the signs of vectors in another way"
_STREAM = "draws other numbers, because no op continues the stream of a native generator"
_OF_STEPS = (
    "counts the steps of the optimizer, which gets it as lr=, where a scheduler counts its own calls of step(), mostly "
    "one for each epoch: write it by hand, with epochs * len(loader) for numbers of epochs, and port again"
)
_INTO = "returns a new tensor, where the native function writes into its argument"
DIFFERENCES = {"eig": _SIGNS, "eigh": _SIGNS, "svd": _SIGNS} | dict.fromkeys(
    ("numpy.copyto", "numpy.fill_diagonal", "numpy.place", "numpy.put", "numpy.put_along_axis", "numpy.putmask"), _INTO
)


class Replacement(NamedTuple):
    """An op with the same effect as a native function; a plain rename takes the same arguments."""

    op: str
    is_rename: bool


SCHEDULES = "emberharmony.optim.schedules."
PACKAGE = "emberharmony."  # the prefix of names in the tables that are layers, losses and optimizers instead of ops


def program_name(op: str) -> str:
    """Returns the name of an op or layer in the tables as programs write it: `ops.sin`, `nn.Linear`."""
    return op.removeprefix(PACKAGE) if op.startswith(PACKAGE) else f"ops.{op}"


@cache
def replacement_table() -> Mapping[str, Replacement]:
    """Returns the table of replacements by the name of the native function."""
    csv_text = files("emberlint.knowledge").joinpath("replacements.csv").read_text(encoding="utf-8")
    return {
        row["native"]: Replacement(row["op"], row["change"] == "rename")
        for row in csv.DictReader(csv_text.splitlines())
    }


def replacement(origin: str) -> Replacement | None:
    """Returns the op that replaces a native function, or None."""
    return replacement_table().get(table_name(origin))


def reason_without_op(origin: str) -> str:
    """Returns why a native function, of which no call is known to equal one of an op, has none."""
    substitute = replacement(origin)
    if substitute is None:
        return NONE
    if substitute.op.startswith("random."):
        return f"{program_name(substitute.op)} {_STREAM}"
    caveat = DIFFERENCES.get(table_name(origin)) or DIFFERENCES.get(substitute.op)
    if substitute.op.startswith(SCHEDULES):
        caveat = _OF_STEPS
    return (
        f"{program_name(substitute.op)} {caveat or 'is not known to give the same values and dtypes for all arguments'}"
    )


def table_name(origin: str) -> str:
    """Returns the name under which the table lists a native function: that of NumPy for a function of jax.numpy."""
    if origin not in replacement_table():
        for name_start, start_in_table in ALIASES:
            if origin.startswith(name_start) and start_in_table + origin[len(name_start) :] in replacement_table():
                return start_in_table + origin[len(name_start) :]
    return origin


def neutral_dtype(origin: str) -> str | None:
    """Returns the neutral dtype with the same meaning as a native one, or None."""
    dtype_name = origin.rpartition(".")[2]
    neutral_name = DTYPE_NAMES.get(dtype_name, dtype_name)
    return neutral_name if dtype_name in DTYPES and neutral_name in NEUTRAL else None


def dtype_of_tensor_type(origin: str) -> str | None:
    """Returns the neutral dtype of a type of tensors on the CPU, such as `torch.LongTensor`, or None."""
    return TENSOR_TYPES.get(origin)
