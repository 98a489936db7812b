"""Gradients that finite differences (see `test_samples`) cannot check: agreement between backends, float32, and kinks,
where the gradient is a convention (see `docs/semantics.md`)."""

import functools
import math
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from emberharmony import ops
from emberharmony.backend import current
from emberharmony.core.errors import UnsupportedOpError
from emberharmony.testing.gradient_check import GradientMismatchError, gradcheck, gradients
from emberharmony.testing.gradient_rows import gradient_calls as calls_of
from emberharmony.testing.gradient_rows import gradient_function
from emberharmony.testing.samples import all_samples
from emberharmony.testing.snippet import snippet
from tests.sampling import portion

Array = np.ndarray[Any, Any]
SAMPLES = all_samples()
DIFFERENTIABLE = sorted(op for op, sample in SAMPLES.items() if sample.differentiable)


@functools.cache
def reference(op: str, label: str) -> list[Array]:
    """Returns the gradients of a case on NumPy, where the tape computes them."""
    return found(op, label, "numpy", "float64")


def found(op: str, label: str, backend: str, dtype: str) -> list[Array]:
    with ops.use_backend(backend):
        return gradients_of(op, next(call for call in calls_of(SAMPLES[op]) if call.label == label), dtype)


def gradients_of(op: str, call: Any, dtype: str) -> list[Array]:
    function = gradient_function(SAMPLES[op])
    return gradients(lambda args, kwargs: function(*args, **kwargs), (call.args, call.kwargs), dtype=dtype)


@pytest.mark.parametrize("op", DIFFERENTIABLE)
def test_gradients_in_float32_agree_with_numpy_in_float64(op: str, backend: str) -> None:
    for call in calls_of(SAMPLES[op]):
        if not all(np.isfinite(x).all() for x in call.args if isinstance(x, np.ndarray) and x.dtype.kind in "fc"):
            continue
        try:
            wanted = reference(op, call.label)
        except UnsupportedOpError:
            continue
        for mine, theirs in zip(found(op, call.label, backend, "float32"), wanted, strict=True):
            scale = np.fmax.reduce(np.abs(theirs), None, initial=1.0)
            assert np.allclose(mine, theirs, 0, 1e-3 * scale, equal_nan=True), call.label


@pytest.mark.parametrize("dtype", ["float16", "bfloat16"])
def test_gradients_have_the_dtype_of_their_argument(dtype: str, backend: str) -> None:
    wrong = []
    for op in portion([op for op in DIFFERENTIABLE if dtype in SAMPLES[op].dtypes], 3):
        for call in calls_of(SAMPLES[op]):
            try:
                gradients_of(op, call, dtype)
            except GradientMismatchError as error:
                wrong.append(f"{op} {call.label}: {error}")
            except UnsupportedOpError:
                continue
    assert not wrong, "\n".join(wrong)


def gradients_at(fn: Callable[..., Any], *values: Any) -> list[list[float]]:
    """Returns the gradients of the sum of a function's results at numbers."""
    with ops.use_backend(ops.get_backend()):
        primals = [ops.convert_to_tensor(np.asarray(value, np.float32)) for value in values]
        outputs, pull = current().pullback(lambda *xs: [ops.sum(fn(*xs))], primals)
        return [ops.to_numpy(gradient).tolist() for gradient in pull([ops.ones_like(outputs[0])])]


