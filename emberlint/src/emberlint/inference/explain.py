"""Explains, step by step, why an expression is taken for a tensor."""

import ast
from collections.abc import Iterator

from emberlint.config.tiers import Tier
from emberlint.inference.values import Imported, Mapping, Other, Sequence, Tensor, Value, holds_tensor
from emberlint.source.source_file import SourceFile

_STEPS = 12


def reason_line(value: Tensor) -> str:
    """Returns the reason in one line: the immediate reason and its origin."""
    earliest_tensor = value
    step_count = 0
    while earliest_tensor.via is not None and step_count < _STEPS:
        earliest_tensor, step_count = earliest_tensor.via, step_count + 1
    if earliest_tensor is value:
        return value.why
    line_number = getattr(earliest_tensor.node, "lineno", None)
    line_text = f" (line {line_number})" if line_number else ""
    return f"{value.why}; {earliest_tensor.why}{line_text}"


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
        innermost_element: Value = value.element
        while isinstance(innermost_element, (Sequence, Mapping)):
            innermost_element = innermost_element.element
        return [
            f"{text}: a container of tensors",
            *(_explanation_steps(innermost_element) if isinstance(innermost_element, Tensor) else []),
        ]
    return [f"{text}: {value.label}" if isinstance(value, Other) else f"{text}: no evidence of a tensor"]


def _explanation_steps(value: Tensor) -> list[str]:
    step_lines: list[str] = []
    step_tensor: Tensor | None = value
    while step_tensor is not None and len(step_lines) < _STEPS:
        line_number = getattr(step_tensor.node, "lineno", None)
        step_lines.append(f"    {step_tensor.why}" + (f" (line {line_number})" if line_number else ""))
        step_tensor = step_tensor.via
    return step_lines
