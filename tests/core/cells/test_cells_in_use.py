"""Cells in transforms, in loops, in several threads and in commits."""

import sys
import threading
import warnings
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

from emberharmony import Buffer, Parameter, errors, ops
from emberharmony.core.cells.blocks import Assignments
from emberharmony.core.cells.cell import Cell
from emberharmony.core.state.checked_mode import FEW_MOVES
from emberharmony.core.state.commits import commit
from tests.core.cells.pairs import INSTALLED, Named, kind, pairs
from tests.ops.trees import lists, near

pytestmark = pytest.mark.usefixtures("restored")


def quadratic(c: Any) -> Any:
    """Returns 3 * sum(c**2) from a cell: as an operand, by its value, in a list and as an option."""
    return ops.add(
        ops.sum(ops.multiply(c, c.value)),
        ops.sum(ops.square(ops.concatenate([c, c]))),
    )


def test_a_transform_gives_the_function_a_cell_like_its_argument(backend: str) -> None:
    w = Named([1.0, 2.0], ["tag"])
    seen = []

    def loss(c: Any) -> Any:
        seen.append((type(c), c is w, c.tag))
        return quadratic(c)

    assert lists(ops.grad(loss)(w)) == [6.0, 12.0]
    assert lists(ops.value_and_grad(loss)(w)[1]) == [6.0, 12.0]
    assert lists(ops.vjp(loss, w)[1](1.0)[0]) == [6.0, 12.0]
    assert near(ops.jvp(loss, (w,), (w,)), (15.0, 30.0))
    assert lists(ops.hessian(loss)(w)) == [[6.0, 0.0], [0.0, 6.0]]
    assert lists(ops.grad(ops.checkpoint(loss))(w)) == [6.0, 12.0]
    assert lists(ops.vmap(loss)(Named([[1.0, 2.0], [0.0, 1.0]], []))) == [15.0, 3.0]
    assert lists(ops.vmap(ops.grad(loss))(Named([[1.0, 2.0], [0.0, 1.0]], []))) == [[6.0, 12.0], [0.0, 6.0]]
    assert ops.eval_shape(loss, w).shape == ()
    assert near(ops.compile(lambda c: quadratic(c))(w), 15.0)
    assert lists(ops.grad(lambda tree: loss(tree["w"]))({"w": w})["w"]) == [6.0, 12.0]
    assert {kind for kind, _, _ in seen} == {Named}
    assert not any(same for _, same, _ in seen)
    assert w.grad is None
    assert lists(w.value) == [1.0, 2.0]


def test_a_closed_over_cell_is_a_constant_of_a_transform(backend: str) -> None:
    w = Parameter([1.0, 2.0])
    assert lists(ops.grad(lambda x: ops.sum(ops.multiply(w, x)))([3.0, 4.0])) == [1.0, 2.0]
    assert lists(ops.vmap(lambda x: ops.sum(ops.multiply(x, w)))([[1.0, 1.0], [2.0, 0.0]])) == [3.0, 2.0]
    assert lists(ops.jvp(lambda x: ops.multiply(w, x), ([3.0, 4.0],), ([1.0, 1.0],))[1]) == [1.0, 2.0]
    assert ops.eval_shape(lambda x: ops.multiply(x, w), ops.TensorSpec((3, 2))).shape == (3, 2)
    compiled = ops.compile(lambda x: ops.multiply(w, x))
    for _ in range(3):
        assert lists(compiled(ops.ones(2))) == lists(w.value)
        w.value = ops.add(w, 1.0)


def test_backward_differentiates_by_cells_as_operands(backend: str) -> None:
    w, frozen, unused = Parameter([1.0, 2.0]), Parameter(2.0, trainable=False), Parameter([[1.0]])
    loss = ops.backward(lambda: ops.add(quadratic(w), ops.multiply(frozen, ops.sum(w))), [w, frozen, unused])
    assert (lists(loss), lists(w.grad), frozen.grad, lists(unused.grad)) == (21.0, [8.0, 14.0], None, [[0.0]])
    ops.zero_grad(w)
    slope = Parameter(0.5)
    ops.backward(lambda: ops.sum(ops.leaky_relu(ops.multiply(w, -1.0), slope)), [w, slope])
    assert (lists(w.grad), lists(slope.grad)) == ([-0.5, -0.5], -3.0)
    ops.zero_grad(w)
    ops.backward(lambda: ops.sum(ops.multiply(ops.multiply(w, 2.0), w)), w)  # traced first, then the cell
    assert lists(w.grad) == [4.0, 8.0]


