"""A curve as a picture in SVG, which notebooks show without matplotlib."""

import math
from collections.abc import Sequence
from html import escape

_WIDTH, _HEIGHT, _MARGIN = 420, 120, 4
_POINTS = 420
"""A curve of more points is drawn by means, one for each pixel."""


def svg_curve(values: Sequence[float], label: str) -> str:
    """Returns a sequence of numbers as a curve in SVG, labelled with the greatest and the smallest number.

    Args:
        values: numbers; those that are not finite are left out.
        label: what the values are.
    """
    values_per_mean = math.ceil(len(values) / _POINTS) or 1
    means = [_mean_or_nan(values[start : start + values_per_mean]) for start in range(0, len(values), values_per_mean)]
    points = [(i, y) for i, y in enumerate(means) if math.isfinite(y)]
    if len(points) < 2:
        return ""
    heights = [y for _, y in points]
    low, high = min(heights), max(heights)
    x_step = (_WIDTH - 2 * _MARGIN) / (len(means) - 1)
    y_scale = (_HEIGHT - 2 * _MARGIN) / ((high - low) or 1.0)
    svg_points = " ".join(
        f"{_MARGIN + i * x_step:.1f},{_HEIGHT - _MARGIN - (y - low) * y_scale:.1f}" for i, y in points
    )
    label_template = '<text x="{x}" y="{y}" font-size="10" text-anchor="end" fill="currentColor">{text}</text>'
    end_labels = [(_MARGIN + 10, high), (_HEIGHT - _MARGIN, low)]
    labels_svg = "".join(label_template.format(x=_WIDTH - _MARGIN, y=y, text=f"{value:.4g}") for y, value in end_labels)
    return (
        f'<svg role="img" aria-label="{escape(label)}" width="{_WIDTH}" height="{_HEIGHT}">'
        f'<polyline points="{svg_points}" fill="none" stroke="#3b7dd8" stroke-width="1.5"/>{labels_svg}</svg>'
    )


def _mean_or_nan(values: Sequence[float]) -> float:
    return math.fsum(values) / len(values) if all(map(math.isfinite, values)) else math.nan