LIMITS = (-1.0, 0.0, 0.5, 1.0, 2.0)
IDS = np.array([0, 0, 1])
KINKS: dict[str, tuple[Callable[..., Any], list[Any], list[Any]]] = {
    "maximum": (ops.maximum, [[1.0, 2.0], [1.0, 3.0]], [[0.5, 0.0], [0.5, 1.0]]),
    "maximum with a number": (lambda x: ops.maximum(x, 0.0), [[0.0, 1.0]], [[0.5, 1.0]]),
    "minimum": (ops.minimum, [[1.0, 2.0], [1.0, 3.0]], [[0.5, 1.0], [0.5, 0.0]]),
    "fmax": (ops.fmax, [[1.0, 2.0], [1.0, math.nan]], [[0.5, 1.0], [0.5, 0.0]]),
    "fmin": (ops.fmin, [[1.0, 2.0], [1.0, math.nan]], [[0.5, 1.0], [0.5, 0.0]]),
    "max": (ops.max, [[1.0, 3.0, 3.0]], [[0.0, 0.5, 0.5]]),
    "min": (ops.min, [[1.0, 1.0, 3.0]], [[0.5, 0.5, 0.0]]),
    "segment_max": (lambda x: ops.segment_max(x, IDS, 2), [[2.0, 2.0, 1.0]], [[0.5, 0.5, 1.0]]),
    "segment_min": (lambda x: ops.segment_min(x, IDS, 2), [[2.0, 2.0, 1.0]], [[0.5, 0.5, 1.0]]),
    "scatter_update": (
        lambda x, new: ops.scatter_update(x, [[0], [0]], new, "max"),
        [[1.0, 2.0], [1.0, 1.0]],
        [[1 / 3, 1.0], [1 / 3, 1 / 3]],
    ),
    "scatter_update of the same place": (
        lambda x, new: ops.scatter_update(x, [[0], [2], [-3]], new),
        [[1.0, 2.0, 3.0], [5.0, 6.0, 7.0]],
        [[0.0, 1.0, 0.0], [0.0, 1.0, 1.0]],
    ),
    "scatter_update mapped over": (
        ops.vmap(lambda new: ops.scatter_update([1.0, 2.0], [[1], [1]], new)),
        [[[5.0, 6.0], [7.0, 8.0]]],
        [[[0.0, 1.0], [0.0, 1.0]]],
    ),
    "clip": (lambda x: ops.clip(x, 0.0, 1.0), [LIMITS], [[0.0, 1.0, 1.0, 1.0, 0.0]]),
    "clip by tensors": (
        ops.clip,
        [LIMITS, [0.0] * 5, [1.0] * 5],
        [[0.0, 1.0, 1.0, 1.0, 0.0], [1.0, 0.0, 0.0, 0.0, 0.0], [0.0, 0.0, 0.0, 0.0, 1.0]],
    ),
    "absolute": (ops.absolute, [[0.0, -2.0]], [[0.0, -1.0]]),
    "sign": (ops.sign, [[0.0, -2.0]], [[0.0, 0.0]]),
    "fabs": (ops.fabs, [[0.0, -2.0]], [[0.0, -1.0]]),
    "relu": (ops.relu, [[0.0, 1.0, -1.0]], [[0.0, 1.0, 0.0]]),
    "relu6": (ops.relu6, [[0.0, 3.0, 6.0, 7.0]], [[0.0, 1.0, 1.0, 0.0]]),
    "hard_tanh": (ops.hard_tanh, [[-1.0, 1.0, 1.5]], [[1.0, 1.0, 0.0]]),
    "hard_sigmoid": (ops.hard_sigmoid, [[-3.0, 3.0, 4.0]], [[1 / 6, 1 / 6, 0.0]]),
    "hard_silu": (ops.hard_silu, [[-3.0, 3.0, 4.0]], [[-0.5, 1.5, 1.0]]),
    "elu": (ops.elu, [[0.0]], [[1.0]]),
    "sigmoid": (ops.sigmoid, [[0.0]], [[0.25]]),
    "softplus": (ops.softplus, [[0.0]], [[0.5]]),
    "logaddexp": (ops.logaddexp, [[1.0], [1.0]], [[0.5], [0.5]]),
    "norm": (ops.norm, [[0.0, 0.0]], [[0.0, 0.0]]),
    "matrix_norm": (ops.matrix_norm, [[[0.0, 0.0], [0.0, 0.0]]], [[[0.0, 0.0], [0.0, 0.0]]]),
    "vector_norm of order 3": (lambda x: ops.vector_norm(x, ord=3), [[0.0, 0.0]], [[0.0, 0.0]]),
    "vector_norm of order inf": (lambda x: ops.vector_norm(x, ord=math.inf), [[2.0, 2.0]], [[0.5, 0.5]]),
    "hypot": (ops.hypot, [[0.0, 3.0], [0.0, 4.0]], [[0.0, 0.6], [0.0, 0.8]]),
    "arctan2": (ops.arctan2, [[0.0, 1.0], [0.0, 1.0]], [[0.0, 0.5], [0.0, -0.5]]),
    "std": (ops.std, [[1.0, 1.0, 1.0]], [[0.0, 0.0, 0.0]]),
    "nanstd": (ops.nanstd, [[1.0, math.nan, 1.0]], [[0.0, 0.0, 0.0]]),
    "sqrt": (ops.sqrt, [[0.0]], [[math.inf]]),
    "cbrt": (ops.cbrt, [[0.0, 8.0, -1.0]], [[math.inf, 1 / 12, 1 / 3]]),
    "power of zero": (ops.power, [[0.0, 2.0], [0.0, 3.0]], [[0.0, 12.0], [0.0, 8 * math.log(2)]]),
    "prod with a zero": (ops.prod, [[2.0, 0.0, 3.0]], [[0.0, 6.0, 0.0]]),
    "cumprod with a zero": (ops.cumprod, [[2.0, 0.0, 3.0]], [[1.0, 8.0, 0.0]]),
    "segment_prod with a zero": (lambda x: ops.segment_prod(x, IDS, 2), [[2.0, 0.0, 1.0]], [[0.0, 2.0, 1.0]]),
    "divide_no_nan": (ops.divide_no_nan, [[1.0, 2.0], [0.0, 4.0]], [[0.0, 0.25], [0.0, -0.125]]),
    "nanmean": (ops.nanmean, [[math.nan, 1.0, 3.0]], [[0.0, 0.5, 0.5]]),
    "logsumexp of -inf": (ops.logsumexp, [[-math.inf, 1.0]], [[0.0, 1.0]]),
    "logsumexp of -inf alone": (lambda x: ops.logsumexp(x, 1), [[[-math.inf] * 2, [0.0, 0.0]]], [[[0, 0], [0.5, 0.5]]]),
    "unique": (
        lambda x: ops.multiply(ops.unique(x), [1.0, 2.0, 3.0]),
        [[[2.0, 1.0], [2.0, math.nan], [math.nan, 1.0]]],
        [[[2.0, 1.0], [0.0, 3.0], [0.0, 0.0]]],
    ),
    "nextafter": (ops.nextafter, [[1.0, 2.0], [1.0, 1.0]], [[0.0, 1.0], [0.0, 0.0]]),
    "softmax of -inf": (lambda x: ops.softmax(x)[1], [[-math.inf, 1.0]], [[0.0, 0.0]]),
    "heaviside": (ops.heaviside, [[0.0, 1.0], [0.5, 0.5]], [[0.0, 0.0], [1.0, 0.0]]),
    "floor_divide": (ops.floor_divide, [[5.0], [3.0]], [[0.0], [0.0]]),
    "det of a singular matrix": (ops.det, [[[1.0, 1.0], [1.0, 1.0]]], [[[1.0, -1.0], [-1.0, 1.0]]]),
}


