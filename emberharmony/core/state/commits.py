"""Several changes of state as one: neither a signal handler nor another thread runs between them.

CPython runs signal handlers and switches threads between two bytecodes, and the call of a C function is one bytecode.
`commit` therefore hands all calls to C at once. The calls must be of C functions themselves (`setattr`, `os.replace`,
`ContextVar.set`). A Python without the global interpreter lock excludes the handlers only.
"""

from collections import deque
from collections.abc import Iterable, Iterator
from itertools import chain, compress, repeat, starmap
from operator import attrgetter, call, is_
from typing import Any

Step = tuple[Any, ...]
"""A C function and its arguments."""


def commit(*steps: Iterable[Step]) -> None:
    """Makes all calls, in order, up to the first that raises."""
    deque(starmap(call, chain(*steps)), maxlen=0)


def assigned(owner: Any, name: str, value: Any) -> Step:
    """Returns the step that sets an attribute."""
    return setattr, owner, name, value


def when(owner: Any, name: str, value: Any, steps: Iterable[Step]) -> Iterator[Step]:
    """Returns those steps before each of which an attribute is this very value; it is read while they are made."""
    return compress(steps, map(is_, map(attrgetter(name), repeat(owner)), repeat(value)))
