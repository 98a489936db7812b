"""Schedules of the learning rate: functions from the number of steps made before to the rate of the next step.

They are plain functions of a number, so any other function will do as well; they can be pickled, and they take a traced
tensor as number too. Names, defaults and formulas are those of `torch.optim.lr_scheduler` where it has the schedule.
"""

import math
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, TypeAlias

from emberharmony.core.errors import ArgumentError, ArgumentTypeError, brief
from emberharmony.core.names.lazy import public_getattr_and_dir
from emberharmony.optim import numbers
from emberharmony.optim.formula import Formula, keep_call_text
from emberharmony.optim.numbers import Number

Schedule: TypeAlias = Callable[[Number], Number]
"""A function from the number of steps made before to the learning rate of the next step."""

Rate: TypeAlias = float | Schedule
"""A learning rate: a number, or a schedule."""


def _checked_rate(lr: Any) -> Any:
    """Returns the first argument of a schedule after a check that it is a learning rate, and no text or optimizer.

    Raises:
        ArgumentTypeError: if it is not a number.
    """
    if isinstance(lr, (str, type(None))) or hasattr(lr, "param_groups"):
        raise ArgumentTypeError(
            f"a schedule begins with a learning rate, not {brief(lr)}, and is given to the optimizer: "
            f"optim.SGD(model, lr=optim.schedules.cosine(0.1, 1000))"
        )
    return lr


@keep_call_text
def constant(lr: float) -> Schedule:
    """Returns the schedule that stays at `lr`.

    Args:
        lr: the learning rate.
    """
    return Formula(_constant_rate, _checked_rate(lr))


def _constant_rate(lr: float, count: Number) -> Number:
    return lr


@keep_call_text
def scaled(lr: float, factor: Schedule) -> Schedule:
    """Returns the schedule `lr * factor(count)`, as torch's `LambdaLR`.

    Args:
        lr: the learning rate that is multiplied.
        factor: a function of the number of steps so far, which returns the factor.

    Example:
        >>> from emberharmony import optim
        >>> optim.schedules.scaled(0.5, lambda count: 1 / (1 + count))(4)
        0.1
    """
    return Formula(_scaled_rate, _checked_rate(lr), factor)


def _scaled_rate(lr: float, factor: Schedule, count: Number) -> Number:
    return numbers.multiply(lr, factor(count))


@keep_call_text
def step(lr: float, step_size: int, gamma: float = 0.1) -> Schedule:
    """Returns the schedule that multiplies the rate by `gamma` after each `step_size` steps.

    Args:
        lr: the learning rate of the first steps.
        step_size: after how many steps the rate changes.
        gamma: the factor by which each change multiplies the learning rate.
    """
    return Formula(_step_rate, _checked_rate(lr), _positive_option("step", "step_size", step_size), gamma)


def _step_rate(lr: float, step_size: int, gamma: float, count: Number) -> Number:
    return numbers.multiply(lr, numbers.power(gamma, numbers.floor(numbers.divide(count, step_size))))


@keep_call_text
def multistep(lr: float, milestones: Sequence[int], gamma: float = 0.1) -> Schedule:
    """Returns the schedule that multiplies the rate by `gamma` at each milestone.

    Args:
        lr: the learning rate of the first steps.
        milestones: the numbers of steps after which the rate changes.
        gamma: the factor by which each change multiplies the learning rate.
    """
    return piecewise(milestones, [lr * gamma**i for i in range(len(milestones) + 1)])


@keep_call_text
def piecewise(boundaries: Sequence[int], values: Sequence[float]) -> Schedule:
    """Returns the schedule that is `values[i]` from `boundaries[i - 1]` on; there is one more value.

    Args:
        boundaries: the numbers of steps from which on the next value counts, ascending.
        values: the learning rates, one more than boundaries.

    Raises:
        ArgumentError: if the boundaries are not sorted, or the number of values is wrong.

    Example:
        >>> from emberharmony import optim
        >>> rate = optim.schedules.piecewise([2, 3], [0.3, 0.2, 0.1])
        >>> [rate(count) for count in range(4)]
        [0.3, 0.3, 0.2, 0.1]
    """
    return join([constant(value) for value in values], boundaries, "piecewise")


@keep_call_text
def join(schedules: Sequence[Schedule], boundaries: Sequence[int], name: str = "join") -> Schedule:
    """Returns the schedule that follows one schedule after the other, each from its own beginning.

    Args:
        schedules: functions from the number of steps to a learning rate, one more than boundaries.
        boundaries: the count at which each schedule but the first begins.
        name: the name of the schedule in messages.

    Raises:
        ArgumentError: if the boundaries are not sorted, or the number of schedules is wrong.
    """
    if list(boundaries) != sorted(boundaries):
        raise ArgumentError(f"{name}(): the boundaries are {brief(boundaries)}, expected them in increasing order")
    if len(schedules) != len(boundaries) + 1:
        raise ArgumentError(
            f"{name}(): {len(schedules)} parts were given for {len(boundaries)} boundaries, expected one more"
        )
    return Formula(_join_rate, tuple(schedules), tuple(boundaries))


