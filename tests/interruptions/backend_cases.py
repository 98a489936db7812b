"""Actions that choose a backend, or run under one, to interrupt."""

import asyncio
import contextlib
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from emberharmony import ops
from emberharmony.backend import create_backend
from emberharmony.core import selection
from emberharmony.core.dispatch import UNCALLED
from emberharmony.core.state import draws
from emberharmony.core.state.checked_mode import checked, checking
from emberharmony.core.state.commits import commit
from emberharmony.ops import add
from tests.interruptions.cases import (
    OTHER,
    OTHERS,
    Case,
    backend_now,
    case,
    cases_of,
    direct,
    guarded,
)


@cases_of([(mode, name) for mode in ("direct", "guarded") for name in OTHERS])
def set_backend(path: Path, patch: pytest.MonkeyPatch, value: Any) -> Case:
    mode, name = value

    def check() -> None:
        assert backend_now() in ("numpy", name)

    return Case(lambda: globals()[mode]("numpy"), lambda: ops.set_backend(name), check)


@case
def set_backend_and_persist(path: Path, patch: pytest.MonkeyPatch) -> Case:
    file = path / "config.toml"
    patch.setenv("EMBERHARMONY_CONFIG", str(file))

    def prepare() -> None:
        direct("numpy")
        file.write_text('backend = "numpy"\n')

    def check() -> None:
        assert file.read_text() == f'backend = "{backend_now()}"\n'
        assert os.listdir(path) == ["config.toml"]

    return Case(prepare, lambda: ops.set_backend(OTHER, persist=True), check)


@case
def first_choice(path: Path, patch: pytest.MonkeyPatch) -> Case:
    file = path / "config.toml"
    file.write_text(f'backend = "{OTHER}"\n')
    patch.setenv("EMBERHARMONY_CONFIG", str(file))
    patch.delenv("EMBERHARMONY_BACKEND", raising=False)

    def prepare() -> None:
        direct("numpy")
        commit(UNCALLED)
        selection._PROCESS.bound = None

    def check() -> None:
        assert backend_now() == OTHER
        assert selection.backend_source() == str(file)

    return Case(prepare, lambda: add(1.0, 2.0), check)


@case
def first_call_of_an_op(path: Path, patch: pytest.MonkeyPatch) -> Case:
    def prepare() -> None:
        direct("numpy")
        selection.switch_backend(type(create_backend("numpy"))(), "test")

    def check() -> None:
        assert backend_now() == "numpy"

    return Case(prepare, lambda: add([1.0], [2.0]), check)


def _block() -> None:
    with ops.use_backend(OTHER) as backend:
        assert backend.name == OTHER


def _nested() -> None:
    with ops.use_backend(OTHER), ops.use_backend(like=np.ones(2)):
        pass


@ops.use_backend(OTHER)
def _decorated() -> None:
    assert ops.get_backend() == OTHER


@ops.use_backend(OTHER)
async def _awaited() -> None:
    await asyncio.sleep(0)
    assert ops.get_backend() == OTHER


def _raised() -> None:
    with pytest.raises(KeyError), ops.use_backend(OTHER):
        raise KeyError


def _generated() -> None:
    def numbers() -> Iterator[int]:
        with ops.use_backend(OTHER):
            yield 1
            yield 2

    with contextlib.closing(numbers()) as generator:
        next(generator)


def _driven() -> None:
    coroutine = _awaited()
    with contextlib.suppress(StopIteration):
        while True:
            coroutine.send(None)


def _composite_of_another() -> None:
    create_backend(OTHER).softmax(create_backend(OTHER).convert([1.0, 2.0]))


BLOCKS = {
    function.__name__.lstrip("_"): function
    for function in (_block, _nested, _decorated, _driven, _raised, _generated, _composite_of_another)
}


@cases_of([(mode, name) for mode in ("direct", "guarded") for name in BLOCKS])
def use_backend(path: Path, patch: pytest.MonkeyPatch, value: Any) -> Case:
    mode, name = value

    def check() -> None:
        assert selection._OVERRIDE.get() is None
        assert backend_now() == "numpy"

    return Case(lambda: globals()[mode]("numpy"), BLOCKS[name], check)


@case
def use_backend_inside_another(path: Path, patch: pytest.MonkeyPatch) -> Case:
    outer = ops.use_backend(OTHER)

    def run() -> None:
        with outer:
            try:
                with ops.use_backend("numpy"), outer:
                    pass
            finally:
                assert ops.get_backend() == OTHER

    def check() -> None:
        assert selection._OVERRIDE.get() is None
        assert backend_now() == "numpy"

    return Case(lambda: guarded("numpy"), run, check)


@case
def default_float(path: Path, patch: pytest.MonkeyPatch) -> Case:
    ops.set_backend(OTHER)

    def check() -> None:
        wanted = ops.default_float()
        assert ops.dtype(ops.zeros((2,))) == ops.dtype(ops.convert_to_tensor([1.0])) == wanted
        assert ops.dtype(ops.sin(ops.convert_to_tensor([1]))) == wanted

    return Case(lambda: ops.set_default_float("float32"), lambda: ops.set_default_float("float64"), check)


def _checked() -> None:
    with checked():
        assert checking()


def _watched() -> None:
    drawing = draws.Draws()
    for _ in range(2):
        with drawing.next_run(), draws.WithoutDraws():
            pass


@cases_of(["checked", "watched"])
def other_blocks(path: Path, patch: pytest.MonkeyPatch, name: str) -> Case:
    def check() -> None:
        assert not checking()
        assert draws._WATCHERS.get() is None

    return Case(lambda: None, globals()[f"_{name}"], check)
