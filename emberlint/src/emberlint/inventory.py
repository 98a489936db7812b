"""Counts the native names of a code base and the ops that replace them: the work of adopting the namespace."""

import ast
from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from typing import NamedTuple

from emberlint.knowledge.replacements import neutral_dtype, replacement
from emberlint.knowledge.signatures import signatures
from emberlint.source.method_calls import method_calls
from emberlint.source.native_uses import native_uses
from emberlint.source.rename import is_plain_rename
from emberlint.source.source_file import SourceFile

IN_ANNOTATION = " (annotation)"  # the suffix of a native type's name that stands in an annotation
TENSORS = {"numpy": "numpy.ndarray", "torch": "torch.Tensor"}  # the types of the methods in the table of signatures


class NativeRow(NamedTuple):
    """A native name: its uses, the op that replaces it, the uses where only the name changes, and the first place."""

    native: str
    uses: int
    op: str | None
    renames: int
    first: str


@dataclass
class Inventory:
    """The native names used: how often, where first, and which ops replace them."""

    counts: Counter[str] = field(default_factory=Counter)
    plain: Counter[str] = field(default_factory=Counter)  # the uses where only the name would change
    first: dict[str, str] = field(default_factory=dict)
    imports: Counter[str] = field(default_factory=Counter)
    files: int = 0

    def count_file(self, file: SourceFile) -> None:
        """Counts the native uses of a file."""
        self.files += 1
        for node in file.index.nodes(ast.Import):
            self.imports.update(
                root_package
                for root_package in (name.name.partition(".")[0] for name in node.names)
                if root_package in file.foreign_libraries
            )
        for import_statement in file.index.nodes(ast.ImportFrom):
            root_package = (import_statement.module or "").partition(".")[0]
            self.imports.update(
                [root_package] if root_package in file.foreign_libraries and not import_statement.level else []
            )
        annotation_nodes = _annotation_nodes(file)
        for use in native_uses(file):
            is_type = use.node in annotation_nodes and use.origin in file.settings.tensor_types
            self._count_use(file, use.origin + IN_ANNOTATION * is_type, use.node, is_type or is_plain_rename(file, use))
        for call, origin in _tensor_method_calls(file):
            self._count_use(file, origin, call, plain=False)

    def _count_use(self, file: SourceFile, native: str, node: ast.expr, plain: bool) -> None:
        self.counts[native] += 1
        self.plain[native] += plain
        self.first.setdefault(native, f"{file.path}:{node.lineno}")

    def rows(self) -> list[NativeRow]:
        """Returns a row for each native name, the most frequent first."""
        return [
            NativeRow(name, count, _op_for(name), self.plain[name], self.first[name])
            for name, count in self.counts.most_common()
        ]

    def totals(self) -> dict[str, int]:
        """Returns how many uses need only a new name, need other arguments, or have no op."""
        count_with_op = sum(count for name, count in self.counts.items() if _op_for(name) is not None)
        rename_count = self.plain.total()
        return {
            "renames": rename_count,
            "other arguments": count_with_op - rename_count,
            "no op": self.counts.total() - count_with_op,
        }


def _annotation_nodes(file: SourceFile) -> frozenset[ast.AST]:
    """Returns every node inside an annotation of a parameter, a result or a variable."""
    nodes_of = file.index.nodes
    annotation_roots = [node.annotation for node in nodes_of(ast.arg, ast.AnnAssign)]
    annotation_roots += [node.returns for node in nodes_of(ast.FunctionDef, ast.AsyncFunctionDef)]
    return frozenset(node for annotation in annotation_roots if annotation is not None for node in ast.walk(annotation))


def _tensor_method_calls(file: SourceFile) -> Iterator[tuple[ast.expr, str]]:
    """Yields the calls of methods of tensors whose library is known, each with the name in the table of signatures."""
    for call, method in method_calls(file, frozenset(name.rpartition(".")[2] for name in signatures())):
        evidence = file.inference.evidence(call.func.value)
        if evidence is None:
            continue
        for library, tensor_class in TENSORS.items():
            if f"`{library}" in evidence.reason and f"{tensor_class}.{method}" in signatures():
                yield call, f"{tensor_class}.{method}"


def _op_for(native: str) -> str | None:
    """Returns the op, the neutral dtype or the tensor type that replaces a native name, or None."""
    if native.endswith(IN_ANNOTATION):
        return "Tensor"
    substitute, signature = replacement(native), signatures().get(native)
    if substitute is not None:
        return neutral_dtype(native) or substitute.op
    return neutral_dtype(native) or (None if signature is None else signature.op)


def take_inventory(files: Iterable[SourceFile]) -> Inventory:
    """Returns the counts of native names in some files."""
    native_inventory = Inventory()
    for file in files:
        native_inventory.count_file(file)
    return native_inventory
