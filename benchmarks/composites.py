"""Measures how fast a composite is compared with the best native call, and its body with the kernel.

Each row has these times, measured in the same run in interleaved rounds:

- the best native call: what a user of the library would write by hand;
- the same call again: its difference to the first is the noise floor, and smaller differences mean nothing;
- the op as the backend runs it, by a kernel of the library if it has one;
- the composite body of the op, which a backend without such a kernel runs;
- a program by hand, where the native call cannot be the goal: SciPy's is one loop in C for which NumPy has no function,
  PyTorch's has too few digits or does not compare all lengths, and MLX's drops digits, differentiates wrongly, or
  writes outside of a tensor.

All of them have the same result, which is checked.

The first column is in microseconds, the others are ratios to it. Each time is the minimum of many rounds. MLX is
lazy, so each call evaluates its result.
"""

import functools
import importlib.util
import math
import re
import timeit
from collections.abc import Callable
from typing import Any

import numpy as np
from pairs import installed_backends, make_parser, restart_with_one_thread, write_results

from emberharmony import ops
from emberharmony.core.registry import OPS

Row = tuple[str, dict[str, str]]

_F = "torch.nn.functional"
ROWS: dict[str, Row] = {
    "softmax(x)": (
        "softmax(x)",
        {"numpy": "special.softmax(x, -1)", "torch": "torch.softmax(x, -1)", "mlx": "mx.softmax(x, -1)"},
    ),
    "log_softmax(x)": (
        "log_softmax(x)",
        {
            "numpy": "special.log_softmax(x, -1)",
            "torch": "torch.log_softmax(x, -1)",
            "mlx": "x - mx.logsumexp(x, -1, True)",
        },
    ),
    "sigmoid(x)": (
        "sigmoid(x)",
        {"numpy": "special.expit(x)", "torch": "torch.sigmoid(x)", "mlx": "mx.sigmoid(x)"},
    ),
    "silu(x)": (
        "silu(x)",
        {"numpy": "x * special.expit(x)", "torch": f"{_F}.silu(x)", "mlx": "x * mx.sigmoid(x)"},
    ),
    "gelu(x, False)": (
        "gelu(x, False)",
        {
            "numpy": "x * special.ndtr(x)",
            "torch": f"{_F}.gelu(x)",
            "mlx": "x * (1 + mx.erf(x * 0.7071067811865476)) * 0.5",
        },
    ),
    "softplus(x)": (
        "softplus(x)",
        {"numpy": "np.logaddexp(x, 0)", "torch": f"{_F}.softplus(x)", "mlx": "mx.logaddexp(x, 0)"},
    ),
    "elu(x)": (
        "elu(x)",
        {
            "numpy": "np.where(x > 0, x, np.expm1(np.minimum(x, 0)))",
            "torch": f"{_F}.elu(x)",
            "mlx": "mx.where(x > 0, x, mx.expm1(x))",
        },
    ),
    "leaky_relu(x)": (
        "leaky_relu(x)",
        {
            "numpy": "np.maximum(x, 0.2 * x)",
            "torch": f"{_F}.leaky_relu(x, 0.2)",
            "mlx": "mx.maximum(x, 0.2 * x)",
        },
    ),
    "layer_normalization(x, w, w)": (
        "layer_normalization(x, w, w)",
        {
            "numpy": "(x - x.mean(-1, keepdims=True)) / np.sqrt(x.var(-1, keepdims=True) + 1e-7) * w + w",
            "torch": f"{_F}.layer_norm(x, w.shape, w, w, 1e-7)",
            "mlx": "mx.fast.layer_norm(x, w, w, 1e-7)",
        },
    ),
    "rms_normalization(x, w)": (
        "rms_normalization(x, w)",
        {
            "numpy": "x / np.sqrt((x * x).mean(-1, keepdims=True) + 1e-7) * w",
            "torch": f"{_F}.rms_norm(x, w.shape, w, 1e-7)",
            "mlx": "mx.fast.rms_norm(x, w, 1e-7)",
        },
    ),
    "sparse_categorical_crossentropy(t, x, True)": (
        "sparse_categorical_crossentropy(t, x, True)",
        {
            "numpy": "-np.take_along_axis(special.log_softmax(x, -1), t[:, None], -1)[:, 0]",
            "torch": f"{_F}.cross_entropy(x, t, reduction='none')",
            "mlx": "mx.logsumexp(x, -1) - mx.take_along_axis(x, t[:, None], -1)[:, 0]",
        },
    ),
    "dot_product_attention(q, q, q)": (
        "dot_product_attention(q, q, q)",
        {
            "numpy": "np.einsum('bnts,bsnh->btnh', special.softmax(np.einsum('btnh,bsnh->bnts', q, q) / 4, -1), q)",
            "torch": f"{_F}.scaled_dot_product_attention(*[q.transpose(1, 2)] * 3).transpose(1, 2)",
            "mlx": "mx.fast.scaled_dot_product_attention(*[q.swapaxes(1, 2)] * 3, scale=0.25).swapaxes(1, 2)",
        },
    ),
    "conv(i, k)": (
        "conv(i, k)",
        {
            "numpy": "np.tensordot(windows(i, (3, 3), (1, 2)), k, ([4, 5, 3], [0, 1, 2]))",
            "torch": f"{_F}.conv2d(i.movedim(-1, 1), k.permute(3, 2, 0, 1)).movedim(1, -1)",
            "mlx": "mx.conv2d(i, mx.moveaxis(k, -1, 0))",
        },
    ),
    "conv(i, k, 2, 'same')": (
        "conv(i, k, 2, 'same')",
        {
            "torch": f"{_F}.conv2d({_F}.pad(i.movedim(-1, 1), (0, 1, 0, 1)), k.permute(3, 2, 0, 1), stride=2)"
            ".movedim(1, -1)",
            "mlx": "mx.conv_general(i, mx.moveaxis(k, -1, 0), 2, ([0, 0], [1, 1]))",
        },
    ),
    "conv_transpose(i, k, 2)": (
        "conv_transpose(i, k, 2)",
        {
            "torch": f"{_F}.conv_transpose2d(i.movedim(-1, 1), k.permute(3, 2, 0, 1), None, 2).movedim(1, -1)",
            "mlx": "mx.conv_transpose2d(i, mx.moveaxis(k, -2, 0), 2)",
        },
    ),
    "depthwise_conv(i, d)": (
        "depthwise_conv(i, d)",
        {
            "torch": f"{_F}.conv2d(i.movedim(-1, 1), d.permute(2, 3, 0, 1), groups=d.shape[2]).movedim(1, -1)",
            "mlx": "mx.conv2d(i, mx.transpose(d, (2, 0, 1, 3)), groups=d.shape[2])",
        },
    ),
    "max_pool(i, 2)": (
        "max_pool(i, 2)",
        {
            "numpy": "i.reshape(len(i), i.shape[1] // 2, 2, i.shape[2] // 2, 2, -1).max((2, 4))",
            "torch": f"{_F}.max_pool2d(i.movedim(-1, 1), 2).movedim(1, -1)",
            "mlx": "i.reshape(len(i), i.shape[1] // 2, 2, i.shape[2] // 2, 2, -1).max((2, 4))",
        },
    ),
    "average_pool(i, 3, 1)": (
        "average_pool(i, 3, 1)",
        {
            "numpy": "windows(i, (3, 3), (1, 2)).mean((4, 5))",
            "torch": f"{_F}.avg_pool2d(i.movedim(-1, 1), 3, 1).movedim(1, -1)",
        },
    ),
    "pad(x, 1)": (
        "pad(x, 1)",
        {"numpy": "np.pad(x, 1)", "torch": f"{_F}.pad(x, (1, 1, 1, 1))", "mlx": "mx.pad(x, 1)"},
    ),
    "std(x, 1)": (
        "std(x, 1)",
        {"numpy": "np.std(x, 1)", "torch": "torch.std(x, 1, correction=0)", "mlx": "mx.std(x, 1)"},
    ),
    "logsumexp(x, 1)": (
        "logsumexp(x, 1)",
        {"numpy": "special.logsumexp(x, 1)", "torch": "torch.logsumexp(x, 1)", "mlx": "mx.logsumexp(x, 1)"},
    ),
    "take_along_axis(x, p)": (
        "take_along_axis(x, p)",
        {
            "numpy": "np.take_along_axis(x, p, -1)",
            "torch": "torch.take_along_dim(x, p, -1)",
            "mlx": "mx.take_along_axis(x, p, -1)",
        },
    ),
    "segment_sum(x, s, 4)": (
        "segment_sum(x, s, 4)",
        {
            "numpy": "added(np.zeros((4, x.shape[1]), x.dtype), s, x)",
            "torch": "torch.zeros(4, x.shape[1]).index_add(0, s, x)",
            "mlx": "mx.zeros((4, x.shape[1])).at[s].add(x)",
        },
    ),
    "set_item(x, r, x)": (
        "set_item(x, r, x)",
        {
            "numpy": "assigned(x.copy(), r, x)",
            "torch": "assigned(x.clone(), r, x)",
            "mlx": "assigned(mx.array(x), r, x)",
        },
    ),
    "set_item(x, r, x, 'add')": (
        "set_item(x, r, x, 'add')",
        {"torch": "x.index_add(0, r, x)", "mlx": "x.at[r].add(x)"},
    ),
    "put_along_axis(x, p, y)": (
        "put_along_axis(x, p, y)",
        {"torch": "x.scatter(1, p, y)", "mlx": "mx.put_along_axis(x, p, y, 1)"},
    ),
    "gammaln(u)": ("gammaln(u)", {"numpy": "special.gammaln(u)", "torch": "torch.lgamma(u)"}),
    "digamma(u)": ("digamma(u)", {"numpy": "special.digamma(u)", "torch": "torch.digamma(u)"}),
    "gammainc(u, v)": (
        "gammainc(u, v)",
        {"numpy": "special.gammainc(u, v)", "torch": "torch.special.gammainc(u, v)"},
    ),
    "gammaincc(u, v)": (
        "gammaincc(u, v)",
        {"numpy": "special.gammaincc(u, v)", "torch": "torch.special.gammaincc(u, v)"},
    ),
    "beta(u, v)": ("beta(u, v)", {"numpy": "special.beta(u, v)"}),
    "betaln(u, v)": ("betaln(u, v)", {"numpy": "special.betaln(u, v)"}),
    "betainc(u, v, f)": ("betainc(u, v, f)", {"numpy": "special.betainc(u, v, f)"}),
    "rot90(x)": ("rot90(x)", {"numpy": "np.rot90(x)", "torch": "torch.rot90(x)"}),
    "one_hot(c, 8)": (
        "one_hot(c, 8)",
        {
            "numpy": "np.eye(8, dtype=np.float32)[c]",
            "torch": f"{_F}.one_hot(c, 8).float()",
            "mlx": "mx.eye(8)[c]",
        },
    ),
}
LIMITS: dict[str, dict[str, str]] = {
    "log_softmax(x)": {"mlx": "(_c := x - mx.stop_gradient(mx.max(x, -1, True))) - mx.logsumexp(_c, -1, True)"},
    "sigmoid(x)": {"numpy": "(_z := np.exp(np.minimum(x, 80))) / (1 + _z)"},
    "silu(x)": {"numpy": "x * (_z := np.exp(np.minimum(x, 80))) / (1 + _z)"},
    "gelu(x, False)": {"numpy": "0.5 * x * each(math.erfc, x * -0.7071067811865476)"},
    "sparse_categorical_crossentropy(t, x, True)": {
        "mlx": "mx.where((_q := t.view(mx.uint64)) <= (_n := x.shape[-1] - 1), "
        "mx.logsumexp(_c := x - mx.stop_gradient(mx.max(x, -1, True)), -1)"
        " - mx.take_along_axis(_c, mx.minimum(_q, _n)[:, None], -1)[:, 0], 0)"
    },
    "conv(i, k)": {"mlx": "custom('mx.conv2d({}, mx.moveaxis({}, -1, 0))')(i, k)"},
    "conv(i, k, 2, 'same')": {
        "mlx": "custom('mx.conv_general({}, mx.moveaxis({}, -1, 0), 2, ([0, 0], [1, 1]))')(i, k)"
    },
    "conv_transpose(i, k, 2)": {"mlx": "custom('mx.conv_transpose2d({}, mx.moveaxis({}, -2, 0), 2)')(i, k)"},
    "depthwise_conv(i, d)": {"mlx": "custom('mx.conv2d({}, mx.transpose({}, (2, 0, 1, 3)), groups=d.shape[2])')(i, d)"},
    "segment_sum(x, s, 4)": {
        "numpy": "s.min() < 0 or added(np.zeros((4, x.shape[1]), x.dtype), s, x)",
        "mlx": "mx.zeros((5, x.shape[1])).at[mx.minimum(mx.stop_gradient(s).view(mx.uint64), 4)].add(x)[:4]",
    },
    "set_item(x, r, x)": {"mlx": "assigned(mx.pad(x, ((0, 1), (0, 0))), inside(r, len(x)), x)[:-1]"},
    "set_item(x, r, x, 'add')": {"mlx": "mx.pad(x, ((0, 1), (0, 0))).at[inside(r, len(x))].add(x)[:-1]"},
    "put_along_axis(x, p, y)": {
        "torch": "x.scatter(1, p, y) if p.shape == y.shape and p.shape[:-1] == x.shape[:-1] else None",
        "mlx": "mx.put_along_axis(mx.pad(x, ((0, 0), (0, 1))), inside(p, x.shape[1]), y, 1)[:, :-1]",
    },
    "gammaln(u)": {"numpy": "each(math.lgamma, u)", "torch": "torch.lgamma(u.double()).float()"},
    "digamma(u)": {"numpy": "digamma(u)", "torch": "torch.digamma(u.double()).float()"},
    "gammainc(u, v)": {
        "numpy": "gammainc(u, v)",
        "torch": "torch.special.gammainc(u.double(), v.double()).float()",
    },
    "gammaincc(u, v)": {
        "numpy": "gammaincc(u, v)",
        "torch": "torch.special.gammaincc(u.double(), v.double()).float()",
    },
    "beta(u, v)": {"numpy": "np.exp(betaln(u, v))"},
    "betaln(u, v)": {"numpy": "betaln(u, v)"},
    "betainc(u, v, f)": {"numpy": "betainc(u, v, f)"},
}
"""The programs by hand, by row and backend."""
COLUMNS = ("again", "op", "body", "by hand")
SIZES = {"small": ((4, 8), (1, 6, 6, 2)), "large": ((256, 1024), (4, 32, 32, 16))}


