"""The doctor's checks of a backend: each computes a known result and reports what the backend returns.

A check returns a `Result`, or raises `AssertionError` with what is wrong. Any other error is a fault too.
"""

import math
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from emberharmony import ops
from emberharmony.backend.shared.precision import STATES, convolution_error, precision_of_error, product_error
from emberharmony.core import selection
from emberharmony.core.errors import DTypeError, EmberError, IndexOutOfBoundsError
from emberharmony.testing.doctor.finding import BROKEN, DIFFERS, OK, ROWS, Finding

_WRONG = 0.02
"""A product with a larger relative error is wrong in every precision."""
_SECONDS = 10.0
"""The time limit of a check with threads, in seconds."""


@dataclass(frozen=True)
class Result:
    """The result of a check that found no fault: OK, or a difference that a row of the documentation describes."""

    detail: str = ""
    row: str = ""
    figures: dict[str, float] = field(default_factory=dict)


Check = Callable[[Any], Result]
CHECKS: dict[str, tuple[Check, str]] = {}
"""The checks by their names, each with the two lines of a program that shows what it looks at."""


def check(name: str, *repro: str) -> Callable[[Check], Check]:
    """Returns a decorator that registers a check under a name.

    Args:
        name: the name.
        repro: two lines, which follow the line that imports `ops` and sets the backend.
    """

    def register(function: Check) -> Check:
        CHECKS[name] = function, "\n".join(repro)
        return function

    return register


def run_check(backend: Any, name: str) -> Finding:
    """Runs a check on the default device of a backend and returns its finding."""
    function, repro = CHECKS[name]
    try:
        with ops.use_backend(backend):
            check_result = function(backend)
    except Exception as error:  # noqa: BLE001  (whatever a library raises is what is to be reported)
        fault_text = str(error) if isinstance(error, AssertionError) else f"raises {type(error).__name__}: {error}"
        setup_source = f"from emberharmony import ops; ops.set_backend({backend.name!r})\n"
        return Finding(backend.name, name, BROKEN, fault_text, repro=setup_source + repro)
    verdict = DIFFERS if check_result.row else OK
    return Finding(backend.name, name, verdict, check_result.detail, check_result.row, figures=check_result.figures)


def _precision_result(backend: Any, kind: str, error: float) -> Result:
    """Returns the result for a measured error of float32; it is wrong on a processor that was not told to round."""
    precision_state = precision_of_error(error)
    assert error < _WRONG, f"{kind} of float32 are off by {error:.2g}, and float32 is by 5e-7"
    detail_text = f"{precision_state}, off by {error:.1e}"
    device_name = ops.get_default_device()
    may_be_reduced = any(word in str(backend.precision_key()) for word in ("tf32", "tensorfloat32", "bf16", "bfloat16"))
    assert precision_state == STATES[0] or device_name != "cpu" or may_be_reduced, (
        f"{kind} of float32 are off by {error:.2g} on a processor, and no setting asks for it: is another BLAS loaded?"
    )
    return Result(detail_text, "" if precision_state == STATES[0] else ROWS["precision"], {"relative error": error})


@check(
    "product precision",
    "x = ops.random.normal((128, 128), seed=0); a = ops.to_numpy(x).astype('float64')",
    "print(abs(ops.to_numpy(ops.matmul(x, x)) - a @ a).max())  # 1e-4 or less",
)
def product_precision(backend: Any) -> Result:
    """Multiplies random matrices of float32."""
    return _precision_result(backend, "products", product_error(backend.bound))


@check(
    "convolution precision",
    "x = ops.random.normal((1, 16, 16, 32), seed=0)",
    "print(ops.conv(x, ops.ones((3, 3, 32, 1)))[0, 0, 0], ops.sum(x[0, :3, :3]))  # equal but for the last digits",
)
def convolution_precision(backend: Any) -> Result:
    """Convolves random images of float32."""
    return _precision_result(backend, "convolutions", convolution_error(backend.bound))


