"""Which parameters of a group are computed together: the passes that only make a step faster are chosen here."""

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from emberharmony import Buffer, Parameter
from emberharmony.core import selection
from emberharmony.core.state.commits import Step
from emberharmony.optim import numbers
from emberharmony.optim.groups import State
from emberharmony.optim.parts import Joined, Rows, Stepping, are_same
from emberharmony.optim.updates import Updates, is_elementwise
from emberharmony.optim.vectors import Share

LONGEST = 2**18
"""The most elements of a vector, which takes memory for a step and should stay in the cache."""

FEWEST = 4
"""The fewest parameters in a vector."""

STATELESS = 16, 4
"""What divides the largest size, and multiplies `FEWEST`, for a rule without state, which has few calls to save."""


@dataclass(slots=True)
class Layout:
    """How the parameters that change are computed.

    Attributes:
        cells: the parameters that change.
        kinds: their shapes with their dtypes, and their devices.
        updates: the programs of the rule.
        parts: what computes them.
    """

    cells: list[Parameter]
    kinds: Any
    updates: Updates
    parts: list[Rows | Joined]

    def states(self, cells: list[Parameter], kinds: Any, held: Mapping[Parameter, State]) -> list[State] | None:
        """Returns the states of the parts, or None if something has changed so that a new layout is needed."""
        if not are_same(self.cells, cells) or self.kinds != kinds:
            return None
        home = selection.current().home
        found: list[State] = []
        for part in self.parts:
            state = part.state(held, home)
            if state is None:
                return None
            found.append(state)
        return found

    def left(self, other: "Layout", held: Mapping[Parameter, State]) -> list[Step]:
        """Returns the steps that free the parameters that are in no vector of another layout from their vectors."""
        new = {cell for part in other.parts if isinstance(part, Joined) for cell in part.cells}
        gone = [cell for part in self.parts if isinstance(part, Joined) for cell in part.cells if cell not in new]
        shares = [x for cell in gone for x in held.get(cell, {}).values() if isinstance(x, Share)]
        return [(setattr, share, "_held", share.held()) for share in shares]


def arranged(cells: list[Parameter], kinds: Any, step: Stepping) -> tuple[Layout, list[State]]:
    """Returns the layout for parameters that change, and the states of its parts.

    Args:
        cells: the parameters.
        kinds: their shapes with their dtypes, and their devices.
        step: the step.
    """
    home, together = step.backend.home, is_elementwise(step.optimizer.rule)
    shapes = [tuple(shape) for shape, _ in kinds[0]]
    groups: dict[Any, list[int]] = {}
    states: list[State] = []
    for place, (cell, (_, dtype), device) in enumerate(zip(cells, *kinds, strict=True)):
        entry = step.held.get(cell)
        state = {} if entry is None else {name: x.value if isinstance(x, Buffer) else x for name, x in entry.items()}
        states.append(state)
        tensors = [x for x in state.values() if not numbers.is_python(x)]
        fits = together and all(tuple(x.shape) == shapes[place] for x in tensors)
        looks = [(name, x if numbers.is_python(x) else x.dtype) for name, x in state.items()]
        own = None if together else place  # the names in the states may depend on the parameter
        groups.setdefault((fits, dtype, device, entry is None, own, *looks), []).append(place)
    parts: list[Rows | Joined] = []
    found: list[State] = []
    for (fits, _, _, begins, *_), alike in groups.items():
        sizes = {i: math.prod(shapes[i]) for i in alike}
        most, fewest = _limits(step, step.values[alike[0]]) if fits else (-1, 0)
        rest = [i for i in alike if sizes[i] > most]
        for places in _in_chunks([i for i in alike if sizes[i] <= most], sizes):
            if len(places) < fewest:
                rest += places
                continue
            part = Joined([cells[i] for i in places], places, [shapes[i] for i in places])
            parts.append(part)
            found.append({} if begins else part.begun([states[i] for i in places]))
        if rest:
            rest.sort()
            rows = Rows([cells[i] for i in rest], rest, [step.values[i].shape for i in rest] if fits else None)
            parts.append(rows)
            found.append(rows.state(step.held, home) or {})
    return Layout(cells, kinds, step.updates, parts), found


def _limits(step: Stepping, like: Any) -> tuple[int, int]:
    """Returns the most elements of a parameter that is joined with others, and the fewest of these."""
    first = step.initial(like)
    planned = step.planned(first)
    if planned is not None and step.backend.has_kernel(planned.update, like):
        return -1, 0
    most = step.backend.joinable
    return (most, FEWEST) if first else (most // STATELESS[0], FEWEST * STATELESS[1])


def _in_chunks(places: list[int], sizes: Mapping[int, int]) -> Iterable[list[int]]:
    """Yields places, in several lists if their tensors have too many elements together."""
    chunk: list[int] = []
    length = 0
    for place in places:
        if chunk and length + sizes[place] > LONGEST:
            yield chunk
            chunk, length = [], 0
        chunk.append(place)
        length += sizes[place]
    if chunk:
        yield chunk
