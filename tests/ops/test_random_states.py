"""The states of the streams of random numbers: they continue in this process, in others and in forked children."""

import ast
import json
import os
import subprocess
import sys
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from emberharmony import ops
from emberharmony.backend import create_backend
from emberharmony.backend.discovery import BUILTIN, is_installed
from emberharmony.core.errors import (
    ArgumentError,
    ArgumentTypeError,
    BackendMismatchError,
    DeviceError,
    UnsupportedOpError,
)

INSTALLED = [name for name in BUILTIN if is_installed(name)]


KINDS_OF_DRAWS = {
    "normal": lambda: ops.random.normal((3,)),
    "uniform": lambda: ops.random.uniform((3,)),
    "normal64": lambda: ops.random.normal((1,), dtype="float64"),
    "uniform64": lambda: ops.random.uniform((2,), dtype="float64"),
    "half": lambda: ops.random.normal((3,), dtype="float16"),
    "many": lambda: ops.random.normal((1000,)),
    "one": lambda: ops.random.uniform((1,)),
    "truncated": lambda: ops.random.truncated_normal((5,)),
    "gamma": lambda: ops.random.gamma((3,), 2.0),
    "poisson": lambda: ops.random.poisson((3,), 4.0),
    "randint": lambda: ops.random.randint((3,), 0, 2**40),
    "bernoulli": lambda: ops.random.bernoulli((5,), 0.5),
    "categorical": lambda: ops.random.categorical(ops.zeros((2, 3)), 5),
    "permutation": lambda: ops.random.permutation(6),
    "choice": lambda: ops.random.choice(9, (3,), replace=False),
    "dropout": lambda: ops.dropout(ops.ones((7,)), 0.5),
}


def run_draws(names: Any) -> list[Any]:
    return [ops.to_numpy(KINDS_OF_DRAWS[name]()).tolist() for name in names]


@given(st.lists(st.sampled_from(sorted(KINDS_OF_DRAWS)), max_size=5), st.booleans())
def test_the_default_streams_continue_from_a_state(before: list[str], seeded: bool) -> None:
    for name in INSTALLED:
        with ops.use_backend(name):
            if seeded:
                ops.random.seed(5)
            run_draws(before)
            state = json.dumps(ops.random.get_state())
            assert len(state) < 6000
            wanted = run_draws(KINDS_OF_DRAWS)
            for _ in range(2):
                ops.random.set_state(json.loads(state))
                assert json.dumps(ops.random.get_state()) == state
                assert run_draws(KINDS_OF_DRAWS) == wanted
            ops.random.seed(8)
            ops.random.set_state(json.loads(state))
            assert run_draws(KINDS_OF_DRAWS) == wanted


@pytest.mark.fresh_process
def test_a_state_is_continued_by_another_process(backend: str) -> None:
    program = f"""
import json, sys
from emberharmony import ops
ops.set_backend({backend!r})
text = sys.stdin.read()
print(ops.to_numpy(ops.random.normal((3,))).tolist())
if text:
    ops.random.set_state(json.loads(text))
else:
    ops.random.gamma((1,), 2.0)
print(json.dumps(ops.random.get_state()))
print([ops.to_numpy(ops.random.normal((3,))).tolist(), ops.to_numpy(ops.random.gamma((3,), 2.0)).tolist()])
"""

    def run(text: str) -> list[str]:
        command = [sys.executable, "-W", "ignore", "-c", program]
        done = subprocess.run(command, input=text, capture_output=True, text=True, check=True, timeout=120)
        return done.stdout.splitlines()

    drawn, *first = run("")
    others, *continued = run(first[0])
    assert continued == first
    assert others != drawn


@pytest.mark.skipif(len(INSTALLED) < 2, reason="needs two backends")
def test_a_state_belongs_to_one_backend() -> None:
    ops.random.seed(3)
    states = {}
    for name in INSTALLED:
        with ops.use_backend(name):
            states[name] = ops.random.get_state()
            other = run_draws(["normal"])
    for name in INSTALLED:
        with ops.use_backend(name):
            for theirs in set(INSTALLED) - {name}:
                with pytest.raises(BackendMismatchError, match=f"is that of backend '{theirs}', but .* is '{name}'"):
                    ops.random.set_state(states[theirs])
            ops.random.set_state(states[name])
    with ops.use_backend(INSTALLED[-1]):
        assert run_draws(["normal"]) == other
    with ops.use_backend(INSTALLED[0]):
        ops.random.set_state(states[INSTALLED[0]])
    with ops.use_backend(INSTALLED[-1]):
        assert run_draws(["normal"]) != other, "the streams of other backends go on"


