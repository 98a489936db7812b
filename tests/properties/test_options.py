"""Every real-valued option of every op is differentiated, or constant, or refused by name, on every backend."""

import re
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
import pytest

from emberharmony import ops
from emberharmony.core.errors import UnsupportedOpError
from emberharmony.core.registry import OPS, OpParameter
from tests.together import together

RNG = np.random.default_rng(0)
X, Y = RNG.standard_normal((2, 3)), RNG.standard_normal((2, 3))
X[0, 0] = 1.5
HEADS = RNG.standard_normal((1, 3, 2, 4))
IMAGE = RNG.random((1, 6, 6, 1))
ODD = np.array([np.nan, np.inf, -np.inf, 1.0])
SHAPE = (3, 2)
DRAW: dict[str, Any] = {"dtype": "float64", "seed": 0}
CORNERS = [[[0.0, 0.0], [0.0, 5.0], [5.0, 0.0], [5.0, 5.0]]]
INSIDE = [[[1.0, 1.0], [0.5, 4.0], [4.0, 0.5], [4.5, 4.5]]]


class Case(NamedTuple):
    """A call of an op as a function of one option, and where to differentiate it.

    `refused` is why the option has no gradient, or None. `step` is that of the central differences, and `rounding` is
    their relative error.
    """

    call: Callable[[Any], Any]
    at: float
    refused: str | None = None
    step: float = 1e-5
    rounding: float = 1e-6


LENGTH = "the length of the result depends on it"
KIND = "it chooses the kind of the norm"
KERNEL = "the kernel is computed on the host"
DISCRETE = "the draws are discrete"
IMPLICIT = "the derivative of the quantile function is not available"


def double(x: Any) -> Any:
    return ops.convert_to_tensor(x, "float64")


def sampled(v: Any) -> Any:
    return ops.stack([ops.cast(v, "float64"), double(0.5)])


