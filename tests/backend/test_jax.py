"""The JAX backend: what is its own, and (slow) the whole profile of its conformance."""

import json
import os
import pickle
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from emberharmony import Buffer, Parameter, nn, ops, optim
from emberharmony.core.registry import OPS
from emberharmony.demo import gpt
from emberharmony.errors import IndexOutOfBoundsError, LinAlgError, TracedTensorError

jax = pytest.importorskip("jax")
programs = pytest.importorskip("emberharmony.backend.jax.flow.steps")
device_ops = pytest.importorskip("emberharmony.backend.jax.device_ops")
fusion = pytest.importorskip("emberharmony.backend.jax.flow.fusion")

CHEAP = (
    "--xla_backend_optimization_level=0 --xla_cpu_use_fusion_emitters=false --xla_llvm_disable_expensive_passes=true"
)


@pytest.fixture
def on_jax() -> Iterator[Any]:
    with ops.use_backend("jax") as backend:
        yield backend


def tensor(*values: float) -> Any:
    return ops.convert_to_tensor(list(values))


def alone(program: str, **environment: str) -> subprocess.CompletedProcess[str]:
    kept = {name: value for name, value in os.environ.items() if name != "JAX_ENABLE_X64"}
    command = [sys.executable, "-c", program]
    return subprocess.run(command, env=kept | environment, capture_output=True, text=True, check=False)


@pytest.mark.usefixtures("on_jax")
def test_statistics_of_values_far_from_zero_keep_their_digits() -> None:
    array = np.random.default_rng(0).normal(1e4, 1.0, (130, 3)).astype(np.float32)
    x, wide = ops.convert_to_tensor(array), array.astype(np.float64)
    np.testing.assert_allclose(ops.var(x, 0), wide.var(0), rtol=1e-6)
    np.testing.assert_allclose(ops.var(x, 0, correction=1), wide.var(0, ddof=1), rtol=1e-6)
    assert np.isnan(ops.var(x[:1], 0, correction=2)).all()
    z = wide + 1j * wide[::-1]
    np.testing.assert_allclose(ops.std(ops.convert_to_tensor(z), 0), z.std(0), rtol=1e-6)
    assert ops.var(ops.cast(x, "float16")).dtype == "float16"
    np.testing.assert_allclose(ops.sum(ops.full((4000,), 0.1)), 400, rtol=1e-6)
    assert float(ops.sum(ops.full((4000,), 1.0, "float16"))) == 4000.0
    assert float(ops.sum(tensor(1e8, *[1.0] * 100, -1e8))) == 100.0
    assert ops.cumsum(tensor(1e8, 3.0, -1e8)).tolist()[-1] == 3.0


@pytest.mark.usefixtures("on_jax")
def test_integers_divide_and_wrap_as_on_the_other_backends() -> None:
    assert ops.floor_divide([7, -7, 5, -128], ops.asarray([2, 2, 0, -1])).tolist() == [3, -4, 0, 128]
    assert ops.mod([7, -7, 5], ops.asarray([2, 2, 0])).tolist() == [1, 1, 0]
    assert ops.floor_divide(np.int8([-128]), np.int8([-1])).tolist() == [-128]
    assert ops.power([2, -1, 3, 2], ops.asarray([-1, -3, 4, 65])).tolist() == [0, -1, 81, 0]
    assert ops.power([0j, 2j], ops.asarray([0j, 2.0])).tolist() == pytest.approx([1, -4])


@pytest.mark.usefixtures("on_jax")
def test_functions_of_complex_numbers_are_right_below_a_branch_cut() -> None:
    below = ops.array(complex(-4.0, -0.0))
    assert complex(ops.sqrt(below)) == pytest.approx(-2j)
    assert complex(ops.arccosh(below)) == pytest.approx(np.arccosh(complex(-4.0, -0.0)))


