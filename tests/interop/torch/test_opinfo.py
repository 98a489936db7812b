"""The table of ATen against PyTorch's samples of its operators: a few in `make test`, all in `make deep`."""

from typing import Any

import pytest

from emberharmony.errors import CaptureError, DTypeError, EmberError, UnsupportedOpError
from tests.sampling import SEED

torch: Any = pytest.importorskip("torch")

from tests.interop.torch.opinfo import NOT_UNIQUE, UNLIKE, differences, operators

QUICK = "addmm clamp cumsum gather matmul max.reduction_with_dim nn.functional.conv2d scatter_add softmax var where"


def compared(name: str, info: Any, backend: str, dtype: Any = None) -> str:
    """Returns what differs; an empty string if nothing does, or PyTorch cannot export the operator."""
    try:
        return "; ".join(differences(info, backend, *([dtype] if dtype else [])))
    except (CaptureError, DTypeError, UnsupportedOpError):
        return ""
    except (AssertionError, NotImplementedError, RuntimeError) as error:
        if isinstance(error, EmberError):
            raise
        return ""  # PyTorch's own: the operator is of complex or sparse tensors, or of a GPU


def test_a_few_operators_are_those_of_pytorch() -> None:
    infos = operators()
    chosen = [name for name in QUICK.split() if name in infos]
    place = SEED % len(chosen)
    for name in [chosen[(place + i) % len(chosen)] for i in range(4)]:
        assert compared(name, infos[name], "numpy") == "", name


@pytest.mark.filterwarnings("ignore")  # operators that are deprecated, and what PyTorch says of the export
@pytest.mark.slow
def test_all_operators_are_those_of_pytorch() -> None:
    faults = {}
    for name, info in operators().items():
        if name not in UNLIKE and not name.startswith(NOT_UNIQUE) and "polygamma" not in name:
            note = compared(name, info, "numpy")
            faults.update({name: note} if note else {})
    assert not faults
