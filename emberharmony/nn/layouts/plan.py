"""Plans the conversion of a model to a layout: the name, shape and source parameters of each tensor there."""

from collections.abc import Iterator, Mapping
from contextlib import suppress
from typing import NamedTuple

from emberharmony.backend.shared.arrays.rearranging import Rearrangement, rearrangement
from emberharmony.core.errors import ArgumentError, EmberError, ShapeError
from emberharmony.core.names.layouts import LAYOUTS
from emberharmony.nn import walk
from emberharmony.nn.layouts.row import Part, Weight
from emberharmony.nn.layouts.table import row_of

Shape = tuple[int, ...]


class Placed(NamedTuple):
    """A tensor in the plan of a layout: its shape, the layer, and the parts of parameters that it consists of.

    Attributes:
        weight: what it is made of, with the names that the model has.
        layer: the layer that it belongs to, for messages: "features.0, a Conv2d".
        rows: the number of rows of each part.
        shape: its shape.
        joined: the shape of its parts, one after the other on the first axis.
    """

    weight: Weight
    layer: str
    rows: tuple[int, ...]
    shape: Shape
    joined: Shape

    def rearrangement(self, backward: bool = False) -> Rearrangement | None:
        """Returns the rearrangement of axes from the joined parts to the tensor, or back; None if none is needed."""
        return _axis_rearrangement(self.weight, self.shape if backward else self.joined, backward)


class Plan(NamedTuple):
    """The plan of a model in a layout: its tensors by name, and the parameters that the layout leaves out.

    Attributes:
        placed: the tensors by name.
        left_out: the names of the buffers that the layout lacks.
    """

    placed: dict[str, Placed]
    left_out: list[str]

    def shapes(self) -> dict[str, Shape]:
        """Returns the shape of each tensor by its name in the layout."""
        return {name: placed_weight.shape for name, placed_weight in self.placed.items()}


def make_plan(model: walk.Holder, shapes: Mapping[str, Shape], layout: str) -> Plan:
    """Makes the plan of a model in a layout, with a tensor for each weight of its layers.

    Args:
        model: the model.
        shapes: the shapes of those of its parameters and buffers that are saved, by name.
        layout: a tag.

    Raises:
        ArgumentError: if two tensors would have one name.
        ShapeError: if a parameter does not have the number of axes that its layer has.
    """
    model_plan = Plan({}, [])
    for weight, layer in _weights_of_layer(model, layout, shapes, model_plan.left_out, frozenset(), "", ""):
        if weight.name in model_plan.placed:
            sources_text = " and ".join(
                repr(weight.source_names()[0]) for weight in (model_plan.placed[weight.name].weight, weight)
            )
            raise ArgumentError(
                f"the layout {layout!r} has one name, {weight.name!r}, for {sources_text} of {type(model).__name__}: "
                "give one "
                f"of them another name"
            )
        model_plan.placed[weight.name] = _placed_weight(weight, layer, shapes)
    return model_plan


def shapes_of_other_layouts(
    model: walk.Holder, shapes: Mapping[str, Shape], layout: str
) -> dict[str, dict[str, Shape]]:
    """Returns the shapes of the tensors of a model in all layouts except one, by layout and name.

    A layout that the model cannot have is left out.
    """
    shapes_by_layout = {}
    for other_layout in LAYOUTS:
        if other_layout != layout:
            with suppress(EmberError):
                shapes_by_layout[other_layout] = make_plan(model, shapes, other_layout).shapes()
    return shapes_by_layout


def _weights_of_layer(
    layer: walk.Holder,
    layout: str,
    shapes: Mapping[str, Shape],
    left_out: list[str],
    taken_names: frozenset[str],
    own_prefix: str,
    native_prefix: str,
) -> Iterator[tuple[Weight, str]]:
    """Yields (weight, layer) for the weights of a layer and its inner layers in a layout.

    Args:
        layer: the layer.
        layout: a tag.
        shapes: the shapes of the parameters and buffers of the model.
        left_out: gets the names of the buffers that the layout lacks.
        taken_names: the parameters that the row of an outer layer names.
        own_prefix, native_prefix: the names of the layer in both libraries, with a dot at the end.
    """
    row = row_of(layer, layout)
    layer_text = f"{type(layer).__name__} at {own_prefix[:-1]}" if own_prefix else type(layer).__name__
    own_sources: set[str] = set()
    for weight in row.weights:
        source_names = {own_prefix + name for name in weight.source_names()}
        if source_names <= shapes.keys() and not source_names & taken_names:
            own_sources |= source_names
            yield weight.within_model(native_prefix, own_prefix, layer), layer_text
    for name, _ in walk.direct_cells(layer):
        full_name = own_prefix + name
        if full_name in shapes and full_name not in taken_names | own_sources:
            if name in row.left_out:
                left_out.append(full_name)
            else:
                yield Weight(native_prefix + name, (Part(full_name),)), layer_text
    for name, sublayer in walk.inner_modules(layer):
        prefix = f"{native_prefix}{row.child_name(name)}."
        yield from _weights_of_layer(
            sublayer, layout, shapes, left_out, taken_names | own_sources, f"{own_prefix}{name}.", prefix
        )


def _placed_weight(weight: Weight, layer: str, shapes: Mapping[str, Shape]) -> Placed:
    row_counts = []
    for part in weight.parts:
        full_shape = shapes[part.source]
        row_counts.append(full_shape[0] if part.start is None and full_shape else (part.stop or 1) - (part.start or 0))
    first_shape = shapes[weight.parts[0].source]
    joined_shape = (sum(row_counts), *first_shape[1:]) if first_shape else ()
    try:
        steps = _axis_rearrangement(weight, joined_shape, False)
    except ShapeError as error:
        raise ShapeError(f"{weight.name!r} of {layer}, made of {', '.join(weight.source_names())}: {error}") from error
    return Placed(weight, layer, tuple(row_counts), joined_shape if steps is None else steps.joined_shape, joined_shape)


def _axis_rearrangement(weight: Weight, shape: Shape, backward: bool) -> Rearrangement | None:
    if not weight.pattern:
        return None
    pattern_sides = weight.pattern.split(" -> ")
    return rearrangement(" -> ".join(pattern_sides[::-1] if backward else pattern_sides), shape, weight.lengths)