CASES: dict[str, Case] = {
    "isclose.rtol": Case(lambda v: ops.isclose(double(X), double(Y), v), 0.1),
    "isclose.atol": Case(lambda v: ops.isclose(double(X), double(Y), 0.1, v), 0.1),
    "allclose.rtol": Case(lambda v: ops.allclose(double(X), double(Y), v), 0.1),
    "allclose.atol": Case(lambda v: ops.allclose(double(X), double(Y), 0.1, v), 0.1),
    "pad.constant_values": Case(lambda v: ops.pad(double(X), 1, constant_values=v), 0.3),
    "arange.start": Case(lambda v: ops.arange(v, 3.2, 0.5, dtype="float64"), 0.3, LENGTH),
    "arange.stop": Case(lambda v: ops.arange(0.1, v, 0.5, dtype="float64"), 3.3, LENGTH),
    "arange.step": Case(lambda v: ops.arange(0.1, 3.2, v, dtype="float64"), 0.3, LENGTH),
    "linspace.start": Case(lambda v: ops.linspace(v, 3.2, 5, dtype="float64"), 0.3),
    "linspace.stop": Case(lambda v: ops.linspace(0.1, v, 5, dtype="float64"), 0.3),
    "logspace.start": Case(lambda v: ops.logspace(v, 1.2, 5, dtype="float64"), 0.3),
    "logspace.stop": Case(lambda v: ops.logspace(0.1, v, 5, dtype="float64"), 0.3),
    "logspace.base": Case(lambda v: ops.logspace(0.1, 1.2, 5, base=v, dtype="float64"), 3.3),
    "geomspace.start": Case(lambda v: ops.geomspace(v, 3.2, 5, dtype="float64"), 0.3),
    "geomspace.stop": Case(lambda v: ops.geomspace(0.1, v, 5, dtype="float64"), 0.3),
    "kaiser.beta": Case(lambda v: ops.kaiser(5, v, dtype="float64"), 2.3, "the window is computed on the host"),
    "clip.x_min": Case(lambda v: ops.clip(double(X), v, 2.0), 0.3),
    "clip.x_max": Case(lambda v: ops.clip(double(X), -1.0, v), 0.3),
    "clip.min": Case(lambda v: ops.clip(double(X), min=v, max=2.0), 0.3),
    "clip.max": Case(lambda v: ops.clip(double(X), min=-1.0, max=v), 0.3),
    "nan_to_num.nan": Case(lambda v: ops.nan_to_num(double(ODD), v, 1.0, 2.0), 0.3),
    "nan_to_num.posinf": Case(lambda v: ops.nan_to_num(double(ODD), 0.0, v, 2.0), 0.3),
    "nan_to_num.neginf": Case(lambda v: ops.nan_to_num(double(ODD), 0.0, 1.0, v), 0.3),
    "var.correction": Case(lambda v: ops.var(double(X), 1, correction=v), 0.3),
    "std.correction": Case(lambda v: ops.std(double(X), 1, correction=v), 0.3),
    "nanvar.correction": Case(lambda v: ops.nanvar(double(X), 1, correction=v), 0.3),
    "nanstd.correction": Case(lambda v: ops.nanstd(double(X), 1, correction=v), 0.3),
    "cov.correction": Case(lambda v: ops.cov(double(X), correction=v), 0.3),
    "max.initial": Case(lambda v: ops.max(double(X), 1, initial=v), 0.5),
    "min.initial": Case(lambda v: ops.min(double(X), 1, initial=v), -0.2),
    "unique.fill_value": Case(lambda v: ops.unique(double([1.0, 2.0, 1.0]), size=4, fill_value=v), 0.5),
    "leaky_relu.negative_slope": Case(lambda v: ops.leaky_relu(double(X), v), 0.3),
    "elu.alpha": Case(lambda v: ops.elu(double(X), v), 0.3),
    "celu.alpha": Case(lambda v: ops.celu(double(X), v), 0.3),
    "hard_shrink.threshold": Case(lambda v: ops.hard_shrink(double(X), v), 0.3),
    "soft_shrink.threshold": Case(lambda v: ops.soft_shrink(double(X), v), 0.3),
    "threshold.threshold": Case(lambda v: ops.threshold(double(X), v, 0.7), 0.3),
    "threshold.default_value": Case(lambda v: ops.threshold(double(X), 0.2, v), 0.3),
    "squareplus.b": Case(lambda v: ops.squareplus(double(X), v), 0.3),
    "layer_normalization.epsilon": Case(lambda v: ops.layer_normalization(double(X), epsilon=v), 0.3),
    "rms_normalization.epsilon": Case(lambda v: ops.rms_normalization(double(X), epsilon=v), 0.3),
    "batch_normalization.epsilon": Case(
        lambda v: ops.batch_normalization(double(X), double(X[0]), double(X[1] ** 2), -1, epsilon=v), 0.3
    ),
    "batch_normalization_training.epsilon": Case(
        lambda v: ops.batch_normalization_training(double(X), -1, epsilon=v)[0], 0.3
    ),
    "group_normalization.epsilon": Case(lambda v: ops.group_normalization(double(X), 1, epsilon=v), 0.3),
    "local_response_normalization.alpha": Case(
        lambda v: ops.local_response_normalization(double(X), 2, v, 0.6, 1.2), 0.3
    ),
    "local_response_normalization.beta": Case(
        lambda v: ops.local_response_normalization(double(X), 2, 0.3, v, 1.2), 0.6
    ),
    "local_response_normalization.k": Case(lambda v: ops.local_response_normalization(double(X), 2, 0.3, 0.6, v), 1.2),
    "dot_product_attention.dropout_rate": Case(
        lambda v: ops.dot_product_attention(double(HEADS), double(HEADS), double(HEADS), dropout_rate=v, seed=0), 0.3
    ),
    "rope.base": Case(lambda v: ops.rope(double(X[None]), 2, base=v), 2.5, "number"),
    "rope.scale": Case(lambda v: ops.rope(double(X[None]), 2, scale=v), 0.5, "number"),
    "lp_pool.norm_type": Case(lambda v: ops.lp_pool(double(X[None]), v, 1), 2.5, "number"),
    "dot_product_attention.scale": Case(
        lambda v: ops.dot_product_attention(double(HEADS), double(HEADS), double(HEADS), scale=v), 0.3
    ),
    "dot_product_attention.attn_logits_soft_cap": Case(
        lambda v: ops.dot_product_attention(double(HEADS), double(HEADS), double(HEADS), attn_logits_soft_cap=v), 0.6
    ),
    "dropout.rate": Case(lambda v: ops.dropout(double(X), v, seed=0), 0.3),
    "lstsq.rcond": Case(lambda v: ops.lstsq(double(X.T), double([1.0, 2.0, 3.0]), rcond=v), 0.01),
    "pinv.rcond": Case(lambda v: ops.pinv(double(X), rcond=v), 0.01),
    "pinv.rtol": Case(lambda v: ops.pinv(double(X), rtol=v), 0.01),
    "matrix_rank.tol": Case(lambda v: ops.matrix_rank(double(X), v), 0.01),
    "matrix_rank.rtol": Case(lambda v: ops.matrix_rank(double(X), rtol=v), 0.01),
    "fftfreq.d": Case(lambda v: ops.fft.fftfreq(5, v, dtype="float64"), 0.3),
    "rfftfreq.d": Case(lambda v: ops.fft.rfftfreq(5, v, dtype="float64"), 0.3),
    "stft.window": Case(
        lambda v: ops.stft(double(X[0].repeat(5)), 4, 2, 4, window=ops.multiply(v, double(np.ones(4)))),
        0.9,
        step=1e-2,
        rounding=1e-4,
    ),
    "istft.window": Case(
        lambda v: ops.istft(double(np.ones((2, 3, 3))), 4, 2, 4, window=ops.add(v, double(np.arange(4.0)))),
        0.9,
        step=1e-2,
        rounding=2e-3,
    ),
    "histogram.range": Case(lambda v: ops.histogram(double(X), 5, (v, 2.0))[1], 0.3, "it is read on the host"),
    "resize.fill_value": Case(
        lambda v: ops.image.resize(double(IMAGE), (6, 5), pad_to_aspect_ratio=True, fill_value=v), 0.3
    ),
    "scale_and_translate.scale": Case(
        lambda v: ops.image.scale_and_translate(double(X), (3, 3), sampled(v), [0.1, 0.2], (0, 1), "linear"),
        0.6,
        KERNEL,
    ),
    "scale_and_translate.translation": Case(
        lambda v: ops.image.scale_and_translate(double(X), (3, 3), [0.6, 0.5], sampled(v), (0, 1), "linear"),
        0.3,
        KERNEL,
    ),
    "gaussian_blur.sigma": Case(lambda v: ops.image.gaussian_blur(double(IMAGE), 3, v), 0.9, KERNEL),
    "ssim.max_val": Case(lambda v: ops.image.ssim(double(IMAGE), double(IMAGE**2), v, 5), 1.3),
    "ssim.filter_sigma": Case(
        lambda v: ops.image.ssim(double(IMAGE), double(IMAGE**2), 1.0, 5, filter_sigma=v), 1.3, KERNEL
    ),
    "ssim.k1": Case(lambda v: ops.image.ssim(double(IMAGE), double(IMAGE**2), 1.0, 5, k1=v), 0.3),
    "ssim.k2": Case(lambda v: ops.image.ssim(double(IMAGE), double(IMAGE**2), 1.0, 5, k2=v), 0.3),
    "psnr.max_val": Case(lambda v: ops.psnr(double(X), double(Y), v), 1.3),
    "vector_norm.ord": Case(lambda v: ops.vector_norm(double(X), ord=v), 2.5, KIND),
    "norm.ord": Case(lambda v: ops.norm(double(X[0]), ord=v), 2.5, KIND),
    "matrix_norm.ord": Case(lambda v: ops.matrix_norm(double(X), ord=v), 2.0, KIND),
    "normalize.order": Case(lambda v: ops.normalize(double(X), order=v), 2.5, KIND),
    "normalize.epsilon": Case(lambda v: ops.normalize(double(X), epsilon=v), 2.5),
    "cdist.p": Case(lambda v: ops.cdist(double(X), double(Y), v), 2.5, KIND),
    "linalg_cond.p": Case(lambda v: ops.linalg.cond(double(X @ X.T), v), 2.0, KIND),
    "quantile.q": Case(lambda v: ops.quantile(double(X), v, 1), 0.33),
    "nanquantile.q": Case(lambda v: ops.nanquantile(double(X), v, 1), 0.33),
    "percentile.q": Case(lambda v: ops.percentile(double(X), v, 1), 33.0),
    "nanpercentile.q": Case(lambda v: ops.nanpercentile(double(X), v, 1), 33.0),
    "trapezoid.dx": Case(lambda v: ops.trapezoid(double(X), dx=v), 0.33),
    "interp.left": Case(
        lambda v: ops.interp(double([-1.0, 0.5]), double([0.0, 1.0]), double([1.0, 3.0]), left=v), 0.33
    ),
    "interp.right": Case(
        lambda v: ops.interp(double([0.5, 4.0]), double([0.0, 1.0]), double([1.0, 3.0]), right=v), 0.33
    ),
    "interp.period": Case(
        lambda v: ops.interp(double([-1.0, 0.5]), double([0.0, 1.0]), double([1.0, 3.0]), period=v),
        3.3,
        "it is read on the host",
    ),
    "map_coordinates.fill_value": Case(
        lambda v: ops.image.map_coordinates(
            double(X), double([[-0.4, 3.0], [0.5, 1.2]]), 1, fill_mode="constant", fill_value=v
        ),
        0.3,
    ),
    "grid_sample.fill_value": Case(
        lambda v: ops.image.grid_sample(double(IMAGE), double([[[[0.3, 1.2], [-1.1, 0.4]]]]), fill_value=v),
        0.3,
    ),
    "affine_transform.fill_value": Case(
        lambda v: ops.image.affine_transform(
            double(IMAGE), double([[1.2, 0.3, 2.0, 0.0, 1.0, 3.0, 0.0, 0.0]]), fill_value=v
        ),
        0.3,
    ),
    "perspective_transform.fill_value": Case(
        lambda v: ops.image.perspective_transform(double(IMAGE), CORNERS, INSIDE, fill_value=v), 0.3
    ),
    # The displacements are float32, whose rounding the central differences amplify.
    "elastic_transform.alpha": Case(
        lambda v: ops.image.elastic_transform(double(IMAGE), alpha=v, sigma=0.5, seed=0), 0.4, step=1e-3, rounding=1e-2
    ),
    "elastic_transform.sigma": Case(
        lambda v: ops.image.elastic_transform(double(IMAGE), alpha=0.4, sigma=v, seed=0), 0.5, KERNEL
    ),
    "elastic_transform.fill_value": Case(
        lambda v: ops.image.elastic_transform(
            double(IMAGE), alpha=9.0, sigma=0.5, fill_mode="constant", fill_value=v, seed=0
        ),
        0.3,
    ),
    "random_normal.mean": Case(lambda v: ops.random.normal(SHAPE, v, 1.5, **DRAW), 0.3),
    "random_normal.stddev": Case(lambda v: ops.random.normal(SHAPE, 0.5, v, **DRAW), 0.3),
    "random_uniform.minval": Case(lambda v: ops.random.uniform(SHAPE, v, 1.5, **DRAW), 0.3),
    "random_uniform.maxval": Case(lambda v: ops.random.uniform(SHAPE, 0.1, v, **DRAW), 0.3),
    "random_choice.p": Case(
        lambda v: ops.random.choice(2, SHAPE, p=ops.stack([double(v), ops.subtract(double(1.0), v)]), seed=0),
        0.25,
        DISCRETE,
    ),
    "random_bernoulli.p": Case(lambda v: ops.random.bernoulli(SHAPE, v, **DRAW), 0.3, DISCRETE),
    "random_poisson.lam": Case(lambda v: ops.random.poisson(SHAPE, v, **DRAW), 0.3, DISCRETE),
    "random_binomial.probabilities": Case(lambda v: ops.random.binomial(SHAPE, 9, v, **DRAW), 0.3, DISCRETE),
    "interpolate.scale_factor": Case(lambda v: ops.interpolate(double(IMAGE), scale_factor=v), 1.2, LENGTH),
    "cross_entropy.label_smoothing": Case(
        lambda v: ops.cross_entropy(double(X), [0, 2], label_smoothing=v), 0.3, "it is a number"
    ),
    "random_exponential.scale": Case(lambda v: ops.random.exponential(SHAPE, v, **DRAW), 0.3),
    "random_gamma.alpha": Case(lambda v: ops.random.gamma(SHAPE, v, **DRAW), 1.3, IMPLICIT),
    "random_gamma.scale": Case(lambda v: ops.random.gamma(SHAPE, 1.2, scale=v, **DRAW), 1.3),
    "random_beta.alpha": Case(lambda v: ops.random.beta(SHAPE, v, 1.5, **DRAW), 1.3, IMPLICIT),
    "random_beta.beta": Case(lambda v: ops.random.beta(SHAPE, 1.2, v, **DRAW), 1.3, IMPLICIT),
    "random_gumbel.loc": Case(lambda v: ops.random.gumbel(SHAPE, v, 1.5, **DRAW), 0.3),
    "random_gumbel.scale": Case(lambda v: ops.random.gumbel(SHAPE, 0.1, v, **DRAW), 0.3),
    "random_laplace.loc": Case(lambda v: ops.random.laplace(SHAPE, v, 1.5, **DRAW), 0.3),
    "random_laplace.scale": Case(lambda v: ops.random.laplace(SHAPE, 0.1, v, **DRAW), 0.3),
    "random_truncated_normal.mean": Case(lambda v: ops.random.truncated_normal(SHAPE, v, 1.5, **DRAW), 0.3),
    "random_truncated_normal.stddev": Case(lambda v: ops.random.truncated_normal(SHAPE, 0.1, v, **DRAW), 0.3),
}
REFUSED = sorted(name for name, case in CASES.items() if case.refused)
DIFFERENTIATED = sorted(CASES.keys() - set(REFUSED))


