"""The table of ATen against PyTorch's samples of its operators; `make test` has `modules.Operators` for a few."""

from typing import Any

import pytest

from emberharmony.errors import CaptureError, DTypeError, EmberError, UnsupportedOpError

torch: Any = pytest.importorskip("torch")

from tests.interop.torch.opinfo import NOT_UNIQUE, UNLIKE, differences, operators


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


@pytest.mark.filterwarnings("ignore")  # operators that are deprecated, and what PyTorch says of the export
@pytest.mark.slow
def test_all_operators_are_those_of_pytorch() -> None:
    faults = {}
    for name, info in operators().items():
        if name not in UNLIKE and not name.startswith(NOT_UNIQUE) and "polygamma" not in name:
            note = compared(name, info, "numpy")
            faults.update({name: note} if note else {})
    assert not faults
