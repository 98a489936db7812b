"""The methods of tensors: which libraries have them, and when a call is tied to some of them."""

from pkgutil import resolve_name
from typing import Any

import pytest

from emberharmony import ops
from emberharmony.backend.discovery import is_installed
from emberlint.knowledge.methods import LIBRARIES, OF_TORCH, TENSORS, libraries_by_method, library_tie_reason, op_of
from emberlint.knowledge.signatures import signatures


@pytest.mark.parametrize("library", LIBRARIES)
def test_the_tensors_of_a_library_have_the_methods(library: str) -> None:
    if not is_installed(library):
        pytest.skip(f"{library} is not installed")
    with ops.use_backend(library):
        kind: Any = type(ops.ones(3))
    own = {"torch": "torch.Tensor", "numpy": "numpy.ndarray"}
    kind = resolve_name(own[library]) if library in own else kind
    has = {name for name in libraries_by_method() if callable(getattr(kind, name, None))}
    assert has == {name for name, some in libraries_by_method().items() if library in some}


def test_the_table_of_signatures_has_no_other_methods() -> None:
    named = {
        name.partition(":")[0].rpartition(".")[2]
        for name in signatures()
        if name.startswith(tuple(f"{one}." for one in TENSORS.values())) and ".at." not in name
    }
    assert named == set(libraries_by_method())
    assert named >= OF_TORCH


@pytest.mark.parametrize(
    "method, positional, keywords, expected",
    [
        ("unsqueeze", 1, [], "only tensors of PyTorch have `.unsqueeze()`"),
        ("astype", 1, [], "tensors of PyTorch do not have `.astype()`"),
        ("ravel", 0, [], "tensors of MLX do not have `.ravel()`"),
        ("sum", 0, ["dim"], "only tensors of PyTorch take `dim=` in `.sum()`"),
        ("max", 0, ["keepdim"], "only tensors of PyTorch take `keepdim=` in `.max()`"),
        ("sum", 0, ["axis", "keepdims"], ""),
        ("sum", 1, [], ""),
        ("mean", 0, [], ""),
        ("flatten", 0, [], ""),
        ("reshape", 2, [], ""),
        ("std", 0, [], "`.std()` of PyTorch means something else than that of the other libraries"),
        ("transpose", 2, [], "`.transpose()` of PyTorch means something else than that of the other libraries"),
        ("view", 1, [], "`.view()` of PyTorch means something else than that of the other libraries"),
        ("append", 1, [], ""),
    ],
)
def test_when_a_call_is_tied_to_some_libraries(
    method: str, positional: int, keywords: list[str], expected: str
) -> None:
    assert library_tie_reason(method, positional, keywords) == expected


@pytest.mark.parametrize(
    "method, library, expected",
    [("transpose", "torch", "swapaxes"), ("transpose", "numpy", "transpose"), ("repeat", "torch", "tile")],
)
def test_the_op_is_that_of_the_library(method: str, library: str, expected: str) -> None:
    assert op_of(method, 2, [], library) == expected
