"""Muon against the formula of its authors, with singular values, and against torch."""

from typing import Any

import pytest

from emberharmony import Parameter, errors, ops, optim
from tests.optim import formulas
from tests.optim.oracle import LIMIT, our_run, require_near, torch_run

MATRICES = [(4, 3), (3, 5), (6, 6), (1, 4)]
OPTIONS = {"lr": 0.01, "weight_decay": 0.1, "momentum": 0.9}


@pytest.mark.parametrize("dtype", LIMIT)
@pytest.mark.parametrize(("nesterov", "adjust"), [(True, None), (False, "match_rms_adamw")])
def test_steps_follow_the_formula(nesterov: bool, adjust: str | None, dtype: str, backend: str) -> None:
    options = {**OPTIONS, "nesterov": nesterov, "adjust": adjust}
    # The polynomial of an iteration has slopes above 1, so rounding errors grow.
    formulas.require_followed(optim.Muon, formulas.muon, options, dtype, backend, shapes=MATRICES, eps=5)


TORCH: list[dict[str, Any]] = [
    {},
    {"lr": 0.01, "nesterov": False, "adjust_lr_fn": "match_rms_adamw"},
    {"lr": 0.01, "momentum": 0.5, "weight_decay": 0.3, "ns_coefficients": (3.0, -3.2, 1.2), "ns_steps": 3},
    {"lr": 0.01, "eps": 100.0},
]


@pytest.mark.parametrize("options", TORCH)
def test_steps_are_those_of_torch_but_for_its_bfloat16(options: dict[str, Any], backend: str) -> None:
    torch = pytest.importorskip("torch")
    if not hasattr(torch.optim, "Muon"):
        pytest.skip("this version of torch lacks Muon")
    # torch iterates in bfloat16, which has 8 bits: each of the 20 steps may differ by some percent of the rate.
    limit = 20 * 0.05 * options.get("lr", 1e-3)
    expected = torch_run("Muon", options, "float32", 20, MATRICES)
    require_near(our_run(optim.Muon, options, "float32", 20, MATRICES), expected, limit)


def test_only_matrices_are_taken(backend: str) -> None:
    with pytest.raises(errors.ShapeError, match=r"Parameter\(shape=\(3,\), dtype=float32\) is given, expected 2 axes"):
        optim.Muon([Parameter(ops.ones((2, 2))), Parameter(ops.ones((3,)))])
    pure = optim.Muon()
    with pytest.raises(errors.ShapeError, match=r"has shape \(3,\), expected 2 axes; use AdamW"):
        pure.update([ops.ones((3,))], pure.init([ops.ones((3,))]), [ops.ones((3,))])


@pytest.mark.parametrize(
    "options", [{"ns_coefficients": (1.0, 2.0)}, {"ns_steps": 100}, {"adjust_lr_fn": "mine"}, {"momentum": 2.0}]
)
def test_wrong_options_are_refused(options: dict[str, Any]) -> None:
    with pytest.raises(errors.ArgumentError, match=rf"Muon\(\): {next(iter(options))} is"):
        optim.Muon(**options)
