"""What `docs/semantics.md` says under "Shared memory", sentence by sentence."""

import mmap
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from emberharmony import Parameter, ops
from emberharmony.backend.discovery import BUILTIN, is_installed
from emberharmony.core.registry import OPS
from emberharmony.testing.sample import cast_to_dtype
from emberharmony.testing.samples import all_samples

INSTALLED = [name for name in BUILTIN if is_installed(name)]
VIEWS: list[Callable[[Any], Any]] = [
    lambda x: ops.reshape(x, (3, 2)),
    ops.transpose,
    lambda x: ops.expand_dims(x, 0),
    lambda x: ops.squeeze(ops.expand_dims(x, 0)),
    lambda x: ops.get_item(x, slice(0, 1)),
]


def source() -> np.ndarray[Any, Any]:
    return np.arange(6, dtype=np.float32).reshape(2, 3)


def shares(tensor: Any, array: np.ndarray[Any, Any]) -> bool:
    return np.shares_memory(ops.to_numpy(tensor), array)


@pytest.mark.parametrize("convert", [ops.convert_to_tensor, ops.asarray, lambda x: Parameter(x).value])
def test_a_numpy_array_on_its_way_in(convert: Callable[[Any], Any], backend: str) -> None:
    array = source()
    tensor = convert(array)
    assert (tensor is array) == (backend == "numpy")
    array[0, 0] = 9.0
    assert float(tensor[0, 0]) == (0.0 if backend == "mlx" else 9.0)
    assert convert(tensor) is tensor
    constant = source()
    constant.flags.writeable = False
    for special in (constant, source()[::-1]):
        assert shares(convert(special), special) == (backend == "numpy")
    assert not shares(convert(source().astype(">f4")), source())


def test_a_file_that_is_mapped_copy_on_write_is_shared_and_stays_unchanged(backend: str, tmp_path: Path) -> None:
    path = tmp_path / "array"
    path.write_bytes(source().tobytes())
    for access, writable in ((mmap.ACCESS_COPY, True), (mmap.ACCESS_READ, False)):
        with path.open("rb") as file:
            mapped = np.frombuffer(mmap.mmap(file.fileno(), 0, access=access), np.float32)
        tensor = ops.convert_to_tensor(mapped)
        assert mapped.flags.writeable == writable
        assert shares(tensor, mapped) == (backend == "numpy" or (backend == "torch" and writable))
        if writable:
            tensor[0] = 9.0
        assert path.read_bytes() == source().tobytes()


def test_a_tensor_on_its_way_out(backend: str) -> None:
    tensor = ops.array(source())
    array = ops.to_numpy(tensor)
    assert (array is tensor) == (backend == "numpy")
    assert shares(tensor, array)
    if backend == "mlx":
        with pytest.raises(ValueError, match="read-only"):
            array[0, 0] = 9.0
    else:
        array[0, 0] = 9.0
        assert float(tensor[0, 0]) == 9.0


@pytest.mark.parametrize("view", VIEWS)
def test_views(view: Callable[[Any], Any], backend: str) -> None:
    tensor = ops.array(source())
    seen = view(tensor)
    assert shares(seen, ops.to_numpy(tensor))
    seen[0] = 50.0
    assert (float(tensor[0, 0]) == 0.0) == (backend == "mlx")
    assert (ops.to_numpy(seen)[0] == 50.0).all()


@pytest.mark.parametrize("other", INSTALLED)
def test_tensors_of_another_library(other: str, backend: str) -> None:
    with ops.use_backend(other):
        theirs = ops.array(source())
        values = ops.to_numpy(theirs)
    ours = ops.from_dlpack(theirs)
    assert shares(ours, values) == (backend != "mlx" or other == "mlx")
    if (backend, other) == ("numpy", "mlx"):
        assert not ours.flags.writeable


def test_copies_have_memory_of_their_own(backend: str) -> None:
    tensor = ops.array(source())
    copies = [ops.array(tensor), ops.copy(tensor), ops.astype(tensor, "float32"), ops.asarray(tensor, copy=True)]
    for copied in (*copies, ops.reshape(tensor, (2, 3), copy=True)):
        if backend != "mlx":  # two arrays may use one memory there, which nothing shows
            assert not shares(copied, ops.to_numpy(tensor))
        copied[0, 0] = 9.0
        assert float(tensor[0, 0]) == 0.0


def test_ops_that_have_nothing_to_do_return_their_argument(backend: str) -> None:
    tensor = ops.array(source())
    for same in (ops.cast(tensor, "float32"), ops.positive(tensor), ops.real(tensor), ops.to_device(tensor, "cpu")):
        assert same is tensor


def test_an_operator_in_place_changes_what_all_names_stand_for(backend: str) -> None:
    first = second = ops.array(source())
    second += 1.0
    assert float(first[0, 0]) == 1.0
    counts, n = [], 0
    for shape in ((2, 3), (4,)):
        counts.append(n)
        n += ops.prod(shape)
    assert [int(count) for count in counts] == ([0, 6] if backend == "numpy" else [0, 10])
    first = second = 0 + ops.sum(ops.ones(3))
    second += 1.0
    assert float(first) == (3.0 if backend == "numpy" else 4.0)


def test_no_op_writes_into_its_arguments(backend: str) -> None:
    for sample in all_samples().values():
        for item in sample.cases[:2]:
            given = cast_to_dtype(item.args, "float32")
            arrays = [value for value in given if isinstance(value, np.ndarray)]
            before = [array.copy() for array in arrays]
            try:
                OPS[sample.op].function(*given, **item.kwargs)
            except (TypeError, ValueError):
                continue  # this row has no float32
            assert all(
                np.array_equal(a, b, equal_nan=a.dtype.kind in "fc") for a, b in zip(arrays, before, strict=True)
            )
