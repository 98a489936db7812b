"""Functions compiled on NumPy: what they record, when they record it again, and which memory they write into."""

import inspect
import math
import threading
import tracemalloc
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest

from emberharmony import Parameter, nn, ops, optim
from emberharmony.backend.numpy.flow.compilation import NumpyFunction
from emberharmony.backend.numpy.flow.programs import Blocks
from emberharmony.backend.numpy.flow.replay import guard_of
from emberharmony.core import errors, selection


@pytest.fixture(autouse=True)
def on_numpy() -> Iterator[None]:
    with ops.use_backend("numpy"):
        yield


def counted(function: Callable[..., Any]) -> tuple[Callable[..., Any], list[int]]:
    """Returns a function that notes how often it runs, and the list of its notes."""
    runs: list[int] = []

    def noting(*args: Any, **kwargs: Any) -> Any:
        runs.append(len(runs))
        return function(*args, **kwargs)

    return noting, runs


def random(*shape: int) -> Any:
    return np.random.default_rng(sum(shape)).standard_normal(shape).astype(np.float32)


def equal(a: Any, b: Any) -> bool:
    pairs = zip(ops.tree_leaves(a), ops.tree_leaves(b), strict=True)
    return all(np.array_equal(x, y, equal_nan=True) for x, y in pairs)


def chain(x: Any) -> Any:
    """Returns a value that several arrays of one shape lead to, of which memory may be used again."""
    y = ops.tanh(ops.multiply(x, 2.0))
    z = ops.add(y, ops.exp(ops.negative(y)))
    return ops.sum(ops.multiply(z, ops.subtract(1.0, z)), axis=-1)


def test_a_function_runs_once_for_each_shape_dtype_layout_and_number() -> None:
    function, runs = counted(lambda x, k: ops.multiply(chain(x), k))
    compiled, x = ops.compile(function), random(4, 6)
    kinds = [(x, 2.0), (x, 3.0), (x, 2), (x, 0.0), (x, -0.0), (x, float("nan")), (random(5, 6), 2.0)]
    kinds += [(x.astype(np.float64), 2.0), (np.asfortranarray(x), 2.0), (random(4, 12)[:, ::2], 2.0)]
    for count, (array, k) in enumerate(kinds, 1):
        for _ in range(3):
            array *= -1.0
            assert equal(compiled(array, k), function(array, k))
            runs.pop()
        assert len(runs) == count
    assert equal(np.signbit(compiled(x, -0.0)), np.signbit(function(x, -0.0)))


def test_a_program_is_known_again_by_arrays_of_its_layouts() -> None:
    layouts = random(4, 6), np.asfortranarray(random(4, 6)), random(4, 12)[:, ::2]
    for x in layouts:
        fits = guard_of([x, 2.0], type)
        assert [fits([y, 3.0]) for y in layouts] == [y is x for y in layouts]
        assert not fits([x.astype(np.float64), 2.0])
        assert not fits([x[:3], 2.0])
        assert not fits([x, 2])


def test_a_compiled_function_writes_into_no_argument_constant_or_earlier_result() -> None:
    held = random(3, 4)

    def function(x: Any, y: Any) -> Any:
        z = ops.add(ops.tanh(x), held)
        return {
            "z": z,
            "view": ops.reshape(z, (-1,)),
            "sum": ops.add(z, y),
            "one": ops.ones((3, 4)),
            "x": x,
            "held": held,
        }

    compiled, x, y, before = ops.compile(function), random(3, 4), random(3, 4), held.copy()
    first = [compiled(x, y) for _ in range(3)]
    copies = [leaf.copy() for leaf in ops.tree_leaves(first)]
    for _ in range(3):
        made = compiled(x, y)
        assert equal(made, function(x, y))
        assert made["x"] is x
        for name in ("z", "sum", "one", "held"):
            made[name] += 1.0
    assert equal(ops.tree_leaves(first), copies)
    assert np.array_equal(held, before)
    assert equal(compiled(x, x), function(x, x))


