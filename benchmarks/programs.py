"""Measures twelve programs under `ops.compile`, compared with the same in plain NumPy.

Each program is a function of a namespace and arrays. In plain NumPy it is called with NumPy itself; ours is compiled by
`ops.compile` on NumPy. Both take and return NumPy arrays of float32, in turn in one process, and their results must
be close. A size is about the number of elements that an op of the program works on. The ratio is the time of ours over
that of NumPy, so that one below 1 is a gain. `first ms` is the first call of ours, which records and compiles. With an
engine it also measures; where the folder of caches has what was compiled by an earlier process, it takes less.
"""

import argparse
import importlib.util
import math
import re
import time
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
from pairs import make_parser, restart_with_one_thread, table_head, table_line, time_pair, write_results

from emberharmony import ops

Arrays = tuple[np.ndarray, ...]


def polynomial(xp: Any, x: Any) -> Any:
    """Returns a polynomial of degree 6 by Horner's rule."""
    polynomial_sum = x * 0.125
    for factor in (-0.5, 0.25, 1.5, -0.75, 2.0, 1.0):
        polynomial_sum = (polynomial_sum + factor) * x
    return polynomial_sum


def tanh_gelu(xp: Any, x: Any) -> Any:
    """Returns the approximation of GELU by the hyperbolic tangent."""
    return 0.5 * x * (1.0 + xp.tanh(math.sqrt(2 / math.pi) * (x + 0.044715 * x * x * x)))


def black_scholes(xp: Any, price: Any, strike: Any, years: Any) -> Any:
    """Returns prices of calls and puts, with the logistic approximation of the normal distribution."""

    def cumulative_share(x: Any) -> Any:
        return 1.0 / (1.0 + xp.exp(-1.5976 * x - 0.070566 * x * x * x))

    spread = 0.3 * xp.sqrt(years)
    first = (xp.log(price / strike) + 0.065 * years) / spread
    second, worth = first - spread, strike * xp.exp(-0.02 * years)
    call = price * cumulative_share(first) - worth * cumulative_share(second)
    return call, call - price + worth


def lorenz(xp: Any, x: Any, y: Any, z: Any) -> Any:
    """Returns points after four Euler steps of the Lorenz system."""
    for _ in range(4):
        x, y, z = (
            x + 0.01 * (10.0 * (y - x)),
            y + 0.01 * (x * (28.0 - z) - y),
            z + 0.01 * (x * y - 8.0 / 3.0 * z),
        )
    return x, y, z


def layer_norm(xp: Any, x: Any, weight: Any, bias: Any) -> Any:
    """Returns rows with mean 0 and variance 1, times a weight and with a bias."""
    centred = x - xp.mean(x, axis=-1, keepdims=True)
    variance = xp.mean(centred * centred, axis=-1, keepdims=True)
    return centred / xp.sqrt(variance + 1e-5) * weight + bias


def pairwise_distances(xp: Any, points: Any) -> Any:
    """Returns the distance of each two of some points in three dimensions."""
    difference = points[:, None, :] - points[None, :, :]
    return xp.sqrt(xp.sum(difference * difference, axis=-1))


def softmax(xp: Any, x: Any) -> Any:
    """Returns the softmax of each row."""
    powers = xp.exp(x - xp.max(x, axis=-1, keepdims=True))
    return powers / xp.sum(powers, axis=-1, keepdims=True)


def n_body(xp: Any, place: Any, speed: Any, mass: Any) -> Any:
    """Returns places and speeds of bodies after a leapfrog step."""
    difference = place[None, :, :] - place[:, None, :]
    squares = xp.sum(difference * difference, axis=-1) + 0.01
    pull = mass / (squares * xp.sqrt(squares))
    speed = speed + 0.01 * xp.sum(difference * pull[:, :, None], axis=1)
    return place + 0.01 * speed, speed


def fft_filter(xp: Any, signal: Any, response: Any) -> Any:
    """Returns a signal filtered in the space of frequencies, and its energy."""
    filtered = xp.fft.irfft(xp.fft.rfft(signal) * response)
    return filtered, xp.sum(filtered * filtered)


def welford(xp: Any, x: Any) -> Any:
    """Returns mean and variance of each column, updated with one of 16 parts of the rows after the other."""
    part_length, count = x.shape[0] // 16, 0
    mean = xp.zeros_like(x[0])
    squares = xp.zeros_like(x[0])
    for i in range(16):
        rows = x[i * part_length : (i + 1) * part_length]
        part_mean = xp.mean(rows, axis=0)
        centred = rows - part_mean
        shift = part_mean - mean
        total_count = count + part_length
        squares = squares + xp.sum(centred * centred, axis=0) + shift * shift * (count * part_length / total_count)
        mean = mean + shift * (part_length / total_count)
        count = total_count
    return mean, squares / count


def kalman(xp: Any, place: Any, speed: Any, spread: Any, seen: Any) -> Any:
    """Returns the estimates of many filters of place and speed after four observations."""
    xx, xv, vv = spread[0], spread[1], spread[2]
    for i in range(4):
        place = place + 0.1 * speed
        xx, xv, vv = xx + 0.2 * xv + 0.01 * vv + 0.001, xv + 0.1 * vv, vv + 0.01
        gain = xx / (xx + 0.5)
        pull = xv / (xx + 0.5)
        error = seen[i] - place
        place, speed = place + gain * error, speed + pull * error
        xx, xv, vv = (1.0 - gain) * xx, (1.0 - gain) * xv, vv - pull * xv
    return place, speed, xx, xv, vv


