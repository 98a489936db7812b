"""A call that is valid in `keras.ops` is valid here: the parameters of each op against the recorded ones of Keras.

`tools/keras_signatures.py` records the signatures from the source of a release of Keras.
"""

import ast
import json
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

import pytest

from emberharmony import ops
from emberharmony.core.errors import ArgumentError, AxisError
from emberharmony.core.registry import EMPTY, OPS, OpParameter

RECORD = json.loads((Path(__file__).parent / "keras_signatures.json").read_text(encoding="utf-8"))["signatures"]

_STANDARD = "the array API standard has another name or default, and comes first"
_INTEGERS = "integers are int64 unless a dtype is given"

EXCLUDED: dict[str, str] = {
    "arange.step": "the array API standard has the default 1; None is accepted and means 1",
    "cross.axis": "the array API standard has the default -1; None is accepted and means the same",
    "einsum.**kwargs": "Keras passes it to the library of the backend",
    "layer_normalization.**kwargs": "Keras takes only rms_scaling there, which is a parameter of ours",
    "multi_hot.**kwargs": "Keras takes only num_tokens there, an old name of num_classes",
    "multi_hot.num_classes": "Keras refuses None, too",
    "random.categorical.dtype": _INTEGERS,
    "random.randint.dtype": _INTEGERS,
    "rearrange.**axes_lengths": "the parameters of an op have fixed names; axes_lengths takes a dict",
    "reshape.newshape": _STANDARD,
    "take_along_axis.axis": _STANDARD,
    "view.dtype": "without a dtype there is nothing to view",
}
"""The parameters whose difference from Keras stays, as `op.parameter`, each with the reason."""


class Recorded(NamedTuple):
    """A parameter in Keras: its place among the positional ones, or None, and the source of its default, or None."""

    name: str
    position: int | None
    default: str | None


def recorded(signature: str) -> list[Recorded]:
    """Returns the parameters in a recorded signature except for `*args`, whose name no caller writes."""
    function = ast.parse(f"def f({signature}): pass").body[0]
    assert isinstance(function, ast.FunctionDef)
    given = function.args
    positional = [*given.posonlyargs, *given.args]
    defaults: list[ast.expr | None] = [None] * (len(positional) - len(given.defaults))
    defaults += given.defaults
    found = [
        Recorded(parameter.arg, i, None if default is None else ast.unparse(default))
        for i, (parameter, default) in enumerate(zip(positional, defaults, strict=True))
    ]
    found += [
        Recorded(parameter.arg, None, None if default is None else ast.unparse(default))
        for parameter, default in zip(given.kwonlyargs, given.kw_defaults, strict=True)
    ]
    return found + ([Recorded(f"**{given.kwarg.arg}", None, None)] if given.kwarg else [])


def ours(name: str) -> list[OpParameter]:
    """Returns the parameters of our op, found in the namespace where Keras has it."""
    space, _, last = name.rpartition(".")
    function = getattr(getattr(ops, space), last) if space else getattr(ops, name)
    spec = OPS[name if function.__name__ not in OPS else function.__name__]  # `ops.fft` is also a namespace
    return list(spec.parameters)


def difference(wanted: Recorded, parameters: list[OpParameter]) -> str | None:
    """Says in which way our parameters do not take what the recorded one takes, or returns None."""
    mine = next((p for p in parameters if p.name == wanted.name), None)
    if mine is None:
        return f"takes no {wanted.name}="
    if wanted.position is not None and not mine.keyword_only:
        position = parameters.index(mine)
        if position != wanted.position:
            return f"takes {wanted.name} as positional argument {position}, Keras as {wanted.position}"
    if wanted.default is None:
        return None
    if mine.default is EMPTY:
        return f"requires {wanted.name}, whose default in Keras is {wanted.default}"
    default = ast.literal_eval(wanted.default)
    if mine.default != default:
        return f"has {wanted.name}={mine.default!r}, Keras {wanted.default}"
    return None


PARAMETERS = [(name, parameter) for name, signature in RECORD.items() for parameter in recorded(signature)]
DIFFERENCES = {
    f"{name}.{parameter.name}": found
    for name, parameter in PARAMETERS
    if (found := difference(parameter, ours(name))) is not None
}


def test_the_record_covers_the_ops_of_keras() -> None:
    assert len(RECORD) > 350
    assert [name for name, signature in RECORD.items() if not recorded(signature) and signature] == []


def test_every_parameter_of_keras_has_its_name_position_and_default_here() -> None:
    assert {name: found for name, found in DIFFERENCES.items() if name not in EXCLUDED} == {}


def test_every_exclusion_is_needed_and_has_a_reason() -> None:
    assert EXCLUDED.keys() - DIFFERENCES.keys() == set()
    assert all(len(reason) > 20 for reason in EXCLUDED.values())


def test_few_parameters_are_excluded() -> None:
    assert len(EXCLUDED) <= 0.05 * len(PARAMETERS)


@pytest.mark.parametrize(
    ("theirs", "name", "found"),
    [
        ("x", "tril", None),
        ("x, n=0", "tril", "takes no n="),
        ("k=0, x=None", "tril", "takes k as positional argument 1, Keras as 0"),
        ("x, k=1", "tril", "has k=0, Keras 1"),
        ("x, shape=None", "broadcast_to", "requires shape, whose default in Keras is None"),
        ("x, k, copy=None", "convert_to_tensor", "takes no k="),
        ("x1, x2, invert=False", "isin", None),
        ("x, **lengths", "tril", "takes no **lengths="),
    ],
)
def test_a_difference_is_found(theirs: str, name: str, found: str | None) -> None:
    assert next(filter(None, (difference(p, ours(name)) for p in recorded(theirs))), None) == found


@pytest.mark.parametrize(
    ("option", "call"),
    [
        ("sparse", lambda: ops.convert_to_tensor([1.0], sparse=True)),
        ("ragged", lambda: ops.convert_to_tensor([1.0], ragged=True)),
        ("sparse", lambda: ops.convert_to_tensor(ops.ones(2), sparse=True)),
        ("ragged", lambda: ops.convert_to_tensor(ops.ones(2), ragged=True)),
        ("sparse", lambda: ops.one_hot([1], 2, sparse=True)),
        ("sparse", lambda: ops.multi_hot([1], 2, sparse=True)),
        ("sparse", lambda: ops.bincount([1], sparse=True)),
        ("synchronized", lambda: ops.moments([1.0], 0, synchronized=True)),
    ],
)
def test_an_option_for_what_does_not_exist_is_refused(option: str, call: Callable[[], object], backend: str) -> None:
    with pytest.raises(ArgumentError, match=rf"\(\) on backend '{backend}': .*{option}=True is not available"):
        call()


def test_the_options_are_accepted_with_the_values_that_ask_for_nothing(backend: str) -> None:
    assert ops.convert_to_tensor([1.0], sparse=False, ragged=False).tolist() == [1.0]
    assert ops.one_hot([1], 2, sparse=False).tolist() == [[0.0, 1.0]]
    assert ops.multi_hot([1], 2, sparse=False).tolist() == [0.0, 1.0]
    assert ops.bincount([1], sparse=False).tolist() == [0, 1]
    assert ops.moments([1.0], 0, synchronized=False)[0].tolist() == 1.0
    assert ops.arange(3, step=None).tolist() == [0, 1, 2]
    assert ops.geomspace(1, 4, 3, axis=-1).tolist() == [1.0, 2.0, 4.0]
    with pytest.raises(AxisError):
        ops.geomspace(1, 4, 3, axis=1)
