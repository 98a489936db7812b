"""The Dask backend: what is its own, and (slow) the whole profile of its conformance, a cluster and 4 GB."""

import json
import os
import re
import subprocess
import sys
import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from emberharmony import Parameter, ops
from emberharmony.core.registry import OPS
from emberharmony.errors import ArgumentTypeError, IndexOutOfBoundsError, LinAlgError, OutOfMemoryError, ShapeError
from emberharmony.testing.call import Call
from emberharmony.testing.checks import value_calls
from emberharmony.testing.samples import all_samples

dask = pytest.importorskip("dask")
da = pytest.importorskip("dask.array")

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "docs" / "dask.md").read_text(encoding="utf-8")
SMALL = {"array.chunk-size": "32B", "scheduler": "synchronous"}
"""Blocks of a few elements, so that small tensors have several blocks along each axis."""


class ComputedError(Exception):
    """Raised by a scheduler that refuses to compute."""


def refuse(*args: Any, **kwargs: Any) -> Any:
    raise ComputedError


@pytest.fixture
def on_dask() -> Iterator[Any]:
    with dask.config.set(SMALL), ops.use_backend("dask") as backend:
        yield backend


def listed(marker: str) -> set[str]:
    """Returns the ops in the first column of the table of the page behind a marker."""
    table = PAGE.split(f"<!-- {marker} -->\n")[1].split("\n\n")[0]
    return {name for row in table.splitlines()[2:] for name in re.findall(r"`(\w+)`", row.split("|")[1]) if name in OPS}


@pytest.mark.usefixtures("on_dask")
@pytest.mark.parametrize("axis", [None, 0, 1])
def test_reductions_leave_out_empty_blocks(axis: int | None) -> None:
    array = np.array([[3.0, -1.0, 2.5], [-4.0, 0.5, 7.0]])
    x = da.from_array(array, chunks=((0, 1, 0, 1), (2, 0, 1)))
    names = ("sum", "prod", "max", "min", "any", "mean", "var", "std", "logsumexp", "argmax", "argmin")
    for op in (*names, "cumsum", "cumprod"):
        found = ops.to_numpy(getattr(ops, op)(x, axis=axis))
        with ops.use_backend("numpy"):
            wanted = getattr(ops, op)(array, axis=axis)
        np.testing.assert_allclose(found, wanted, rtol=1e-12, err_msg=op)


@pytest.mark.usefixtures("on_dask")
def test_statistics_of_blocks_are_those_of_the_whole() -> None:
    array = np.random.default_rng(0).normal(1e4, 1.0, (13, 3)).astype(np.float32)
    x, wide = ops.convert_to_tensor(array), array.astype(np.float64)
    assert x.numblocks[0] > 3
    np.testing.assert_allclose(ops.var(x, 0), wide.var(0), rtol=1e-6)
    np.testing.assert_allclose(ops.var(x, 0, correction=1), wide.var(0, ddof=1), rtol=1e-6)
    assert np.isnan(ops.to_numpy(ops.var(x[:1], 0, correction=2))).all()
    np.testing.assert_allclose(ops.mean(x, 1), wide.mean(1), rtol=1e-6)
    z = wide + 1j * wide[::-1]
    np.testing.assert_allclose(ops.std(ops.convert_to_tensor(z), 0), z.std(0), rtol=1e-6)


@pytest.mark.usefixtures("on_dask")
def test_blocks_are_those_of_several_tensors_and_results_those_of_numpy() -> None:
    a, b = np.arange(12.0).reshape(3, 4), np.arange(4.0) - 1.5
    x = ops.convert_to_tensor(a)
    assert x.numblocks == (2, 2)
    y = ops.matmul(ops.gelu(x), ops.sort(ops.multiply(b, x), 1, descending=True).T)
    assert isinstance(y, da.Array)
    with ops.use_backend("numpy"):
        wanted = ops.matmul(ops.gelu(a), ops.sort(b * a, 1, descending=True).T)
    np.testing.assert_allclose(ops.to_numpy(y), wanted, rtol=1e-12, atol=1e-12)


