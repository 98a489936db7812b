"""Small parameters are computed in vectors: with the same bits, and without a trace of it elsewhere."""

import copy
import gc
import itertools
import pickle
import weakref
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest

from emberharmony import Buffer, Parameter, errors, ops, optim, to_backend
from emberharmony.backend.base import Backend
from emberharmony.backend.discovery import BUILTIN, is_installed
from emberharmony.core import selection
from emberharmony.optim import declarations, layout, numbers
from emberharmony.optim.vectors import SharedBuffer, Vectors
from tests.ops.trees import lists

INSTALLED = [name for name in BUILTIN if is_installed(name)]
pairs = pytest.mark.parametrize("here, there", list(itertools.permutations(INSTALLED, 2)))
SHAPES = [(4, 3), (), (17,), (0, 2), (1,), (5, 7, 2), (300,), (33,), (2, 2)]
KINDS: dict[str, Callable[..., optim.Optimizer]] = {
    "SGD": lambda p=None: optim.SGD(p, lr=0.1, weight_decay=0.1),
    "momentum": lambda p=None: optim.SGD(p, lr=0.1, momentum=0.9, nesterov=True, maximize=True),
    "Adam": lambda p=None: optim.Adam(p, lr=0.1, amsgrad=True, weight_decay=0.1),
    "AdamW": lambda p=None: optim.AdamW(p, lr=optim.schedules.cosine(0.1, 30)),
    "Adamax": lambda p=None: optim.Adamax(p, weight_decay=0.1),
    "NAdam": lambda p=None: optim.NAdam(p, weight_decay=0.1),
    "RAdam": lambda p=None: optim.RAdam(p, betas=(0.9, 0.99), weight_decay=0.1),
    "Adagrad": lambda p=None: optim.Adagrad(p, lr_decay=0.1, initial_accumulator_value=0.5),
    "Adadelta": lambda p=None: optim.Adadelta(p, weight_decay=0.1),
    "RMSprop": lambda p=None: optim.RMSprop(p, centered=True, momentum=0.9, eps=1e-3),
    "Rprop": lambda p=None: optim.Rprop(p),
    "ASGD": lambda p=None: optim.ASGD(p, lambd=0.1, t0=3, weight_decay=0.1),
    "Lion": lambda p=None: optim.Lion(p, lr=0.01, weight_decay=0.1),
}
kinds = pytest.mark.parametrize("kind", KINDS)
ELEMENTWISE = {each for each in vars(optim).values() if declarations.is_elementwise(getattr(each, "rule", None))}


def cells_of(dtype: str = "float32") -> list[Parameter]:
    rng = np.random.default_rng(2)
    return [Parameter(ops.cast(ops.convert_to_tensor(rng.normal(size=shape)), dtype)) for shape in SHAPES]


def rows_of(dtype: str = "float32", steps: int = 8) -> list[list[Any]]:
    rng = np.random.default_rng(3)
    scales = 10.0 ** rng.integers(-3, 3, size=steps)
    rows = [[np.asarray(rng.normal(size=shape) * scale) for shape in SHAPES] for scale in scales]
    return [[ops.cast(ops.convert_to_tensor(x), dtype) for x in row] for row in rows]


def trained(optimizer: optim.Optimizer, rows: list[list[Any]]) -> list[Any]:
    cells = optimizer.param_groups[0]["params"]
    for row in rows:
        optimizer.step({cell: g for cell, g in zip(cells, row, strict=True) if g is not None})
    return [bits(cell) for cell in cells]


def bits(cell: Any) -> tuple[Any, bytes]:
    array = ops.to_numpy(ops.cast(cell.value, "float64" if "64" in ops.dtype(cell.value).name else "float32"))
    # Which NaN an operation gives depends on the place of the element.
    return array.shape, np.where(np.isnan(array), array.dtype.type(np.nan), array).tobytes()


def states_of(optimizer: optim.Optimizer) -> list[Any]:
    cells = optimizer.param_groups[0]["params"]
    entries = [optimizer.state.get(cell, {}) for cell in cells]
    return [{name: x if numbers.is_python(x) else bits(Buffer(x)) for name, x in entry.items()} for entry in entries]


def flat(x: Any) -> Iterator[Any]:
    """Yields the shapes, bytes and numbers in what `trained` and `states_of` return."""
    for each in [x[name] for name in sorted(x)] if isinstance(x, dict) else x:
        yield from flat(each) if isinstance(each, (dict, list, tuple)) else [each]


