"""Trees of tensors as lists, for comparison."""

from typing import Any

import numpy as np

from emberharmony import ops


def lists(tree: Any) -> Any:
    """Returns a tree with numbers and lists instead of tensors."""
    return ops.tree_map(lambda leaf: leaf.tolist() if hasattr(leaf, "tolist") else leaf, tree)


def near(tree: Any, expected: Any, tolerance: float = 1e-5) -> bool:
    """Returns whether the leaves of two trees are equal up to rounding."""
    ours, wanted = ops.tree_leaves(tree), ops.tree_leaves(expected)
    return len(ours) == len(wanted) and all(
        np.allclose(ops.to_numpy(a), np.asarray(b), rtol=tolerance, atol=tolerance)
        for a, b in zip(ours, wanted, strict=True)
    )
