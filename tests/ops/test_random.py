"""Random numbers: streams, seeds and generators, the range of uniform draws, random orders, dropout."""

import ast
import os
import pickle
import subprocess
import sys
import threading
from typing import Any

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from scipy import stats

from emberharmony import ops
from emberharmony.backend.discovery import BUILTIN, is_installed
from emberharmony.backend.shared.random_parameters import largest_below
from emberharmony.core.errors import (
    ArgumentError,
    ArgumentTypeError,
    AxisError,
    DTypeError,
    RangeError,
    ShapeError,
)

INSTALLED = [name for name in BUILTIN if is_installed(name)]


def test_seed_restarts_the_default_stream(backend: str) -> None:
    draws = []
    for _ in range(2):
        ops.random.seed(3)
        draws.append(
            [ops.to_numpy(d).tolist() for d in (ops.random.normal(4), ops.random.uniform(4), ops.random.gamma(4, 2.0))]
        )
    assert draws[0] == draws[1]
    assert ops.to_numpy(ops.random.normal(4)).tolist() != draws[0][0]


def test_seed_restarts_the_streams_of_all_backends() -> None:
    draws = []
    for _ in range(2):
        ops.random.seed(9)
        for name in INSTALLED:
            with ops.use_backend(name):
                draws.append(ops.to_numpy(ops.random.normal(4)).tolist())
    assert draws[: len(INSTALLED)] == draws[len(INSTALLED) :]


