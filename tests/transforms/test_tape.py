"""The tape: which ops it differentiates, what it refuses, and that it frees everything it held."""

import asyncio
import gc
import math
import threading
import weakref
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import numpy as np
import pytest

from emberharmony import ops
from emberharmony.backend import current
from emberharmony.core.errors import (
    BackendMismatchError,
    EmberError,
    TracedTensorError,
    UnsupportedOpError,
)
from emberharmony.core.registry import OPS, OpSpec
from emberharmony.rules import LEAVING, REFUSED, RULES
from emberharmony.testing.gradient_rows import missing_rule_text
from emberharmony.transforms import backward


@pytest.fixture(autouse=True)
def _numpy() -> None:
    ops.set_backend("numpy")


def gradient(function: Any, *values: Any) -> list[Any]:
    """Returns the gradients of a function with respect to all its arguments."""
    primals = [np.asarray(value) for value in values]
    outputs, pull = backward.pullback(current(), lambda *xs: [function(*xs)], primals)
    return pull([np.ones_like(outputs[0])])


def test_every_primitive_has_a_rule_is_constant_or_is_refused() -> None:
    makers = {"zeros", "ones", "full", "empty", "eye", "standard_uniform", "standard_normal"}
    touched = {name for name, spec in OPS.items() if any(p.role in ("TensorLike", "Operand") for p in spec.parameters)}
    missing = [words for name in sorted(touched - makers) if (words := missing_rule_text(name))]
    assert not missing, "\n".join(missing)
    constant = {name for name, spec in OPS.items() if spec.facts.gradient == "zero"}
    assert not (set(RULES) | LEAVING | set(REFUSED)) & constant
    assert not set(RULES) & (LEAVING | set(REFUSED))


def test_the_tables_of_rules_name_existing_ops() -> None:
    assert set(RULES) | LEAVING | set(REFUSED) <= set(OPS)


def test_an_op_with_any_number_of_arguments_has_one_rule_for_all() -> None:
    # The tape remembers what a tuple of rules does not read for a fixed number of arguments.
    tuples = [name for name, rule in RULES.items() if isinstance(rule, tuple)]
    assert not [name for name in tuples if any(p.variadic for p in OPS[name].parameters)]


def test_a_traced_tensor_that_needs_no_conversion_stays_the_same_object() -> None:
    seen: list[bool] = []

    def loss(x: Any) -> Any:
        seen.extend(
            y is x for y in (ops.convert_to_tensor(x), ops.cast(x, "float32"), ops.convert_to_tensor(x, "float32"))
        )
        seen.extend(y is not x for y in (ops.copy(x), ops.cast(x, "float64"), ops.convert_to_tensor(x, copy=True)))
        return ops.sum(ops.square(ops.convert_to_tensor(x)))

    (found,) = gradient(loss, np.array([1.0, 3.0], "float32"))
    assert found.tolist() == [2.0, 6.0]
    assert seen == [True] * 6


@pytest.mark.parametrize("dtype", ["float16", "float32", "float64"])
def test_gradients_keep_the_dtype(dtype: str) -> None:
    x = np.array([0.5, 2.0, 1.0], dtype)
    found = gradient(lambda x: ops.sum(ops.add(ops.max(x), ops.where(ops.greater(x, 1), ops.mean(x), x))), x)[0]
    assert found.dtype == dtype


def test_each_gradient_has_the_dtype_of_its_argument() -> None:
    a, b = gradient(lambda a, b: ops.sum(ops.multiply(a, b)), np.float32([1, 2]), np.float64([3, 4]))
    assert (a.dtype, b.dtype) == (np.float32, np.float64)
    assert a.tolist() == [3, 4]


def test_the_gradient_of_a_broadcast_argument_is_summed() -> None:
    a, b = gradient(lambda a, b: ops.sum(ops.multiply(a, b)), np.ones((3, 1)), np.full((2, 3, 4), 2.0))
    assert a.shape == (3, 1)
    assert a.tolist() == [[16.0]] * 3
    assert b.shape == (2, 3, 4)


