"""The graph of an exported program as plain data."""

import operator
from typing import Any

import torch
from torch.export import ExportedProgram
from torch.export.graph_signature import ConstantArgument, InputKind, OutputKind

from emberharmony.core.errors import CaptureError, UnsupportedOpError
from emberharmony.interop.torch.aten import find
from emberharmony.interop.torch.capture.export import line_of
from emberharmony.interop.torch.capture.tensors import parameters
from emberharmony.interop.torch.graph import FLOAT, LAYER, Graph, Slot
from emberharmony.interop.torch.structure import Signature, Template
from emberharmony.transforms.program import Program, ProgramCall, Register, live_calls

_IGNORED = {"device", "layout", "pin_memory", "memory_format", "non_blocking", "generator"}
"""Arguments that say where and how a tensor lies in memory."""

_LAYERS = {
    "aten.linear.default": (torch.nn.Linear, 1),
    "aten.embedding.default": (torch.nn.Embedding, 0),
}
"""The operators that are layers if their weights are those of one, with the class and the place of the weight."""


def encode(module: torch.nn.Module, program: ExportedProgram) -> Graph:
    """Returns a graph as plain data.

    Raises:
        CaptureError: if it has a part that a program cannot hold.
        UnsupportedOpError: if the table lacks operators; the message has all of them, each with its line.
    """
    return _Encoding(module, program).graph()


