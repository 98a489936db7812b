"""Every parameter of everything public is described: what it may be, what it does, and what its default means.

`help`, the pages and `emberharmony op` show the same descriptions, those of `core/docstrings/completion.py`.
"""

import importlib
import inspect
import re
from collections.abc import Iterator
from functools import cache
from types import ModuleType
from typing import Any

import emberharmony.ops  # noqa: F401  (fills the registry)
from emberharmony import nn
from emberharmony.core.docstrings import completion
from emberharmony.core.registry import OPS

PUBLIC = tuple(
    f"emberharmony{name}"
    for name in ("", ".backend", ".data", ".distributed", ".errors", ".io", ".nn", ".ops", ".optim", ".testing", ".xp")
)

TYPES = ("emberharmony.core.types", "emberharmony.backend.protocol")
"""Modules of protocols, whose methods are those of other libraries' tensors, or ops."""


def members(module: ModuleType) -> Iterator[Any]:
    """Yields the public functions and classes of a module, and of the modules that it offers."""
    offered = getattr(module, "__all__", None)
    for name in offered or vars(module):
        value = getattr(module, name)
        if inspect.ismodule(value):
            yield from members(value) if offered and value.__name__ not in PUBLIC else ()
        elif callable(value) and name[0] != "_":
            home = str(getattr(value, "__module__", ""))
            if home.startswith("emberharmony." if offered else module.__name__):
                yield value


@cache
def owners() -> dict[str, Any]:
    """Returns what has parameters, in the forms that `completion` takes, by a name for messages."""
    functions = {spec.function for spec in OPS.values()}
    known: dict[str, Any] = {f"ops.{name}": spec for name, spec in OPS.items()}
    for value in (each for name in PUBLIC for each in members(importlib.import_module(name))):
        if value not in functions and value.__module__ not in TYPES:
            place = f"{value.__module__}.{value.__qualname__}"
            known[place] = value
            for method, member in vars(value).items() if isinstance(value, type) else ():
                if method[0] != "_" and inspect.isfunction(getattr(member, "__func__", member)):
                    known[f"{place}.{method}"] = (value, method)
    return known


def test_every_public_parameter_is_described() -> None:
    missing = [
        f"{name}: {parameter.name}"
        for name, owner in owners().items()
        for parameter in completion.parameters_of(owner)
        if parameter.name not in completion.descriptions(owner)
    ]
    assert not missing, "\n".join(["describe them in the docstring, or for several ops in texts.py:", *missing])


def test_no_description_is_of_something_else() -> None:
    unknown = [
        f"{name}: {described}"
        for name, owner in owners().items()
        for described in completion.argument_descriptions(completion.raw_docstring(owner))
        if described not in {parameter.name for parameter in completion.parameters_of(owner)}
    ]
    assert not unknown, "\n".join(["there are no such parameters:", *unknown])


def test_a_description_says_what_none_means() -> None:
    silent = [
        f"{name}: {parameter}"
        for name, owner in owners().items()
        for parameter, text in completion.descriptions(owner).items()
        if text.endswith(" Default: None.")
    ]
    assert not silent, "\n".join(["say what None does:", *silent])


def test_a_description_says_more_than_the_name() -> None:
    short = [
        f"{name}: {parameter}: {text}"
        for name, owner in owners().items()
        for parameter, text in completion.descriptions(owner).items()
        if len(text.partition(" Default: ")[0].split()) < 3 or text.startswith(("see `", "the input", "input tensor"))
    ]
    assert not short, "\n".join(["say its shape or unit, and its effect:", *short])


def test_no_op_repeats_a_shared_text() -> None:
    repeated = []
    for name, spec in OPS.items():
        own = completion.argument_descriptions(completion.raw_docstring(spec))
        repeated += [
            f"{name}: {p.name}"
            for p in spec.parameters
            if own.get(p.name, "") == completion.shared_description(spec, p)
        ]
    assert not repeated, "\n".join(["remove these lines, texts.py has them:", *repeated])


def test_each_shared_text_is_used() -> None:
    used = set()
    for spec in OPS.values():
        own = completion.argument_descriptions(completion.raw_docstring(spec))
        fits = [completion.shared_keys(spec, p) for p in spec.parameters if p.name not in own]
        used |= {next((key for key in each if key in completion.SHARED), "") for each in fits}
    assert not set(completion.SHARED) - used


def test_each_op_says_what_is_near_it_by_meaning() -> None:
    for name, spec in OPS.items():
        _, mark, block = completion.complete_docstring(spec).partition("\n\nSee also: ")
        said = re.findall(r"`([\w.]+)`, (\w.*?)[;.]", block.partition("\n\n")[0].replace("\n", " ") + ";")
        assert mark, name
        assert said, name
        for near, _ in said:
            assert near in OPS or hasattr(nn, near.removeprefix("nn.")), (name, near)
            assert near != name
