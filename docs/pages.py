"""Writes the pages of the ops, of the layers and of the optimizers, from docstrings and a conformance report."""

import importlib
import inspect
import pkgutil
import shutil
import warnings
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
from benchmark_pages import benchmark_tables
from conformance_pages import machine_tables, matrix
from docstrings import as_markdown
from op_pages import write_op_pages
from op_pictures import draw_schedule

from emberharmony import ops
from emberharmony.backend.discovery import BUILTIN, is_installed
from emberharmony.core.docstrings.completion import complete_docstring
from emberharmony.core.registry import OPS
from emberharmony.optim import schedules
from emberharmony.testing.conformance import run_sample
from emberharmony.testing.report import Report, summarize
from emberharmony.testing.samples import all_samples


def write_pages(folder: Path) -> None:
    """Writes the pages of ops and categories, and the texts that other pages include, after deleting old pages."""
    folder.mkdir(exist_ok=True)
    for old in (*folder.glob("*.md"), *(folder / spec.category for spec in OPS.values())):
        if old.is_dir():
            shutil.rmtree(old)
        else:
            old.unlink(missing_ok=True)
    report = _quick_report()
    write_op_pages(folder, report["ops"])
    (folder / "matrix.md").write_text(matrix(report), encoding="utf-8")
    reports = sorted((Path(__file__).parent / "reports").glob("*.json"))
    (folder / "machines.txt").write_text(machine_tables(reports), encoding="utf-8")
    (folder / "benchmarks.txt").write_text(benchmark_tables(), encoding="utf-8")


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
            stem = info.name.removeprefix(f"{package.__name__}.")
            parts = [f"# {stem}\n\n{as_markdown(module.__doc__ or '')}\n"]
            parts += [
                _entry(name, each, draw_schedule(name, folder) if each.__module__ == schedules.__name__ else "")
                for name, each in found.items()
            ]
            (folder / f"{stem}.md").write_text("".join(parts), encoding="utf-8")


def _is_public(name: str, each: Any, package: ModuleType) -> bool:
    """Returns whether a class or function can be reached from a package, or from the namespace it is written for."""
    public = {name: getattr(package, name) for name in package.__all__}
    spaces = [x for x in public.values() if inspect.ismodule(x) and each.__module__.startswith(x.__name__)]
    return callable(each) and (public.get(name) is each or any(vars(space).get(name) is each for space in spaces))


def _entry(name: str, each: Any, picture: str = "") -> str:
    """Returns the section of a class or function: signature, docstring, picture, and the docstrings of its methods."""
    parts = [
        f"\n## {name}\n\n```python\n{name}{_plain(each)}\n```\n\n{as_markdown(complete_docstring(each))}\n",
        f"\n{picture}\n",
    ]
    for method, defined in vars(each).items() if isinstance(each, type) else ():
        if method[0] != "_" and inspect.isfunction(defined) and defined.__doc__:
            shown = f"{name}.{method}"
            text = as_markdown(complete_docstring((each, method)))
            parts.append(f"\n### {shown}\n\n```python\n{shown}{_plain(defined)}\n```\n\n{text}\n")
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
