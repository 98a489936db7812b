"""Explains, step by step, why an expression is taken for a tensor."""

import ast
from collections.abc import Iterator

from emberlint.config.tiers import Tier
from emberlint.inference.values import Imported, Mapping, Other, Sequence, Tensor, Value, holds_tensor
from emberlint.source.source_file import SourceFile

_STEPS = 12


def reason(value: Tensor) -> str:
    """Returns the reason in one line: the immediate reason and its origin."""
    first = value
    steps = 0
    while first.via is not None and steps < _STEPS:
        first, steps = first.via, steps + 1
    if first is value:
        return value.why
    line = getattr(first.node, "lineno", None)
    line_text = f" (line {line})" if line else ""
    return f"{value.why}; {first.why}{line_text}"


def explain(file: SourceFile, values: dict[ast.AST, Value], line: int) -> Iterator[str]:
    """Yields the inferred kind of each expression that begins on a line, with the steps that led to it."""
    for node in ast.walk(file.tree):
        if isinstance(node, ast.expr) and node.lineno == line and not isinstance(node, ast.Constant):
            value = values.get(node)
            if not isinstance(value, Imported):
                yield from _describe_value(file.segment(node), value)


def _describe_value(text: str, value: Value) -> list[str]:
    if isinstance(value, Tensor):
        dtype_text = f", {'the default float' if value.dtype == 'float' else value.dtype}" if value.dtype else ""
        return [f"{text}: a tensor, tier {Tier(value.tier).name}{dtype_text}", *_explanation_steps(value)]
    if isinstance(value, (Sequence, Mapping)) and holds_tensor(value):
        element: Value = value.element
        while isinstance(element, (Sequence, Mapping)):
            element = element.element
        return [
            f"{text}: a container of tensors",
            *(_explanation_steps(element) if isinstance(element, Tensor) else []),
        ]
    return [f"{text}: {value.label}" if isinstance(value, Other) else f"{text}: no evidence of a tensor"]


def _explanation_steps(value: Tensor) -> list[str]:
    steps: list[str] = []
    step: Tensor | None = value
    while step is not None and len(steps) < _STEPS:
        line = getattr(step.node, "lineno", None)
        steps.append(f"    {step.why}" + (f" (line {line})" if line else ""))
        step = step.via
    return steps
