"""Chooses which parameters of a group are joined into vectors and which are computed separately, for speed.

These ways were tried and saved nothing of a step of AdamW over an MLP, a GPT of 148 tensors, an LSTM or 100 small
tensors: lists by `torch._foreach_*`, parameters of `SGD` on NumPy joined for good (73 instead of 82 µs for 100 tensors,
but all stay in memory with any of them), a search in the program for the steps of `SGD`, and a function that repeats
Adam on NumPy.
"""

import math
from collections.abc import Iterable, Mapping
from typing import Any

from emberharmony import Buffer
from emberharmony.core.cells.cell import values_of
from emberharmony.optim import numbers
from emberharmony.optim.declarations import is_elementwise
from emberharmony.optim.groups import State, require_matching_gradient
from emberharmony.optim.parts import JoinedPart, Layout, SeparatePart, Work
from emberharmony.optim.stepping import GroupStep

LONGEST = 2**18
"""The most elements of a joined vector, which should fit into the processor's cache."""

FEWEST = 4
"""The fewest parameters that are joined into a vector."""

STATELESS = 16, 4
"""For rules without state: the divisor of the largest size to join, and the factor of `FEWEST`."""


def layout_and_works(step: GroupStep) -> tuple[Layout, list[Work]]:
    """Returns a layout for the parameters that change in a step, and the work of its parts; checks the gradients.

    Raises:
        ArgumentTypeError: if a gradient is sparse.
        ShapeError: if it has not the shape of its parameter.
        DTypeError: if the dtypes differ, or are not real and floating.
    """
    cells, held_states, is_joinable = step.cells, step.held, is_elementwise(step.optimizer.rule)
    parameter_tensors = values_of(cells)
    parameter_shapes = [tuple(value.shape) for value in parameter_tensors]
    indices_by_key: dict[Any, list[int]] = {}
    states: list[State | None] = []
    for index, (cell, value, gradient) in enumerate(zip(cells, parameter_tensors, step.gradients, strict=True)):
        require_matching_gradient(step.optimizer._head, gradient, value, cell)
        entry = held_states.get(cell)
        state: State | None = None
        if entry is not None:
            state = {name: x.value if isinstance(x, Buffer) else x for name, x in entry.items()}
        elif not is_joinable:  # the state's names may depend on the parameter
            state = step.initial(value)
        states.append(state)
        state_items = (state or {}).items()
        can_join = is_joinable and all(
            tuple(x.shape) == parameter_shapes[index] for _, x in state_items if not numbers.is_python(x)
        )
        entry_kinds = [(name, x if numbers.is_python(x) else x.dtype) for name, x in state_items]
        group_key = (can_join, value.dtype, getattr(value, "device", None), entry is None, *entry_kinds)
        indices_by_key.setdefault(group_key, []).append(index)
    layout_parts = _parts_of_groups(step, indices_by_key, parameter_tensors, parameter_shapes)
    first_works = [
        layout_part.first_work(step, [states[i] for i in layout_part.places]) for layout_part in layout_parts
    ]
    return Layout(cells, step.backend.home, step.updates, layout_parts), first_works


def _parts_of_groups(
    step: GroupStep, indices_by_key: dict[Any, list[int]], values: list[Any], shapes: list[tuple[int, ...]]
) -> list[SeparatePart | JoinedPart]:
    """Returns the parts of a layout: one for small parameters of equal kind joined, one for those kept separate."""
    cells = step.cells
    layout_parts: list[SeparatePart | JoinedPart] = []
    for (can_join, *_), similar_places in indices_by_key.items():
        size_by_place = {i: math.prod(shapes[i]) for i in similar_places}
        joinable_size, fewest_tensors = (
            _largest_size_and_fewest_to_join(step, values[similar_places[0]]) if can_join else (-1, 0)
        )
        separate_places = [i for i in similar_places if size_by_place[i] > joinable_size]
        for part_places in _divide_into_chunks(
            [i for i in similar_places if size_by_place[i] <= joinable_size], size_by_place
        ):
            if len(part_places) < fewest_tensors:
                separate_places += part_places
            else:
                layout_parts.append(
                    JoinedPart([cells[i] for i in part_places], part_places, [shapes[i] for i in part_places])
                )
        if separate_places:
            layout_parts.append(
                SeparatePart([cells[i] for i in sorted(separate_places)], sorted(separate_places), can_join)
            )
    return layout_parts


def _largest_size_and_fewest_to_join(step: GroupStep, value: Any) -> tuple[int, int]:
    """Returns the largest size of a parameter that may be joined, and the smallest number of parameters to join."""
    first_state = step.initial(value)
    update = step.updates.update_for(first_state, step.hyper) if step.backend.runs_programs else None
    if update is not None and step.backend.has_kernel(update, value):
        return -1, 0
    joinable_size = step.backend.joinable
    return (joinable_size, FEWEST) if first_state else (joinable_size // STATELESS[0], FEWEST * STATELESS[1])


def _divide_into_chunks(places: list[int], sizes: Mapping[int, int]) -> Iterable[list[int]]:
    """Divides indices of tensors into lists whose tensors together have at most `LONGEST` elements."""
    chunk: list[int] = []
    element_count = 0
    for index in places:
        if chunk and element_count + sizes[index] > LONGEST:
            yield chunk
            chunk, element_count = [], 0
        chunk.append(index)
        element_count += sizes[index]
    if chunk:
        yield chunk