def _join_rate(schedules: Sequence[Schedule], boundaries: Sequence[int], count: Number) -> Number:
    start_counts = (0, *boundaries)
    if numbers.is_python(count):
        i = sum(start_count <= count for start_count in boundaries)
        return schedules[i](count - start_counts[i])
    rate = schedules[0](count)
    for schedule, start_count in zip(schedules[1:], boundaries, strict=True):
        later_rate = schedule(numbers.subtract(count, start_count))
        rate = numbers.where(numbers.less(count, start_count), rate, later_rate)
    return rate


@keep_call_text
def exponential(lr: float, gamma: float) -> Schedule:
    """Returns the schedule `lr * gamma ** count`.

    Args:
        lr: the learning rate of the first step.
        gamma: the factor of each step, such as 0.99.
    """
    return Formula(_exponential_rate, _checked_rate(lr), gamma)


def _exponential_rate(lr: float, gamma: float, count: Number) -> Number:
    return numbers.multiply(lr, numbers.power(gamma, count))


@keep_call_text
def linear(lr: float, start_factor: float = 1 / 3, end_factor: float = 1.0, total_iters: int = 5) -> Schedule:
    """Returns the schedule that goes on a line from `lr * start_factor` to `lr * end_factor`, and stays there.

    Args:
        lr: the learning rate that the factors multiply.
        start_factor: the factor of the first step.
        end_factor: the factor from step `total_iters` on.
        total_iters: after how many steps the end is reached.
    """
    return Formula(
        _linear_rate,
        _checked_rate(lr),
        start_factor,
        end_factor,
        _positive_option("linear", "total_iters", total_iters),
    )


def _linear_rate(lr: float, start: float, end: float, total: int, count: Number) -> Number:
    elapsed_share = numbers.divide(numbers.minimum(count, total), total)
    return numbers.multiply(lr, numbers.add(start, numbers.multiply(end - start, elapsed_share)))


@keep_call_text
def cosine(lr: float, T_max: int, eta_min: float = 0.0) -> Schedule:
    """Returns the schedule that goes from `lr` to `eta_min` in `T_max` steps on half a wave of a cosine.

    As in torch the wave goes on: after `2 * T_max` steps the rate is `lr` again. `join` ends it.

    Args:
        lr: the learning rate of the first step.
        T_max: after how many steps the least rate is reached.
        eta_min: the least learning rate.

    Source: Loshchilov and Hutter, "SGDR: Stochastic Gradient Descent with Warm Restarts", 2017.
    """
    return Formula(_cosine_rate, _checked_rate(lr), _positive_option("cosine", "T_max", T_max), eta_min)


def _cosine_rate(lr: float, half: int, lowest_rate: float, count: Number) -> Number:
    return _half_cosine(lr, lowest_rate, numbers.divide(count, half))


def _half_cosine(start: float, end: float, share: Number) -> Number:
    """Returns the interpolation from `start` to `end` along half a cosine wave, at a `share` from 0 to 1."""
    height = numbers.add(1.0, numbers.cos(numbers.multiply(math.pi, share)))
    return numbers.add(end, numbers.multiply((start - end) / 2, height))


@keep_call_text
def cosine_restarts(lr: float, T_0: int, T_mult: int = 1, eta_min: float = 0.0) -> Schedule:
    """Returns the schedule that repeats half a wave from `lr` to `eta_min`, first in `T_0` steps.

    Args:
        lr: the rate at each restart.
        T_0: the number of steps to the first restart.
        T_mult: how many times longer each wave is than that before.
        eta_min: the rate that each wave approaches.

    Source: Loshchilov and Hutter, "SGDR: Stochastic Gradient Descent with Warm Restarts", 2017.
    """
    _positive_option("cosine_restarts", "T_0", T_0)
    return Formula(
        _cosine_restarts_rate, _checked_rate(lr), T_0, _positive_option("cosine_restarts", "T_mult", T_mult), eta_min
    )


def _cosine_restarts_rate(lr: float, first: int, times: int, lowest_rate: float, count: Number) -> Number:
    waves_done = numbers.divide(count, first)
    if times == 1:
        return _half_cosine(lr, lowest_rate, numbers.subtract(waves_done, numbers.floor(waves_done)))
    # The small summand keeps rounding from making the logarithm of an exact power less than its exponent.
    exponent = numbers.divide(numbers.log(numbers.add(numbers.multiply(waves_done, times - 1), 1.0)), math.log(times))
    wave_scale = numbers.power(times, numbers.floor(numbers.add(exponent, 1e-6)))
    steps_before = numbers.divide(numbers.subtract(wave_scale, 1.0), times - 1)
    return _half_cosine(lr, lowest_rate, numbers.divide(numbers.subtract(waves_done, steps_before), wave_scale))