class _Encoding:
    def __init__(self, module: torch.nn.Module, program: ExportedProgram) -> None:
        self.module, self.exported = module, program
        self.nodes = list(program.graph.nodes)
        floating = [p for p in module.parameters() if p.is_floating_point()]
        self.float = floating[0].dtype if floating else None
        self.slots = [Slot("dtype", "")]
        self.places: dict[torch.fx.Node, Any] = {}  # a register, a list of registers, or a constant
        self.calls: list[ProgramCall] = []
        self.lines: list[str] = []
        self.dtypes: list[str | None] = [None]
        self.missing: dict[str, str] = {}

    def graph(self) -> Graph:
        leaf_names = self._place_inputs()
        self._place_layers()
        for node in self.nodes:
            if node.op == "call_function":
                self._add(node)
            elif node.op not in ("placeholder", "output"):
                raise CaptureError(f"the graph of {type(self.module).__name__} has a node {node.op} {node.target}")
        if self.missing:
            listed = "; ".join(f"{name} ({line})" if line else name for name, line in self.missing.items())
            first = next(iter(self.missing)).rsplit(".", 1)[0].replace(".", "::", 1)
            raise UnsupportedOpError(
                f"{type(self.module).__name__} cannot be captured: the table of ATen lacks {listed}. "
                f'Say how to compute it with ops: emberharmony.register_aten("{first}", function)'
            )
        outputs, written, result = self._outputs()
        kept = live_calls(self.calls, outputs)
        lines = dict(zip(map(id, self.calls), self.lines, strict=True))
        return Graph(
            Program(len(self.slots), tuple(kept), tuple(outputs)),
            self.slots,
            self.dtypes,
            [lines[id(call)] for call in kept],
            written,
            self._signature(leaf_names),
            result,
            self._reference(),
        )

    def _reference(self) -> str | None:
        return next((name for name, p in self.module.named_parameters() if p.dtype == self.float), None)

    def dtype(self, dtype: torch.dtype) -> str:
        return FLOAT if dtype == self.float else str(dtype).removeprefix("torch.")

    def _register(self, value: Any) -> Register:
        """Returns the next register, for a value of PyTorch."""
        self.dtypes.append(self.dtype(value.dtype) if isinstance(value, torch.Tensor) else None)
        return Register(len(self.dtypes) - 1)

    def _place_inputs(self) -> dict[str, int]:
        """Makes registers for the inputs; returns the places of the arguments that are tensors, by node name."""
        specs = {spec.arg.name: spec for spec in self.exported.graph_signature.input_specs}
        places: dict[str, int] = {}
        for node in self.nodes:
            if node.op != "placeholder":
                continue
            spec = specs[node.name]
            if isinstance(spec.arg, ConstantArgument):
                self.places[node] = spec.arg.value
                continue
            value = node.meta.get("val")
            if spec.kind in (InputKind.PARAMETER, InputKind.BUFFER):
                slot = Slot("cell", str(spec.target))
            elif spec.kind is InputKind.TOKEN:  # which orders calls with effects, such as checks
                self.places[node] = None
                continue
            elif spec.kind is InputKind.CONSTANT_TENSOR:
                slot = Slot("constant", str(spec.target))
            elif spec.kind is InputKind.USER_INPUT and isinstance(value, torch.Tensor):
                shape = tuple(n if isinstance(n, int) else str(n) for n in value.shape)
                slot = Slot("input", node.name, self.dtype(value.dtype), shape)
                places[node.name] = len(self.slots)
            else:
                raise CaptureError(f"{type(self.module).__name__}: input {node.name} is a {spec.kind.name}")
            self.places[node] = self._register(value)
            self.slots.append(slot)
        return places

    def _place_layers(self) -> None:
        """Makes registers for layers whose operators can be called as layers of this library."""
        self.layers: dict[torch.fx.Node, Register] = {}
        registers: dict[str, Register] = {}
        for node in self.nodes:
            path = self._layer(node)
            if path is None:
                continue
            if path not in registers:
                registers[path] = self._register(None)
                self.slots.append(Slot("layer", path))
            self.layers[node] = registers[path]

    def _layer(self, node: torch.fx.Node) -> str | None:
        """Returns the path of the layer that a node is; None if it is none."""
        if str(node.target) not in _LAYERS or node.kwargs:
            return None
        kind, place = _LAYERS[str(node.target)]
        names = self.exported.graph_signature.inputs_to_parameters
        weight = names.get(getattr(node.args[place], "name", ""), "")
        path, _, last = weight.rpartition(".")
        if last != "weight" or type(self.module.get_submodule(path)) is not kind or not path:
            return None
        layer: Any = self.module.get_submodule(path)
        if kind is torch.nn.Embedding:
            return path if layer.max_norm is None and not layer.scale_grad_by_freq and not layer.sparse else None
        bias: Any = node.args[2] if len(node.args) > 2 else None
        same = bias is None if layer.bias is None else bias is not None and names.get(bias.name) == f"{path}.bias"
        return path if same else None

    def _add(self, node: torch.fx.Node) -> None:
        """Adds the call of a node, unless it only takes a result of another one or checks something."""
        target: Any = node.target
        if target is operator.getitem and isinstance(self.places.get(node.args[0]), list):  # type: ignore[arg-type]
            self.places[node] = self.places[node.args[0]][node.args[1]]  # type: ignore[index]
            return
        if str(target) == "with_effects" and not node.args[1]._schema.returns:  # type: ignore[union-attr]
            self.places[node] = [None]
            return
        overload = isinstance(target, torch._ops.OpOverload)
        if overload and not target._schema.returns:
            return
        name = str(target) if overload else _name(target)
        if find(name) is None:
            self.missing.setdefault(name, line_of(node))
        value = node.meta.get("val")
        several = isinstance(value, (list, tuple))
        if node in self.layers:
            args: tuple[Any, ...] = (self.layers[node], self._value(node.args[1 if "embedding" in name else 0]))
            name, keywords = LAYER, tuple[tuple[str, Any], ...]()
        else:
            args = tuple(map(self._value, node.args))
            keywords = tuple((k, self._value(v)) for k, v in self._keywords(node).items())
        results = [self._register(item) for item in value] if several else [self._register(value)]  # type: ignore[union-attr]
        self.places[node] = results if several else results[0]
        self.calls.append(ProgramCall(name, args, tuple(results), keywords, several))
        self.lines.append(line_of(node))

    def _keywords(self, node: torch.fx.Node) -> dict[str, Any]:
        """Returns the arguments by name; a function that makes a tensor of none gets the dtype of that."""
        keywords = {k: v for k, v in node.kwargs.items() if k not in _IGNORED}
        target, value = node.target, node.meta.get("val")
        if isinstance(target, torch._ops.OpOverload) and isinstance(value, torch.Tensor):
            takes = any(argument.name == "dtype" and argument.kwarg_only for argument in target._schema.arguments)
            if takes and not any(isinstance(n.meta.get("val"), torch.Tensor) for n in node.all_input_nodes):
                keywords["dtype"] = value.dtype
        return keywords

    def _value(self, value: Any) -> Any:
        """Returns an argument as plain data.

        Raises:
            CaptureError: if it is something that a program cannot hold.
        """
        if isinstance(value, torch.fx.Node):
            return self.places[value]
        if isinstance(value, (list, tuple)):
            return [self._value(item) for item in value]
        if isinstance(value, torch.dtype):
            return Register(0) if value == self.float else self.dtype(value)
        if isinstance(value, (torch.device, torch.layout, torch.memory_format)):
            return None
        if isinstance(value, (torch.SymInt, torch.SymFloat, torch.SymBool)):
            return value.node.maybe_as_int() if isinstance(value, torch.SymInt) else value.node.hint
        if value is None or isinstance(value, (bool, int, float, complex, str)):
            return value
        raise CaptureError(f"{type(self.module).__name__}: an argument is a {type(value).__name__}")

    def _outputs(self) -> tuple[list[Any], list[str], Template]:
        """Returns the outputs, the buffers that the first ones belong to, and the structure of the others."""
        nodes: Any = next(node for node in self.nodes if node.op == "output").args[0]
        specs = self.exported.graph_signature.output_specs
        states: list[Any] = []
        written: list[str] = []
        results: list[Any] = []
        for spec, node in zip(specs, nodes, strict=True):
            value = self._value(node)
            if spec.kind is OutputKind.BUFFER_MUTATION:
                states.append(value)
                written.append(str(spec.target))
            elif spec.kind is OutputKind.USER_OUTPUT:
                results.append(value)
            elif spec.kind not in (OutputKind.USER_INPUT_MUTATION, OutputKind.TOKEN):  # the argument stays as it is
                raise CaptureError(f"{type(self.module).__name__}: a result is a {spec.kind.name}")
        template = _template(self.exported.call_spec.out_spec, iter(range(len(results))))
        return states + results, written, template

    def _signature(self, places: dict[str, int]) -> Signature:
        """Returns the signature; the leaves of its templates are registers."""
        specs = [s for s in self.exported.graph_signature.input_specs if s.kind is InputKind.USER_INPUT]
        items: list[Any] = []
        for spec in specs:
            constant = isinstance(spec.arg, ConstantArgument)
            items.append({"constant": spec.arg.value} if constant else {"leaf": places[spec.arg.name]})
        args, kwargs = self.exported.call_spec.in_spec.children()
        leaves = iter(items)
        names = parameters(self.module)
        arguments: dict[str, Template] = {}
        for i, child in enumerate(args.children()):
            arguments[names[i] if i < len(names) else f"*{i}"] = _fill(_template(child, _counting()), leaves)
        for key, child in zip(kwargs.context, kwargs.children(), strict=True):
            arguments[key] = _fill(_template(child, _counting()), leaves)
        return Signature(names, arguments)


