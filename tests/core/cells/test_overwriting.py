"""A step writes into the memory of tensors only if nobody can tell it from a step that makes new ones."""

import copy
import pickle
import signal
import sys
import threading
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from emberharmony import Parameter, ops, optim
from emberharmony.core import selection
from emberharmony.core.cells.overwriting import COUNTED, OVERWRITINGS, WATCHES, Overwriting
from emberharmony.optim import layout

pytestmark = pytest.mark.skipif(not COUNTED, reason="counts of references are not exact without the GIL")
SIZE = 3000


@pytest.fixture(params=["whole", "blocks"])
def way(request: pytest.FixtureRequest, backend: str, monkeypatch: pytest.MonkeyPatch) -> str:
    """Lets NumPy compute parameters whole, or in blocks, and PyTorch by its kernels, or by ops."""
    if backend not in ("numpy", "torch"):
        pytest.skip(f"{backend} cannot write into tensors")
    monkeypatch.setattr(layout, "FEWEST", 10**6)
    if request.param == "blocks":
        monkeypatch.setattr("emberharmony.backend.numpy.flow.programs.BLOCK", 1000)
        if backend == "torch":
            monkeypatch.setattr("emberharmony.backend.torch.flow.steps.KERNELS", {})
    return str(request.param)


def begun(count: int = 3, **options: Any) -> tuple[list[Parameter], Callable[[], None]]:
    """Returns parameters, and a step that adds one to each element of them, after two steps."""
    cells = [Parameter(ops.zeros((SIZE,))) for _ in range(count)]
    optimizer = optim.SGD(cells, lr=1.0, **options)

    def step() -> None:
        optimizer.step({cell: ops.full((SIZE,), -1.0) for cell in cells})

    step()
    step()
    return cells, step


def first(cell: Parameter) -> float:
    values = ops.to_numpy(cell.value)
    assert (values == values[0]).all()
    return float(values[0])


def same_tensors(cells: list[Parameter], step: Callable[[], None]) -> list[bool]:
    """Returns for each cell whether it has the same tensor after a step."""
    before = [id(cell.value) for cell in cells]
    step()
    return [id(cell.value) == each for cell, each in zip(cells, before, strict=True)]


@pytest.mark.parametrize("options", [{}, {"momentum": 0.9}, {"momentum": 0.9, "nesterov": True, "weight_decay": 0.1}])
def test_a_step_writes_into_the_tensors_that_cells_alone_hold(options: Any, way: str) -> None:
    cells, step = begun(**options)
    assert same_tensors(cells, step) == [True] * 3


def test_overwriting_gives_the_bits_of_new_tensors(way: str, monkeypatch: pytest.MonkeyPatch) -> None:
    rng = np.random.default_rng(0)
    start, gradients = rng.normal(size=(3, SIZE)), rng.normal(size=(5, 3, SIZE))
    for kind, options in (("SGD", {"momentum": 0.9, "nesterov": True}), ("AdamW", {}), ("RMSprop", {}), ("Lion", {})):
        found = []
        for counted in (True, False):
            monkeypatch.setattr("emberharmony.optim.optimizer.COUNTED", counted)
            cells = [Parameter(ops.convert_to_tensor(x, "float32")) for x in start]
            optimizer = getattr(optim, kind)(cells, lr=0.1, **options)
            for row in gradients:
                optimizer.step({cell: ops.convert_to_tensor(x, "float32") for cell, x in zip(cells, row, strict=True)})
            found.append([ops.to_numpy(cell.value).tobytes() for cell in cells])
        assert found[0] == found[1], kind


SHARES: dict[str, Callable[[Any], Any]] = {
    "the tensor": lambda x: x,
    "a view": lambda x: x.reshape(30, 100),
    "a slice": lambda x: x[5:],
    "an array of NumPy": np.asarray,
    "an array by DLPack": np.from_dlpack,
    "a memoryview": lambda x: memoryview(np.asarray(x)),
}
TORCH: dict[str, Callable[[Any], Any]] = {
    "detached": lambda x: x.detach(),
    "data": lambda x: x.data,
    "a storage": lambda x: x.untyped_storage(),
    "a capsule": lambda x: x.__dlpack__(),
    "a graph": lambda x: (x.new_ones(SIZE, requires_grad=True) * x).sum(),
}


