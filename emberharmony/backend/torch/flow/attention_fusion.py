"""A pass of Inductor that keeps it from taking products, a softmax and products for attention.

Inductor (PyTorch 2.13) looks for attention by patterns that ignore in which order the axes of the keys are. It takes
`permute(0, 2, 3, 1)` for the exchange of the last two, so a function that computes attention of (batch, keys, heads,
width) gave wrong numbers where the number of keys is that of the heads, and could not be compiled where it is not.
`ops.dot_product_attention` calls the fused kernel itself.
"""

from typing import Any

import torch
from torch._inductor.custom_graph_pass import CustomGraphPass, get_hash_for_files

_ATEN = torch.ops.aten
_VIEWS = (_ATEN.view.default, _ATEN.expand.default, _ATEN.clone.default)


class UnfusedAttention(CustomGraphPass):
    """Puts an `expand` to its own shape behind each permutation whose result is multiplied.

    No pattern of attention has one, and Inductor makes no code for it.
    """

    def __call__(self, graph: torch.fx.Graph) -> None:
        """Inserts an `expand` into the graph behind each permutation whose result is multiplied."""
        for product_node in graph.find_nodes(op="call_function", target=_ATEN.bmm.default):
            key_node = product_node.args[1]
            while key_node.target in _VIEWS:
                key_node = key_node.args[0]
            if key_node.target is _ATEN.permute.default:
                _insert_expand(graph, key_node)

    def uuid(self) -> bytes:
        """Returns the bytes that identify this pass in the keys of Inductor's cache."""
        return get_hash_for_files((__file__,))


def _insert_expand(graph: torch.fx.Graph, node: torch.fx.Node) -> None:
    with graph.inserting_after(node):
        expand_node = graph.call_function(_ATEN.expand.default, (node, [-1] * node.meta["val"].ndim))
    expand_node.meta.update(node.meta)
    node.replace_all_uses_with(expand_node, lambda user: user is not expand_node)


OPTIONS: dict[str, Any] = {"joint_custom_pre_pass": UnfusedAttention()}
"""The options of `torch.compile` that add the pass."""
