"""The report of a comparison: the first wrong call, all other differences, and a row for each call."""

import json
import platform
from collections.abc import Sequence
from dataclasses import asdict, dataclass, field
from typing import Any

from emberharmony.core.errors import ArgumentError
from emberharmony.core.state.files import replace_text
from emberharmony.testing.differences.records import Record
from emberharmony.version import __version__

FORMAT = 1
"""The version of the JSON of a report."""

_SHOWN = 30

_PARTINGS = ("control flow", "options", "outside", "result")

_FAULTS = ("local", "error", "unknown", "weights", "formula", "precision", "gradient")


@dataclass
class Divergence:
    """A call after which two runs differ by more than rounding.

    Attributes:
        op: the name of the op that is wrong, the innermost one of which this is known.
        outer: the composites around it, the outermost first.
        path: the module that was running.
        call: the number of the call in the run, from 0; of the outermost composite.
        line: the user's line, as "file:line".
        cause: "local" (the op itself is wrong), "error" (it raises an error on one side), "amplified" (its inputs
            differ already, and it enlarges that), "outside" (values of its inputs come from outside of ops, and
            differ), "options" (the program gives it other arguments that are no tensors), "result" (the program returns
            other numbers or another structure), "control flow" (the runs call other ops from here on) or "unknown" (it
            cannot be judged).
        wrong: the side that is wrong, several joined by " and ", or "" if none is.
        error: the error of each judged side, in units of what is allowed.
        carried: the difference of the two results as a share of the largest element.
        condition: how much the op enlarges relative errors, if its cause is "amplified".
        judge: by what it was judged.
        shapes: the shapes of its tensors.
        dtypes: their dtypes.
        gradient_of: in a backward pass, the op whose gradient was being computed.
        message: one sentence.
        inside: the judged calls inside of the composite, as (op, error).
        other: of two models, the module of the second one that corresponds.
        options: the arguments that differ, or of two models, the options of the modules, as (first, second).
    """

    op: str
    path: str
    call: int
    cause: str
    wrong: str = ""
    outer: tuple[str, ...] = ()
    line: str = ""
    error: dict[str, float] = field(default_factory=dict)
    carried: float = 0.0
    condition: float | None = None
    judge: str = ""
    shapes: tuple[tuple[int, ...], ...] = ()
    dtypes: tuple[str, ...] = ()
    gradient_of: str = ""
    message: str = ""
    inside: list[tuple[str, float]] = field(default_factory=list)
    other: str = ""
    options: dict[str, tuple[Any, Any]] = field(default_factory=dict)

    @property
    def is_wrong(self) -> bool:
        """Whether the difference is a fault of the op, and not of its inputs."""
        return self.cause in _FAULTS

    @property
    def parts(self) -> bool:
        """Whether the program calls other ops, or passes other arguments, on the two sides from this call on."""
        return self.cause in _PARTINGS


@dataclass
class Row:
    """The row of one compared call in a report: its place, its shapes, and the errors of the two sides."""

    call: int
    op: str
    path: str
    line: str
    shapes: tuple[tuple[int, ...], ...]
    carried: float
    errors: tuple[float | None, ...]
    verdict: str
    gradient_of: str = ""