def test_the_gradients_of_an_argument_used_twice_are_added() -> None:
    assert gradient(lambda x: ops.multiply(x, x), 3.0)[0] == 6.0
    assert gradient(lambda x: ops.add(x, x), 3.0)[0] == 2.0


def test_the_gradient_of_an_unused_argument_is_zero() -> None:
    a, b = gradient(lambda a, b: ops.sum(a), [1.0, 2.0], np.ones((2, 2)))
    assert a.tolist() == [1, 1]
    assert b.tolist() == [[0, 0], [0, 0]]


def test_operators_have_the_gradients_of_ops() -> None:
    x = np.array([0.5, -2.0])
    by_ops = gradient(lambda x: ops.sum(ops.divide(ops.subtract(ops.power(x, 3), 1), ops.add(x, 4))), x)[0]
    by_operators = gradient(lambda x: ops.sum((x**3 - 1) / (4 + x)), x)[0]
    np.testing.assert_allclose(by_operators, by_ops)
    assert gradient(lambda x: ops.sum(np.array([2.0, 3.0]) * x), x)[0].tolist() == [2, 3]
    assert gradient(lambda x: np.array([2.0, 3.0]) @ x, x)[0].tolist() == [2, 3]
    assert gradient(lambda x: ops.sum(abs(-x) + +x) - x[0], x)[0].tolist() == [1, 0]
    assert gradient(lambda x: ops.sum(x.T @ x), np.ones((2, 2)))[0].tolist() == [[4, 4], [4, 4]]


def test_a_traced_tensor_has_a_shape_and_a_truth_value() -> None:
    def function(x: Any) -> Any:
        assert x.shape == (2, 2)
        assert x.ndim == 2
        assert x.size == 4
        assert len(x) == 2
        assert x.dtype == np.float64
        assert ops.is_tensor(x)
        assert ops.dtype(x) == "float64"
        assert "traced" in repr(x)
        rows = [ops.sum(row) for row in x]
        return rows[0] if ops.sum(x) > 0 else rows[1]

    assert gradient(function, np.ones((2, 2)))[0].tolist() == [[1, 1], [0, 0]]


def test_a_traced_tensor_makes_its_items_when_they_are_asked_for(monkeypatch: pytest.MonkeyPatch) -> None:
    made: list[int] = []

    def function(x: Any) -> Any:
        read = type(x).__getitem__
        with monkeypatch.context() as patched:
            patched.setattr(type(x), "__getitem__", lambda self, key: made.append(key) or read(self, key))
            first = next(iter(x))
        return ops.sum(first)

    assert gradient(function, np.ones((3, 2)))[0].tolist() == [[1, 1], [0, 0], [0, 0]]
    assert made == [0]


def test_comparisons_give_tensors_that_are_not_traced() -> None:
    def function(x: Any) -> Any:
        assert type(x > 1) is np.ndarray
        assert type(x == x) is np.ndarray
        assert type(ops.argmax(x)) is np.ndarray
        return ops.sum(x)

    gradient(function, [1.0, 2.0])


REFUSALS: dict[str, Any] = {
    "numpy.sin": lambda x: np.sin(x),
    "numpy.add.reduce": lambda x: np.add.reduce(x),
    "numpy.linalg": lambda x: np.linalg.norm(x),
    "numpy.stack": lambda x: np.stack([x, x]),
    "a function of NumPy": lambda x: np.array([x, x]),
    "asarray": lambda x: np.asarray(x),
    r"float\(\)": lambda x: float(x[0]),
    r"int\(\)": lambda x: int(x[0]),
    r"complex\(\)": lambda x: complex(x[0]),
    "index": lambda x: [1, 2][x[0]],
    "changed in place": lambda x: x.__setitem__(0, 1.0),
    "write x = x": lambda x: np.add(x, 1, out=np.zeros(2)),
}


