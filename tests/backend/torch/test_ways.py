"""On PyTorch, the ways of rare inputs: errors that pass, values that nobody can read, programs of few kinds."""

import importlib
import math
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from emberharmony import Parameter, errors, ops
from emberharmony.backend.choice import use_backend
from emberharmony.core import op_globals
from emberharmony.transforms.program import Number, Program, ProgramCall, Register, Update

torch = pytest.importorskip("torch")
programs = importlib.import_module("emberharmony.backend.torch.flow.programs")
X = torch.arange(12.0).reshape(3, 4)

PASSING: dict[str, tuple[str, Any, Callable[[], Any]]] = {
    "take": ("torch.arrays.indices.index_select", IndexError, lambda: ops.take(X, [-1], 0)),
    "set_item": (
        "torch.arrays.writing_ops._combine_at",
        RuntimeError,
        lambda: ops.set_item(X, torch.tensor([0, 1]), 1.0, "max"),
    ),
    "put_along_axis": (
        "shared.arrays.writing.value_like",
        RuntimeError,
        lambda: ops.put_along_axis(X, torch.tensor([[0], [1], [2]]), 1.0),
    ),
}


@pytest.mark.parametrize("name", PASSING)
def test_an_error_of_a_watcher_is_not_taken_for_one_of_the_kernel(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    place, kind, call = PASSING[name]
    module, _, function = place.rpartition(".")

    class WatchersError(kind):  # type: ignore[misc]
        of_watcher = True

    def fails(*arguments: Any) -> None:
        raise WatchersError

    with use_backend("torch"):
        call()
        monkeypatch.setattr(importlib.import_module(f"emberharmony.backend.{module}"), function, fails)
        with pytest.raises(WatchersError):
            call()


@pytest.mark.filterwarnings("ignore::DeprecationWarning")  # PyTorch 2.13 compiles its rules of the forward mode
def test_a_probe_of_values_that_nobody_can_read_is_finite() -> None:
    found = []
    with use_backend("torch"):
        probes = op_globals.active().backend
        assert probes.probe(torch.ones(2, device="meta")) == 0.0
        torch.func.vmap(lambda x: found.append(probes.probe(x)) or x)(torch.full((2,), math.nan))
        assert found == [0.0]
        with torch.autograd.forward_ad.dual_level():
            dual = torch.autograd.forward_ad.make_dual(torch.tensor([1.0, math.nan]), torch.ones(2))
            assert math.isnan(float(probes.probe(dual)))
        assert probes.look_at_nodes(torch.ones(()), {}, lambda note: note) is None


def test_sums_of_multiples_are_computed_by_fewer_ops() -> None:
    first, second, multiple, found = map(Register, range(4))
    calls = (
        ProgramCall("multiply", (first, Number(0)), (multiple,)),
        ProgramCall("subtract", (second, multiple), (found,)),
    )
    columns = [[torch.full((2,), 2.0)], [torch.full((2,), 3.0)]]
    for dtype in (torch.float32, torch.bfloat16):
        given = [[x.to(dtype, copy=True) for x in column] for column in columns]
        update = Update(program=Program(2, calls, (found,), 1), numbers=[0.5])
        assert programs.run_update(update, given)[0][0].tolist() == [2.0, 2.0]
        for call, *arguments in programs.overwriting_calls(update, given):
            call(*arguments)
        assert given[1][0].tolist() == [2.0, 2.0]
        assert [each.function for each in programs._program_for(update, given[0][0])[0].calls] == (
            ["add_multiple"] if dtype == torch.float32 else ["multiply", "subtract"]
        )


@pytest.mark.parametrize("full", [False, True])
@pytest.mark.parametrize("shape", [(2, 4), (4, 2), (3, 3)])
def test_complex_matrices_are_the_product_of_their_factors(shape: tuple[int, int], full: bool) -> None:
    rng = np.random.default_rng(0)
    x = rng.standard_normal(shape) + 1j * rng.standard_normal(shape)
    with use_backend("torch"):
        u, s, vh = map(ops.to_numpy, ops.svd(torch.from_numpy(x), full))
    k = len(s)
    np.testing.assert_allclose((u[:, :k] * s) @ vh[:k], x, 1e-12, 1e-12)
    assert (u.shape[1], vh.shape[0]) == ((shape[0], shape[1]) if full else (k, k))


def test_the_sign_of_a_complex_determinant_has_its_gradient() -> None:
    rng = np.random.default_rng(0)
    x = torch.from_numpy(rng.standard_normal((3, 3)) + 1j * rng.standard_normal((3, 3))).requires_grad_()
    with use_backend("torch"):
        sign, logarithm = ops.slogdet(x)
        (found,) = torch.autograd.grad((sign.imag + logarithm), x)
    other = torch.det(x)
    (wanted,) = torch.autograd.grad((other / other.abs()).imag + other.abs().log(), x)
    torch.testing.assert_close(found, wanted)


def test_complex_elements_are_looked_for() -> None:
    with use_backend("torch"):
        a, b = torch.tensor([[1 + 1j, 2], [3, math.nan]]), torch.tensor([2, 1 + 1j, 5])
        assert ops.isin(a, b).tolist() == [[True, True], [False, False]]
        assert ops.isin(a, b, invert=True).tolist() == [[False, False], [True, True]]


@use_backend("torch")
def test_gradients_in_a_block_without_gradients() -> None:
    with torch.no_grad():
        x = torch.tensor([1.0, 2.0])
        assert ops.grad(lambda x: ops.sum(ops.square(x)))(x).tolist() == [2.0, 4.0]
        weight = Parameter([3.0])
        ops.backward(lambda: ops.sum(ops.square(weight)), [weight])
        assert ops.to_numpy(weight.grad).tolist() == [6.0]
        assert not torch.is_grad_enabled()


@use_backend("torch")
def test_the_graph_of_the_user_differentiates_a_pushed_tangent() -> None:
    x, tangent = torch.tensor([0.5, 1.0]), torch.tensor([1.0, 2.0], requires_grad=True)
    _, pushed = ops.jvp(ops.sin, (x,), (tangent,))
    (found,) = torch.autograd.grad(pushed.sum(), tangent)
    torch.testing.assert_close(found, torch.cos(x))


@use_backend("torch")
def test_gelu_of_complex_numbers_is_its_composite() -> None:
    x = torch.tensor([0.5 + 0.25j, -1.0j])
    inner = 0.7978845608028654 * (x + 0.044715 * x**3)
    torch.testing.assert_close(ops.gelu(x), 0.5 * x * (1 + torch.tanh(inner)))
    with pytest.raises(errors.DTypeError, match="erf"):
        ops.gelu(x, False)


@use_backend("torch")
def test_a_bias_of_another_dtype_is_promoted() -> None:
    x, kernel = torch.ones(1, 5, 2), torch.ones(3, 2, 4)
    plain = ops.conv(x, kernel, (1,), "valid", "channels_last", (1,))
    for dtype in (torch.float64, torch.float16, torch.int32):
        found = ops.conv(x, kernel, (1,), "valid", "channels_last", (1,), bias=torch.ones(4, dtype=dtype))
        wanted = torch.promote_types(torch.float32, dtype)
        torch.testing.assert_close(found, (plain + 1).to(wanted))


@use_backend("torch")
def test_a_shape_that_does_not_fit_is_no_copy() -> None:
    with pytest.raises(errors.ShapeError):
        ops.reshape(torch.ones(2, 3), (5,), copy=False)
    with pytest.raises(errors.ArgumentError, match="needs a copy"):
        ops.reshape(torch.ones(2, 3).T, (6,), copy=False)