class _Bodies:
    """A namespace with the composite body of each composite op, and with the op itself for all others."""

    def __getattr__(self, name: str) -> Callable[..., Any]:
        return OPS[name].declared if OPS[name].composite else OPS[name].function


def _assign(copied: Any, key: Any, value: Any) -> Any:
    """Returns a tensor after an assignment to it."""
    copied[key] = value
    return copied


def _add_at(sums: np.ndarray, rows: np.ndarray, values: np.ndarray) -> np.ndarray:
    """Returns an array of NumPy after values were added to its rows."""
    np.add.at(sums, rows, values)
    return sums


def _map_elements(function: Callable[[float], float], x: np.ndarray) -> np.ndarray:
    """Returns a function of Python's numbers of each element."""
    return np.array(list(map(function, x.ravel().tolist())), x.dtype).reshape(x.shape)


def _digamma(x: np.ndarray) -> np.ndarray:
    """Returns the digamma function of positive float32, by the asymptotic series at `x + 8`."""
    x = x.astype(np.float64)
    z = x + 8
    square = 1 / (z * z)
    series = square * (1 / 12 - square * (1 / 120 - square * (1 / 252 - square * (1 / 240 - square * (1 / 132)))))
    offsets = np.arange(8.0).reshape(8, *(1,) * x.ndim)
    return (np.log(z) - 0.5 / z - series - (1 / (x + offsets)).sum(0)).astype(np.float32)


