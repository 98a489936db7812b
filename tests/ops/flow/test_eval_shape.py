"""`ops.eval_shape`: shapes and dtypes without values, for functions whose shapes do not depend on values."""

import os
import subprocess
import sys
import tracemalloc
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pytest

from emberharmony import Parameter, TensorSpec, ops
from emberharmony.errors import (
    ArgumentTypeError,
    DTypeError,
    EmberError,
    ShapeError,
    TracedTensorError,
    UnsupportedOpError,
)

PLUGIN = Path(__file__).parents[2] / "plugin"
HUGE = TensorSpec((2**20, 2**20))
IMAGE = TensorSpec((1, 2**18, 2**18, 3))
LONG = TensorSpec(2**40)
INDICES = TensorSpec(2**30, "int64")


def with_momentum(state: Any, batch: Any) -> Any:
    """Returns the state after a step of training, and the loss."""
    weights, speed = state["weights"], state["speed"]

    def loss(weights: Any) -> Any:
        return ops.mean(ops.square(ops.tanh(batch @ weights)))

    value, slope = ops.value_and_grad(loss)(weights)
    speed = 0.9 * speed - 0.1 * slope
    return {"weights": weights + speed, "speed": speed}, value


PROGRAMS: dict[str, tuple[Callable[..., Any], tuple[Any, ...], Any]] = {
    "elementwise": (lambda x: -x * 2.0 + x[0] > 1, (HUGE,), TensorSpec(HUGE.shape, "bool")),
    "products": (lambda x: ops.einsum("ij,kj->ik", x, x @ x.T), (HUGE,), HUGE),
    "reductions": (lambda x: x.sum(axis=0) + ops.logsumexp(x, 0) + ops.std(x, 1), (HUGE,), TensorSpec(2**20)),
    "sorting": (lambda x: ops.top_k(ops.sort(x, 0), 5)[1], (HUGE,), TensorSpec((2**20, 5), "int64")),
    "indices": (lambda x, i: x[::2, i][..., None], (HUGE, INDICES), TensorSpec((2**19, 2**30, 1))),
    "writing": (lambda x: ops.set_item(x, (slice(0, None, 2), slice(None)), 1.0), (HUGE,), HUGE),
    "scattering": (lambda x, i: ops.scatter_update(x, i[:, None], ops.zeros(2**30)), (LONG, INDICES), LONG),
    "creation": (lambda: ops.arange(2**40) * ops.ones((3, 1), "int8"), (), TensorSpec((3, 2**40), "int64")),
    "spectrum": (lambda x: ops.rfft(x) * ops.rfftfreq(2**40), (LONG,), TensorSpec(2**39 + 1, "complex64")),
    "spectrogram": (lambda x: ops.stft(x, 256, 128, 256), (LONG,), TensorSpec((2**33 + 1, 129), "complex64")),
    "convolution": (
        lambda x, k: ops.max_pool(ops.conv(x, k, padding="same"), 2),
        (IMAGE, TensorSpec((3, 3, 3, 64))),
        TensorSpec((1, 2**17, 2**17, 64)),
    ),
    "decomposition": (lambda x: ops.svd(x, full_matrices=False).S, (HUGE,), TensorSpec(2**20)),
    "random": (
        lambda x: x + ops.random.gamma((2**40,), 2.0, seed=0) * ops.random.normal((2**40,)),
        (LONG,),
        LONG,
    ),
    "attention": (ops.dot_product_attention, (TensorSpec((1, 2**30, 4, 8)),) * 3, TensorSpec((1, 2**30, 4, 8))),
    "training": (
        with_momentum,
        ({"weights": TensorSpec((2**20, 8)), "speed": TensorSpec((2**20, 8))}, HUGE),
        ({"weights": TensorSpec((2**20, 8)), "speed": TensorSpec((2**20, 8))}, TensorSpec(())),
    ),
    "hessian": (ops.hessian(lambda x: ops.sum(ops.sin(x))), (TensorSpec(2**20),), HUGE),
    "tangents": (lambda x: ops.jvp(ops.exp, (x,), (x,))[1], (HUGE,), HUGE),
    "slices": (lambda x: ops.vmap(ops.sum)(x), (HUGE,), TensorSpec(2**20)),
    "scan": (
        lambda x: ops.scan(lambda total, row: (total + row, total[0]), ops.zeros(2**20), x),
        (HUGE,),
        (TensorSpec(2**20), TensorSpec(2**20)),
    ),
}


