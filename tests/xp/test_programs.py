"""Random programs of views, writes, operators and masks: what NumPy computes, also differentiated, mapped, compiled.

A program is a list of steps, each a tuple of numbers, so hypothesis shrinks it. Every function in it is analytic, so
that NumPy's derivative along a direction is the imaginary part after a small step along an imaginary one.
"""

import threading
from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, given, note, settings
from hypothesis import strategies as st

from tests.sampling import PROFILE

SHAPE = (3, 4)
START = np.linspace(-0.9, 1.1, 12).reshape(SHAPE)
DIRECTION = np.cos(np.arange(12.0)).reshape(SHAPE)
Step = tuple[int, int, int, int]
STEPS = st.lists(st.tuples(st.integers(0, 3), *[st.integers(0, 11)] * 3), min_size=1, max_size=8)


def programs(test: Any) -> Any:
    """Runs a test on random programs; the namespace, which a fixture gives, is the same for all of them."""
    return settings(suppress_health_check=[HealthCheck.function_scoped_fixture])(given(steps=STEPS)(test))


def _view(xp: Any, chosen: Any, kind: int, number: int) -> Any:
    if not chosen.ndim:
        return chosen + 1.0
    length = chosen.shape[0]
    start = number % length if length else 0
    match kind:
        case 0 | 1:
            return chosen[start:]
        case 2:
            return chosen[::2]
        case 3:
            return chosen[::-1]
        case 4 if length:
            return chosen[start]
        case 5 if chosen.ndim == 2:
            return chosen.T
        case 6 if chosen.ndim == 2:
            return chosen[:, 1:3]
        case 7:
            return chosen[None]
        case 8:
            return xp.flip(chosen, axis=0) + 0.0  # a view on NumPy alone
        case 9 if length:
            return chosen[-1]
        case 10 if length:
            return xp.take(chosen, xp.asarray([start, 0]), axis=0)
        case _:
            return chosen[...]


def _key(xp: Any, chosen: Any, number: int) -> Any:
    length = chosen.shape[0] if chosen.ndim else 0
    match number % 6:
        case 0 if length:
            return number % length
        case 1 if length:
            return slice(number % length, None)
        case 2 if length:
            return slice(None, None, -1)
        case 3 if chosen.ndim:
            return xp.asarray(np.arange(chosen.size).reshape(chosen.shape) % 3 == 1)
        case 4 if chosen.ndim == 2:
            return slice(None), slice(0, None, 2)
        case _:
            return ...


def _fits(shape: Sequence[int], into: Sequence[int]) -> bool:
    """Returns whether an array of a shape can be written into one of another."""
    return len(shape) <= len(into) and all(a in (1, b) for a, b in zip(shape[::-1], into[::-1], strict=False))


def _smooth(a: Any, b: Any, kind: int) -> Any:
    """Returns a new array; its elements stay small."""
    match kind % 5:
        case 0:
            return a * 0.5 + b
        case 1:
            return a - b * 0.25
        case 2:
            return a * b * 0.25
        case 3:
            return a / (b * b * 0.1 + 2.0)
        case _:
            return -a


def run(steps: Sequence[Step], xp: Any, x: Any) -> Any:
    """Runs a program and returns a weighted sum of the arrays that it made."""
    pool = [x + 0.0, xp.asarray(np.linspace(0.5, 1.5, 4)), xp.ones(SHAPE, dtype=xp.float64)]
    for kind, first, second, number in steps:
        chosen, other = pool[first % len(pool)], pool[second % len(pool)]
        if kind == 0:
            pool.append(_view(xp, chosen, second, number))
        elif kind == 1:
            if x.dtype == getattr(np, "complex128", None) and chosen.dtype != x.dtype:
                continue
            key = _key(xp, chosen, number)
            target = chosen[key].shape
            chosen[key] = other if second % 2 and _fits(other.shape, target) else 0.125 * number
        elif kind == 2:
            if number % 2 and _fits(other.shape, chosen.shape):
                chosen += other
            else:
                chosen *= 0.5
            pool[first % len(pool)] = chosen
        elif _fits(other.shape, chosen.shape) or _fits(chosen.shape, other.shape):
            pool.append(_smooth(chosen, other, number))
    total = xp.sum(pool[0]) * 0.0
    for array in pool:
        weights = np.cos(np.arange(array.size) + 1.0).reshape(array.shape)
        total = total + xp.sum(array * xp.asarray(weights))
    return total


class _Complex:
    """NumPy with complex arrays in the places of constants."""

    float64 = np.complex128

    def __getattr__(self, name: str) -> Any:
        return getattr(np, name)

    def asarray(self, values: Any) -> Any:
        """Returns an array, complex if it is floating."""
        array = np.array(values)
        return array.astype(complex) if array.dtype.kind == "f" else array


def _slope(steps: Sequence[Step], start: np.ndarray) -> float:
    made = run(steps, _Complex(), start + 1e-30j * DIRECTION)
    return float(np.imag(made)) / 1e-30


def _wanted(steps: Sequence[Step], start: np.ndarray) -> float:
    return float(np.real(run(steps, _Complex(), start.astype(complex))))


def _close(made: Any, wanted: Any) -> None:
    assert np.allclose(np.asarray(made), wanted, rtol=1e-9, atol=1e-9), (made, wanted)


@programs
def test_a_program_computes_what_numpy_does(steps: list[Step], xp: Any) -> None:
    start = xp.asarray(START, copy=True)
    _close(run(steps, xp, start), _wanted(steps, START))
    assert start.tolist() == START.tolist()


@programs
def test_a_program_has_its_gradient(steps: list[Step], xp: Any) -> None:
    gradient = xp.grad(lambda x: run(steps, xp, x))(xp.asarray(START))
    note(f"{gradient}")
    _close(np.sum(np.asarray(gradient) * DIRECTION), _slope(steps, START))


@programs
def test_a_program_is_mapped(steps: list[Step], xp: Any) -> None:
    starts = np.stack([START, START * 0.5])
    _close(xp.vmap(lambda x: run(steps, xp, x))(xp.asarray(starts)), [_wanted(steps, each) for each in starts])


@programs
def test_a_program_is_compiled(steps: list[Step], xp: Any, backend: str) -> None:
    if backend != "numpy" and PROFILE == "quick":  # the others compile for a second and more
        pytest.skip("compiled by the profile deep")
    compiled = xp.compile(lambda x: run(steps, xp, x))
    for each in START, START * 0.5:
        _close(compiled(xp.asarray(each)), _wanted(steps, each))


@programs
def test_programs_run_in_threads(steps: list[Step], xp: Any) -> None:
    made: dict[int, Any] = {}
    shared = xp.asarray(START)

    def work(number: int) -> None:
        made[number] = float(run(steps, xp, shared * (1.0 / number)))

    threads = [threading.Thread(target=work, args=(number,)) for number in (1, 2, 4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    _close([made[number] for number in (1, 2, 4)], [_wanted(steps, START / number) for number in (1, 2, 4)])