def _betaln(x: np.ndarray, y: np.ndarray) -> np.ndarray:
    """Returns the logarithm of the beta function of positive float32."""
    x, y = x.astype(np.float64), y.astype(np.float64)
    logarithm = math.lgamma
    return (_map_elements(logarithm, x) + _map_elements(logarithm, y) - _map_elements(logarithm, x + y)).astype(
        np.float32
    )


def _gammainc(a: np.ndarray, x: np.ndarray) -> np.ndarray:
    """Returns the lower incomplete gamma function of positive float32, x < 30, by 80 terms of its series."""
    a, x = a.astype(np.float64), x.astype(np.float64)
    terms = x / (a + np.arange(1.0, 81.0).reshape(80, *(1,) * x.ndim))
    series_sum = (1 + np.multiply.accumulate(terms, 0).sum(0)) / a
    return (np.exp(a * np.log(x) - x - _map_elements(math.lgamma, a)) * series_sum).astype(np.float32)


def _gammaincc(a: np.ndarray, x: np.ndarray) -> np.ndarray:
    """Returns the upper incomplete gamma function of such numbers, from x = a + 1 on by its continued fraction."""
    lower, a, x = _gammainc(a, x), a.astype(np.float64), x.astype(np.float64)
    fraction: Any = 0.0
    for k in range(15, 0, -1):
        fraction = k * (a - k) / (x - a + (2 * k + 1) + fraction)
    upper = np.exp(a * np.log(x) - x - _map_elements(math.lgamma, a)) / (x - a + 1 + fraction)
    return np.where(x < a + 1, 1 - lower, upper).astype(np.float32)


