"""Patterns of `rearrange`, such as "b (h w) c -> b h w c", as a reshape, a transpose and another reshape."""

import math
import re
from collections.abc import Mapping, Sequence

from emberharmony.core.errors import ArgumentError, ShapeError
from emberharmony.core.named_tuple import Record

_ELLIPSIS = "..."
_JOINED = ""  # marks an ellipsis in parentheses, which becomes one axis and not several
_SIDE = r"(\s|\([^()]*\)|[A-Za-z_]\w*|1\b|\.\.\.)*"
_ITEM = r"\([^()]*\)|[^\s()]+"
_NAMES = r"\s*((?:[A-Za-z_]\w*|1|\.\.\.)(\s+|$))*"


class Rearrangement(Record):
    """The steps of a pattern: the shape with an axis for each name, the order of these axes, and the final shape."""

    split_shape: tuple[int, ...]
    order: tuple[int, ...]
    joined_shape: tuple[int, ...]


# A dict instead of functools.lru_cache: torch.compile (torch 2.13) warns about an lru_cache, and ignores it.
_PLANS: dict[tuple[str, tuple[int, ...], tuple[tuple[str, int], ...]], Rearrangement] = {}
_MANY = 1024


def rearrangement(pattern: str, shape: Sequence[int], lengths: Mapping[str, int]) -> Rearrangement:
    """Returns the reshapes and the transpose of a `rearrange` pattern for a tensor of this shape, from a cache.

    Args:
        pattern: as `rearrange` takes it.
        shape: of the tensor.
        lengths: the given lengths of named axes.

    Raises:
        ArgumentError: if the pattern is malformed, its sides name different axes, or it does not determine a length.
        ShapeError: if the shape does not fit the pattern.
    """
    key = pattern, tuple(shape), tuple(lengths.items())
    if key not in _PLANS:
        if len(_PLANS) >= _MANY:
            _PLANS.clear()
        _PLANS[key] = _plan_rearrangement(pattern, shape, lengths)
    return _PLANS[key]


def _plan_rearrangement(pattern: str, shape: Sequence[int], lengths: Mapping[str, int]) -> Rearrangement:
    sides = pattern.split("->")
    if len(sides) != 2:
        raise ArgumentError(f"pattern {pattern!r} must have one '->'")
    source_groups, target_groups = (_axis_groups(side, pattern) for side in sides)
    if any(_JOINED in group for group in source_groups):
        raise ArgumentError(f"pattern {pattern!r} must have its left ellipsis outside of parentheses")
    ellipsis_group = [_ELLIPSIS]
    ellipsis_count = len(shape) - len(source_groups) + 1 if ellipsis_group in source_groups else 0
    ellipsis_names = [f".{i}" for i in range(ellipsis_count)]
    source_groups = _expand_ellipses(source_groups, ellipsis_names)
    if ellipsis_count < 0 or len(source_groups) != len(shape):
        raise ShapeError(f"pattern {pattern!r} does not name the axes of shape {tuple(shape)}")
    size_by_name = _axis_sizes(source_groups, shape, lengths, pattern)
    source_names = [name for group in source_groups for name in group]
    target_groups = _expand_ellipses(target_groups, ellipsis_names)
    target_names = [name for group in target_groups for name in group]
    if len(set(source_names)) != len(source_names) or sorted(source_names) != sorted(target_names):
        raise ArgumentError(f"both sides of pattern {pattern!r} must name the same axes, each once")
    if set(lengths) - set(source_names):
        raise ArgumentError(f"pattern {pattern!r} has no axis {', '.join(sorted(set(lengths) - set(source_names)))}")
    joined_shape = tuple([math.prod([size_by_name[name] for name in group]) for group in target_groups])
    return Rearrangement(
        tuple([size_by_name[n] for n in source_names]),
        tuple([source_names.index(n) for n in target_names]),
        joined_shape,
    )


def _axis_groups(side: str, pattern: str) -> list[list[str]]:
    """Returns, for each axis of one side of a pattern, the list of its names, which is empty for an axis of length 1.

    Raises:
        ArgumentError: if the side is malformed.
    """
    if re.fullmatch(_SIDE, side) is None:
        raise ArgumentError(f"pattern {pattern!r} is malformed at {side.strip()!r}")
    groups = []
    for item in re.findall(_ITEM, side):
        names_text = item.strip("()")
        if re.fullmatch(_NAMES, names_text) is None:
            raise ArgumentError(f"pattern {pattern!r} is malformed at {item!r}")
        names = [name for name in names_text.split() if name != "1"]
        groups.append([*names, _JOINED] if item != names_text and _ELLIPSIS in names else names)
    if sum(group.count(_ELLIPSIS) for group in groups) > 1:
        raise ArgumentError(f"pattern {pattern!r} has more than one ellipsis on a side")
    return groups


def _expand_ellipses(groups: list[list[str]], hidden_names: list[str]) -> list[list[str]]:
    """Returns groups of names, in which each ellipsis is replaced by the axes that it stands for."""
    expanded_groups: list[list[str]] = []
    for group in groups:
        if group == [_ELLIPSIS]:
            expanded_groups += [[name] for name in hidden_names]
        else:
            expanded_groups.append(
                [n for name in group if name != _JOINED for n in (hidden_names if name == _ELLIPSIS else [name])]
            )
    return expanded_groups


def _axis_sizes(
    groups: list[list[str]], shape: Sequence[int], lengths: Mapping[str, int], pattern: str
) -> dict[str, int]:
    """Returns the length of each named axis; in each group, one length may be inferred.

    Raises:
        ArgumentError: if a length cannot be inferred.
        ShapeError: if the lengths do not fit the shape.
    """
    size_by_name: dict[str, int] = dict(lengths)
    for group, length in zip(groups, shape, strict=True):
        unknown_names = [name for name in group if name not in lengths]
        known_size = math.prod([lengths[name] for name in group if name in lengths])
        if len(unknown_names) > 1 or (unknown_names and known_size == 0):
            raise ArgumentError(
                f"pattern {pattern!r} leaves the lengths of {', '.join(unknown_names)} open: give all but one"
            )
        if unknown_names and length % known_size == 0:
            size_by_name[unknown_names[0]] = length // known_size
        elif unknown_names or known_size != length:
            raise ShapeError(f"an axis of length {length} does not split into ({' '.join(group)}) with {dict(lengths)}")
    return size_by_name


def is_channels_last(data_format: str) -> bool:
    """Returns whether the channels are on the last axis.

    Raises:
        ArgumentError: if the format is unknown.
    """
    if data_format not in ("channels_last", "channels_first"):
        raise ArgumentError(f"data_format is 'channels_last' or 'channels_first', not {data_format!r}")
    return data_format == "channels_last"
