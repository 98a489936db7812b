"""Faults of all kinds, and right programs, for `compare`: each fault has one op, and one side is wrong."""

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from emberharmony import Parameter, nn, ops

RNG = np.random.default_rng(5)
X = RNG.uniform(0.5, 1.0, (6, 8)).astype("float32")
SIGNED = RNG.normal(size=(6, 8)).astype("float32")
LONG = RNG.uniform(0.5, 1.0, 2**16 + 5).astype("float32")  # the judge looks at 2**16 elements at once
IDS = np.arange(6) % 3
Change = Callable[..., Any]


class Kind(NamedTuple):
    """A fault: the op, how its result changes, a program that calls it, its inputs, and whether gradients are taken."""

    op: str
    change: Change
    program: Callable[..., Any]
    inputs: tuple[Any, ...] = (X,)
    gradients: bool = False


def times(factor: float) -> Change:
    """Returns the change that multiplies a result."""

    def change(f: Any, *args: Any, **kwargs: Any) -> Any:
        found = f(*args, **kwargs)
        return ops.cast(ops.multiply(found, ops.full_like(found, factor)), ops.dtype(found))

    return change


def at_end(value: float) -> Change:
    """Returns the change that replaces the last element of a result."""

    def change(f: Any, *args: Any, **kwargs: Any) -> Any:
        found = f(*args, **kwargs)
        flat = ops.reshape(found, (-1,))
        last = ops.cast(ops.full((1,), value), ops.dtype(found))
        return ops.reshape(ops.concatenate([flat[:-1], last]), ops.shape(found))

    return change


def as_dtype(name: Any) -> Change:
    """Returns the change that casts a result."""
    return lambda f, *args, **kwargs: ops.cast(f(*args, **kwargs), name)


def then(function: Callable[[Any], Any]) -> Change:
    """Returns the change that calls a function with the result."""
    return lambda f, *args, **kwargs: function(f(*args, **kwargs))


def instead(function: Callable[..., Any]) -> Change:
    """Returns the change that calls a function with the arguments of the op."""
    return lambda f, *args, **kwargs: function(*args, **kwargs)


def _after(function: Callable[..., Any]) -> Callable[..., Any]:
    """Returns a program that goes on after a function, so that others inherit the fault."""
    return lambda *given: ops.sum(ops.sin(ops.multiply(ops.cast(function(*given), "float32"), 0.5)))


def _noisy(x: Any) -> Any:
    """Returns numbers that hardly two libraries round alike."""
    return ops.log1p(ops.sin(ops.exp(ops.multiply(x, 3.0))))


class _Layer(nn.Module):
    def __init__(self) -> None:
        self.weight = Parameter(X[:, :3].copy())

    def __call__(self, x: Any) -> Any:
        return ops.matmul(ops.transpose(x), self.weight)