@pytest.mark.parametrize("kink", KINKS)
def test_gradients_at_kinks_follow_the_convention(kink: str, backend: str) -> None:
    fn, values, wanted = KINKS[kink]
    for mine, theirs in zip(gradients_at(fn, *values), wanted, strict=True):
        assert np.allclose(mine, theirs, 1e-5, 1e-6), mine


AT_ZERO: dict[str, tuple[float, float, float]] = {
    "sin": (1.0, 0.0, -1.0),
    "cos": (0.0, -1.0, 0.0),
    "tanh": (1.0, 0.0, -2.0),
    "erf": (2 / math.sqrt(math.pi), 0.0, -4 / math.sqrt(math.pi)),
    "i0": (0.0, 0.5, 0.0),
    "sinc": (0.0, -(math.pi**2) / 3, 0.0),
    "sigmoid": (0.25, 0.0, -0.125),
    "log_sigmoid": (0.5, -0.25, 0.0),
    "softplus": (0.5, 0.25, 0.0),
    "silu": (0.5, 0.5, 0.0),
}


@pytest.mark.parametrize("op", AT_ZERO)
@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_higher_derivatives_at_zero_are_exact(op: str, dtype: str, backend: str) -> None:
    derivative, zero = getattr(ops, op), ops.convert_to_tensor(np.zeros((), dtype))
    for order, wanted in enumerate(AT_ZERO[op], 1):
        derivative = ops.grad(derivative)
        assert float(derivative(zero)) == pytest.approx(wanted, abs=2e-6), order