def test_results_that_are_computed_once_do_not_share_memory() -> None:
    def function(x: Any) -> Any:
        y, z = ops.square(x), ops.square(x)
        return y, z, ops.reshape(y, (-1,)), ops.transpose(z), y

    compiled, x = ops.compile(function), random(3, 4)
    for _ in range(3):
        y, z, _, turned, again = compiled(x)
        assert again is y
        assert not np.may_share_memory(y, z)
        y += 1.0
        assert equal(z, np.square(x))
        assert equal(turned, np.square(x).T)


def test_memory_is_used_again_only_in_the_layout_that_numpy_would_choose() -> None:
    def function(x: Any, y: Any) -> Any:
        total = ops.sum(ops.tanh(x))  # what tanh returns is free after it
        turned = ops.multiply(ops.transpose(y), 3.0)
        return total, ops.sum(turned), ops.sum(turned, axis=0), turned

    compiled = ops.compile(function)
    for seed in range(3):
        x, y = np.random.default_rng(seed).standard_normal((2, 60, 60)).astype(np.float32) * 1e3
        found, wanted = compiled(x, y), function(x, y)
        assert equal(found, wanted)
        assert found[3].strides == wanted[3].strides


def test_a_function_that_reads_a_value_runs_in_each_call_and_only_once() -> None:
    function, runs = counted(lambda x: ops.square(x) if ops.sum(x) > 0 else ops.negative(x))
    compiled = ops.compile(function)
    for array in (random(4), -np.abs(random(4)), np.abs(random(4))):
        assert equal(compiled(array), function(array))
    assert len(runs) == 6


@pytest.mark.parametrize(
    "function",
    [
        lambda x: x.astype(np.float64) * 2,
        lambda x: np.sin(x) + ops.cos(x),
        lambda x: ops.multiply(x, float(x[0])),
        lambda x: ops.multiply(x, x.max(initial=-9.0)),
        lambda x: ops.convert_to_tensor(np.asarray(x)[x > 0]),
        lambda x: divmod(x, 2.0)[1],
        lambda x: ops.nonzero(ops.greater(x, 0.0))[0],
        lambda x: ops.get_item(x, ops.greater(x, 0.0)),
        lambda x: ops.unique(ops.sign(x)),
        lambda x: x if hasattr(x, "tobytes") else 0,
    ],
)
def test_functions_that_only_arrays_serve_give_the_same_results(function: Any) -> None:
    compiled = ops.compile(function)
    for array in (random(8), -np.abs(random(8)), np.abs(random(8)), random(8)):
        assert equal(compiled(array), function(array))


def test_a_tensor_that_is_kept_beyond_the_call_cannot_be_used() -> None:
    kept: list[Any] = []
    compiled = ops.compile(lambda x: (kept.append(ops.square(x)), x)[1])
    compiled(random(3))
    with pytest.raises(errors.EmberError, match="used after its call"):
        ops.add(kept[0], 1.0)


def test_cells_are_read_and_assigned_at_each_call() -> None:
    scale, mean = Parameter([1.0, 2.0]), Parameter([0.0, 0.0], trainable=False)

    def function(x: Any) -> Any:
        mean.value = ops.add(ops.multiply(mean.value, 0.5), ops.multiply(ops.mean(x, axis=0), 0.5))
        return ops.multiply(ops.subtract(x, mean.value), scale.value)

    noting, runs = counted(function)
    compiled, x = ops.compile(noting), random(5, 2)
    for i in range(5):
        before = mean.value
        wanted = function(x)
        after, mean.value = mean.value, before
        assert equal(compiled(x), wanted)
        assert equal(mean.value, after)
        scale.value = ops.multiply(scale.value, 2.0 + i)
    assert len(runs) == 2  # the first run has found the cells
    scale.value = ops.cast(scale.value, "float64")
    assert compiled(x).dtype == np.float64


