"""Batching rules that many ops share: along an axis, over axes, on the last axes."""

import math
from collections.abc import Callable
from typing import Any

from emberharmony.core.axes import nonnegative_axes
from emberharmony.transforms.batch_tape import Mapped, Rows, has_rows

T = Any
Rule = Callable[..., Any]
RULES: dict[str, Rule] = {}
"""The rules that `batches` gave to ops, by op."""


def batches(*ops: str) -> Callable[[Rule], Rule]:
    """Returns a decorator of the batching rule of ops."""

    def register(rule: Rule) -> Rule:
        RULES.update(dict.fromkeys(ops, rule))
        return rule

    return register


def add_unit_axis(m: Mapped, x: Any, axis: int) -> Any:
    """Returns a tensor, or rows, with one more axis of length 1, counted from the end."""
    return Rows(m.bound.expand_dims(x.whole, axis)) if x.__class__ is Rows else m.bound.expand_dims(x, axis)


def flatten_slices(m: Mapped, x: Rows) -> T:
    """Returns the elements of each slice as a vector."""
    return m.bound.reshape(x.whole, (m.size, math.prod(x.shape)))


def axes_of_whole(axis: Any, rank: int) -> Any:
    """Returns axes of a slice as those of the whole tensor."""
    if axis.__class__ is int and -rank <= axis < rank:
        return axis % rank + 1
    whole_axes = tuple(i + 1 for i in nonnegative_axes(axis, rank))
    return whole_axes if isinstance(axis, (tuple, list)) else whole_axes[0]


def call_along_axis(m: Mapped, x: Any, *options: Any) -> T:
    """Returns the result, for all slices, of an op that works along its argument `axis`; None means all elements."""
    option_index = m.parameter_index("axis") - 1
    axis = options[option_index]
    if x.__class__ is not Rows or (axis is not None and not x.shape) or any(map(has_rows, options)):
        return NotImplemented
    new_options = list(options)
    new_options[option_index] = 1 if axis is None else axes_of_whole(axis, len(x.shape))
    return m(flatten_slices(m, x) if axis is None else x.whole, *new_options)


def reduce_over_axes(m: Mapped, x: Any, axis: Any, keepdims: Any = False, *options: Any) -> T:
    """Returns the result, for all slices, of a reduction over its argument `axis`; None means all axes."""
    if x.__class__ is not Rows or Rows in map(type, options):
        return NotImplemented
    if axis is not None and not x.shape:
        return NotImplemented
    if axis is not None:
        return m(x.whole, axes_of_whole(axis, len(x.shape)), keepdims, *options)
    reduced_rows = m(flatten_slices(m, x), 1, False, *options)
    return m.bound.reshape(reduced_rows, (m.size, *(1,) * len(x.shape))) if keepdims else reduced_rows


def rule_on_last_axes(count: int) -> Rule:
    """Returns the rule of an op on the last axes of its first argument, which treats the axes before them alike."""

    def rule(m: Mapped, x: Any, *options: Any) -> T:
        if x.__class__ is not Rows or len(x.shape) < count or any(map(has_rows, options)):
            return NotImplemented
        return m(x.whole, *options)

    return rule
