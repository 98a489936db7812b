"""`ops.precision`: what it says, what it sets in each library, and what it refuses."""

import asyncio
import contextlib
import json
import threading
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

from emberharmony import ops
from emberharmony.backend.base import Backend
from emberharmony.backend.shared import precision as shared
from emberharmony.errors import ArgumentError, UnsupportedOpError

FULL = {"products": "float32", "convolutions": "float32"}
BITS = {"float32": 24, "tf32": 11, "bfloat16": 8}


def rounded(x: np.ndarray, bits: int) -> np.ndarray:
    mantissa, exponent = np.frexp(x)
    return np.asarray(np.ldexp(np.round(mantissa * 2**bits) / 2**bits, exponent), np.float32)


@pytest.mark.parametrize("state", BITS)
def test_the_error_of_a_product_tells_its_precision(state: str) -> None:
    a, b = np.random.default_rng(3).standard_normal((2, 256, 256)).astype(np.float32)
    product = rounded(a, BITS[state]) @ rounded(b, BITS[state])
    exact = a.astype(np.float64) @ b
    assert shared.precision_of_error(float(np.linalg.norm(product - exact) / np.linalg.norm(exact))) == state


def test_a_product_of_nan_is_not_taken_for_exact() -> None:
    assert shared.precision_of_error(float("nan")) == "bfloat16"


def test_processors_multiply_in_full_precision(backend: str) -> None:
    assert ops.precision() == FULL
    with ops.precision("float32"):
        assert ops.precision() == FULL


@pytest.mark.parametrize("state", ["tf32", "bfloat16"])
def test_a_precision_that_the_device_lacks_is_refused(backend: str, state: Any) -> None:
    if backend == "torch" and state == "bfloat16" and torch_rounds():
        pytest.skip("this processor multiplies in bfloat16")
    words = rf"precision\('{state}'\) on backend '{backend}', device 'cpu': products of float32 are .* in float32"
    with pytest.raises(UnsupportedOpError, match=words):
        ops.precision(state).__enter__()
    with pytest.raises(UnsupportedOpError), ops.precision(state):
        pass
    assert ops.precision() == FULL


def torch_rounds() -> bool:
    import torch

    return bool(torch.cpu._is_amx_tile_supported())


def test_unknown_precisions_have_a_hint() -> None:
    with pytest.raises(ArgumentError, match=r"float32, tf32, bfloat16, not 'float23'; did you mean 'float32'\?"):
        ops.precision("float23")  # type: ignore[call-overload]


@pytest.fixture
def effective(monkeypatch: pytest.MonkeyPatch) -> Any:
    """Lets each backend take the device for one that follows the setting, as an accelerator does."""

    def follow(kind: Any, backend: Any, read: Any) -> None:
        monkeypatch.setattr(kind, "product_precision", lambda self, device=None: dict.fromkeys(shared.KINDS, read()))

    return follow


def torch_state() -> str:
    import torch

    return {"ieee": "float32", "none": "float32", "tf32": "tf32", "bf16": "bfloat16"}[
        torch.backends.mkldnn.matmul.fp32_precision  # type: ignore[attr-defined]
    ]


@pytest.fixture
def following_torch(effective: Any) -> Iterator[Any]:
    torch = pytest.importorskip("torch")
    from emberharmony.backend.torch import TorchBackend
    from emberharmony.backend.torch.precision import SETTING

    before = SETTING.read()
    with ops.use_backend("torch") as backend:
        effective(TorchBackend, backend, torch_state)
        yield torch
    assert SETTING.opened == []
    assert SETTING.read() == before


WORDS = {
    "float32": ("highest", False, "ieee", "ieee"),
    "tf32": ("high", True, "tf32", "tf32"),
    "bfloat16": ("medium", True, "tf32", "bf16"),
}


@pytest.mark.parametrize("state", WORDS)
def test_torch_gets_both_generations_of_settings(following_torch: Any, state: Any) -> None:
    torch = following_torch
    matmul, cudnn, cuda, cpu = WORDS[state]
    with ops.precision(state):
        assert torch.get_float32_matmul_precision() == matmul
        assert torch.backends.cudnn.allow_tf32 is cudnn
        for kind in (torch.backends.cuda.matmul, torch.backends.cudnn.conv, torch.backends.cudnn.rnn):
            assert kind.fp32_precision == cuda
        for kind in (torch.backends.mkldnn.matmul, torch.backends.mkldnn.conv, torch.backends.mkldnn.rnn):
            assert kind.fp32_precision == cpu