def _counting() -> Any:
    return iter(range(2**31))


def _fill(template: Template, leaves: Any) -> Template:
    """Returns a template with other ones in the places of its leaves."""
    if "leaf" in template:
        filled: Template = next(leaves)
        return filled
    if "items" not in template:
        return template
    return {**template, "items": [_fill(item, leaves) for item in template["items"]]}


def _template(spec: Any, numbers: Any) -> Template:
    """Returns the structure of a tree of PyTorch as plain data."""
    if spec.is_leaf():
        return {"leaf": next(numbers)}
    items = [_template(child, numbers) for child in spec.children()]
    if spec.type in (list, tuple):
        return {"kind": spec.type.__name__, "items": items}
    keys = _keys(spec, len(items))
    return {"kind": "dict" if spec.type is dict else "record", "keys": keys, "items": items}


def _keys(spec: Any, count: int) -> list[str]:
    """Returns the keys of a dict, or the names of the parts of an object."""
    context = spec.context
    if isinstance(context, tuple) and len(context) == 2 and isinstance(context[0], (list, tuple)):
        context = context[0]
    fields = getattr(spec.type, "_fields", None) or context
    if isinstance(fields, (list, tuple)) and len(fields) == count and all(isinstance(k, str) for k in fields):
        return list(fields)
    return [str(i) for i in range(count)]


def _name(target: Any) -> str:
    """Returns the name of an operator that is a function of Python."""
    if isinstance(target, torch._ops.HigherOrderOperator):
        return f"higher_order.{target.__name__}"
    return f"{target.__module__.strip('_')}.{target.__name__}"
