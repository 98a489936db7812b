"""Cells follow the active backend: exactly, as operands of every op, under every transform, and between threads."""

import copy
import itertools
import pickle
import subprocess
import sys
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from emberharmony import Buffer, Parameter, errors, ops
from emberharmony.backend import create_backend
from emberharmony.core.dtypes import ALL
from emberharmony.core.registry import OPS
from emberharmony.testing.sample import cast_to_dtype
from emberharmony.testing.samples import all_samples
from tests.core.cells.pairs import INSTALLED, Named, kind, pairs
from tests.ops.trees import lists
from tests.sampling import portion

pytestmark = pytest.mark.usefixtures("restored")


def bits(tensor: Any) -> tuple[str, tuple[int, ...], bytes]:
    """Returns the dtype, shape and bytes of a tensor of the active backend."""
    name = ops.dtype(tensor).name
    array = ops.to_numpy(ops.view(tensor, "uint16") if name == "bfloat16" else tensor)
    return name, array.shape, array.tobytes()


SPECIAL = {
    2: [0x7E01, 0xFE55, 0x8000, 0x0001, 0x03FF, 0x7C00, 0x3C00],  # NaN payloads, -0, subnormals, inf, 1
    4: [0x7FC01234, 0xFFC00001, 0x80000000, 0x00000001, 0x007FFFFF, 0x7F800000, 0x3F800000],
    8: [0x7FF8000000001234, 0xFFF8000000000001, 1 << 63, 1, 0x000FFFFFFFFFFFFF, 0x7FF0000000000000, 2**64 - 1],
    1: [0, 1, 127, 128, 255, 3, 0],
}


def special(dtype: str) -> np.ndarray[Any, Any]:
    """Returns an array whose bits a conversion by value would change; for bfloat16 the bits in uint16."""
    if dtype == "bool":
        return np.array([True, False, True])
    if dtype == "bfloat16":
        return np.array([0x7FC1, 0xFFC1, 0x8000, 0x0001, 0x007F, 0x7F80, 0x3F80], np.uint16)
    native = np.dtype(dtype)
    width = native.itemsize // (2 if native.kind == "c" else 1)
    raw = np.array(SPECIAL[width], f"u{width}")
    return (np.stack([raw, raw[::-1]], -1).ravel() if native.kind == "c" else raw).view(native)


def shaped(array: np.ndarray[Any, Any]) -> list[np.ndarray[Any, Any]]:
    """Returns an array, a part without axes, an empty part, and views that are not contiguous."""
    grid = np.stack([array, array])
    return [array, array[:1].reshape(()), array[:0].reshape(0, 3), grid.T, array[::-1], array[::2]]


@pairs
@pytest.mark.parametrize("dtype", [dtype.name for dtype in ALL])
def test_a_move_and_the_move_back_keep_every_bit(dtype: str, here: str, there: str) -> None:
    ops.set_backend(here)
    host = special(dtype)
    if any(dtype not in [d.name for d in create_backend(name).dtypes.available] for name in (here, there)):
        pytest.skip("one of the backends lacks this dtype")
    for array in shaped(host):
        tensor = ops.convert_to_tensor(array.copy() if array.ndim == 0 else array)
        cell = Buffer(ops.view(tensor, "bfloat16") if dtype == "bfloat16" else tensor)
        wanted = bits(cell.value)
        assert wanted[0] == dtype
        assert wanted[2] == array.tobytes()
        with ops.use_backend(there):
            assert type(cell.value) is kind(there)
            assert cell.value is cell.value
            assert bits(cell.value) == wanted
        assert type(cell.value) is kind(here)
        assert bits(cell.value) == wanted