def assert_same(found: Any, expected: Any, dtype: str = "float32") -> None:
    """Asserts that bits are equal, but for the roundings that programs of JAX leave out, and those of PyTorch at times.

    PyTorch's lists and kernels of 16 bits round as the ops do.
    """
    if ops.get_backend() not in ("jax", "torch") or (ops.get_backend() == "torch" and "16" in dtype):
        assert found == expected
        return
    limit = {"float16": 2e-3, "float32": 2e-6, "float64": 1e-14}[dtype]
    dtype = "float32" if dtype == "float16" else dtype  # as which `bits` reads it
    for ours, wanted in zip(flat(found), flat(expected), strict=True):
        if not isinstance(wanted, bytes):
            assert ours == wanted
            continue
        one, other = np.frombuffer(ours, dtype), np.frombuffer(wanted, dtype)
        largest = np.abs(other[np.isfinite(other)]).max(initial=1.0)
        np.testing.assert_allclose(one, other, rtol=limit, atol=limit * largest)


def shares(optimizer: optim.Optimizer) -> list[SharedBuffer]:
    return [x for entry in optimizer.state.values() for x in entry.values() if isinstance(x, SharedBuffer)]


def in_vectors(optimizer: optim.Optimizer) -> int:
    """Returns how many buffers of the state are parts of vectors."""
    return sum(isinstance(share._held[1], Vectors) for share in shares(optimizer))


@pytest.fixture(autouse=True)
def few(monkeypatch: pytest.MonkeyPatch) -> None:
    """Lets as few parameters as there are here make a vector, also for a rule without state."""
    monkeypatch.setattr(layout, "FEWEST", 2)


@pytest.fixture
def alone(monkeypatch: pytest.MonkeyPatch) -> Callable[..., Any]:
    """Returns the function that trains without vectors, and returns the parameters and the states."""

    def run(kind: str, rows: list[list[Any]], dtype: str = "float32") -> Any:
        with monkeypatch.context() as patch:
            patch.setattr(layout, "FEWEST", 10**6)
            optimizer = KINDS[kind](cells_of(dtype))
            found = trained(optimizer, rows)
            assert not shares(optimizer)
            return found, states_of(optimizer)

    return run


def test_each_rule_that_works_element_by_element_is_tested() -> None:
    assert {type(kind()) for kind in KINDS.values()} == ELEMENTWISE


@pytest.mark.sampled(3)
@pytest.mark.parametrize("dtype", ["float32", "float64", "float16", "bfloat16"])
@kinds
def test_vectors_give_the_same_bits(kind: str, dtype: str, alone: Callable[..., Any], backend: str) -> None:
    try:
        ops.zeros((1,), dtype)
    except errors.DTypeError:
        pytest.skip(f"{backend} lacks {dtype}")
    rows = rows_of(dtype)
    optimizer = KINDS[kind](cells_of(dtype))
    found = trained(optimizer, rows)
    assert in_vectors(optimizer) == len(shares(optimizer))
    assert_same((found, states_of(optimizer)), alone(kind, rows, dtype), dtype)


@pytest.mark.slow
@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("kind", ["momentum", "AdamW", "RMSprop", "Lion"])
def test_long_vectors_give_the_same_bits(kind: str, dtype: str, monkeypatch: pytest.MonkeyPatch, backend: str) -> None:
    rng = np.random.default_rng(4)
    shapes = [(int(n),) for n in rng.integers(1, 5000, size=60)]
    monkeypatch.setattr("tests.optim.test_vectors.SHAPES", shapes)
    rows = rows_of(dtype, 4)
    found = trained(KINDS[kind](cells_of(dtype)), rows)
    monkeypatch.setattr(layout, "FEWEST", 10**6)
    assert_same(found, trained(KINDS[kind](cells_of(dtype)), rows), dtype)


@kinds
def test_parameters_may_lack_gradients(kind: str, alone: Callable[..., Any], backend: str) -> None:
    rows = [
        [None if (i + j) % 3 == 0 or (i > 4 and j < 5) else x for j, x in enumerate(row)]
        for i, row in enumerate(rows_of())
    ]
    optimizer = KINDS[kind](cells_of())
    assert_same((trained(optimizer, rows), states_of(optimizer)), alone(kind, rows))


@pytest.mark.sampled(3)
@kinds
def test_reading_and_assigning_the_state(kind: str, alone: Callable[..., Any], backend: str) -> None:
    rows = rows_of()
    optimizer = KINDS[kind](cells_of())
    trained(optimizer, rows[:3])
    kept = shares(optimizer)
    states_of(optimizer)
    trained(optimizer, rows[3:4])
    for share in kept:
        share.value = ops.copy(share.value)
    trained(optimizer, rows[4:5])
    optimizer.load_state_dict(optimizer.state_dict())
    found = trained(optimizer, rows[5:]), states_of(optimizer)
    if kind in ("Adam", "AdamW"):
        assert_same(found, alone(kind, rows))
    else:
        assert found == alone(kind, rows)