@pytest.mark.parametrize("named", REFUSALS)
def test_a_use_that_would_lose_the_gradient_is_refused(named: str) -> None:
    with pytest.raises(TracedTensorError, match="a function of NumPy" if named == "asarray" else named) as caught:
        gradient(REFUSALS[named], [1.0, 2.0])
    assert type(caught.value) is TracedTensorError


def test_adding_a_traced_tensor_to_an_array_in_place_is_refused() -> None:
    def function(x: Any) -> Any:
        total = np.zeros(2)
        total += x
        return ops.sum(total)

    with pytest.raises(TracedTensorError, match=r"write x = x \+ y"):
        gradient(function, [1.0, 2.0])


def test_the_error_for_a_missing_method_names_the_op() -> None:
    with pytest.raises(AttributeError, match=r"use ops\.std\(x"):
        gradient(lambda x: x.std(), [1.0])


WITHOUT: dict[str, Any] = {
    "view": lambda x: ops.view(x, "int64"),
    "arange": lambda x: ops.arange(x),
    "logspace": lambda x: ops.logspace(x, 2.0),
    "kaiser": lambda x: ops.kaiser(3, x),
}


@pytest.mark.parametrize("op", sorted(REFUSED))
def test_an_op_without_a_gradient_raises_with_the_reason(op: str) -> None:
    with pytest.raises(UnsupportedOpError, match=f"{op}.*has no gradient"):
        gradient(WITHOUT[op], 1.0)


def test_a_gradient_by_an_option_that_the_rule_leaves_out_is_refused() -> None:
    with pytest.raises(UnsupportedOpError, match="has no gradient with respect to its argument 'shift'"):
        gradient(lambda x: ops.sum(ops.roll([1.0, 2.0], x)), 5.0)


def test_an_op_of_another_backend_inside_is_refused() -> None:
    def function(x: Any) -> Any:
        with ops.use_backend("mlx" if ops.get_backend() != "mlx" else "torch"):
            return ops.sin(x)

    installed = set(ops.available_backends())
    if not {"mlx", "torch"} <= installed:
        pytest.skip("needs two backends")
    with pytest.raises(BackendMismatchError, match="being differentiated on"):
        gradient(function, 1.0)


def test_lists_of_traced_tensors_become_tensors() -> None:
    assert gradient(lambda x: ops.sum(ops.multiply([x, [x[1], 2.0]], [[1.0, 2.0], [3.0, 4.0]])), [5.0, 6.0])[
        0
    ].tolist() == [1, 5]
    assert gradient(lambda x: ops.sum(ops.stack([x, x])), [1.0])[0].tolist() == [2]
    assert gradient(lambda x: ops.einsum("i,i->", x, x), [1.0, 2.0])[0].tolist() == [2, 4]


def test_traced_tensors_inside_options_are_refused() -> None:
    with pytest.raises(EmberError):
        gradient(lambda x: ops.take([1.0, 2.0], x), [0.5])
    for hidden in (
        lambda x: ops.histogram([1.0, 2.0], 3, (0.0, x))[1],
        lambda x: ops.roll([[1.0]], (x, 0), (0, 1)),
        lambda x: ops.slice([1.0, 2.0], (x,), (1,)),
    ):
        with pytest.raises(EmberError, match=r"no gradient|where it cannot be followed|must be an integer"):
            gradient(hidden, 1.0)


def test_derivatives_of_every_order() -> None:
    def nth(function: Any, n: int) -> Any:
        return function if n == 0 else nth(lambda x: gradient_inside(function, x), n - 1)

    def gradient_inside(function: Any, x: Any) -> Any:
        outputs, pull = backward.pullback(current(), lambda x: [function(x)], [x])
        return pull([ops.ones_like(outputs[0])])[0]

    x = np.asarray(0.3)
    for n, wanted in enumerate((math.sin(0.3), math.cos(0.3), -math.sin(0.3), -math.cos(0.3), math.sin(0.3))):
        assert nth(ops.sin, n)(x) == pytest.approx(wanted)


