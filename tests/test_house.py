"""The size of the house: folders, names, tables of ops, generated lines and pages stay what one person can carry."""

import ast
import re
import subprocess
from collections import Counter
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import pytest

from emberharmony.core import registry

ROOT = Path(__file__).parents[1]
PACKAGES = (ROOT / "emberharmony", ROOT / "emberlint" / "src" / "emberlint")
FUNCTION = re.compile(r"^ *(?:async )?def (\w+)", re.MULTILINE)
PARTICIPLE = re.compile(r"_?[a-z]+(ed|en|wn|ft|ld|lt|ept|ade|ent|old|ound|iven|ung)")
OTHER_WORDS = """
add argument bound broken build cent child client component compound content count current cut decrement default
document down draft element embed environment even event exponent extent feed fft field fold found gen given golden
grad gradient ground head hidden hfft hold ifft ihfft increment indent irfft istft keyed known left lift load moment
mount need open own pad parent percent present read result rfft round salt screen seed shared shift soft sound speed
spread statement stft then thread threshold token unfold upside_down when world yield
""".split()  # noqa: SIM905
"""Names with such an ending that are verbs or nouns."""
FOUND = re.compile(r"\bfound(?:: [^=\n]+)? :?= |\bfor [\w, ]*\bfound\b[\w, ]* in |\bas found:", re.MULTILINE)
VAGUE = re.compile(
    r"^ +(?:alone|given|held|here|kept|known|lost|made|nothing|own|said|shown|told|turned)(?:: [^=\n]+)? = ",
    re.MULTILINE,
)


@cache
def texts() -> dict[Path, str]:
    return {path: path.read_text(encoding="utf-8") for top in PACKAGES for path in sorted(top.rglob("*.py"))}


def test_no_folder_has_more_than_20_modules() -> None:
    modules = Counter(path.parent for path in texts() if path.name != "__init__.py")
    assert not [f"{folder}: {count}" for folder, count in modules.items() if count > 20], "sort them into folders"


def test_functions_are_verbs_or_the_thing_they_return() -> None:
    registry.complete()
    names = [(path, name) for path, text in texts().items() for name in FUNCTION.findall(text)]
    participles = [
        f"{path.relative_to(ROOT)}: {name}"
        for path, name in names
        if PARTICIPLE.fullmatch(name) and name.strip("_") not in OTHER_WORDS and name not in registry.OPS
    ]
    assert len(participles) <= 0.008 * len(names), "\n".join(["name them by what they do or return:", *participles])


def test_variables_say_what_was_found() -> None:
    count = sum(len(FOUND.findall(text)) for text in texts().values())
    assert count <= 20, "name the variable by the thing, not `found`"


def test_variables_say_what_was_made_or_given() -> None:
    count = sum(len(VAGUE.findall(text)) for path, text in texts().items() if path.is_relative_to(PACKAGES[0]))
    assert count <= 40, "name the variable by the thing: a tensor, a dtype, a flag"


def test_few_files_have_more_than_450_lines() -> None:
    long = [f"{path.relative_to(ROOT)}: {lines}" for path, text in texts().items() if (lines := text.count("\n")) > 450]
    assert len(long) <= 18, "\n".join(["split them where they have a seam:", *long])


def test_few_functions_have_more_than_40_lines() -> None:
    long = [
        f"{path.relative_to(ROOT)}:{node.lineno}: {node.name}"
        for path, text in texts().items()
        for node in ast.walk(ast.parse(text))
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)
        and (body := node.body[1:] if ast.get_docstring(node, clean=False) else node.body)
        and (node.end_lineno or 0) - body[0].lineno + 1 > 40
    ]
    assert len(long) <= 7, "\n".join(["split them into steps that have names:", *long])


def test_docstrings_describe_parameters_that_exist() -> None:
    strangers = [
        f"{path.relative_to(ROOT)}:{node.lineno}: {node.name} has no parameter {name!r}"
        for path, text in texts().items()
        for node in ast.walk(ast.parse(text))
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)
        for name in parameters_in_docstring(node)
        - {argument.arg for argument in ast.walk(node.args) if isinstance(argument, ast.arg)}
    ]
    assert not strangers, "\n".join(strangers)


def parameters_in_docstring(node: ast.FunctionDef | ast.AsyncFunctionDef) -> set[str]:
    """Returns the names under `Args:` in the docstring of a function."""
    docstring = ast.get_docstring(node) or ""
    section = re.search(r"^Args:\n((?:    .*\n?|\n)+)", docstring, re.MULTILINE)
    rows = re.findall(r"^    (?! )([\w*, ]+):", section[1] if section else "", re.MULTILINE)
    return {name.strip().lstrip("*") for row in rows for name in row.split(",")} - {""}


PURPOSE = ("testing/samples/", "rules/")
"""Folders with one row or one rule for each op."""


def tables(text: str) -> Iterator[tuple[int, int]]:
    """Yields the line and the length of each literal that lists five or more ops."""
    names = {*registry.OPS, *registry.ALIASES}
    quoted = sum(word in names for word in re.findall(r"\"(\w+)\"", text))
    if quoted < 5 and '".split(' not in text:
        return  # it saves parsing it
    pending: list[ast.AST] = [ast.parse(text)]
    while pending:
        node = pending.pop()
        words: list[object] = []
        if isinstance(node, ast.Dict | ast.Tuple | ast.List | ast.Set):
            words = [constant(item) for each in ast.walk(node) for item in items(each)]
        elif isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr == "split":
            words = re.split(r"[\s,]+", str(constant(node.func.value)))
        count = sum(word in names for word in words)
        if count >= 5:
            yield getattr(node, "lineno", 0), count
        else:
            pending += ast.iter_child_nodes(node)


def items(node: ast.AST) -> list[ast.expr | None]:
    if isinstance(node, ast.Dict):
        return node.keys
    return [*node.elts] if isinstance(node, ast.Tuple | ast.List | ast.Set) else []


def constant(node: ast.AST | None) -> object:
    return node.value if isinstance(node, ast.Constant) else None


def test_facts_of_ops_stand_in_their_declarations() -> None:
    registry.complete()
    package = PACKAGES[0]
    listed = [
        f"{path.relative_to(package)}:{line}: {count} names"
        for path, text in texts().items()
        if path.is_relative_to(package)
        and not is_generated(text)
        and not (
            path.relative_to(package).as_posix().startswith(PURPOSE)
            and "batching" not in path.parts
            and path.name != "constant.py"
        )
        for line, count in tables(text)
    ]
    assert len(listed) <= 17, "\n".join(["make it a fact of the declaration, or a decorator of the function:", *listed])


def test_few_lines_in_git_are_generated() -> None:
    listed = subprocess.run(["git", "ls-files", "*.py", "*.pyi"], cwd=ROOT, capture_output=True, text=True, check=False)
    if listed.returncode != 0:
        pytest.skip("not a checkout")
    files = [ROOT / name for name in listed.stdout.splitlines() if (ROOT / name).is_file()]
    generated = [text for text in (path.read_text(encoding="utf-8") for path in files) if is_generated(text)]
    assert 5 < len(generated) < 15
    lines = sum(text.count("\n") for text in generated)
    assert lines <= 2600, "make it at the import, or at the build; what type checkers need stays"


def is_generated(text: str) -> bool:
    return "Generated by `make generate`" in text[:200]


def test_the_page_on_the_design_has_at_most_300_lines() -> None:
    lines = (ROOT / "docs" / "design.md").read_text(encoding="utf-8").count("\n")
    assert lines <= 300, "say what and why; figures go to the page of benchmarks, facts about a module into it"
