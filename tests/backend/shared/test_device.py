"""What an op makes beside its tensors lies on their device, whatever the default one is.

There may be no second device here, so PyTorch's device without values, "meta", stands for one. What ops read on the
host, and what PyTorch has no shapes for, it refuses; a mixture of devices it refuses in other words.
"""

import importlib
import re
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

from emberharmony import ops
from emberharmony.core.errors import EmberError
from emberharmony.core.registry import OPS
from emberharmony.testing.samples import all_samples

torch = pytest.importorskip("torch")
KINDS = {"f": torch.float32, "i": torch.int64, "u": torch.uint8, "b": torch.bool, "c": torch.complex64}
SAMPLES = {name: sample for name, sample in all_samples().items() if sample.cases}
MIXED = re.compile("expected device|same device|different devices")
ON_THE_HOST = {"random_permutation": "what is permuted is drawn, and is no tensor"}


@pytest.fixture
def second_device(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    devices = importlib.import_module("emberharmony.backend.torch.device_ops")
    known = devices.native
    monkeypatch.setattr(devices, "native", lambda name: torch.device("meta") if str(name) == "meta" else known(name))
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


@pytest.mark.parametrize("name", sorted(SAMPLES.keys() - ON_THE_HOST.keys()))
@pytest.mark.usefixtures("second_device")
def test_an_op_stays_on_the_device_of_its_tensors(name: str) -> None:
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