def test_nested_derivatives_do_not_mix_their_levels() -> None:
    """Perturbation confusion, by the example of Siskind and Pearlmutter: d/dx (x * d/dy (x + y)) is 1, not 2."""
    inner = ops.grad(lambda x: ops.multiply(x, ops.grad(lambda y: ops.add(x, y))(1.0)))
    assert inner(1.0) == 1.0


def test_an_error_does_not_change_the_next_call() -> None:
    def failing(x: Any) -> Any:
        ops.sin(x)
        raise RuntimeError("in the middle")

    wanted = gradient(ops.sin, 0.5)[0]
    with pytest.raises(RuntimeError, match="in the middle"):
        gradient(failing, 0.5)
    with pytest.raises(EmberError):
        gradient(lambda x: ops.matmul(x, np.ones((5, 5))), np.ones((2, 2)))
    assert gradient(ops.sin, 0.5)[0] == wanted


def test_the_tape_frees_the_tensors_that_it_held() -> None:
    class Watched(np.ndarray):
        """An array that can have a weak reference."""

    held = []

    def function(x: Any) -> Any:
        y = np.ones(3).view(Watched)
        held.append(weakref.ref(y))
        return ops.sum(ops.multiply(x, y))

    _, pull = backward.pullback(current(), lambda x: [function(x)], [np.ones(3)])
    del pull
    gc.collect()
    assert held[0]() is None


def test_the_pullback_may_be_called_several_times() -> None:
    _, pull = backward.pullback(current(), lambda x: [ops.sin(x), ops.cos(x)], [np.asarray(0.5)])
    one = np.asarray(1.0)
    assert pull([one, None])[0] == pytest.approx(math.cos(0.5))
    assert pull([None, one])[0] == pytest.approx(-math.sin(0.5))
    assert pull([one, one])[0] == pytest.approx(math.cos(0.5) - math.sin(0.5))
    assert pull([None, None])[0] == 0


def _loss(w: Any, scale: float) -> Any:
    return ops.sum(ops.softmax(ops.multiply(ops.sin(w), scale)) ** 2)


def test_many_threads_give_the_gradients_of_one() -> None:
    w = np.linspace(-1.0, 1.0, 50)
    wanted = [gradient(lambda w, s=scale: _loss(w, s), w)[0] for scale in range(1, 17)]
    barrier = threading.Barrier(16)

    def work(scale: int) -> list[Any]:
        barrier.wait()
        return [gradient(lambda w: _loss(w, scale), w)[0] for _ in range(20)]

    with ThreadPoolExecutor(16) as pool:
        for scale, found in enumerate(pool.map(work, range(1, 17))):
            assert all(np.array_equal(g, wanted[scale]) for g in found)


def test_many_tasks_give_the_gradients_of_one() -> None:
    w = np.linspace(-1.0, 1.0, 20)

    async def work(scale: int) -> Any:
        await asyncio.sleep(0)
        return gradient(lambda w: _loss(w, scale), w)[0]

    async def main() -> list[Any]:
        return await asyncio.gather(*(work(i) for i in range(1, 30)))

    for scale, found in enumerate(asyncio.run(main()), 1):
        assert np.array_equal(found, gradient(lambda w, s=scale: _loss(w, s), w)[0])


def test_the_gradient_of_a_complex_argument_is_the_direction_of_ascent() -> None:
    """With respect to z = a + ib, the gradient of a real function f is df/da + i df/db, as in PyTorch."""
    z = np.array([1.0 + 2.0j, -0.5 + 0.25j])
    found = gradient(lambda z: ops.sum(ops.square(ops.absolute(ops.exp(z)))), z)[0]
    np.testing.assert_allclose(found, 2 * np.exp(2 * z.real))
    found = gradient(lambda z: ops.sum(ops.real(ops.multiply(z, z))), z)[0]
    np.testing.assert_allclose(found, 2 * np.conj(z))


