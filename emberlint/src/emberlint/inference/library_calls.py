"""The results of calling imported functions: ops, array libraries, the standard library."""

import ast

from emberlint.config.settings import Settings
from emberlint.config.tiers import Tier
from emberlint.inference import values as v
from emberlint.inference.builtin_calls import SIMPLE, BuiltinCalls
from emberlint.inference.dtypes import dtype_of_call
from emberlint.inference.expressions import value_from_container
from emberlint.inference.forms import map_leaves
from emberlint.inference.methods import Arguments
from emberlint.inference.numpy_calls import non_array_result
from emberlint.knowledge.arguments import parameters


class LibraryCalls(BuiltinCalls):
    """The methods of the analysis that infer the results of calls of imported functions."""

    def __init__(self, settings: Settings) -> None:
        super().__init__(settings)
        self.records: dict[ast.Call, v.ClassUnit] = {}  # classes created by calls of `namedtuple`

    def call_imported(self, callee: v.Value, arguments: Arguments) -> v.Value:
        """Returns the inferred result of calling an imported function or class."""
        assert isinstance(callee, v.Imported)
        origin = callee.origin
        result_kind = self.kinds.result_kind(origin)
        if result_kind == "tensor":
            call_node = arguments.node
            if (
                isinstance(call_node, ast.Call)
                and (plain_value := non_array_result(origin, call_node, arguments.positional)) is not None
            ):
                return plain_value
            if isinstance(call_node, ast.Call) and call_node.args:
                if self.kinds.is_elementwise(origin):
                    self.infer_by_convention(call_node.args[0], arguments.env, f"handed to `{origin}`")
                elif self.kinds.is_reduction(origin) and isinstance(call_node.args[0], ast.BinOp):
                    self.infer_result_by_convention(call_node.args[0], arguments.env, f"handed to `{origin}`")
            return v.Tensor(
                Tier.A, f"`{origin}` returns a tensor", arguments.node, dtype=self._result_dtype(callee, arguments)
            )
        if result_kind == "tensors":
            return v.Sequence(v.Tensor(Tier.B, f"`{origin}` returns tensors", arguments.node))
        if result_kind in SIMPLE:
            self._exclude_tensors(result_kind, arguments)
            return SIMPLE[result_kind]
        if result_kind == "layer":
            return v.LAYER
        if result_kind == "shape":
            return v.shape_value()
        infer_result = getattr(self, f"_result_of_{result_kind}", None)
        return None if infer_result is None else infer_result(origin, arguments)

    def _result_dtype(self, callee: v.Imported, arguments: Arguments) -> str:
        """Returns the floating dtype of the result of an op, if it is certain."""
        origin = callee.origin
        if not isinstance(arguments.node, ast.Call) or not self.kinds.is_op(origin):
            return ""
        if self.values.get(arguments.node.func) is not callee:
            return ""  # another function calls the op, with arguments of its own
        op_parameters = parameters().get(origin.removeprefix(f"{self.kinds.namespace(origin)}."))
        return dtype_of_call(
            origin,
            arguments.node,
            arguments.positional,
            arguments.keywords,
            op_parameters.positional if op_parameters is not None else (),
        )

    def _exclude_tensors(self, kind: str, arguments: Arguments) -> None:
        """Records that the argument of `math.f(x)` is not a tensor, so that no convention takes it for one."""
        if kind in ("number", "real") and isinstance(arguments.node, ast.Call):
            for argument in arguments.node.args:
                if type(argument) is ast.Name and arguments.env.vars.get(argument.id, v.NONE) is None:
                    self.exclude_tensor(argument.id)

    def _result_of_argument(self, origin: str, arguments: Arguments) -> v.Value:
        return (
            v.element_of(arguments.first_value()) if origin.endswith(("choice", "heappop")) else arguments.first_value()
        )

    def _result_of_cast(self, origin: str, arguments: Arguments) -> v.Value:
        call_node = arguments.node
        return (
            self.annotations.resolve(call_node.args[0], arguments.env)
            if isinstance(call_node, ast.Call) and call_node.args
            else None
        )

    def _result_of_partial(self, origin: str, arguments: Arguments) -> v.Value:
        wrapped_function = arguments.first_value()
        if isinstance(wrapped_function, v.Function):
            skips_first = wrapped_function.bound is not None
            self.record_arguments(
                wrapped_function.unit,
                [*wrapped_function.given, *arguments.positional[1:]],
                arguments,
                skip_first=skips_first,
            )
            return v.Function(
                wrapped_function.unit, wrapped_function.bound, (*wrapped_function.given, *arguments.positional[1:])
            )
        return v.Partial(wrapped_function)

    def _result_of_reduce(self, origin: str, arguments: Arguments) -> v.Value:
        element_value = v.element_of(arguments.positional[1]) if len(arguments.positional) > 1 else None
        initial_value = arguments.positional[2] if len(arguments.positional) > 2 else element_value
        callback_result = self.call_callback(
            arguments.first_value(), [v.join(initial_value, element_value), element_value], arguments
        )
        return v.join(initial_value, callback_result)

    def _result_of_sequence(self, origin: str, arguments: Arguments) -> v.Value:
        return self.call_builtin("sequence", "list", arguments)

    def _result_of_mapping(self, origin: str, arguments: Arguments) -> v.Value:
        return self.call_builtin("mapping", "dict", arguments)

    def _result_of_defaultdict(self, origin: str, arguments: Arguments) -> v.Value:
        factory_function = arguments.first_value()
        call_node = arguments.node
        if (
            factory_function is None
            and isinstance(call_node, ast.Call)
            and call_node.args
            and type(call_node.args[0]) is ast.Name
        ):
            return v.Mapping(
                element={"list": v.Sequence(items=[]), "set": v.Sequence(items=[])}.get(call_node.args[0].id, v.NUMBER)
            )
        return v.Mapping(element=self.call_callback(factory_function, [], arguments))

    def _result_of_counter(self, origin: str, arguments: Arguments) -> v.Value:
        return v.Mapping(element=v.NUMBER)

    def _result_of_import(self, origin: str, arguments: Arguments) -> v.Value:
        call_node = arguments.node
        module_name = _constant_text(call_node.args[0]) if isinstance(call_node, ast.Call) and call_node.args else ""
        return v.Imported(module_name) if module_name and not module_name.startswith(".") else None

    def _result_of_record(self, origin: str, arguments: Arguments) -> v.Value:
        """Returns the class that `namedtuple("Pair", "left right")` creates, as if it were a class of this file."""
        call_node = arguments.node
        if not (isinstance(call_node, ast.Call) and len(call_node.args) > 1):
            return None
        record_unit = self.records.get(call_node)
        if record_unit is None:
            record_unit = self.records[call_node] = v.ClassUnit(
                ast.ClassDef(_constant_text(call_node.args[0]), [], [], [], [])
            )
            record_unit.is_record = True
            record_unit.fields = _field_names(call_node.args[1])
        return v.Class(record_unit)

    def _result_of_chain(self, origin: str, arguments: Arguments) -> v.Value:
        return v.Sequence(v.join_all([v.element_of(value) for value in arguments.positional]))

    def _result_of_flatten(self, origin: str, arguments: Arguments) -> v.Value:
        return v.Sequence(v.element_of(v.element_of(arguments.first_value())))

    def _result_of_repeat(self, origin: str, arguments: Arguments) -> v.Value:
        return v.Sequence(value_from_container(arguments.first_value(), arguments.node))

    def _result_of_pairwise(self, origin: str, arguments: Arguments) -> v.Value:
        return v.Sequence(v.Sequence(v.element_of(arguments.first_value())))

    def _result_of_groups(self, origin: str, arguments: Arguments) -> v.Value:
        return v.Sequence(v.Sequence(items=[None, v.Sequence(v.element_of(arguments.first_value()))]))

    def _result_of_zip(self, origin: str, arguments: Arguments) -> v.Value:
        return self.call_builtin("zip", "zip", arguments)

    def _result_of_filter(self, origin: str, arguments: Arguments) -> v.Value:
        return self.call_builtin("filter", "filter", arguments)

    def _result_of_starmap(self, origin: str, arguments: Arguments) -> v.Value:
        row_value = v.element_of(arguments.positional[1]) if len(arguments.positional) > 1 else None
        argument_values = row_value.items if isinstance(row_value, v.Sequence) and row_value.items is not None else []
        return v.Sequence(self.call_callback(arguments.first_value(), argument_values, arguments))

    def _result_of_binary(self, origin: str, arguments: Arguments) -> v.Value:
        tensors = [value for value in arguments.positional if isinstance(value, v.Tensor)]
        return tensors[0].with_dtype("") if tensors and v.STRING not in arguments.positional else None

    _result_of_unary = _result_of_binary

    def _result_of_transform(self, origin: str, arguments: Arguments) -> v.Value:
        function = arguments.first_value()
        if function is None and not arguments.positional:  # @vmap(in_axes=0)
            return v.Partial(None)
        has_options = len(arguments.positional) > 1 or bool(arguments.keywords)
        return v.Derived(origin.rpartition(".")[2], function, has_options)

    def _result_of_callback(self, origin: str, arguments: Arguments) -> v.Value:
        """Returns the result of `ops.map(f, xs)` or `ops.scan(f, ...)`, where the op calls `f` with tensors."""
        last_name = origin.rpartition(".")[2]
        if last_name == "tree_map" and len(arguments.positional) > 1:
            return map_leaves(
                lambda leaves: self.call_callback(arguments.first_value(), leaves, arguments), arguments.positional[1:]
            )
        argument_tensor = v.Tensor(Tier.B, f"`{origin}` calls it with tensors", arguments.node)
        for value in arguments.positional:
            if isinstance(value, v.Function) and last_name != "cond":
                signature = value.unit.node.args
                self.call_callback(value, [argument_tensor] * len(signature.args), arguments)
        if last_name == "cond":
            return v.join_all([self.call_callback(value, [], arguments) for value in arguments.positional[1:3]])
        result_tensor = v.Tensor(Tier.B, f"`{origin}` returns tensors", arguments.node)
        return (
            v.Sequence(result_tensor) if last_name in ("scan", "while_loop") else result_tensor
        )  # the first parameter is the state, which may be a tuple


def _constant_text(node: ast.expr) -> str:
    return node.value if isinstance(node, ast.Constant) and isinstance(node.value, str) else ""


def _field_names(node: ast.expr) -> list[str]:
    """Returns the fields in `"a b"`, `"a, b"`, `["a", "b"]` or `[("a", int), ("b", float)]`."""
    if isinstance(node, (ast.List, ast.Tuple)):
        name_nodes = [elt.elts[0] if isinstance(elt, ast.Tuple) and elt.elts else elt for elt in node.elts]
        return [_constant_text(name_node) for name_node in name_nodes]
    return _constant_text(node).replace(",", " ").split()
