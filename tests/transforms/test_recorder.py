"""Programs of ops are recorded on one backend and run on any."""

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from emberharmony import ops
from emberharmony.core import selection
from emberharmony.optim import elementwise
from emberharmony.optim.stepping import Updates
from emberharmony.transforms.program import Program, Register
from emberharmony.transforms.recorder import Recorder, record_rule
from emberharmony.transforms.source import write_function

FUNCTIONS: dict[str, Callable[..., Any]] = {
    "arithmetic": lambda x, y: ops.multiply(ops.add(x, 2.0), ops.tanh(y)),
    "keywords": lambda x, y: ops.sum(ops.softmax(ops.matmul(x, ops.transpose(y)), axis=-1), axis=0, keepdims=True),
    "lists": lambda x, y: ops.concatenate([x, ops.stack([y[0], y[1]])], axis=1),
    "one of several results": lambda x, y: ops.split(ops.add(x, y), 1, axis=0)[0],
    "several results": lambda x, y: ops.subtract(*ops.split(ops.concatenate([x, y], axis=0), 2, axis=0)),
    "gradient": lambda x, y: ops.grad(lambda x: ops.sum(ops.square(ops.sin(ops.multiply(x, y)))))(x),
}


def program(function: Callable[..., Any], *tensors: Any) -> tuple[Program, Any]:
    """Returns the program of a function of tensors with one result, and that result."""
    recorder = Recorder(selection.current(), [ops.copy(x) for x in tensors])
    found = function(*map(recorder.tensor, range(len(tensors))))
    return recorder.program(len(tensors), [found.key])[0], found.value


@pytest.mark.parametrize("name", FUNCTIONS)
def test_a_program_of_ops_runs_on_each_backend(name: str, backend: str) -> None:
    given = [np.random.default_rng(i).standard_normal((2, 3)).astype(np.float32) for i in range(2)]
    function = FUNCTIONS[name]
    with ops.use_backend("numpy"):
        recorded, result = program(function, *given)
        assert all(isinstance(call.function, str) for call in recorded.calls)
    run = write_function(recorded, lambda op: getattr(ops, op))
    for tensors in (given, [-x for x in given]):
        (found,) = run(list(map(ops.convert_to_tensor, tensors)))
        with ops.use_backend("numpy"):
            wanted = function(*tensors)
        np.testing.assert_allclose(ops.to_numpy(found), wanted, rtol=2e-6, atol=1e-6)
    with ops.use_backend("numpy"):
        assert np.array_equal(result, function(*given))


def test_the_compiler_of_a_backend_takes_a_program_that_another_one_recorded(quick: str) -> None:
    given = [np.random.default_rng(i).standard_normal((2, 3)).astype(np.float32) for i in range(2)]
    function = FUNCTIONS["gradient"]
    with ops.use_backend("numpy"):
        recorded, wanted = program(function, *given)
    run = write_function(recorded, lambda op: getattr(ops, op))
    compiled = ops.compile(lambda *tensors: run(tensors)[0])
    tensors = list(map(ops.convert_to_tensor, given))
    for _ in range(3):
        np.testing.assert_allclose(ops.to_numpy(compiled(*tensors)), wanted, rtol=2e-6, atol=1e-6)


def test_equal_calls_are_made_once_and_dead_ones_not_at_all(backend: str) -> None:
    def function(x: Any) -> Any:
        ops.exp(x)
        return ops.add(ops.multiply(ops.sin(x), 2.0), ops.multiply(ops.sin(x), 2.0))

    found, result = program(function, ops.asarray([1.0, 2.0]))
    assert [call.function for call in found.calls] == ["sin", "multiply", "add"]
    (last,) = found.outputs
    assert last.__class__ is Register
    assert ops.to_numpy(result).tolist() == ops.to_numpy(function(ops.asarray([1.0, 2.0]))).tolist()


RULES: dict[str, tuple[Callable[..., Any], bool]] = {
    "a choice by an option": (lambda g, p, s, h: (ops.where(h["flag"], ops.add(g, p), p), {}), True),
    "a choice by a number": (lambda g, p, s, h: (ops.where(ops.less(1, s["step"]), g, p), {}), True),
    "a choice by a tensor": (lambda g, p, s, h: (ops.where(ops.greater(g, p), g, p), {}), False),
    "a choice of a number": (lambda g, p, s, h: (ops.where(ops.less(1, s["step"]), g, 0.0), {}), False),
    "a number before a tensor": (lambda g, p, s, h: (ops.subtract(1.0, p), {}), False),
    "a number of the state": (lambda g, p, s, h: (p, {"step": ops.add(s["step"], 1)}), True),
    "a text in the state": (lambda g, p, s, h: (p, {"step": "one"}), False),
    "a number as the parameter": (lambda g, p, s, h: (1.0, {}), False),
    "a sum of a text": (lambda g, p, s, h: (p, {"step": ops.add(s["step"], h["text"])}), False),
    "a reduction": (lambda g, p, s, h: (ops.sum(p), {}), False),
    "an op of numbers": (lambda g, p, s, h: (ops.multiply(p, ops.gamma(s["step"])), {}), False),
    "a branch on a number": (lambda g, p, s, h: (ops.add(p, g) if s["step"] > 1 else p, {}), True),
}


@pytest.mark.parametrize("name", RULES)
def test_a_rule_has_a_program_if_it_works_element_by_element(name: str, backend: str) -> None:
    rule, has_program = RULES[name]
    options = {"lr": 0.5, "flag": True, "text": "a"}
    found = record_rule(rule, {"step": 2.0}, options)
    assert (found is not None) == has_program
    if found is not None:
        update = Updates(elementwise(rule)).update_for({"step": 2.0}, options)
        assert update is not None
        tensors = [ops.convert_to_tensor([0.25, 2.0]), ops.convert_to_tensor([1.0, -3.0])]
        wanted, state = rule(*tensors, {"step": 2.0}, options)
        made = selection.active().backend.run_update(update, [[x] for x in tensors])
        if made is not None:
            assert ops.to_numpy(made[0][0]).tolist() == ops.to_numpy(wanted).tolist()
        assert {key: update.after[key] for key in state} == state
