"""Makes the table of `Module.summary`: names, classes, output shapes and sizes of all modules."""

import math
from collections.abc import Sequence
from typing import Any

from emberharmony import Buffer, Parameter, ops
from emberharmony.core.cells.cell import Cell
from emberharmony.core.display.html import html_table
from emberharmony.core.errors import ArgumentTypeError
from emberharmony.core.trees.tree import tree_flatten, tree_unflatten
from emberharmony.nn import walk

_HEAD = ("name", "module", "output", "parameters", "bytes")


class Summary(str):
    """The summary of a module: a string with a table, which notebooks show as HTML."""

    __slots__ = ("html",)
    html: str
    """The summary table as HTML."""

    def __repr__(self) -> str:
        return str(self)

    def _repr_html_(self) -> str:
        """Returns the table as HTML for notebooks."""
        return self.html


def summary(module: walk.Holder, specs: tuple[Any, ...], depth: int | None) -> Summary:
    """Returns the table of a module's inner modules as text; see `Module.summary`."""
    body_rows, total_row = _summary_rows(module, specs, depth), _total_row(module)
    if not specs:
        body_rows = [(name, class_name, *numbers) for name, class_name, _, *numbers in body_rows]
    rows: list[tuple[str, ...]] = [_HEAD if specs else (*_HEAD[:2], *_HEAD[3:]), *body_rows]
    column_widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    table_lines = [
        "  ".join(
            cell.rjust(width) if i >= len(row) - 2 else cell.ljust(width)
            for i, (cell, width) in enumerate(zip(row, column_widths, strict=True))
        ).rstrip()
        for row in rows
    ]
    summary_text = Summary("\n".join([*table_lines, total_row]))
    summary_text.html = html_table(type(module).__name__, rows[0], body_rows, left=len(rows[0]) - 2, notes=total_row)
    return summary_text


def summary_html(module: walk.Holder) -> str:
    """Returns the table of a module as HTML for notebooks, with the options of layers and without output shapes."""
    modules_by_name = dict(walk.named_modules(module))
    rows = [
        (
            name,
            class_name if any(True for _ in walk.inner_modules(modules_by_name[name])) else repr(modules_by_name[name]),
            *numbers,
        )
        for name, class_name, _, *numbers in _summary_rows(module, (), None)
    ]
    return html_table(
        type(module).__name__, ("name", "module", "parameters", "bytes"), rows, left=2, notes=_total_row(module)
    )


def _summary_rows(module: walk.Holder, specs: tuple[Any, ...], depth: int | None) -> list[tuple[str, ...]]:
    output_shape_by_name = _output_shapes(module, specs) if specs else {}
    summary_rows: list[tuple[str, ...]] = []
    outer_names: list[str] = []
    for name, submodule in walk.named_modules(module):
        # Only outer modules count as levels of depth; a plain list of modules does not.
        nesting_level = 0 if depth is None else sum(name.startswith(f"{outer_name}.") for outer_name in outer_names)
        outer_names.append(name)
        if depth is None or nesting_level < depth or not name:
            cells = walk.cells(submodule)
            summary_rows.append(
                (
                    name,
                    type(submodule).__name__,
                    output_shape_by_name.get(name, ""),
                    f"{_element_count([cell for cell in cells if isinstance(cell, Parameter)]):,}",
                    f"{sum(_element_count([cell]) * ops.dtype(cell.value).itemsize for cell in cells):,}",
                )
            )
    return summary_rows


def _total_row(module: walk.Holder) -> str:
    parameters = [cell for cell in walk.cells(module) if isinstance(cell, Parameter)]
    trained_count = _element_count([cell for cell in parameters if cell.trainable])
    parameter_text = f"{_element_count(parameters):,} parameters, {trained_count:,} of them trainable"
    buffer_element_count = _element_count([cell for cell in walk.cells(module) if isinstance(cell, Buffer)])
    return parameter_text + (
        f", and {buffer_element_count:,} element{'s' * (buffer_element_count > 1)} in buffers"
        if buffer_element_count
        else ""
    )


def _element_count(cells: Sequence[Cell]) -> int:
    return sum(math.prod(cell.value.shape) for cell in cells)


def _output_shapes(module: walk.Holder, specs: tuple[Any, ...]) -> dict[str, str]:
    """Returns the output shapes of all modules by name, found by abstract evaluation without any computation."""
    for spec in specs:
        if isinstance(spec, (tuple, list)) and spec and all(isinstance(length, int) for length in spec):
            raise ArgumentTypeError(
                f"summary() takes what the module is called with, not a shape: ops.zeros({tuple(spec)}), or "
                f"emberharmony.TensorSpec({tuple(spec)}, 'float32')"
            )
    shape_by_path: dict[str, str] = {}
    leaves, treedef = tree_flatten(module)
    observed_module = tree_unflatten(treedef, leaves)  # a copy of the modules with the same parameters
    for name, submodule in list(walk.named_modules(observed_module)):
        submodule.__class__ = _class_noting_shapes(submodule.__class__, name, shape_by_path)
    ops.eval_shape(lambda *inputs: observed_module(*inputs), *specs)
    return shape_by_path


def _class_noting_shapes(kind: type[Any], name: str, shapes: dict[str, str]) -> type[Any]:
    """Returns a subclass of a layer's class whose calls record the shapes of the outputs."""

    def call_and_note_shape(self: Any, *args: Any, **kwargs: Any) -> Any:
        output = kind.__call__(self, *args, **kwargs)
        shapes[name] = ", ".join(str(tuple(leaf.shape)) for leaf in ops.tree_leaves(output) if hasattr(leaf, "shape"))
        return output

    return type(kind.__name__, (kind,), {"__call__": call_and_note_shape})
