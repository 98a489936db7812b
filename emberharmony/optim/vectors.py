"""Computes the steps of many small parameters as one step of a vector, which makes fewer calls.

A rule that works element by element gives the same bits for a vector as for the tensors in it. The state of the
parameters stays in vectors from step to step: the buffers in `Optimizer.state` take their part when they are read.
"""

import math
import operator
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypeVar
from weakref import WeakSet

from emberharmony import Buffer, Parameter
from emberharmony.backend.shared.programs import Program, in_chunks
from emberharmony.core import selection
from emberharmony.core.cells.cell import Held, Journey
from emberharmony.core.state.commits import Step, assigned
from emberharmony.optim import numbers
from emberharmony.optim.groups import State
from emberharmony.optim.rows import Rows, are_same

Rule = TypeVar("Rule", bound=Callable[..., Any])

LONGEST = 2**18
"""The most elements of a vector, which takes memory for a step and should stay in the cache."""

FEWEST = 4
"""The fewest parameters in a vector."""

LISTED = 2**18
"""The most elements in the tensors of a list, of which an op makes new ones that the next op reads."""

WORTH = 2**17
"""The fewest elements for which a program is recorded that computes tensors in blocks."""

STATELESS = 16, 4
"""What divides the largest size, and multiplies `FEWEST`, for a rule without state, which has few calls to save."""

_HELD, _SOURCE = operator.attrgetter("_held"), operator.itemgetter(1)
_ELEMENTWISE: WeakSet[Callable[..., Any]] = WeakSet()


def elementwise(rule: Rule) -> Rule:
    """Declares that a rule, and `initial` of its optimizer, work element by element; a decorator.

    Small parameters are then computed as one vector, with the same bits and fewer calls.
    """
    _ELEMENTWISE.add(rule)
    return rule


def is_elementwise(rule: Any) -> bool:
    """Returns whether a rule is declared to work element by element."""
    return rule in _ELEMENTWISE


class Vectors:
    """The states of several parameters, as one vector for each name; it does not change.

    Args:
        tensors: the vectors by name.
        shapes: the shape of each parameter.
        home: the ops of the backend of the vectors.
    """

    __slots__ = ("__weakref__", "home", "shapes", "tensors")

    def __init__(self, tensors: Mapping[str, Any], shapes: Sequence[tuple[int, ...]], home: Any) -> None:
        self.tensors, self.shapes, self.home = tensors, shapes, home

    def part(self, name: str, place: int) -> Any:
        """Returns what belongs to one parameter, with memory of its own."""
        start = sum(map(math.prod, self.shapes[:place]))
        shape = self.shapes[place]
        part = self.home.get_item(self.tensors[name], slice(start, start + math.prod(shape)))
        made = self.home.copy(self.home.reshape(part, shape))
        self.home.eval(made)  # so that other threads can read it
        return made


class Share(Buffer):
    """A buffer that may hold the name and place of its part of `Vectors`, instead of a tensor and its backend."""

    __slots__ = ()

    def __init__(self) -> None:
        # The first step assigns `_held`.
        self.name, self.persistent, self._grad, self._journey = "", True, None, Journey()

    def converted(self, held: Held, home: Any) -> Any:
        """Returns a held tensor, or part of a vector, as a tensor of a backend."""
        place, source = held
        if source.__class__ is not Vectors:
            return super().converted(held, home)
        tensor = source.part(*place)
        return tensor if source.home is home else super().converted((tensor, source.home), home)

    def held(self) -> Held:
        """Returns the tensor with its backend."""
        held = self._held
        if held[1].__class__ is Vectors:
            self._following("_held", held, held[1].home.backend.bound)
        return self._held

    def __getstate__(self) -> dict[str, Any]:
        self.held()
        return super().__getstate__()

    def __deepcopy__(self, memo: dict[int, Any]) -> "Share":
        self.held()
        return super().__deepcopy__(memo)

    def __repr__(self) -> str:
        self.held()
        return super().__repr__().replace("Share", "Buffer", 1)


