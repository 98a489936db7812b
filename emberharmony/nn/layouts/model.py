"""Converts the tensors of a module to and from the layouts of MLX and Keras, for `state_dict` and its relatives."""

from collections.abc import Mapping
from typing import Any

from emberharmony.core.cells.cell import Cell
from emberharmony.nn.layouts import converting
from emberharmony.nn.layouts.plan import Shape, make_plan, shapes_of_other_layouts
from emberharmony.nn.walk import Holder

Shapes = Mapping[str, Shape]
"""The shapes of the parameters and buffers of a module that are saved, by name."""


def to_layout(module: Holder, shapes: Shapes, values: Mapping[str, Any], layout: str) -> dict[str, Any]:
    """Converts the tensors of a module to another layout, and returns them by their names there."""
    return converting.to_layout(make_plan(module, shapes, layout), values)


def read_tensors(
    module: Holder,
    cells_by_name: Mapping[str, Cell],
    shapes: Shapes,
    values: Mapping[str, Any],
    layout: str,
    strict: bool,
) -> tuple[dict[str, Any], list[str], list[str]]:
    """Converts tensors in another layout to a module's own; returns them, unexpected names, and texts on faults.

    Args:
        module: the module.
        cells_by_name: its parameters and buffers; a name may be missing if the same parameter has another name too.
        shapes: their shapes.
        values: tensors of the active backend, by their names in the layout.
        layout: the tag.
        strict: whether missing and unexpected names are wrong.
    """
    model_plan = make_plan(module, shapes, layout)
    read_state = converting.read_tensors(model_plan, values)
    fault_texts: list[str] = []
    if strict:
        loaded_cells = {cells_by_name[name] for name in read_state.values}
        sources_by_name = {name: model_plan.placed[name].weight.source_names() for name in read_state.missing}
        missing_names = [
            name
            for name, source_names in sources_by_name.items()
            if not loaded_cells.issuperset(cells_by_name[source] for source in source_names)
        ]
        fault_texts += converting.name_hints(missing_names, read_state.unexpected, model_plan)
    shapes_by_layout = shapes_of_other_layouts(module, shapes, layout) if read_state.faults else {}
    for name, tensor in read_state.faults.items():
        placed_weight, given_shape = model_plan.placed[name], tuple(tensor.shape)
        expected_text = f"expected {placed_weight.shape} in the layout {layout!r} for {placed_weight.layer}"
        fault_text = f"has shape {given_shape}, {expected_text}"
        fault_texts.append(f"wrong: {name}: {fault_text}{_layout_hint(shapes_by_layout, name, given_shape)}")
    return read_state.values, read_state.unexpected, fault_texts


def fitting_layout_hint(
    module: Holder, shapes: Shapes, values: Mapping[str, Any], layout: str, argument: str = "layout"
) -> str:
    """Returns a hint for messages that names another layout which all tensors, or the wrong ones, fit.

    Args:
        module: the module.
        shapes: the shapes of its parameters and buffers.
        values: the tensors that were given.
        layout: the layout in which they were expected.
        argument: that which says so.
    """
    shape_by_name = {name: tuple(getattr(value, "shape", ())) for name, value in values.items()}
    shapes_by_layout = shapes_of_other_layouts(module, shapes, layout)
    for other_layout, shapes_of_other in shapes_by_layout.items():
        if shapes_of_other == shape_by_name:
            return f"\nall names and shapes are those of the layout {other_layout!r}: pass {argument}={other_layout!r}"
    if layout != "torch":
        return ""  # the texts on faults contain the hint already
    hint_by_misfit = {
        name: layout_hint
        for name in shapes
        if shape_by_name.get(name, shapes[name]) != shapes[name]
        if (layout_hint := _layout_hint(shapes_by_layout, name, shape_by_name[name]))
    }
    return "".join(f"\n  {name}{layout_hint}" for name, layout_hint in hint_by_misfit.items())


def _layout_hint(shapes_by_layout: Mapping[str, Shapes], name: str, shape: Shape) -> str:
    fitting_layouts = [
        other_layout for other_layout, shape_by_name in shapes_by_layout.items() if shape_by_name.get(name) == shape
    ]
    return f": it fits the layout {' and '.join(map(repr, fitting_layouts))}" if fitting_layouts else ""