INF, NAN = float("inf"), float("nan")
LAYER = _Layer()
KINDS: dict[str, Kind] = {
    "another op": Kind("sin", instead(lambda x: ops.cos(x)), _after(ops.sin)),
    "the other argument": Kind("subtract", lambda f, a, b: f(b, a), ops.subtract, (X, SIGNED)),
    "a late NaN": Kind("tanh", at_end(NAN), _after(ops.tanh), (LONG,)),
    "a late NaN in half precision": Kind("exp", at_end(NAN), lambda x: ops.exp(ops.cast(x, "float16"))),
    "a late infinity": Kind("erf", at_end(INF), _after(ops.erf), (LONG,)),
    "infinity in place of a number": Kind(
        "multiply", at_end(INF), lambda x: ops.multiply(x, 2.0), (np.float32([1.0]),)
    ),
    "a number in place of infinity": Kind("reciprocal", at_end(2.0), ops.reciprocal, (np.float32([1.0, 0.0]),)),
    "the other infinity": Kind("reciprocal", at_end(-INF), ops.reciprocal, (np.float32([1.0, 0.0]),)),
    "the other infinity after an overflow": Kind("exp", at_end(-INF), ops.exp, (np.float32([1.0, 100.0]),)),
    "NaN in place of infinity": Kind("exp", at_end(NAN), ops.exp, (np.float32([1.0, 100.0]),)),
    "a number in place of NaN": Kind("sqrt", at_end(0.0), ops.sqrt, (np.float32([1.0, -1.0]),)),
    "a late element": Kind("sigmoid", at_end(0.0), _after(ops.sigmoid), (LONG,)),
    "a small element": Kind("exp", at_end(1e-6), ops.exp, (np.float32([10.0, 1.0, -20.0]),)),
    "a wider dtype": Kind("mean", as_dtype("float64"), lambda x: ops.mean(x, axis=0)),
    "a narrower dtype": Kind("softmax", as_dtype("float16"), lambda x: ops.softmax(x)),
    "integers in place of floats": Kind("floor", as_dtype("int64"), ops.floor, (SIGNED,)),
    "narrow positions": Kind("argsort", as_dtype("int32"), lambda x: ops.argsort(x, axis=1)),
    "numbers in place of truth": Kind("isfinite", as_dtype("int8"), ops.isfinite),
    "the dtype of a half": Kind("relu", as_dtype("float32"), lambda x: ops.relu(ops.cast(x, "bfloat16"))),
    "a lost axis": Kind("sum", then(ops.squeeze), lambda x: ops.sum(x, axis=1, keepdims=True)),
    "another order": Kind("sort", then(lambda y: ops.flip(y, 1)), lambda x: ops.sort(x, axis=1)),
    "one off": Kind("argmax", then(lambda y: ops.add(y, 1)), lambda x: ops.argmax(x, axis=1)),
    "one of many integers": Kind("cumsum", at_end(3.0), lambda x: ops.cumsum(ops.cast(x, "int64")), (LONG,)),
    "an early one of many integers": Kind(
        "cumsum",
        lambda f, *args, **kwargs: ops.flip(at_end(3.0)(lambda: ops.flip(f(*args, **kwargs)))),
        lambda x: ops.cumsum(ops.cast(x, "int64")),
        (LONG,),
    ),
    "one of many booleans": Kind("greater", at_end(0.0), lambda x: ops.greater(x, 0.1), (LONG,)),
    "the second result": Kind("top_k", then(lambda y: (y[0], ops.flip(y[1], -1))), lambda x: ops.top_k(x, 3)),
    "a rounded result": Kind("round", instead(lambda x, *_: ops.trunc(x)), lambda x: ops.round(ops.multiply(x, 4.0))),
    "bits": Kind("bitwise_xor", instead(lambda a, b: ops.bitwise_or(a, b)), lambda x: ops.bitwise_xor(x, 1), (IDS,)),
    "a wrong segment": Kind("segment_sum", then(lambda y: ops.roll(y, 1, 0)), lambda x: ops.segment_sum(x, IDS, 3)),
    "an index that wraps": Kind(
        "take",
        instead(lambda x, i, *rest: ops.take_along_axis(x, ops.expand_dims(ops.add(i, -1), 1), 0)[:, 0]),
        lambda x: ops.take(x[:, 0], IDS),
    ),
    "a complex result": Kind("conj", instead(lambda z: z), lambda x: ops.conj(ops.cast(x, "complex64") * 1j)),
    "a biased variance": Kind(
        "var",
        instead(lambda x, axis=None, correction=0, *rest, **kw: ops.mean(ops.square(x - ops.mean(x)))),
        lambda x: ops.var(x, correction=1),
    ),
    "inside of a composite": Kind("hypot", times(1.001), _after(ops.squareplus)),
    "behind noise of the inputs": Kind(
        "matmul", times(1.001), lambda x: ops.matmul(_noisy(x), ops.transpose(_noisy(x)))
    ),
    "in a module": Kind("matmul", times(1.0001), LAYER),
    "in the gradient of tanh": Kind("subtract", times(1.001), lambda x: ops.sum(ops.tanh(x)), gradients=True),
    "the sign of a gradient": Kind("sin", then(ops.negative), lambda x: ops.sum(ops.cos(x)), gradients=True),
    "a late NaN of a gradient": Kind("cos", at_end(NAN), lambda x: ops.sum(ops.sin(x)), (LONG,), gradients=True),
    "the dtype of a gradient": Kind("cos", as_dtype("float64"), lambda x: ops.sum(ops.sin(x)), gradients=True),
    "the gradient of a parameter": Kind(
        "matrix_transpose", then(ops.negative), lambda x: ops.sum(LAYER(x)), gradients=True
    ),
}