class Batch:
    """Parameters that are computed in one vector.

    Args:
        cells: the parameters.
        places: their places among the parameters that change.
        shapes: their shapes.
    """

    __slots__ = ("cells", "entries", "places", "shapes", "shares", "vectors")

    def __init__(self, cells: Sequence[Parameter], places: Sequence[int], shapes: Sequence[tuple[int, ...]]) -> None:
        self.cells, self.places, self.shapes = cells, places, shapes
        self.entries: list[State] = []
        self.shares: list[tuple[Share, tuple[str, int]]] = []
        self.vectors = Vectors({}, (), None)

    def state(self, held: Mapping[Parameter, State], home: Any) -> State | None:
        """Returns the state of the vector; None if anything but the last step changed it, or read it."""
        vectors, first = self.vectors, self.entries[0]
        if vectors.home is not home or not are_same(list(map(held.get, self.cells)), self.entries):
            return None
        found = {}
        for name in first:
            entries = list(map(operator.itemgetter(name), self.entries))
            if name in vectors.tensors:
                found[name] = vectors.tensors[name]
                if {*map(type, entries)} != {Share} or {*map(_SOURCE, map(_HELD, entries))} != {vectors}:
                    return None
            else:
                found[name] = first[name]
                if {*map(type, entries)} & {Buffer, Share} or entries.count(first[name]) < len(entries):
                    return None
        return found

    def exchange(self, state: State, home: Any) -> list[Step]:
        """Returns the steps that make `state` the state of the vector, after `state()` has found that of before."""
        if not state:
            return []
        tensors = {name: state[name] for name in self.vectors.tensors}
        vectors = Vectors(tensors, self.shapes, home)
        steps: list[Step] = [(setattr, share, "_held", (at, vectors)) for share, at in self.shares]
        for name, x in state.items():
            if name not in tensors:
                steps += [(operator.setitem, entry, name, x) for entry in self.entries]
        return [*steps, assigned(self, "vectors", vectors)]

    def begin(self, state: State, held: dict[Parameter, State], home: Any) -> list[Step]:
        """Returns the steps that make `state` the state of the vector for the first time."""
        tensors = {name: x for name, x in state.items() if not numbers.is_python(x)}
        self.vectors = Vectors(tensors, self.shapes, home)
        steps: list[Step] = []
        for place, cell in enumerate(self.cells):
            entry = held.get(cell)
            if entry is None or entry.keys() != state.keys():
                entry = {}
                steps.append((operator.setitem, held, cell, entry))
            for name, x in state.items():
                if name not in tensors:
                    steps.append((operator.setitem, entry, name, x))
                    continue
                share = entry.get(name)
                if share.__class__ is not Share:
                    share = Share()
                    steps.append((operator.setitem, entry, name, share))
                self.shares.append((share, (name, place)))
                steps.append((setattr, share, "_held", ((name, place), self.vectors)))
            self.entries.append(entry)
        return steps


@dataclass(slots=True)
class Layout:
    """How the parameters that change are computed.

    Attributes:
        cells: the parameters that change.
        kinds: their shapes and dtypes, and their devices.
        batches: those that are computed in vectors.
        rows: those that are computed by a program.
        single: the places of the others.
    """

    cells: list[Parameter]
    kinds: Any
    batches: list[Batch]
    rows: list[Rows]
    single: list[int]

    def looks(self, cells: list[Parameter]) -> bool:
        """Returns whether these are the parameters, in rows that all look at tensors before they write over them."""
        looking = not (self.batches or self.single) and all(rows.alike and rows.overwrites for rows in self.rows)
        return looking and are_same(self.cells, cells)

    def states(self, cells: list[Parameter], kinds: Any, held: Mapping[Parameter, State]) -> list[Any] | None:
        """Returns the states of batches and rows, or None if something has changed so that a new layout is needed."""
        if not are_same(self.cells, cells) or self.kinds != kinds:
            return None
        home = selection.current().home
        found = [*(batch.state(held, home) for batch in self.batches), *(rows.state(held) for rows in self.rows)]
        return None if None in found else found

    def left(self, batches: Iterable[Batch], held: Mapping[Parameter, State]) -> list[Step]:
        """Returns the steps that free the parameters that are in none of the new batches from their vectors."""
        new = {cell for batch in batches for cell in batch.cells}
        gone = [cell for batch in self.batches for cell in batch.cells if cell not in new]
        shares = [x for cell in gone for x in held.get(cell, {}).values() if isinstance(x, Share)]
        return [(setattr, share, "_held", share.held()) for share in shares]


