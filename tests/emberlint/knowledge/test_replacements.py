"""Compares the table of replacements with the libraries: a plain rename must give the same numbers."""

import ast
import importlib
import inspect
import re
from contextlib import suppress
from operator import attrgetter
from pkgutil import resolve_name
from typing import Any

import numpy as np
import pytest

from emberharmony import ops
from emberharmony.backend.discovery import BUILTIN, is_installed
from emberharmony.core.errors import EmberError
from emberlint.knowledge.arguments import parameters, takes_arguments
from emberlint.knowledge.replacements import PACKAGE, WAYS, Replacement, replacement, replacement_table

INSTALLED = [name for name in BUILTIN if is_installed(name)]
MODULES = {"numpy": "numpy", "torch": "torch", "mlx": "mlx.core"}
# The values of these are arbitrary (uninitialised memory, random numbers), or their signs are (basis vectors), or
# their order (partition).
FREE = {"dropout", "empty", "empty_like", "eig", "eigh", "qr", "svd", "default_device", "partition"}
# The ops differ on purpose: as in Python, 0.5 // 0.1 is 4, and the reciprocal of the integer 3 is not 0.
MENDED = {"mlx.core.divmod", "mlx.core.floor_divide", "numpy.reciprocal"}
MATRIX = np.array([[0.5, 0.25], [0.125, 0.75]], "float32")
OTHER = np.array([[0.25, 0.5], [0.5, 0.125]], "float32")
VECTOR = np.array([0.5, 1.5, 0.25, 0.375], "float32")
TRIPLE = np.array([1.0, 2.0, 4.0], "float32")
SQUARE = np.array([[1.0, 0.5, 0.25], [0.5, 2.0, 0.375], [0.125, 0.25, 3.0]], "float32")
ARGUMENTS: tuple[tuple[Any, ...], ...] = (
    (MATRIX, OTHER, MATRIX),
    (VECTOR, 2, 3),
    (VECTOR, (2, 2), 1),
    (MATRIX, 0, 1),
    (MATRIX, 0.1, 0.4),
    ([VECTOR, VECTOR], 0),
    (TRIPLE, TRIPLE[::-1].copy(), TRIPLE),
    (np.array([[7, 3], [12, 9]]), np.array([[2, 2], [3, 1]]), MATRIX),
    (VECTOR, np.array([0, 2]), 0),
    ((2, 3), 1.5),
    (3, 4, 5),
    (SQUARE, SQUARE.T.copy(), SQUARE),  # torch.cross works along the first axis of size 3
    (np.arange(12, dtype="float32").reshape(2, 3, 2), 1, 1),  # numpy.linalg.trace takes the last two axes
)
CONDITION = (np.array([True, False, True]), TRIPLE, TRIPLE[::-1].copy())


def native(name: str) -> Any:
    """Returns the native function or constant with a dotted name."""
    parts = name.split(".")
    for end in range(len(parts) - 1, 0, -1):
        try:
            return attrgetter(".".join(parts[end:]))(importlib.import_module(".".join(parts[:end])))
        except (ImportError, AttributeError):
            continue
    return None


def of_backend(value: Any) -> Any:
    if isinstance(value, list):
        return [of_backend(one) for one in value]
    return ops.convert_to_tensor(value) if isinstance(value, np.ndarray) else value


def host(value: Any) -> Any:
    if isinstance(value, list | tuple):
        return [host(one) for one in value]
    return ops.to_numpy(value) if ops.is_tensor(value) else value


def is_same(one: Any, other: Any) -> bool:
    if isinstance(one, list):
        return isinstance(other, list) and len(one) == len(other) and all(map(is_same, one, other))
    if isinstance(one, np.ndarray | np.generic | bool | int | float | complex):
        return np.shape(one) == np.shape(other) and np.allclose(one, other, 1e-4, 1e-5, equal_nan=True)
    return True  # other rules replace dtypes and similar objects


@pytest.mark.parametrize("library", INSTALLED)
@pytest.mark.filterwarnings("ignore::Warning")
def test_a_plain_rename_gives_the_same_numbers(library: str) -> None:
    compared, differ = 0, []
    with ops.use_backend(library):
        for name, found in replacement_table().items():
            function, known = native(name), parameters().get(found.op)
            if name.partition(".")[0] != library or not found.is_rename or known is None or name in MENDED:
                continue
            if found.op in FREE or found.op.startswith("random."):
                continue
            count = 2 if known.variadic else len(known.required)
            for given in (*ARGUMENTS, CONDITION) if count == 3 else ARGUMENTS:
                arguments = [of_backend(one) for one in given[:count]]
                try:
                    expected = host(function(*arguments))
                except Exception:  # noqa: BLE001 -- each library has its own errors for wrong arguments
                    continue
                compared += 1
                # An op that is stricter than the library raises a typed error; it does not return another number.
                with suppress(EmberError):
                    if is_same(expected, host(attrgetter(found.op)(ops)(*arguments))):
                        continue
                    differ.append((name, found.op, given[:count]))
    assert differ == []
    assert compared > 500


# One parameter under the names of several libraries.
SAME = {"dim": "axis", "dims": "axis", "keepdim": "keepdims", "m": "M", "lambd": "threshold", "offset": "k"}
SAME |= {"a_min": "x_min", "a_max": "x_max", "min": "x_min", "max": "x_max"}