def test_a_checkpoint_differentiates_by_the_cells_that_it_closes_over(backend: str) -> None:
    weight, shift, unused, mean = Parameter([1.0, 2.0]), Parameter(1.0), Parameter(3.0), Buffer(0.0)
    calls = []

    def block(x: Any) -> Any:
        calls.append(x)
        y = ops.dropout(ops.add(ops.multiply(weight, x), shift), 0.5)
        mean.value = ops.add(mean, 1.0)
        return ops.square(y)

    def loss(wrap: Any) -> Any:
        return ops.sum(wrap(wrap(ops.multiply(weight, 2.0))))

    found = []
    for wrap in (lambda f: f, ops.checkpoint):
        ops.random.seed(3)
        ops.zero_grad([weight, shift])
        mean.value = 0.0
        total = ops.backward(lambda wrap=wrap: loss(wrap(block)), [weight, shift, unused])
        found.append(lists((total, weight.grad, shift.grad, mean.value)))
    assert found[0] == found[1]
    assert lists(unused.grad) == 0.0
    assert lists(ops.checkpoint(block)([1.0, 1.0])) is not None


def test_a_compiled_function_inside_of_a_loss_reads_the_cells_of_each_step(backend: str) -> None:
    weight = Parameter([1.0, 2.0])
    compiled = ops.compile(lambda x: ops.sum(ops.square(ops.multiply(weight, x))))
    for _ in range(4):
        ops.zero_grad(weight)
        loss = ops.backward(lambda: compiled(ops.array([1.0, 1.0])), weight)
        assert lists(loss) == sum(x * x for x in lists(weight.value))
        assert lists(weight.grad) == [2 * x for x in lists(weight.value)]
        weight.value = ops.add(weight, 1.0)
    of_cell = ops.compile(lambda c: ops.sum(ops.square(c)))
    for _ in range(2):
        assert lists(ops.grad(of_cell)(Parameter([1.0, 2.0]))) == [2.0, 4.0]


def test_what_the_loss_assigns_to_any_cell_is_kept_as_a_plain_tensor(backend: str) -> None:
    w, inside, outside = Parameter([1.0, 2.0]), Buffer(0.0), Buffer([0, 0])

    def loss() -> Any:
        y = ops.sum(ops.square(w))
        inside.value = ops.add(inside, y)
        outside.value = [1, 2]
        assert lists(ops.stop_gradient(inside.value)) == 5.0
        return y

    ops.backward(loss, [w, inside])
    assert (lists(inside.value), lists(outside.value)) == (5.0, [1, 2])
    assert type(inside.value) is kind(backend)
    assert not ops.is_traced(inside.value)

    def failing() -> Any:
        inside.value = ops.sum(ops.square(w))
        raise KeyError

    with pytest.raises(KeyError):
        ops.backward(failing, w)
    assert lists(inside.value) == 5.0


def test_a_cell_does_not_keep_a_traced_tensor(backend: str) -> None:
    state, x = Buffer([0.0, 0.0], name="state"), [1.0, 2.0]

    def assigning(x: Any) -> Any:
        state.value = ops.square(x)
        return ops.sum(x)

    for transform in (
        lambda: ops.grad(assigning)(x),
        lambda: ops.vjp(assigning, x),
        lambda: ops.jvp(assigning, (x,), (x,)),
    ):
        try:
            transform()
        except errors.TracedTensorError as error:
            assert "'state'" in str(error)  # noqa: PT017  (MLX and the forward of a vjp have nothing that is traced)
            assert lists(state.value) == [0.0, 0.0]
        else:
            assert lists(state.value) == [1.0, 4.0]
        state.value = [0.0, 0.0]
    assert ops.eval_shape(assigning, ops.TensorSpec(2)).shape == ()
    assert lists(state.value) == [0.0, 0.0]
    assert lists(ops.vmap(lambda x: assigning(x[None]))([1.0, 2.0])) == [1.0, 2.0]
    assert lists(state.value) == [4.0]  # that of the last slice, because vmap ran as a loop
    with Assignments({state: ops.convert_to_tensor([0.0])}):
        assert lists(ops.vmap(lambda x: assigning(x[None]))([1.0, 3.0])) == [1.0, 3.0]
        assert lists(state.value) == [9.0]
    assert lists(state.value) == [4.0]
    compiled = ops.compile(assigning)
    for value in (1.0, 3.0):
        assert lists(compiled(ops.convert_to_tensor([value, value]))) == 2 * value
        assert lists(state.value) == [value**2] * 2