@pytest.mark.usefixtures("on_jax")
def test_the_last_of_equal_indices_is_written_and_extremes_keep_nan() -> None:
    x = tensor(1.0, 2.0, 3.0)
    assert ops.scatter_update(x, [[0], [0], [-1]], tensor(5.0, 6.0, 7.0)).tolist() == [6.0, 2.0, 7.0]
    assert ops.get_item(x, ops.asarray([-1, 0])).tolist() == [3.0, 1.0]
    np.testing.assert_array_equal(ops.cummax(tensor(1.0, np.nan, 3.0)), [1.0, np.nan, np.nan])
    assert ops.logsumexp(tensor(-np.inf, -np.inf)).tolist() == -np.inf
    assert ops.argsort(tensor(2.0, 1.0, 2.0), descending=True).tolist() == [0, 2, 1]


@pytest.mark.usefixtures("on_jax")
def test_gradients_nest_with_those_of_jax() -> None:
    def loss(x: Any) -> Any:
        return ops.sum(ops.sin(x) * x)

    x = tensor(1.0, 2.0)
    np.testing.assert_allclose(ops.grad(loss)(x), np.cos([1.0, 2.0]) * [1.0, 2.0] + np.sin([1.0, 2.0]), rtol=1e-6)
    np.testing.assert_allclose(jax.grad(loss)(x), ops.grad(loss)(x), rtol=1e-6)
    np.testing.assert_allclose(jax.jit(ops.grad(loss))(x), ops.grad(loss)(x), rtol=1e-6)
    np.testing.assert_allclose(ops.jvp(loss, (x,), (x,))[1], float(ops.sum(ops.grad(loss)(x) * x)), rtol=1e-6)


@pytest.mark.usefixtures("on_jax")
def test_a_complex_gradient_is_the_conjugate_of_that_of_jax() -> None:
    def loss(z: Any) -> Any:
        return ops.real(ops.sum(z * z * (2 - 1j)))

    z = ops.convert_to_tensor(np.asarray([1 + 2j], np.complex64))
    np.testing.assert_allclose(ops.grad(loss)(z), np.conj(jax.grad(loss)(z)), rtol=1e-6)


@pytest.mark.usefixtures("on_jax")
def test_backward_fills_the_gradients_of_cells() -> None:
    weight = Parameter([1.0, 2.0])
    ops.backward(lambda: ops.sum(ops.square(weight.value)), weight)
    assert isinstance(weight.grad, jax.Array)
    np.testing.assert_array_equal(weight.grad, [2.0, 4.0])


@pytest.mark.usefixtures("on_jax")
def test_a_custom_gradient_works_in_both_modes() -> None:
    @ops.custom_gradient
    def doubled(x: Any) -> Any:
        return x * 2, lambda x, upstream: upstream * 5

    x = tensor(3.0)
    assert float(ops.grad(lambda x: ops.sum(doubled(x)))(x)[0]) == 5.0
    assert float(ops.jvp(doubled, (x,), (x,))[1][0]) == 15.0


@pytest.mark.usefixtures("on_jax")
def test_a_custom_gradient_gets_zeros_for_an_output_of_integers() -> None:
    upstream_dtypes: list[Any] = []

    @ops.custom_gradient
    def doubled_and_largest(x: Any) -> Any:
        def pull(x: Any, upstream: Any) -> Any:
            upstream_dtypes.extend(cotangent.dtype for cotangent in upstream)
            return upstream[0] * 5 + upstream[1]

        return (x * 2, ops.argmax(x)), pull

    gradient = ops.grad(lambda x: ops.sum(doubled_and_largest(x)[0]))(tensor(1.0, -2.0))
    np.testing.assert_array_equal(gradient, [5.0, 5.0])
    assert upstream_dtypes == [np.float32, np.int64]