@pytest.mark.parametrize("kind", [nn.BatchNorm1d, nn.LayerNorm, lambda n: nn.Linear(n, n)])
def test_gradients_by_modules_are_recorded(kind: Any) -> None:
    module, x = kind(6), random(4, 6)

    def loss(model: Any, x: Any) -> Any:
        return ops.mean(ops.square(model(x)))

    noting, runs = counted(loss)
    compiled = ops.compile(ops.value_and_grad(noting))
    for _ in range(4):
        state = {name: ops.copy(tensor) for name, tensor in module.state_dict().items()}
        wanted = ops.value_and_grad(loss)(module, x)
        after = module.state_dict()
        module.load_state_dict(state)
        found = compiled(module, x)
        assert equal(found, wanted)
        assert equal(module.state_dict(), after)
    assert len(runs) == 1


def test_a_training_step_with_adamw_is_one_program() -> None:
    adam = optim.AdamW(lr=0.1, weight_decay=0.01)

    def step(weights: Any, state: Any, x: Any) -> Any:
        def loss(tree: Any) -> Any:
            return ops.mean(ops.square(ops.add(ops.matmul(ops.tanh(x), tree["w"]), tree["b"])))

        value, gradients = ops.value_and_grad(loss)(weights)
        return value, *adam.update(gradients, state, weights)

    noting, runs = counted(step)
    compiled, weights, x = ops.compile(noting), {"w": random(4, 3), "b": random(3)}, random(5, 4)
    plain = found = (weights, adam.init(weights))
    for _ in range(6):
        (value, *plain), (got, *found) = step(*plain, x), compiled(*found, x)
        assert equal((value, plain), (got, found))
    assert len(runs) == 1
    assert int(found[1]["count"]) == 6