@pytest.mark.parametrize("name", PROGRAMS)
def test_no_memory_is_needed_for_a_trillion_elements(name: str, backend: str) -> None:
    function, specs, wanted = PROGRAMS[name]
    ops.eval_shape(function, *specs)  # imports what the function needs
    tracemalloc.start()
    try:
        assert ops.eval_shape(function, *specs) == wanted
        assert tracemalloc.get_traced_memory()[1] < 2e6
    finally:
        tracemalloc.stop()


class Pair(NamedTuple):
    first: Any
    second: Any


def test_without_an_axis_indices_are_taken_from_the_flattened_tensor(backend: str) -> None:
    x, indices = TensorSpec((2, 3), "float32"), ops.array([5, 0, 1, 2])
    assert ops.eval_shape(lambda x: ops.take_along_axis(x, indices, None), x).shape == (4,)


def test_arguments_and_results_are_trees(backend: str) -> None:
    def f(pair: Pair, options: dict[str, Any]) -> Any:
        return {"sum": pair.first + pair.second, "rows": [ops.reshape(pair.first, (options["rows"], -1))], "none": None}

    found = ops.eval_shape(f, Pair(TensorSpec(6), np.ones(6, "float64")), {"rows": 3})
    assert found == {"sum": TensorSpec(6, "float64"), "rows": [TensorSpec((3, 2))], "none": None}
    assert ops.eval_shape(lambda: (1, [1.0, 2.0])) == (TensorSpec((), "int64"), TensorSpec(2))


def test_tensors_stand_for_specs_and_their_values_are_not_read(backend: str) -> None:
    assert ops.eval_shape(ops.add, ops.ones(3), ops.ones((2, 1), "int32")) == TensorSpec((2, 3))
    with pytest.raises(TracedTensorError, match="float"):
        ops.eval_shape(lambda x: float(x), ops.array(2.0))


READS: list[Callable[[Any], Any]] = [
    lambda x: x if x[0] > 0 else -x,
    lambda x: float(x[0]),
    lambda x: x[0].item(),
    lambda x: x.tolist(),
    lambda x: np.asarray(x),
    lambda x: np.sin(x),
    lambda x: np.concatenate([x, x]),
    lambda x: ops.arange(x[0]),
    lambda x: ops.host_call(np.sin, x),
]


@pytest.mark.parametrize("number", range(len(READS)))
def test_reading_a_value_is_refused(number: int, backend: str) -> None:
    with pytest.raises(TracedTensorError, match="eval_shape computes shapes only"):
        ops.eval_shape(READS[number], TensorSpec(3))


BY_VALUE: dict[str, Callable[[Any], Any]] = {
    "nonzero": ops.nonzero,
    "unique": ops.unique,
    "get_item": lambda x: x[x > 0],
    "argwhere": ops.argwhere,
    "bincount": lambda x: ops.bincount(ops.cast(x, "int32")),
    "repeat": lambda x: ops.repeat(x, ops.cast(x, "int32")),
    "segment_sum": lambda x: ops.segment_sum(x, ops.cast(x, "int32")),
    "to_numpy": ops.to_numpy,
}


@pytest.mark.parametrize("op", BY_VALUE)
def test_an_op_whose_shape_depends_on_values_is_named(op: str, backend: str) -> None:
    with pytest.raises(TracedTensorError, match=rf"{op}\(\) on backend '{backend}'.*computes shapes only"):
        ops.eval_shape(BY_VALUE[op], TensorSpec(3))


