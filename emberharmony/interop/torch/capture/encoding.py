"""Converts the graph of a program exported by PyTorch to plain data, a `Graph`."""

import operator
import sys
from collections.abc import Collection
from typing import Any

import torch
from torch.export import ExportedProgram
from torch.export.graph_signature import ConstantArgument, InputKind, OutputKind

from emberharmony.core.errors import CaptureError, UnsupportedOpError
from emberharmony.interop.torch.aten import find_function
from emberharmony.interop.torch.capture.export import source_place
from emberharmony.interop.torch.capture.tensors import forward_parameter_names
from emberharmony.interop.torch.graph import FLOAT, LAYER, Graph, Slot
from emberharmony.interop.torch.structure import Signature, Template
from emberharmony.transforms.program import Program, ProgramCall, Register, live_calls

_IGNORED = {"device", "layout", "pin_memory", "memory_format", "non_blocking", "generator"}
"""The names of arguments on a tensor's device and memory layout, which captured programs ignore."""

_LAYERS: dict[str, type[torch.nn.Module]] = {
    "aten.linear.default": torch.nn.Linear,
    "aten.embedding.default": torch.nn.Embedding,
    "aten.conv1d.default": torch.nn.Conv1d,
    "aten.conv1d.padding": torch.nn.Conv1d,
    "aten.conv2d.default": torch.nn.Conv2d,
    "aten.conv2d.padding": torch.nn.Conv2d,
    "aten.conv3d.default": torch.nn.Conv3d,
    "aten.conv3d.padding": torch.nn.Conv3d,
    "aten.layer_norm.default": torch.nn.LayerNorm,
    "aten.group_norm.default": torch.nn.GroupNorm,
    "aten.rms_norm.default": torch.nn.RMSNorm,
}
"""A dict from operators to layer classes: the operator is captured as a layer if its arguments match."""

_CONV1D = "aten.addmm.default"
"""The name of the operator that a `Conv1D` of transformers calls."""


def encode_graph(module: torch.nn.Module, program: ExportedProgram, layers: Collection[str] | None = None) -> Graph:
    """Converts the graph of an exported program to a `Graph` of plain data.

    Args:
        module: the module.
        program: what PyTorch exported of it.
        layers: the paths of layers that may be called as such; None means all that can.

    Raises:
        CaptureError: if it has a part that a program cannot hold.
        UnsupportedOpError: if the table lacks operators; the message has all of them, each with its line.
    """
    return _Encoding(module, program, layers).build_graph()


