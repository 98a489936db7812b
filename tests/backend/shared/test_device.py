"""Tensors that an op creates are on the device of its arguments, not on the default device.

The test machine may have one device only, so PyTorch's "meta" device, whose tensors have no values, serves as a
second one. It raises when an op reads values on the host, or when PyTorch cannot infer the shape; these errors are
accepted. A mixture of devices raises with different words, which `MIXED` matches.
"""

import asyncio
import importlib
import re
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

from emberharmony import ops
from emberharmony.backend.shared import device
from emberharmony.backend.shared.device import check_memory
from emberharmony.core.errors import EmberError, OutOfMemoryError
from emberharmony.core.registry import OPS
from emberharmony.testing.samples import all_samples
from tests.sampling import portion
from tests.together import together

torch = pytest.importorskip("torch")
KINDS = {"f": torch.float32, "i": torch.int64, "u": torch.uint8, "b": torch.bool, "c": torch.complex64}
SAMPLES = {name: sample for name, sample in all_samples().items() if sample.cases}
MIXED = re.compile("expected device|same device|different devices")
ON_THE_HOST = {"random_permutation": "it has no tensor argument: it permutes a range"}


@pytest.fixture
def second_device(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    devices = importlib.import_module("emberharmony.backend.torch.device_ops")
    known = devices.as_native_device
    monkeypatch.setattr(
        devices, "as_native_device", lambda name: torch.device("meta") if str(name) == "meta" else known(name)
    )
    before = ops.get_backend()
    ops.set_backend("torch")
    yield
    ops.set_backend(before)


def _moved(value: Any) -> Any:
    if isinstance(value, np.ndarray) and value.dtype.kind in KINDS:
        return torch.empty(value.shape, dtype=KINDS[value.dtype.kind], device="meta")
    if isinstance(value, (list, tuple)) and any(isinstance(item, np.ndarray) for item in value):
        return type(value)(_moved(item) for item in value)
    return value


@together("name", portion(sorted(SAMPLES.keys() - ON_THE_HOST.keys()), 3))
@pytest.mark.usefixtures("second_device")
def test_an_op_creates_tensors_on_the_device_of_its_arguments(name: str) -> None:
    for case in SAMPLES[name].cases:
        args, kwargs = _moved(case.args), {key: _moved(value) for key, value in case.kwargs.items()}
        if not any(isinstance(value, torch.Tensor) for value in args):
            continue
        result, refusal = None, ""
        try:
            result = OPS[name].function(*args, **kwargs)
        except (EmberError, NotImplementedError, RuntimeError) as error:
            refusal = str(error)
        assert not MIXED.search(refusal), refusal
        parts = result if isinstance(result, (tuple, list)) else [result]
        assert {part.device.type for part in parts if isinstance(part, torch.Tensor)} <= {"meta"}


def test_a_tensor_larger_than_the_memory_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    check_memory((2**40, 0), 8)
    check_memory((2**20, 2**8), 1)
    with pytest.raises(OutOfMemoryError, match=r"takes 4 GiB, and this process can have at most 3"):
        check_memory((2**15, 2**15), 4, lambda: 3 * 2**30)
    check_memory((2**15, 2**15), 4, lambda: 4 * 2**30)
    with pytest.raises(OutOfMemoryError, match="narrower dtype"):
        check_memory((2**31 - 1, 2**31 - 1, 4), 4)  # this size overflows 64 bits, in MLX as in C


def test_the_memory_limit_is_the_least_of_all_limits(monkeypatch: pytest.MonkeyPatch) -> None:
    files = {"/proc/meminfo": "MemTotal: 99 kB\nSwapTotal:       2048 kB\n"}
    monkeypatch.setattr(device, "_read_file", lambda path: files.get(path, ""))
    monkeypatch.setattr(device, "host_memory_info", lambda: {"total": 2**30})
    allowed = [-1]
    monkeypatch.setattr(device, "_free_address_space", lambda: allowed[0])
    assert device.memory_limit() == 2**30 + 2**21
    files["/sys/fs/cgroup/memory.max"] = "max\n"
    assert device.memory_limit() == 2**30 + 2**21
    files["/sys/fs/cgroup/memory.max"] = "1048576\n"
    assert device.memory_limit() == 2**20 + 2**21
    allowed[0] = 2**19
    assert device.memory_limit() == 2**19
    monkeypatch.setattr(device, "host_memory_info", lambda: {"total": -1})
    files.clear()
    allowed[0] = -1
    assert device.memory_limit() == device.ADDRESSABLE


def test_a_task_keeps_the_device_of_the_block_in_which_it_began() -> None:
    placement = device.Placement()
    seen: list[Any] = []

    async def note() -> None:
        seen.append(placement.device_to_use(None))
        await asyncio.sleep(0)
        seen.append(placement.device_to_use(None))

    async def begin() -> None:
        with placement.override_default("second"):
            task = asyncio.create_task(note())
        assert placement.device_to_use(None) is None
        await task

    asyncio.run(begin())
    assert seen == ["second", "second"]
    assert not placement.is_changed


def test_ops_ask_for_the_device_only_while_one_is_set() -> None:
    placement = device.Placement()
    with pytest.raises(ValueError, match="inside"), placement.override_default("first"):
        assert placement.is_changed
        with placement.override_default("second"):
            assert placement.device_to_use(None) == "second"
        assert placement.device_to_use(None) == "first"
        raise ValueError("inside")
    assert not placement.is_changed
    placement.set_default("first")
    with placement.override_default("second"):
        assert placement.device_to_use(None) == "second"
    assert placement.is_changed
    assert placement.device_to_use(None) == "first"
    placement.set_default(None)
    assert not placement.is_changed
