"""On JAX: accelerators by name, 64 bits, memory that is shared, transforms within others, and draws."""

from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

jax = pytest.importorskip("jax")

from emberharmony import ops
from emberharmony.backend import discovery
from emberharmony.backend.jax import device_ops, dtypes
from emberharmony.backend.jax.flow import host_programs
from emberharmony.core import selection
from emberharmony.core.errors import BackendUnavailableError, DeviceError, DTypeError, TracedTensorError
from emberharmony.transforms.recorder import Recorder

X = np.array([1.0, 2.0, 3.0])


@pytest.fixture(autouse=True)
def jax_backend() -> Any:
    with ops.use_backend("jax") as backend:
        yield backend


def test_accelerators_are_named_by_kind_and_number(monkeypatch: pytest.MonkeyPatch) -> None:
    accelerators = [
        SimpleNamespace(platform="gpu", memory_stats=lambda: {"bytes_in_use": 3, "bytes_limit": 9}) for _ in range(2)
    ]
    monkeypatch.setattr(device_ops, "_accelerators", lambda: accelerators)
    for name, accelerator in (("gpu", accelerators[0]), ("gpu:0", accelerators[0]), ("gpu:1", accelerators[1])):
        assert device_ops.as_native_device(name) is accelerator
    assert list(map(device_ops.neutral_name, accelerators)) == ["gpu", "gpu:1"]
    for name in ("gpu:2", "cpu:1", "tpu"):
        with pytest.raises(DeviceError):
            device_ops.as_native_device(name)
    monkeypatch.setattr(device_ops, "requested_device", lambda device: accelerators[0])
    found = device_ops.JAXDeviceOps.memory_info()
    assert found == {"used": 3, "reserved": 3, "total": 9}
    monkeypatch.setattr(accelerators[0], "memory_stats", lambda: None)
    assert device_ops.JAXDeviceOps.memory_info()["total"] > 0


def test_jax_computes_in_64_bits_unless_the_environment_forbids_it(monkeypatch: pytest.MonkeyPatch) -> None:
    try:
        jax.config.update("jax_enable_x64", False)
        with pytest.raises(DTypeError, match="JAX narrows float64 to float32"):
            dtypes.of_host(X)
        monkeypatch.setenv("JAX_ENABLE_X64", "0")
        with pytest.raises(BackendUnavailableError, match="JAX_ENABLE_X64 forbids"):
            dtypes.enable_x64()
        monkeypatch.delenv("JAX_ENABLE_X64")
        with pytest.warns(UserWarning, match="has set jax_enable_x64"):
            dtypes.enable_x64()
        assert dtypes.of_host(X).dtype == np.float64
    finally:
        jax.config.update("jax_enable_x64", True)


def test_results_of_programs_on_the_host_have_memory_of_their_own() -> None:
    tensor = jax.device_put(X)
    shared = np.asarray(tensor)
    assert not np.may_share_memory(host_programs._array_of(tensor, [shared]), shared)
    bits = host_programs._array_of(jax.numpy.ones(2, "bfloat16"), [])
    assert bits.flags.writeable
    own = host_programs._array_of(jax.numpy.arange(3.0), [])
    own += 1.0
    assert own.tolist() == [1.0, 2.0, 3.0]


def test_programs_are_kept_where_the_settings_say(monkeypatch: pytest.MonkeyPatch) -> None:
    before = jax.config.jax_compilation_cache_dir, jax.config.jax_persistent_cache_min_compile_time_secs
    try:
        jax.config.update("jax_compilation_cache_dir", None)
        for folder, wanted in ((None, None), ("kept", "kept"), ("other", "kept")):
            monkeypatch.setattr(host_programs, "cache_folder", lambda name, folder=folder: folder)
            host_programs._set_cache_folder()
            assert jax.config.jax_compilation_cache_dir == wanted
    finally:
        jax.config.update("jax_compilation_cache_dir", before[0])
        jax.config.update("jax_persistent_cache_min_compile_time_secs", before[1])


