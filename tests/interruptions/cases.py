"""Actions to interrupt: how they are described and registered."""

import gc
import threading
from collections.abc import Callable
from contextvars import Context, copy_context
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from emberharmony import ops
from emberharmony.backend import current
from emberharmony.backend.discovery import BUILTIN, is_installed
from emberharmony.core import selection
from emberharmony.core.dispatch import DISPATCH, SWAP
from emberharmony.ops import add, sin, softmax

INSTALLED = [name for name in BUILTIN if is_installed(name)]
OTHERS = [name for name in INSTALLED if name != "numpy"]
if not OTHERS:
    pytest.skip("needs a backend beside NumPy to switch to", allow_module_level=True)
OTHER = OTHERS[0]
Check = Callable[[], object]


@dataclass
class Case:
    """An action to interrupt: `prepare` sets the old state, `check` asserts that the state afterwards is consistent."""

    prepare: Callable[[], object]
    run: Callable[[], object]
    check: Check


CASES: dict[str, Callable[[Path, pytest.MonkeyPatch], Case]] = {}


def case(make: Callable[[Path, pytest.MonkeyPatch], Case]) -> Callable[[Path, pytest.MonkeyPatch], Case]:
    CASES[make.__name__] = make
    return make


def cases_of(values: list[Any]) -> Callable[[Callable[..., Case]], Callable[..., Case]]:
    """Registers one case for each value; the value is the third argument of the decorated function."""

    def register(make: Callable[..., Case]) -> Callable[..., Case]:
        for value in values:
            name = value if isinstance(value, str) else "-".join(value)
            CASES[f"{make.__name__}-{name}"] = lambda path, patch, value=value: make(path, patch, value)
        return make

    return register


def backend_now() -> str:
    """Returns the name of the active backend after checking that everything agrees on it, in another thread too."""
    name = ops.get_backend()
    kind = current().tensor_type
    assert current().name == name
    assert type(add(1.0, 2.0)) is type(sin([1.0])) is type(softmax([1.0, 2.0])) is kind
    assert type(ops.zeros((2,))) is kind
    seen: list[object] = []
    thread = threading.Thread(target=lambda: seen.append((ops.get_backend(), type(add(1.0, 2.0)))))
    thread.start()
    thread.join(20)
    assert seen == [(name, kind)], "another thread disagrees, or waits for a lock"
    return name


KEPT: list[Context] = []
"""A context whose override is never left."""


def direct(name: str) -> None:
    """Makes a backend active with direct ops, as in a process without any override so far."""
    KEPT.clear()
    if selection._any_alive():
        gc.collect()  # an exception and the frames in its traceback refer to each other, and the frames to overrides
    if DISPATCH != SWAP:
        selection._PROCESS.overridden = False
    ops.set_backend(name)
    add(1.0, 2.0)
    assert DISPATCH != SWAP or not {"active", "override"} & set(add.__code__.co_names)


def guarded(name: str) -> None:
    """Makes a backend active with guarded ops, because another context has an override that names another backend."""
    KEPT.append(copy_context())
    KEPT[0].run(ops.use_backend(next(other for other in INSTALLED if other != name)).__enter__)
    ops.set_backend(name)
    add(1.0, 2.0)
    assert DISPATCH != SWAP or "override" in add.__code__.co_names