def mlp_by_hand(xp: Any, w1: Any, b1: Any, w2: Any, x: Any, y: Any) -> Any:
    """Returns the loss of a network with one hidden layer, and its gradients, as written by hand."""
    hidden = np.tanh(x @ w1 + b1)
    error = hidden @ w2 - y
    output_gradient = 2.0 / error.size * error
    hidden_gradient = output_gradient @ w2.T * (1.0 - hidden * hidden)
    return np.mean(error * error), (x.T @ hidden_gradient, np.sum(hidden_gradient, axis=0), hidden.T @ output_gradient)


def mlp(xp: Any, w1: Any, b1: Any, w2: Any, x: Any, y: Any) -> Any:
    """Returns the same by `ops.value_and_grad`."""

    def loss(w1: Any, b1: Any, w2: Any) -> Any:
        error = ops.matmul(ops.tanh(ops.matmul(x, w1) + b1), w2) - y
        return ops.mean(error * error)

    return ops.value_and_grad(loss, (0, 1, 2))(w1, b1, w2)


def programs_of_size(size: int) -> Iterator[tuple[str, Callable[..., Any], Callable[..., Any], Arrays]]:
    """Yields the name of each program, the program in plain NumPy and ours, and its arrays."""
    rng = np.random.default_rng(0)

    def random_array(*shape: int, low: float = -1.0, high: float = 1.0) -> np.ndarray:
        return rng.uniform(low, high, shape).astype(np.float32)

    side, rows = math.isqrt(size), max(size // 256, 4)
    hidden = max(math.isqrt(size // 8), 8)
    arrays_by_program: dict[Callable[..., Any], Arrays] = {
        polynomial: (random_array(size),),
        tanh_gelu: (random_array(size),),
        black_scholes: tuple(random_array(size, low=low, high=high) for low, high in ((80, 120), (80, 120), (0.1, 2))),
        lorenz: (random_array(size), random_array(size), random_array(size, low=20, high=30)),
        layer_norm: (random_array(rows, 256), random_array(256), random_array(256)),
        pairwise_distances: (random_array(side, 3),),
        softmax: (random_array(rows, 256),),
        mlp: (
            random_array(64, hidden),
            random_array(hidden),
            random_array(hidden, 8),
            random_array(8 * hidden, 64),
            random_array(8 * hidden, 8),
        ),
        n_body: (random_array(side, 3), random_array(side, 3), random_array(side, low=0.5)),
        fft_filter: (random_array(size), random_array(size // 2 + 1)),
        welford: (random_array(16 * max(size // 256, 2), 16),),
        kalman: (random_array(size), random_array(size), random_array(3, size, low=0.5), random_array(4, size)),
    }
    for program, arrays in arrays_by_program.items():
        yield program.__name__, mlp_by_hand if program is mlp else program, program, arrays


def require_close(one: Any, other: Any) -> None:
    """Checks that two programs return the same numbers but for their last digits."""
    for a, b in zip(ops.tree_leaves(one), ops.tree_leaves(other), strict=True):
        np.testing.assert_allclose(a, b, rtol=2e-3, atol=1e-4 * max(1.0, float(np.abs(a).max())))


CHAINS = ("polynomial", "tanh_gelu", "black_scholes", "lorenz", "layer_norm", "pairwise_distances")
"""The programs that are chains of elementwise functions; their geometric mean is printed too."""


def measure(size: int, engine: str | None, options: argparse.Namespace) -> dict[str, dict[str, float]]:
    """Returns the figures of the programs of a size by name, and prints them."""
    print(table_head(f"{size:,} elements, engine {engine}") + f"{'first ms':>12}")
    figures: dict[str, dict[str, float]] = {}
    for name, by_hand, program, arrays in programs_of_size(size):
        if not re.search(options.pattern, name):
            continue
        compiled = ops.compile(lambda *xs, program=program: program(ops, *xs), engine)
        start = time.perf_counter()
        result = compiled(*arrays)
        first_milliseconds = (time.perf_counter() - start) * 1e3
        require_close(by_hand(np, *arrays), result)
        row = time_pair(lambda: by_hand(np, *arrays), lambda: compiled(*arrays), options.rounds, most=5.0)  # noqa: B023
        print(f"{table_line(name, row)}{first_milliseconds:12.1f}", flush=True)
        figures[name] = {**row, "first ms": first_milliseconds}
    for names, text in ((figures, "all"), (figures.keys() & set(CHAINS), "the chains")):
        ratios = [figures[name]["ours median"] for name in names]
        if ratios:
            mean = math.exp(sum(map(math.log, ratios)) / len(ratios))
            print(f"geometric mean of the medians of {text}: {mean:.3f}, so {1 / mean:.2f} times as fast")
    return figures


def main() -> None:
    """Prints a table for each size and engine, and its geometric means."""
    restart_with_one_thread()
    options_of = make_parser(__doc__, rounds=7)
    options_of.add_argument("--sizes", default="1e3,1e4,1e6", help="the sizes, with commas (default: 1e3,1e4,1e6)")
    options_of.add_argument(
        "--engines", default="none,auto", help="none, torch, jax, numba or auto, with commas (default: none,auto)"
    )
    options = options_of.parse_args()
    ops.set_backend("numpy")
    figures: dict[str, dict[str, Any]] = {}
    for size in (int(float(each)) for each in options.sizes.split(",")):
        for engine in options.engines.split(","):
            group = figures.setdefault("numpy" if engine == "none" else f"numpy, engine {engine}", {})
            rows = measure(size, None if engine == "none" else engine, options)
            group.update({f"{name}, {size}": row for name, row in rows.items()})
    installed = [name for name in ("torch", "jax", "numba") if importlib.util.find_spec(name) is not None]
    write_results(options.json, figures, ["numpy", *(installed if options.engines != "none" else [])])


if __name__ == "__main__":
    main()
