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
    text = files("emberlint.knowledge").joinpath("signatures.csv").read_text(encoding="utf-8")
    return {row["native"]: _parse_row(row) for row in csv.DictReader(text.splitlines())}


@cache
def _by_function() -> Mapping[str, tuple[Signature, ...]]:
    by_function: dict[str, tuple[Signature, ...]] = {}
    for signature in signatures().values():
        by_function[signature.native] = (*by_function.get(signature.native, ()), signature)
    return by_function


def candidates(native: str) -> tuple[Signature, ...]:
    """Returns the signatures of a native function, in the order of the table."""
    return _by_function().get(native, ())


def _parse_row(row: Mapping[str, str]) -> Signature:
    required_names = tuple(word for word in row["parameters"].split() if "=" not in word and word != "*")
    words = [word.partition("=")[0] for word in row["parameters"].split()]
    star = words.index("*") if "*" in words else len(words)
    pairs = [word.partition("=") for word in row["arguments"].split()]
    return Signature(
        row["native"].partition(":")[0],
        tuple(words[:star]),
        frozenset(word for word in words if not word.startswith("*") and word != "self"),
        tuple(word.lstrip("*") for word in required_names),
        row["op"],
        {
            native_name.partition(":")[0] or our_name: our_name
            for our_name, _, native_name in pairs
            if not native_name.startswith(":")
        },
        {our_name: native_name.partition(":")[2] for our_name, _, native_name in pairs if ":" in native_name},
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
    native, packed = _native_parameters(signature, positional)
    unknown_names = [name for name in keywords if name not in signature.named]
    if unknown_names:
        raise UntranslatableError(f"`{signature.native}` has no parameter `{unknown_names[0]}`")
    target = parameters()[signature.op]
    result: list[str | None] = []
    given_names: set[str] = set()
    for index, name in enumerate([*native, *keywords]):
        our_name = signature.arguments.get(name.lstrip("*"))
        if our_name is None:
            raise UntranslatableError(f"{program_name(signature.op)} has no argument like `{name.lstrip('*')}=`")
        if not our_name:
            result.append(DROPPED)
            continue
        if our_name in given_names and not (target.variadic and our_name not in target.named):
            raise UntranslatableError(f"two arguments for `{name}`")
        given_names.add(our_name)
        if target.variadic and index < positional and our_name not in target.named:
            result.append(None)
            continue
        is_positional = (
            index < len(target.positional) and target.positional[index] == our_name and None not in result[index:]
        )
        is_in_order = all(argument is None for argument in result)
        result.append(None if index < positional and is_positional and is_in_order else our_name)
    missing_names = [name for name in target.required if name not in given_names and name not in signature.fills]
    if missing_names:
        raise UntranslatableError(f"{program_name(signature.op)} needs `{missing_names[0]}`")
    fills = tuple((name, text) for name, text in signature.fills.items() if name not in given_names)
    return Translation(tuple(result), fills, packed)


def _native_parameters(signature: Signature, positional: int) -> tuple[list[str], int]:
    """Returns the native parameters that positional arguments give, and where those begin that form one tuple."""
    last_place = signature.places[-1] if signature.places else ""
    if last_place.startswith("*"):
        index = len(signature.places) - 1
        names = [*signature.places[: min(positional, index)], *[last_place] * (positional - index)]
        if parameters()[signature.op].variadic or positional <= index:
            return names, -1
        return names[: index + 1], index
    if positional > len(signature.places):
        raise UntranslatableError(f"`{signature.native}` takes fewer positional arguments")
    return [*signature.places[:positional]], -1
