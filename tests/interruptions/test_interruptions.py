"""An interruption at any instruction leaves either the old or the new state, and no lock held.

`trace` raises before each instruction in turn, even where CPython would not run a signal handler, so it covers every
moment at which a signal can arrive. Other tests send real signals.
"""

import asyncio
import contextlib
import gc
import os
import pickle
import random
import stat
import threading
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from emberharmony import ops
from emberharmony.backend import create_backend, current
from emberharmony.backend.discovery import BUILTIN, is_installed
from emberharmony.core import selection
from emberharmony.core.checked_mode import checked, checking
from emberharmony.core.dispatch import DISPATCH, SWAP, UNCALLED
from emberharmony.core.state import draws, settings
from emberharmony.core.state.commits import commit
from emberharmony.core.state.files import replace_text
from emberharmony.ops import add, sin, softmax
from tests.interruptions.harness import delays, duration, moments, raising, struck, trace

pytestmark = [
    # Python warns when the garbage collector frees an open file or a coroutine that an interruption left behind.
    pytest.mark.filterwarnings("ignore::ResourceWarning"),
    pytest.mark.filterwarnings("ignore:coroutine .* was never awaited:RuntimeWarning"),
]


@pytest.fixture(autouse=True)
def collected() -> Iterator[None]:
    """Collects garbage after each test, because its warnings are ignored here but not in later tests."""
    yield
    gc.collect()


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