def test_two_threads_replay_one_program() -> None:
    compiled, wrong = ops.compile(ops.value_and_grad(lambda x: ops.mean(chain(x)))), []
    compiled(random(64, 64))

    def work(seed: int) -> None:
        with ops.use_backend("numpy"):
            x = np.random.default_rng(seed).standard_normal((64, 64)).astype(np.float32)
            wanted = ops.value_and_grad(lambda x: ops.mean(chain(x)))(x)
            wrong.extend(seed for _ in range(50) if not equal(compiled(x), wanted))

    threads = [threading.Thread(target=work, args=(seed,)) for seed in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not wrong


def test_errors_of_values_are_those_of_the_function() -> None:
    def function(x: Any) -> Any:
        return ops.solve(ops.multiply(x, 2.0), ops.ones((3,)))

    noting, runs = counted(function)
    compiled, good, bad = ops.compile(noting), np.eye(3, dtype=np.float32), np.zeros((3, 3), np.float32)
    assert equal(compiled(good), function(good))
    with pytest.raises(errors.LinAlgError, match=r"solve\(\) on backend 'numpy'"):
        compiled(bad)
    assert len(runs) == 2
    assert equal(compiled(good), function(good))
    assert len(runs) == 2
    inverse = ops.compile(lambda x: ops.divide(1.0, x))
    inverse(random(3))
    with np.errstate(divide="raise"), pytest.raises(FloatingPointError):
        inverse(np.zeros(3, np.float32))


def test_compiled_functions_nest_and_recurse_and_are_transformed() -> None:
    inner = ops.compile(chain)

    def powers(x: Any, n: int) -> Any:
        return x if n == 0 else ops.multiply(x, recursive(x, n - 1))

    recursive, x = ops.compile(powers), random(3, 4)
    for _ in range(2):
        assert equal(ops.compile(lambda x: ops.add(inner(x), 1.0))(x), ops.add(chain(x), 1.0))
        assert equal(ops.grad(lambda x: ops.sum(inner(x)))(x), ops.grad(lambda x: ops.sum(chain(x)))(x))
        assert equal(ops.vmap(inner)(random(5, 3, 4)), ops.vmap(chain)(random(5, 3, 4)))
        assert np.allclose(recursive(x, 3), x**4)
    # A tensor that an outer tape follows is no constant.
    closing = ops.grad(lambda w: ops.sum(ops.compile(lambda x: ops.multiply(x, w))(x)))
    assert equal(closing(ops.ones_like(x)), x)


def test_the_state_of_ops_belongs_to_a_program() -> None:
    compiled = ops.compile(lambda x: ops.add(ops.cast(x, "int32"), 0.5))
    x = random(4)
    assert compiled(x).dtype == np.float32
    before = ops.get_default_float() if hasattr(ops, "get_default_float") else "float32"
    try:
        ops.set_default_float("float64")
        assert compiled(x).dtype == np.float64
    finally:
        ops.set_default_float(before)
    assert compiled(x).dtype == np.float32
    product = ops.compile(ops.matmul)
    a = random(4, 4)
    assert equal(product(a, a), product(a, a))
    with ops.autocast("float16"):
        assert product(a, a).dtype == product(a, a).dtype == np.float16
    assert product(a, a).dtype == np.float32
    with ops.record() as log:
        product(a, a)
    assert [event.op for event in log] == ["matmul"]


def test_a_function_has_a_limited_number_of_programs() -> None:
    function, runs = counted(lambda x, k: ops.multiply(x, k))
    compiled, x = ops.compile(function), random(3)
    for k in range(100):
        assert equal(compiled(x, float(k)), np.multiply(x, np.float32(k)))
    done = len(runs)
    compiled(x, 1.0)
    assert len(runs) == done
    compiled(x, 99.0)
    assert len(runs) == done + 1


def test_arguments_may_be_trees_objects_and_unhashable() -> None:
    def function(tree: Any, names: Any, *, flag: bool = True) -> Any:
        total = ops.add(tree["a"], tree["b"][0]) if flag else tree["a"]
        return {"total": total, "names": names, "none": None, "pair": (tree["b"][0], "text")}

    compiled = ops.compile(function)
    for names in ("x", {1, 2}, 3):
        for flag in (True, False):
            given = {"a": random(3), "b": [random(3)]}
            assert equal(compiled(given, names, flag=flag)["total"], function(given, names, flag=flag)["total"])
            assert compiled(given, names, flag=flag)["names"] is names
    masked = np.ma.masked_array(random(3), [True, False, False])
    with pytest.raises(errors.EmberError):
        ops.compile(ops.sin)(masked)


def test_a_program_holds_no_more_memory_than_the_function() -> None:
    def function(x: Any) -> Any:
        for _ in range(8):
            x = ops.add(ops.tanh(ops.multiply(x, 0.5)), 1.0)
        return ops.sum(x)

    def peak(call: Callable[..., Any]) -> int:
        tracemalloc.start()
        try:
            call(x)
            return tracemalloc.get_traced_memory()[1]
        finally:
            tracemalloc.stop()

    compiled, x = ops.compile(function), random(512, 512)
    compiled(x)
    assert peak(compiled) <= peak(function) + 10_000
    assert peak(compiled) < 1.1 * x.nbytes  # one array for all steps


def test_a_function_that_raises_a_type_error_runs_once() -> None:
    def solved(x: Any) -> Any:
        try:
            return ops.linalg.solve(x, ops.ones((2, 1)))
        except errors.EmberError as error:
            raise TypeError("singular") from error

    noting, runs = counted(solved)
    compiled = ops.compile(noting)
    for _ in range(2):
        compiled(x=np.eye(2, dtype="float32"))
    assert len(runs) == 1
    with pytest.raises(TypeError, match="singular"):
        compiled(x=np.zeros((2, 2), "float32"))
    assert len(runs) == 2


def drawing(generator: ops.random.Generator) -> dict[str, Callable[[Any], Any]]:
    """Returns functions that draw random numbers."""
    layers = nn.Sequential(nn.Linear(6, 8), nn.Dropout(0.5, rng=generator), nn.Linear(8, 2))
    weights = random(6, 3)

    def unused(x: Any) -> Any:
        ops.random.normal((3,))
        return ops.add(x, ops.random.uniform(x.shape, generator=generator))

    def lost(w: Any, x: Any) -> Any:
        kept = ops.random.dropout(ops.matmul(x, w), 0.4, generator=generator)
        return ops.mean(ops.square(ops.random.dropout(kept, 0.1)))

    return {
        "default streams": lambda x: ops.add(ops.random.dropout(x, 0.5), ops.random.normal(x.shape)),
        "twice the same": lambda x: ops.subtract(
            ops.random.uniform(x.shape), ops.multiply(ops.random.uniform(x.shape), x)
        ),
        "ranges": lambda x: ops.add(
            ops.random.uniform(x.shape, -2.0, 3.0, generator=generator),
            ops.add(x, ops.random.randint((6,), 0, 5, generator=generator)),
        ),
        "an unused draw": unused,
        "a layer": layers,
        "gradients": lambda x: ops.value_and_grad(lost)(weights, x),
    }


@pytest.mark.parametrize("name", drawing(ops.random.Generator(0)))
def test_a_program_draws_the_random_numbers_of_the_function(name: str) -> None:
    runs, x = [], random(5, 6)
    for compile_it in (False, True):
        generator = ops.random.Generator(7)
        ops.random.seed(3)  # which draws the weights of the layer too
        noting, called = counted(drawing(generator)[name])
        ready = ops.compile(noting) if compile_it else noting
        results = [ready(x) for _ in range(5)]
        runs.append((results, ops.random.uniform((2,)), ops.random.uniform((2,), generator=generator)))
        # The first run of a layer finds its cells, which are inputs of the second one.
        assert len(called) == (5 if not compile_it else 2 if name == "a layer" else 1)
    for one, other in zip(*map(ops.tree_leaves, runs), strict=True):
        assert one.dtype == other.dtype
        np.testing.assert_array_equal(one, other)


@pytest.mark.parametrize(
    "function",
    [
        lambda x: ops.multiply(x, ops.random.normal(x.shape, generator=ops.random.Generator(0))),
        lambda x: ops.multiply(x, ops.random.normal(x.shape, seed=0)),
        lambda x: (ops.random.seed(0), ops.multiply(x, ops.random.normal(x.shape)))[1],
        lambda x: ops.multiply(x, ops.random.shuffle(ops.arange(6), seed=1)),
    ],
)
def test_draws_that_begin_anew_in_each_call_are_repeated(function: Callable[[Any], Any]) -> None:
    compiled, x = ops.compile(function), random(5, 6)
    wanted = function(x)
    for _ in range(3):
        np.testing.assert_array_equal(compiled(x), wanted)


def test_a_call_that_runs_the_function_again_draws_once() -> None:
    def positive(x: Any) -> Any:
        noise = ops.random.uniform((2,))
        return ops.add(ops.get_item(x, ops.nonzero(x)), ops.sum(noise))  # the shape depends on the values

    def unsteady(x: Any) -> Any:
        noise = ops.random.uniform((2,))
        return ops.add(noise, 1.0) if float(ops.sum(x)) > 0 else noise

    for function in (positive, unsteady):
        runs = []
        for ready in (function, ops.compile(function)):
            ops.random.seed(5)
            results = [
                ready(x) for x in (np.ones(3, np.float32), np.eye(3, dtype=np.float32)[0], np.ones(3, np.float32))
            ]
            runs.append([*results, ops.random.uniform((2,))])
        for one, other in zip(*runs, strict=True):
            np.testing.assert_array_equal(one, other)


class Runs:
    """Functions with runs of elementwise calls on large arrays, which are made block by block."""

    @staticmethod
    def between(x: Any, y: Any) -> Any:
        """Returns results from between two runs, of which one reads a scalar, and a view of an argument."""
        a = ops.tanh(ops.add(ops.multiply(x, 0.5), y))
        b = ops.maximum(ops.exp(ops.negative(a)), ops.square(x))
        top = ops.max(b)
        return ops.divide(ops.subtract(b, top), ops.add(top, 2.0)), a, ops.add(x, ops.reshape(y, x.shape))

    @staticmethod
    def rows(x: Any, y: Any) -> Any:
        """Returns what needs a row for each, and what is written over."""
        centred = ops.subtract(x, ops.mean(x, axis=-1, keepdims=True))
        return ops.sum(ops.multiply(ops.add(centred, 1.0), ops.sin(y)), axis=0), ops.sqrt(ops.absolute(centred))

    @staticmethod
    def square(x: Any, y: Any) -> Any:
        """Returns what is computed of rows and columns of one length, of which one is an outer difference."""
        x, row = x[:, :45], ops.exp(x[0, :45])
        outer = ops.subtract(ops.expand_dims(row, 0), ops.expand_dims(row, 1))
        centred = ops.multiply(ops.subtract(ops.add(x, 0.0), row), ops.expand_dims(row, 1))
        return ops.sum(ops.square(ops.multiply(outer, 0.5))), ops.negative(ops.square(centred))

    @staticmethod
    def numbers(x: Any, y: Any) -> Any:
        """Returns what is computed with complex numbers, and with infinite ones."""
        a = ops.maximum(ops.add(x, 1.0), -math.inf)
        sizes = ops.absolute(ops.multiply(ops.multiply(a, y), 2j))
        return ops.subtract(ops.negative(sizes), 1.0)

    @staticmethod
    def gradient(x: Any, y: Any) -> Any:
        """Returns a value and gradients."""
        return ops.value_and_grad(lambda x, y: ops.sum(ops.multiply(ops.sigmoid(x), ops.tanh(y))), (0, 1))(x, y)


@pytest.mark.parametrize("name", ["between", "rows", "square", "numbers", "gradient"])
@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_runs_of_calls_on_large_arrays_give_the_same_bits(
    name: str, dtype: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("emberharmony.backend.numpy.flow.programs.BLOCK", 1000)
    monkeypatch.setattr("emberharmony.backend.numpy.flow.programs.Blocks.least", 1)
    function = getattr(Runs, name)
    noting, runs = counted(function)
    compiled = NumpyFunction(noting, selection.current())
    for seed in (0, 1, 1, 2):
        x, y = np.random.default_rng(seed).standard_normal((2, 45, 67)).astype(dtype)
        before = x.copy(), y.copy()
        found = compiled(x, y)
        assert equal(found, function(x, y))
        assert equal(before, (x, y))
    assert len(runs) == 1
    functions = inspect.getclosurevars(vars(compiled._last_program)["replay"]).nonlocals.values()
    assert any(isinstance(each, Blocks) for each in functions)


def test_a_function_that_returns_a_new_parameter_makes_one_in_each_call() -> None:
    compiled = ops.compile(lambda x: {"kept": Parameter(np.ones(2, np.float32)), "value": ops.tanh(x)})
    first, second = (compiled(random(3))["kept"] for _ in range(2))
    assert first is not second


def test_a_function_may_return_a_tensor_that_is_being_differentiated_around_it() -> None:
    def loss(y: Any) -> Any:
        compiled = ops.compile(lambda x: (ops.tanh(x), y))
        return ops.sum(ops.multiply(*compiled(random(3))))

    assert equal(ops.grad(loss)(random(3)), np.tanh(random(3)))


def test_a_number_beside_a_tensor_is_an_array_of_its_dtype() -> None:
    compiled = NumpyFunction(lambda x: ops.sum(ops.multiply(ops.exp(x), 2.5)), selection.current())
    for _ in range(2):
        assert equal(compiled(random(3)), np.sum(np.exp(random(3)) * np.float32(2.5)))
    held = inspect.getclosurevars(vars(compiled._last_program)["replay"]).nonlocals.values()
    assert [(x.dtype, float(x)) for x in held if isinstance(x, np.ndarray)] == [("float32", 2.5)]
