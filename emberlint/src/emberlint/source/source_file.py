"""A parsed file, and the facts that rules ask about it and its expressions."""

import ast
import re
from collections.abc import Callable, Iterator
from functools import cached_property, lru_cache
from typing import Any, NamedTuple, Protocol, TypeVar

from emberlint.config.settings import Role, Settings
from emberlint.config.tiers import Tier
from emberlint.source.imports import Import, import_statements, imported_names
from emberlint.source.names import Names
from emberlint.source.parsing import parse
from emberlint.source.tree import Tree

T = TypeVar("T")


class Evidence(NamedTuple):
    """The reason why the linter treats an expression as a tensor, or as a container of tensors."""

    tier: Tier
    reason: str


class Inference(Protocol):
    """The facts inferred about the expressions of one file; `emberlint.inference.infer(file)` returns one."""

    def evidence(self, node: ast.expr) -> Evidence | None:
        """Returns why `node` is a tensor, or None."""
        ...

    def is_no_tensor(self, node: ast.expr) -> bool:
        """Returns whether `node` is known *not* to be a tensor: a number, a string, an instance of a user's class."""
        ...

    def is_shape(self, node: ast.expr) -> bool:
        """Returns whether `node` is known to be a shape, or another sequence of numbers."""
        ...

    def is_number(self, node: ast.expr) -> bool:
        """Returns whether `node` is known to be a number."""
        ...

    def is_safe_operator(self, node: ast.expr) -> bool:
        """Returns whether `node` is an operator that is certain to mean the same on every backend."""
        ...

    def holds_object(self, node: ast.expr) -> bool:
        """Returns whether `node` is known to be, or to hold, something else than numbers and tensors."""
        ...

    def explain(self, line: int) -> Iterator[str]:
        """Yields, for each expression on a line, the inferred kind and the reason (`--explain-inference`)."""
        ...

    def release(self) -> None:
        """Drops everything inferred."""
        ...


class NoInference:
    """An inference that knows nothing, for code that needs none."""

    def evidence(self, node: ast.expr) -> Evidence | None:
        """Returns None, because nothing is inferred."""
        return None

    def is_no_tensor(self, node: ast.expr) -> bool:
        """Returns False."""
        return False

    def is_shape(self, node: ast.expr) -> bool:
        """Returns False."""
        return False

    def is_number(self, node: ast.expr) -> bool:
        """Returns False."""
        return False

    def is_safe_operator(self, node: ast.expr) -> bool:
        """Returns False."""
        return False

    def holds_object(self, node: ast.expr) -> bool:
        """Returns False."""
        return False

    def explain(self, line: int) -> Iterator[str]:
        """Yields nothing."""
        yield from ()

    def release(self) -> None:
        """Does nothing."""


class Neighbours(Protocol):
    """The other files of the project, as the inference of one file sees them."""

    def summary(self, module: str) -> Any:
        """Returns the summary of a module, or None."""
        ...

    def is_module(self, module: str) -> bool:
        """Returns whether the project has a module of that name."""
        ...

    def has_informative_import(self) -> bool:
        """Returns whether a file that this one imports has a summary."""
        ...

    def exists(self, path: str) -> bool:
        """Returns whether the project has a file at a path relative to its root."""
        ...


@lru_cache(maxsize=64)
def _method_call_pattern(methods: frozenset[str]) -> re.Pattern[str]:
    """Returns an expression for `.name(`, also with spaces, comments and line ends between the three."""
    space_pattern = r"(?:[\s\\]|#.*\n)*"
    return re.compile(rf"\.{space_pattern}(?:{'|'.join(sorted(methods))}){space_pattern}\(")


