"""Calls of ops, of array libraries, and of the standard library."""

from collections.abc import Callable

import pytest

Held = Callable[..., str]
START = """
import copy, functools, importlib, itertools, math, operator, random, time
from collections import Counter, defaultdict, deque, namedtuple
from typing import cast
import numpy as np
import torch
from emberharmony import ops
x = ops.ones(3)
"""


@pytest.mark.parametrize(
    "expression, expected",
    [
        ("ops.sin(1)", "A"),
        ("ops.split(x, 2)", "tensors"),
        ("ops.split(x, 2)[0]", "B"),
        ("ops.shape(x)", "container"),
        ("ops.ndim(x)", "number"),
        ("ops.get_backend()", "unknown"),
        ("ops.get_device(x)", "string"),
        ("ops.to_numpy(x)", "other"),
        ("ops.pi", "number"),
        ("ops.float32", "number"),
        ("ops.linalg.norm(x)", "A"),
        ("ops.random.normal((3,))", "A"),
        ("ops.grad(f)(x)", "B"),
        ("ops.value_and_grad(f)(x)[1]", "B"),
        ("ops.unheard_of(x)", "unknown"),
        ("np.zeros(3)", "A"),
        ("np.float32", "number"),
        ("np.random.normal()", "number"),
        ("np.random.normal(0, 1)", "number"),
        ("np.random.normal(0, 1, 3)", "A"),
        ("np.random.normal(x)", "A"),
        ("np.random.uniform(size=(2, 3))", "A"),
        ("np.random.randint(n)", "number"),
        ("np.array([1.0, 2.0])", "A"),
        ("np.array([1.0], dtype=object)", "other"),
        ("np.empty(3, dtype=np.object_)", "other"),
        ("np.empty(3, dtype='U8')", "other"),
        ("np.asarray(['a', 'b'])", "other"),
        ("np.exp(x).groupby('a')", "unknown"),
        ("ops.map(lambda row: row, x)", "B"),
        ("ops.scan(lambda a, b: (a, b), x, x)", "tensors"),
        ("torch.equal(x, x)", "number"),
        ("np.equal(x, x)", "A"),
        ("importlib.import_module('emberharmony.ops').ones(3)", "A"),
        ("math.sqrt(2)", "number"),
        ("time.time()", "number"),
        ("random.random()", "number"),
        ("random.choice([x])", "B"),
        ("copy.deepcopy(x)", "B"),
        ("cast('torch.Tensor', 1)", "A"),
        ("functools.partial(ops.add, 1)(2)", "A"),
        ("functools.reduce(ops.add, [x, x])", "A"),
        ("operator.add(x, 1)", "B"),
        ("operator.add(1, 2)", "unknown"),
        ("list(itertools.chain([x], [x]))[0]", "B"),
        ("list(itertools.accumulate([x]))[0]", "B"),
        ("[b for a, b in itertools.pairwise([x, x])][0]", "B"),
        ("[list(b)[0] for a, b in itertools.groupby([x])][0]", "B"),
        ("deque([x]).popleft()", "B"),
        ("Counter('abc')['a']", "number"),
        ("defaultdict(int)['a']", "number"),
        ("namedtuple('P', 'a b')(x, 1).a", "B"),
        ("namedtuple('P', ['a', 'b'])(x, 1).b", "number"),
    ],
)
def test_the_kind_of_a_library_call(held: Held, expression: str, expected: str) -> None:
    assert held(START + expression) == expected


@pytest.mark.parametrize(
    "body, expected",
    [
        ("ops.exp(y)\n    y", "C"),
        ("ops.exp(-y + 1)\n    y", "C"),
        ("ops.exp(y * -2.0)\n    y", "C"),
        ("ops.exp(y - z)\n    y", "unknown"),  # one of the two is a tensor, but it is unknown which
        ("np.exp(y)\n    y", "unknown"),  # native functions accept numbers too
        ("ops.exp(n)\n    n", "unknown"),  # the name n is a number by convention
        ("math.sqrt(y)\n    ops.exp(y)\n    y", "unknown"),
        ("ops.exp(y)\n    range(y)\n    y", "unknown"),
        ("ops.exp(y)\n    y.split(',')\n    y.strip()", "unknown"),
        ("ops.reshape(y, (3,))\n    y", "unknown"),
    ],
)
def test_an_argument_of_an_op_is_a_tensor_by_convention(held: Held, body: str, expected: str) -> None:
    assert held(f"{START}def f(y, z, n):\n    {body}") == expected


def test_only_the_combination_of_two_unknown_names_may_be_a_tensor(held: Held) -> None:
    for call in ("ops.exp(y - z)", "ops.sum(y * y)"):
        found = held(f"{START}def f(y, z):\n    w = {call}\n    return w\nf")
        assert found == "other"
    assert held(f"{START}def f(y, z):\n    return ops.exp((w := y - z))\n    w") in ("unknown", "C")


def test_the_settings_give_the_kind_of_a_function(held: Held) -> None:
    source = "import house\nhouse.load('a')"
    assert held(source, functions={"house.load": "tensor"}) == "A"
    assert held(source, functions={"house.load": "number"}) == "number"


def test_the_settings_add_a_namespace_of_ops(held: Held) -> None:
    assert held("from house import ops\nops.sin(1)", namespaces=("house.ops",)) == "A"
    assert held("from house import ops\nops.sin(1)") == "unknown"
