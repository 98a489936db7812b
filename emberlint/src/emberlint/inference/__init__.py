"""Which expressions are tensors: a dataflow over one file, with a reason for everything it says."""

import ast
from collections.abc import Iterator
from functools import cached_property

from emberlint.inference import values as v
from emberlint.inference.analysis import Analysis, imported_roots
from emberlint.inference.explain import explain, reason
from emberlint.source.source_file import Evidence, Inference, NoInference, SourceFile


class FileInference:
    """What is known of the expressions of one file, worked out when first asked."""

    def __init__(self, file: SourceFile) -> None:
        self._file = file

    @cached_property
    def values(self) -> dict[ast.AST, v.Value]:
        """What each expression is."""
        analysis = Analysis(self._file.settings, package_of(self._file))
        analysis.run(self._file.tree)
        return analysis.values

    def evidence(self, node: ast.expr) -> Evidence | None:
        """Return why `node` is a tensor, or None."""
        value = self.values.get(node)
        return Evidence(value.tier, reason(value)) if isinstance(value, v.Tensor) else None

    def is_other(self, node: ast.expr) -> bool:
        """Return whether `node` is known *not* to be a tensor."""
        return isinstance(self.values.get(node), v.Other | v.Sequence | v.Mapping | v.Function | v.Class | v.Instance)

    def explain(self, line: int) -> Iterator[str]:
        """Yield, for each expression on a line, what it is held to be and why."""
        yield from explain(self._file, self.values, line)


def package_of(file: SourceFile) -> str:
    """Return the package that relative imports of a file start from."""
    return file.module if file.path.endswith("__init__.py") else file.module.rpartition(".")[0]


def infer(file: SourceFile) -> Inference:
    """Return the inference of a file; one that knows nothing where no tensor can come from anywhere."""
    settings = file.settings
    roots = {one.partition(".")[0] for one in (*settings.namespaces, *settings.tensor_types, *settings.module_classes)}
    roots.update(settings.backends, (one.partition(".")[0] for one in settings.functions))
    found = imported_roots(file.index.nodes(ast.Import, ast.ImportFrom), package_of(file))
    if not settings.tensor_names and roots.isdisjoint(found):
        return NoInference()
    return FileInference(file)
