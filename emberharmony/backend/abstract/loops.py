"""Loops and branches over tensors without values: a step that keeps all shapes runs once, and all branches run."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from emberharmony.core.trees.tree import TreeDef, tree_unflatten
from emberharmony.transforms.abstract_tensor import AbstractTensor, no_value_error
from emberharmony.transforms.trees import flatten

Signature = tuple[TreeDef, list[tuple[tuple[int, ...], Any]]]


class AbstractLoops:
    """Overrides the ops of `ops/flow/control.py` that depend on values, or whose steps all have equal shapes."""

    composed: Callable[[str], Callable[..., Any]]
    tensor_of: Any
    convert: Any

    def cond(self, pred: Any, true_fn: Callable[..., Any], false_fn: Callable[..., Any], *operands: Any) -> Any:
        if _is_unknown_scalar(pred):
            return self._common_result("cond", [true_fn, false_fn], operands)
        return self.composed("cond")(pred, true_fn, false_fn, *operands)

    def switch(self, index: Any, branches: Sequence[Callable[..., Any]], *operands: Any) -> Any:
        if _is_unknown_scalar(index) and isinstance(branches, (list, tuple)) and branches:
            return self._common_result("switch", branches, operands)
        return self.composed("switch")(index, branches, *operands)

    def _common_result(self, name: str, branches: Sequence[Callable[..., Any]], operands: Sequence[Any]) -> Any:
        """Returns the result of the first branch of a `cond`, checked to have the shapes and dtypes of the others."""
        branch_results = [branch(*operands) for branch in branches]
        if any(self._tree_signature(result) != self._tree_signature(branch_results[0]) for result in branch_results):
            raise no_value_error(
                f"the branches of {name}() differ in shapes or dtypes, and a tensor decides which one runs"
            )
        return branch_results[0]

    def while_loop(
        self,
        cond: Callable[..., Any],
        body: Callable[..., Any],
        loop_vars: Any,
        maximum_iterations: int | None = None,
    ) -> Any:
        has_several_variables = isinstance(loop_vars, (tuple, list))
        if not _is_unknown_scalar(cond(*loop_vars) if has_several_variables else cond(loop_vars)):
            return self.composed("while_loop")(cond, body, loop_vars, maximum_iterations)
        loop_result = self.composed("while_loop")(lambda *_: True, body, loop_vars, 1)
        if self._tree_signature(loop_result) != self._tree_signature(
            tuple(loop_vars) if has_several_variables else loop_vars
        ):
            raise no_value_error(
                "the body of while_loop() changes a shape or dtype, and a tensor decides how often it runs"
            )
        return loop_result

    def scan(
        self,
        f: Callable[[Any, Any], tuple[Any, Any]],
        init: Any,
        xs: Any = None,
        length: int | None = None,
        reverse: bool = False,
        unroll: int | bool = 1,
    ) -> Any:
        scan_op, step_count = self.composed("scan"), self._count_steps(xs, length)
        if step_count is not None:
            carry, ys = scan_op(f, init, self._with_leading_length(xs, 1), None if length is None else 1)
            if self._tree_signature(carry) == self._tree_signature(init):
                return carry, self._with_leading_length(ys, step_count)
        return scan_op(f, init, xs, length, reverse)

    def map(self, f: Callable[[Any], Any], xs: Any) -> Any:
        step_count = self._count_steps(xs, None)
        if step_count is None:
            return self.composed("map")(f, xs)
        return self._with_leading_length(self.composed("map")(f, self._with_leading_length(xs, 1)), step_count)

    def _count_steps(self, xs: Any, length: int | None) -> int | None:
        """Returns the common length of the first axes of a tree's tensors; None if they differ or if it is 0 or 1."""
        shapes = [self.convert(leaf).shape for leaf in flatten(xs)[0]]
        step_counts = {shape[0] if shape else 0 for shape in shapes} | (set() if length is None else {length})
        step_count = step_counts.pop() if len(step_counts) == 1 else 0
        return step_count if isinstance(step_count, int) and step_count > 1 else None

    def _with_leading_length(self, tree: Any, count: int) -> Any:
        """Returns a tree of tensors with another length of their first axes."""
        leaves, structure = flatten(tree)
        tensors = map(self.convert, leaves)
        return tree_unflatten(structure, [self.tensor_of((count, *x.shape[1:]), x.dtype) for x in tensors])

    def _tree_signature(self, tree: Any) -> Signature:
        """Returns the structure of a tree, and the shape and dtype of each leaf."""
        leaves, structure = flatten(tree)
        return structure, [(x.shape, x.dtype) for x in map(self.convert, leaves)]


def _is_unknown_scalar(value: Any) -> bool:
    """Returns whether a value is a scalar tensor without a value."""
    return isinstance(value, AbstractTensor) and value.known is None and value.shape == ()