def test_threads_draw_different_numbers(backend: str) -> None:
    seen: list[float] = []

    def work() -> None:
        seen.append(float(np.asarray(ops.to_numpy(ops.random.normal(1)))[0]))

    threads = [threading.Thread(target=work) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(set(seen)) == 8


def test_generators_can_be_split_and_pickled() -> None:
    parent = ops.random.Generator(0)
    first, second = parent.split(2)
    assert first.normal(4).tolist() != second.normal(4).tolist()
    first.normal(3)
    copy = pickle.loads(pickle.dumps(first))
    assert copy.normal(4).tolist() == first.normal(4).tolist()
    again = ops.random.Generator(0).split(2)[1]
    again.normal(4)
    assert again.normal(2).tolist() == second.normal(2).tolist()


def test_generators_may_be_split_by_several_threads() -> None:
    parent, seen = ops.random.Generator(0), []

    def work() -> None:
        for _ in range(50):
            seen.extend(child.integers((), 0, 2**62).item() for child in parent.split(2))

    threads = [threading.Thread(target=work) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(set(seen)) == 800


def test_generators_without_a_seed_draw_different_numbers(backend: str) -> None:
    first, second = ops.random.SeedGenerator(), ops.random.SeedGenerator()
    draws = [ops.to_numpy(ops.random.normal(2, seed=g)).tolist() for g in (first, first, second)]
    assert len({tuple(d) for d in draws}) == 3


@pytest.mark.parametrize("dtype", ["float16", "bfloat16", "float32", "float64"])
def test_uniform_draws_stay_below_the_upper_bound(dtype: str, backend: str) -> None:
    for options in ({}, {"seed": 3}):
        for low, high in ((0.0, 1.0), (1.0, 2.0), (-1.0, 0.0), (-3.0, -1.0), (5.0, 5.1)):
            values = ops.random.uniform((20000,), low, high, dtype, **options)
            assert ops.dtype(values) == dtype
            wide = np.asarray(ops.to_numpy(ops.cast(values, "float64")))
            slack = 0.04 if dtype == "bfloat16" else 0.005 if dtype == "float16" else 1e-6
            assert wide.max() < high
            assert wide.min() >= low - slack


@given(st.floats(-1e30, 1e30), st.sampled_from(["float16", "bfloat16", "float32", "float64"]))
@example(1.1125369292536007e-308, "float64")
@example(5e-324, "float64")
@example(1e-45, "float32")
def test_below_is_less_by_at_most_two_eps(high: float, dtype: str) -> None:
    under, info = largest_below(high, ops.DType(dtype)), ops.finfo(dtype)
    assert under < high
    assert high == 0.0 or high - under <= 2 * info.eps * max(abs(high), info.smallest_normal)


def test_draws_in_float64_use_all_its_bits(backend: str) -> None:
    for count, options in ((100, {}), (100, {"seed": 3}), (2**14, {}), (2**14, {"seed": 3})):
        for draw in (ops.random.uniform, ops.random.normal):
            values = np.asarray(ops.to_numpy(draw((count,), dtype="float64", **options)))
            assert values.dtype == np.float64
            assert (values != values.astype(np.float32)).mean() > 0.9


def test_permutation_and_choice_accept_tensors(backend: str) -> None:
    x = np.arange(12.0).reshape(4, 3)
    rows = ops.to_numpy(ops.random.permutation(x, seed=1))
    assert sorted(rows[:, 0].tolist()) == [0.0, 3.0, 6.0, 9.0]
    columns = ops.to_numpy(ops.random.permutation(x, 1, seed=1))
    assert sorted(columns[0].tolist()) == [0.0, 1.0, 2.0]
    chosen = ops.to_numpy(ops.random.choice([5.0, 7.0], (50,), p=[0.0, 1.0]))
    assert chosen.tolist() == [7.0] * 50


def test_probabilities_and_bounds_may_be_tensors(backend: str) -> None:
    for chance in ([0.0, 1.0], ops.convert_to_tensor([-1.0, 2.0])):
        assert (ops.to_numpy(ops.random.bernoulli((50, 2), chance)) == [0.0, 1.0]).all()
    dropped = ops.to_numpy(ops.dropout(ops.ones((50, 2), "float16"), [0.0, 0.75], seed=0))
    assert set(np.unique(dropped[:, 0]).tolist()) == {1.0}
    assert set(np.unique(dropped[:, 1]).tolist()) == {0.0, 4.0}
    assert dropped.dtype == np.float16
    drawn = ops.to_numpy(ops.random.randint((200, 2), [0, 100], ops.convert_to_tensor([[3, 102]]), "uint8"))
    assert [set(column.tolist()) for column in drawn.T] == [{0, 1, 2}, {100, 101}]


def test_draws_have_gradients_by_location_and_scale(backend: str) -> None:
    def loss(mean: Any, stddev: Any) -> Any:
        return ops.sum(ops.random.normal((1000, 2), mean, stddev, seed=3))

    noise = ops.to_numpy(ops.random.normal((1000, 2), seed=3))
    for_mean, for_stddev = ops.grad(loss, argnums=(0, 1))([1.0, 2.0], 3.0)
    assert ops.to_numpy(for_mean).tolist() == [1000.0, 1000.0]
    assert float(for_stddev) == pytest.approx(noise.sum(), rel=1e-4)
    share = ops.to_numpy(ops.random.uniform((4,), seed=3))
    gradient = ops.grad(lambda high: ops.sum(ops.random.uniform((4,), 0.0, high, seed=3)))(2.0)
    assert float(gradient) == pytest.approx(share.sum(), rel=1e-5)


@pytest.mark.parametrize("dtype", ["float16", "bfloat16", "float32", "float64"])
def test_uniform_draws_fill_the_range_of_the_dtype(dtype: str, backend: str) -> None:
    largest = ops.finfo(dtype).max
    for options in ({}, {"seed": 3}):
        for high in (largest, [largest]):
            drawn = ops.random.uniform((2000,), -largest, high, dtype, **options)
            shares = np.asarray(ops.to_numpy(ops.cast(drawn, "float64"))) / largest
            assert np.isfinite(shares).all()
            assert stats.kstest(shares / 2 + 0.5, "uniform").pvalue > 1e-3


def test_uniform_refuses_infinite_and_too_wide_ranges(backend: str) -> None:
    inf = float("inf")
    for low, high in ((-inf, 0.0), (0.0, inf), (0.0, float("nan")), (-inf, inf)):
        with pytest.raises(ArgumentError, match=r"(minval|maxval) is a finite number, not -?(inf|nan)"):
            ops.random.uniform(3, low, high)
    with pytest.raises(RangeError, match=r"maxval 1e\+39 does not fit float32, which holds -3\.40282e\+38 to"):
        ops.random.uniform(3, 0.0, 1e39)
    with pytest.raises(RangeError, match="minval -70000 does not fit float16"):
        ops.random.uniform(3, -70000.0, 0.0, "float16")
    with np.errstate(all="ignore"):
        drawn = ops.to_numpy(ops.random.uniform((2, 4), [2.0, 0.0, -inf, 5.0], [1.0, inf, inf, 5.0]))
    assert np.isnan(drawn[:, :3]).all()
    assert (drawn[:, 3] == 5.0).all()


def test_randint_fills_the_range_of_its_dtype_and_refuses_bounds_beyond_it(backend: str) -> None:
    for dtype in ("int8", "uint8", "int16", "uint16", "int32", "uint32", "int64", "uint64"):
        limits = ops.iinfo(dtype)
        drawn = ops.random.randint((200,), limits.min, limits.max + 1, dtype, seed=0)
        assert ops.dtype(drawn) == dtype
        spread = ops.to_numpy(drawn).astype(float)
        assert spread.max() - spread.min() > 0.9 * (float(limits.max) - float(limits.min))
        for low, high in ((limits.min, limits.max + 2), (limits.min - 1, limits.max)):
            with pytest.raises(RangeError, match=rf"the integer -?\d+ does not fit {dtype}"):
                ops.random.randint((2,), low, high, dtype)
    for high in (300, [10, 300]):
        with pytest.raises(RangeError, match="the integer 299 does not fit int8"):
            ops.random.randint((1000, 2), 0, high, dtype="int8", generator=ops.random.Generator(0))
    for dtype in ("float32", "bool", "complex64"):
        with pytest.raises(DTypeError, match=f"are of an integer dtype, not {dtype}"):
            ops.random.randint((2,), 0, 2, dtype)
    for low in (0.5, [0.5], True + 0.0):
        with pytest.raises(ArgumentTypeError, match="minval is an integer, or a tensor of them, not float32"):
            ops.random.randint((2,), low, 3)
    with pytest.raises(ArgumentError, match="no integer from"):
        ops.random.randint((2,), [0, 5], 5)


def test_dropout_with_a_noise_shape_drops_whole_axes(backend: str) -> None:
    values = ops.to_numpy(ops.dropout(ops.ones((50, 4)), 0.5, (50, 1), seed=0))
    assert (values == values[:, :1]).all()
    assert 0.0 < (values == 0.0).mean() < 1.0


def test_draws_have_the_documented_dtypes_and_shapes(backend: str) -> None:
    assert ops.dtype(ops.random.normal((2, 3))) == "float32"
    assert ops.dtype(ops.random.uniform((), dtype="float16")) == "float16"
    assert ops.dtype(ops.random.randint((2,), 0, 5)) == "int64"
    assert ops.shape(ops.random.categorical([[0.0, 0.0]], 5)) == (1, 5)
    assert sorted(ops.to_numpy(ops.random.shuffle([3, 1, 2])).tolist()) == [1, 2, 3]


def test_dropout_reads_none_in_a_noise_shape_as_the_length_of_the_axis(backend: str) -> None:
    values = ops.to_numpy(ops.dropout(ops.ones((50, 4)), 0.5, [None, 1], seed=0))
    assert set(values.sum(1)) == {0.0, 8.0}


def test_dropout_at_rate_one_gives_zeros_with_a_zero_gradient(backend: str) -> None:
    x = ops.convert_to_tensor([1.0, 2.0])
    assert ops.dropout(x, 1.0).tolist() == [0.0, 0.0]
    assert ops.grad(lambda x: ops.sum(ops.dropout(x, 1.0)))(x).tolist() == [0.0, 0.0]


def test_dropout_keeps_the_mean(backend: str) -> None:
    x = ops.dropout(ops.ones((4000,)), 0.25, seed=0)
    values = ops.to_numpy(x)
    assert set(np.unique(values).tolist()) == {0.0, np.float32(1 / 0.75).item()}
    assert float(ops.mean(x)) == pytest.approx(1.0, abs=0.05)


@pytest.mark.parametrize("seed", [-1, 1.5, True, "a"])
def test_a_seed_that_is_not_a_natural_number_is_refused(seed: object, backend: str) -> None:
    with pytest.raises(ArgumentError, match="a seed is an integer of at least 0"):
        ops.random.Generator(seed)  # type: ignore[arg-type]


def test_shapes_that_do_not_fit_are_refused(backend: str) -> None:
    with pytest.raises(ShapeError, match=r"noise_shape of shape \(3, 2, 2\) does not broadcast to shape \(2, 2\)"):
        ops.dropout(ops.ones((2, 2)), 0.5, (3, 2, 2))
    with pytest.raises(ShapeError, match=r"rate of shape \(3,\) does not broadcast to shape \(2, 2\)"):
        ops.dropout(ops.ones((2, 2)), [0.1, 0.2, 0.3])
    with pytest.raises(ShapeError, match=r"p of shape \(3,\) does not broadcast to shape \(2,\)"):
        ops.random.choice(2, p=[0.5, 0.25, 0.25])
    for draw in (ops.random.shuffle, ops.random.permutation, ops.random.choice):
        with pytest.raises(AxisError, match="axis 0 is out of range for a tensor of 0 axes"):
            draw(ops.convert_to_tensor(3.0))
    with pytest.raises(AxisError, match="axis 5 is out of range for a tensor of 2 axes"):
        ops.random.shuffle(ops.ones((2, 2)), 5)
    with pytest.raises(ArgumentTypeError, match=r"n is a number of generators, not 1\.5"):
        ops.random.Generator(0).split(1.5)  # type: ignore[arg-type]


def test_integers_of_numpy_are_accepted_as_sizes_and_bounds(backend: str) -> None:
    assert ops.shape(ops.random.permutation(np.int64(3))) == (3,)
    assert ops.shape(ops.random.choice(np.int32(3), (4,))) == (4,)
    assert ops.random.randint((2,), np.int8(5), np.int16(6)).tolist() == [5, 5]


FORKS = """
import os, sys
from emberharmony import ops

ops.set_backend(sys.argv[1])
explicit = sys.argv[2] == "seeded"
if explicit:
    ops.random.seed(3)
held = ops.random.Generator(4)

def drawn():
    return [ops.to_numpy(ops.random.normal((2,))).tolist(), ops.to_numpy(ops.random.gamma((2,), 2.0)).tolist()]

def child(depth=0):
    reading, writing = os.pipe()
    process = os.fork()
    if process == 0:
        found = child() if depth else (*drawn(), ops.random.normal((2,), generator=held).tolist())
        os.write(writing, repr(found).encode())
        os._exit(0)
    os.close(writing)
    with os.fdopen(reading, "rb") as stream:
        found = eval(stream.read())
    os.waitpid(process, 0)
    return found

if sys.argv[3] == "used":
    drawn()
children = [child(), child(), child(1)]
print([children, drawn()])
"""


@pytest.mark.skipif(not hasattr(os, "fork"), reason="the system has no fork")
@pytest.mark.fresh_process
@pytest.mark.parametrize(
    ("name", "used"), [("numpy", "used"), ("numpy", "fresh"), pytest.param("torch", "used", marks=pytest.mark.slow)]
)
def test_forked_children_draw_different_numbers(name: str, used: str) -> None:
    """MLX is left out, because it cannot compute in a child process if the parent has computed."""
    if name not in INSTALLED:
        pytest.skip(f"{name} is not installed")

    def run(seeding: str) -> Any:
        command = [sys.executable, "-W", "ignore", "-c", FORKS, name, seeding, used]
        return ast.literal_eval(subprocess.run(command, capture_output=True, text=True, check=True, timeout=120).stdout)

    children, parent = run("seeded")
    for stream in (0, 1):
        assert len({*(tuple(child[stream]) for child in children), tuple(parent[stream])}) == 4
    assert len({tuple(child[2]) for child in children}) == 1, "a Generator continues in each child as in the parent"
    assert run("seeded") == [children, parent], "a seed also repeats the draws of the children"
    others, other_parent = run("unseeded")
    seen = [*children, parent, *others, other_parent]
    assert len({tuple(each[0]) for each in seen}) == len(seen)
    ops.set_backend(name)
    ops.random.seed(3)
    wanted = [ops.to_numpy(ops.random.normal((2,))).tolist() for _ in range(2)]
    assert parent[0] == wanted[used == "used"], "a fork must not change the draws of the parent"


def test_threads_never_draw_the_same_number(backend: str) -> None:
    seen: list[float] = []
    ops.random.seed(1)

    def work() -> None:
        for _ in range(100):
            seen.extend(ops.to_numpy(ops.random.uniform((1,), dtype="float64")).tolist())

    threads = [threading.Thread(target=work) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(set(seen)) == 800


def test_an_unpickled_generator_continues_to_split() -> None:
    parent = ops.random.Generator(0)
    parent.split(3)
    copy = pickle.loads(pickle.dumps(parent))
    assert [child.normal(2).tolist() for child in copy.split(2)] == [
        child.normal(2).tolist() for child in parent.split(2)
    ]