class Report:
    """The result of `emberharmony.compare`.

    Attributes:
        sides: the names of the two sides.
        divergences: the calls that are wrong, and those where the runs part or a difference grows, in their order.
        rows: one for each call that was compared.
        notes: what else is to be known.
        environment: the versions of the libraries, and the machine.
    """

    def __init__(self, sides: Sequence[str], environment: dict[str, str]) -> None:
        self.sides = tuple(sides)
        self.divergences: list[Divergence] = []
        self.rows: list[Row] = []
        self.notes: list[str] = []
        self.environment = environment
        self._kept: tuple[Divergence, Record, Any] | None = None
        self._tolerance: float | None = None

    @property
    def first(self) -> Divergence | None:
        """The first call that is wrong; if none is, the first place where the program does something else; else None.

        There it calls other ops, gives a call other options or numbers, has other values that come from no op, or
        returns other numbers.
        """
        wrong_divergences = [divergence for divergence in self.divergences if divergence.is_wrong]
        parting_divergences = [divergence for divergence in self.divergences if divergence.parts]
        return next(iter([*wrong_divergences, *parting_divergences]), None)

    @property
    def ok(self) -> bool:
        """Whether the two sides agree: no op is wrong, and the program does the same on both.

        Their results may differ, but by no more than rounding and the differences of the inputs explain.
        """
        return self.first is None

    def __repr__(self) -> str:
        return f"<Report of {len(self.rows)} calls on {' and '.join(self.sides)}: {self.summary()}>"

    def _repr_html_(self) -> str:
        """Returns the HTML table of the divergences, which notebooks display."""
        from emberharmony.core.display.html import html_table  # imported here, because only notebooks need the module

        table_rows = [self._cells(divergence) for divergence in self.divergences[:_SHOWN]]
        left_out_count = len(self.divergences) - len(table_rows)
        omission_lines = [f"and {left_out_count} more; html(path) writes all"] if left_out_count else []
        notes_text = "\n".join([*omission_lines, *(f"note: {note}" for note in self.notes)])
        return html_table(self.summary(), self._table_header(), table_rows, left=5, notes=notes_text)

    def summary(self) -> str:
        """Returns one sentence about the first divergence: the wrong op, side and place, or other control flow."""
        first_divergence = self.first
        if first_divergence is not None:
            return first_divergence.message
        differing_count = sum(row.verdict not in ("equal", "rounding", "not compared") for row in self.rows)
        inherited_text = (
            f"; {differing_count} differ by more than rounding, as their inputs do" if differing_count else ""
        )
        return f"no op of {len(self.rows)} calls is wrong{inherited_text}"

    def table(self) -> str:
        """Returns a table of the divergences, and below it the notes.

        Example:
            >>> report = emberharmony.compare(ops.tanh, [1.0, 2.0], backends=("numpy", "numpy"))
            >>> print(report.table())
            no op of 1 calls is wrong
        """
        table_lines = [self.summary()]
        if self.divergences:
            cell_rows = [self._table_header(), *(self._cells(divergence) for divergence in self.divergences[:_SHOWN])]
            column_widths = [max(map(len, column)) for column in zip(*cell_rows, strict=True)]
            table_lines.append("")
            table_lines += [
                "  ".join(c.ljust(w) for c, w in zip(row, column_widths, strict=True)).rstrip() for row in cell_rows
            ]
            if len(self.divergences) > _SHOWN:
                table_lines.append(f"and {len(self.divergences) - _SHOWN} more")
        return "\n".join([*table_lines, *(f"note: {note}" for note in self.notes)])

    def _table_header(self) -> tuple[str, ...]:
        return ("call", "op", "where", "verdict", "wrong", "carried", *(f"error {side}" for side in self.sides))

    def _cells(self, divergence: Divergence) -> tuple[str, ...]:
        op_text = f"{divergence.outer[0]}: {divergence.op}" if divergence.outer else divergence.op
        error_texts = (f"{divergence.error[side]:.3g}" if side in divergence.error else "-" for side in self.sides)
        location = divergence.path or (divergence.line.rpartition("/")[2] or "-")
        return (
            str(divergence.call),
            op_text,
            location,
            divergence.cause,
            divergence.wrong or "-",
            f"{divergence.carried:.2g}",
            *error_texts,
        )

    def to_json(self) -> str:
        """Returns the report as JSON: sides, divergences, a row for each call, notes and the environment."""
        return json.dumps(
            {
                "format": FORMAT,
                "ok": self.ok,
                "sides": self.sides,
                "summary": self.summary(),
                "first": None if self.first is None else _json_value(asdict(self.first)),
                "divergences": [_json_value(asdict(divergence)) for divergence in self.divergences],
                "calls": [_json_value(asdict(row)) for row in self.rows],
                "notes": self.notes,
                "environment": self.environment,
            },
            indent=1,
        )

    def html(self, path: str) -> None:
        """Writes the report as one HTML page, which needs nothing else."""
        from emberharmony.testing.differences.page import page  # here, because few reports are written

        replace_text(str(path), page(self))

    def repro(self, path: str) -> None:
        """Writes a program that makes the first wrong call alone, and beside it an npz file with its smallest inputs.

        Raises:
            ArgumentError: if no op is wrong, or if the call cannot be written, such as one that draws random numbers.
        """
        from emberharmony.testing.differences.repro import write_program  # here, because few reports are written

        if self._kept is None:
            raise ArgumentError("no call is wrong, so there is none to reproduce")
        write_program(str(path), *self._kept, self._tolerance)


def _json_value(value: Any) -> Any:
    """Returns a value with text in place of infinities and NaN, which JSON lacks."""
    if isinstance(value, float) and (value != value or value in (float("inf"), float("-inf"))):
        return str(value)
    if isinstance(value, dict):
        return {name: _json_value(item) for name, item in value.items()}
    return [_json_value(item) for item in value] if isinstance(value, (list, tuple)) else value


def environment(backends: Sequence[Any]) -> dict[str, str]:
    """Returns the versions of the libraries, the machine, and how exactly each backend multiplies float32."""
    version_by_name = {"emberharmony": __version__, "python": platform.python_version(), "machine": platform.platform()}
    version_by_name |= {backend.name: str(backend.version) for backend in backends}
    return version_by_name | {f"precision of {backend.name}": precision_text(backend) for backend in backends}


def precision_text(backend: Any) -> str:
    """Returns how exactly a backend multiplies float32, as "products float32, convolutions tf32"."""
    return ", ".join(f"{product_name} {state}" for product_name, state in backend.product_precision().items())