@pytest.mark.parametrize("share", [*SHARES, *TORCH])
def test_whoever_shares_the_memory_sees_no_change(share: str, way: str, backend: str) -> None:
    if share in TORCH and backend != "torch":
        pytest.skip("PyTorch has it")
    cells, step = begun()
    kept = {**SHARES, **TORCH}[share](cells[1].value)
    assert same_tensors(cells, step) == [False] * 3
    del kept
    assert same_tensors(cells, step) == [True] * 3


def test_values_from_before_a_step_stay(way: str) -> None:
    cells, step = begun()
    value, state, made = cells[0].value, [cell.tensor_and_home() for cell in cells], copy.copy(cells[1].value)
    step()
    assert [float(x[0]) for x in (value, state[2][0], made)] == [2.0] * 3
    assert [first(cell) for cell in cells] == [3.0] * 3
    assert first(pickle.loads(pickle.dumps(cells[0]))) == 3.0


def test_tied_tensors_are_not_written_twice(way: str) -> None:
    cells, step = begun()
    cells[0].value = cells[1].value
    step()
    assert [first(cell) for cell in cells] == [3.0] * 3


def test_memory_of_others_is_not_written(way: str, backend: str) -> None:
    arrays = [np.zeros((2, SIZE), "float32") for _ in range(3)]
    cells = [Parameter(ops.convert_to_tensor(array)[0]) for array in arrays]
    optimizer = optim.SGD(cells, lr=1.0)
    for _ in range(3):
        optimizer.step({cell: ops.full((SIZE,), -1.0) for cell in cells})
    assert [first(cell) for cell in cells] == [3.0] * 3
    assert not any(array.any() for array in arrays)


def test_memory_of_other_processes_is_not_written(way: str, backend: str) -> None:
    if backend != "torch":
        pytest.skip("PyTorch shares memory")
    cells, step = begun()
    cells[0].value.share_memory_()
    assert same_tensors(cells, step) == [False] * 3


def test_a_read_only_array_is_not_written(way: str, backend: str) -> None:
    if backend != "numpy":
        pytest.skip("only arrays of NumPy are read-only")
    cells, step = begun()
    cells[0].value.flags.writeable = False
    step()
    assert [first(cell) for cell in cells] == [3.0] * 3


def test_another_thread_never_reads_half_a_step(way: str) -> None:
    cells, step = begun(2)
    wrong: list[Any] = []
    ended = threading.Event()

    def read() -> None:
        while not ended.is_set():
            value = cells[0].value
            array = ops.to_numpy(value).copy()
            if not (array == array[0]).all() or not (ops.to_numpy(value) == array).all():
                wrong.append(array)

    before = sys.getswitchinterval()
    sys.setswitchinterval(1e-5)
    threads = [threading.Thread(target=read) for _ in range(2)]
    try:
        for thread in threads:
            thread.start()
        for _ in range(200):
            step()
    finally:
        ended.set()
        for thread in threads:
            thread.join()
        sys.setswitchinterval(before)
    assert not wrong
    assert [first(cell) for cell in cells] == [202.0] * 2
    assert (OVERWRITINGS, WATCHES) == ([], [])


def test_a_reader_waits_for_a_writer(way: str, monkeypatch: pytest.MonkeyPatch) -> None:
    cells, step = begun(2)
    found: list[float] = []
    reader = threading.Thread(target=lambda: found.append(first(cells[0])))

    class Late:
        """Starts the reader once the writer has looked for references, and gives it time to read."""

        def __enter__(self) -> None:
            reader.start()
            reader.join(0.05)

        def __exit__(self, *raised: object) -> None:
            assert not found

    monkeypatch.setattr(type(selection.current()), "writing_scope", lambda self: Late())
    step()
    reader.join()
    assert found == [3.0]


