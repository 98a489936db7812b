"""A module of PyTorch with example arguments, from which programs are captured."""

from collections.abc import Mapping, Sequence
from typing import Any

import torch

from emberharmony import Buffer, Parameter, nn
from emberharmony.core.cells.cell import Cell
from emberharmony.core.errors import ArgumentTypeError, brief
from emberharmony.core.trees.objects import Sealed
from emberharmony.interop.torch.capture.encoding import encode_graph
from emberharmony.interop.torch.capture.export import export_module
from emberharmony.interop.torch.capture.tensors import copy_to_backend, dynamic_first_axes
from emberharmony.interop.torch.graph import Graph
from emberharmony.interop.torch.layers import KINDS, make_layer, options_of


class Source(Sealed):
    """A PyTorch module with example arguments, from which the graphs of both modes are captured.

    Args:
        module: the module.
        args: example arguments: a tuple, or one tensor.
        kwargs: more of them, by name.
        dynamic: the axes that vary, as PyTorch describes them; True for the first ones.

    Raises:
        ArgumentTypeError: if `module` is none of PyTorch.
    """

    def __init__(self, module: torch.nn.Module, args: Any, kwargs: Mapping[str, Any] | None, dynamic: Any) -> None:
        if not isinstance(module, torch.nn.Module):
            raise ArgumentTypeError(f"from_torch() takes a torch.nn.Module, not {brief(module)}")
        self.module = module
        self.args: Sequence[Any] = (args,) if isinstance(args, torch.Tensor) else tuple(args)
        self.kwargs = dict(kwargs or {})
        self.dynamic = dynamic_first_axes(module, self.args, self.kwargs) if dynamic is True else dynamic
        self._layers: set[str] | None = None  # layers of the first graph

    def capture(self, train: bool) -> tuple[Graph, dict[str, Any]]:
        """Captures the graph of the module in a mode, and returns it with its constant tensors by name."""
        program = export_module(self.module, self.args, self.kwargs, self.dynamic, train)
        graph = encode_graph(self.module, program, self._layers)
        if self._layers is None:
            self._layers = {slot.target for slot in graph.slots if slot.kind == "layer"}
        constant_names = {slot.target for slot in graph.slots if slot.kind == "constant"}
        return graph, {name: copy_to_backend(program.constants[name]) for name in constant_names}

    def example(self) -> tuple[Any, dict[str, Any]]:
        """Returns the example arguments, positional and named, with tensors of the active backend."""

        def as_tensor(x: Any) -> Any:
            return copy_to_backend(x) if isinstance(x, torch.Tensor) else x

        args, kwargs = torch.utils._pytree.tree_map(as_tensor, (tuple(self.args), self.kwargs))
        return args, kwargs

    def members(self, graph: Graph) -> dict[str, Cell | nn.Module]:
        """Returns the parameters, buffers and layers of the module by name; a tensor with two names is one cell."""
        member_by_path: dict[str, Cell | nn.Module] = {}
        cell_by_id: dict[int, Cell] = {}
        saved_names = set(self.module.state_dict(keep_vars=True))
        for name, parameter in self.module.named_parameters(remove_duplicate=False):
            if id(parameter) not in cell_by_id:
                cell_by_id[id(parameter)] = Parameter(copy_to_backend(parameter), trainable=parameter.requires_grad)
            member_by_path[name] = cell_by_id[id(parameter)]
        for name, buffer in self.module.named_buffers(remove_duplicate=False):
            if id(buffer) not in cell_by_id:
                cell_by_id[id(buffer)] = Buffer(copy_to_backend(buffer), persistent=name in saved_names)
            member_by_path[name] = cell_by_id[id(buffer)]
        for path in [slot.target for slot in graph.slots if slot.kind == "layer"]:
            layer = self.module.get_submodule(path)
            parameter_by_name = {name: member_by_path.pop(f"{path}.{name}") for name, _ in layer.named_parameters()}
            member_by_path[path] = make_layer(path, options_of(layer, KINDS[type(layer).__name__]), parameter_by_name)
        return member_by_path