@pytest.mark.usefixtures("on_jax")
def test_the_gradient_of_the_absolute_value_points_along_a_complex_number() -> None:
    z = ops.convert_to_tensor(np.asarray([3 + 4j, 0, -2j], np.complex64))
    gradient = ops.grad(lambda z: ops.sum(ops.abs(z)))(z)
    np.testing.assert_allclose(gradient, np.asarray([0.6 + 0.8j, 0, -1j], np.complex64), rtol=1e-6)


@pytest.mark.usefixtures("on_jax")
def test_compile_traces_once_for_each_shape_and_each_number() -> None:
    runs: list[Any] = []

    @ops.compile
    def scaled(x: Any, factor: float) -> Any:
        runs.append(factor)
        return {"result": ops.exp(x) * factor, "factor": factor}

    for factor, x in ((2.0, tensor(0.0)), (2.0, tensor(1.0)), (3.0, tensor(1.0)), (2.0, tensor(1.0, 2.0))):
        found = scaled(x, factor)
        np.testing.assert_allclose(found["result"], np.exp(x) * factor, rtol=1e-6)
        assert found["factor"] == factor
    assert runs == [2.0, 3.0, 2.0]


@pytest.mark.usefixtures("on_jax")
def test_a_function_that_reads_values_is_run_uncompiled_and_mapped_by_slices() -> None:
    def halved(x: Any) -> Any:
        return x / 2 if float(ops.sum(x)) > 0 else x

    x = ops.convert_to_tensor([[1.0], [-1.0]])
    np.testing.assert_array_equal(ops.compile(halved)(x), [[1.0], [-1.0]])
    np.testing.assert_array_equal(ops.vmap(halved)(x), [[0.5], [-1.0]])


@pytest.mark.usefixtures("on_jax")
def test_errors_name_the_op_and_what_to_do() -> None:
    x = tensor(1.0, 2.0)
    with pytest.raises(TracedTensorError, match=r"nonzero\(\) on backend 'jax': a value is read, .*ops\.where"):
        jax.jit(ops.nonzero)(x)
    with pytest.raises(TracedTensorError, match=r"to_numpy\(\) on backend 'jax'"):
        ops.grad(lambda x: ops.sum(ops.convert_to_tensor(ops.to_numpy(x))))(x)
    with pytest.raises(IndexOutOfBoundsError, match=r"take\(\) on backend 'jax': index 5"):
        ops.take(x, ops.convert_to_tensor([5]))
    with pytest.raises(LinAlgError, match=r"inv\(\) on backend 'jax'"):
        ops.inv(ops.zeros((2, 2)))


@pytest.mark.usefixtures("on_jax")
@pytest.mark.parametrize("op", ["take", "take_along_axis"])
def test_nothing_is_gathered_from_or_to_empty_tensors(op: str) -> None:
    for shape, places, axis in [((0, 3), (0, 3), 0), ((2, 0), (2, 0), 0), ((2, 3), (0, 3), 0), ((2, 3), (2, 0), -1)]:
        array, indices = np.ones(shape, np.float32), np.zeros(places, np.int64)
        wanted = getattr(np, op)(array, indices, axis)
        found = OPS[op].function(ops.convert_to_tensor(array), indices, axis)
        assert (found.shape, found.dtype) == (wanted.shape, wanted.dtype)
    with pytest.raises(IndexOutOfBoundsError):
        OPS[op].function(ops.zeros((0, 3)), np.ones((1, 3), np.int64), 0)


@pytest.mark.usefixtures("on_jax")
def test_random_states_and_the_portable_generator_repeat() -> None:
    ops.random.seed(3)
    state = ops.random.get_state()
    first = np.asarray(ops.random.normal((5,)))
    ops.random.set_state(state)
    np.testing.assert_array_equal(ops.random.normal((5,)), first)
    drawn = ops.random.uniform((3,), generator=ops.random.Generator(1))
    with ops.use_backend("numpy"):
        other = ops.random.uniform((3,), generator=ops.random.Generator(1))
    np.testing.assert_array_equal(drawn, other)