def is_real_option(parameter: OpParameter) -> bool:
    if parameter.role == "Operand":  # an operand with a default is an option, one without is what the op works on
        return parameter.optional
    return parameter.role == "Value" and re.search(r"\b(float|Varying)\b", parameter.annotation) is not None


def test_the_table_has_every_real_option_of_every_op() -> None:
    found = {f"{name}.{p.name}" for name, spec in OPS.items() for p in spec.parameters if is_real_option(p)}
    assert found == CASES.keys()


def weighted(y: Any) -> Any:
    """Returns a sum of the result with a different weight for each element."""
    if isinstance(y, (tuple, list)):
        return ops.add(weighted(y[0]), weighted(y[1]))
    y = ops.real(y) if ops.dtype(y).is_complex else y
    weights = ops.reshape(ops.arange(1.0, ops.size(y) + 1.0, dtype="float64"), y.shape)
    return ops.sum(ops.multiply(y, weights))


@together("name", DIFFERENTIATED)
def test_an_option_is_differentiated(name: str, backend: str) -> None:
    call, at, _, step, rounding = CASES[name]

    def loss(v: Any) -> Any:
        return weighted(call(v))

    below, above, here = float(loss(at - step)), float(loss(at + step)), float(loss(at))
    wanted = (above - below) / (2 * step)
    near = {"rel": rounding, "abs": rounding}
    option = double(at)
    assert float(loss(option)) == pytest.approx(here, rel=1e-6, abs=1e-9)
    assert float(ops.grad(loss)(option)) == pytest.approx(wanted, **near)
    assert float(ops.jvp(loss, (option,), (double(1.0),))[1]) == pytest.approx(wanted, **near)
    batched = ops.to_numpy(ops.vmap(loss)(double([at, at + step])))
    assert batched == pytest.approx([here, above], rel=1e-6, abs=1e-9)


@pytest.mark.parametrize("name", REFUSED)
def test_an_option_without_a_gradient_is_refused_by_name(name: str, backend: str) -> None:
    (op, option), (call, at, *_) = name.split("."), CASES[name]
    call(at)
    with pytest.raises(UnsupportedOpError, match=rf"^{op}\(\) on backend '{backend}'.*\b{option}\b"):
        ops.grad(lambda v: weighted(call(v)))(double(at))
