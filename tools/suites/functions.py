"""Functions of SciPy, scikit-learn and array-api-extra that are differentiated, mapped and compiled.

Each takes a namespace and an array, and returns an array. They have float64 inputs, so that a difference quotient is
precise enough to compare a gradient with.
"""

import os

os.environ["SCIPY_ARRAY_API"] = "1"  # SciPy reads it when it is imported

from collections.abc import Callable, Iterator
from typing import Any

import array_api_extra as xpx
import numpy as np
from scipy import fft, integrate, interpolate, linalg, ndimage, signal, spatial, special, stats
from scipy.cluster import vq
from scipy.optimize import elementwise
from sklearn import metrics
from sklearn.decomposition import PCA
from sklearn.metrics import pairwise
from sklearn.preprocessing import StandardScaler

Case = tuple[str, Callable[[Any, Any], Any], np.ndarray]
RANDOM = np.random.default_rng(0)
VECTOR = RANDOM.random(6) + 0.3
MATRIX, OTHER = RANDOM.standard_normal((6, 3)), RANDOM.standard_normal((6, 3))
REVERSED = VECTOR[::-1].copy()


def special_cases() -> Iterator[Case]:
    """Yields functions of `scipy.special`."""
    yield "special.logsumexp", lambda xp, x: special.logsumexp(x, axis=1), MATRIX
    yield "special.softmax", lambda xp, x: special.softmax(x, axis=1), MATRIX
    yield "special.gammaln", lambda xp, x: special.gammaln(x), VECTOR
    yield "special.betainc", lambda xp, x: special.betainc(x, xp.asarray(VECTOR), xp.asarray(VECTOR / 4)), VECTOR
    yield "special.log_ndtr", lambda xp, x: special.log_ndtr(x), VECTOR
    yield "special.xlogy", lambda xp, x: special.xlogy(x, x), VECTOR
    yield "special.i0", lambda xp, x: special.i0(x), VECTOR


def stats_cases() -> Iterator[Case]:
    """Yields functions of `scipy.stats`."""
    yield "stats.zscore", lambda xp, x: stats.zscore(x, axis=0), MATRIX
    yield "stats.skew", lambda xp, x: stats.skew(x, axis=0), MATRIX
    yield "stats.kurtosis", lambda xp, x: stats.kurtosis(x, axis=0), MATRIX
    yield "stats.gmean", lambda xp, x: stats.gmean(x), VECTOR
    yield "stats.entropy", lambda xp, x: stats.entropy(x), VECTOR
    yield "stats.ttest_1samp.statistic", lambda xp, x: stats.ttest_1samp(x, 0.1, axis=0).statistic, MATRIX
    yield "stats.ttest_1samp.pvalue", lambda xp, x: stats.ttest_1samp(x, 0.1, axis=0).pvalue, MATRIX
    yield "stats.pearsonr", lambda xp, x: stats.pearsonr(x, xp.asarray(REVERSED)).statistic, VECTOR
    yield "stats.Normal.logpdf", lambda xp, x: stats.Normal().logpdf(x), VECTOR


def signal_cases() -> Iterator[Case]:
    """Yields functions of `scipy.fft` and `scipy.signal`."""
    yield "fft.rfft", lambda xp, x: xp.abs(fft.rfft(x)), VECTOR
    yield "fft.dct", lambda xp, x: fft.dct(x), VECTOR
    yield "signal.detrend", lambda xp, x: signal.detrend(x), VECTOR
    yield "signal.hilbert", lambda xp, x: xp.abs(signal.hilbert(x)), VECTOR
    yield "signal.fftconvolve", lambda xp, x: signal.fftconvolve(x, xp.asarray(VECTOR)), VECTOR
    yield "signal.convolve", lambda xp, x: signal.convolve(x, xp.asarray(VECTOR), method="direct"), VECTOR
    yield "signal.sosfilt", lambda xp, x: signal.sosfilt(xp.asarray(signal.butter(2, 0.2, output="sos")), x), VECTOR
    yield "signal.periodogram", lambda xp, x: signal.periodogram(x)[1], VECTOR


def gaussian_integral(xp: Any, x: Any) -> Any:
    """Returns integrals of exp(-x t**2) from 0 to 1."""
    bounds = xp.asarray(0.0, dtype=xp.float64), xp.asarray(1.0, dtype=xp.float64)
    return integrate.tanhsinh(lambda t, a: xp.exp(-a * t * t), *bounds, args=(x,)).integral