class _Encoding:
    def __init__(self, module: torch.nn.Module, program: ExportedProgram, allowed: Collection[str] | None) -> None:
        self.module, self.exported, self.allowed = module, program, allowed
        self.nodes = list(program.graph.nodes)
        floating_parameters = [p for p in module.parameters() if p.is_floating_point()]
        self.float = floating_parameters[0].dtype if floating_parameters else None
        self.slots = [Slot("dtype", "")]
        self.places: dict[torch.fx.Node, Any] = {}  # each node's register, registers or constant
        self.calls: list[ProgramCall] = []
        self.lines: list[str] = []
        self.dtypes: list[str | None] = [None]
        self.missing: dict[str, str] = {}

    def build_graph(self) -> Graph:
        place_by_name = self._place_inputs()
        self._place_layers()
        for node in self.nodes:
            if node.op == "call_function":
                self._add_call(node)
            elif node.op not in ("placeholder", "output"):
                raise CaptureError(f"the graph of {type(self.module).__name__} has a node {node.op} {node.target}")
        if self.missing:
            names_text = "; ".join(f"{name} ({line})" if line else name for name, line in self.missing.items())
            first_name = next(iter(self.missing)).rsplit(".", 1)[0].replace(".", "::", 1)
            raise UnsupportedOpError(
                f"{type(self.module).__name__} cannot be captured: the table of ATen lacks {names_text}. "
                f'Say how to compute it with ops: emberharmony.register_aten("{first_name}", function)'
            )
        outputs, written_registers, result_template = self._output_registers()
        kept_calls = live_calls(self.calls, outputs)
        line_by_id = dict(zip(map(id, self.calls), self.lines, strict=True))
        return Graph(
            Program(len(self.slots), tuple(kept_calls), tuple(outputs)),
            self.slots,
            self.dtypes,
            [line_by_id[id(call)] for call in kept_calls],
            written_registers,
            self._graph_signature(place_by_name),
            result_template,
            self._first_floating_parameter(),
        )

    def _first_floating_parameter(self) -> str | None:
        return next((name for name, p in self.module.named_parameters() if p.dtype == self.float), None)

    def dtype_name(self, dtype: torch.dtype) -> str:
        return FLOAT if dtype == self.float else str(dtype).removeprefix("torch.")

    def _next_register(self, value: Any) -> Register:
        """Returns a new register for a value of PyTorch, and records the dtype of the value."""
        self.dtypes.append(self.dtype_name(value.dtype) if isinstance(value, torch.Tensor) else None)
        return Register(len(self.dtypes) - 1)

    def _place_inputs(self) -> dict[str, int]:
        """Makes registers for the inputs of the graph, and returns those of tensor arguments by node name."""
        spec_by_name = {spec.arg.name: spec for spec in self.exported.graph_signature.input_specs}
        place_by_name: dict[str, int] = {}
        for node in self.nodes:
            if node.op != "placeholder":
                continue
            spec = spec_by_name[node.name]
            if isinstance(spec.arg, ConstantArgument):
                self.places[node] = spec.arg.value
                continue
            example_value = node.meta.get("val")
            if spec.kind in (InputKind.PARAMETER, InputKind.BUFFER):
                slot = Slot("cell", str(spec.target))
            elif spec.kind is InputKind.TOKEN:  # a token only orders calls with effects
                self.places[node] = None
                continue
            elif spec.kind is InputKind.CONSTANT_TENSOR:
                slot = Slot("constant", str(spec.target))
            elif spec.kind is InputKind.USER_INPUT and isinstance(example_value, torch.Tensor):
                shape = tuple(n if isinstance(n, int) else str(n) for n in example_value.shape)
                slot = Slot("input", node.name, self.dtype_name(example_value.dtype), shape)
                place_by_name[node.name] = len(self.slots)
            else:
                raise CaptureError(f"{type(self.module).__name__}: input {node.name} is a {spec.kind.name}")
            self.places[node] = self._next_register(example_value)
            self.slots.append(slot)
        return place_by_name

    def _place_layers(self) -> None:
        """Makes registers for layers, where an operator of the graph can be a call of a layer of this library."""
        self.layers: dict[torch.fx.Node, tuple[Register, Any]] = {}  # layer and input by node
        register_by_path: dict[str, Register] = {}
        for node in self.nodes:
            target = str(node.target)
            argument_by_name = _arguments_by_name(node) if target in _LAYERS or target == _CONV1D else {}
            if target == _CONV1D:
                class_name, argument_by_name = _conv1d_and_arguments(argument_by_name)
            else:
                class_name = _LAYERS.get(target)
            path = self._layer_path(class_name, argument_by_name) if class_name is not None else None
            if path is None or (self.allowed is not None and path not in self.allowed):
                continue
            if path not in register_by_path:
                register_by_path[path] = self._next_register(None)
                self.slots.append(Slot("layer", path))
            self.layers[node] = register_by_path[path], argument_by_name.get("input", argument_by_name.get("indices"))

    def _layer_path(self, kind: type[torch.nn.Module], arguments: dict[str, Any]) -> str | None:
        """Returns the path of the layer to whose call an operator's arguments belong; None if there is none."""
        path, _, tensor_name = self._parameter_name(arguments["weight"]).rpartition(".")
        layer: Any = self.module.get_submodule(path) if tensor_name == "weight" and path else None
        if type(layer) is not kind or getattr(layer, "max_norm", None) is not None:
            return None
        for name, value in arguments.items():
            layer_option = getattr(layer, name, value)
            if isinstance(layer_option, torch.nn.Parameter):
                is_equal = self._parameter_name(value) == f"{path}.{name}"
            elif layer_option is None:
                is_equal = value is None or (name == "padding_idx" and value == -1)
            else:
                is_equal = (
                    list(layer_option) == list(value) if isinstance(layer_option, tuple) else layer_option == value
                )
            if not is_equal:
                return None
        return path

    def _parameter_name(self, value: Any) -> str:
        """Returns the name of the parameter that a node of the graph stands for; "" if it stands for none."""
        return str(self.exported.graph_signature.inputs_to_parameters.get(getattr(value, "name", ""), ""))

    def _add_call(self, node: torch.fx.Node) -> None:
        """Adds the call of a node to the program; nodes that select a result of another or check are not added."""
        target: Any = node.target
        if target is operator.getitem and isinstance(self.places.get(node.args[0]), list):  # type: ignore[arg-type]
            self.places[node] = self.places[node.args[0]][node.args[1]]  # type: ignore[index]
            return
        if str(target) == "with_effects" and not node.args[1]._schema.returns:  # type: ignore[union-attr]
            self.places[node] = [None]
            return
        is_overload = isinstance(target, torch._ops.OpOverload)
        if is_overload and not target._schema.returns:
            return
        name = str(target) if is_overload else _function_name(target)
        if find_function(name) is None:
            self.missing.setdefault(name, source_place(node))
        example_result = node.meta.get("val")
        has_several_results = isinstance(example_result, (list, tuple))
        if node in self.layers:
            layer_register, layer_input = self.layers[node]
            args: tuple[Any, ...] = (layer_register, self._plain_value(layer_input))
            name, keywords = LAYER, tuple[tuple[str, Any], ...]()
        else:
            args = tuple(map(self._plain_value, node.args))
            keywords = tuple((k, self._plain_value(v)) for k, v in self._call_keywords(node).items())
        example_results: Any = example_result if has_several_results else [example_result]
        result_registers = [self._next_register(example) for example in example_results]
        self.places[node] = result_registers if has_several_results else result_registers[0]
        self.calls.append(ProgramCall(name, args, tuple(result_registers), keywords, has_several_results))
        self.lines.append(source_place(node))

    def _call_keywords(self, node: torch.fx.Node) -> dict[str, Any]:
        """Returns the keyword arguments of a node's call; an operator that creates a tensor gets the captured dtype."""
        keywords = {k: v for k, v in node.kwargs.items() if k not in _IGNORED}
        target, example_result = node.target, node.meta.get("val")
        if isinstance(target, torch._ops.OpOverload) and isinstance(example_result, torch.Tensor):
            takes_dtype = any(argument.name == "dtype" and argument.kwarg_only for argument in target._schema.arguments)
            if takes_dtype and not any(isinstance(n.meta.get("val"), torch.Tensor) for n in node.all_input_nodes):
                keywords["dtype"] = example_result.dtype
        return keywords

    def _plain_value(self, value: Any) -> Any:
        """Converts an argument of a node to plain data, with registers in the places of nodes.

        Raises:
            CaptureError: if it is something that a program cannot hold.
        """
        if isinstance(value, torch.fx.Node):
            return self.places[value]
        if isinstance(value, (list, tuple)):
            return [self._plain_value(item) for item in value]
        if isinstance(value, torch.dtype):
            return Register(0) if value == self.float else self.dtype_name(value)
        if isinstance(value, (torch.device, torch.layout, torch.memory_format)):
            return None
        if isinstance(value, (torch.SymInt, torch.SymFloat, torch.SymBool)):
            return value.node.maybe_as_int() if isinstance(value, torch.SymInt) else value.node.hint
        if value is None or isinstance(value, (bool, int, float, complex, str)):
            return value
        raise CaptureError(f"{type(self.module).__name__}: an argument is a {type(value).__name__}")

    def _output_registers(self) -> tuple[list[Any], list[str], Template]:
        """Returns the output registers, the names of buffers assigned by the first ones, and the others' template."""
        output_nodes: Any = next(node for node in self.nodes if node.op == "output").args[0]
        output_specs = self.exported.graph_signature.output_specs
        written_values: list[Any] = []
        written_names: list[str] = []
        result_values: list[Any] = []
        for spec, node in zip(output_specs, output_nodes, strict=True):
            plain_output = self._plain_value(node)
            if spec.kind is OutputKind.BUFFER_MUTATION:
                written_values.append(plain_output)
                written_names.append(str(spec.target))
            elif spec.kind is OutputKind.USER_OUTPUT:
                result_values.append(plain_output)
            elif spec.kind not in (OutputKind.USER_INPUT_MUTATION, OutputKind.TOKEN):  # arguments are not written to
                raise CaptureError(f"{type(self.module).__name__}: a result is a {spec.kind.name}")
        result_template = _plain_template(self.exported.call_spec.out_spec, iter(range(len(result_values))))
        return written_values + result_values, written_names, result_template

    def _graph_signature(self, places: dict[str, int]) -> Signature:
        """Returns the signature of the module's arguments, whose templates have registers as leaves."""
        input_specs = [s for s in self.exported.graph_signature.input_specs if s.kind is InputKind.USER_INPUT]
        leaf_templates: list[Any] = []
        for spec in input_specs:
            is_constant = isinstance(spec.arg, ConstantArgument)
            leaf_templates.append({"constant": spec.arg.value} if is_constant else {"leaf": places[spec.arg.name]})
        args, kwargs = self.exported.call_spec.in_spec.children()
        remaining_templates = iter(leaf_templates)
        parameter_names = forward_parameter_names(self.module)
        template_by_argument: dict[str, Template] = {}
        for i, child in enumerate(args.children()):
            template_by_argument[parameter_names[i] if i < len(parameter_names) else f"*{i}"] = _fill_template(
                _plain_template(child, _leaf_numbers()), remaining_templates
            )
        for key, child in zip(kwargs.context, kwargs.children(), strict=True):
            template_by_argument[key] = _fill_template(_plain_template(child, _leaf_numbers()), remaining_templates)
        return Signature(parameter_names, template_by_argument)