@keep_call_text
def polynomial(lr: float, total_iters: int = 5, power: float = 1.0) -> Schedule:
    """Returns the schedule `lr * (1 - count / total_iters) ** power`, which stays 0 afterwards.

    Args:
        lr: the learning rate of the first step.
        total_iters: after how many steps the rate is 0.
        power: the exponent; 1 is a line, and a larger one falls faster at first.
    """
    return Formula(
        _polynomial_rate, _checked_rate(lr), _positive_option("polynomial", "total_iters", total_iters), power
    )


def _polynomial_rate(lr: float, total: int, exponent: float, count: Number) -> Number:
    remaining_share = numbers.divide(numbers.subtract(total, numbers.minimum(count, total)), total)
    return numbers.multiply(lr, numbers.power(remaining_share, exponent))


@keep_call_text
def warmup(after: Rate, steps: int, start_factor: float = 0.0) -> Schedule:
    """Returns the schedule that rises on a line to the beginning of `after`, then follows it from its beginning.

    Args:
        after: a learning rate or a schedule.
        steps: the number of steps to it.
        start_factor: the first rate, as a factor of the rate with which `after` begins.

    Example:
        >>> from emberharmony import optim
        >>> rate = optim.schedules.warmup(optim.schedules.cosine(0.1, T_max=100), steps=10)
        >>> rate(0), rate(5), rate(10), round(rate(60), 6)
        (0.0, 0.05, 0.1, 0.05)
    """
    schedule_after = after if callable(after) else constant(after)
    rising_schedule = linear(schedule_after(0), start_factor, 1.0, _positive_option("warmup", "steps", steps))
    return join([rising_schedule, schedule_after], [steps])


@keep_call_text
def inverse_sqrt(lr: float, warmup_steps: int) -> Schedule:
    """Returns the schedule that rises on a line to `lr` at step `warmup_steps`, then falls as `1 / sqrt(step)`.

    Steps are counted from 1 here.

    Args:
        lr: the largest learning rate, that of step `warmup_steps`.
        warmup_steps: for how many steps the rate rises.

    Source: Vaswani et al., "Attention Is All You Need", 2017, with `lr` at the peak.
    """
    return Formula(
        _inverse_sqrt_rate, _checked_rate(lr), _positive_option("inverse_sqrt", "warmup_steps", warmup_steps)
    )


def _inverse_sqrt_rate(lr: float, peak: int, count: Number) -> Number:
    step_number = numbers.add(count, 1)
    return numbers.multiply(
        lr, numbers.minimum(numbers.divide(step_number, peak), numbers.sqrt(numbers.divide(peak, step_number)))
    )


@keep_call_text
def wsd(lr: float, warmup_steps: int, stable_steps: int, decay_steps: int, eta_min: float = 0.0) -> Schedule:
    """Returns the schedule of three phases: a rise on a line to `lr`, a constant rate, a fall on a line to `eta_min`.

    Args:
        lr: the learning rate of the middle phase.
        warmup_steps: for how many steps the rate rises from 0.
        stable_steps: for how many steps the rate is `lr`.
        decay_steps: for how many steps the rate falls.
        eta_min: the learning rate at the end, which stays.

    Source: Hu et al., "MiniCPM", 2024 (warmup, stable, decay).
    """
    _positive_option("wsd", "lr", lr)
    rising_schedule = linear(lr, 0.0, 1.0, _positive_option("wsd", "warmup_steps", warmup_steps))
    falling_schedule = linear(lr, 1.0, eta_min / lr, _positive_option("wsd", "decay_steps", decay_steps))
    _positive_option("wsd", "stable_steps + 1", stable_steps + 1)
    return join([rising_schedule, constant(lr), falling_schedule], [warmup_steps, warmup_steps + stable_steps])