@pytest.mark.usefixtures("on_dask")
def test_programs_and_their_gradients_compute_nothing_until_a_value_is_read() -> None:
    def loss(w: Any) -> Any:
        hidden = ops.layer_normalization(ops.tanh(x @ w))
        return ops.mean(ops.square(hidden - ops.take(x, indices, axis=1)))

    with dask.config.set(scheduler=refuse):
        x, w = ops.random.normal((6, 4), dtype="float64"), ops.random.uniform((4, 2), dtype="float64")
        indices = ops.argmax(ops.random.uniform((2, 4)), 1)
        value, gradient = ops.value_and_grad(loss)(w)
        with pytest.raises(ComputedError):
            gradient.compute()
    found = dask.compute(value, gradient, x, w, indices)
    with ops.use_backend("numpy"):
        *_, x, w, indices = found
        wanted = ops.value_and_grad(loss)(w)
    np.testing.assert_allclose(found[0], wanted[0], rtol=1e-12)
    np.testing.assert_allclose(found[1], wanted[1], rtol=1e-9)


def _computes(sample: Any, call: Call) -> bool:
    """Returns whether a call computes."""
    try:
        call.make(sample)
    except Exception as error:  # noqa: BLE001  (other errors are the subject of the conformance)
        return any(isinstance(each, ComputedError) for each in (error, error.__cause__, error.__context__))
    return False


@pytest.mark.slow
@pytest.mark.usefixtures("on_dask")
def test_only_the_ops_of_the_page_compute() -> None:
    computing = set()
    with dask.config.set(scheduler=refuse), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for name, sample in all_samples().items():
            calls = {call.label: call for call in value_calls(sample) if not call.raises}
            if any(_computes(sample, call) for call in calls.values()):
                computing.add(name)
    assert computing <= listed("computing")
    assert {"nonzero", "unique", "bincount", "random_gamma", "ctc_decode"} <= computing


def test_ops_along_an_axis_see_all_blocks_of_it() -> None:
    with ops.use_backend("dask"):
        x = da.from_array(np.array([[3.0, 1.0, 2.0, 0.0]]), chunks=(1, 2))
        assert ops.sort(x).compute().tolist() == [[0.0, 1.0, 2.0, 3.0]]
        assert ops.cummax(x, axis=1).compute().tolist() == [[3.0] * 4]


def test_the_page_lists_the_ops_that_gather_axes() -> None:
    from emberharmony.backend.dask import DaskBackend, DaskGatheredOps
    from emberharmony.backend.dask.segments import DaskSegmentsOps

    kinds = (DaskGatheredOps, DaskSegmentsOps)
    own = {op for op in OPS for kind in kinds if getattr(kind, op, None) is getattr(DaskBackend, op, 0)}
    assert listed("gathering") == own | {"take", "take_along_axis", "get_item", "scatter_update"}


KEYS: dict[str, Any] = {
    "slices": (slice(3, None, -2), Ellipsis, None, slice(1, 3)),
    "integers": (-1, 2),
    "list": ([2, 0, 2],),
    "two lists": ([[0], [2]], slice(None), [1, 3]),
    "apart": (0, slice(None), [1, 3]),
    "mask": (np.array([True, False, True, True]),),
    "mask of two axes": np.arange(12).reshape(4, 3) % 2 == 0,
    "boolean": (True, [1, 2]),
    "empty list": ([],),
    "backwards from before the start": (slice(-9, None, -1),),
}


def as_tuple(key: Any) -> tuple[Any, ...]:
    return key if isinstance(key, tuple) else (key,)


@pytest.mark.usefixtures("on_dask")
@pytest.mark.parametrize("key", KEYS.values(), ids=KEYS.keys())
def test_keys_select_what_they_select_in_numpy(key: Any) -> None:
    array = np.arange(60.0).reshape(4, 3, 5)
    np.testing.assert_array_equal(ops.get_item(array, key), array[key])
    tensors = tuple(ops.convert_to_tensor(part) if isinstance(part, np.ndarray) else part for part in as_tuple(key))
    np.testing.assert_array_equal(ops.get_item(array, tensors), array[key])
    written = array.copy()
    written[key] = -1.0
    np.testing.assert_array_equal(ops.set_item(array, key, -1.0), written)