def _betainc(a: np.ndarray, b: np.ndarray, x: np.ndarray) -> np.ndarray:
    """Returns the incomplete beta function of positive float32 up to 25, by its continued fraction (DLMF 8.17.22)."""
    a, b, x = a.astype(np.float64), b.astype(np.float64), x.astype(np.float64)
    far = x * (a + b + 2) > a + 1
    a, b, x = np.where(far, b, a), np.where(far, a, b), np.where(far, 1 - x, x)
    fraction: Any = 1.0
    for k in range(10, 0, -1):
        fraction = 1 + k * (b - k) * x / ((a + (2 * k - 1)) * (a + 2 * k)) / fraction
        fraction = 1 - (a + (k - 1)) * (a + b + (k - 1)) * x / ((a + (2 * k - 2)) * (a + (2 * k - 1))) / fraction
    near = np.exp(a * np.log(x) + b * np.log1p(-x) - _betaln(a, b)) / (a * fraction)
    return np.where(far, 1 - near, near).astype(np.float32)


def _add_mlx_names(names: dict[str, Any]) -> None:
    """Adds MLX to the names that the statements use, and functions for calls by hand with the semantics of the ops."""
    mx = importlib.import_module("mlx.core")

    def wrap_indices(indices: Any, length: int) -> Any:
        """Returns indices from 0 up; those out of bounds become `length`."""
        places, end = mx.stop_gradient(indices).view(mx.uint64), mx.array(length, mx.uint64)
        return mx.minimum(mx.minimum(places, places + end), end)

    @functools.cache
    def custom_function(call: str) -> Any:
        """Returns a call on two tensors as a function that MLX does not differentiate itself."""
        stopped_arguments = "mx.stop_gradient(a)", "mx.stop_gradient(b)"
        function = mx.custom_function(eval(f"lambda a, b: {call.format(*stopped_arguments)}", names))
        function.vjp(lambda primals, cotangent, output: primals)
        return function

    names |= {"mx": mx, "inside": wrap_indices, "custom": custom_function}