def _host_values(tensor: Any) -> list[Any]:
    host_values: list[Any] = ops.to_numpy(tensor).tolist()
    return host_values


@check(
    "subnormal numbers",
    "x = ops.array([1e-20], dtype='float32')",
    "print(x * x)  # 1e-40",
)
def subnormal_numbers(backend: Any) -> Result:
    """Multiplies two float32 whose product is subnormal."""
    products = ops.multiply(ops.array([1e-20, 1e-30], dtype="float32"), ops.array([1e-20, 1e-10], dtype="float32"))
    survival_flags = [value > 0 for value in _host_values(products)]
    read_value = _host_values(ops.array([1e-40], dtype="float32"))[0]
    assert read_value == np.float32(1e-40), f"1e-40 is read back as {read_value}"
    return Result("kept") if all(survival_flags) else Result("results below 1.2e-38 are 0", ROWS["remaining"])


@check(
    "integer overflow",
    "x = ops.array([127], dtype='int8')",
    "print(x + ops.array([1], dtype='int8'))  # [-128]",
)
def integer_overflow(backend: Any) -> Result:
    """Adds 1 to the largest integers, which wrap."""
    for dtype, largest_integer, wrapped_integer in (
        (ops.int8, 2**7 - 1, -(2**7)),
        (ops.uint8, 2**8 - 1, 0),
        (ops.int32, 2**31 - 1, -(2**31)),
        (ops.int64, 2**63 - 1, -(2**63)),
    ):
        wrapped_sum = _host_values(ops.add(ops.array([largest_integer], dtype=dtype), ops.array([1], dtype=dtype)))[0]
        assert wrapped_sum == wrapped_integer, (
            f"{dtype.name} {largest_integer} + 1 is {wrapped_sum}, and {wrapped_integer} on other machines"
        )
    return Result("wraps")


@check(
    "NaN in max",
    "x = ops.array([1.0, float('nan'), 3.0])",
    "print(ops.max(x), ops.argmax(x), ops.maximum(x, 2.0))  # nan 1 [2. nan 3.]",
)
def nan_in_max(backend: Any) -> Result:
    """Looks for NaN in maxima and minima, which propagate it."""
    x = ops.array([1.0, math.nan, 3.0])
    for reduction_name in ("max", "min"):
        extremum = float(getattr(ops, reduction_name)(x))
        assert math.isnan(extremum), f"ops.{reduction_name} of [1, nan, 3] is {extremum}"
        extremum_index = int(getattr(ops, f"arg{reduction_name}")(x))
        assert extremum_index == 1, f"ops.arg{reduction_name} of [1, nan, 3] is {extremum_index}"
    elementwise_maximum = _host_values(ops.maximum(x, ops.array([2.0, 2.0, math.nan])))
    assert elementwise_maximum[0] == 2.0, f"the maximum of 1 and 2 is {elementwise_maximum[0]}"
    assert all(map(math.isnan, elementwise_maximum[1:])), f"ops.maximum with NaN gives {elementwise_maximum}"
    return Result("propagates")


@check(
    "NaN in sort",
    "x = ops.array([3.0, float('nan'), 1.0])",
    "print(ops.sort(x), ops.argsort(x))  # [1. 3. nan] [2 0 1]",
)
def nan_in_sort(backend: Any) -> Result:
    """Sorts NaN, which comes last."""
    x = ops.array([3.0, math.nan, 1.0, -math.inf])
    sorted_values = _host_values(ops.sort(x))
    assert str(sorted_values) == "[-inf, 1.0, 3.0, nan]", f"ops.sort puts NaN elsewhere: {sorted_values}"
    sorting_indices = _host_values(ops.argsort(x))
    assert sorting_indices == [3, 2, 0, 1], f"ops.argsort gives {sorting_indices}"
    return Result("last")