def positional(name: str) -> list[str]:
    """Returns the names of the positional parameters of a native function, from its signature or its docstring."""
    function = native(name)
    with suppress(ValueError, TypeError):
        found = [*inspect.signature(function).parameters.values()]
        if not any(one.kind is one.VAR_POSITIONAL for one in found):
            return [one.name for one in found if one.kind is not one.KEYWORD_ONLY]
    last = re.escape(name.rpartition(".")[2])
    match = re.search(rf"{last}\((.*?)\)\s*(?:->|\n|$)", function.__doc__ or "", re.DOTALL)
    text = re.sub(r"\[.*?\]", "", match[1].replace("\\*", "*").split("*,")[0]) if match else ""
    return [re.split("[=:]", one)[0].strip(" /\n") for one in text.split(",") if one.strip(" /\n")]


@pytest.mark.parametrize("library", INSTALLED)
def test_an_optional_argument_of_a_plain_rename_means_the_same_parameter(library: str) -> None:
    compared, differ = 0, []
    for name, found in replacement_table().items():
        known = parameters().get(found.op)
        if name.partition(".")[0] != library or not found.is_rename or known is None or known.variadic:
            continue
        if found.op in FREE - {"dropout"}:
            continue
        required = len([one for one in known.required if one in known.positional])
        for at, theirs in [*enumerate(positional(name) if native(name) is not None else ())][required:]:
            call = ast.parse(f"f({', '.join('x' * (at + 1))})", mode="eval").body
            assert isinstance(call, ast.Call)
            if takes_arguments(call, found.op, name):
                compared += 1
                if SAME.get(theirs, theirs) != known.positional[at] and theirs != known.positional[at]:
                    differ.append((name, theirs, known.positional[at]))
    assert differ == []
    assert compared > 20


@pytest.mark.parametrize(
    "origin, expected",
    [
        ("jax.scipy.special.gammaln", Replacement("gammaln", True)),
        ("jax.numpy.interp", Replacement("interp", True)),
        ("torch.igamma", Replacement("gammainc", True)),
        ("torch.nn.functional.linear", Replacement("linear", False)),  # the weight has its axes swapped
        ("torch.cholesky_solve", Replacement("cho_solve", False)),  # the factor is the second argument
        ("torch.index_put", Replacement("set_item", False)),
        ("numpy.put_along_axis", Replacement("put_along_axis", False)),  # writes into its argument
        ("torch.special.airy_ai", None),
    ],
)
def test_the_replacement_of_a_native_function(origin: str, expected: Replacement | None) -> None:
    assert replacement(origin) == expected


def test_every_replacement_exists() -> None:
    for found in replacement_table().values():
        value = resolve_name(found.op) if found.op.startswith(PACKAGE) else attrgetter(found.op)(ops)
        assert (found.op in parameters()) or not callable(value) or isinstance(value, type), found.op
        assert callable(value) or isinstance(value, float | None), found.op


@pytest.mark.parametrize("library", ["jax", "mlx", "torch"])
def test_what_is_written_by_hand_names_functions_and_ops_that_exist(library: str) -> None:
    pytest.importorskip(library)
    names = {name: way for name, way in WAYS.items() if name.startswith(f"{library}.")}
    assert names
    for name, way in names.items():
        module, _, rest = name.rpartition(".")
        assert callable(getattr(importlib.import_module(module), rest)), name
        assert all(hasattr(ops, word) for word in re.findall(r"ops\.(\w+)", way)), name


@pytest.mark.parametrize(
    "source, op, origin, expected",
    [
        ("f(x)", "sin", "numpy.sin", True),
        ("f()", "sin", "numpy.sin", False),
        ("f(x, y)", "sin", "numpy.sin", False),
        ("f(x, 0)", "mean", "numpy.mean", True),
        ("f(x, 0, keep)", "mean", "numpy.mean", False),
        ("f(x, axis=0, keepdims=True)", "mean", "numpy.mean", True),
        ("f(x, dim=0)", "mean", "torch.mean", False),
        ("f(x, axis=0, x=y)", "mean", "numpy.mean", False),
        ("f(*x)", "mean", "numpy.mean", False),
        ("f(x, **how)", "mean", "numpy.mean", False),
        ("f(x, out=y)", "sum", "numpy.sum", False),
        ("f(2, 3)", "zeros", "torch.zeros", False),
        ("f((2, 3), d)", "zeros", "numpy.zeros", True),
        ("f(0, 10, 2)", "arange", "numpy.arange", True),
        ("f('ij', x, y)", "einsum", "numpy.einsum", True),
        ("f(x)", "pi", "numpy.pi", False),
        ("f(x, 1)", "vector_norm", "torch.linalg.vector_norm", False),  # the order there, the axis here
        ("f(x, 1)", "unstack", "torch.unbind", False),  # the axis there, the number of parts here
        ("f(x)", "unstack", "torch.unbind", True),
        ("f(x, 1)", "squeeze", "torch.squeeze", False),  # an axis of size 3 stays there
        ("f(x, axis=1)", "squeeze", "torch.squeeze", False),
        ("f(x, 1)", "squeeze", "numpy.squeeze", True),
        ("f(x, y)", "cov", "jax.numpy.cov", False),  # more observations there, `rowvar` here
        ("f(x, False)", "nan_to_num", "numpy.nan_to_num", False),  # whether to copy there, the new value here
    ],
)
def test_a_call_is_renamed_only_if_the_op_takes_its_arguments(
    source: str, op: str, origin: str, expected: bool
) -> None:
    call = ast.parse(source, mode="eval").body
    assert isinstance(call, ast.Call)
    assert takes_arguments(call, op, origin) is expected
