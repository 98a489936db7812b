"""Infers which expressions are tensors, by dataflow over one file, with a reason for each."""

import ast
from collections.abc import Iterator
from functools import cached_property
from typing import Any

from emberlint.inference import values as v
from emberlint.inference.analysis import Analysis, imported_roots
from emberlint.inference.dtypes import is_safe_operator
from emberlint.inference.explain import explain, reason_line
from emberlint.inference.summary import summarise
from emberlint.source.source_file import Evidence, Inference, NoInference, SourceFile


class FileInference:
    """The inference of one file, which is computed at the first question."""

    def __init__(self, file: SourceFile) -> None:
        self._file = file

    @cached_property
    def analysis(self) -> Analysis:
        """The finished analysis of the file."""
        file = self._file
        finished_analysis = Analysis(file.settings, package_of(file), file.neighbours, file.role.kind == "backend")
        finished_analysis.run(self._file.tree)
        return finished_analysis

    @cached_property
    def value_by_node(self) -> dict[ast.AST, v.Value]:
        """The inferred value of each expression."""
        return self.analysis.values

    def evidence(self, node: ast.expr) -> Evidence | None:
        """Returns why `node` is a tensor, or None."""
        value = self.value_by_node.get(node)
        return Evidence(value.tier, reason_line(value)) if isinstance(value, v.Tensor) else None

    def is_no_tensor(self, node: ast.expr) -> bool:
        """Returns whether `node` is known *not* to be a tensor."""
        return isinstance(
            self.value_by_node.get(node), (v.Other, v.Sequence, v.Mapping, v.Function, v.Class, v.Instance)
        )

    def is_shape(self, node: ast.expr) -> bool:
        """Returns whether `node` is known to be a shape, or another sequence of numbers."""
        value = self.value_by_node.get(node)
        return isinstance(value, v.Sequence) and v.is_number(value.element) and value.rest is None

    def is_number(self, node: ast.expr) -> bool:
        """Returns whether `node` is known to be a number."""
        return v.is_number(self.value_by_node.get(node))

    def is_safe_operator(self, node: ast.expr) -> bool:
        """Returns whether `node` is an operator that is certain to mean the same on every backend."""
        return is_safe_operator(node, self.value_by_node)

    def holds_object(self, node: ast.expr) -> bool:
        """Returns whether `node` is known to be, or to hold, something else than numbers and tensors."""
        return v.holds_object(self.value_by_node.get(node))

    def explain(self, line: int) -> Iterator[str]:
        """Yields, for each expression on a line, the inferred kind and the reason."""
        yield from explain(self._file, self.value_by_node, line)

    def release(self) -> None:
        """Drops all inferred values, so that their memory is free."""
        if "analysis" in self.__dict__:
            self.analysis.release()
        self.__dict__.clear()


def package_of(file: SourceFile) -> str:
    """Returns the package that the relative imports of a file start from."""
    return file.module if file.path.endswith("__init__.py") else file.module.rpartition(".")[0]


def infer(file: SourceFile) -> Inference:
    """Returns the inference of a file; if no tensor can occur in the file, one that knows nothing."""
    settings = file.settings
    tensor_roots = {
        dotted_name.partition(".")[0]
        for dotted_name in (*settings.namespaces, *settings.tensor_types, *settings.module_classes)
    }
    tensor_roots.update(settings.backends, (function.partition(".")[0] for function in settings.functions))
    roots_imported = imported_roots((module for module, _ in file.import_statements), package_of(file))
    neighbours = file.neighbours
    uses_conventions = settings.tensor_names or any(map(file.mentions, settings.namespace_names))
    if (
        not uses_conventions
        and tensor_roots.isdisjoint(roots_imported)
        and not (neighbours is not None and neighbours.has_informative_import())
    ):
        return NoInference()
    return FileInference(file)


def summary(file: SourceFile) -> Any:
    """Returns the summary of a file for the files that import it, or None if it says nothing about tensors."""
    inference = file.inference
    return summarise(inference.analysis, file.module) if isinstance(inference, FileInference) else None