def arranged(
    cells: list[Parameter],
    values: list[Any],
    kinds: Any,
    held: Mapping[Parameter, State],
    first: State,
    program: Program | None,
) -> tuple[Layout, list[State | None]]:
    """Returns the layout for parameters that change, and the states of batches and rows; None if still to be made.

    Args:
        cells: the parameters.
        values: their values.
        kinds: their shapes and dtypes, and their devices.
        held: the states of parameters.
        first: the state of one of them before its first step.
        program: a program of the rule; None if it has none.
    """
    backend = selection.current()
    few_steps = program is not None and len(program.steps) <= backend.listed
    small, fewest = backend.joinable, FEWEST
    if not first:
        small, fewest = small // STATELESS[0], fewest * STATELESS[1]
    groups: dict[Any, list[int]] = {}
    single = []
    states = []
    shapes = list(map(tuple, kinds[0]))
    sizes = list(map(math.prod, shapes))
    for place, (cell, dtype, device) in enumerate(zip(cells, *kinds[1:], strict=True)):
        entry = held.get(cell)
        state = {} if entry is None else {name: x.value if isinstance(x, Buffer) else x for name, x in entry.items()}
        states.append(state)
        tensors = [x for x in state.values() if not numbers.is_python(x)]
        if any(tuple(x.shape) != shapes[place] for x in tensors):
            single.append(place)
            continue
        looks = [(name, x if numbers.is_python(x) else x.dtype) for name, x in state.items()]
        if program is None:
            way = "vector" if sizes[place] <= small else "single"
        elif sizes[place] >= backend.blocked or (few_steps and backend.computes_together(program, values[place])):
            way = "blocks"
        else:
            way = "list" if few_steps or sizes[place] > small else "vector"
        groups.setdefault((way, dtype, device, entry is None, *looks), []).append(place)
    for key, places in list(groups.items()):
        if key[0] == "blocks" and sum(sizes[i] for i in places) < WORTH:
            other = "list" if few_steps else "vector", *key[1:]
            fitting = {i for i in places if few_steps or sizes[i] <= small}
            groups[key] = [i for i in places if i not in fitting]
            groups[other] = sorted([*groups.get(other, []), *fitting])
    batches: list[Batch] = []
    rows: list[Rows] = []
    begun: list[Any] = []
    longest = {"vector": LONGEST, "list": LISTED}
    for (way, *_), alike in groups.items():
        for places in in_chunks(alike, sizes, longest.get(way, math.inf)):
            chosen = [cells[i] for i in places]
            if way == "vector" and len(places) >= fewest:
                batches.append(Batch(chosen, places, [shapes[i] for i in places]))
                begun.append(None if held.get(chosen[0]) is None else _joined([states[i] for i in places]))
            elif (way == "list" and len(places) >= FEWEST) or (
                way == "blocks" and sum(sizes[i] for i in places) >= WORTH
            ):
                rows.append(Rows(chosen, places, [shapes[i] for i in places], way == "blocks"))
            else:
                single += places
    found = [*begun, *(each.state(held) for each in rows)]
    return Layout(cells, kinds, batches, rows, sorted(single)), found


def _joined(states: list[State]) -> State:
    joined = selection.current().joined
    first = states[0]
    return {name: x if numbers.is_python(x) else joined([state[name] for state in states]) for name, x in first.items()}