def test_sizes_that_are_given_replace_those_that_depend_on_values(backend: str) -> None:
    ids = TensorSpec(4, "int64")
    assert ops.eval_shape(lambda x, i: ops.segment_sum(x, i, 7), TensorSpec((4, 2)), ids) == TensorSpec((7, 2))
    found = ops.eval_shape(lambda x: ops.unique(x, return_inverse=True, return_counts=True, axis=0, size=3), ids)
    assert found == (TensorSpec(3, "int64"), TensorSpec(4, "int64"), TensorSpec(3, "int64"))
    assert ops.eval_shape(lambda x: ops.unique(x, size=5), TensorSpec((2, 2))) == TensorSpec(5)


def test_tensors_from_outside_keep_their_values(backend: str) -> None:
    mask, weights = ops.array([True, False, True]), Parameter([1.0, 2.0, 3.0])
    assert ops.eval_shape(lambda x: ops.get_item(x, mask), TensorSpec((3, 4))) == TensorSpec((2, 4))
    assert ops.eval_shape(lambda x: ops.repeat(x, ops.array([1, 2, 0])), TensorSpec(3)) == TensorSpec(3)
    assert ops.eval_shape(lambda x: x * weights.value, TensorSpec((2, 3))) == TensorSpec((2, 3))
    assert ops.eval_shape(lambda x: x[: int(ops.array(2))], TensorSpec(3)) == TensorSpec(2)
    assert ops.eval_shape(lambda x: x + np.ones(3, "float64"), TensorSpec(3)) == TensorSpec(3, "float64")


def test_tensors_that_are_differentiated_may_come_from_outside(backend: str) -> None:
    functions: list[Callable[[Any, Any], Any]] = [
        ops.multiply,
        lambda x, y: ops.multiply(2.0, x),
        lambda x, y: y * x if backend == "mlx" else x * y,  # an array of MLX refuses other operands
        lambda x, y: ops.sum(ops.stack([x, y]), axis=0),
        lambda x, y: ops.softmax(y, axis=0) * ops.clip(x, 0.0, 1.0),
        lambda x, y: ops.grad(lambda x: ops.sum(y * x))(x),
    ]
    weight = Parameter([1.0, 2.0, 3.0])

    def loss(x: Any) -> Any:
        for f in functions:
            assert ops.eval_shape(lambda y, f=f: f(x, y), TensorSpec(3)) == TensorSpec(3)
            assert ops.eval_shape(f, x, TensorSpec(3)) == TensorSpec(3)
        return ops.sum(x * x)

    def of_weight() -> Any:
        assert ops.eval_shape(lambda y: ops.multiply(weight, y), TensorSpec((2, 3))) == TensorSpec((2, 3))
        return ops.sum(ops.square(weight))

    assert ops.grad(loss)([1.0, 2.0, 3.0]).tolist() == [2.0, 4.0, 6.0]
    assert ops.grad(lambda x: ops.sum(ops.grad(loss)(x)))([1.0, 2.0, 3.0]).tolist() == [2.0, 2.0, 2.0]
    ops.backward(of_weight, weight)
    assert weight.grad.tolist() == [2.0, 4.0, 6.0]


def test_branches_and_loops_that_keep_the_shapes_need_no_value(backend: str) -> None:
    x = TensorSpec((3, 4))
    assert ops.eval_shape(lambda x: ops.cond(ops.sum(x) > 0, lambda: x, lambda: -x), x) == x
    assert ops.eval_shape(lambda x: ops.switch(ops.argmax(x), [lambda: x, lambda: -x]), x) == x
    found = ops.eval_shape(lambda x: ops.while_loop(lambda x, n: ops.sum(x) < n, lambda x, n: (x + 1, n), (x, 5)), x)
    assert found == (x, TensorSpec((), "int64"))
    assert ops.eval_shape(lambda x: ops.map(lambda row: (row, row[0]), x), x) == (x, TensorSpec(3))
    growing = ops.eval_shape(lambda x: ops.scan(lambda c, r: (ops.concatenate([c, r]), ops.sum(c)), ops.zeros(1), x), x)
    assert growing == (TensorSpec(13), TensorSpec(3))