def statement_names(backend: str, size: str) -> dict[str, Any]:
    """Returns the names that the statements use: the libraries, and tensors of one size."""
    (rows, columns), image = SIZES[size]
    random = np.random.default_rng(0)
    channels = image[-1]
    host = {
        "x": random.normal(size=(rows, columns)),
        "w": random.normal(size=columns),
        "q": random.normal(size=(image[0], image[1] * image[2], 2, 16)),
        "i": random.normal(size=image),
        "k": random.normal(size=(3, 3, channels, channels)),
        "d": random.normal(size=(3, 3, channels, 1)),
        "t": random.integers(0, columns, rows),
        "c": random.integers(0, 8, rows),
        "s": random.integers(0, 4, rows),
        "p": random.integers(0, columns, (rows, 4)),
        "r": random.permutation(rows),
        "y": random.normal(size=(rows, 4)),
        "u": random.uniform(0.2, 20, (rows, columns)),
        "v": random.uniform(0.1, 25, (rows, columns)),
        "f": random.uniform(0.05, 0.95, (rows, columns)),
    }
    names: dict[str, Any] = {"np": np, "ops": ops, "bodies": _Bodies(), "assigned": _assign, "added": _add_at}
    names |= {"math": math, "each": _map_elements, "digamma": _digamma, "betaln": _betaln, "gammainc": _gammainc}
    names |= {"gammaincc": _gammaincc, "betainc": _betainc}
    for name, array in host.items():
        names[name] = ops.convert_to_tensor(array.astype(np.float32) if array.dtype.kind == "f" else array)
    if backend == "torch":
        names["torch"] = importlib.import_module("torch")
    elif backend == "mlx":
        _add_mlx_names(names)
    else:
        names["special"] = importlib.import_module("scipy.special")
        names["windows"] = np.lib.stride_tricks.sliding_window_view
    return names