def test_a_damaged_state_of_the_streams_changes_nothing(backend: str) -> None:
    ops.random.seed(3)
    run_draws(["normal", "gamma"])
    before = ops.random.get_state()
    wrong: list[dict[str, Any]] = [{**before, name: value} for name in before for value in (None, 7, {}, [])]
    wrong += [{key: value for key, value in before.items() if key != name} for name in before if name != "drawn"]
    for outer in ("seed", "host", "native"):
        for name in before[outer]:
            wrong += [{**before, outer: {**before[outer], name: value}} for value in ([-1], -1, "x", 1.5)]
    for state in wrong:
        with pytest.raises(ArgumentError, match=r"random_set_state\(\) on backend .* (is damaged|has version)"):
            ops.random.set_state(state)
    for nothing in (None, "", []):
        with pytest.raises(ArgumentTypeError, match=r"random_set_state\(\) .* is a dict, not"):
            ops.random.set_state(nothing)
    assert ops.random.get_state() == before


def test_torch_keeps_a_stream_for_each_device() -> None:
    pytest.importorskip("torch")
    with ops.use_backend("torch"):
        ops.random.seed(3)
        fresh = ops.random.get_state()
        assert fresh["native"]["devices"] == {}
        first = run_draws(["normal"])
        state = ops.random.get_state()
        ops.random.set_state(fresh)
        assert run_draws(["normal"]) == first
        text = state["native"]["devices"]["cpu"]
        cases = [("cuda:99", text, DeviceError), ("nowhere", text, DeviceError), ("cpu", text[:-8], ArgumentError)]
        for device, given_text, error in [*cases, ("cpu", "eJwDAAAAAAE=", ArgumentError)]:
            native = {**state["native"], "devices": {device: given_text}}
            with pytest.raises(
                error, match=r"random_set_state\(\) on backend 'torch': the state of the default streams"
            ):
                ops.random.set_state({**state, "native": native})


def test_streams_are_not_changed_without_values(backend: str) -> None:
    ops.random.normal((2,))  # on PyTorch the stream of a device begins with the first draw
    state = ops.random.get_state()

    def restart() -> Any:
        ops.random.normal((2,))
        ops.random.set_state(ops.random.get_state())
        return ops.zeros(2)

    assert ops.eval_shape(restart).shape == (2,)
    assert ops.random.get_state() == state


FORKED_STATE = """
import json, os, sys
from emberharmony import ops
ops.set_backend(sys.argv[1])
ops.random.seed(3)
if os.fork() == 0:
    os._exit(0)
os.wait()
state = json.loads(json.dumps(ops.random.get_state()))

def drawn():
    return [ops.to_numpy(ops.random.normal((2,))).tolist(), ops.to_numpy(ops.random.gamma((2,), 2.0)).tolist()]

def child():
    reading, writing = os.pipe()
    process = os.fork()
    if process == 0:
        os.write(writing, repr(drawn()).encode())
        os._exit(0)
    os.close(writing)
    with os.fdopen(reading, "rb") as stream:
        found = eval(stream.read())
    os.waitpid(process, 0)
    return found

rounds = []
for seed in (3, 4):
    rounds.append([child(), child(), drawn()])
    ops.random.seed(seed)
    ops.random.set_state(state)
print(rounds)
"""


@pytest.mark.skipif(not hasattr(os, "fork"), reason="the system has no fork")
@pytest.mark.fresh_process
@pytest.mark.parametrize("name", ["numpy", "torch"])
def test_children_of_a_restored_process_draw_the_same(name: str) -> None:
    if name not in INSTALLED:
        pytest.skip(f"{name} is not installed")
    command = [sys.executable, "-W", "ignore", "-c", FORKED_STATE, name]
    done = subprocess.run(command, capture_output=True, text=True, check=True, timeout=120)
    first, second = ast.literal_eval(done.stdout)
    assert first == second
    assert len({str(draws) for draws in first}) == 3


def test_a_generator_continues_on_every_backend() -> None:
    generator, draws = ops.random.Generator(3), []
    ops.random.gamma((3,), 2.0, generator=generator)
    state = json.loads(json.dumps(generator.state_dict()))
    for name in INSTALLED:
        with ops.use_backend(name):
            copy = ops.random.Generator()
            copy.load_state_dict(state)
            shapes = ((3,), (2, 2))
            draws.append([ops.to_numpy(ops.random.normal(shape, generator=copy)).tolist() for shape in shapes])
            draws[-1].append(ops.to_numpy(ops.random.randint((3,), 0, 9, generator=copy.split(2)[1])).tolist())
    assert all(each == draws[0] for each in draws)


def test_a_backend_that_cannot_save_its_streams_says_so() -> None:
    backend = create_backend("numpy")
    for call in (backend.composed("random_get_state"), lambda: backend.composed("random_set_state")({})):
        with pytest.raises(UnsupportedOpError, match="cannot save its default streams; draw from a Generator"):
            call()
