"""The line search of LBFGS, which finds a step that satisfies the strong Wolfe conditions."""

import math
from collections.abc import Callable
from typing import Any, NamedTuple

SUFFICIENT, CURVATURE = 1e-4, 0.9
"""The constants of the two Wolfe conditions: the sufficient decrease, and the decrease of the slope."""


class Point(NamedTuple):
    """A point on the line: the length of the step, the loss, the gradient, and the slope of the loss along the line."""

    length: float
    loss: float
    gradient: Any
    slope: float


class Line:
    """The loss as a function of the step length along a direction, and the search for a good length.

    Args:
        start: the point from which the line begins, with length 0.
        evaluate: the loss, the gradient and the slope after a step of a given length.
        size: the largest absolute element of the direction.
        tolerance: the change of a parameter below which the search ends.
        limit: how often the loss may be evaluated after the first time.
    """

    def __init__(
        self,
        start: Point,
        evaluate: Callable[[float], tuple[float, Any, float]],
        size: float,
        tolerance: float,
        limit: int,
    ) -> None:
        self.start, self._evaluate, self._size, self._tolerance, self._limit = start, evaluate, size, tolerance, limit
        self.evaluations = 0

    def strong_wolfe_point(self, length: float) -> Point:
        """Returns a point that satisfies the strong Wolfe conditions, or the best one that was found.

        Args:
            length: the first length to try.

        Source: `torch.optim.LBFGS`; Nocedal and Wright, "Numerical Optimization", 2006, algorithms 3.5 and 3.6, with
        the cubic interpolation of minFunc.
        """
        low_point, high_point = self._bracket(length)
        return low_point if high_point is None else self._zoom(low_point, high_point)

    def _point_at(self, length: float) -> Point:
        self.evaluations += 1
        return Point(length, *self._evaluate(length))

    def _decreases_enough(self, point: Point) -> bool:
        """Returns whether the loss at a point satisfies the first Wolfe condition, sufficient decrease."""
        return not point.loss > self.start.loss + SUFFICIENT * point.length * self.start.slope

    def _is_flat_enough(self, point: Point) -> bool:
        """Returns whether the slope at a point satisfies the second strong Wolfe condition."""
        return abs(point.slope) <= -CURVATURE * self.start.slope

    def _evaluations_left(self) -> int:
        return self._limit + 1 - self.evaluations

    def _bracket(self, length: float) -> tuple[Point, Point | None]:
        """Returns two points around a point that satisfies the Wolfe conditions, or that point itself and None."""
        previous_point, point = self.start, self._point_at(length)
        while self._evaluations_left() > 0:
            if not self._decreases_enough(point) or (self.evaluations > 2 and point.loss >= previous_point.loss):
                return previous_point, point
            if self._is_flat_enough(point):
                return point, None
            if point.slope >= 0:
                return previous_point, point
            least_length, most_length = point.length + 0.01 * (point.length - previous_point.length), point.length * 10
            previous_point, point = (
                point,
                self._point_at(_cubic_minimum(previous_point, point, least_length, most_length)),
            )
        return self.start, point

    def _zoom(self, first: Point, second: Point) -> Point:
        """Narrows the interval between two points, and returns the best point found."""
        end_points, is_stuck = [first, second], False
        low_index = 0 if first.loss <= second.loss else 1
        while (
            self._evaluations_left() > 0
            and abs(end_points[1].length - end_points[0].length) * self._size >= self._tolerance
        ):
            least_length, most_length = sorted(end_point.length for end_point in end_points)
            length, margin = (
                _cubic_minimum(end_points[0], end_points[1], least_length, most_length),
                0.1 * (most_length - least_length),
            )
            is_near = min(most_length - length, length - least_length) < margin
            if is_near and (is_stuck or length >= most_length or length <= least_length):
                length, is_near = (
                    (most_length - margin if most_length - length < length - least_length else least_length + margin),
                    False,
                )
            is_stuck = is_near
            point = self._point_at(length)
            if not self._decreases_enough(point) or point.loss >= end_points[low_index].loss:
                end_points[1 - low_index] = point
                low_index = 0 if end_points[0].loss <= end_points[1].loss else 1
                continue
            is_flat = self._is_flat_enough(point)
            if not is_flat and point.slope * (end_points[1 - low_index].length - end_points[low_index].length) >= 0:
                end_points[1 - low_index] = end_points[low_index]
            end_points[low_index] = point
            if is_flat:
                break
        return end_points[low_index]


def _cubic_minimum(x: Point, y: Point, least_length: float, most_length: float) -> float:
    """Returns the minimum of the cubic polynomial through two points with their slopes, clipped to an interval."""
    left_point, right_point = (x, y) if x.length <= y.length else (y, x)
    slope_term = x.slope + y.slope - 3 * _safe_ratio(x.loss - y.loss, x.length - y.length)
    radicand = slope_term * slope_term - x.slope * y.slope
    cubic_share = math.nan
    if radicand >= 0:
        square_root = math.sqrt(radicand)
        cubic_share = _safe_ratio(
            right_point.slope + square_root - slope_term, right_point.slope - left_point.slope + 2 * square_root
        )
    if math.isnan(cubic_share):
        return (least_length + most_length) / 2
    return min(
        max(right_point.length - (right_point.length - left_point.length) * cubic_share, least_length), most_length
    )


def _safe_ratio(x: float, y: float) -> float:
    """Returns x / y, which is infinite or NaN if y is 0."""
    return x / y if y else x * math.inf