def test_a_buffer_stays_the_same_object(backend: str) -> None:
    rows = rows_of()
    optimizer = KINDS["NAdam"](cells := cells_of())
    trained(optimizer, rows[:1])
    average = optimizer.state[cells[0]]["exp_avg"]
    first = bits(average)
    trained(optimizer, rows[1:2])
    second = bits(average)
    assert first != second
    assert optimizer.state[cells[0]]["exp_avg"] is average
    trained(optimizer, [[None, *row[1:]] for row in rows[2:4]])
    assert bits(average) == second
    assert optimizer.state[cells[0]]["exp_avg"] is average
    trained(optimizer, rows[4:5])
    assert bits(average) != second
    assert repr(average) == "Buffer(shape=(4, 3), dtype=float32)"
    assert type(pickle.loads(pickle.dumps(average))) is type(copy.deepcopy(average)) is SharedBuffer
    assert bits(pickle.loads(pickle.dumps(average))) == bits(copy.deepcopy(average)) == bits(average)


def test_parameters_that_are_exchanged_are_used(alone: Callable[..., Any], backend: str) -> None:
    rows = rows_of()
    optimizer = KINDS["AdamW"](cells := cells_of())
    trained(optimizer, rows[:3])
    cells[2].value = ops.ones((17,))
    cells[5].to("float16").to("float32")
    found = trained(optimizer, rows[3:])
    other = cells_of()
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(layout, "FEWEST", 10**6)
        single = KINDS["AdamW"](other)
        trained(single, rows[:3])
        other[2].value = ops.ones((17,))
        other[5].to("float16").to("float32")
        assert_same(found, trained(single, rows[3:]))


def test_parameters_that_change_their_dtype_are_computed_alone(backend: str) -> None:
    optimizer = KINDS["AdamW"](cells := cells_of())
    rows = rows_of()
    trained(optimizer, rows[:2])
    for cell in cells[:5]:
        cell.to("float16")
    row = [ops.cast(x, "float16") if i < 5 else x for i, x in enumerate(rows[2])]
    trained(optimizer, [row, row])
    assert [ops.dtype(cell.value).name for cell in cells] == ["float16"] * 5 + ["float32"] * 4


@pairs
@kinds
def test_training_goes_on_on_another_backend(kind: str, here: str, there: str) -> None:
    with ops.use_backend(here):
        rows = rows_of()
        expected = trained(KINDS[kind](cells_of()), rows)
        optimizer = KINDS[kind](cells_of())
        trained(optimizer, rows[:3])
    with ops.use_backend(there):
        trained(optimizer, rows_of()[3:5])
        trained(to_backend(optimizer, there), rows_of()[5:6])
    with ops.use_backend(here):
        found = trained(optimizer, rows[6:])
    for (shape, ours), (_, wanted) in zip(found, expected, strict=True):
        pair = (np.frombuffer(each, "f4").reshape(shape) for each in (ours, wanted))
        np.testing.assert_allclose(*pair, rtol=1e-4, atol=1e-5)


def test_large_parameters_are_computed_alone(monkeypatch: pytest.MonkeyPatch, backend: str) -> None:
    monkeypatch.setattr(layout, "FEWEST", 4)
    monkeypatch.setattr(type(selection.current()), "joinable", 34)
    monkeypatch.setattr(layout, "LONGEST", 60)
    rows = rows_of()
    optimizer = KINDS["NAdam"](cells_of())
    found = trained(optimizer, rows)
    # Of the nine, (5, 7, 2) and (300,) are large; a vector takes the first five of the others, two are left.
    assert in_vectors(optimizer) == 10
    monkeypatch.setattr(layout, "FEWEST", 10**6)
    assert_same(found, trained(KINDS["NAdam"](cells_of()), rows))


def test_an_error_leaves_everything_as_before(backend: str) -> None:
    optimizer = KINDS["AdamW"](cells := cells_of())
    rows = rows_of()
    trained(optimizer, rows[:2])
    before = pickle.dumps(optimizer)
    with pytest.raises(errors.ShapeError, match=r"the gradient of Parameter\(shape=\(2, 2\).* has shape \(3,\)"):
        trained(optimizer, [[*rows[2][:-1], ops.ones((3,))]])
    assert pickle.dumps(optimizer) == before
    del cells
    copied = copy.deepcopy(optimizer)
    assert trained(copied, rows[2:]) == trained(optimizer, rows[2:])