def time_statements(statements: dict[str, str], names: dict[str, Any], backend: str, rounds: int) -> dict[str, float]:
    """Returns the time of each statement in µs: the minimum of interleaved rounds."""
    wrap = "lambda: mx.eval({})" if backend == "mlx" else "lambda: {}"
    calls = {name: eval(wrap.format(statement), names) for name, statement in statements.items()}
    results = [ops.to_numpy(eval(statement, names)) for statement in statements.values()]
    for result in results:
        np.testing.assert_allclose(result, results[0], rtol=1e-3, atol=1e-3)
    # Each takes 0.2 ms at a time, in which other programs rarely interrupt it.
    first_seconds = {name: min(timeit.repeat(call, number=1, repeat=3)) for name, call in calls.items()}
    repeat_counts = {name: max(1, min(200, int(2e-4 / max(time, 1e-7)))) for name, time in first_seconds.items()}
    least_by_name = dict.fromkeys(calls, float("inf"))
    for _ in range(rounds):
        for name, call in calls.items():
            least_by_name[name] = min(
                least_by_name[name], timeit.timeit(call, number=repeat_counts[name]) / repeat_counts[name] * 1e6
            )
    return least_by_name


def measure(backend: str, pattern: str, rounds: int) -> dict[str, dict[str, dict[str, float]]]:
    """Returns the time of the native call in µs and the ratios to it, by size and row, and prints them."""
    ops.set_backend(backend)
    figures: dict[str, dict[str, dict[str, float]]] = {}
    for size in SIZES:
        names, figures[size] = statement_names(backend, size), {}
        print(f"\n{backend}, {size}\n{'':46}{'native µs':>10}{'again':>8}{'op':>8}{'body':>8}{'by hand':>8}")
        for title, (call, native) in ROWS.items():
            if backend not in native or not re.search(pattern, title):
                continue
            statements = {"native": native[backend], "again": native[backend], "op": f"ops.{call}"}
            if OPS[call.partition("(")[0]].composite:
                statements["body"] = f"bodies.{call}"
            if backend in LIMITS.get(title, ()):
                statements["by hand"] = LIMITS[title][backend]
            times = time_statements(statements, names, backend, rounds)
            native_time = times.pop("native")
            ratios = {name: time / native_time for name, time in times.items()}
            figures[size][title] = {"native": native_time, **ratios}
            cells = "".join(f"{ratios[name]:8.2f}" if name in ratios else " " * 8 for name in COLUMNS)
            print(f"{title:46}{native_time:10.1f}{cells}".rstrip(), flush=True)
    return figures


def main() -> None:
    """Measures every installed backend."""
    restart_with_one_thread()
    options = make_parser(__doc__, 15).parse_args()
    backends = installed_backends(options.backend)
    figures = {backend: measure(backend, options.pattern, options.rounds) for backend in backends}
    groups = {f"{backend}, {size}": rows for backend, sizes in figures.items() for size, rows in sizes.items()}
    write_results(options.json, groups, backends)


if __name__ == "__main__":
    main()
