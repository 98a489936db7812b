"""Compiled training steps, and what a compiled function takes and returns."""

import gc
import importlib
import math
import subprocess
import sys
import threading
from typing import Any

import numpy as np
import pytest

from emberharmony import Parameter, nn, ops, optim
from emberharmony.core import selection
from tests.ops.trees import lists

NOT_COMPILED = pytest.mark.ember_skip("dask", reason="compile returns the function: docs/dask.md")


class Compilations:
    """Counts how often a function is compiled: it calls the object, which Python does not run again at run time."""

    def __init__(self, backend: str) -> None:
        self.found: Any = {"unique_graphs": 0}
        if backend == "torch":
            self.found = importlib.import_module("torch")._dynamo.utils.counters["stats"]
        self.torch, self.before = backend == "torch", self.found["unique_graphs"]

    def __call__(self) -> None:
        if not self.torch:
            self.found["unique_graphs"] += 1

    @property
    def count(self) -> int:
        return int(self.found["unique_graphs"]) - self.before


def merged(model: Any) -> tuple[Any, Any]:
    structure, weights = nn.split(model)[:2]
    return weights, lambda weights, x: nn.merge(structure, weights, {})(x)


def called(model: Any) -> tuple[Any, Any]:
    return nn.split(model)[1], lambda weights, x: nn.functional_call(model, weights, x)


@NOT_COMPILED
@pytest.mark.filterwarnings("ignore:.*script_method.*:DeprecationWarning")
@pytest.mark.parametrize("kind", [merged, called])
def test_a_training_step_is_compiled_once_for_each_shape(kind: Any, quick: str) -> None:
    # While an override of an earlier test is alive, a function that PyTorch compiles in parts breaks at each op.
    gc.collect()
    selection.unguard()
    model = nn.Sequential(nn.Linear(3, 4), nn.LayerNorm(4), nn.GELU(), nn.Linear(4, 2))
    (weights, predict), adam, compilations = kind(model), optim.AdamW(lr=0.1), Compilations(quick)

    def step(weights: Any, state: Any, x: Any) -> Any:
        compilations()
        loss, gradients = ops.value_and_grad(lambda each: ops.mean(ops.square(predict(each, x))))(weights)
        return loss, *adam.update(gradients, state, weights)

    compiled = ops.compile(step)
    results = []
    for function in (step, compiled):
        held, compilations = [weights, adam.init(weights)], Compilations(quick)
        for batch in (2, 2, 2, 3, 3, 2):
            loss, *held[:] = function(*held, ops.ones((batch, 3)))
        results.append((loss, *held))
    assert compilations.count >= 1
    # PyTorch may compile once for both, where it has seen another length of this axis. It compiles `called` in parts,
    # as many as it has ops if an earlier test has left an override alive.
    assert compilations.count <= 2 or (quick == "torch" and kind is called and selection.is_overridden())
    for got, wanted in zip(*map(ops.tree_leaves, results), strict=True):
        np.testing.assert_allclose(ops.to_numpy(got), ops.to_numpy(wanted), rtol=1e-3, atol=1e-4)


@NOT_COMPILED
def test_a_module_may_be_an_argument_and_is_compiled_once(quick: str) -> None:
    model, compilations = nn.Linear(3, 2), Compilations(quick)

    def predict(model: Any, x: Any) -> Any:
        compilations()
        return ops.value_and_grad(lambda model: ops.sum(ops.square(model(x))))(model)

    compiled = ops.compile(predict)
    found = [compiled(model, ops.ones(3)) for _ in range(3)]
    assert compilations.count == 1
    model.weight.value = ops.multiply(model.weight.value, 2.0)
    results = compiled(model, ops.ones(3)), predict(model, ops.ones(3))
    for got, wanted in zip(*map(ops.tree_leaves, results), strict=True):
        np.testing.assert_allclose(ops.to_numpy(got), ops.to_numpy(wanted), rtol=1e-5)
    assert lists(found[0][0]) == lists(found[2][0])