@pairs
@given(raw=st.binary(min_size=0, max_size=64), dtype=st.sampled_from([d.name for d in ALL if d.name != "bfloat16"]))
def test_any_bits_survive_a_move(raw: bytes, dtype: str, here: str, there: str) -> None:
    width = np.dtype(dtype).itemsize
    array = np.frombuffer(raw[: len(raw) // width * width], "u1" if dtype == "bool" else dtype).copy()
    array = array % 2 == 1 if dtype == "bool" else array
    with ops.use_backend(here):
        if any(dtype not in [d.name for d in create_backend(name).dtypes.available] for name in (here, there)):
            return
        cell = Buffer(array)
        wanted = bits(cell.value)
        with ops.use_backend(there):
            assert bits(cell.value) == wanted
        assert bits(cell.value) == wanted


def test_a_large_tensor_moves_exactly() -> None:
    array = np.random.default_rng(0).integers(0, 2**32, 2**20, np.uint32).view(np.float32)
    ops.set_backend("numpy")
    cell = Buffer(array)
    for name in INSTALLED:
        ops.set_backend(name)
        assert bits(cell.value)[2] == array.tobytes()


@pairs
def test_a_move_makes_memory_of_its_own(here: str, there: str) -> None:
    ops.set_backend(here)
    cell = Buffer([1.0, 2.0])
    old = cell.value
    ops.set_backend(there)
    new = cell.value
    new[0] = 9.0
    ops.set_backend(here)
    assert lists(old) == [1.0, 2.0]
    assert lists(cell.value) == [9.0, 2.0]


@pairs
def test_a_parameter_trains_on_after_a_switch_and_its_gradient_goes_with_it(here: str, there: str) -> None:
    ops.set_backend(here)
    weight = Parameter([1.0, 2.0], name="w")
    tied = {"a": weight, "b": weight}
    for name in (here, there, here):
        ops.set_backend(name)
        assert lists(ops.backward(lambda: ops.sum(ops.square(weight.value)), tied)) == 5.0
        assert type(weight.value) is type(weight.grad) is kind(name)
    assert lists(weight.grad) == [6.0, 12.0]
    with ops.use_backend(there):
        assert type(weight.grad) is kind(there)
        assert lists(weight.grad) == [6.0, 12.0]
    assert tied["a"] is tied["b"]


def test_a_dtype_that_the_other_backend_lacks_is_refused_by_name() -> None:
    if "mlx" not in INSTALLED:
        pytest.skip("needs MLX")
    ops.set_backend("numpy")
    cell = Parameter(np.array([1 + 2j], "complex128"), name="phase")
    before = cell.value
    with ops.use_backend("mlx"):
        for read in (lambda: cell.value, lambda: ops.add(cell, 1.0)):
            with pytest.raises(errors.DTypeError, match=r"'phase'.*numpy.*mlx.*complex128"):
                read()
    assert cell.value is before


def test_float64_on_a_gpu_of_mlx_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    mx = pytest.importorskip("mlx.core")
    ops.set_backend("numpy")
    cell = Buffer(np.ones(2), name="wide")
    before = cell.value
    monkeypatch.setattr(mx, "default_device", lambda: mx.Device(mx.gpu))
    with ops.use_backend("mlx"), pytest.raises(errors.DTypeError, match=r"'wide'.*float64 on a GPU"):
        cell.value
    assert cell.value is before


@pytest.mark.parametrize("dtype", ["float32", "bfloat16", "int8"])
def test_to_casts_the_value_and_the_gradient(dtype: str, backend: str) -> None:
    if dtype == "bfloat16":
        pytest.importorskip("ml_dtypes")
    cell = Parameter([1.5, -2.0])
    cell.grad = cell.value
    assert cell.to(dtype) is cell
    assert ops.dtype(cell.value) == ops.dtype(cell.grad) == dtype
    with pytest.raises(errors.DTypeError):
        cell.to("float33")


def test_what_is_assigned_becomes_a_tensor_of_the_active_backend(backend: str) -> None:
    cell = Buffer([1.0])
    for value in (3, [1, 2], np.ones((2, 2), "float32"), Buffer(2.0)):
        cell.value = value
        assert type(cell.value) is kind(backend)
    cell.grad = [1.0]
    assert type(cell.grad) is kind(backend)
    with pytest.raises(errors.EmberError):
        cell.value = "text"
    if backend == "mlx" and "torch" in INSTALLED:
        with ops.use_backend("torch"):
            foreign = ops.ones(2)
        with pytest.raises(errors.BackendMismatchError):
            cell.value = foreign


def test_cells_show_themselves_without_a_move() -> None:
    ops.set_backend("numpy")
    cells = [Parameter([1.0], name="w"), Parameter([1.0], trainable=False), Buffer([1, 2], persistent=False)]
    before = [cell.tensor_and_home() for cell in cells]
    ops.set_backend(INSTALLED[-1])
    assert list(map(repr, cells)) == [
        "Parameter('w', shape=(1,), dtype=float32)",
        "Parameter(shape=(1,), dtype=float32, frozen)",
        "Buffer(shape=(2,), dtype=int64, not persistent)",
    ]
    assert [cell.tensor_and_home() for cell in cells] == before


@pytest.mark.parametrize("copied", [copy.copy, copy.deepcopy, lambda x: pickle.loads(pickle.dumps(x))])
@pytest.mark.parametrize("dtype", ["float32", "bfloat16", "complex64"])
def test_copies_and_pickles_are_cells_of_their_own(copied: Any, dtype: str, backend: str) -> None:
    if dtype == "bfloat16":
        pytest.importorskip("ml_dtypes")
    cell = Named(ops.cast([1.5, -2.0], dtype), ["a"])
    cell.grad, cell.trainable = cell.value, False
    made = copied(cell)
    assert (type(made), made.name, made.trainable, made.tag) == (Named, "n", False, ["a"])
    assert bits(made.value) == bits(made.grad) == bits(cell.value)
    made.value = ops.zeros(2)
    assert lists(ops.cast(cell.value, "complex64"))[1] == -2.0
    tied = copied([cell, cell])
    assert tied[0] is tied[1]
    assert copied(Buffer([1.0], persistent=False)).persistent is False


@pytest.mark.fresh_process
@pytest.mark.parametrize(("there", "dtype"), portion([*itertools.product(INSTALLED, ["float32", "bfloat16"])], 3))
def test_a_pickle_opens_without_the_library_that_wrote_it_and_without_ml_dtypes(there: str, dtype: str) -> None:
    """Every other backend writes a pickle, and so does each but NumPy for itself; one process opens them all."""
    writers = [name for name in INSTALLED if name != there or name != "numpy"]
    if dtype == "bfloat16":
        pytest.importorskip("ml_dtypes")
    pickles = []
    for here in writers:
        ops.set_backend(here)
        pickles.append(pickle.dumps([Parameter(ops.cast([1.5, -0.0], dtype), name="w")]))
    forbidden = [name for name in (*INSTALLED, "ml_dtypes") if name not in (there, "numpy")]
    if there == "numpy" and dtype == "bfloat16":
        forbidden.remove("ml_dtypes")
    values = "[1.5 -0]" if there == "numpy" and dtype == "bfloat16" else "[ 1.5 -0. ]"
    program = (
        f"import pickle, sys\nfor name in {forbidden}: sys.modules[name] = None\n"
        f"from emberharmony import ops\nops.set_backend({there!r})\n"
        f"for data in {pickles!r}:\n    (cell,) = pickle.loads(data)\n"
        f"    print(repr(cell), ops.cast(cell, 'float32').tolist(), type(cell.value).__module__)\n"
        f"    assert str(cell).endswith({values!r})"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    opened = dict(zip(writers, done.stdout.splitlines(), strict=True))
    form = f"Parameter('w', shape=(2,), dtype={dtype}) [1.5, -0.0] {there[:3]}"
    assert {here: line for here, line in opened.items() if not line.startswith(form)} == {}


def wrapped(value: Any) -> Any:
    """Returns arguments of an op with cells in the places of arrays."""
    if isinstance(value, np.ndarray):
        return Buffer(value)
    if isinstance(value, (list, tuple)) and any(isinstance(item, np.ndarray) for item in value):
        return type(value)(wrapped(item) for item in value)
    return value


def test_every_op_takes_cells_for_tensors(backend: str) -> None:
    """Calls every op by the rows of the samples: by position, in lists and by keyword."""
    taken = set()
    for sample in all_samples().values():
        for item in sample.cases[:2]:
            given = cast_to_dtype(item.args, "float32")
            function = OPS[sample.op].function
            if sample.op in ("empty", "empty_like", "is_tensor"):  # memory as it is; never converted
                continue
            try:
                ops.random.seed(1)
                wanted = function(*given, **item.kwargs)
                cells = wrapped(given)
            except (errors.EmberError, TypeError, ValueError):
                continue  # this row has no float32
            ops.random.seed(1)
            found = function(*cells, **{name: wrapped(value) for name, value in item.kwargs.items()})
            for ours, plain in zip(ops.tree_leaves(found), ops.tree_leaves(wanted), strict=True):
                if ops.is_tensor(plain):
                    assert ops.is_tensor(ours), sample.op
                    assert np.array_equal(ops.to_numpy(ours), ops.to_numpy(plain), equal_nan=True), sample.op
            taken.add(sample.op)
    assert len(taken) > 300


def test_cells_are_operands_by_keyword_nested_and_as_options(backend: str) -> None:
    w, n = Parameter([1.0, 2.0]), Buffer(1)
    assert lists(ops.subtract(x2=w, x1=1.0)) == [0.0, -1.0]
    assert lists(ops.array([w, [3.0, 4.0], [Buffer(5.0), 6.0]])) == [[1.0, 2.0], [3.0, 4.0], [5.0, 6.0]]
    assert lists(ops.leaky_relu([-1.0, -1.0], w)) == [-1.0, -2.0]
    assert lists(ops.take([[1, 2], [3, 4]], n, axis=0)) == [3, 4]
    assert lists(ops.cond(Buffer(False), lambda: 1, lambda: 2)) == 2
    assert lists(ops.scan(lambda total, x: (ops.add(total, x), total), Buffer(0.0), w)[0]) == 3.0
    assert lists(ops.while_loop(lambda i, n: ops.less(i, n), lambda i, n: (i + n, n), (Buffer(0), 2))[0]) == 2
    assert (ops.shape(w), ops.ndim(w), ops.size(w), ops.dtype(w)) == ((2,), 1, 2, "float32")
    assert not ops.is_tensor(w)
    assert not ops.is_traced(w)
    assert ops.backend_of(w) is None
    xp = ops.array_namespace(ops.ones(1))
    assert type(xp.add(w, 1.0)) is kind(backend)
    assert lists(xp.Buffer([1.0]).value) == [1.0]