@keep_call_text
def one_cycle(
    max_lr: float,
    total_steps: int,
    pct_start: float = 0.3,
    anneal_strategy: str = "cos",
    div_factor: float = 25.0,
    final_div_factor: float = 1e4,
    three_phase: bool = False,
) -> Schedule:
    """Returns the schedule that rises from `max_lr / div_factor` to `max_lr`, then falls far below the first rate.

    Unlike torch's, it does not change the momentum, and after `total_steps` it stays at the last rate.

    Args:
        max_lr: the highest rate.
        total_steps: the number of steps of the whole cycle.
        pct_start: the share of the steps in which the rate rises.
        anneal_strategy: the form of the rise and the fall: "cos", half a wave, or "linear".
        div_factor: `max_lr` divided by the first rate.
        final_div_factor: the first rate divided by the last one.
        three_phase: whether the rate falls to the first rate in as many steps as it rose, then to the last rate.

    Raises:
        ArgumentError: if an argument is out of range.

    Source: Smith and Topin, "Super-Convergence", 2018.
    """
    _positive_option("one_cycle", "total_steps - 1", total_steps - 1)
    if not 0 <= pct_start <= 1:
        raise ArgumentError(f"one_cycle(): pct_start is {pct_start}, expected a number in [0, 1]")
    if anneal_strategy not in ("cos", "linear"):
        raise ArgumentError(f"one_cycle(): anneal_strategy is {anneal_strategy!r}, expected 'cos' or 'linear'")
    first_rate, last_rate, last_step = max_lr / div_factor, max_lr / div_factor / final_div_factor, total_steps - 1
    peak_step = pct_start * total_steps - 1
    phases = [(peak_step, first_rate, max_lr), (last_step, max_lr, last_rate)]
    if three_phase:
        phases[1:] = [(2 * pct_start * total_steps - 2, max_lr, first_rate), (last_step, first_rate, last_rate)]
    return Formula(_one_cycle_rate, tuple(phases), anneal_strategy)


def _one_cycle_rate(phases: Sequence[tuple[float, float, float]], anneal_strategy: str, count: Number) -> Number:
    start_steps = (0.0, *(end_step for end_step, _, _ in phases[:-1]))
    step = numbers.minimum(count, phases[-1][0])
    rate: Number = None
    for start_step, (end_step, low, high) in reversed(list(zip(start_steps, phases, strict=True))):
        if end_step <= start_step:  # the phase has no step
            continue
        elapsed_share = numbers.divide(numbers.subtract(step, start_step), end_step - start_step)
        if anneal_strategy == "cos":
            phase_rate = _half_cosine(low, high, elapsed_share)
        else:
            phase_rate = numbers.add(low, numbers.multiply(high - low, elapsed_share))
        rate = phase_rate if rate is None else numbers.where(numbers.less(end_step, step), rate, phase_rate)
    return rate


@keep_call_text
def cyclic(
    base_lr: float,
    max_lr: float,
    step_size_up: int = 2000,
    step_size_down: int | None = None,
    mode: str = "triangular",
    gamma: float = 1.0,
) -> Schedule:
    """Returns the schedule that rises on a line from `base_lr` to `max_lr` and falls back, again and again.

    Unlike torch's, it does not change the momentum.

    Args:
        base_lr: the lowest rate.
        max_lr: the highest rate of the first cycle.
        step_size_up: the number of steps of a rise.
        step_size_down: the number of steps of a fall; by default that of a rise.
        mode: "triangular"; "triangular2", which halves the height with each cycle; or "exp_range", which multiplies the
            height by `gamma ** count`.
        gamma: the base of "exp_range".

    Raises:
        ArgumentError: if an argument is out of range.

    Source: Smith, "Cyclical Learning Rates for Training Neural Networks", 2017.
    """
    if mode not in ("triangular", "triangular2", "exp_range"):
        raise ArgumentError(f"cyclic(): mode is {mode!r}, expected 'triangular', 'triangular2' or 'exp_range'")
    steps_up = _positive_option("cyclic", "step_size_up", step_size_up)
    steps_down = steps_up if step_size_down is None else _positive_option("cyclic", "step_size_down", step_size_down)
    return Formula(_cyclic_rate, base_lr, max_lr, steps_up, steps_down, mode, gamma)


def _cyclic_rate(
    low: float, high: float, steps_up: float, steps_down: float, mode: str, gamma: float, count: Number
) -> Number:
    cycles_done = numbers.divide(count, steps_up + steps_down)
    cycle_index = numbers.floor(cycles_done)
    cycle_share = numbers.subtract(cycles_done, cycle_index)
    rising_share = numbers.divide(cycle_share, steps_up / (steps_up + steps_down))
    falling_share = numbers.divide(numbers.subtract(1.0, cycle_share), steps_down / (steps_up + steps_down))
    height = numbers.multiply(high - low, numbers.minimum(rising_share, falling_share))
    if mode == "triangular2":
        height = numbers.multiply(height, numbers.power(0.5, cycle_index))
    elif mode == "exp_range":
        height = numbers.multiply(height, numbers.power(gamma, count))
    return numbers.add(low, height)


def _positive_option(schedule: str, name: str, value: Any) -> Any:
    """Returns the value of an option of a schedule after a check that it is positive.

    Raises:
        ArgumentError: if it is not.
    """
    if not value > 0:
        raise ArgumentError(f"{schedule}(): {name} is {value}, expected a positive number")
    return value


if not TYPE_CHECKING:
    __getattr__, __dir__ = public_getattr_and_dir(__name__)