@pytest.mark.usefixtures("on_dask")
@pytest.mark.parametrize("key", [[0.0, 1.0], [1j, 0j]])
def test_a_key_of_numbers_that_are_no_integers_is_refused_before_it_is_computed(key: list[Any]) -> None:
    x = ops.ones((2, 3))
    for wrong in (ops.convert_to_tensor(key), (slice(None), ops.convert_to_tensor(key))):
        with pytest.raises(ArgumentTypeError):
            ops.get_item(x, wrong)


@pytest.mark.usefixtures("on_dask")
@pytest.mark.parametrize(
    "shapes", [((0, 3), (3, 4)), ((2, 3), (3, 0)), ((2, 0), (0, 3)), ((0,), (0,)), ((2, 0, 3), (3,))]
)
@pytest.mark.parametrize("dtype", ["float32", "int8", "bool"])
def test_products_of_tensors_without_elements_are_those_of_numpy(shapes: Any, dtype: str) -> None:
    a, b = (np.ones(shape, dtype) for shape in shapes)
    found = ops.to_numpy(ops.matmul(*(da.from_array(x, chunks=2) for x in (a, b))))
    with ops.use_backend("numpy"):
        wanted = ops.matmul(a, b)
    assert (found.shape, found.dtype) == (wanted.shape, wanted.dtype)
    np.testing.assert_array_equal(found, wanted)


@pytest.mark.usefixtures("on_dask")
def test_indices_in_tensors_stay_unread_and_are_checked_in_the_blocks() -> None:
    array = np.arange(12.0).reshape(4, 3)
    rows, columns = ops.convert_to_tensor([3, -4, 1]), ops.convert_to_tensor([[0], [-1]])
    with dask.config.set(scheduler=refuse):
        taken, both = ops.take(array, rows, axis=0), ops.get_item(array, (rows, columns))
        outside = ops.take(array, ops.add(rows, 1), axis=0)
        added = ops.scatter_update(array, ops.expand_dims(rows, 1), ops.ones((3, 3)), "add")
    np.testing.assert_array_equal(taken, array[[3, 0, 1]])
    np.testing.assert_array_equal(both, array[[3, 0, 1], [[0], [2]]])
    np.testing.assert_array_equal(added, array + np.array([[1], [1], [0], [1]]))
    with pytest.raises(IndexOutOfBoundsError, match=r"to_numpy\(\) on backend 'dask'.*index 4 .*length 4"):
        ops.to_numpy(outside)


@pytest.mark.usefixtures("on_dask")
def test_errors_about_values_come_when_these_are_computed() -> None:
    singular = ops.inv(ops.zeros((2, 2)))
    with pytest.raises(LinAlgError, match=r"eval\(\) on backend 'dask': in inv\(\)"):
        ops.eval(singular)
    with pytest.raises(ShapeError, match=r"inv\(\) on backend 'dask'"):
        ops.inv(ops.zeros((2, 3)))


@pytest.mark.usefixtures("on_dask")
@pytest.mark.parametrize("op", ["exp", "sum", "any", "shape", "ravel", "flip", "diag", "tril", "ones_like", "to_numpy"])
def test_unknown_lengths_are_refused_with_the_way_out(op: str) -> None:
    x = da.arange(6, chunks=2)
    unknown = x[x > 1]
    with pytest.raises(ShapeError, match=rf"{op}\(\) on backend 'dask': .*compute_chunk_sizes\(\)"):
        getattr(ops, op)(unknown)
    assert ops.shape(unknown.compute_chunk_sizes()) == (4,)


@pytest.mark.usefixtures("on_dask")
def test_eval_keeps_the_blocks_and_copies_share_no_graph() -> None:
    x = ops.random.normal((4, 4))
    twice = ops.copy(x)
    ops.eval({"x": [x, ops.exp(x)]})
    with dask.config.set(scheduler=dask.get):
        first = x.compute()
    x[0] = 0.0
    np.testing.assert_array_equal(twice, first)
    assert not x.compute()[0].any()


@pytest.mark.usefixtures("on_dask")
def test_elementwise_ops_compute_before_a_tensor_is_broadcast() -> None:
    x = ops.broadcast_to(ops.convert_to_tensor([2.0, 3.0]), (3, 2))
    squared = ops.square(ops.multiply(x, 2.0))
    assert squared.source[1].shape == (2,)
    np.testing.assert_array_equal(squared, [[16.0, 36.0]] * 3)
    x[0] = 1.0
    np.testing.assert_array_equal(ops.square(x), [[1.0, 1.0], [4.0, 9.0], [4.0, 9.0]])


