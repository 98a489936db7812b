"""Random numbers: the streams, uniform and normal draws, random orders. In `ops.random` the names lack `random_`.

`seed=` takes an integer or a `Generator`, and `generator=` takes a `Generator`. With one of them, every backend returns
the same numbers to the last bit.

Without them, numbers come from the default streams. `seed` restarts these streams, so results are repeatable on each
backend. The backend draws uniform and normal numbers and those derived from them (`bernoulli`, `gumbel`, `categorical`,
`dropout`); all others are drawn on the host.

Dtype: the default float, or int64 for integers, unless `dtype` is given.

Parameters are numbers, or tensors, NumPy arrays or lists that broadcast to the shape. Numbers outside the domain of a
distribution raise `ArgumentError`. Gradients flow through tensors that shift and scale (`mean`, `stddev`, `minval`,
`maxval`); the values of these, and of `rate`, are not read. The values of other tensors are read on the host and
checked. Other distributions are in `distributions`.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

from emberharmony.backend.shared.random import Generator, generator_of
from emberharmony.backend.shared.random_streams import HOST, start_streams
from emberharmony.core.axes import nonnegative_axes
from emberharmony.core.deferred import Deferred
from emberharmony.core.dispatch import op
from emberharmony.core.dtypes import DType, as_dtype, float32, float64, int64
from emberharmony.core.errors import ArgumentError, DTypeError, UnsupportedOpError
from emberharmony.core.numeric.finfo import FloatInfo
from emberharmony.core.numeric.promotion import as_inexact
from emberharmony.core.options import constant
from emberharmony.core.state.draws import draw_or_trace
from emberharmony.core.types import DTypeLike, Shape, Tensor, TensorLike, Varying
from emberharmony.ops.arrays.indexing import take, where
from emberharmony.ops.device import get_device, to_device
from emberharmony.ops.dtype import dtype as dtype_of
from emberharmony.ops.logic.comparison import less, less_equal, logical_and
from emberharmony.ops.math import absolute, add, divide, maximum, minimum, multiply, subtract
from emberharmony.ops.tensor import cast, convert_to_tensor, to_numpy

if TYPE_CHECKING:
    from emberharmony.backend.shared import random_bodies
    from emberharmony.backend.shared import random_parameters as checks
else:
    random_bodies = Deferred("emberharmony.backend.shared.random_bodies")
    checks = Deferred("emberharmony.backend.shared.random_parameters")


@op
def random_seed(seed: int) -> None:
    """Restarts the default streams of all backends from a seed.

    Args:
        seed: an integer, at least 0.

    Raises:
        ArgumentError: if `seed` is not a non-negative integer.

    See also: `random_get_state`, to save them.
    """
    start_streams(seed)


@op
def random_get_state() -> dict[str, Any]:
    """Returns the state of the default streams of the active backend, for `random_set_state`.

    It is a dict of text, integers and lists, which `json.dumps` accepts. A `Generator` has a state of its own, which
    `Generator.state_dict` returns.

    See also: `random_set_state`, the inverse; `random_seed`, to start anew.

    Example:
        >>> state = ops.random.get_state()
        >>> first = ops.random.normal((3,))
        >>> ops.random.set_state(state)
        >>> bool(ops.array_equal(ops.random.normal((3,)), first))
        True
    """
    raise UnsupportedOpError("the backend cannot save its default streams; draw from a Generator, and save its state")


@op
def random_set_state(state: dict[str, Any]) -> None:
    """Continues the default streams of the active backend where they were when `random_get_state` returned `state`.

    The streams of other backends go on as before. If an error is raised, nothing has changed.

    Args:
        state: what `random_get_state` returned on the same backend, or a copy of it that went through JSON.

    Raises:
        ArgumentTypeError: if the state is not a dict.
        ArgumentError: if the state is damaged, or was written by a later version.
        BackendMismatchError: if it is the state of another backend.
        DeviceError: if the state has a stream of a device that this machine lacks.

    See also: `random_get_state`, the inverse.
    """
    raise UnsupportedOpError("the backend cannot save its default streams; draw from a Generator, and save its state")


@op
def standard_uniform(shape: Shape, dtype: DTypeLike | None = None) -> Tensor:
    """Returns uniform random numbers in [0, 1) from the default stream of the backend.

    See also: `random_uniform`, with bounds and a seed.
    """
    return random_bodies.uniform(shape, dtype)


@op
def standard_normal(shape: Shape, dtype: DTypeLike | None = None) -> Tensor:
    """Returns normal random numbers of mean 0 and variance 1 from the default stream of the backend.

    See also: `random_normal`, with a mean and a seed.
    """
    return random_bodies.normal(shape, dtype)


@op(finite="no")
def random_normal(
    shape: Shape,
    mean: Varying = 0.0,
    stddev: Varying = 1.0,
    dtype: DTypeLike | None = None,
    seed: Any = None,
    generator: Generator | None = None,
) -> Tensor:
    """Returns normal random numbers.

    Args:
        mean, stddev: mean and standard deviation; numbers, or tensors that broadcast to the shape.

    Raises:
        ArgumentError: if a number is not finite, or if `stddev` is negative.
        ShapeError: if a tensor does not broadcast to the shape.

    See also: `random_truncated_normal`, without far ones; `standard_normal`, of the default stream;
    `random_multivariate_normal`, of vectors.

    Example:
        >>> ops.shape(ops.random_normal((2, 3), seed=0))
        (2, 3)
        >>> ops.greater(ops.random_normal((2, 2), mean=[-1000.0, 1000.0], seed=0), 0.0).tolist()
        [[False, True], [False, True]]
    """
    checks.check_shape_first("normal(shape, mean, stddev)", shape, mean)
    mean_number, stddev_number = checks.as_number("mean", mean), checks.as_number("stddev", stddev, checks.FROM_ZERO)
    float_dtype, generator_or_none = checks.floating_dtype(dtype), generator_of(seed, generator)
    if mean_number is None or stddev_number is None:
        draws = (
            standard_normal(shape, dtype)
            if generator_or_none is None
            else _draw_tensor(generator_or_none, float_dtype, lambda source: source.normal(shape, float_dtype))
        )
        return scale_and_shift(draws, mean=mean, stddev=stddev)
    if generator_or_none is not None:
        return _draw_tensor(
            generator_or_none, float_dtype, lambda source: source.normal(shape, float_dtype, mean_number, stddev_number)
        )
    draws = standard_normal(shape, dtype)
    return draws if mean_number == 0.0 and stddev_number == 1.0 else add(multiply(draws, stddev_number), mean_number)


@op(finite="no")
def random_uniform(
    shape: Shape,
    minval: Varying = 0.0,
    maxval: Varying = 1.0,
    dtype: DTypeLike | None = None,
    seed: Any = None,
    generator: Generator | None = None,
) -> Tensor:
    """Returns uniform random numbers in [minval, maxval).

    Args:
        minval, maxval: numbers, or tensors that broadcast to the shape; where tensors do not give a finite range, the
            result is NaN.

    Raises:
        ArgumentError: if a number is not finite, or if `minval` is larger than `maxval`.
        RangeError: if the dtype cannot hold the bounds.
        ShapeError: if a tensor does not broadcast to the shape.

    See also: `random_randint`, of integers; `standard_uniform`, of the default stream.

    Example:
        >>> ops.shape(ops.random_uniform((2, 3), seed=0))
        (2, 3)
        >>> ops.floor(ops.random_uniform((2, 2), [0.0, 7.0], [1.0, 8.0], seed=0)).tolist()
        [[0.0, 7.0], [0.0, 7.0]]
    """
    checks.check_shape_first("uniform(shape, minval, maxval)", shape, minval)
    low, high = checks.as_number("minval", minval), checks.as_number("maxval", maxval)
    float_dtype, generator_or_none = checks.floating_dtype(dtype), generator_of(seed, generator)
    if low is None or high is None:
        unit_values = (
            standard_uniform(shape, dtype)
            if generator_or_none is None
            else _draw_tensor(generator_or_none, float_dtype, lambda source: source.uniform(shape, float_dtype))
        )
        return _map_to_range(unit_values, minval, maxval)
    if low == 0.0 and high == 1.0:
        if generator_or_none is None:
            return standard_uniform(shape, dtype)
        if float_dtype.bits > 16:  # rounding to half precision can give 1
            return _draw_tensor(generator_or_none, float_dtype, lambda source: source.uniform(shape, float_dtype))
    checks.check_bounds(low, high, float_dtype)
    # Rounding can give `maxval` itself, so limit the result to the next number below it.
    largest_result = max(low, checks.largest_below(high, float_dtype))
    if generator_or_none is not None:

        def draw_within(source: Generator) -> Any:
            uniform_draw = source.uniform(shape, float_dtype)
            # The width of a range may overflow the dtype; half of the width never does.
            half_offset = uniform_draw * (high / 2 - low / 2)
            is_wide = high - low > FloatInfo.of_dtype(float64 if float_dtype is float64 else float32).max
            return (half_offset + low + half_offset if is_wide else uniform_draw * (high - low) + low).clip(
                max=largest_result
            )

        return _draw_tensor(generator_or_none, float_dtype, draw_within)
    unit_values = standard_uniform(shape, dtype)
    if high - low > FloatInfo.of_dtype(float_dtype).max:
        half_steps = multiply(unit_values, high / 2 - low / 2)
        return minimum(add(add(half_steps, low), half_steps), largest_result)
    return minimum(add(multiply(unit_values, high - low), low), largest_result)


@op
def random_randint(
    shape: Shape,
    minval: int | Sequence[Any] | Tensor,
    maxval: int | Sequence[Any] | Tensor,
    dtype: DTypeLike | None = None,
    seed: Any = None,
    generator: Generator | None = None,
) -> Tensor:
    """Returns uniform random integers in [minval, maxval).

    Args:
        minval, maxval: integers, or tensors of integers that broadcast to the shape.
        dtype: an integer dtype for the numbers; None is int64.

    Raises:
        ArgumentError: if the range does not hold an integer.
        RangeError: if the dtype cannot hold the integers of the range.
        DTypeError: if `dtype` is not an integer dtype.
        ArgumentTypeError: if a bound is not an integer.

    See also: `random_uniform`, of floats; `random_choice`, of a tensor.

    Example:
        >>> ops.random_randint((2,), 7, 8).tolist()
        [7, 7]
    """
    checks.check_shape_first("randint(shape, minval, maxval)", shape, minval)
    integer_dtype = int64 if dtype is None else as_dtype(dtype)
    low, high = (
        checks.integer_parameter(name, value if isinstance(value, int) else to_numpy(value), shape)
        for name, value in (("minval", minval), ("maxval", maxval))
    )
    checks.check_between(low, high, integer_dtype)
    return _draw_tensor(
        generator_for(seed, generator), integer_dtype, lambda source: source.integers(shape, low, high, integer_dtype)
    )


@op
def random_permutation(x: Any, axis: int = 0, seed: Any = None, generator: Generator | None = None) -> Tensor:
    """Returns the integers from 0 to x - 1 in random order, or the slices of a tensor `x` along an axis.

    Args:
        x: a number n, for the integers from 0 to n - 1, or a tensor with at least one axis, of any dtype.

    Raises:
        ArgumentError: if `x` is a negative number.
        AxisError: if `axis` is out of range.

    See also: `random_shuffle`, of a tensor alone.

    Example:
        >>> sorted(ops.random_permutation(4).tolist())
        [0, 1, 2, 3]
    """
    integer_count = checks.element_count(x)
    if integer_count is not None:
        return _draw_tensor(generator_for(seed, generator), int64, lambda source: source.permutation(integer_count))
    return random_shuffle(x, axis, seed, generator)


@op
def random_shuffle(x: TensorLike, axis: int = 0, seed: Any = None, generator: Generator | None = None) -> Tensor:
    """Returns `x` with its slices along an axis in random order.

    Args:
        x: a tensor with at least one axis, of any dtype.
        axis: the axis whose slices are put in another order; by default the first.

    Raises:
        AxisError: if `axis` is out of range.

    See also: `random_permutation`, also of a number.
    """
    (shuffled_axis,) = nonnegative_axes(axis, len(x.shape))
    return take(x, generator_for(seed, generator).permutation(x.shape[shuffled_axis]), shuffled_axis)


@op
def random_choice(
    a: Any,
    shape: Shape = (),
    replace: bool = True,
    p: Sequence[float] | Tensor | None = None,
    seed: Any = None,
    generator: Generator | None = None,
) -> Tensor:
    """Returns random integers from 0 to a - 1, or random slices of a tensor `a` along its first axis.

    Args:
        a: a number n, for integers from 0 to n - 1, or a tensor whose slices along the first axis are drawn.
        shape: the shape of the draws; (), the default, draws one.
        replace: whether the same integer or slice may be drawn more than once.
        p: the probability of each integer or slice, with sum 1; by default all are equal.

    Raises:
        ArgumentError: if there are not enough integers or slices to draw from, or if `p` does not hold probabilities.

    See also: `random_categorical`, by logits; `random_permutation`, of all.
    """
    choice_count = checks.element_count(a)
    choices = None
    if choice_count is None:
        choices = convert_to_tensor(a)
        nonnegative_axes(0, len(choices.shape))
        choice_count = choices.shape[0]
    probabilities = (
        None
        if p is None
        else checks.as_array("p", to_numpy(constant("p", p, "the draws are discrete")), choice_count, checks.CHANCE)
    )
    chosen_indices = generator_for(seed, generator).choice(choice_count, shape, replace, probabilities)
    return convert_to_tensor(chosen_indices) if choices is None else take(choices, chosen_indices, 0)


@op(finite="gradient")
def dropout(
    inputs: TensorLike,
    rate: Varying,
    noise_shape: Shape | Sequence[int | None] | None = None,
    seed: Any = None,
    generator: Generator | None = None,
) -> Tensor:
    """Returns `inputs` with each element set to 0 with probability `rate`, and the others divided by `1 - rate`.

    Args:
        inputs: a tensor of any shape; integers become the default float.
        rate: a number from 0 to 1, or a tensor of these that broadcasts to the shape of `inputs`.
        noise_shape: the shape of the random mask, which is broadcast to the shape of `inputs`. Along an axis of length
            1, all elements are dropped or kept together; None stands for the length of `inputs`.

    Raises:
        ArgumentError: if `rate` is a number outside its range.
        ShapeError: if `rate` or `noise_shape` does not broadcast to the shape of `inputs`.

    See also: `nn.Dropout`, the layer; `random_bernoulli`, the mask alone.
    """
    rate_number = checks.as_number("rate", rate)
    if rate_number is not None and not 0.0 <= rate_number <= 1.0:
        raise ArgumentError(f"expected rate from 0 to 1, got {rate}")
    keep_rate = subtract(1.0, parameter("rate", rate, inputs.shape)) if rate_number is None else 1.0 - rate_number
    mask_shape: Any = inputs.shape if noise_shape is None else noise_shape
    if isinstance(mask_shape, (list, tuple)) and None in mask_shape and len(mask_shape) == len(inputs.shape):
        mask_shape = [
            own_length if length is None else length
            for length, own_length in zip(mask_shape, inputs.shape, strict=True)
        ]
    noise = random_uniform(mask_shape, seed=seed, generator=generator)
    if noise_shape is not None:
        checks.check_fits_shape("noise_shape", noise.shape, inputs.shape)
    # At rate 1 every element is dropped; dividing by 1 - rate would give a gradient of NaN.
    divisor = (
        cast(keep_rate, as_inexact(dtype_of(inputs)))
        if rate_number is None
        else 1.0
        if rate_number == 1.0
        else keep_rate
    )
    return where(less(to_device(noise, get_device(inputs)), keep_rate), divide(inputs, divisor), 0.0)


def _draw_tensor(source: Generator, dtype: DType, draw: Callable[[Generator], Any]) -> Tensor:
    """Returns the numbers that `draw` takes from a generator as a tensor."""
    return draw_or_trace(lambda: convert_to_tensor(draw(source), dtype), source)


def generator_for(seed: Any, generator: Generator | None) -> Generator:
    """Returns `generator`, or a generator for `seed`, or the default stream of the host."""
    return generator_of(seed, generator) or HOST.get()


def parameter(name: str, value: Any, shape: Any, dtype: DType | None = None) -> Tensor:
    """Returns a parameter that is not a Python number as a tensor, cast to `dtype` if it is given.

    Raises:
        DTypeError: if the parameter is complex.
        ShapeError: if it does not broadcast to the shape.
    """
    parameter_tensor = convert_to_tensor(value)
    tensor_dtype = dtype_of(parameter_tensor)
    if tensor_dtype.is_complex:
        raise DTypeError(f"{name} is real, not {tensor_dtype.name}")
    checks.check_fits_shape(name, parameter_tensor.shape, shape)
    return parameter_tensor if dtype is None else convert_to_tensor(value, dtype)


def scale_and_shift(values: Tensor, **parameters: Any) -> Tensor:
    """Returns `values` multiplied by the last parameter and, if there are two, shifted by the first."""
    shift_and_scale: list[Any] = []
    for name, value in parameters.items():
        host_number = checks.as_number(name, value)
        if host_number is None:
            tensor = parameter(name, value, values.shape, dtype_of(values))
            values = to_device(values, get_device(tensor))
            shift_and_scale.append(tensor)
        else:
            shift_and_scale.append(host_number)
    *shift, scale = shift_and_scale
    scaled_values = multiply(values, scale)
    return add(scaled_values, shift[0]) if shift else scaled_values


def _map_to_range(values: Tensor, minval: Any, maxval: Any) -> Tensor:
    """Returns numbers in [0, 1) mapped to the range between two bounds; NaN where the bounds are not a finite range."""
    values_dtype = dtype_of(values)
    low, high = (
        parameter(name, bound, values.shape, values_dtype) for name, bound in (("minval", minval), ("maxval", maxval))
    )
    limits = FloatInfo.of_dtype(values_dtype)
    largest_bound = maximum(absolute(low), absolute(high))
    unit_values = to_device(values, get_device(largest_bound))
    # Two shares, because the width of a range may overflow the dtype, and would be rounded before it is shared.
    scaled_values = add(multiply(low, subtract(1.0, unit_values)), multiply(high, unit_values))
    largest_below = subtract(high, maximum(multiply(absolute(high), limits.eps), limits.smallest_normal))
    clipped_values = minimum(maximum(scaled_values, low), maximum(low, largest_below))
    return where(logical_and(less_equal(low, high), less(largest_bound, math.inf)), clipped_values, math.nan)
