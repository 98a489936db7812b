"""The signatures of native functions and methods, and the op and its arguments that replace a call of each.

The tests run every row: the native call and the translated one must give equal values and dtypes.
"""

import csv
from collections.abc import Mapping, Sequence
from functools import cache
from importlib.resources import files
from typing import NamedTuple

from emberlint.knowledge.arguments import parameters
from emberlint.knowledge.replacements import program_name

DROPPED = ""
PARTS = {"values": 0, "indices": 1}  # of the results of `torch.max(x, dim)`, `torch.sort` and the like


class Signature(NamedTuple):
    """A native function or method, its parameters, and how its arguments become those of the op.

    `places` are the positional parameters in order; `*axes` takes all further positional arguments. `arguments` gives
    the op's parameter for a native one, or an empty text if the argument is dropped because it changes no result.
    `fills` are the arguments of the op that stand for a native default. `when` names a condition on the arguments,
    `integers` is what differs for integer tensors. `part` is the index of the item of the
    native result that the op returns, or None for the whole result.
    """

    native: str
    places: tuple[str, ...]
    named: frozenset[str]
    required: tuple[str, ...]
    op: str
    arguments: Mapping[str, str]
    fills: Mapping[str, str]
    when: str
    integers: str
    part: int | None = None


class Translation(NamedTuple):
    """The arguments of the op: a keyword for each argument of the call, None for a positional one, and the fills.

    The keyword of an argument that is dropped is empty. The arguments from `packed` on are wrapped in a tuple; -1 if
    there are none.
    """

    keywords: tuple[str | None, ...]
    fills: tuple[tuple[str, str], ...]
    packed: int = -1


class UntranslatableError(Exception):
    """Raised for a call that no call of the op equals; the message is the reason."""


@cache
def signatures() -> Mapping[str, Signature]:
    """Returns the signatures by the names of the table.

    A function has several rows if its arguments decide which op it is (`numpy.where`, `numpy.where:nonzero`), or if
    the op returns only a part of its result (`torch.max:values`, `torch.max:indices`).
    """
    csv_text = files("emberlint.knowledge").joinpath("signatures.csv").read_text(encoding="utf-8")
    return {row["native"]: _parse_row(row) for row in csv.DictReader(csv_text.splitlines())}


@cache
def _signatures_by_function() -> Mapping[str, tuple[Signature, ...]]:
    signatures_by_function: dict[str, tuple[Signature, ...]] = {}
    for signature in signatures().values():
        signatures_by_function[signature.native] = (*signatures_by_function.get(signature.native, ()), signature)
    return signatures_by_function


def signatures_of(native: str) -> tuple[Signature, ...]:
    """Returns the signatures of a native function, in the order of the table."""
    return _signatures_by_function().get(native, ())


def _parse_row(row: Mapping[str, str]) -> Signature:
    required_names = tuple(word for word in row["parameters"].split() if "=" not in word and word != "*")
    parameter_names = [word.partition("=")[0] for word in row["parameters"].split()]
    star_index = parameter_names.index("*") if "*" in parameter_names else len(parameter_names)
    argument_pairs = [word.partition("=") for word in row["arguments"].split()]
    return Signature(
        row["native"].partition(":")[0],
        tuple(parameter_names[:star_index]),
        frozenset(word for word in parameter_names if not word.startswith("*") and word != "self"),
        tuple(word.lstrip("*") for word in required_names),
        row["op"],
        {
            native_name.partition(":")[0] or our_name: our_name
            for our_name, _, native_name in argument_pairs
            if not native_name.startswith(":")
        },
        {our_name: native_name.partition(":")[2] for our_name, _, native_name in argument_pairs if ":" in native_name},
        row["when"],
        row["integers"],
        PARTS.get(row["native"].partition(":")[2]),
    )


def translate(signature: Signature, positional: int, keywords: Sequence[str]) -> Translation:
    """Returns the arguments of the op for a call with so many positional arguments and these keywords.

    The receiver of a method counts as its first positional argument. The arguments keep their order, so that Python
    evaluates them in the same order as before.

    Raises:
        UntranslatableError: if the op does not take these arguments.
    """
    positional_names, first_packed_index = _native_parameters(signature, positional)
    unknown_names = [name for name in keywords if name not in signature.named]
    if unknown_names:
        raise UntranslatableError(f"`{signature.native}` has no parameter `{unknown_names[0]}`")
    op_parameters = parameters()[signature.op]
    given_arguments: list[str | None] = []
    given_names: set[str] = set()
    for index, name in enumerate([*positional_names, *keywords]):
        op_argument = signature.arguments.get(name.lstrip("*"))
        if op_argument is None:
            raise UntranslatableError(f"{program_name(signature.op)} has no argument like `{name.lstrip('*')}=`")
        if not op_argument:
            given_arguments.append(DROPPED)
            continue
        if op_argument in given_names and not (op_parameters.variadic and op_argument not in op_parameters.named):
            raise UntranslatableError(f"two arguments for `{name}`")
        given_names.add(op_argument)
        if op_parameters.variadic and index < positional and op_argument not in op_parameters.named:
            given_arguments.append(None)
            continue
        is_positional = (
            index < len(op_parameters.positional)
            and op_parameters.positional[index] == op_argument
            and None not in given_arguments[index:]
        )
        is_in_order = all(argument is None for argument in given_arguments)
        given_arguments.append(None if index < positional and is_positional and is_in_order else op_argument)
    missing_names = [name for name in op_parameters.required if name not in given_names and name not in signature.fills]
    if missing_names:
        raise UntranslatableError(f"{program_name(signature.op)} needs `{missing_names[0]}`")
    missing_fills = tuple((name, text) for name, text in signature.fills.items() if name not in given_names)
    return Translation(tuple(given_arguments), missing_fills, first_packed_index)


def _native_parameters(signature: Signature, positional: int) -> tuple[list[str], int]:
    """Returns the native parameters that positional arguments give, and where those begin that form one tuple."""
    last_place = signature.places[-1] if signature.places else ""
    if last_place.startswith("*"):
        last_index = len(signature.places) - 1
        parameter_names = [*signature.places[: min(positional, last_index)], *[last_place] * (positional - last_index)]
        if parameters()[signature.op].variadic or positional <= last_index:
            return parameter_names, -1
        return parameter_names[: last_index + 1], last_index
    if positional > len(signature.places):
        raise UntranslatableError(f"`{signature.native}` takes fewer positional arguments")
    return [*signature.places[:positional]], -1