def test_blocks_nest_and_end_in_any_order(following_torch: Any) -> None:
    with ops.precision("tf32"):
        with ops.precision("float32"):
            assert torch_state() == "float32"
        assert torch_state() == "tf32"
        with contextlib.suppress(KeyError), ops.precision("bfloat16"):
            raise KeyError
        assert torch_state() == "tf32"
    first, second = ops.precision("tf32"), ops.precision("bfloat16")
    leave_first, leave_second = first.__exit__, second.__exit__
    first.__enter__()
    second.__enter__()
    leave_first()
    assert torch_state() == "bfloat16"
    leave_second()


def test_a_function_can_be_decorated(following_torch: Any) -> None:
    @ops.precision("tf32")
    def state(depth: int) -> list[str]:
        return [torch_state(), *(state(depth - 1) if depth else [])]

    assert state(2) == ["tf32"] * 3


def test_a_setting_of_the_user_comes_back(following_torch: Any) -> None:
    torch = following_torch
    torch.set_float32_matmul_precision("high")
    try:
        with ops.precision("float32"):
            assert torch.get_float32_matmul_precision() == "highest"
        assert torch.get_float32_matmul_precision() == "high"
        assert torch.backends.cuda.matmul.fp32_precision == "tf32"
    finally:
        torch.set_float32_matmul_precision("highest")
        for kind in (torch.backends.cuda.matmul, torch.backends.mkldnn.matmul):
            kind.fp32_precision = "none"


def in_a_thread(function: Any) -> Any:
    """Returns what a function returned or raised in another thread, which knows no block of this one."""
    results: list[Any] = []

    def run() -> None:
        try:
            results.append(function())
        except UnsupportedOpError as error:
            results.append(error)

    thread = threading.Thread(target=run)
    thread.start()
    thread.join()
    return results[0]


def test_threads_share_the_setting_of_torch_and_do_not_fight_over_it(following_torch: Any) -> None:
    def enter(state: Any) -> str:
        with ops.use_backend("torch"), ops.precision(state):
            return torch_state()

    with ops.precision("tf32"):
        assert in_a_thread(lambda: enter("tf32")) == "tf32"
        assert torch_state() == "tf32"
        refused = in_a_thread(lambda: enter("float32"))
        assert isinstance(refused, UnsupportedOpError)
        assert "another thread or task computes in 'tf32' now" in str(refused)
        assert torch_state() == "tf32"
    assert in_a_thread(lambda: enter("float32")) == "float32"


def test_tasks_do_not_fight_over_it_either(following_torch: Any) -> None:
    seen: list[str] = []

    async def hold(state: Any, inside: asyncio.Event, go_on: asyncio.Event) -> None:
        with ops.precision(state):
            inside.set()
            await go_on.wait()
            seen.append(torch_state())

    async def main() -> None:
        inside, go_on = asyncio.Event(), asyncio.Event()
        first = asyncio.create_task(hold("tf32", inside, go_on))
        await inside.wait()
        with pytest.raises(UnsupportedOpError, match="another thread or task"), ops.precision("float32"):
            pass
        go_on.set()
        await first

    asyncio.run(main())
    assert seen == ["tf32"]


