"""Whether the op that replaces a native function accepts the arguments of a call."""

import ast
import csv
from collections.abc import Mapping
from functools import cache
from importlib.resources import files
from typing import NamedTuple

from emberlint.knowledge.replacements import table_name

# How many positional arguments mean the same in the native function and in the op, where that is not the number of
# required arguments plus one.
IN_ORDER = {"arange": 3, "clip": 3, "where": 3, "linspace": 3, "logspace": 3, "geomspace": 3}
# torch also accepts the dimensions as separate arguments
SHAPE_ONLY = {"torch.zeros": 1, "torch.ones": 1, "torch.empty": 1}
# The first optional parameter of these differs from that of the op: the order of a norm in PyTorch, the axis in
# the op. An argument in that place must be named.
OTHER_OPTION = frozenset(
    {"mlx.core.linalg.cross", "numpy.corrcoef", "numpy.cov", "numpy.cross", "numpy.nan_to_num", "numpy.reshape"}
    | {"numpy.unique", "numpy.vecdot", "torch.linalg.vector_norm", "torch.nn.functional.dropout", "torch.topk"}
    | {"torch.unbind"}
)
# The optional parameter has the name and place of that of the op and another effect: `torch.squeeze(x, 1)` keeps an
# axis of another size than 1, where the op raises a ShapeError.
NO_OPTION = frozenset({"torch.squeeze"})


class Parameters(NamedTuple):
    """The parameters of an op: the required ones, all positional ones in order, and all names."""

    required: tuple[str, ...]
    positional: tuple[str, ...]
    named: frozenset[str]
    variadic: bool


@cache
def parameters() -> Mapping[str, Parameters]:
    """Returns the parameters of the ops, layers, losses and optimizers that replace native ones; not of constants."""
    parameters_by_op = {}
    for file_name in ("parameters.csv", "layers.csv"):
        csv_text = files("emberlint.knowledge").joinpath(file_name).read_text(encoding="utf-8")
        csv_rows = csv.DictReader(line for line in csv_text.splitlines() if not line.startswith("#"))
        parameters_by_op.update({row["op"]: _parse_parameters(row["parameters"].split()) for row in csv_rows})
    return parameters_by_op


def _parse_parameters(words: list[str]) -> Parameters:
    """Returns the parameters in a text such as `x axis= *`.

    A name with `=` has a default, names after a star are keyword-only, and `*xs` takes any number of arguments.
    """
    star_index = next((index for index, word in enumerate(words) if word.startswith("*")), len(words))
    is_variadic = star_index < len(words) and words[star_index] != "*"
    positional_names, parameter_words = words[:star_index], [word for word in words if not word.startswith("*")]
    required_names = tuple(word for word in parameter_words if not word.endswith("="))
    return Parameters(
        required_names,
        tuple(word.rstrip("=") for word in positional_names),
        frozenset(word.rstrip("=") for word in parameter_words),
        is_variadic,
    )


def takes_arguments(call: ast.Call, op: str, origin: str) -> bool:
    """Returns whether the op takes the arguments of a call unchanged, with the same meaning.

    Required arguments and the first optional one have the same positions in an op and in the native function. The order
    of further arguments differs between libraries.
    """
    op_parameters, native_name = parameters().get(op), table_name(origin)
    keyword_names = [keyword.arg for keyword in call.keywords]
    if op_parameters is None or None in keyword_names or any(isinstance(arg, ast.Starred) for arg in call.args):
        return False
    given_names = {
        *op_parameters.positional[: len(call.args)],
        *(native_name for native_name in keyword_names if native_name is not None),
    }
    required_count = len([parameter for parameter in op_parameters.required if parameter in op_parameters.positional])
    if native_name in NO_OPTION and len(given_names) > required_count:
        return False
    most_positional = (
        required_count
        if native_name in OTHER_OPTION
        else SHAPE_ONLY.get(native_name, IN_ORDER.get(op, required_count + 1))
    )
    if not op_parameters.variadic and len(call.args) > min(most_positional, len(op_parameters.positional)):
        return False
    repeated_names = set(op_parameters.positional[: len(call.args)]) & set(keyword_names)
    return (
        not repeated_names
        and op_parameters.named.issuperset(given_names)
        and given_names.issuperset(op_parameters.required)
    )
