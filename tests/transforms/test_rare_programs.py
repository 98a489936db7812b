"""What records, tapes and maps make of rare results, of errors, and of ops of the user's own."""

import copy
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest

import emberharmony
from emberharmony import Parameter, errors, ops
from emberharmony.backend.numpy import NumpyBackend
from emberharmony.core import selection
from emberharmony.core.dispatch import op
from emberharmony.core.registry import OPS
from emberharmony.transforms.batch_tape import Rows
from emberharmony.transforms.recorder import Recorder, UnrecordableError
from emberharmony.types import Operand, Tensor, TensorLike

X = np.arange(6.0, dtype=np.float32).reshape(2, 3)


def recorder(*tensors: Any) -> Recorder:
    return Recorder(selection.current(), list(tensors))


@pytest.fixture
def register_op() -> Iterator[Callable[..., Any]]:
    """Registers ops until the end of the test."""
    names: list[str] = []

    def register(function: Any) -> Any:
        names.append(function.__name__)
        return emberharmony.register_op(function)

    yield register
    for name in names:
        del OPS[name]


def test_an_error_in_the_body_of_an_op_is_typed_while_it_is_recorded(register_op: Any, backend: str) -> None:
    @register_op
    def test_keyed(x: TensorLike, key: str) -> Any:
        return ops.add(x, {"a": 1.0}[key])

    x = ops.ones(2)
    traced = recorder(x).tensor(0)
    assert ops.to_numpy(test_keyed(traced, "a").value).tolist() == [2.0, 2.0]
    with pytest.raises(errors.EmberError) as wanted:
        test_keyed(x, "b")
    with pytest.raises(type(wanted.value), match=r"test_keyed\(\) on backend"):
        test_keyed(traced, "b")


@pytest.mark.parametrize(
    ("results", "message"),
    [
        (lambda given, fresh: (fresh, 3), "with something else than tensors"),
        (lambda given, fresh: [given, fresh], "returns an argument in a tuple"),
    ],
)
def test_results_that_a_program_cannot_repeat_are_refused(results: Any, message: str, backend: str) -> None:
    x = ops.ones(2)
    record = recorder(x)
    with pytest.raises(UnrecordableError, match=message):
        record.note_call("op", (x,), {}, results(x, ops.zeros(2)))
    with pytest.raises(UnrecordableError, match="it draws random numbers"):
        record.draw(lambda: 3.0)
    assert record.calls == []


def test_a_result_that_is_an_output_twice_takes_the_memory_of_no_input() -> None:
    with ops.use_backend("numpy"):
        record = recorder(ops.ones(2), ops.ones(2))
        key = ops.add(record.tensor(0), record.tensor(1)).key
        assert record.program(2, [key])[0].output_slots == {key: 1}
        assert record.program(2, [key, key])[0].output_slots is None


def test_the_shape_of_an_op_may_be_asked_for_in_a_transform(quick: str) -> None:
    def function(row: Any) -> Any:
        return ops.multiply(ops.sum(row), len(ops.eval_shape(lambda: ops.exp(ops.stack([row, row]))).shape))

    def direct(row: Any) -> Any:
        return ops.multiply(ops.sum(row), ops.eval_shape(lambda: ops.exp(row)).shape[0])

    for called, factor in ((function, 2.0), (direct, 3.0)):
        assert ops.vmap(called)(ops.asarray(X)).tolist() == (factor * X.sum(1)).tolist()
        assert ops.grad(called)(ops.asarray(X[0])).tolist() == [factor] * 3
        compiled = ops.compile(called)
        assert [compiled(ops.asarray(row)).tolist() for row in X] == (factor * X.sum(1)).tolist()


def test_a_slice_by_numbers_of_numpy_is_compiled(quick: str) -> None:
    compiled = ops.compile(lambda x: ops.get_item(x, slice(np.int64(0), np.int64(1))))
    assert [compiled(X).tolist() for _ in range(3)] == [X[:1].tolist()] * 3


def test_rows_can_be_copied() -> None:
    rows = Rows(X)
    for found in (copy.copy(rows), copy.deepcopy(rows)):
        assert (found.shape, found.dtype, found.itemsize) == ((3,), X.dtype, 4)
        assert np.array_equal(found.whole, X)


def test_an_op_that_returns_a_number_is_mapped_slice_by_slice(register_op: Any, backend: str) -> None:
    @register_op
    def test_total(x: TensorLike) -> Any:
        return float(ops.to_numpy(ops.sum(x)))

    assert ops.vmap(lambda row: ops.multiply(row, test_total(row)))(ops.asarray(X)).tolist() == [
        [0.0, 3.0, 6.0],
        [36.0, 48.0, 60.0],
    ]


def test_a_function_inside_of_a_map_may_read_values(backend: str) -> None:
    def doubled_above_two(x: Any) -> Any:
        return ops.multiply(x, 2.0) if float(x) > 2 else x

    found = ops.vmap(lambda row: ops.map(doubled_above_two, row))(ops.asarray(X))
    assert found.tolist() == [[0.0, 1.0, 2.0], [6.0, 8.0, 10.0]]


def test_an_op_without_a_gradient_inside_of_another_is_named_once(register_op: Any) -> None:
    @register_op
    def test_bits(x: TensorLike) -> Any:
        return ops.sum(ops.cast(ops.view(x, "int32"), "float32"))

    with ops.use_backend("numpy"), pytest.raises(errors.UnsupportedOpError) as found:
        ops.grad(test_bits)(X)
    assert str(found.value).startswith("view() on backend 'numpy' has no gradient")
    assert "test_bits" not in str(found.value)


def test_a_primitive_without_a_gradient_rule_is_named_with_the_way_out() -> None:
    @op(elementwise=True)
    def test_sine(x: Operand) -> Tensor: ...

    class WithSine(NumpyBackend):
        name = "with sine"
        test_sine = staticmethod(np.sin)

    try:
        with ops.use_backend(WithSine()):
            assert ops.grad(lambda x: ops.sum(ops.multiply(test_sine(ops.stop_gradient(x)), x)))(X).shape == (2, 3)
            with pytest.raises(errors.UnsupportedOpError, match=r"test_sine\(\).*no rule.*register_vjp\('test_sine'\)"):
                ops.grad(lambda x: ops.sum(test_sine(x)))(X)
    finally:
        del OPS["test_sine"]


def test_a_parameter_of_integers_beside_others_has_no_gradient(backend: str) -> None:
    weight, ids = Parameter([1.0, 2.0], name="weight"), Parameter([1, 2], name="ids")
    with pytest.raises(errors.DTypeError, match="parameter 'ids' has dtype int64"):
        ops.backward(lambda: ops.sum(weight.value), [weight, ids])
    assert weight.grad is None


def test_the_other_parameters_beside_a_parameter_of_pytorch_have_gradients() -> None:
    torch = pytest.importorskip("torch")
    with ops.use_backend("torch"):
        own, theirs = Parameter([1.0, 2.0]), Parameter(torch.nn.Parameter(torch.tensor([3.0, 4.0])))
        ops.backward(lambda: ops.sum(ops.multiply(own.value, theirs.value)), [own, theirs])
        assert (own.grad.tolist(), theirs.grad.tolist()) == ([3.0, 4.0], [1.0, 2.0])
