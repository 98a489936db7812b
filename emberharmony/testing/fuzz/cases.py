"""The calls of the fuzzer as source; a call depends only on the seed and its number, so it can be repeated."""

import functools
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from random import Random
from typing import Any

import numpy as np

from emberharmony.core.registry import EMPTY, OPS, OpSpec
from emberharmony.testing.fuzz import odd
from emberharmony.testing.fuzz.arrays import source_of_dtype
from emberharmony.testing.fuzz.values import Values
from emberharmony.testing.repr_source import source, spell_op
from emberharmony.testing.sample import Case
from emberharmony.testing.samples import all_samples

_SHORT = 64
"""Cases of a row with arrays of more elements are not varied."""
_STRING = re.compile(r"'[^'\\]*'")
_INDICES = ("indices", "key", "segment_ids", "sorter", "target", "target_length", "output_length")
"""Parameters whose values MLX checks only in checked mode if they are tensors."""

Bound = dict[str, list[str]]
"""The sources of arguments, by parameter; more than one for a variadic parameter."""


@dataclass(frozen=True)
class FuzzCase:
    """A fuzzed call: the op, and the sources of its arguments.

    Args:
        number: the number of the call, by which it can be made again from the seed.
        arguments: the sources of the positional arguments.
        keywords: the sources of the keyword arguments.
        then: the sources of arguments for the result, if it is a function.
        checked: whether the call is made in checked mode.
    """

    number: int
    op: str
    arguments: tuple[str, ...]
    keywords: dict[str, str]
    then: tuple[str, ...] = ()
    checked: bool = False


def case_of(seed: int, number: int, names: Sequence[str]) -> FuzzCase:
    """Returns the fuzzed call with a number, which is a call of the named ops in turn."""
    rng = Random(f"{seed}/{number}")
    spec = OPS[names[number % len(names)]]
    drawer = Values(rng, argument_pool(), short=spec.takes_callable)
    base_cases = _base_cases(spec.name)
    if base_cases and rng.random() < 0.65:
        base_case = rng.choice(base_cases)
        sources_by_parameter = (
            _arguments_of_row(drawer, base_case, spec)
            if isinstance(base_case, Case)
            else _bind_arguments(spec, base_case, {})
        )
        _vary_arguments(drawer, spec, sources_by_parameter)
    else:
        sources_by_parameter = _draw_arguments(drawer, spec)
    arguments, keywords = _positional_and_keyword(rng, spec, sources_by_parameter)
    later_args = (
        tuple(drawer.tensor_source() for _ in range(rng.choice((1, 1, 1, 2)))) if "Callable" in spec.returns else ()
    )
    is_checked = any(
        "tensor(" in argument_source or "ops." in argument_source
        for name in _INDICES
        for argument_source in sources_by_parameter.get(name, ())
    )
    return FuzzCase(number, spec.name, arguments, keywords, later_args, is_checked)


@functools.cache
def argument_pool() -> dict[str, list[str]]:
    """Returns, by the name of a parameter, the sources of the arguments without arrays that sample rows give it."""
    sources_by_name: dict[str, dict[str, None]] = {}
    for sample_row in all_samples().values():
        for item in sample_row.cases:
            for name, argument_values in _bind_arguments(OPS[sample_row.op], item.args, item.kwargs).items():
                for value in argument_values:
                    if not isinstance(value, np.ndarray) and not _holds_arrays(value):
                        try:
                            sources_by_name.setdefault(name, {})[source(value)] = None
                        except TypeError:
                            continue  # a function has no source expression
    return {name: list(sources) for name, sources in sorted(sources_by_name.items())}


def _holds_arrays(value: Any) -> bool:
    return isinstance(value, (list, tuple)) and any(isinstance(v, np.ndarray) or _holds_arrays(v) for v in value)


@functools.cache
def _base_cases(op: str) -> list[Any]:
    """Returns the cases of the op's row that are short and can be written as source; else its usual calls."""
    sample_row = all_samples()[op]
    short_cases: list[Any] = [item for item in sample_row.cases if all(map(_is_short, _flat_values(item)))]
    return short_cases or list(sample_row.usual)


def _flat_values(item: Case) -> Iterator[Any]:
    for value in (*item.args, *item.kwargs.values()):
        yield from value if isinstance(value, (list, tuple)) else (value,)


def _is_short(value: Any) -> bool:
    try:
        return not (isinstance(value, np.ndarray) and value.size > _SHORT) and bool(source(value))
    except TypeError:
        return False


def _bind_arguments(spec: OpSpec, args: Sequence[Any], kwargs: dict[str, Any]) -> dict[str, list[Any]]:
    """Returns the arguments of a call in lists by the name of the parameter that takes them."""
    arguments_by_name: dict[str, list[Any]] = {}
    remaining_args = list(args)
    for parameter in spec.parameters:
        if parameter.keyword_only:
            continue
        argument_count = len(remaining_args) if parameter.variadic else 1
        if remaining_args:
            arguments_by_name[parameter.name], remaining_args = (
                remaining_args[:argument_count],
                remaining_args[argument_count:],
            )
    return arguments_by_name | {name: [value] for name, value in kwargs.items()}


