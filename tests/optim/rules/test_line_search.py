"""The line search of LBFGS, on functions whose minimum is known."""

import math
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from emberharmony.optim.rules.line_search import CURVATURE, SUFFICIENT, Line, Point


def line(
    loss: Callable[[float], float], slope: Callable[[float], float], tolerance: float = 1e-9, size: float = 1.0
) -> Line:
    def evaluate(length: float) -> tuple[float, Any, float]:
        return loss(length), None, slope(length)

    return Line(Point(0.0, *evaluate(0.0)), evaluate, size, tolerance, 25)


@pytest.mark.parametrize("length", [1e-3, 0.1, 0.9, 3.0, 40.0])
def test_the_step_satisfies_the_strong_wolfe_conditions(length: float) -> None:
    found = (searched := line(lambda x: (x - 2) ** 4 - 3, lambda x: 4 * (x - 2) ** 3)).strong_wolfe_point(length)
    assert found.loss <= searched.start.loss + SUFFICIENT * found.length * searched.start.slope
    assert abs(found.slope) <= -CURVATURE * searched.start.slope


def test_the_search_ends_where_a_step_changes_no_parameter_by_the_tolerance() -> None:
    def evaluations(tolerance: float, size: float = 1.0) -> int:
        searched = line(lambda x: max(1 - x, 50 * (x - 1)), lambda x: -1.0 if x < 1 else 50.0, tolerance, size)
        searched.strong_wolfe_point(1.9)
        return searched.evaluations

    # The slope is nowhere flat, so only the tolerance and the limit end the search.
    assert evaluations(10.0) == 1
    assert 1 < evaluations(0.5) == evaluations(0.005, 0.01) < evaluations(0.0) == 26


@pytest.mark.parametrize("limit", [3, 5, 25])
def test_the_point_is_the_lowest_of_those_that_lower_the_loss_enough(limit: int) -> None:
    searches = 0
    for seed in range(60):
        height, rate, phase = np.random.default_rng(seed).uniform([0.1, 1.0, 0.0], [1.0, 6.0, 6.28])
        seen: list[tuple[float, float]] = []

        def evaluate(x: float, a: float = height, b: float = rate, c: float = phase) -> tuple[float, Any, float]:
            loss = 0.1 * (x - 4) ** 2 + a * math.sin(b * x + c)
            seen.append((x, loss))  # noqa: B023
            return loss, None, 0.2 * (x - 4) + a * b * math.cos(b * x + c)

        start = Point(0.0, *evaluate(0.0))
        for length in (0.1, 1.0, 5.0, 9.0) if start.slope < 0 else ():
            del seen[1:]
            found = Line(start, evaluate, 1.0, 1e-9, limit).strong_wolfe_point(length)
            assert found.loss == min(y for x, y in seen if y <= start.loss + SUFFICIENT * x * start.slope)
            searches += 1
    assert searches > 100