def test_a_compiled_function_may_return_a_new_parameter(quick: str) -> None:
    compiled = ops.compile(lambda x: Parameter(ops.multiply(x, 2.0)))
    assert [lists(compiled(ops.array([number])).value) for number in (1.0, 2.0, 3.0)] == [[2.0], [4.0], [6.0]]


def test_zeros_of_both_signs_are_different_numbers(quick: str) -> None:
    if quick == "torch":
        pytest.skip("PyTorch 2.13 takes 0.0 and -0.0 for one number")
    compiled = ops.compile(lambda x, number: ops.copysign(x, number))
    for number in (0.0, -0.0, 0.0):
        assert lists(compiled(ops.array([2.0]), number)) == [math.copysign(2.0, number)]


def test_names_of_dtypes_are_constants_of_a_compiled_function(quick: str) -> None:
    compiled = ops.compile(lambda x: (ops.dtype(x).name, ops.dtype(x) == "float32", str(ops.dtype(x))))
    assert compiled(ops.ones(2)) == ("float32", True, "float32")


def test_numbers_and_ranges_have_their_dtypes_in_a_compiled_function(quick: str) -> None:
    numbers = (True, 2, 2.5, 2j, [1, 2j], [1, 2.5], [1, 2])

    def made(x: Any) -> list[Any]:
        return [ops.convert_to_tensor(number) for number in numbers]

    found = [ops.dtype(x).name for x in ops.compile(made)(ops.ones(1))]
    assert found == ["bool", "int64", "float32", "complex64", "complex64", "float32", "int64"]
    given = [(number, name) for number in (2, 0.1, [1, 2.3]) for name in ("float64", "float16", "int32", "bfloat16")]
    found = ops.compile(lambda x: [ops.convert_to_tensor(number, name) for number, name in given])(ops.ones(1))
    wanted = [ops.convert_to_tensor(number, name) for number, name in given]
    assert [(ops.dtype(x), x.tolist()) for x in found] == [(ops.dtype(x), x.tolist()) for x in wanted]
    ranges = ops.compile(lambda x: [ops.arange(2), ops.arange(1, 3), ops.arange(4, step=3)])(ops.ones(1))
    assert lists(ranges) == [[0, 1], [1, 2], [0, 3]]
    assert [ops.dtype(x).name for x in ranges] == ["int64"] * 3


def test_other_threads_may_call_a_compiled_function(quick: str) -> None:
    compiled, found = ops.compile(lambda x: ops.multiply(x, 2.0)), []
    compiled(ops.ones(2))
    thread = threading.Thread(target=lambda: found.append(lists(compiled(ops.ones(2)))))
    thread.start()
    thread.join()
    assert found == [[2.0, 2.0]]


@pytest.mark.slow
@pytest.mark.fresh_process
def test_the_default_compiler_of_the_library_gives_the_same_results(backend: str) -> None:
    program = f"""
from emberharmony import ops
ops.set_backend({backend!r})
step = ops.compile(ops.value_and_grad(lambda w, x: ops.mean(ops.square(ops.tanh(ops.matmul(x, w))))))
plain = ops.value_and_grad(lambda w, x: ops.mean(ops.square(ops.tanh(ops.matmul(x, w)))))
w, x = ops.ones((3, 2)), ops.ones((4, 3))
for (value, gradient), (wanted, expected) in [(step(w, x), plain(w, x))]:
    print(bool(ops.allclose(value, wanted)), bool(ops.allclose(gradient, expected)))
"""
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert done.stdout == "True True\n"


def test_a_value_that_is_read_in_a_compiled_function_warns_of_nothing(
    quick: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    if quick == "torch":  # which warns once in a process
        monkeypatch.setattr(importlib.import_module("torch._dynamo.utils"), "warn_once_cache", set())
    compiled = ops.compile(lambda x: ops.sin(x) if ops.to_numpy(ops.sum(x)) > 3 else ops.cos(x))
    for x in (ops.ones(4), ops.zeros(4)):
        assert lists(compiled(x)) == lists((ops.sin if lists(x)[0] else ops.cos)(x))