def test_transforms_of_jax_run_within_those_that_checks_record() -> None:
    square = ops.custom_gradient(lambda x: (ops.square(x), lambda x, upstream: ops.multiply(upstream, 3.0)))
    functions = {
        "forward mode": (lambda x: ops.sum(ops.jvp(ops.square, (x,), (ops.ones_like(x),))[1]), [2.0] * 3),
        "mapped": (lambda x: ops.sum(ops.vmap(ops.square)(x)), [2.0, 4.0, 6.0]),
        "custom": (lambda x: ops.sum(square(x)), [3.0] * 3),
    }
    for function, wanted in functions.values():
        assert ops.grad(function)(X).tolist() == wanted
        with ops.checked("nan"):
            assert ops.grad(function)(X).tolist() == wanted


def test_a_custom_gradient_of_what_a_record_holds_is_recorded_by_its_ops(jax_backend: Any) -> None:
    square = ops.custom_gradient(lambda x: (ops.square(x), lambda x, upstream: ops.multiply(upstream, 3.0)))
    record = Recorder(selection.current(), [ops.asarray(X)])
    traced = record.tensor(0)
    assert square(traced).value.tolist() == [1.0, 4.0, 9.0]
    assert [call.function for call in record.calls] == ["square"]
    y, pull = ops.vjp(ops.exp, traced)
    assert pull(ops.ones(3, "float64"))[0].value.tolist() == y.value.tolist() == ops.exp(X).tolist()
    assert jax_backend.run_update(None, [[traced]]) is None


def test_errors_of_functions_pass_through_the_transforms() -> None:
    def fail(x: Any) -> Any:
        raise KeyError("of the function")

    x = ops.asarray(X)
    for call in (
        lambda: ops.jvp(fail, (x,), (x,)),
        lambda: ops.vmap(fail)(x),
        lambda: ops.grad(fail)(x),
        lambda: ops.compile(fail)(x),
    ):
        with pytest.raises(KeyError, match="of the function"):
            call()
    with pytest.raises(TracedTensorError):
        ops.grad(lambda y: ops.sum(ops.custom_gradient(lambda x: (ops.multiply(x, y), lambda x, upstream: x))(x)))(x)


def test_numbers_that_are_not_finite_are_found_also_where_values_are_unknown() -> None:
    with ops.checked("nan", policy="record") as found:
        ops.log(ops.asarray([1.0, -1.0]))
        ops.log(ops.cast(ops.asarray([1.0, -1.0]), "bfloat16"))
        ops.exp(ops.asarray([1.0, 2.0]))
        jax.jit(ops.log)(ops.asarray([-1.0]))
    assert [finding.op for finding in found] == ["log", "log"]


@pytest.mark.parametrize("dtype", ["float16", "bfloat16", "float32", "float64"])
def test_draws_have_their_dtype_and_are_below_one(dtype: Any) -> None:
    x = ops.random.uniform((2000,), dtype=dtype)
    assert ops.dtype(x) == dtype
    values = ops.to_numpy(ops.cast(x, "float64"))
    assert values.min() >= 0
    assert values.max() < 1
    assert abs(values.mean() - 0.5) < 0.05


def test_tensors_of_jax_are_taken_by_dlpack_as_they_are(jax_backend: Any) -> None:
    x = jax.numpy.arange(3.0)
    assert ops.from_dlpack(x) is x
    found = ops.from_dlpack(x, copy=True)
    assert found is not x
    assert found.tolist() == [0.0, 1.0, 2.0]
    assert discovery.load("jax") is jax_backend


def test_bfloat16_which_numpy_lacks_is_taken_by_dlpack() -> None:
    torch = pytest.importorskip("torch")
    found = ops.from_dlpack(torch.tensor([1.0, 2.5], dtype=torch.bfloat16))
    assert ops.dtype(found) == "bfloat16"
    assert ops.cast(found, "float32").tolist() == [1.0, 2.5]