def test_where_stops_the_gradient_of_nan() -> None:
    def safe(x: Any) -> Any:
        positive = ops.greater(x, 0)
        return ops.sum(ops.where(positive, ops.log(ops.where(positive, x, 1.0)), 0.0))

    assert gradient(safe, [-1.0, 0.0, 2.0])[0].tolist() == [0, 0, 0.5]


def test_tracing_does_not_change_the_code_of_an_op() -> None:
    ops.sin(np.ones(1))  # the first call of an op changes its code
    code = ops.sin.__code__
    gradient(lambda x: ops.sin(x), 1.0)
    ops.sin(np.ones(1))
    assert ops.sin.__code__ is code or ops.sin.__code__.co_names == code.co_names


@pytest.mark.parametrize(
    ("op", "call"),
    [
        ("tanh_shrink", lambda x: ops.tanh_shrink(x)),
        ("normalize", lambda x: ops.normalize(x, order=3)),
    ],
)
def test_a_backend_that_watches_ops_is_told_of_composites_that_the_tape_opens(op: str, call: Any) -> None:
    """Without `body_of`, the log of a gradient on NumPy would lack the composites that the log on PyTorch has."""
    log: list[str] = []

    class Watching(type(current())):  # type: ignore[misc]
        def body_of(self, spec: OpSpec) -> Callable[..., Any]:
            body = super().body_of(spec)

            def run(*args: Any, **kwargs: Any) -> Any:
                log.append(spec.name)
                return body(*args, **kwargs)

            return run

    def loss(x: Any) -> Any:
        return ops.sum(ops.square(call(x)))

    expected = ops.grad(loss)([0.5, 2.0, 4.0]).tolist()
    with ops.use_backend(Watching()):
        assert ops.grad(loss)([0.5, 2.0, 4.0]).tolist() == expected
    assert op in log


def test_a_gradient_has_the_dtype_of_its_argument_beside_wider_ones(backend: str) -> None:
    single, wide = ops.ones((2, 3), dtype="float32"), ops.ones((2, 3), dtype="float64")
    row, column = ops.ones(3, dtype="float32"), ops.ones((2, 1), dtype="float32")
    for fn, x in (
        (lambda x: ops.multiply(x, wide), single),
        (lambda x: ops.add(x, wide), row),
        (lambda x: ops.multiply(x, wide), column),
        (lambda x: ops.add(ops.multiply(x, wide), x), single),
        (lambda x: ops.stack([x, wide, ops.multiply(x, wide)]), single),
        (lambda x: ops.cast(x, "float64"), single),
        (lambda x: ops.matmul(x, ops.transpose(wide)), single),
    ):

        def loss(x: Any, fn: Any = fn) -> Any:
            return ops.sum(fn(x))

        with ops.checked():  # so that the tape differentiates on MLX too
            for gradient in (
                ops.grad(loss)(x),
                ops.jacobian(loss)(x),
                ops.grad(lambda x: ops.sum(ops.grad(loss)(x)))(x),
            ):
                assert ops.dtype(gradient).name == "float32"


def test_results_that_nothing_uses_have_no_part_in_a_gradient(backend: str) -> None:
    x = ops.array([[2.0, 0.5], [0.5, 1.0]])
    with ops.checked():  # so that the tape differentiates on MLX too
        gradient = ops.grad(lambda x: ops.sum(ops.eigh(x)[0]))(x)  # the sum of the eigenvalues is the trace
        other = ops.grad(lambda x: ops.sum(ops.split(x, 2, axis=1)[1]))(x)
    assert np.allclose(ops.to_numpy(gradient), np.eye(2), atol=1e-6)
    assert other.tolist() == [[0.0, 1.0], [0.0, 1.0]]