def test_bfloat16_is_refused_on_cuda(following_torch: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    from emberharmony.backend.torch import precision

    monkeypatch.setattr(precision, "place", lambda device: following_torch.device("cuda"))
    with pytest.raises(UnsupportedOpError, match=r"no such setting for CUDA; use 'tf32', or ops\.autocast"):
        ops.precision("bfloat16").__enter__()


@pytest.mark.parametrize(
    ("state", "word"), [("float32", "float32"), ("tf32", "tensorfloat32"), ("bfloat16", "bfloat16")]
)
def test_jax_gets_its_setting_for_the_thread(effective: Any, state: Any, word: str) -> None:
    jax = pytest.importorskip("jax")
    from emberharmony.backend.jax import JAXBackend
    from emberharmony.backend.jax.algebra.products_ops import chosen_precision

    names = {"tensorfloat32": "tf32", None: "float32"}
    with ops.use_backend("jax") as backend:
        effective(JAXBackend, backend, lambda: names.get(read := jax.config.jax_default_matmul_precision, read))
        assert chosen_precision() is jax.lax.Precision.HIGHEST
        with ops.precision(state):
            assert jax.config.jax_default_matmul_precision == word
            assert in_a_thread(lambda: jax.config.jax_default_matmul_precision) is None
            assert chosen_precision() is None
            text = str(jax.make_jaxpr(backend.matmul)(np.ones((2, 2), "f4"), np.ones((2, 2), "f4")))
            wanted = {"float32": "HIGHEST", "tf32": "HIGH", "bfloat16": "DEFAULT"}[state]
            assert f"Precision.{wanted}," in text or f"precision={wanted.lower()}" in text.lower(), text
        assert jax.config.jax_default_matmul_precision is None


def test_mlx_names_the_variable_that_it_reads(effective: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    mx = pytest.importorskip("mlx.core")
    from emberharmony.backend.mlx import MLXBackend, device_ops

    class Metal:
        gpu = cpu = "one device"

        @staticmethod
        def default_device() -> Any:
            return type("Device", (), {"type": "one device"})

    with ops.use_backend("mlx") as backend:
        effective(MLXBackend, backend, lambda: "tf32")
        with ops.precision("tf32"):
            assert ops.precision()["products"] == "tf32"
        monkeypatch.setattr(device_ops, "mx", Metal)
        assert "start the program with MLX_ENABLE_TF32=0" in backend.missing_precision_reason("float32")
        assert "MLX_ENABLE_TF32=1" in backend.missing_precision_reason("tf32")
    assert mx.default_device().type == mx.cpu


def test_a_coarser_convolution_is_refused(monkeypatch: pytest.MonkeyPatch, backend: str) -> None:
    measured = {"products": "float32", "convolutions": "tf32"}
    with ops.use_backend(backend) as active:
        monkeypatch.setattr(type(active), "product_precision", lambda self, device=None: measured)
        with pytest.raises(UnsupportedOpError, match="convolutions in tf32 there"):
            ops.precision("float32").__enter__()


def test_the_precision_is_measured_once(monkeypatch: pytest.MonkeyPatch) -> None:
    made: list[str] = []
    monkeypatch.setitem(shared._MEASURES, "products", lambda bound: made.append("products") or 5e-4)
    with ops.use_backend("numpy") as backend:
        monkeypatch.setattr(backend, "_measured", None)
        assert ops.precision() == {"products": "tf32", "convolutions": "float32"}
        assert ops.precision()["products"] == "tf32"
    assert made == ["products"]
    assert Backend.precision_setting(backend, "tf32") is None


def test_reports_and_checkpoints_say_the_precision(tmp_path: Any, backend: str) -> None:
    from emberharmony import io, nn
    from emberharmony.testing.differences.report import environment

    with ops.use_backend(backend) as active:
        path = io.Checkpoint(tmp_path).save(1, model=nn.Linear(2, 2))
        assert environment([active])[f"precision of {backend}"] == "products float32, convolutions float32"
    with open(f"{path}/state.json", encoding="utf-8") as file:
        assert json.load(file)["written"]["precision"] == FULL


def test_the_tolerance_of_products_follows_the_precision(monkeypatch: pytest.MonkeyPatch) -> None:
    from emberharmony.backend.precision import PrecisionBlock
    from emberharmony.testing.checks import value_calls
    from emberharmony.testing.conformance import call_with_device_tolerance
    from emberharmony.testing.samples import all_samples

    def growth(op: str, dtype: str) -> float:
        row = all_samples()[op]
        call = next(call for call in value_calls(row) if call.dtype == dtype)
        return call_with_device_tolerance(row, call).tolerance / call.tolerance

    with ops.use_backend("numpy") as backend:
        assert growth("matmul", "float32") == 1.0
        coarse = {"products": "float32", "convolutions": "tf32"}
        monkeypatch.setattr(type(backend), "product_precision", lambda self, device=None: coarse)
        assert growth("matmul", "float32") == 1.0, "on a CPU a product that is off is wrong"
        monkeypatch.setattr(PrecisionBlock, "is_open", lambda: True)
        assert growth("matmul", "float32") == growth("cov", "float32") == 2.0**13
        assert growth("matmul", "float64") == growth("exp", "float32") == growth("softmax", "float32") == 1.0
        coarse["products"] = "bfloat16"
        assert growth("matmul", "float32") == 2.0**16
