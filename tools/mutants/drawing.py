"""Draws mutants by a seed: operators, constants, conditions and statements of the package's functions.

A drawn mutant has the form of a planted one, so that one which the tests do not notice can be copied into an area.
Left alone is what cannot change a result: annotations, docstrings, decorators and what is raised, the sizes of caches,
`strict` of `zip`, hashes, the choice of random test inputs, and conditions on another platform or device.

cosmic-ray 8.7 and mutmut 3.8 make such mutants too. They have one command of tests for all mutants, start a process for
each, and neither draws by a seed nor chooses conditions, so they would need a whole run of the tests for each mutant.
"""

import ast
import copy
import dataclasses
import random
import re
import zlib
from collections.abc import Iterator, Sequence
from typing import NamedTuple

from mutants.mutant import ROOT, Mutant
from mutants.planting import Module, PlantingError, matching_places, plant
from mutants.reach import Reach
from mutants.ring import tests_of

LEFT_OUT = re.compile(
    r"emberharmony/(data|demo|cli/drawing|_pyinstaller|version|testing/samples|backend/protocol|nn/layouts/table)"
    r"|emberharmony/testing/(hypothesis_inputs|inputs|fuzz/(arrays|cases|odd|values))\.py"
    r"|emberharmony/ops/(__init__|fft|image|linalg|nn|random)\.py"
)
SWAPPED: dict[type[ast.AST], type[ast.AST]] = {
    ast.Lt: ast.LtE, ast.LtE: ast.Lt, ast.Gt: ast.GtE, ast.GtE: ast.Gt, ast.Eq: ast.NotEq, ast.NotEq: ast.Eq,
    ast.Is: ast.IsNot, ast.IsNot: ast.Is, ast.In: ast.NotIn, ast.NotIn: ast.In, ast.Add: ast.Sub, ast.Sub: ast.Add,
    ast.Mult: ast.Div, ast.Div: ast.Mult, ast.FloorDiv: ast.Mod, ast.Mod: ast.FloorDiv, ast.Pow: ast.Mult,
    ast.BitAnd: ast.BitOr, ast.BitOr: ast.BitAnd, ast.LShift: ast.RShift, ast.RShift: ast.LShift,
    ast.And: ast.Or, ast.Or: ast.And,
}  # fmt: skip
NO_RESULT = ("strict", "maxsize")
"""The keywords that only catch mistakes of the caller, or only choose how much a cache keeps."""

ELSEWHERE = re.compile(r"sys\.platform|version_info|os\.name|cuda|accelerator|is_available|mx\.gpu|\bmps\b")
"""What a condition mentions that has one value on this machine."""

SUBJECTS = re.compile(
    r"dtype|floating|complex|integer|kind|bits|itemsize|size|shape|ndim|\blen\(|numel|nbytes|stride|contiguous|layout"
)
"""What a condition on the dtype, size or layout mentions; one on an option mentions a parameter that has a default."""


class Site(NamedTuple):
    """A node that can be changed; a condition is negated or made constant."""

    module: Module
    function: str
    node: ast.AST
    is_condition: bool


def draw_mutants(count: int, seed: int, paths: Sequence[str], reach: Reach, conditions: bool = False) -> list[Mutant]:
    """Returns mutants at distinct places, in the order in which they were drawn.

    Args:
        count: how many; fewer if the files have fewer places.
        seed: the same seed draws the same mutants from the same files.
        paths: files and folders, from the root of the repository.
        reach: which tests call which functions.
        conditions: draw only conditions on dtypes, sizes, layouts and options, and negate them or make them constant.
    """
    sites = [site for path in _file_names(paths) for site in _sites_in(_parse_module(path), conditions)]
    rng = random.Random(seed)
    rng.shuffle(sites)
    mutants: list[Mutant] = []
    for site in sites:
        if len(mutants) == count:
            break
        mutant = _make_mutant(site, rng.choice(_replacements(site)), reach)
        if mutant is not None:
            mutants.append(mutant)
    return mutants


def _file_names(paths: Sequence[str]) -> list[str]:
    files = [
        file for path in paths for file in ([ROOT / path] if (ROOT / path).is_file() else (ROOT / path).rglob("*.py"))
    ]
    names = sorted({str(file.relative_to(ROOT)) for file in files})
    return [name for name in names if not LEFT_OUT.match(name)]


def _parse_module(path: str) -> Module:
    return Module.parse(path, (ROOT / path).read_text(encoding="utf-8"))


def _sites_in(module: Module, conditions: bool) -> Iterator[Site]:
    for name, function in _functions_in(module.tree, ""):
        options = _option_names(function)
        for node in _nodes_of_body(function.body):
            for part in _conditions_of(node):
                if (not conditions or _is_about_subject(part, options)) and not ELSEWHERE.search(ast.unparse(part)):
                    yield Site(module, name, part, True)
            if not conditions and _has_replacement(node):
                yield Site(module, name, node, False)


def _functions_in(node: ast.AST, prefix: str) -> Iterator[tuple[str, ast.FunctionDef]]:
    for child in ast.iter_child_nodes(node):
        if isinstance(child, ast.ClassDef | ast.FunctionDef):
            if isinstance(child, ast.FunctionDef) and child.name not in ("__repr__", "__hash__"):
                yield prefix + child.name, child
            yield from _functions_in(child, f"{prefix}{child.name}.")
        elif isinstance(child, ast.If | ast.Try) and "TYPE_CHECKING" not in ast.dump(child)[:60]:
            yield from _functions_in(child, prefix)