@pytest.mark.usefixtures("on_jax")
def test_tensors_move_by_dlpack_and_by_the_host() -> None:
    array = np.arange(3.0)
    x = ops.from_dlpack(array)
    array[0] = 9.0
    assert x.tolist() == [0.0, 1.0, 2.0]
    assert ops.get_device(x) == "cpu"
    assert ops.dtype(x) == jax.numpy.float64
    assert ops.zeros((1,), dtype=jax.numpy.bfloat16).dtype == jax.numpy.bfloat16
    ops.synchronize()
    with ops.use_backend(like=x):
        assert ops.get_backend() == "jax"


@pytest.mark.usefixtures("on_jax")
def test_half_of_a_program_may_be_written_for_jax() -> None:
    net = jax.vmap(lambda row: ops.softmax(row) @ ops.ones((2,)))
    np.testing.assert_allclose(net(jax.numpy.ones((3, 2), "float32")), np.ones(3), rtol=1e-6)


@pytest.mark.slow
def test_loading_switches_64_bits_on_and_says_so() -> None:
    program = (
        "import warnings; from emberharmony import ops\n"
        "with warnings.catch_warnings(record=True) as seen:\n"
        "    warnings.simplefilter('always'); ops.set_backend('jax'); ops.set_backend('jax')\n"
        "import jax; print(jax.config.jax_enable_x64, [str(w.message)[:37] for w in seen])\n"
    )
    assert alone(program).stdout == "True [\"backend 'jax' has set jax_enable_x64 \"]\n"
    assert alone(program, JAX_ENABLE_X64="1").stdout == "True []\n"
    refused = alone(program, JAX_ENABLE_X64="0").stderr
    assert "JAX_ENABLE_X64 forbids JAX: unset it" in refused
    late = alone(
        "from emberharmony import ops; ops.set_backend('jax')\n"
        "import jax; jax.config.update('jax_enable_x64', False)\n"
        "ops.convert_to_tensor([1])\n"
    )
    assert "DTypeError" in late.stderr
    assert "jax_enable_x64" in late.stderr


@pytest.mark.usefixtures("on_jax")
@pytest.mark.parametrize(("shape", "count"), [((4, 5), 20), ((130, 128), 8)], ids=["small", "large"])
def test_a_new_rate_of_an_optimizer_compiles_nothing(shape: tuple[int, ...], count: int) -> None:
    compiled: list[int] = []

    def steps() -> Any:
        cells = [Parameter(np.full(shape, 0.1 * i, np.float32)) for i in range(count)]
        optimizer = optim.AdamW(cells, 1e-2)
        for rate in (1e-2, 5e-3, 1e-3, 1e-4):
            optimizer.param_groups[0]["lr"] = rate
            for i, cell in enumerate(cells):
                cell.grad = ops.full(shape, 1.0 + i)
            optimizer.step()
            compiled.append(programs._run_on_row._cache_size())
        return np.stack([ops.to_numpy(cell.value) for cell in cells])

    before = programs._run_on_row._cache_size()
    found = steps()
    assert compiled[1] == compiled[-1]
    assert compiled[-1] > before
    with ops.use_backend("numpy"):
        np.testing.assert_allclose(found, steps(), rtol=1e-6)


@pytest.mark.usefixtures("on_jax")
def test_a_step_keeps_the_dtype_of_a_parameter_whose_state_is_wider() -> None:
    optimizer = optim.Lion(cells := [Parameter(np.ones(3, np.float32)) for _ in range(2)], lr=0.5)
    for cell in cells:
        optimizer.state[cell] = {"exp_avg": Buffer(ops.ones(3, dtype="float64"))}
        cell.grad = ops.ones(3)
    optimizer.step()
    assert [cell.value.dtype for cell in cells] == ["float32"] * 2
    assert ops.to_numpy(cells[0].value).tolist() == [0.5] * 3


