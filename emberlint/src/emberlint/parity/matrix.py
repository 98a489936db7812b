"""The matrix that shows for each op and backend whether the backend has the op."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum

from emberlint.parity.declarations import Declaration, declarations, exported_names
from emberlint.parity.definitions import Definition, definitions, has_made_class
from emberlint.parity.layout import Layout, chosen_names
from emberlint.parity.signature import signature_difference, signature_text
from emberlint.source.project import Project


class Status(StrEnum):
    """The status of one op on one backend."""

    OK = "ok"  # a primitive that the backend defines
    OVERRIDE = "override"  # a composite that the backend overrides
    COMPOSITE = "composite"  # a composite op that the backend does not override
    MISSING = "missing"
    DIFFERS = "signature differs"
    UNSUPPORTED = "unsupported"  # declared unsupported, with the reason
    MISPLACED = "only in ops folder"

    @property
    def is_gap(self) -> bool:
        """Whether the op cannot be called on this backend as declared."""
        return self in (Status.MISSING, Status.DIFFERS, Status.MISPLACED)

    @property
    def works(self) -> bool:
        """Whether the op can be called on this backend as declared."""
        return self in (Status.OK, Status.OVERRIDE, Status.COMPOSITE)


@dataclass(frozen=True)
class BackendCell:
    """The cell of a matrix: the status of one op on one backend, with signatures and a detail."""

    status: Status
    detail: str = ""  # how the signature differs, why the op is unsupported, or where it is misplaced
    declared: str = ""
    defined: str = ""
    definition: Definition | None = None


@dataclass(frozen=True)
class OpRow:
    """One op on all backends; `declaration` is None if only the backends are compared with each other."""

    name: str
    category: str
    composite: bool
    cells: Mapping[str, BackendCell]
    declaration: Declaration | None = None
    exported: bool = True


@dataclass(frozen=True)
class Matrix:
    """The matrix of ops and backends: a row for each op, sorted by category and then in source order."""

    layout: Layout
    backends: tuple[str, ...]
    rows: tuple[OpRow, ...]

    def gaps(self) -> Iterator[tuple[OpRow, str, BackendCell]]:
        """Yields the row, backend and cell of each op that a backend lacks or has with a fault."""
        for row in self.rows:
            for backend, cell in row.cells.items():
                if cell.status.is_gap:
                    yield row, backend, cell

    def missing_ops(self, backend: str) -> list[str]:
        """Returns the ops that a backend lacks."""
        return [row.name for row in self.rows if row.cells[backend].status in (Status.MISSING, Status.MISPLACED)]

    def coverage(self, backend: str) -> float:
        """Returns the share of ops that work on a backend; 1 if there are no ops."""
        working_count = sum(row.cells[backend].status.works for row in self.rows)
        return working_count / len(self.rows) if self.rows else 1.0

    def select(self, categories: Sequence[str] = ()) -> "Matrix":
        """Returns the matrix with only the ops of some categories; of all categories if none is given."""
        selected_rows = tuple(row for row in self.rows if not categories or row.category in categories)
        return Matrix(self.layout, self.backends, selected_rows)

    @property
    def categories(self) -> tuple[str, ...]:
        """The categories of the ops, in the order of the rows."""
        return tuple(dict.fromkeys(row.category for row in self.rows))


def build_matrix(project: Project, layout: Layout, backends: Sequence[str] = ()) -> Matrix:
    """Returns the matrix of a project, for the requested backends or for all."""
    backend_names = chosen_names(layout.names, backends)
    declaration_by_name = declarations(project, layout)
    definitions_by_backend = {
        name: definitions(project, layout, layout.backend_files(project, name)) for name in layout.names
    }
    misplaced_by_backend = {
        name: definitions(project, layout, layout.files_inside_frontend(project, name)) for name in layout.names
    }
    generated_backends = {name for name in layout.names if has_made_class(project, layout.backend_files(project, name))}
    known_names = {
        name
        for backend_ops in (*definitions_by_backend.values(), *misplaced_by_backend.values())
        for name in backend_ops
    }
    # An assignment `name = module.name` is an op only if some backend has it; `pi = math.pi` is not an op.
    declaration_by_name = {
        name: declaration
        for name, declaration in declaration_by_name.items()
        if declaration.signature is not None or name in known_names
    }
    if not declaration_by_name:
        return Matrix(
            layout,
            backend_names,
            tuple(_rows_without_declarations(backend_names, definitions_by_backend, misplaced_by_backend)),
        )
    offered_names = exported_names(project, layout)
    op_rows = []
    for op in sorted(declaration_by_name.values(), key=lambda one: (one.category, one.place.path, one.place.line)):
        cell_by_backend = {
            name: _cell_of_op(
                op,
                definitions_by_backend[name].get(op.name),
                misplaced_by_backend[name].get(op.name),
                name in generated_backends,
            )
            for name in backend_names
        }
        op_rows.append(OpRow(op.name, op.category, op.composite, cell_by_backend, op, _is_exported(op, offered_names)))
    return Matrix(layout, backend_names, tuple(op_rows))


def _is_exported(op: Declaration, offered: frozenset[str] | None) -> bool:
    if offered is None or op.name.startswith("_") or op.place.path.endswith("__init__.py"):
        return True
    return op.name in offered or f"{op.category}.*" in offered


def _cell_of_op(
    op: Declaration, defined: Definition | None, misplaced: Definition | None, is_made: bool = False
) -> BackendCell:
    """Returns the status of an op; `is_made` says that it may be in a class that the backend makes by a call."""
    declared_signature = "" if op.signature is None else signature_text(op.signature)
    if defined is None:
        if is_made and not op.composite:
            return BackendCell(Status.OK, "in a class that a call makes", declared_signature)
        if misplaced is not None:
            return BackendCell(Status.MISPLACED, misplaced.place.path, declared_signature, definition=misplaced)
        return BackendCell(Status.COMPOSITE if op.composite else Status.MISSING, declared=declared_signature)
    if defined.unsupported is not None:
        return BackendCell(Status.UNSUPPORTED, defined.unsupported, declared_signature, definition=defined)
    defined_signature = "" if defined.signature is None else signature_text(defined.signature)
    if op.signature is not None and defined.signature is not None:
        difference_text = signature_difference(op.signature, defined.signature)
        if difference_text is not None:
            return BackendCell(Status.DIFFERS, difference_text, declared_signature, defined_signature, defined)
    return BackendCell(
        Status.OVERRIDE if op.composite else Status.OK, "", declared_signature, defined_signature, defined
    )


def _rows_without_declarations(
    names: Sequence[str],
    defined: Mapping[str, Mapping[str, Definition]],
    misplaced: Mapping[str, Mapping[str, Definition]],
) -> Iterator[OpRow]:
    """Yields the rows of a project without declarations, which compare the backends with each other.

    Every op that any backend defines is expected of all, with the signature of the first definition.
    """
    undeclared_by_name: dict[str, Definition] = {}
    for backend_ops in (*defined.values(), *misplaced.values()):
        for name, definition in backend_ops.items():
            first_definition = undeclared_by_name.get(name)
            if (
                first_definition is None
                or first_definition.unsupported is not None
                or first_definition.signature is None
            ):
                undeclared_by_name[name] = definition
    for name, definition in sorted(undeclared_by_name.items(), key=lambda item: (item[1].category, item[0])):
        op = Declaration(name, definition.category, False, definition.signature, definition.place)
        cell_by_backend = {key: _cell_of_op(op, defined[key].get(name), misplaced[key].get(name)) for key in names}
        yield OpRow(name, definition.category, False, cell_by_backend)