@pairs
def test_a_traced_tensor_does_not_move(here: str, there: str) -> None:
    ops.set_backend(here)
    w = Parameter([1.0, 2.0], name="w")

    def elsewhere(c: Any) -> Any:
        with ops.use_backend(there):
            ops.add(c, 1.0)

    for run in (
        lambda: ops.backward(lambda: elsewhere(w), w),
        lambda: ops.grad(elsewhere)(w),
        lambda: ops.jvp(elsewhere, (w,), (w,)),
        lambda: ops.eval_shape(elsewhere, w),
    ):
        with pytest.raises(errors.TracedTensorError, match=r"'w'"):
            run()
        assert type(w.value) is kind(here)
        assert lists(w.value) == [1.0, 2.0]

    def added(c: Any) -> Any:
        with ops.use_backend(there):
            host = ops.to_numpy(ops.add(c, 1.0))
        return ops.add(c, ops.convert_to_tensor(host))

    assert lists(ops.vmap(added)(w)) == [3.0, 5.0]  # as a loop, in which each slice is a plain tensor


@pairs
def test_a_move_inside_a_transform_outlives_it(here: str, there: str) -> None:
    with ops.use_backend(there), ops.device("cpu"):
        pass  # from now on the process asks where to make each tensor
    other: list[Parameter] = []
    for run in (
        lambda f: ops.grad(lambda x: ops.sum(f(x)))([1.0, 2.0]),
        lambda f: ops.vmap(f)([1.0, 2.0]),
        lambda f: ops.jvp(f, (1.0,), (1.0,)),
        lambda f: ops.hessian(lambda x: ops.sum(f(x)))([1.0, 2.0]),
        lambda f: ops.eval_shape(f, ops.TensorSpec(2)),
        lambda f: ops.compile(f)(ops.ones(2)),
        lambda f: ops.backward(lambda: ops.sum(f(other[0])), other),
    ):
        ops.set_backend(here)
        w = Buffer([3.0])
        ops.set_backend(there)
        other[:] = [Parameter([1.0, 2.0])]
        run(lambda x, w=w: ops.multiply(w, x))
        assert type(w.value) is kind(there)
        assert lists(ops.grad(lambda c: ops.sum(ops.square(c)))(w)) == [6.0]
        ops.set_backend(here)
        assert lists(w.value) == [3.0]


def test_checked_mode_warns_once_about_a_cell_that_moves_to_and_fro() -> None:
    if len(INSTALLED) < 2:
        pytest.skip("needs two backends")
    here, there = INSTALLED[:2]
    ops.set_backend(here)
    cell = Buffer([1.0], name="restless")

    def moves(count: int) -> list[warnings.WarningMessage]:
        with warnings.catch_warnings(record=True) as seen:
            warnings.simplefilter("always")
            for _ in range(count):
                with ops.use_backend(there if type(cell.value) is kind(here) else here):
                    cell.value
                ops.set_backend(there if ops.get_backend() == here else here)
        return seen

    assert moves(2 * FEW_MOVES) == []
    with ops.checked():
        assert moves(FEW_MOVES) == []
        (seen,) = moves(2 * FEW_MOVES)
        assert issubclass(seen.category, errors.BackendSwitchWarning)
        assert "'restless'" in str(seen.message)
        assert moves(FEW_MOVES) == []