@pytest.mark.usefixtures("on_jax")
def test_a_module_with_tensors_of_jax_is_pickled_for_any_backend() -> None:
    net = nn.Linear(2, 3, rng=nn.Rngs(0))
    ops.backward(lambda: ops.sum(net(ops.ones((1, 2)))), net)
    optim.SGD(net, 0.1).step()
    packed, right = pickle.dumps(net), ops.to_numpy(net(ops.ones((1, 2))))
    assert isinstance(pickle.loads(packed).weight.value, jax.Array)
    with ops.use_backend("numpy"):
        other = pickle.loads(packed)
        np.testing.assert_allclose(other(ops.ones((1, 2))), right, rtol=1e-6)
        assert isinstance(other.weight.value, np.ndarray)


@pytest.mark.usefixtures("on_jax")
def test_transforms_nest_in_a_compiled_function() -> None:
    def loss(x: Any) -> Any:
        return ops.sum(ops.sin(x) * x)

    rows = ops.convert_to_tensor(np.linspace(0.0, 1.0, 6, dtype=np.float32).reshape(2, 3))
    each = np.stack([ops.grad(loss)(row) for row in rows])
    np.testing.assert_allclose(ops.vmap(ops.grad(ops.compile(loss)))(rows), each, rtol=1e-6)
    np.testing.assert_allclose(ops.compile(ops.vmap(ops.grad(loss)))(rows), each, rtol=1e-6)
    np.testing.assert_allclose(jax.jit(jax.vmap(jax.grad(ops.compile(loss))))(rows), each, rtol=1e-6)


@pytest.mark.usefixtures("on_jax")
def test_forgetting_frees_programs_that_are_then_compiled_again(on_jax: Any) -> None:
    assert float(ops.relu(tensor(-1.0))[0]) == 0.0
    on_jax.free_caches()
    assert float(ops.relu(tensor(2.0))[0]) == 2.0


def test_composites_are_one_program_unless_they_read_values_or_depend_on_more(on_jax: Any) -> None:
    joined = {name for name in OPS if name in vars(fusion.JAXFusedOps)}
    assert {"gelu", "linear", "meshgrid", "nanargmax", "softmax"} <= joined
    assert joined.isdisjoint(("array", "cond", "dropout", "embedding", "hard_silu", "quantile", "ravel", "relu", "sin"))
    assert not any(OPS[name].facts.reads for name in joined)
    with pytest.raises(IndexOutOfBoundsError):
        ops.embedding([3], np.eye(3, dtype="float32"))


@pytest.mark.slow
@pytest.mark.usefixtures("on_jax")
def test_the_gpt_switches_between_four_backends() -> None:
    found = ops.available_backends()
    names = [name for name in ("numpy", "jax", "torch", "mlx") if name in found]
    result = gpt.run(names, steps=3)
    assert result.differences.agrees, result.differences


@pytest.mark.slow
@pytest.mark.parametrize(("pattern", "count"), [("[a-f]*", 150), ("[g-m]*", 90), ("[n-r]*", 85), ("[s-z]*", 90)])
def test_the_profile_has_no_failure_and_lacks_no_op(tmp_path: Path, pattern: str, count: int) -> None:
    report = tmp_path / "report.json"
    program = "from emberharmony.cli import main; main()"
    options = ["conformance", "--backend", "jax", "--op", pattern, "--quick", "--most", "1", "--json", str(report)]
    environment = os.environ | {"JAX_ENABLE_X64": "1", "XLA_FLAGS": CHEAP}
    command = [sys.executable, "-c", program, *options]
    # The whole profile may take 15 minutes; it takes 8 of processor time.
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=False, timeout=900)
    assert done.returncode == 0, done.stdout[-4000:] + done.stderr[-2000:]
    entries = json.loads(report.read_text())["ops"]
    lacking = {entry["op"]: entry["reason"] for entry in entries if entry["status"] == "unsupported"}
    assert lacking == {}
    assert len(entries) >= count