@pytest.fixture(autouse=True)
def _restored(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    for name in INSTALLED:
        create_backend(name)
    before, default = ops.get_backend(), ops.default_float()
    yield
    ops.set_backend(before)
    ops.set_default_float(default)


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


def direct(name: str) -> None:
    """Makes a backend active with direct ops, as in a process without any override so far."""
    selection._PROCESS.overridden = False
    ops.set_backend(name)
    add(1.0, 2.0)
    assert DISPATCH != SWAP or "active" not in add.__code__.co_names


def looked_up(name: str) -> None:
    with ops.use_backend("numpy"):
        pass
    ops.set_backend(name)


@cases_of([(mode, name) for mode in ("direct", "looked_up") for name in OTHERS])
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
        selection._PROCESS.overridden = False
        commit(UNCALLED)
        selection._PROCESS.bound = None

    def check() -> None:
        assert backend_now() == OTHER
        assert selection.source() == str(file)

    return Case(prepare, lambda: add(1.0, 2.0), check)


@case
def first_call_of_an_op(path: Path, patch: pytest.MonkeyPatch) -> Case:
    def prepare() -> None:
        selection._PROCESS.overridden = False
        selection.switch(type(create_backend("numpy"))(), "test")

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


@cases_of([(mode, name) for mode in ("direct", "looked_up") for name in BLOCKS])
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

    return Case(lambda: looked_up("numpy"), run, check)


def drawn() -> list[float]:
    """Returns the next numbers of both default streams: that of the backend and that of the host."""
    return [float(x) for x in (*ops.to_numpy(ops.random.normal((3,))), *ops.to_numpy(ops.random.gamma((2,), 2.0)))]


@cases_of(INSTALLED)
def seed(path: Path, patch: pytest.MonkeyPatch, name: str) -> Case:
    ops.set_backend(name)

    def prepare() -> None:
        ops.random.seed(1)
        drawn()

    prepare()
    old = drawn()
    ops.random.seed(2)
    new = drawn()

    def check() -> None:
        assert drawn() in (old, new)

    return Case(prepare, lambda: ops.random.seed(2), check)


DRAWS = {
    "normal": lambda **options: ops.random.normal((3,), **options),
    "uniform": lambda **options: ops.random.uniform((3,), -1.0, 1.0, **options),
    "wide": lambda **options: ops.random.normal((3,), dtype="float64", **options),
    "truncated_normal": lambda **options: ops.random.truncated_normal((50,), **options),
    "gamma": lambda **options: ops.random.gamma((3,), 2.0, **options),
    "randint": lambda **options: ops.random.randint((3,), 0, 10**9, **options),
    "permutation": lambda **options: ops.random.permutation(40, **options),
    "choice": lambda **options: ops.random.choice(1000, (9,), **options),
    "categorical": lambda **options: ops.random.categorical(np.zeros((1, 1000), "f4"), 9, **options),
    "dropout": lambda **options: ops.dropout(np.ones(99, "f4"), 0.5, **options),
}


@cases_of([(name, draw) for name in INSTALLED for draw in DRAWS])
def draw_from_the_default_stream(path: Path, patch: pytest.MonkeyPatch, value: Any) -> Case:
    name, distribution = value
    ops.set_backend(name)

    def draw() -> list[float]:
        return ops.to_numpy(DRAWS[distribution]()).ravel().tolist()

    def prepare() -> None:
        ops.random.seed(1)

    prepare()
    wanted = [draw() for _ in range(4)]
    assert wanted[0] != wanted[1]

    def check() -> None:
        found = [draw(), draw()]
        assert found in (wanted[:2], wanted[1:3])

    return Case(prepare, draw, check)


@cases_of(list(DRAWS))
def draw_from_a_generator(path: Path, patch: pytest.MonkeyPatch, distribution: str) -> Case:
    ops.set_backend("numpy")
    held: list[Any] = [ops.random.Generator(3)]

    def draw() -> list[float]:
        return ops.to_numpy(DRAWS[distribution](generator=held[0])).ravel().tolist()

    def prepare() -> None:
        held[0] = ops.random.Generator(3)

    wanted = [draw() for _ in range(4)]

    def check() -> None:
        found = [draw(), draw()]
        assert found in (wanted[:2], wanted[1:3])

    return Case(prepare, draw, check)


@case
def split_a_generator(path: Path, patch: pytest.MonkeyPatch) -> Case:
    held: list[Any] = []

    def prepare() -> None:
        held[:] = [ops.random.Generator(3)]

    prepare()
    wanted = [child.normal(2).tolist() for child in held[0].split(6)]

    def check() -> None:
        copy = pickle.loads(pickle.dumps(held[0]))
        found = [child.normal(2).tolist() for child in held[0].split(3)]
        assert found in (wanted[:3], wanted[3:])
        assert [child.normal(2).tolist() for child in copy.split(3)] == found

    return Case(prepare, lambda: held[0].split(3), check)


@case
def default_float(path: Path, patch: pytest.MonkeyPatch) -> Case:
    ops.set_backend(OTHER)

    def check() -> None:
        wanted = ops.default_float()
        assert ops.dtype(ops.zeros((2,))) == ops.dtype(ops.convert_to_tensor([1.0])) == wanted
        assert ops.dtype(ops.sin(ops.convert_to_tensor([1]))) == wanted

    return Case(lambda: ops.set_default_float("float32"), lambda: ops.set_default_float("float64"), check)


FILES = {
    "changed": (
        '# mine\nbackend = "numpy"  # here\n[t]\nx = 1\n',
        '# mine\nbackend = "mlx"  # here\n[t]\nx = 1\n',
        "mlx",
    ),
    "removed": ('backend = "numpy"\nlast = 1\n', "last = 1\n", None),
    "added": ("x = [\n1]\n", 'backend = "mlx"\nx = [\n1]\n', "mlx"),
    "new": (None, 'backend = "mlx"\n', "mlx"),
}


@cases_of(list(FILES))
def write_settings(path: Path, patch: pytest.MonkeyPatch, kind: str) -> Case:
    old, new, value = FILES[kind]
    file = path / "real" / "config.toml"
    file.parent.mkdir()
    link = path / "config.toml"
    link.symlink_to(file)
    patch.setenv("EMBERHARMONY_CONFIG", str(link))

    def prepare() -> None:
        file.unlink(missing_ok=True)
        if old is not None:
            file.write_text(old)
            file.chmod(0o600)

    def check() -> None:
        assert (file.read_text() if file.exists() else None) in (old, new)
        assert link.is_symlink()
        assert set(os.listdir(file.parent)) <= {"config.toml"}
        if old is not None:
            assert stat.S_IMODE(file.stat().st_mode) == 0o600

    return Case(prepare, lambda: settings.write("backend", value), check)


@case
def write_settings_over_a_file_that_is_not_toml(path: Path, patch: pytest.MonkeyPatch) -> Case:
    file, kept = path / "config.toml", path / "config.toml.bak"
    patch.setenv("EMBERHARMONY_CONFIG", str(file))

    def prepare() -> None:
        kept.unlink(missing_ok=True)
        file.write_text("what is this")

    def check() -> None:
        found = {each.name: each.read_text() for each in path.iterdir()}
        new = {"config.toml": 'backend = "mlx"\n', "config.toml.bak": "what is this"}
        assert found in ({"config.toml": "what is this"}, new)

    return Case(prepare, lambda: settings.write("backend", "mlx"), check)


@case
def write_a_file(path: Path, patch: pytest.MonkeyPatch) -> Case:
    file = path / "report.json"

    def check() -> None:
        assert file.read_text() in ("old", "new" * 1000)
        assert os.listdir(path) == ["report.json"]

    return Case(lambda: file.write_text("old"), lambda: replace_text(str(file), "new" * 1000), check)


def _checked() -> None:
    with checked():
        assert checking()


def _watched() -> None:
    drawing = draws.Draws()
    for _ in range(2):
        with drawing.repeated(), draws.WithoutDraws():
            pass


@cases_of(["checked", "watched"])
def other_blocks(path: Path, patch: pytest.MonkeyPatch, name: str) -> Case:
    def check() -> None:
        assert not checking()
        assert draws._WATCHERS.get() is None

    return Case(lambda: None, globals()[f"_{name}"], check)


@pytest.fixture
def interrupted(request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Case:
    return CASES[request.param](tmp_path, monkeypatch)


every_case = pytest.mark.parametrize("interrupted", list(CASES), indirect=True)


def _instructions(interrupted: Case, instants: Sequence[int]) -> None:
    for at in instants:
        interrupted.prepare()
        where, arrived = trace(interrupted.run, at)
        assert arrived or len(where) <= at, f"the interruption after {where[-1:]} did not arrive"
        try:
            interrupted.check()
        except AssertionError as error:
            raise AssertionError(f"interrupted after {where[-1:]}: {error}") from error


def _signals(interrupted: Case, count: int) -> None:
    interrupted.prepare()
    longest = 1.1 * duration(interrupted.run)
    arrived = 0
    with raising():
        for trial, delay in enumerate(delays(longest, 0)):
            interrupted.prepare()
            arrived += struck(interrupted.run, delay)
            interrupted.check()
            if arrived >= count or trial >= 20 * count:
                break
    assert arrived == count


def _moments(interrupted: Case) -> list[int]:
    interrupted.prepare()
    interrupted.run()
    interrupted.prepare()
    found = moments(interrupted.run)
    assert found
    return found


@every_case
def test_an_interruption_at_some_instructions_leaves_a_consistent_state(interrupted: Case) -> None:
    instants = _moments(interrupted)
    _instructions(interrupted, instants[:: -(-len(instants) // 25)])


@pytest.mark.slow
@every_case
def test_an_interruption_at_any_instruction_leaves_a_consistent_state(interrupted: Case) -> None:
    """Interrupts the first and the last execution of each instruction; loops only repeat those in between."""
    _instructions(interrupted, _moments(interrupted))


@pytest.mark.slow
@every_case
def test_an_interruption_at_a_thousand_random_instructions_leaves_a_consistent_state(interrupted: Case) -> None:
    interrupted.prepare()
    ran, _ = trace(interrupted.run)
    choose = random.Random(0)
    _instructions(interrupted, [choose.randrange(len(ran)) for _ in range(1000)])


@pytest.mark.slow
@every_case
def test_a_thousand_signals_leave_a_consistent_state(interrupted: Case) -> None:
    _signals(interrupted, 1000)