def test_a_signal_handler_that_reads_withdraws_the_permit(way: str, monkeypatch: pytest.MonkeyPatch) -> None:
    cells, step = begun(2)
    kept: list[Any] = []
    kind = type(selection.current())
    native = kind.writing_scope

    def interrupted(self: Any) -> Any:
        signal.raise_signal(signal.SIGINT)
        return native(self)

    monkeypatch.setattr(kind, "writing_scope", interrupted)
    before = signal.signal(signal.SIGINT, lambda *_: kept.append(cells[1].value))
    try:
        step()
    finally:
        signal.signal(signal.SIGINT, before)
    assert float(kept[0][0]) == 2.0
    assert [first(cell) for cell in cells] == [3.0] * 2
    assert (OVERWRITINGS, WATCHES) == ([], [])


def test_a_writer_that_did_not_end_stops_nobody(way: str) -> None:
    cells, _ = begun(2)
    left = Overwriting(cells)
    OVERWRITINGS.append(left)
    WATCHES.append(left)
    assert first(cells[0]) == 2.0
    assert (OVERWRITINGS, WATCHES) == ([], [])


def exchanged(values: list[Any]) -> list[Any]:
    return [values[1], values[0], *values[2:]]


def turned(values: list[Any]) -> list[Any]:
    return [ops.flip(values[0], 0), *values[1:]]


def one_twice(values: list[Any]) -> list[Any]:
    return [values[0], values[0], *values[2:]]


@pytest.mark.parametrize("change", [exchanged, turned, one_twice])
def test_parameters_may_get_tensors_of_each_other(change: Callable[[list[Any]], list[Any]], way: str) -> None:
    start = [np.arange(i, i + SIZE, dtype="float32") for i in range(4)]
    optimizers = []
    for several in (start[:2], start[2:]):  # each optimizer may have joined its own parameters
        cells = [Parameter(ops.convert_to_tensor(x.copy())) for x in several]
        optimizers.append((cells, optim.SGD(cells, lr=1.0)))
    every = [cell for cells, _ in optimizers for cell in cells]
    place = {cell: i for i, cell in enumerate(every)}
    zeros = ops.zeros((SIZE,))
    for _ in range(3):
        for cells, optimizer in optimizers:
            optimizer.step(dict.fromkeys(cells, zeros))
    for order in (every, [every[0], every[2], every[1], every[3]]):
        expected = change([ops.to_numpy(cell.value).copy() for cell in order])
        for cell, value in zip(order, change([cell.value for cell in order]), strict=True):
            cell.value = value
        del value
        for cells, optimizer in optimizers:
            optimizer.step({cell: ops.full((SIZE,), -1.0 - place[cell]) for cell in cells})
        for cell, value in zip(order, expected, strict=True):
            assert np.array_equal(ops.to_numpy(cell.value), ops.to_numpy(value) + 1 + place[cell])
        del value


def test_other_cells_are_read_while_one_is_written(way: str) -> None:
    cell, other = Parameter(ops.zeros(3)), Parameter(ops.ones(3))
    found: list[Any] = []

    def write(tensors: Any) -> list[Any]:
        assert OVERWRITINGS
        found.extend([ops.add(other, 1.0), copy.copy(other).value, other.value])
        return []

    assert Overwriting([cell]).try_writing(write, [])
    assert [x.tolist() for x in found] == [[2.0] * 3, [1.0] * 3, [1.0] * 3]
    assert not OVERWRITINGS
    assert not WATCHES


def test_an_error_of_a_writer_that_nobody_stopped_is_its_own(way: str) -> None:
    def write(tensors: Any) -> list[Any]:
        raise IndexError("of the writer")

    with pytest.raises(IndexError, match="of the writer"):
        Overwriting([Parameter(ops.zeros(3))]).try_writing(write, [])
    assert not OVERWRITINGS
    assert not WATCHES