def _arguments_by_name(node: torch.fx.Node) -> dict[str, Any]:
    """Returns the arguments of an operator by name, with the defaults of those that are not given."""
    declared_arguments = node.target._schema.arguments  # type: ignore[union-attr]
    default_by_name = {each.name: each.default_value for each in declared_arguments if each.has_default_value()}
    return {
        **default_by_name,
        **{each.name: value for each, value in zip(declared_arguments, node.args, strict=False)},
        **node.kwargs,
    }


def _conv1d_and_arguments(arguments: dict[str, Any]) -> tuple[type[torch.nn.Module] | None, dict[str, Any]]:
    """Returns transformers' `Conv1D` and its arguments, given those of `addmm`; None if the call is no `Conv1D`."""
    conv1d_class = getattr(sys.modules.get("transformers.pytorch_utils"), "Conv1D", None)
    has_unit_factors = arguments["alpha"] == arguments["beta"] == 1
    name_by_argument = {"input": "mat1", "weight": "mat2", "bias": "self"}
    return conv1d_class if has_unit_factors else None, {
        name: arguments[given] for name, given in name_by_argument.items()
    }


def _leaf_numbers() -> Any:
    return iter(range(2**31))


def _fill_template(template: Template, leaves: Any) -> Template:
    """Returns a template with the next ones of an iterator in the places of its leaves."""
    if "leaf" in template:
        leaf: Template = next(leaves)
        return leaf
    if "items" not in template:
        return template
    return {**template, "items": [_fill_template(item, leaves) for item in template["items"]]}