@pytest.fixture
def _hasty() -> Iterator[None]:
    before = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)
    yield
    sys.setswitchinterval(before)


def ran(*targets: Any) -> list[BaseException]:
    """Runs functions in threads, and returns what they raised."""
    raised: list[BaseException] = []

    def guarded(target: Any) -> None:
        try:
            target()
        except BaseException as error:  # noqa: BLE001  (the test shows it)
            raised.append(error)

    threads = [threading.Thread(target=guarded, args=(target,)) for target in targets]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(120)
    return raised


@pytest.mark.usefixtures("_hasty")
@pairs
def test_two_threads_get_exact_copies_each_of_its_own_backend(here: str, there: str) -> None:
    ops.set_backend("numpy")
    cell = Parameter(np.arange(4.0), name="shared")
    cell.grad = cell.value
    ops.set_backend("numpy")

    def reading(name: str) -> None:
        with ops.use_backend(name):
            for _ in range(300):
                assert type(cell.value) is type(cell.grad) is type(ops.add(cell, 1.0)) is kind(name)
                assert lists(cell.value) == lists(cell.grad) == [0.0, 1.0, 2.0, 3.0]

    assert ran(lambda: reading(here), lambda: reading(there)) == []


@pytest.mark.usefixtures("_hasty")
@pairs
def test_a_move_never_overwrites_what_another_thread_assigns(here: str, there: str) -> None:
    cell = Buffer([0.0, 0.0])
    done = threading.Event()

    def writing() -> None:
        with ops.use_backend(here):
            for i in range(1, 300):
                cell.value = [float(i), float(i)]
                assert lists(cell.value) == [i, i]
        done.set()

    def reading() -> None:
        last = 0.0
        with ops.use_backend(there):
            while not done.is_set():
                a, b = lists(cell.value)
                assert a == b >= last
                last = a

    assert ran(writing, reading) == []
    assert lists(cell.value) == [299.0, 299.0]


@pytest.mark.usefixtures("_hasty")
@pairs
def test_two_threads_differentiate_by_one_cell_on_two_backends(here: str, there: str) -> None:
    cells = [Parameter([1.0, 2.0]) for _ in range(2)]

    def training(name: str) -> None:
        mine = Parameter([0.0, 0.0])
        with ops.use_backend(name):
            for _ in range(30):
                ops.grad(lambda c: ops.sum(ops.square(c)))(cells[0])
                loss = ops.backward(lambda: ops.sum(ops.multiply(ops.square(cells[0]), mine)), mine)
                assert type(loss) is kind(name)
                assert not ops.is_traced(cells[1].value)

    def tracing(name: str) -> None:
        with ops.use_backend(name):
            for _ in range(30):
                ops.backward(lambda: ops.sum(ops.square(cells[1])), cells[1])
            ops.eval(cells)  # MLX computes a tensor only in the thread that made it

    assert ran(lambda: training(here), lambda: tracing(there)) == []
    assert lists(cells[1].grad) == [60.0, 120.0]


def test_the_base_class_is_not_trained(backend: str) -> None:
    assert Cell([1.0]).trainable is Buffer([1.0]).trainable is False
    with pytest.raises(errors.ArgumentError, match="no trainable Parameter"):
        ops.backward(lambda: 1.0, [Buffer([1.0])])


def test_several_assignments_are_committed_together(backend: str) -> None:
    first, second = Parameter([1.0]), Buffer(2.0)
    first.grad = ops.ones((1,))
    steps = [first.replace_step([3.0]), second.replace_step(4.0), first.clear_grad_step()]
    assert lists([first.value, second.value, first.grad]) == [[1.0], 2.0, [1.0]]
    commit(steps)
    assert lists([first.value, second.value]) == [[3.0], 4.0]
    assert first.grad is None


def test_no_step_assigns_while_a_loss_runs(backend: str) -> None:
    weight = Parameter([1.0])

    def loss() -> Any:
        commit([weight.replace_step([2.0])])
        return ops.sum(weight.value)

    with pytest.raises(errors.TracedTensorError, match=r"cannot change in the loss function of ops\.backward"):
        ops.backward(loss, weight)
    assert lists(weight.value) == [1.0]