@check(
    "index out of bounds",
    "x = ops.array([10, 20, 30])",
    "print(ops.take(x, ops.array([5])))  # IndexOutOfBoundsError",
)
def index_out_of_bounds(backend: Any) -> Result:
    """Takes an element behind the end by a tensor of indices."""
    try:
        ops.eval(ops.take(ops.array([10, 20, 30]), ops.array([5])))
    except IndexOutOfBoundsError:
        return Result("raises")
    try:
        with ops.checked():
            ops.eval(ops.take(ops.array([10, 20, 30]), ops.array([5])))
    except IndexOutOfBoundsError:
        return Result("raises in `ops.checked` only", ROWS["remaining"])
    raise AssertionError("ops.take returns something for index 5 of 3 elements, in `ops.checked` too")


def _run_in_threads(function: Callable[[int], Any], count: int) -> list[Any]:
    """Returns what a function returned, or raised, in each of several threads."""
    results_by_thread: list[Any] = [AssertionError(f"a thread took more than {_SECONDS:g} s")] * count
    active_backend = selection.current()

    def run_in_thread(i: int) -> None:
        try:
            with ops.use_backend(active_backend):
                results_by_thread[i] = function(i)
        except Exception as error:  # noqa: BLE001  (it is the result)
            results_by_thread[i] = error

    threads = [threading.Thread(target=run_in_thread, args=(i,), daemon=True) for i in range(count)]
    for thread in threads:
        thread.start()
    end_time = time.monotonic() + _SECONDS
    for thread in threads:
        thread.join(max(0.0, end_time - time.monotonic()))
    return results_by_thread


@check(
    "threads",
    "from concurrent.futures import ThreadPoolExecutor",
    "print(list(ThreadPoolExecutor(4).map(lambda i: float(ops.sum(ops.ones((64, 64)) * i)), "
    "range(4))))  # [0.0, 4096.0, 8192.0, 12288.0]",
)
def threads(backend: Any) -> Result:
    """Computes in several threads at once."""

    def compute(i: int) -> float:
        x = ops.full((64, 64), float(i))
        return float(ops.sum(ops.matmul(x, ops.ones((64, 64))) / 64.0))

    thread_results = _run_in_threads(compute, 8)
    assert thread_results == [4096.0 * i for i in range(8)], f"eight threads give {thread_results}"
    return Result("compute the same")


@check(
    "lazy tensors of threads",
    "import threading; made = []; t = threading.Thread(target=lambda: made.append(ops.ones(3) * "
    "2)); t.start(); t.join()",
    "print(made[0].tolist())  # [2.0, 2.0, 2.0]",
)
def lazy_tensors(backend: Any) -> Result:
    """Reads a tensor that another thread made and did not evaluate."""
    tensor = _run_in_threads(lambda i: ops.add(ops.full((3,), 2.0), float(i)), 1)[0]
    if isinstance(tensor, Exception):
        raise tensor
    try:
        host_values = _host_values(tensor)
    except (EmberError, RuntimeError) as error:
        evaluated_tensor = _run_in_threads(lambda i: _evaluate(ops.full((3,), 2.0)), 1)[0]
        assert _host_values(evaluated_tensor) == [2.0] * 3, (
            f"an evaluated tensor of another thread is {evaluated_tensor}"
        )
        return Result(f"must be evaluated where they were made ({type(error).__name__})", ROWS["remaining"])
    assert host_values == [2.0] * 3, f"a tensor of another thread is {host_values}"
    return Result("can be read")


def _evaluate(tensor: Any) -> Any:
    ops.eval(tensor)
    return tensor


@check(
    "float64",
    "x = ops.array([1.0], dtype='float64') / 3.0",
    "print(float(x[0]))  # 0.3333333333333333",
)
def float64(backend: Any) -> Result:
    """Divides and multiplies in float64."""
    try:
        x = ops.array([[1.0, 2.0], [3.0, 4.0]], dtype="float64")
        one_third = _host_values(ops.divide(x, 3.0))[0][0]
        product = _host_values(ops.matmul(x, ops.divide(x, 3.0)))[0][0]
    except DTypeError as error:
        return Result(f"none here: {error}", ROWS["remaining"])
    assert one_third == 1.0 / 3.0, f"1/3 in float64 is {one_third!r}"
    assert abs(product - 7.0 / 3.0) < 1e-14, f"a product of float64 is off by {abs(product - 7.0 / 3.0):.1g}"
    return Result("16 digits")