def _arguments_of_row(drawer: Values, item: Case, spec: OpSpec) -> Bound:
    """Returns the sources of the arguments of a row's case, with all floating arrays cast to one random dtype."""
    sample_row = all_samples()[spec.name]
    dtype = (
        drawer.rng.choice((*sample_row.dtypes, *sample_row.integers, *odd.DTYPES))
        if sample_row.dtypes or sample_row.integers
        else drawer.dtype
    )
    sources_by_name: Bound = {}
    for name, argument in _bind_arguments(spec, item.args, item.kwargs).items():
        sources_by_name[name] = [
            _argument_source(drawer, value, dtype, name in _INDICES and drawer.on_host) for value in argument
        ]
    return sources_by_name


def _argument_source(drawer: Values, value: Any, dtype: str, on_host: bool = False) -> str:
    if isinstance(value, np.ndarray):
        array_source = source(value)
        if value.dtype.kind in "fc":
            array_source = f"{array_source}.astype({source_of_dtype(dtype)})"
            if drawer.rng.random() < 0.12:
                array_source = drawer.with_odd_element(array_source, odd.NOT_FINITE)
        ndim = value.ndim
        while drawer.rng.random() < 0.25:
            array_source, ndim = drawer.variant_of(array_source, ndim)
        return drawer.random_form_of(array_source, ndim, on_host)
    if isinstance(value, (list, tuple)) and _holds_arrays(value):
        item_sources = [_argument_source(drawer, item, dtype) for item in value]
        if drawer.rng.random() < 0.2:
            del item_sources[drawer.rng.randrange(len(item_sources))]
        return f"[{', '.join(item_sources)}]"
    return source(value)


def _vary_arguments(drawer: Values, spec: OpSpec, sources_by_parameter: Bound) -> None:
    """Replaces, misspells or removes some arguments, or adds some."""
    if not spec.parameters:
        return
    for _ in range(drawer.rng.choice((0, 1, 1, 1, 2, 3))):
        parameter = drawer.rng.choice(spec.parameters)
        argument_sources = sources_by_parameter.get(parameter.name)
        if argument_sources and _STRING.fullmatch(argument_sources[0]) and drawer.rng.random() < 0.6:
            argument_sources[0] = drawer.misspell(argument_sources[0])
        elif argument_sources and parameter.variadic and drawer.rng.random() < 0.3:
            del argument_sources[drawer.rng.randrange(len(argument_sources))]
        else:
            new_argument = drawer.argument(spec.name, parameter, wrong=0.15)
            sources_by_parameter[parameter.name] = (
                [*argument_sources[:-1], new_argument] if argument_sources and parameter.variadic else [new_argument]
            )


def _draw_arguments(drawer: Values, spec: OpSpec) -> Bound:
    """Returns new arguments for every parameter without a default, and for some of the others."""
    sources_by_name: Bound = {}
    for parameter in spec.parameters:
        if parameter.variadic:
            argument_count = drawer.rng.choice((0, 1, 2, 2, 3))
            sources_by_name[parameter.name] = [drawer.argument(spec.name, parameter) for _ in range(argument_count)]
        elif parameter.default is EMPTY or drawer.rng.random() < 0.35:
            sources_by_name[parameter.name] = [drawer.argument(spec.name, parameter)]
    return sources_by_name


def _positional_and_keyword(
    rng: Random, spec: OpSpec, sources_by_parameter: Bound
) -> tuple[tuple[str, ...], dict[str, str]]:
    """Returns the positional and the keyword arguments; those after a parameter that is left out are keywords."""
    positional_sources: list[str] = []
    keyword_sources: dict[str, str] = {}
    is_positional = True
    is_starred = any(parameter.variadic for parameter in spec.parameters)
    for parameter in spec.parameters:
        argument_sources = sources_by_parameter.get(parameter.name)
        is_positional = is_positional and argument_sources is not None and (is_starred or rng.random() < 0.9)
        if argument_sources is None:
            continue
        if parameter.variadic or (is_positional and not parameter.keyword_only):
            positional_sources += argument_sources
        else:
            keyword_sources[parameter.name] = argument_sources[0]
    return tuple(positional_sources), keyword_sources


def call_source(case: FuzzCase) -> str:
    """Returns the source of a fuzzed call, such as `ops.sum(x, axis=0)`."""
    argument_sources = [*case.arguments, *(f"{name}={value}" for name, value in case.keywords.items())]
    return f"{spell_op(case.op)}({', '.join(argument_sources)})"