def test_outer_derivatives_go_through_the_result_of_a_function_with_its_own_gradient(on_jax: Any) -> None:
    def sine(x: Any) -> Any:
        return ops.host_call(np.sin, x, vjp=lambda x, upstream: ops.multiply(upstream, ops.cos(x)))

    second = ops.grad(lambda x: ops.grad(lambda x: ops.exp(sine(x)))(x))(ops.array(0.5))
    assert float(second) == pytest.approx(np.exp(np.sin(0.5)) * (np.cos(0.5) ** 2 - np.sin(0.5)), rel=1e-5)
    unused = ops.grad(lambda x: (ops.square(x), ops.host_call(np.sin, x)), has_aux=True)(ops.array(0.5))
    assert float(unused[0]) == 1.0


def test_powers_of_two_that_are_subnormal_are_not_0(on_jax: Any) -> None:
    x = [-1060.0, -1074.0, 0.5]
    assert ops.exp2(ops.array(x, "float64")).tolist() == np.exp2(x).tolist()


@pytest.mark.usefixtures("on_jax")
@pytest.mark.parametrize(
    ("dtype", "wanted"),
    [("complex64", "float64"), ("float32", "complex64"), ("complex64", "int16"), ("bool", "int32"), ("uint8", "bool")],
)
def test_a_view_in_a_transform_has_the_bits_of_one_outside(dtype: str, wanted: str) -> None:
    floats = np.array([[1.0, np.inf, -0.0, -np.inf], [0.5, 0.0, np.nan, 3.0]], np.float32)
    x = floats.view("uint8") % 2 if dtype in ("bool", "uint8") else floats
    x = ops.convert_to_tensor(x.view(dtype))
    bits = ops.to_numpy(ops.view(x, wanted)).tobytes()
    for function in (ops.compile(lambda x: ops.view(x, wanted)), ops.vmap(lambda x: ops.view(x, wanted))):
        found = function(x)
        assert (ops.dtype(found), ops.to_numpy(found).tobytes()) == (wanted, bits)


@pytest.mark.usefixtures("on_jax")
def test_a_number_is_viewed_in_a_compiled_function() -> None:
    x = ops.convert_to_tensor(np.float64(-1.5))
    found = ops.compile(lambda x: ops.view(x, "complex64"))(x)
    assert (found.shape, ops.to_numpy(found)) == ((), np.float64(-1.5).view("complex64"))


@pytest.mark.usefixtures("on_jax")
@pytest.mark.parametrize("name", ["arctanh", "log1p"])
def test_logarithms_in_float64_have_all_digits(name: str) -> None:
    """JAX's own lose up to seven bits."""
    sizes = np.concatenate([np.logspace(-12, -1, 50), np.linspace(0.1, 0.9, 81), 1 - np.logspace(-1, -12, 50)])
    x = np.concatenate([sizes, -sizes])
    wanted = getattr(np, name)(x.astype(np.longdouble))
    np.testing.assert_allclose(ops.to_numpy(getattr(ops, name)(x)), wanted, 4 * np.finfo(np.float64).eps)


def test_the_device_that_is_named_is_asked_and_awaited(monkeypatch: pytest.MonkeyPatch) -> None:
    statistics = {"bytes_in_use": 3, "bytes_limit": 9}
    named, placed = SimpleNamespace(memory_stats=lambda: statistics), list[Any]()
    monkeypatch.setattr(device_ops, "requested_device", lambda device: named if device == "named" else None)
    monkeypatch.setattr(jax, "device_put", lambda x, device: placed.append(device) or 0.0)
    with ops.use_backend("jax"):
        assert ops.memory_info("named") == {"used": 3, "reserved": 3, "total": 9}
        statistics["bytes_reserved"] = 5
        assert ops.memory_info("named")["reserved"] == 5
        assert ops.memory_info()["total"] > 9
        ops.synchronize("named")
        ops.synchronize()
    assert placed == [named, jax.devices()[0]]