def volume(xp: Any, x: Any) -> Any:
    """Returns the integral of exp(-x[0] t) x[1] from 0 to 1."""
    bounds = xp.asarray([0.0], dtype=xp.float64), xp.asarray([1.0], dtype=xp.float64)
    return integrate.cubature(lambda t: xp.exp(-t[..., 0] * x[0]) * x[1], *bounds).estimate


def square_root(xp: Any, x: Any) -> Any:
    """Returns the roots of t**2 - x, which SciPy brackets."""
    bracket = xp.zeros_like(x), xp.full_like(x, 5.0)
    return elementwise.find_root(lambda t, c: t * t - c, bracket, args=(x,)).x


def spline(xp: Any, x: Any) -> Any:
    """Returns values of the spline through x."""
    points = xp.asarray([0.5, 1.5], dtype=xp.float64)
    return interpolate.make_interp_spline(xp.arange(6, dtype=xp.float64), x)(points)


def numeric_cases() -> Iterator[Case]:
    """Yields functions of SciPy that integrate, solve, interpolate, filter and turn."""
    yield "cluster.whiten", lambda xp, x: vq.whiten(x), MATRIX
    yield "integrate.simpson", lambda xp, x: integrate.simpson(x), VECTOR
    yield "integrate.cumulative_trapezoid", lambda xp, x: integrate.cumulative_trapezoid(x), VECTOR
    yield "integrate.tanhsinh", gaussian_integral, VECTOR
    yield "integrate.cubature", volume, VECTOR
    yield "optimize.find_root", square_root, VECTOR
    places = OTHER[:, :2].copy()
    yield (
        "interpolate.RBFInterpolator",
        lambda xp, x: interpolate.RBFInterpolator(xp.asarray(places), x)(xp.asarray(places[:3] + 0.1)),
        VECTOR,
    )
    yield "interpolate.make_interp_spline", spline, VECTOR
    yield "ndimage.gaussian_filter", lambda xp, x: ndimage.gaussian_filter(x, 1.0), MATRIX
    yield "spatial.Rotation", lambda xp, x: spatial.transform.Rotation.from_rotvec(x).as_matrix(), MATRIX
    yield "linalg.expm", lambda xp, x: linalg.expm(x[:3, :]), MATRIX


def learning_cases() -> Iterator[Case]:
    """Yields functions of scikit-learn."""
    yield "sklearn.euclidean_distances", lambda xp, x: pairwise.euclidean_distances(x, xp.asarray(OTHER)), MATRIX
    yield "sklearn.rbf_kernel", lambda xp, x: pairwise.rbf_kernel(x, xp.asarray(OTHER)), MATRIX
    yield "sklearn.cosine_similarity", lambda xp, x: pairwise.cosine_similarity(x, xp.asarray(OTHER)), MATRIX
    yield "sklearn.polynomial_kernel", lambda xp, x: pairwise.polynomial_kernel(x, xp.asarray(OTHER)), MATRIX
    error = metrics.mean_squared_error
    yield "sklearn.mean_squared_error", lambda xp, x: xp.asarray(error(xp.asarray(REVERSED), x)), VECTOR
    yield "sklearn.r2_score", lambda xp, x: xp.asarray(metrics.r2_score(xp.asarray(REVERSED), x)), VECTOR
    yield "sklearn.StandardScaler", lambda xp, x: StandardScaler().fit_transform(x), MATRIX
    yield "sklearn.PCA", lambda xp, x: PCA(2, svd_solver="full").fit_transform(x) ** 2, MATRIX


def extra_cases() -> Iterator[Case]:
    """Yields functions of array-api-extra."""
    yield "extra.cov", lambda xp, x: xpx.cov(x.T), MATRIX
    yield "extra.at", lambda xp, x: xpx.at(x)[1:3].set(x[0] * x[1]), VECTOR
    yield "extra.kron", lambda xp, x: xpx.kron(x, x), MATRIX[:2]
    yield "extra.sinc", lambda xp, x: xpx.sinc(x), VECTOR
    yield (
        "extra.apply_where",
        lambda xp, x: xpx.apply_where(x > 0.7, (x,), lambda t: t * t, lambda t: -t),
        VECTOR,
    )
    yield "extra.create_diagonal", lambda xp, x: xpx.create_diagonal(x), VECTOR


CASES: tuple[Case, ...] = (
    *special_cases(),
    *stats_cases(),
    *signal_cases(),
    *numeric_cases(),
    *learning_cases(),
    *extra_cases(),
)