@pytest.mark.parametrize("op", ["prod", "cumprod"])
def test_products_with_zeros_have_first_and_second_derivatives(op: str, backend: str) -> None:
    gradcheck(getattr(ops, op), (np.array([2.0, 0.0, 3.0, 0.0]),))


@pytest.mark.parametrize("op", ["tanh", "gelu", "sigmoid", "softplus", "logsumexp", "logaddexp"])
def test_second_derivatives_do_not_overflow(op: str, backend: str) -> None:
    more = (0.0,) if op == "logaddexp" else ()
    first = ops.grad(lambda x: ops.sum(getattr(ops, op)(x, *more)))
    second = ops.grad(lambda x: ops.sum(first(x)))(np.array([-300.0, -20.0, 20.0, 300.0], np.float32))
    assert np.allclose(ops.to_numpy(second), 0, atol=1e-6)


def test_the_jvp_of_det_is_right_for_singular_matrices(backend: str) -> None:
    ones, tangent = np.ones((2, 2), np.float32), np.array([[1.0, 2.0], [3.0, 5.0]], np.float32)
    assert float(ops.jvp(ops.det, (ones,), (tangent,))[1]) == pytest.approx(1.0, abs=1e-5)
    x = np.array([[2.0, 0.5], [0.3, 1.0]], np.float32)
    mixed = ops.grad(lambda y: ops.jvp(ops.det, (y,), (tangent,))[1])(x)
    assert np.allclose(ops.to_numpy(mixed), [[5.0, -3.0], [-2.0, 1.0]], atol=1e-5)


def test_masked_attention_with_large_logits_has_the_right_gradient(backend: str) -> None:
    q = np.sin(np.arange(24.0)).reshape(1, 3, 2, 4) * 40
    gradcheck(lambda q: ops.dot_product_attention(q, q, q, is_causal=True), (q,), tolerance=1e-5)


def test_results_that_do_not_depend_on_the_phases_of_svd_have_gradients(backend: str) -> None:
    x = np.sin(np.arange(12.0) ** 2).reshape(4, 3)
    gradcheck(lambda x: ops.matmul(ops.svd(x, False).U, ops.svd(x, False).Vh), (x,))
    gradcheck(lambda x: ops.svd(x, False).S, (x + 1j * x[::-1] ** 2,))


@pytest.mark.parametrize("op", ["tanh", "eigh", "lu_factor", "quantile"])
def test_the_snippet_of_a_gradient_check_runs(op: str, backend: str, capsys: pytest.CaptureFixture[str]) -> None:
    call = list(calls_of(SAMPLES[op]))[-1]
    exec(compile(snippet(SAMPLES[op], backend, call, "a failure"), "<snippet>", "exec"), {})
    assert "error in units" in capsys.readouterr().out


def test_every_exception_of_a_gradient_check_names_an_existing_case() -> None:
    for op, sample in SAMPLES.items():
        row = sample.gradient
        assert all(i < len(row.cases or sample.cases) for i in (*row.skipped, *row.once)), op


@pytest.mark.parametrize(
    ("name", "operands", "place"),
    [
        ("power", (1.7, 2.3), 1),
        ("arctan2", (1.7, 2.3), 0),
        ("xlogy", (1.7, 2.3), 0),
        ("xlog1py", (1.7, 2.3), 0),
        ("gammainc", (1.7, 2.3), 1),
        ("betainc", (1.7, 2.3, 0.4), 2),
    ],
)
def test_numbers_beside_a_tensor_cost_a_gradient_no_digits(
    name: str, operands: tuple[float, ...], place: int, backend: str
) -> None:
    def slope(others: list[Any]) -> float:
        def of(x: Any) -> Any:
            return getattr(ops, name)(*[x if i == place else other for i, other in enumerate(others)])

        return float(ops.grad(of)(np.asarray(operands[place])))

    assert slope([*operands]) == pytest.approx(slope([*map(np.asarray, operands)]), rel=1e-12)
