"""Finds the tests that cover a module: tests mirror the source tree, so these are its mirror and its folder."""

import ast
import functools
import shlex
from collections.abc import Iterator
from pathlib import Path, PurePosixPath

from mutants.mutant import ROOT

LIBRARIES = ("numpy", "torch", "mlx", "jax", "dask")
ON_THREE = "numpy,torch,mlx"
GENERAL = ("tests/ops/test_transforms.py", "tests/ops/test_compile.py", "tests/ops/test_tensor.py")


def tests_of(module: str) -> tuple[str, ...]:
    """Returns the entries of `Mutant.tests` for a module of the package, from narrow to wide."""
    parts = PurePosixPath(module).with_suffix("").parts[1:]
    return tuple(dict.fromkeys(_entries(parts)))


def _entries(parts: tuple[str, ...]) -> Iterator[str]:
    stem = parts[-1].removesuffix("_ops") if parts[-1] != "__init__" else parts[-2]
    library = parts[1] if parts[0] == "backend" and parts[1] in LIBRARIES else None
    backends = library or ON_THREE
    yield from _existing(f"tests/{'/'.join(parts[:-1])}/test_{stem}.py", backends)
    if parts[0] in ("backend", "ops", "rules"):
        yield from _existing(f"tests/ops/test_{stem}.py", backends)
        if names := _ops(stem):
            yield _rows(names, backends)
        beside = [*(ROOT / "tests/backend").glob(f"test_{library or 'numpy'}*.py"), ROOT / "tests/regressions"]
        yield from _all(sorted(str(file.relative_to(ROOT)) for file in beside), backends)
        yield from _all(list(GENERAL), backends)
    else:
        for depth in range(len(parts) - 1, 0, -1):
            # A folder of the first level has hundreds of tests, most of which do not depend on the backend.
            yield from _existing(f"tests/{'/'.join(parts[:depth])}", backends if depth > 1 else "numpy")


def _existing(path: str, backends: str) -> Iterator[str]:
    if (ROOT / path).exists():
        yield f"{path} --ember-backend {backends}"


def _all(paths: list[str], backends: str) -> Iterator[str]:
    if paths:
        yield f"{shlex.join(paths)} --ember-backend {backends}"


def _rows(names: list[str], backends: str) -> str:
    chosen = "test_a_sample_row_passes and ({})".format(" or ".join(f"-{name}]" for name in names))
    return shlex.join(["tests/conformance/test_samples.py", "-k", chosen, "--ember-backend", backends])


@functools.cache
def _ops(category: str) -> list[str]:
    """Returns the ops of a category that have a row of samples."""
    found: list[str] = []
    for file in (f"{category}.py", f"{category}_ops.py"):
        path = Path(ROOT / "emberharmony/ops" / file)
        if path.exists() and (ROOT / "emberharmony/testing/samples" / f"{category}.py").exists():
            tree = ast.parse(path.read_text(encoding="utf-8"))
            found += [node.name for node in tree.body if isinstance(node, ast.FunctionDef) and _is_op(node)]
    return found


def _is_op(node: ast.FunctionDef) -> bool:
    return any(isinstance(mark, ast.Name) and mark.id == "op" for mark in node.decorator_list)