@pytest.mark.parametrize(
    "loop",
    [
        lambda x: ops.cond(ops.sum(x) > 0, lambda: x, lambda: x[:1]),
        lambda x: ops.switch(ops.argmax(x), [lambda: x, lambda: ops.cast(x, "int32")]),
        lambda x: ops.while_loop(lambda x: ops.sum(x) < 9, lambda x: ops.concatenate([x, x]), x),
    ],
)
def test_branches_and_loops_that_change_the_shapes_are_refused(loop: Any, backend: str) -> None:
    with pytest.raises(TracedTensorError, match="a tensor decides"):
        ops.eval_shape(loop, TensorSpec(4))


def test_errors_of_the_function_are_those_of_a_real_call(backend: str) -> None:
    with pytest.raises(ShapeError, match="matmul"):
        ops.eval_shape(ops.matmul, TensorSpec((2, 3)), TensorSpec((2, 3)))
    with pytest.raises(DTypeError, match="bitwise_and"):
        ops.eval_shape(ops.bitwise_and, TensorSpec(3), TensorSpec(3))
    with pytest.raises(ShapeError, match="not a scalar"):
        ops.eval_shape(ops.grad(ops.sin), TensorSpec(3))
    with pytest.raises(ZeroDivisionError):
        ops.eval_shape(lambda x: 1 // 0, TensorSpec(3))
    with pytest.raises(ArgumentTypeError, match="takes a function"):
        ops.eval_shape(3, TensorSpec(3))  # type: ignore[arg-type]
    with pytest.raises(EmberError, match="the function's result"):
        ops.eval_shape(lambda x: "text", TensorSpec(3))
    with pytest.raises(UnsupportedOpError, match="value_and_grad"):
        ops.eval_shape(lambda x: ops.backward(lambda: ops.sum(x), Parameter(1.0)), TensorSpec(3))


class Unknown:
    shape = (None, 3)
    dtype = "float32"


def test_a_spec_with_an_unknown_length_or_dtype_is_refused(backend: str) -> None:
    with pytest.raises(ArgumentTypeError, match=rf"eval_shape\(\) on backend '{backend}'.*\(None, 3\)"):
        ops.eval_shape(ops.sum, Unknown())
    if backend == "mlx":
        with pytest.raises(DTypeError, match="has no dtype 'complex128'"):
            ops.eval_shape(ops.sum, TensorSpec(3, "complex128"))


def test_random_streams_do_not_advance(backend: str) -> None:
    generator = ops.random.Generator(0)
    ops.random.seed(3)
    draws = [lambda: ops.random.normal(2), lambda: ops.random.gamma(2, 1.0), lambda: ops.random.shuffle(ops.arange(9))]
    wanted = [draw().tolist() for draw in draws]
    ops.random.seed(3)
    ops.eval_shape(lambda: [draw() for draw in draws] + [ops.random.normal(2, generator=generator)])
    ops.eval_shape(lambda: ops.random.seed(4))
    assert [draw().tolist() for draw in draws] == wanted
    same = ops.random.normal(2, generator=ops.random.Generator(0)).tolist()
    assert ops.random.normal(2, generator=generator).tolist() == same


def test_a_tensor_without_values_has_the_attributes_of_a_native_one(backend: str) -> None:
    seen: dict[str, Any] = {}

    def f(x: Any) -> Any:
        seen.update(shape=x.shape, ndim=x.ndim, size=x.size, dtype=x.dtype, length=len(x), device=ops.get_device(x))
        seen.update(tensor=ops.is_tensor(x), traced=ops.is_traced(x), backend=ops.get_backend(), text=repr(x))
        xp = ops.array_namespace(x)
        return [xp.sum(x), x.T, x.mT, x.reshape(3, 2), x.mean(axis=0), ~(x > 0), (x > 0) & (x < 1), 2.0 - x, x[:, 0]]

    found = ops.eval_shape(f, TensorSpec((2, 3)))
    assert [s.shape for s in found] == [(), (3, 2), (3, 2), (3, 2), (3,), (2, 3), (2, 3), (2, 3), (2,)]
    assert (seen["shape"], seen["ndim"], seen["size"], seen["length"]) == ((2, 3), 2, 6, 2)
    assert (seen["dtype"], seen["device"]) == (ops.ones(1).dtype, ops.get_device(ops.ones(1)))
    assert (seen["tensor"], seen["traced"], seen["backend"]) == (True, False, backend)
    assert seen["text"] == "<abstract tensor of shape (2, 3) and dtype float32>"


@pytest.mark.parametrize("name", ["itemset", "clamp_"])
def test_other_attributes_and_changes_in_place_are_refused(name: str, backend: str) -> None:
    with pytest.raises(AttributeError, match=f"no attribute '{name}'"):
        ops.eval_shape(lambda x: getattr(x, name), TensorSpec(3))
    with pytest.raises(AttributeError, match=r"differ in it: use ops\.expand_dims\(x, axis\)$"):
        ops.eval_shape(lambda x: x.unsqueeze(0), TensorSpec(3))

    def write(x: Any) -> Any:
        x[0] = 1.0
        return x

    with pytest.raises(TracedTensorError, match="set_item"):
        ops.eval_shape(write, TensorSpec(3))


def test_calls_nest_and_leave_the_backend_as_it_was(backend: str) -> None:
    def f(x: Any) -> Any:
        inner = ops.eval_shape(ops.sum, x)
        return ops.zeros(inner.ndim + 2) * ops.jacobian(lambda x: x * ops.eval_shape(ops.sin, x).size)(x)

    assert ops.eval_shape(f, TensorSpec(2)) == TensorSpec((2, 2))
    assert ops.grad(lambda x: ops.sum(x) * ops.eval_shape(ops.sin, x).size)([1.0, 2.0]).tolist() == [2.0, 2.0]
    with pytest.raises(ZeroDivisionError):
        ops.eval_shape(lambda x: 1 // 0, TensorSpec(3))
    assert ops.get_backend() == backend
    assert ops.is_tensor(ops.ones(2))
    assert ops.ones(2).tolist() == [1.0, 1.0]


STRICT = """
from emberharmony import TensorSpec, errors, ops
found = ops.eval_shape(lambda x: ops.exp(x[0]) + 1, TensorSpec((2**40, 3), "float64"))
assert found == TensorSpec(3, "float64"), found
found = ops.eval_shape(lambda x, y: ops.rsqrt(ops.matmul(x, y)), TensorSpec((2, 3)), TensorSpec((3, 4)))
assert found == TensorSpec((2, 4), "float32"), found
try:
    ops.eval_shape(ops.view_as_complex, TensorSpec((3, 2)))
except errors.UnsupportedOpError as error:
    print(error)
"""


@pytest.mark.fresh_process
def test_a_backend_of_a_third_party_needs_no_code() -> None:
    environment = os.environ | {
        "PYTHONPATH": os.pathsep.join([str(PLUGIN), *sys.path]),
        "EMBERHARMONY_BACKEND": "strict_lazy",
    }
    done = subprocess.run([sys.executable, "-c", STRICT], env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert "view_as_complex() is unsupported by Strict_LazyBackend" in done.stdout


@pytest.mark.fresh_process
def test_only_programs_that_ask_for_shapes_load_the_rules() -> None:
    script = (
        "import sys; from emberharmony import ops; ops.ones(2)\n"
        "assert not any(name.startswith('emberharmony.backend.abstract') for name in sys.modules)"
    )
    subprocess.run([sys.executable, "-c", script], check=True)
