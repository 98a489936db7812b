"""The source of fuzzed calls: the arguments that the worker evaluates, and the program that reproduces a finding."""

from typing import Any

from emberharmony.testing.fuzz.cases import FuzzCase
from emberharmony.testing.fuzz.scope import NAMES
from emberharmony.testing.repr_source import spell_op
from emberharmony.testing.snippet import ALWAYS, IMPORTS, import_lines

_IMPORTS = {
    **IMPORTS,
    **{f"{name}(": f"from emberharmony.testing.fuzz.scope import {name}" for name in NAMES},
    "digest(": "from emberharmony.testing.fuzz.judge import digest",
}

_HEAD = """\
# {op} on {backend}, call {number} of seed {seed}:
# {finding}
{imports}
ops.set_backend({backend!r})
"""


def namespace() -> dict[str, Any]:
    """Returns the global names in which the source of arguments is evaluated."""
    value_by_name: dict[str, Any] = {}
    exec("\n".join((ALWAYS, *_IMPORTS.values())), value_by_name)
    return value_by_name


def arguments_source(case: FuzzCase) -> str:
    """Returns the source of a tuple: (positional arguments, keyword arguments, arguments for the result)."""
    keywords_text = "".join(f"{name!r}: {value}, " for name, value in case.keywords.items())
    return f"({_tuple_source(case.arguments)}, {{{keywords_text}}}, {_tuple_source(case.then)})"


def _tuple_source(sources: tuple[str, ...]) -> str:
    return f"({''.join(f'{source}, ' for source in sources)})"


def program_source(
    case: FuzzCase, seed: int, backend: str, finding: str, watched: bool = False, checked: bool = False
) -> str:
    """Returns the source of a program that repeats a fuzzed call and shows its finding.

    Args:
        watched: whether the program must end with an error if the call changes an argument.
        checked: whether the program must make the call in checked mode.
    """
    argument_text = ", ".join((*case.arguments, *(f"{name}={value}" for name, value in case.keywords.items())))
    later_args = case.then
    if watched:
        setup_lines = [f"args, kwargs, then = {arguments_source(case)}", "before = digest((args, kwargs, then))"]
        argument_text, later_args = "*args, **kwargs", later_args and ("*then",)
    else:
        setup_lines = []
    call_lines = [f"result = {spell_op(case.op)}({argument_text})"]
    if later_args:
        call_lines.append(f"result = result({', '.join(later_args)}) if callable(result) else result")
    call_lines.append("ops.eval(result)")
    if case.checked or checked:
        call_lines = ["with ops.checked():", *(f"    {line}" for line in call_lines)]
    closing_lines = (
        ['assert digest((args, kwargs, then)) == before, "an argument was changed"'] if watched else ["print(result)"]
    )
    body_text = "".join(f"{line}\n" for line in (*setup_lines, *call_lines, *closing_lines))
    head_text = _HEAD.format(
        op=case.op,
        backend=backend,
        number=case.number,
        seed=seed,
        finding=" ".join(finding.split())[:200],
        imports=import_lines(body_text, _IMPORTS),
    )
    return head_text + body_text