def test_no_tensor_stays_alive(backend: str) -> None:
    optimizer = KINDS["NAdam"](cells := cells_of())
    rows = rows_of()
    trained(optimizer, rows[:3])
    kept = optimizer.state[cells[0]]["exp_avg"]
    seen = {id(share._held[1]): weakref.ref(share._held[1]) for share in shares(optimizer)}
    trained(optimizer, rows[3:4])
    gc.collect()
    assert [ref() for ref in seen.values()] == [None]
    # Parameters without a gradient do not keep the vectors of the others.
    held = weakref.ref(kept._held[1])
    trained(optimizer, [[None, None, *row[2:]] for row in rows[4:6]])
    gc.collect()
    assert held() is None
    layouts = len(optim.optimizer._LAYOUTS)
    last = weakref.ref(optimizer)
    del optimizer, cells
    gc.collect()
    assert last() is None
    assert len(optim.optimizer._LAYOUTS) < layouts + 1
    assert tuple(kept.value.shape) == (4, 3)


def test_a_value_does_not_keep_the_memory_of_others(backend: str) -> None:
    optimizer = KINDS["AdamW"](cells := cells_of())
    trained(optimizer, rows_of()[:2])
    if backend == "numpy":
        assert all(cell.value.base is None or cell.value.base.size == cell.value.size for cell in cells)
    if backend == "torch":
        assert all(cell.value.untyped_storage().nbytes() == cell.value.nbytes for cell in cells)


class Keys(optim.SGD):
    """A rule that works element by element, whose state is empty after some steps."""

    @staticmethod
    @optim.elementwise
    def rule(gradient: Any, parameter: Any, state: Any, hyper: Any) -> Any:
        found, state = optim.SGD.rule(gradient, parameter, state, hyper)
        return found, {} if hyper["momentum"] == 0.0 else state


def test_the_names_in_a_state_may_change(backend: str) -> None:
    optimizer = Keys(cells := cells_of(), momentum=0.9)
    trained(optimizer, rows_of()[:2])
    optimizer.param_groups[0]["momentum"] = 0.0
    trained(optimizer, rows_of()[2:5])
    assert [optimizer.state[cell] for cell in cells] == [{}] * len(cells)
    assert lists(cells[3].value) == []


class Longest(optim.SGD):
    """A rule that depends on the other elements of a parameter, of a class whose rule does not."""

    @staticmethod
    def rule(gradient: Any, parameter: Any, state: Any, hyper: Any) -> Any:
        return ops.subtract(parameter, ops.max(ops.abs(gradient))), state


def test_a_subclass_with_another_rule_is_computed_alone(backend: str) -> None:
    cells = [Parameter([0.0, 0.0]) for _ in range(5)]
    Longest(cells).step({cell: [float(i), 1.0] for i, cell in enumerate(cells)})
    assert lists([cell.value for cell in cells]) == [[-1.0] * 2, [-1.0] * 2, [-2.0] * 2, [-3.0] * 2, [-4.0] * 2]


def test_a_rule_without_state_needs_more_parameters(monkeypatch: pytest.MonkeyPatch, backend: str) -> None:
    monkeypatch.setattr(layout, "FEWEST", 4)
    monkeypatch.setattr(type(selection.current()), "has_kernel", lambda *given: False)
    calls = []
    joined = type(selection.current()).as_vector
    monkeypatch.setattr(type(selection.current()), "as_vector", lambda *given: calls.append(given) or joined(*given))
    for count, kind, vector in (
        (15, KINDS["SGD"], False),
        (16, KINDS["SGD"], True),
        (3, optim.Adam, False),
        (4, optim.Adam, True),
    ):
        cells = [Parameter([1.0]) for _ in range(count)]
        kind(cells).step({cell: [1.0] for cell in cells})
        assert bool(calls) is vector
        calls.clear()


def test_a_backend_joins_and_parts_as_the_others(backend: str) -> None:
    native = selection.current()
    tensors = [ops.convert_to_tensor(np.full(shape, i, "f4")) for i, shape in enumerate(SHAPES)]
    vector = native.as_vector(tensors)
    assert lists(vector) == lists(Backend.as_vector(native, tensors))
    for found in (native.split_vector(vector, tensors), Backend.split_vector(native, vector, tensors)):
        assert [tuple(x.shape) for x in found] == SHAPES
        assert lists(found) == lists(tensors)


@kinds
def test_a_step_inside_of_a_transform_is_refused(kind: str, backend: str) -> None:
    cells = cells_of()
    optimizer = KINDS[kind](cells)
    trained(optimizer, rows_of()[:2])
    before = pickle.dumps(optimizer)

    def traced(gradient: Any) -> Any:
        optimizer.step({cell: ops.multiply(x, gradient) for cell, x in zip(cells, rows_of()[2], strict=True)})
        return gradient

    with pytest.raises(errors.TracedTensorError, match="would keep a tensor that is being differentiated"):
        ops.grad(traced)(ops.ones(()))
    assert pickle.dumps(optimizer) == before
