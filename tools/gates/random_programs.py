"""The gate `programs`: what `ops.compile` makes of random functions of tensors, at the first call and when it repeats.

A function is a random chain of ops over a few tensors of shapes that broadcast, some with a gradient, a draw of random
numbers, a cell that it reads, or one that it assigns.
"""

from collections.abc import Callable
from typing import Any

import numpy as np

from emberharmony import Buffer, ops
from gates.probe import Outcome
from gates.record import stable_text
from gates.steps import outcome_of

SHAPES = [(3, 4), (4,), (3, 1), (), (1, 4), (3, 4)]
LARGE = [(150, 400), (400,), (150, 1), (), (1, 400), (150, 400)]
ALONE: dict[str, Callable[[Any], Any]] = {
    **{
        name: getattr(ops, name)
        for name in ("sin", "exp", "tanh", "square", "negative", "absolute", "sigmoid", "relu", "gelu", "sign")
    },
    "sqrt": lambda x: ops.sqrt(ops.add(ops.square(x), 0.5)),
    "log": lambda x: ops.log(ops.add(ops.absolute(x), 1.0)),
    "softmax": lambda x: ops.softmax(ops.atleast_1d(x), axis=-1),
    "logsumexp": lambda x: ops.logsumexp(x),
    "mean": lambda x: ops.mean(x, axis=-1, keepdims=True) if len(x.shape) else x,
    "sum": lambda x: ops.sum(x),
    "max": lambda x: ops.max(x, axis=0, keepdims=True) if len(x.shape) else x,
    "transposed twice": lambda x: ops.transpose(ops.multiply(ops.transpose(x), 2.0)),
    "reshape": lambda x: ops.reshape(ops.add(ops.reshape(x, (-1,)), 1.0), tuple(x.shape)),
    "reversed": lambda x: ops.flip(x),
    "first": lambda x: x[:1] if len(x.shape) else x,
    "cast": lambda x: ops.cast(ops.cast(x, "float64"), "float32"),
    "stop": ops.stop_gradient,
    "square of self": lambda x: ops.multiply(x, x),
    "standardized": lambda x: ops.divide(ops.subtract(x, ops.mean(x)), ops.add(ops.std(x), 1.0)),
}
TOGETHER: dict[str, Callable[[Any, Any], Any]] = {
    **{name: getattr(ops, name) for name in ("add", "subtract", "multiply", "maximum", "minimum")},
    "divide": lambda x, y: ops.divide(x, ops.add(ops.absolute(y), 1.0)),
    "where": lambda x, y: ops.where(ops.greater(x, y), x, ops.negative(y)),
    "outer": lambda x, y: ops.multiply(ops.sum(x), y),
    "matmul": lambda x, y: ops.matmul(ops.reshape(x, (1, -1)), ops.reshape(x, (-1, 1))) + y,
}
NUMBERS = (0.5, 2, -1.0, 3.0)
KINDS = ("plain", "gradient", "several", "drawn", "cells")


def outcomes_of(seed: int) -> dict[str, Outcome]:
    """Returns what three calls of a compiled random function give, and what the function itself gives."""
    rng = np.random.default_rng(seed)
    shapes = LARGE if seed % 7 == 0 else SHAPES
    kind = KINDS[seed % len(KINDS)]
    argument_lists = [[_random_tensor(rng, shape) for shape in shapes[: 2 + seed % 4]] for _ in range(2)]
    initial_value = _random_tensor(rng, shapes[1])
    cell = Buffer(initial_value)
    function = _function_of_kind(kind, _random_chain(rng, 2 + seed % 4), cell)
    compiled_function = ops.compile(function)
    outcomes = {}
    for name, call, tensors in (
        ("first", compiled_function, argument_lists[0]),
        ("again", compiled_function, argument_lists[0]),
        ("others", compiled_function, argument_lists[1]),
        ("uncompiled", function, argument_lists[1]),
    ):
        ops.random_seed(seed)
        cell.value = initial_value
        try:
            outcomes[f"{kind}, {name}"] = outcome_of((call(*tensors), cell.value))
        except Exception as error:  # noqa: BLE001  (the gate records every error)
            outcomes[f"{kind}, {name}"] = ["error", type(error).__name__, stable_text(error)[:300]]
    return outcomes


def _random_tensor(rng: np.random.Generator, shape: tuple[int, ...]) -> Any:
    return ops.convert_to_tensor(np.asarray(rng.standard_normal(shape), "float32"))


def _random_chain(rng: np.random.Generator, inputs: int) -> Callable[..., list[Any]]:
    """Returns a function that calls random ops on its arguments and on their results; it returns the last ones."""
    chain_steps: list[tuple[Callable[..., Any], tuple[int, ...], float | None]] = []
    unary_functions, binary_functions = list(ALONE.values()), list(TOGETHER.values())
    for count in range(inputs, inputs + int(rng.integers(3, 16))):
        latest_place = int(rng.integers(max(0, count - 4), count))
        if rng.random() < 0.4:
            chain_steps.append((unary_functions[rng.integers(len(unary_functions))], (latest_place,), None))
        elif rng.random() < 0.3:
            chain_steps.append(
                (binary_functions[rng.integers(5)], (latest_place,), NUMBERS[rng.integers(len(NUMBERS))])
            )
        else:
            chain_steps.append(
                (binary_functions[rng.integers(len(binary_functions))], (latest_place, int(rng.integers(count))), None)
            )

    def run_chain(*tensors: Any) -> list[Any]:
        chain_values = list(tensors)
        for function, places, number in chain_steps:
            operands = [chain_values[place] for place in places]
            chain_values.append(function(*operands) if number is None else function(*operands, number))
        return chain_values[-2:]

    return run_chain


def _function_of_kind(kind: str, chain: Callable[..., list[Any]], cell: Buffer) -> Callable[..., Any]:
    def loss(*tensors: Any) -> Any:
        return ops.sum(ops.stack([ops.mean(x) for x in chain(*tensors)]))

    def call_with_cell(*tensors: Any) -> Any:
        chain_results = chain(ops.add(tensors[0], ops.mean(cell.value)), *tensors[1:])
        cell.value = ops.multiply(cell.value, 0.5)
        return chain_results

    function_by_kind: dict[str, Callable[..., Any]] = {
        "plain": chain,
        "gradient": lambda *tensors: ops.value_and_grad(loss, tuple(range(len(tensors))))(*tensors),
        "several": lambda *tensors: {"a": chain(*tensors), "b": (tensors[0], chain(*tensors)[-1])},
        "drawn": lambda *tensors: chain(ops.add(tensors[0], ops.random_normal((1,))), *tensors[1:]),
        "cells": call_with_cell,
    }
    return function_by_kind[kind]