@check(
    "bfloat16",
    "x = ops.array([1.00390625, 1.01171875])",
    "print(ops.cast(ops.cast(x, 'bfloat16'), 'float32'))  # [1. 1.015625]",
)
def bfloat16(backend: Any) -> Result:
    """Rounds to bfloat16, halves to the even neighbour."""
    try:
        x = ops.cast(ops.array([1.00390625, 1.01171875]), "bfloat16")
        squares = _host_values(ops.cast(ops.multiply(x, x), "float32"))
    except DTypeError as error:
        return Result(f"none here: {error}", ROWS["remaining"])
    assert squares == [1.0, 1.03125], f"1.00390625 and 1.01171875 rounded to bfloat16 and squared are {squares}"
    return Result("rounds to even")


@check(
    "random numbers",
    "print(ops.random.Generator(20).integers((4,), 0, 1000))",
    "print(ops.random.uniform((2,), seed=20))  # the same on every machine",
)
def random_numbers(backend: Any) -> Result:
    """Draws from a generator, which gives the same numbers on every machine."""
    generator = ops.random.Generator(20)
    drawn_numbers = [
        generator.integers((4,), 0, 1000).tolist(),
        _host_values(ops.random.uniform((2,), generator=generator)),
    ]
    assert drawn_numbers == RANDOM, f"generator 20 draws {drawn_numbers}, and {RANDOM} on other machines"
    return Result("the same bits")


RANDOM = [[626, 433, 457, 497], [0.3657785654067993, 0.5764438509941101]]
"""The numbers that `random_numbers` must draw on every machine."""


def _least_seconds(function: Callable[[], Any], seconds: float = 0.4) -> float:
    """Returns the least seconds that a call takes, its evaluation included."""
    least_time, end_time = math.inf, time.perf_counter() + seconds
    while True:
        start = time.perf_counter()
        ops.eval(function())
        ops.synchronize()
        least_time = min(least_time, time.perf_counter() - start)
        if time.perf_counter() > end_time:
            return least_time


@check(
    "speed",
    "a = ops.ones((512, 512))",
    "import timeit; print(timeit.timeit(lambda: ops.eval(a @ a), number=3) / 3, 's')",
)
def speed(backend: Any) -> Result:
    """Measures a product of matrices, and a copy."""
    matrix = ops.full((512, 512), 1.5)
    large_tensor = ops.full((2**23,), 1.5)
    ops.eval([matrix, large_tensor])
    product_speed = 2 * 512**3 / _least_seconds(lambda: ops.matmul(matrix, matrix)) / 1e9
    # The copy reads each byte once and writes it once.
    copy_speed = 2 * 4 * 2**23 / _least_seconds(lambda: ops.multiply(large_tensor, 2.0)) / 1e9
    detail_text = f"{product_speed:.3g} GFLOP/s in a product of 512 x 512, {copy_speed:.3g} GB/s in a copy of 32 MiB"
    host_speed = 2 * 512**3 / _host_product_seconds() / 1e9
    is_slow = product_speed < host_speed / 10
    figure_by_name = {"product GFLOP/s": product_speed, "copy GB/s": copy_speed}
    return Result(
        f"{detail_text}; NumPy multiplies at {host_speed:.3g}" if is_slow else detail_text,
        ROWS["speed"] if is_slow else "",
        figure_by_name,
    )


def _host_product_seconds() -> float:
    matrix = np.full((512, 512), 1.5, np.float32)
    least_time = math.inf
    for _ in range(3):
        start = time.perf_counter()
        matrix @ matrix
        least_time = min(least_time, time.perf_counter() - start)
    return least_time