@pytest.mark.usefixtures("on_dask")
def test_the_blocks_of_a_draw_repeat_and_differ() -> None:
    ops.random.seed(3)
    state = ops.random.get_state()
    x = ops.random.normal((4, 4))
    first = ops.to_numpy(x)
    np.testing.assert_array_equal(x[2:].compute(), first[2:])
    assert np.unique(first).size == 16
    assert (ops.to_numpy(ops.random.normal((4, 4))) != first).all()
    ops.random.set_state(state)
    np.testing.assert_array_equal(ops.random.normal((4, 4)), first)
    half = ops.to_numpy(ops.random.uniform((2000,), dtype="float16"))
    assert half.dtype == np.float16
    assert half.max() < 1
    drawn = ops.to_numpy(ops.random.uniform((3,), generator=ops.random.Generator(1)))
    with ops.use_backend("numpy"):
        np.testing.assert_array_equal(ops.random.uniform((3,), generator=ops.random.Generator(1)), drawn)


@pytest.mark.usefixtures("on_dask")
def test_backward_fills_cells_and_tensors_move_to_other_backends() -> None:
    weight = Parameter([1.0, 2.0])
    ops.backward(lambda: ops.sum(ops.square(weight.value)), weight)
    assert isinstance(weight.grad, da.Array)
    np.testing.assert_array_equal(weight.grad, [2.0, 4.0])
    with ops.use_backend("numpy"):
        assert isinstance(weight.value, np.ndarray)
    with ops.use_backend(like=da.ones(2)):
        assert ops.get_backend() == "dask"


@pytest.mark.usefixtures("on_dask")
def test_graphs_of_too_many_blocks_are_refused() -> None:
    with pytest.raises(OutOfMemoryError, match=r"more than 1000000 blocks of 32 bytes.*array\.chunk-size"):
        ops.zeros((10**5, 10**5))


@pytest.mark.usefixtures("on_dask")
def test_half_precision_is_added_in_float32_across_blocks() -> None:
    x = ops.full((4000,), 1.0, "float16")
    assert float(ops.sum(x)) == 4000.0
    assert float(ops.cumsum(x)[-1]) == 4000.0
    tenths = ops.cumsum(ops.full((4000,), 0.1, "float16"))
    assert float(tenths[-1]) == pytest.approx(4000 * float(np.float16(0.1)), abs=0.25)
    assert ops.sum(x).dtype == np.float16


LIMITED = """
import resource, runpy, sys
resource.setrlimit(resource.RLIMIT_AS, (512 * 2**20, 512 * 2**20))
sys.argv = [{path!r}, "10000000"]
runpy.run_path(sys.argv[0], run_name="__main__")
"""


def environment(**more: str) -> dict[str, str]:
    return os.environ | {"OMP_NUM_THREADS": "1", "EMBERHARMONY_BACKEND": "dask"} | more


