"""The registry of gradient rules; `emberharmony.rules` fills it when the first tape is made."""

from typing import Any

RULES: dict[str, Any] = {}
"""The rule of each op: one function, or a tuple with one function or None for each argument."""

SLOPES: set[Any] = set()
"""The functions of rules that a backend may compute together with the op, by `Backend.value_and_slope`."""

BATCHING: dict[str, Any] = {}
"""The batching rule of each op that has one; `emberharmony.rules.batching` fills it at the first `vmap`."""

BATCHING_ALONG: dict[str, Any] = {}
"""By the word of the fact `along`, the rule of the ops that say it."""

LEAVING: set[str] = set()
"""Ops that take values out of the differentiated function."""

REFUSED: dict[str, str] = {}
"""Ops that have no gradient, each with the reason."""


def pass_gradient(g: Any, *_: Any) -> Any:
    """The gradient rule of ops that copy their argument; if one returns the argument itself, nothing is recorded."""
    return g
