"""Converts the tensors of a model between its own layout, which is PyTorch's, and another one by a plan."""

from collections.abc import Iterable, Mapping
from typing import Any, NamedTuple

from emberharmony import ops
from emberharmony.core.errors import suggest
from emberharmony.nn.layouts.plan import Plan
from emberharmony.nn.layouts.row import Part


class Read(NamedTuple):
    """The result of converting tensors to a model's own layout: new tensors, and missing and misfit names.

    Attributes:
        values: the tensors in the layout of the model, by name.
        missing: the names in the layout that were not given.
        unexpected: the names given that the layout does not have.
        faults: the tensors whose shape is wrong, by name.
    """

    values: dict[str, Any]
    missing: list[str]
    unexpected: list[str]
    faults: dict[str, Any]


def to_layout(plan: Plan, values: Mapping[str, Any]) -> dict[str, Any]:
    """Converts the tensors of a model to the layout of a plan.

    Args:
        plan: the tensors in the layout.
        values: those of the model by name; a tensor that is made of one that is not given is left out.
    """
    converted_by_key: dict[Any, Any] = {}  # two names of one tensor give one converted tensor
    tensor_by_name = {}
    for name, placed_weight in plan.placed.items():
        sources, steps = placed_weight.weight.parts, placed_weight.rearrangement()
        if all(source in values for source in placed_weight.weight.source_names()):
            conversion_key = (
                steps,
                *[(id(values[p.source]), p.start, p.stop, p.plus and id(values[p.plus])) for p in sources],
            )
            if conversion_key not in converted_by_key:
                converted_by_key[conversion_key] = _rearrange(
                    _join_parts([_rows_of_part(values, source) for source in sources]), steps
                )
            tensor_by_name[name] = converted_by_key[conversion_key]
    return tensor_by_name


def read_tensors(plan: Plan, values: Mapping[str, Any]) -> Read:
    """Converts tensors in the layout of a plan to the tensors of a model.

    Args:
        plan: the tensors in the layout.
        values: those that are given, by name.
    """
    blocks_by_source: dict[str, dict[int, Any]] = {}
    rows_by_source: dict[str, set[int]] = {}
    misfit_by_name: dict[str, Any] = {}
    converted_by_key: dict[Any, Any] = {}
    for name, placed_weight in plan.placed.items():
        _record_block_starts(rows_by_source, placed_weight.weight.parts)
        if name not in values:
            continue
        tensor = values[name]
        if tuple(tensor.shape) != placed_weight.shape:
            misfit_by_name[name] = tensor
            continue
        steps = placed_weight.rearrangement(backward=True)
        conversion_key = id(tensor), steps
        if conversion_key not in converted_by_key:
            converted_by_key[conversion_key] = _rearrange(tensor, steps)
        start_row = 0
        for part, rows in zip(placed_weight.weight.parts, placed_weight.rows, strict=True):
            is_single_part = len(placed_weight.weight.parts) == 1
            parameter_block = (
                converted_by_key[conversion_key]
                if is_single_part
                else converted_by_key[conversion_key][start_row : start_row + rows]
            )
            blocks_by_source.setdefault(part.source, {})[part.start or 0] = parameter_block
            if part.plus:
                blocks_by_source.setdefault(part.plus, {})[part.start or 0] = ops.zeros_like(parameter_block)
            start_row += rows
    value_by_parameter = {
        source: _join_parts([block_by_start[start_row] for start_row in sorted(block_by_start)])
        for source, block_by_start in blocks_by_source.items()
        if block_by_start.keys() == rows_by_source[source]
    }
    value_by_parameter.update({name: ops.zeros((), "int64") for name in plan.left_out})
    missing_names = [name for name in plan.placed if name not in values]
    return Read(value_by_parameter, missing_names, [name for name in values if name not in plan.placed], misfit_by_name)


def name_hints(missing: Iterable[str], unexpected: Iterable[str], plan: Plan) -> list[str]:
    """Returns a line for each name that is missing or unexpected, with the nearest name."""
    missing_names, unexpected_names = list(missing), list(unexpected)
    return [
        *(f"missing: {name} of {plan.placed[name].layer}{suggest(name, unexpected_names)}" for name in missing_names),
        *(f"unexpected: {name}{suggest(name, plan.placed)}" for name in unexpected_names),
    ]


def _record_block_starts(starts_by_source: dict[str, set[int]], parts: Iterable[Part]) -> None:
    """Records for each parameter of ours at which rows the blocks begin that the given parts stand for."""
    for part in parts:
        for source in (part.source, part.plus):
            if source:
                starts_by_source.setdefault(source, set()).add(part.start or 0)


def _rows_of_part(values: Mapping[str, Any], part: Part) -> Any:
    """Returns the rows of a parameter that a part consists of, plus a second parameter's if the part is a sum."""
    source_tensor = values[part.source]
    rows = source_tensor if part.start is None else source_tensor[part.start : part.stop]
    if part.plus is None:
        return rows
    added_tensor = values[part.plus]
    return ops.add(rows, added_tensor if part.start is None else added_tensor[part.start : part.stop])


def _join_parts(blocks: list[Any]) -> Any:
    return blocks[0] if len(blocks) == 1 else ops.concatenate(blocks)


def _rearrange(tensor: Any, steps: Any) -> Any:
    if steps is None:
        return tensor
    return ops.reshape(ops.transpose(ops.reshape(tensor, steps.split_shape), steps.order), steps.joined_shape)
