"""The results of calls: of functions and classes of the file, of layers, of methods of tensors and containers."""

import ast
from abc import abstractmethod
from collections.abc import Callable

from emberlint.config.settings import Settings
from emberlint.config.tiers import Tier
from emberlint.inference import values as v
from emberlint.inference.annotations import typed_dict_value
from emberlint.inference.expressions import Expressions, value_from_container
from emberlint.inference.forms import map_leaves, refine
from emberlint.inference.methods import Arguments, call_mapping_method, call_sequence_method
from emberlint.knowledge.kinds import (
    BUILTINS,
    CONTAINER_METHODS,
    FRAME_METHODS,
    KEEPING_METHODS,
    PLAIN_METHODS,
    WEIGHT_METHODS,
)

_NESTED = 5  # how deeply to follow calls into functions that are not analysed yet
FORWARD = ("call", "forward", "__call__")


class Calls(Expressions):
    """Infers results of calls; subclasses implement `call_imported` and `call_builtin` for functions of other files."""

    def __init__(self, settings: Settings) -> None:
        super().__init__(settings)
        self.nested = 0
        self._by_callee: dict[type, Callable[[v.Value, Arguments], v.Value]] = {
            v.Imported: self.call_imported,
            v.Function: self._call_function,
            v.Class: self._call_class,
            v.Instance: self._call_instance,
            v.Partial: lambda callee, args: self.call_value(callee.function, args),  # type: ignore[union-attr]
            v.Derived: self._call_derived,
            v.Returning: lambda callee, args: _result_with_arguments(callee.result, args),  # type: ignore[union-attr]
            v.Choice: lambda callee, args: v.join_all([self.call_value(option, args) for option in callee.options]),  # type: ignore[union-attr]
            v.Layer: self._call_layer,
            v.Other: lambda callee, arguments: None if v.is_opaque(callee) else callee,
        }

    @abstractmethod
    def analyse(self, unit: v.FunctionUnit) -> None:
        """Analyses the body of a function to infer its results."""

    @abstractmethod
    def mark_readers(self, container: v.Sequence | v.Mapping) -> None:
        """Marks the functions that read a changed container for another analysis."""

    @abstractmethod
    def call_imported(self, callee: v.Value, arguments: Arguments) -> v.Value:
        """Returns the inferred result of calling an imported function or class."""

    @abstractmethod
    def call_builtin(self, kind: str, name: str, arguments: Arguments) -> v.Value:
        """Returns the inferred result of calling a builtin."""

    def _Call(self, node: ast.Call, env: v.Env) -> v.Value:
        function = node.func
        receiver: v.Value = None
        if type(function) is ast.Attribute:
            receiver = self.evaluate(function.value, env)
            if isinstance(receiver, (v.Tensor, v.Sequence, v.Mapping)):
                arguments = self._arguments(node, env)
                return self._call_container_method(receiver, function.attr, arguments)
            callee_value = self.attribute_value(receiver, function)
            self.values[function] = callee_value
        else:
            callee_value = self.evaluate(function, env)
            if callee_value is None and type(function) is ast.Name:
                is_bound, _ = self.lookup(function.id, env)
                if not is_bound and function.id in BUILTINS:
                    return self.call_builtin(BUILTINS[function.id], function.id, self._arguments(node, env))
        arguments = self._arguments(node, env)
        if callee_value is None:
            inherited_result = (
                self._call_inherited(receiver, function.attr, arguments)
                if isinstance(function, ast.Attribute)
                else None
            )
            return self._call_unknown(receiver, arguments) if inherited_result is None else inherited_result
        return self.call_value(callee_value, arguments)

    def _arguments(self, node: ast.Call, env: v.Env) -> Arguments:
        arguments = Arguments(node, env, [self.evaluate(arg, env) for arg in node.args])
        for keyword in node.keywords:
            keyword_value = self.evaluate(keyword.value, env)
            if keyword.arg is not None:
                arguments.keywords[keyword.arg] = keyword_value
        arguments.starred = any(type(arg) is ast.Starred for arg in node.args)
        return arguments

    def call_value(self, callee: v.Value, arguments: Arguments) -> v.Value:
        """Returns the inferred result of calling a value: a function, a class, an instance or an import."""
        call_handler = self._by_callee.get(type(callee))
        return None if call_handler is None else call_handler(callee, arguments)

    # Calls of functions and classes of this file

    def _call_function(self, callee: v.Value, arguments: Arguments) -> v.Value:
        assert isinstance(callee, v.Function)
        function_unit = callee.unit
        self.record_arguments(
            function_unit, [*callee.given, *arguments.positional], arguments, skip_first=callee.bound is not None
        )
        if isinstance(callee.bound, (v.Instance, v.Class)) and function_unit.owner is not None:
            overriding_unit = callee.bound.unit.methods.get(function_unit.name, function_unit)
            function_unit = overriding_unit if overriding_unit.kind == function_unit.kind else function_unit
        result_value = self.result_of_function(function_unit)
        for name, (is_global, value) in function_unit.written.items():
            defining_env = function_unit.env
            while is_global and defining_env.parent is not None:
                defining_env = defining_env.parent
            defining_env.vars[name] = v.join(defining_env.vars.get(name, v.NONE), value)
        return result_value

    def result_of_function(self, unit: v.FunctionUnit) -> v.Value:
        """Returns the result of a function, and analyses the function first if necessary."""
        if self.unit is not None:
            unit.readers[self.unit] = None
        else:
            self.is_forward = True
        if unit.state is v.Progress.NEW and self.nested < _NESTED:
            self.nested += 1
            self.analyse(unit)
            self.nested -= 1
        known_value = (
            v.Sequence(v.join_all(unit.yields)) if unit.yields else v.join_all(unit.returns) if unit.returns else None
        )
        refined_value = refine(unit.declared, known_value)
        if isinstance(refined_value, v.Tensor):
            return refined_value.pass_on(f"`{unit.name}` returns it", unit.node, refined_value.dtype)
        return refined_value

    def call_method(self, instance: v.Instance, name: str, arguments: list[v.Value], node: ast.expr) -> v.Value:
        """Returns the result of a method of a class of this file, or None if the class has no such method."""
        method_unit = instance.unit.method(name)
        if method_unit is None:
            return None
        return self._call_function(
            v.Function(method_unit, instance), Arguments(node, v.Env(None, self.unit), arguments)
        )

    def record_arguments(
        self, unit: v.FunctionUnit, positional: list[v.Value], arguments: Arguments, skip_first: bool
    ) -> None:
        """Records the arguments of a call in the unit of the called function."""
        if unit.is_fixed:
            return
        signature = unit.node.args
        positional_names = [parameter.arg for parameter in (*signature.posonlyargs, *signature.args)]
        if skip_first:
            positional_names = positional_names[1:]
        if not arguments.starred:
            for name, value in zip(positional_names, positional, strict=False):
                self._record_argument(unit, name, value)
            if signature.vararg is not None and len(positional) > len(positional_names):
                self._record_argument(
                    unit, signature.vararg.arg, v.Sequence(v.join_all(positional[len(positional_names) :]))
                )
        for name, value in arguments.keywords.items():
            self._record_argument(unit, name, value)

    def _record_argument(self, unit: v.FunctionUnit, name: str, value: v.Value) -> None:
        if isinstance(value, v.Tensor):
            value = value.pass_on(f"`{unit.name}` receives it as `{name}`", value.node, value.dtype)
        if name not in unit.given:
            unit.given[name] = value
            has_changed = value is not None
        else:
            value_before = unit.given[name]
            joined_value = v.join(value_before, value)
            has_changed = not v.are_equal_values(value_before, joined_value)
            unit.given[name] = joined_value
        if has_changed and unit.state is not v.Progress.NEW:
            self.dirty[unit] = None

    def _call_class(self, callee: v.Value, arguments: Arguments) -> v.Value:
        assert isinstance(callee, v.Class)
        class_unit = callee.unit
        if class_unit.is_tensor:
            return v.Tensor(Tier.B, f"`{class_unit.node.name}` is a subclass of a tensor type", arguments.node)
        if class_unit.is_dict:
            mapping = typed_dict_value(class_unit)
            for name, value in arguments.keywords.items():
                mapping.put(name, value_from_container(value, arguments.node))
            return mapping
        constructor = class_unit.method("__init__") or class_unit.method("__new__")
        if constructor is not None:
            self.record_arguments(constructor, arguments.positional, arguments, skip_first=True)
        elif class_unit.is_record:
            self._fill_fields(class_unit, arguments)
        return v.Instance(class_unit)

    def _fill_fields(self, unit: v.ClassUnit, arguments: Arguments) -> None:
        field_names = [name for class_unit in reversed(unit.class_and_bases()) for name in class_unit.fields]
        for name, value in (*zip(field_names, arguments.positional, strict=False), *arguments.keywords.items()):
            if name not in unit.declared:
                self.join_attribute(
                    unit, name, value_from_container(value, arguments.node, f"a field of `{unit.node.name}`")
                )

    def _call_instance(self, callee: v.Value, arguments: Arguments) -> v.Value:
        assert isinstance(callee, v.Instance)
        method_names = FORWARD if callee.unit.is_module else ("__call__",)
        for name in method_names:
            method_unit = callee.unit.method(name)
            if method_unit is not None:
                call_value = self._call_function(v.Function(method_unit, callee), arguments)
                if call_value is not None or method_unit.returns or method_unit.yields or not callee.unit.is_module:
                    return call_value
                break  # the method only raises: a subclass must override it
        return self._call_layer(callee, arguments) if callee.unit.is_module else None

    def _call_layer(self, callee: v.Value, arguments: Arguments) -> v.Value:
        tensors = [value for value in arguments.all_values() if isinstance(value, v.Tensor)]
        if tensors:
            return tensors[0].pass_on("a layer called with a tensor returns a tensor", arguments.node)
        return v.Tensor(Tier.C, "a layer returns a tensor", arguments.node)

    def _call_inherited(self, base: v.Value, name: str, arguments: Arguments) -> v.Value:
        """Returns the result of an inherited method of a module class, such as `self.add_weight(...)`."""
        if not isinstance(base, v.Instance):
            return None
        origins = [origin for unit in base.unit.class_and_bases() for origin in unit.foreign]
        if not (base.unit.is_module or any(map(self.kinds.is_in_tensor_library, origins))):
            return None
        if name in WEIGHT_METHODS:
            return v.Tensor(Tier.A, f"`{name}` of a module class creates a tensor", arguments.node)
        stored_node = arguments.node.args[0] if isinstance(arguments.node, ast.Call) and arguments.node.args else None
        if name in KEEPING_METHODS and isinstance(stored_node, ast.Constant) and len(arguments.positional) > 1:
            attribute_name, value = str(stored_node.value), arguments.positional[1]
            stored_value = (
                value.pass_on(f"kept in `.{attribute_name}`", arguments.node) if isinstance(value, v.Tensor) else value
            )
            self.join_attribute(base.unit, attribute_name, stored_value)
            return v.NONE
        return None

    def _call_unknown(self, base: v.Value, arguments: Arguments) -> v.Value:
        """Returns the result of an unknown method or layer called with a tensor inside a module class."""
        is_in_module = self.unit is not None and self.unit.owner is not None and self.unit.owner.is_module
        tensor = arguments.first_value()
        if (
            is_in_module
            and isinstance(tensor, v.Tensor)
            and (base is None or isinstance(base, (v.Instance, v.Sequence)))
        ):
            return v.Tensor(Tier.C, "called with a tensor inside a module class", arguments.node, tensor)
        return None

    def _call_derived(self, callee: v.Value, arguments: Arguments) -> v.Value:
        assert isinstance(callee, v.Derived)
        function_result = self.call_value(callee.function, arguments)
        if callee.kind not in ("grad", "value_and_grad", "jacobian", "hessian"):
            return function_result
        gradient_value = self._gradient_value(callee, arguments)
        return (
            v.Sequence(items=[function_result, gradient_value]) if callee.kind == "value_and_grad" else gradient_value
        )

    def _gradient_value(self, callee: v.Derived, arguments: Arguments) -> v.Value:
        """Returns the gradient for the first argument, of its dtype, and of its form if it is a dict."""

        def gradient_of_leaf(parts: list[v.Value]) -> v.Tensor:
            gradient_dtype = parts[0].dtype if isinstance(parts[0], v.Tensor) and not callee.options else ""
            reason_text = (
                "a gradient"
                if callee.kind == "value_and_grad"
                else f"a function made by `{callee.kind}` returns gradients"
            )
            return v.Tensor(Tier.B, reason_text, arguments.node, dtype=gradient_dtype)

        has_dict_form = (
            callee.kind in ("grad", "value_and_grad")
            and isinstance(arguments.first_value(), v.Mapping)
            and not callee.options
        )
        return (
            map_leaves(gradient_of_leaf, [arguments.first_value()])
            if has_dict_form
            else gradient_of_leaf([arguments.first_value()])
        )

    def call_callback(self, function: v.Value, values: list[v.Value], arguments: Arguments) -> v.Value:
        """Returns the result of a function passed to another function, which calls it with these values."""
        return self.call_value(function, Arguments(arguments.node, arguments.env, values))

    # Calls of methods of tensors and containers

    def _call_container_method(self, base: v.Value, name: str, arguments: Arguments) -> v.Value:
        if isinstance(base, v.Tensor):
            return self._call_tensor_method(base, name, arguments)
        assert isinstance(base, (v.Sequence, v.Mapping))
        element_before = base.element
        result_value = (
            call_mapping_method(base, name, arguments)
            if isinstance(base, v.Mapping)
            else call_sequence_method(base, name, arguments)
        )
        if not v.are_equal_values(element_before, base.element):
            self.mark_readers(base)
        return result_value

    def _call_tensor_method(self, base: v.Tensor, name: str, arguments: Arguments) -> v.Value:
        if name in PLAIN_METHODS or name.startswith("is_"):
            return v.NUMBER
        if name == "size" and not arguments.all_values() and not arguments.starred:
            return v.shape_value()
        if name in FRAME_METHODS:
            return None
        function = arguments.node.func if isinstance(arguments.node, ast.Call) else None
        if isinstance(function, ast.Attribute):
            attribute_value = self.attribute_value(base, function)
            if isinstance(attribute_value, v.Other):  # t.size(0)
                return attribute_value
            if (
                attribute_value is None
                and type(function.value) is ast.Name
                and self._excludes_tensor(function.value.id)
            ):
                return None
        result_tensor = base.pass_on(f"`.{name}()` of a tensor", arguments.node)
        return v.Sequence(result_tensor) if name in CONTAINER_METHODS else result_tensor

    def _excludes_tensor(self, name: str) -> bool:
        return self.unit is not None and name in self.unit.contrary


def _result_with_arguments(result: v.Value, arguments: Arguments) -> v.Value:
    """Returns the result of a call, with the arguments in place of the parameters that the function passes through."""
    if isinstance(result, v.PassedArgument):
        argument = arguments.keywords.get(result.name)
        if result.at < len(arguments.positional) and not arguments.starred:
            argument = arguments.positional[result.at]
        return argument.pass_on("passed through a function", arguments.node) if isinstance(argument, v.Tensor) else None
    if isinstance(result, v.Sequence) and result.items is not None:
        return v.Sequence(items=[_result_with_arguments(item, arguments) for item in result.items])
    return result
