"""Makes several changes of state at once: neither a signal handler nor another thread runs between them.

CPython runs signal handlers and switches threads only between two bytecodes, and the call of a C function is one
bytecode. `commit` therefore passes all calls to C at once. They must be calls of C functions (`setattr`, `os.replace`,
`ContextVar.set`). On a Python without the global interpreter lock, other threads can still run between the changes.
"""

from collections import deque
from collections.abc import Iterable, Iterator
from itertools import chain, compress, repeat, starmap
from operator import attrgetter, call, is_
from typing import Any

Step = tuple[Any, ...]
"""A C function, followed by its arguments."""


def commit(*steps: Iterable[Step]) -> None:
    """Runs all steps in order, up to the first that raises."""
    deque(starmap(call, chain(*steps)), 0)


def assignment(owner: Any, name: str, value: Any) -> Step:
    """Returns the step that sets an attribute."""
    return setattr, owner, name, value


def steps_if_unchanged(owner: Any, name: str, value: Any, steps: Iterable[Step]) -> Iterator[Step]:
    """Yields each step only if the attribute is this very value at that moment; it is read while the steps run."""
    return compress(steps, map(is_, map(attrgetter(name), repeat(owner)), repeat(value)))
