"""Writes the pages of the ops, of the layers and of the optimizers, from docstrings and a conformance report."""

import importlib
import inspect
import pkgutil
import re
import sys
import warnings
from collections.abc import Callable, Sequence
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np

from emberharmony import ops
from emberharmony.backend.discovery import BUILTIN, is_installed
from emberharmony.core.registry import OPS, OpSpec
from emberharmony.testing.conformance import run_sample
from emberharmony.testing.report import Report, summarize
from emberharmony.testing.repr_source import spelled
from emberharmony.testing.samples import all_samples

_BLOCK = re.compile(r"(Args|Attributes|Returns|Yields|Raises|Examples?|Shape|Dtype|Source):(?: (.+))?")
_ENTRY = re.compile(r"(?P<names>\*{0,2}\w+(?:, \*{0,2}\w+)*)(?: \((?P<kind>[^)]+)\))?: (?P<text>.+)")


def write_pages(folder: Path) -> None:
    """Writes `<category>.md` for every category and `matrix.md` for all ops, after deleting the old pages."""
    folder.mkdir(exist_ok=True)
    for old in folder.glob("*.md"):
        old.unlink()
    categories: dict[str, list[OpSpec]] = {}
    for spec in OPS.values():
        categories.setdefault(spec.category, []).append(spec)
    for category, specs in categories.items():
        module = sys.modules[specs[0].declared.__module__]
        title, _, rest = (module.__doc__ or category).strip().partition("\n")
        parts = [f"# {category}: {title.rstrip('.')}\n\n{as_markdown(rest)}\n"]
        for spec in sorted(specs, key=lambda spec: spec.name):
            body = as_markdown(spec.declared.__doc__ or "")
            names = f"Also: {', '.join(f'`{alias}`' for alias in spec.aliases)}.\n\n" if spec.aliases else ""
            shown = spelled(spec.name).removeprefix("ops.")
            parts.append(f"\n## {shown}\n\n```python\n{shown}{_plain(spec.declared)}\n```\n\n{names}{body}\n")
        (folder / f"{category}.md").write_text("".join(parts), encoding="utf-8")
    (folder / "matrix.md").write_text(matrix(_quick_report()), encoding="utf-8")


def write_module_pages(folder: Path, package: ModuleType) -> None:
    """Writes one page for each file of a package with public classes or functions, after deleting the old pages."""
    folder.mkdir(parents=True, exist_ok=True)
    for old in folder.glob("*.md"):
        old.unlink()
    for info in pkgutil.walk_packages(package.__path__, f"{package.__name__}."):
        module = importlib.import_module(info.name)
        found = {
            name: each
            for name, each in vars(module).items()
            if name[0] != "_" and getattr(each, "__module__", "") == info.name and _is_public(name, each, package)
        }
        if found:
            title, _, rest = (module.__doc__ or info.name).strip().partition("\n")
            stem = info.name.removeprefix(f"{package.__name__}.")
            parts = [f"# {stem}: {title.rstrip('.')}\n\n{as_markdown(rest)}\n"]
            parts += [_entry(name, each) for name, each in found.items()]
            (folder / f"{stem}.md").write_text("".join(parts), encoding="utf-8")


def _is_public(name: str, each: Any, package: ModuleType) -> bool:
    """Returns whether a class or function can be reached from a package, or from the namespace it is written for."""
    public = {name: getattr(package, name) for name in package.__all__}
    spaces = [x for x in public.values() if inspect.ismodule(x) and each.__module__.startswith(x.__name__)]
    return callable(each) and (public.get(name) is each or any(vars(space).get(name) is each for space in spaces))


def _entry(name: str, each: Any) -> str:
    """Returns the section of a class or function: its signature, its docstring and those of its methods."""
    parts = [f"\n## {name}\n\n```python\n{name}{_plain(each)}\n```\n\n{as_markdown(each.__doc__ or '')}\n"]
    for method, defined in vars(each).items() if isinstance(each, type) else ():
        if method[0] != "_" and inspect.isfunction(defined) and defined.__doc__:
            shown = f"{name}.{method}"
            parts.append(
                f"\n### {shown}\n\n```python\n{shown}{_plain(defined)}\n```\n\n{as_markdown(defined.__doc__)}\n"
            )
    return "".join(parts)


def _plain(function: Any) -> str:
    """Returns a signature without annotations; that of an error or warning is left out."""
    if isinstance(function, type) and issubclass(function, BaseException):
        return ""
    signature = inspect.signature(function)
    plain = [p.replace(annotation=inspect.Parameter.empty) for p in signature.parameters.values()]
    return str(signature.replace(parameters=plain, return_annotation=inspect.Signature.empty))