def _plain_template(spec: Any, numbers: Any) -> Template:
    """Converts PyTorch's description of a tree to a template of plain data, with numbered leaves."""
    if spec.is_leaf():
        return {"leaf": next(numbers)}
    items = [_plain_template(child, numbers) for child in spec.children()]
    if spec.type in (list, tuple):
        return {"kind": spec.type.__name__, "items": items}
    keys = _child_keys(spec, len(items))
    return {"kind": "dict" if spec.type is dict else "record", "keys": keys, "items": items}


def _child_keys(spec: Any, count: int) -> list[str]:
    """Returns the keys of a dict, or the field names of an object, from PyTorch's description of a tree."""
    keys_or_context = spec.context
    if (
        isinstance(keys_or_context, tuple)
        and len(keys_or_context) == 2
        and isinstance(keys_or_context[0], (list, tuple))
    ):
        keys_or_context = keys_or_context[0]
    field_names = getattr(spec.type, "_fields", None) or keys_or_context
    if (
        isinstance(field_names, (list, tuple))
        and len(field_names) == count
        and all(isinstance(k, str) for k in field_names)
    ):
        return list(field_names)
    return [str(i) for i in range(count)]


def _function_name(target: Any) -> str:
    """Returns the name, with its module, of an operator that is a Python function."""
    if isinstance(target, torch._ops.HigherOrderOperator):
        return f"higher_order.{target.__name__}"
    return f"{target.__module__.strip('_')}.{target.__name__}"