def _masked(x: Any) -> Any:
    scores = ops.where(ops.greater(x, 0.0), ops.log(ops.maximum(x, 1e-30)), -INF)
    return ops.sum(ops.softmax(scores, 1))


def _newton(x: Any) -> Any:
    y = ops.ones_like(x)
    while float(ops.max(ops.abs(ops.subtract(ops.square(y), x)))) > 1e-3:
        y = ops.multiply(0.5, ops.add(y, ops.divide(x, y)))
    return y


def _scanned(x: Any) -> Any:
    return ops.scan(lambda carry, row: (ops.tanh(ops.add(carry, row)), ops.sum(carry)), x[0], x)


def _stopped(x: Any) -> Any:
    y = ops.multiply(x, 2.0)
    return ops.cos(ops.stop_gradient(y)), ops.sin(y)


def _second(x: Any) -> Any:
    return ops.grad(lambda y: ops.sum(ops.square(ops.grad(lambda z: ops.sum(ops.power(z, 3.0)))(y))))(x)


SPD = (SIGNED @ SIGNED.T + 6 * np.eye(6)).astype("float32")
SPREAD = (SIGNED * 10.0 ** RNG.integers(-6, 7, SIGNED.shape)).astype("float32")
EDGES = np.float32([NAN, INF, -INF, 0.0, -0.0, 1e-45, 3e38, -1.0])
TIES = RNG.integers(0, 3, (6, 8)).astype("float32")
RIGHT: dict[str, tuple[Callable[..., Any], tuple[Any, ...]]] = {
    "cancellation": (lambda x: ops.sum(x - ops.mean(x)), (SIGNED * 1e4,)),
    "the variance of large numbers": (lambda x: ops.var(x + 1e4, axis=1), (SIGNED,)),
    "a sum of all magnitudes": (lambda x: (ops.sum(x), ops.cumsum(x, 1), ops.logsumexp(x)), (SPREAD,)),
    "special values": (
        lambda x: (x * 2.0, ops.exp(x), ops.sqrt(x), ops.maximum(x, 0.0), ops.sign(x), 1.0 / x),
        (EDGES,),
    ),
    "the infinity of an overflow": (lambda x: ops.exp(x * 200.0), (SIGNED,)),
    "an overflow of half precision": (lambda x: ops.square(ops.cast(x * 500.0, "float16")), (SIGNED,)),
    "subnormal numbers": (lambda x: ops.exp(x - 100.0) * 0.5, (SIGNED,)),
    "ties": (
        lambda x: (ops.argmax(x, 1), ops.sort(x, 1), ops.argsort(x, 1), ops.max(x), ops.unique_counts(x)),
        (TIES,),
    ),
    "rounding at a half": (lambda x: (ops.round(x / 2.0), ops.floor(x), ops.cast(x, "int32")), (TIES,)),
    "angles far from 0": (lambda x: (ops.sin(x * 1e4), ops.tan(x)), (SIGNED,)),
    "functions at their edges": (
        lambda x: (ops.arccos(x), ops.arctanh(x), ops.log1p(-x)),
        (np.float32([0.9999999, -0.9999999, 0.5]),),
    ),
    "integers that wrap": (lambda x: ops.cast(x, "int8") * 100, (IDS,)),
    "counts": (lambda x: (ops.bincount(x, minlength=3), ops.one_hot(x, 3), ops.segment_sum(x, x, 3)), (IDS,)),
    "bits": (lambda x: (ops.bitwise_xor(x, 5), ops.left_shift(x, 3), ops.bitwise_invert(x)), (IDS,)),
    "a spectrum": (lambda x: ops.abs(ops.fft.fft(ops.cast(x, "complex64"))), (SIGNED,)),
    "a real spectrum and back": (lambda x: ops.irfft(ops.rfft(x), 8), (SIGNED,)),
    "complex numbers": (lambda x: ops.exp(ops.cast(x, "complex64") * 1j) / (1 + 2j), (SIGNED,)),
    "a solution": (lambda a, x: ops.solve(a, x), (SPD, SIGNED)),
    "factors": (lambda a: (ops.cholesky(a), ops.det(a), ops.inv(a)), (SPD,)),
    "eigenvalues": (lambda a: ops.eigvalsh(a), (SPD,)),
    "a nearly singular matrix": (
        lambda a: ops.solve(a + 1e-4 * ops.eye(6), ops.ones((6,))),
        ((SIGNED[:, :3] @ SIGNED[:, :3].T).astype("float32"),),
    ),
    "long products": (
        lambda x: ops.matmul(ops.reshape(x[:65536], (64, 1024)), ops.reshape(x[:65536], (1024, 64))),
        (LONG,),
    ),
    "a convolution": (
        lambda x: ops.conv(ops.reshape(x, (1, 6, 8, 1)), ops.ones((3, 3, 1, 2)), padding="same"),
        (SIGNED,),
    ),
    "pooling": (
        lambda x: (ops.max_pool(ops.reshape(x, (1, 6, 8, 1)), 2), ops.average_pool(ops.reshape(x, (1, 6, 8, 1)), 2)),
        (SIGNED,),
    ),
    "attention": (lambda x: ops.dot_product_attention(*[ops.reshape(x, (1, 6, 2, 4))] * 3, is_causal=True), (SIGNED,)),
    "a masked row": (_masked, (SIGNED,)),
    "normalization of a constant": (lambda x: ops.layer_normalization(x * 0.0 + 3.0), (SIGNED,)),
    "indices": (lambda x: (ops.take(x, IDS, 0), x[1:, ::2], ops.nonzero(x > 1.0)), (SIGNED,)),
    "views": (lambda x: ops.sum(ops.transpose(x)[1::2, ::3] * ops.swapaxes(x, 0, 1)[1::2, ::3]), (SIGNED,)),
    "nothing": (lambda x: (ops.sum(x[:0], axis=0), ops.concatenate([x[:0], x]), ops.prod(x[:0])), (SIGNED,)),
    "a number": (lambda x: ops.exp(ops.sum(x)) + float(ops.max(x)), (SIGNED,)),
    "a loop until values agree": (_newton, (X,)),
    "a scan": (_scanned, (SIGNED,)),
    "branches": (lambda x: ops.cond(ops.sum(x) > 0, ops.sin, ops.cos, x), (SIGNED,)),
    "random numbers": (lambda x: ops.dropout(x + ops.random.normal((6, 8)), 0.5), (SIGNED,)),
    "half precision": (
        lambda x: ops.softmax(ops.gelu(ops.matmul(ops.cast(x, "bfloat16"), ops.cast(x, "bfloat16").T)), 1),
        (SIGNED,),
    ),
    "mixed dtypes": (lambda x: ops.cast(x, "float16") * x + ops.arange(8), (SIGNED,)),
    "a batch of functions": (lambda x: ops.vmap(lambda row: ops.softmax(row) @ row)(x), (SIGNED,)),
    "a compiled function": (lambda x: ops.compile(lambda y: ops.tanh(y) * 2.0)(x), (SIGNED,)),
    "special functions": (lambda x: (ops.gammaln(x), ops.digamma(x), ops.erfinv(x), ops.i0(x)), (X,)),
}
"""Right programs: no side is wrong, however much rounding differs."""

DIFFERENTIATED: dict[str, tuple[Callable[..., Any], tuple[Any, ...]]] = {
    "a constant part": (_stopped, (SIGNED,)),
    "a masked row": (_masked, (SIGNED,)),
    "a scan": (lambda x: _scanned(x)[0], (SIGNED,)),
    "a layer": (lambda x: ops.mean(ops.square(LAYER(x))), (SIGNED,)),
    "ties": (lambda x: ops.max(x, axis=1), (TIES,)),
    "a norm of zeros": (lambda x: ops.norm(x * 0.0) + ops.sum(ops.sqrt(x)), (X,)),
    "a second derivative": (lambda x: ops.sum(_second(x)), (X,)),
    "factors": (lambda a: ops.sum(ops.cholesky(a)) + ops.logdet(a), (SPD,)),
    "indices": (lambda x: ops.sum(ops.take(x, IDS, 0) * ops.segment_max(x, IDS, 3)[0]), (SIGNED,)),
    "half precision": (lambda x: ops.cross_entropy(ops.cast(x, "float16"), IDS), (SIGNED,)),
}
"""Right programs whose gradients are compared too."""