def _quick_report() -> Report:
    """Returns the report that `emberharmony conformance --quick --json` writes."""
    backends = [name for name in BUILTIN if is_installed(name)]
    rows = [row for _, row in sorted(all_samples().items())]
    before = ops.get_backend()
    with np.errstate(all="ignore"), warnings.catch_warnings():
        warnings.simplefilter("ignore", RuntimeWarning)
        outcomes = [outcome for name in backends for row in rows for outcome in run_sample(row, name)]
    ops.set_backend(before)
    return summarize(rows, backends, outcomes, quick=True)


_MATRIX = """\
# Ops and backends

The table shows how each backend implements each op. *native*: the backend has its own implementation; *composite*:
the op is written over other ops; *override*: the op is a composite, but the backend has its own implementation.
Errors are measured against a float64 oracle. The *tolerance* is in eps of the dtype of the result. *met* is the
largest error as a share of the tolerance, over all inputs, dtypes and backends of `emberharmony conformance --quick`,
whose report is the source of this page. *by tests*: no oracle can compute the result of the op (random numbers,
devices, functions), so only tests check it. Versions: {versions}.

"""


def matrix(report: Report) -> str:
    """Returns the page of all ops on all backends, from a report of `emberharmony conformance`."""
    by_op: dict[str, list[dict[str, Any]]] = {}
    for entry in report["ops"]:
        by_op.setdefault(entry["op"], []).append(entry)
    versions = ", ".join(f"{name} {version}" for name, version in report["backends"].items())
    heads = ["op", *report["backends"], "tolerance", "met"]
    lines = [f"| {' | '.join(heads)} |\n|{'---|' * len(heads)}\n"]
    for op, entries in by_op.items():
        kinds = " | ".join(": ".join(filter(None, (entry["status"], entry["reason"]))) for entry in entries)
        lines.append(f"| `{op}` | {kinds} | {' | '.join(_met(entries))} |\n")
    return _MATRIX.format(versions=versions) + "".join(lines)


def _met(entries: list[dict[str, Any]]) -> tuple[str, str]:
    """Returns the cells for the tolerance and for the share of it that the largest error takes."""
    failing = [entry["backend"] for entry in entries if entry["failures"]]
    if failing:
        return f"{entries[0]['tolerance']:g}", f"**not on {', '.join(failing)}**"
    if entries[0]["values"] == "by tests" or not any(entry["dtypes"] for entry in entries):
        return "", "by tests"
    worst = max(entry["worst"] for entry in entries)
    return f"{entries[0]['tolerance']:g}", f"{worst:.0%}" if worst else "exact"


def as_markdown(docstring: str) -> str:
    """Returns a docstring in Google style as Markdown.

    `Args:` and `Raises:` become definition lists, the other blocks become paragraphs with a bold head, and examples
    are fenced.
    """
    lines = inspect.cleandoc(docstring).splitlines()
    parts: list[str] = []
    while lines:
        block = _BLOCK.fullmatch(lines[0])
        if parts and parts[-1]:
            parts.append("")
        if block is None:
            parts += _fenced(_taken(lines, lambda line: not _BLOCK.fullmatch(line)))
        elif block[2]:  # the text begins on the line of the head, and ends with the paragraph
            paragraph = _taken(lines, lambda line: bool(line) and not _BLOCK.fullmatch(line))
            parts += [f"**{block[1]}:** {block[2]}", *paragraph[1:]]
        else:
            body = _taken(lines, lambda line: not line or line.startswith(" "))[1:]
            parts += [f"**{block[1]}**", "", *_definitions(inspect.cleandoc("\n".join(["", *body])).splitlines())]
    return re.sub(r"\n{3,}", "\n\n", "\n".join(parts)).strip()


def _taken(lines: list[str], belongs: Callable[[str], bool]) -> list[str]:
    """Returns the first line, and those after it while they belong to it, and removes these from `lines`."""
    end = next((i for i, line in enumerate(lines[1:], 1) if not belongs(line)), len(lines))
    taken, lines[:] = lines[:end], lines[end:]
    return taken


def _definitions(lines: list[str]) -> list[str]:
    """Returns the entries `name: text` of a block as a definition list; other text stays as it is."""
    if not lines or not _ENTRY.fullmatch(lines[0]):
        return _fenced(lines)
    found: list[str] = []
    for line in lines:
        entry = _ENTRY.fullmatch(line)
        if entry is None:
            found.append(f"  {line.strip()}".rstrip())
        else:
            names = ", ".join(f"`{name}`" for name in entry["names"].split(", "))
            kind = f" ({entry['kind']})" if entry["kind"] else ""
            found += ["", f"{names}{kind}", f": {entry['text']}"]
    return found[1:]


def _fenced(lines: Sequence[str]) -> list[str]:
    """Returns lines of text in which examples, from `>>>` to the next empty line, are fenced."""
    found: list[str] = []
    fenced = False
    for line in (*lines, ""):
        if line.startswith(">>>") and not fenced:
            found.append("```pycon")
            fenced = True
        elif not line and fenced:
            found.append("```")
            fenced = False
        found.append(line)
    return found[:-1]