@pytest.mark.slow
@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="the limit is one of Linux")
def test_four_gigabytes_are_fitted_in_half_a_gigabyte() -> None:
    program = LIMITED.format(path=str(ROOT / "examples" / "least_squares.py"))
    few = environment(DASK_ARRAY__CHUNK_SIZE="16MiB", DASK_NUM_WORKERS="1", MALLOC_ARENA_MAX="1")
    done = subprocess.run([sys.executable, "-c", program], env=few, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr[-2000:]
    form = r"dask: loss ([\d.]+) before, ([\d.]+) in the last step; largest error ([\d.]+)\n"
    found = re.fullmatch(form, done.stdout)
    assert found, done.stdout
    before, after, error = map(float, found.groups())
    assert before > 10
    assert after < 0.011
    assert error < 1e-3


def test_the_gradient_of_blocks_is_that_of_numpy(on_dask: Any) -> None:
    sys.path.insert(0, str(ROOT / "examples"))
    try:
        import least_squares
    finally:
        sys.path.pop(0)
    with dask.config.set({"array.chunk-size": "16KiB"}):
        x, y, _ = least_squares.data(400)
        assert x.numblocks[0] > 5
        weights, losses = least_squares.fit(x, y)
    rows, results = dask.compute(x, y)
    with ops.use_backend("numpy"):
        wanted, before = least_squares.fit(rows, results)
    np.testing.assert_allclose(weights, wanted, rtol=1e-4, atol=1e-5)
    np.testing.assert_allclose(losses, before, rtol=1e-4)


CLUSTER = """
if __name__ == "__main__":
    from distributed import Client, LocalCluster
    from emberharmony import ops
    with LocalCluster(n_workers=1, threads_per_worker=2, memory_limit="512MB", dashboard_address=None) as cluster:
        with Client(cluster):
            x = ops.random.normal((200, 200))
            loss = lambda w: ops.mean(ops.square(ops.hard_tanh(x @ w)))
            value, gradient = ops.value_and_grad(loss)(ops.ones((200,)))
            ops.eval(value, gradient)
            print(float(value) > 0, ops.to_numpy(gradient).shape)
            try:
                ops.eval(ops.inv(ops.zeros((2, 2))))
                print(ops.to_numpy(ops.inv(ops.zeros((2, 2)))))
            except Exception as error:
                print(type(error).__name__)
"""


@pytest.mark.slow
def test_workers_of_a_cluster_compute_blocks(tmp_path: Path) -> None:
    pytest.importorskip("distributed")
    program = tmp_path / "program.py"
    program.write_text(CLUSTER)
    paths = {"PYTHONPATH": os.pathsep.join([str(ROOT), *sys.path])}
    few = environment(DASK_ARRAY__CHUNK_SIZE="64KiB", **paths)
    done = subprocess.run([sys.executable, str(program)], env=few, capture_output=True, text=True, check=False)
    assert done.stdout == "True (200,)\nLinAlgError\n", done.stdout + done.stderr[-2000:]


WHOLE = "from emberharmony.cli import main; main()"
HALVED = f"""
import dask.array as da
from emberharmony.backend.dask import DaskBackend
whole = DaskBackend.from_numpy
def halved(self, array):
    return whole(self, array).rechunk(tuple(max((n + 1) // 2, 1) for n in array.shape))
DaskBackend.from_numpy = halved
{WHOLE}
"""


@pytest.mark.slow
@pytest.mark.parametrize("program", [WHOLE, HALVED], ids=["one block", "two blocks along each axis"])
@pytest.mark.parametrize(("pattern", "count"), [("[a-f]*", 150), ("[g-m]*", 90), ("[n-r]*", 85), ("[s-z]*", 90)])
def test_the_profile_has_no_failure_and_lacks_no_op(tmp_path: Path, pattern: str, count: int, program: str) -> None:
    report = tmp_path / "report.json"
    options = ["conformance", "--backend", "dask", "--op", pattern, "--quick", "--most", "1", "--json", str(report)]
    alone = environment(DASK_SCHEDULER="synchronous")
    command = [sys.executable, "-W", "ignore", "-c", program, *options]
    done = subprocess.run(command, env=alone, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout[-4000:] + done.stderr[-2000:]
    entries = json.loads(report.read_text())["ops"]
    assert {entry["op"]: entry["reason"] for entry in entries if entry["status"] == "unsupported"} == {}
    assert len(entries) >= count


@pytest.mark.usefixtures("on_dask")
def test_an_initial_value_has_a_gradient_and_rolls_take_all_elements() -> None:
    x = ops.asarray([[1.0, 3.0], [2.0, 0.5]])
    assert float(ops.grad(lambda initial: ops.sum(ops.max(x, 1, initial=initial)))(2.0)) == 0.5
    assert ops.to_numpy(ops.roll(x, 2**40 + 1)).tolist() == [[0.5, 1.0], [3.0, 2.0]]
    assert tuple(ops.roll(ops.zeros((0, 3)), -1).shape) == (0, 3)


@pytest.mark.usefixtures("on_dask")
def test_a_number_is_sorted() -> None:
    assert (float(ops.sort(ops.convert_to_tensor(2.5))), int(ops.argsort(ops.convert_to_tensor(2.5)))) == (2.5, 0)