def _nodes_of_body(body: Sequence[ast.stmt]) -> Iterator[ast.AST]:
    """Yields the nodes of a function, but not those of functions in it nor those that are only texts."""
    for statement in body:
        yield from _changeable_nodes(statement)


def _changeable_nodes(node: ast.AST) -> Iterator[ast.AST]:
    if isinstance(node, ast.FunctionDef | ast.ClassDef | ast.Raise | ast.Assert | ast.JoinedStr | ast.arguments):
        return
    if isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant):
        return
    if isinstance(node, ast.keyword) and node.arg in NO_RESULT:
        return
    yield node
    for field, value in ast.iter_fields(node):
        if field not in ("annotation", "returns", "decorator_list"):
            for child in value if isinstance(value, list) else [value]:
                if isinstance(child, ast.AST):
                    yield from _changeable_nodes(child)


def _has_replacement(node: ast.AST) -> bool:
    """Returns whether the node has a replacement that is no condition's."""
    if isinstance(node, ast.Compare):
        return type(node.ops[0]) in SWAPPED and not ELSEWHERE.search(ast.unparse(node))
    if isinstance(node, ast.BinOp | ast.BoolOp):
        return type(node.op) in SWAPPED and not _has_text_operand(node)
    if isinstance(node, ast.UnaryOp):
        return isinstance(node.op, ast.Not | ast.USub) and not isinstance(node.operand, ast.Constant)
    if isinstance(node, ast.Constant):
        return isinstance(node.value, bool | int | float)
    return isinstance(node, ast.AugAssign) or (isinstance(node, ast.Expr) and isinstance(node.value, ast.Call))


def _replacements(site: Site) -> tuple[str, ...]:
    if site.is_condition:
        return f"not ({ast.unparse(site.node)})", "True", "False"
    node = copy.deepcopy(site.node)
    if isinstance(node, ast.Compare):
        node.ops = [SWAPPED[type(node.ops[0])](), *node.ops[1:]]  # type: ignore[list-item]
    elif isinstance(node, ast.BinOp | ast.BoolOp):
        node.op = SWAPPED[type(node.op)]()  # type: ignore[assignment]
    elif isinstance(node, ast.UnaryOp):
        node = node.operand
    elif isinstance(node, ast.Constant):
        assert isinstance(node.value, bool | int | float)
        return (_other_value(node.value),)
    else:
        return ("pass",)
    return (ast.unparse(node),)


def _other_value(value: bool | int | float) -> str:
    if isinstance(value, bool):
        return str(not value)
    return str(value + 1) if isinstance(value, int) else str(value * 2 or 1.0)


def _has_text_operand(node: ast.BinOp | ast.BoolOp) -> bool:
    """Returns whether the operands are texts, or types as in `int | None`."""
    operands = [node.left, node.right] if isinstance(node, ast.BinOp) else []
    return any(
        isinstance(part, ast.JoinedStr) or (isinstance(part, ast.Constant) and not isinstance(part.value, int | float))
        for part in operands
    )


def _conditions_of(node: ast.AST) -> list[ast.expr]:
    """Returns what the node branches on; of `a and b` the parts, which are drawn one by one."""
    if isinstance(node, ast.If | ast.IfExp | ast.While):
        return [] if isinstance(node.test, ast.BoolOp) else [node.test]
    if isinstance(node, ast.BoolOp):
        return [part for part in node.values if not isinstance(part, ast.BoolOp)]
    return node.ifs if isinstance(node, ast.comprehension) else []


def _is_about_subject(test: ast.expr, options: set[str]) -> bool:
    """Returns whether a condition is on a dtype, a size, a layout or an option."""
    mentioned_names = {part.id for part in ast.walk(test) if isinstance(part, ast.Name)}
    return bool(mentioned_names & options or SUBJECTS.search(ast.unparse(test)))


def _option_names(function: ast.FunctionDef) -> set[str]:
    """Returns the names of the parameters that have a default, or can be given by keyword only."""
    signature = function.args
    defaults = signature.args[len(signature.args) - len(signature.defaults) :] if signature.defaults else []
    return {argument.arg for argument in (*defaults, *signature.kwonlyargs)}


def _make_mutant(site: Site, replacement: str, reach: Reach) -> Mutant | None:
    """Returns the mutant, or None if it cannot be described by its source."""
    path, original = site.module.path, ast.unparse(site.node)
    line, column = getattr(site.node, "lineno", 0), getattr(site.node, "col_offset", 0)
    change_text = f"column {column}: `{original}` is `{replacement}`"
    mutant = Mutant(
        name=f"drawn-{path.removesuffix('.py').removeprefix('emberharmony/')}:{line}-{zlib.crc32(change_text.encode()):08x}",
        module=path,
        function=site.function,
        original=original,
        replacement=replacement,
        tests=tests_of(path, site.function, reach),
        why=change_text,
    )
    try:
        places = [(place.line, place.column) for place in matching_places(mutant, site.module)]
        if (line, column) not in places:
            return None
        numbered_mutant = dataclasses.replace(mutant, nth=places.index((line, column)) + 1)
        plant(numbered_mutant, site.module)
    except PlantingError:
        return None
    return numbered_mutant