class SourceFile:
    """A parsed file with the facts that rules ask for; everything beyond the text is computed on first use."""

    def __init__(
        self,
        path: str,
        text: str,
        settings: Settings,
        tree: ast.Module | None = None,
        infer: Callable[["SourceFile"], Inference] | None = None,
        neighbours: Neighbours | None = None,
    ) -> None:
        self.path = path  # relative to the project's root, with forward slashes
        self.text = text
        self.settings = settings
        self.tree: ast.Module = parse(text) if tree is None else tree
        self.role: Role = settings.role(path)
        self.module: str = settings.module(path)
        self.neighbours = neighbours
        self._infer = infer
        self._mentioned: dict[str, bool] = {}
        self._derived: dict[Callable[[SourceFile], Any], Any] = {}

    @cached_property
    def lines(self) -> list[str]:
        """The lines of the text without line ends, counted as the parser counts them."""
        return self.text.replace("\r\n", "\n").replace("\r", "\n").split("\n")

    @cached_property
    def imports(self) -> tuple[Import, ...]:
        """Every import of the file, including those inside functions."""
        return imported_names(self.import_statements, self.module, self.path.endswith("__init__.py"))

    @cached_property
    def import_statements(self) -> tuple[tuple[ast.Import | ast.ImportFrom, bool], ...]:
        """The import statements, and whether only type checkers run them."""
        return tuple(import_statements(self.tree))

    @cached_property
    def index(self) -> Tree:
        """The nodes by type (`file.index.nodes(ast.Call, ast.Attribute)`), in source order, and the parent of each."""
        return Tree(self.tree)

    @cached_property
    def names(self) -> Names:
        """The scopes, bindings and dotted origins of the file's names."""
        return Names(self.index, self.module, is_package=self.path.endswith("__init__.py"))

    @cached_property
    def inference(self) -> Inference:
        """The inferred kinds of the expressions: which are tensors."""
        return NoInference() if self._infer is None else self._infer(self)

    @cached_property
    def foreign_libraries(self) -> frozenset[str]:
        """The native libraries that this file may not use."""
        return self.settings.foreign_libraries(self.role)

    def release(self) -> None:
        """Drops the tree and all facts about it, after which the file cannot be used.

        These objects refer to each other in circles. Dropping them here is much cheaper than garbage collection.
        """
        if "inference" in self.__dict__:
            self.inference.release()
        self.__dict__.clear()

    def parent(self, node: ast.AST) -> ast.AST | None:
        """Returns the parent of `node`."""
        return self.index.parents.get(node)

    def ancestors(self, node: ast.AST) -> Iterator[ast.AST]:
        """Yields the ancestors of `node`, the innermost first."""
        return self.index.ancestors(node)

    def mentions(self, word: str) -> bool:
        """Returns whether the text contains a word; rules ask this first, because most files lack their words."""
        if word not in self._mentioned:
            self._mentioned[word] = word in self.text
        return self._mentioned[word]

    def calls_method(self, methods: frozenset[str]) -> bool:
        """Returns whether the text may call a method of one of these names; strings and comments count too."""
        return any(map(self.mentions, methods)) and _method_call_pattern(methods).search(self.text) is not None

    @cached_property
    def mentions_native(self) -> bool:
        """Whether the text, or the file's own package, names a foreign library; if not, most rules can stop."""
        return self.module.partition(".")[0] in self.foreign_libraries or any(
            self.mentions(name) for name in self.foreign_libraries
        )

    def compute_once(self, function: Callable[["SourceFile"], T]) -> T:
        """Returns `function(self)`, which is computed once per file because several rules need the result."""
        if function not in self._derived:
            self._derived[function] = function(self)
        derived_value: T = self._derived[function]
        return derived_value

    def native_origin(self, node: ast.expr) -> str | None:
        """Returns the origin of an expression, as `numpy.linalg.norm`, if it is in a library foreign to this file."""
        if self.names.may_have_origin(node, self.names.names_leading_to(self.foreign_libraries)):
            for origin in self.names.origins(node):
                if origin.partition(".")[0] in self.foreign_libraries:
                    return origin
        return None

    def exists(self, path: str) -> bool:
        """Returns whether the project has a file at a path relative to its root."""
        return (self.settings.root / path).is_file() if self.neighbours is None else self.neighbours.exists(path)

    def column(self, line: int, offset: int) -> int:
        """Returns the column, counted from 1 in characters, of a byte offset given by the parser."""
        if self.text.isascii():
            return 1 + offset
        line_text = self.lines[line - 1] if line <= len(self.lines) else ""
        return 1 + (offset if line_text.isascii() else len(line_text.encode()[:offset].decode(errors="ignore")))

    def segment(self, node: ast.AST) -> str:
        """Returns the source text of a node."""
        line, end_line = getattr(node, "lineno", 0), getattr(node, "end_lineno", 0)
        if not line:
            return ""
        start_column = self.column(line, getattr(node, "col_offset", 0)) - 1
        end_column = self.column(end_line, getattr(node, "end_col_offset", 0)) - 1
        if line == end_line:
            return self.lines[line - 1][start_column:end_column]
        return "\n".join(
            [
                self.lines[line - 1][start_column:],
                *self.lines[line : end_line - 1],
                self.lines[end_line - 1][:end_column],
            ]
        )
