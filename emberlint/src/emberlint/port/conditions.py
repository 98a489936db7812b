"""The conditions on the arguments of a native call under which it equals the call of its op."""

import ast
import re
from collections.abc import Iterator, Mapping
from types import MappingProxyType
from typing import NamedTuple

from emberlint.knowledge.replacements import NEUTRAL, dtype_of_tensor_type, neutral_dtype
from emberlint.knowledge.signatures import Signature
from emberlint.port import layers, promises
from emberlint.port.own_methods import Methods
from emberlint.source.source_file import SourceFile


class Terms(NamedTuple):
    """The assumptions of a port: the dtype of Python floats, the libraries of the file, and the project's methods."""

    default_float: str = "float32"
    numpy_is_host: bool = False
    libraries: frozenset[str] = frozenset()  # the array libraries that the file imports
    own: Methods = MappingProxyType({})  # the methods of the classes of the project
    freed: frozenset[str] = frozenset()  # the names of modules of another library that the port binds anew
    modules: str = ""  # why modules and optimizers stay native, if they must
    is_left: bool = False  # whether native calls are left in another file, to which dtypes may come


# The parameters of ops that take tensors; numbers alone in their place get another dtype than NumPy gives them.
DATA = frozenset({"x", "x1", "x2", "a", "b", "y", "xs", "arrays", "operands", "xi", "array"})
HOLDING = DATA | {"fill_value", "values"}  # parameters in which NumPy also takes objects and texts
BUILTINS = {"float": "float64", "int": "int64", "bool": "bool_"}  # the dtypes as NumPy and PyTorch name them
# What the libraries make of Python floats; a port whose ops do the same need not look at the arguments. JAX makes
# float64 if `jax_enable_x64` is set, which the file need not tell, so the option of the port decides.
FLOATS = {"numpy": {"float64"}, "jax": {"float32", "float64"}}
HOST = "this file uses another library too, so NumPy's arrays are host data"
OWN = "may be an object of this project, which has such a method"
# Ops whose results have a dtype that no argument decides.
SAME_DTYPE = frozenset(
    {"all", "allclose", "any", "argmax", "argmin", "argsort", "argwhere", "array_equal", "count_nonzero", "isclose"}
    | {"isfinite", "isinf", "isnan", "nonzero"}
)
DEVICE_NAMES = frozenset({"cpu", "cuda", "mps", "gpu"})
CONVERSIONS = frozenset({"array", "asarray", "convert_to_tensor", "copy"})
CASTS = frozenset({"torch.Tensor.to", "torch.Tensor.type"})  # parameters that take other things than dtypes too
_COMPLEX = re.compile(r"complex|\bfft\b|\d[jJ]\b|\bconj")
_SEQUENCES = frozenset({"list", "tuple", "str", "object", "Iterable", "Sequence", "Collection"})
_CONVERTING = frozenset({"ValueError", "TypeError", "Exception", "BaseException"})
_EXACT = frozenset({"decimal", "fractions"})
_LOGICAL = (ast.Compare, ast.BoolOp, ast.UnaryOp)
_INTEGRAL = frozenset({"size", "ndim"})


def reason_against(
    file: SourceFile, signature: Signature, call: ast.Call, arguments: Mapping[str, ast.expr], terms: Terms
) -> str | None:
    """Returns why a call with these arguments, by the op's parameters, may differ from that of the op, or None."""
    library = signature.native.partition(".")[0]
    dtype, first_argument = arguments.get("dtype"), next(iter(arguments.values()), None)
    if signature.when == "tensor type":
        if dtype is None or dtype_of_tensor_type(file.native_origin(dtype) or "") is None:
            return f"`{file.segment(call)}` names no type of tensors"
    elif dtype is not None and not is_dtype(file, dtype, is_certain=signature.native in CASTS):
        return f"`{file.segment(dtype)}` has no neutral form, or may be none: pass a dtype such as ops.float32"
    if signature.when == "device" and not is_device(file, arguments["device"]):
        return f"`{file.segment(arguments['device'])}` may be something else than a device"
    if signature.when == "sizes" and not all(_is_size(file, arg) for arg in call.args):
        return f"a size of `{file.segment(call)}` may be -1, which ops.{signature.op} refuses"
    reason = reason_for_function(file, signature, arguments["fn"]) if "fn" in arguments else None
    if reason is None and signature.when in layers.CONDITIONS:
        reason = layers.CONDITIONS[signature.when](file, call, arguments)
    if reason is not None:
        return reason
    caught_exception = _caught_exception(file, call)
    if caught_exception:
        return f"`except {caught_exception}` catches its error, and ops raise errors of their own"
    if signature.op in CONVERSIONS and first_argument is not None and _may_hold_anything(file, first_argument):
        return f"`{file.segment(first_argument)}` may be a list of something else than numbers, which ops refuse"
    if library == "numpy":
        reason = _reason_for_numpy(file, signature, call, arguments)
        if reason is not None:
            return reason
    if terms.default_float not in FLOATS.get(library, {"float32"}):
        reason = _reason_for_numbers(file, signature, arguments, terms.default_float)
        if reason is not None:
            return reason
    return HOST if library == "numpy" and terms.numpy_is_host else None


def _reason_for_numpy(
    file: SourceFile, signature: Signature, call: ast.Call, arguments: Mapping[str, ast.expr]
) -> str | None:
    """Returns why an op may refuse an argument that NumPy takes, such as a mask or objects, or None."""
    first_argument = next(iter(arguments.values()), None)
    masked_argument = next((argument for argument in arguments.values() if _is_masked(file, argument)), None)
    if masked_argument is not None:
        return f"`{file.segment(masked_argument)}` has a mask, which ops refuse: pass the mask by itself"
    object_argument = next(
        (argument for name, argument in arguments.items() if name in HOLDING and file.inference.holds_object(argument)),
        None,
    )
    if object_argument is not None:
        return f"`{file.segment(object_argument)}` may hold something else than numbers, which ops refuse"
    exact_type = _exact_type(file)
    stored_arguments = [argument for name, argument in arguments.items() if name.partition(" ")[0] in HOLDING]
    if exact_type and not all(_is_number(file, argument) for argument in stored_arguments):
        return f"the file imports {exact_type}, whose numbers NumPy takes as objects, and which ops refuse"
    if signature.op in CONVERSIONS and first_argument is not None and _is_untested_optional(file, first_argument):
        return f"`{file.segment(first_argument)}` may be None, which ops refuse"
    function_name = promises.function_promising_number(file, call)
    if function_name:
        return (
            f"`{function_name}` promises a number, and ops.{signature.op} gives a tensor: wrap it in float() or the "
            "like"
        )
    return None


def reason_for_function(file: SourceFile, signature: Signature, node: ast.expr | ast.FunctionDef) -> str | None:
    """Returns why a transform of a function may differ from that of the op, or None."""
    if signature.when == "real" and _COMPLEX.search(file.text):
        return "gradients by complex numbers, which this file has, are conjugates of those of JAX"
    if signature.when not in ("function", "scalar"):
        return None
    function = _function_of_expression(file, node)
    if function is None and isinstance(node, ast.FunctionDef):
        return "a method is given its object too, which is no tensor"
    if function is None:
        condition_text = "be a module" if signature.when == "function" else "return a tuple"
        return f"`{file.segment(node)}` may {condition_text}, which ops.{signature.op} refuses"
    returned_values = [
        node.value for node in ast.walk(function) if isinstance(node, ast.Return) and node.value is not None
    ]
    result_nodes = [function.body] if isinstance(function, ast.Lambda) else returned_values
    if signature.when == "scalar" and not all(_is_single_value(file, result_node) for result_node in result_nodes):
        return f"the function may return a tuple: pass has_aux=True to ops.{signature.op} if it does"
    return None


def _function_of_expression(file: SourceFile, node: ast.expr | ast.FunctionDef) -> ast.Lambda | ast.FunctionDef | None:
    """Returns the function of this file, and no method, that an expression is, or None."""
    bound_nodes = [binding.node for binding in file.names.bindings(node)] if isinstance(node, ast.Name) else [node]
    only_binding = bound_nodes[0] if len(bound_nodes) == 1 else None
    is_method = only_binding is not None and isinstance(file.parent(only_binding), ast.ClassDef)
    return only_binding if isinstance(only_binding, ast.Lambda | ast.FunctionDef) and not is_method else None


def _is_single_value(file: SourceFile, node: ast.expr) -> bool:
    """Returns whether an expression is known to be a single value, not a tuple."""
    return isinstance(node, ast.BinOp | ast.UnaryOp) or file.inference.evidence(node) is not None


def _reason_for_numbers(
    file: SourceFile, signature: Signature, given: Mapping[str, ast.expr], default_float: str
) -> str | None:
    """Returns why a call that may be given Python numbers differs from that of the op, or None."""
    dtype, first_argument = given.get("dtype"), next(iter(given.values()), None)
    if signature.when == "integers" and dtype is None and not all(_is_integer(argument) for argument in given.values()):
        return f"ops.{signature.op} gives {default_float} for Python floats: name the dtype"
    if (
        signature.when == "dtype"
        and dtype is None
        and (first_argument is None or file.inference.evidence(first_argument) is None)
    ):
        return f"ops.{signature.op} gives {default_float} for Python floats: name the dtype"
    data_arguments = [argument for name, argument in given.items() if name in DATA and signature.when != "dtype"]
    if (
        data_arguments
        and signature.op not in SAME_DTYPE
        and all(_is_number(file, argument) for argument in data_arguments)
    ):
        return (
            f"ops.{signature.op} gives {default_float} for Python numbers, where {signature.native.partition('.')[0]} "
            "may not"
        )
    return None


def is_dtype(file: SourceFile, node: ast.expr, is_certain: bool = False) -> bool:
    """Returns whether every op understands an argument as a dtype: the dtypes of all libraries, but not all names.

    An argument of unknown value is taken for a dtype, unless it must be certain that it is one.
    """
    if isinstance(node, ast.Constant):
        return node.value is None or node.value in NEUTRAL
    origin = file.native_origin(node)
    if origin is not None:
        return neutral_dtype(origin) is not None
    if isinstance(node, ast.Name) and file.names.lookup(node) is None:
        return node.id in BUILTINS
    if not is_certain:
        return True
    if isinstance(node, ast.Name) and node.id == "dtype":  # a name counts, unless it is bound to a type of tensors
        bound_values = [binding.value for binding in file.names.bindings(node) if isinstance(binding.value, ast.expr)]
        return all(
            file.native_origin(value) is None or neutral_dtype(f"{file.native_origin(value)}") is not None
            for value in bound_values
        )
    is_neutral = f"{file.names.origin(node)}".startswith(file.settings.namespaces)
    return isinstance(node, ast.Attribute) and (node.attr == "dtype" or is_neutral)


def is_device(file: SourceFile, node: ast.expr) -> bool:
    """Returns whether an argument is a device, by its value or by its name."""
    if isinstance(node, ast.Constant):
        return isinstance(node.value, str) and node.value.partition(":")[0] in DEVICE_NAMES
    if isinstance(node, ast.Call):
        return file.native_origin(node.func) == "torch.device"
    return "device" in (getattr(node, "id", "") or getattr(node, "attr", ""))


def _caught_exception(file: SourceFile, call: ast.Call) -> str:
    """Returns the native exception that a handler around a call catches, or an empty string."""
    child: ast.AST = call
    for ancestor in file.ancestors(call):
        if isinstance(ancestor, ast.Try) and child in ancestor.body:
            exception_types = [handler.type for handler in ancestor.handlers if handler.type is not None]
            exception_nodes = [
                exception_node
                for exception_type in exception_types
                for exception_node in (
                    exception_type.elts if isinstance(exception_type, ast.Tuple) else [exception_type]
                )
            ]
            native_exception = next(
                (
                    exception_node
                    for exception_node in exception_nodes
                    if file.native_origin(exception_node) is not None
                ),
                None,
            )
            if native_exception is not None:
                return file.segment(native_exception)
        child = ancestor
    return ""


def _is_masked(file: SourceFile, node: ast.expr) -> bool:
    """Returns whether an expression calls a function of `numpy.ma`."""
    return isinstance(node, ast.Call) and (file.native_origin(node.func) or "").startswith("numpy.ma.")


def _exact_type(file: SourceFile) -> str:
    """Returns the exact type of numbers that a file imports from the standard library, or an empty string."""
    imported_origins = (
        binding.origin or "" for name_bindings in file.names.root.bindings.values() for binding in name_bindings
    )
    return next((origin for origin in imported_origins if origin.partition(".")[0] in _EXACT), "")


def _may_hold_anything(file: SourceFile, node: ast.expr) -> bool:
    """Returns whether an argument was just tested to be a list or the like, or whether a handler expects it to fail."""
    lacks_evidence = file.inference.evidence(node) is None
    child: ast.AST = node
    for ancestor in file.ancestors(node):
        if (
            isinstance(ancestor, ast.Try)
            and lacks_evidence
            and child in ancestor.body
            and any(map(_is_conversion, ancestor.handlers))
        ):
            return True
        if isinstance(ancestor, ast.If) and child in ancestor.body and _is_test_for_sequence(ancestor.test, node):
            return True
        child = ancestor
    return False


def _is_conversion(handler: ast.ExceptHandler) -> bool:
    """Returns whether a handler catches the errors of values that no array can hold."""
    return handler.type is None or bool(_names_in(handler.type) & _CONVERTING)


def _is_test_for_sequence(test: ast.expr, node: ast.expr) -> bool:
    """Returns whether a condition is `isinstance(node, list)`, or for another type whose items are of any type."""
    if not (isinstance(test, ast.Call) and isinstance(test.func, ast.Name) and test.func.id == "isinstance"):
        return False
    return (
        len(test.args) == 2 and ast.dump(test.args[0]) == ast.dump(node) and bool(_names_in(test.args[1]) & _SEQUENCES)
    )


def _names_in(node: ast.expr) -> set[str]:
    """Returns the names in an expression, those after a dot too."""
    inner_nodes = list(ast.walk(node))
    return {node_.id for node_ in inner_nodes if isinstance(node_, ast.Name)} | {
        inner_node.attr for inner_node in inner_nodes if isinstance(inner_node, ast.Attribute)
    }


def _is_untested_optional(file: SourceFile, node: ast.expr) -> bool:
    """Returns whether an argument is a parameter with the default None that is neither tested nor replaced before."""
    enclosing_functions = (
        ancestor for ancestor in file.ancestors(node) if isinstance(ancestor, ast.FunctionDef | ast.AsyncFunctionDef)
    )
    function = next(enclosing_functions, None)
    if function is None or not isinstance(node, ast.Name):
        return False
    arguments = function.args
    parameters = [*arguments.posonlyargs, *arguments.args]
    optional_parameters = [
        *zip(parameters[len(parameters) - len(arguments.defaults) :], arguments.defaults, strict=True),
        *zip(arguments.kwonlyargs, arguments.kw_defaults, strict=True),
    ]
    none_default_names = {
        parameter.arg
        for parameter, default in optional_parameters
        if isinstance(default, ast.Constant) and default.value is None
    }
    test_nodes = [node.test for node in ast.walk(function) if isinstance(node, ast.If | ast.IfExp | ast.Assert)]
    name_nodes = [
        inner_node for inner_node in ast.walk(function) if isinstance(inner_node, ast.Name) and inner_node.id == node.id
    ]
    is_rebound = any(
        isinstance(name_node.ctx, ast.Store) and name_node.lineno < node.lineno for name_node in name_nodes
    )
    return (
        node.id in none_default_names
        and not is_rebound
        and not any(node in ast.walk(test) for test in test_nodes for node in name_nodes)
    )


def _is_size(file: SourceFile, node: ast.expr, depth: int = 0) -> bool:
    """Returns whether an argument is a length, or several, so that it is not negative."""
    if isinstance(node, ast.Constant):
        return type(node.value) is int and node.value >= 0
    if isinstance(node, ast.Tuple | ast.List):
        return all(_is_size(file, elt, depth) for elt in node.elts)
    if isinstance(node, ast.Starred | ast.Subscript):
        return _is_size(file, node.value, depth)
    if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id in ("max", "min", "map"):
        return all(
            _is_len(arg) or _is_size(file, arg, depth) for arg in node.args[: 1 if node.func.id == "map" else None]
        )
    if isinstance(node, ast.Call):
        return _is_len(node.func) or (isinstance(node.func, ast.Attribute) and node.func.attr == "size")
    if isinstance(node, ast.Name) and depth < 3:
        bound_values = [binding.value if binding.kind == "value" else None for binding in file.names.bindings(node)]
        return bool(bound_values) and all(
            bound_value is not None and _is_size(file, bound_value, depth + 1) for bound_value in bound_values
        )
    return isinstance(node, ast.Attribute) and node.attr in ("shape", "size")


def _is_len(node: ast.expr) -> bool:
    return isinstance(node, ast.Name) and node.id == "len"


def _is_integer(node: ast.expr) -> bool:
    if isinstance(node, ast.Constant):
        return type(node.value) is int
    if isinstance(node, ast.UnaryOp):
        return _is_integer(node.operand)
    if isinstance(node, ast.BinOp):
        return not isinstance(node.op, ast.Div | ast.Pow) and _is_integer(node.left) and _is_integer(node.right)
    if isinstance(node, ast.Call):
        return isinstance(node.func, ast.Name) and node.func.id in ("len", "int")
    if isinstance(node, ast.Subscript):
        return isinstance(node.value, ast.Attribute) and node.value.attr == "shape"
    return isinstance(node, ast.Attribute) and node.attr in _INTEGRAL


def _is_number(file: SourceFile, node: ast.expr) -> bool:
    """Returns whether an argument is a Python number or a sequence of nothing but numbers."""
    if isinstance(node, ast.Constant):
        return True
    if isinstance(node, ast.List | ast.Tuple):
        return all(_is_number(file, elt) for elt in node.elts)
    if isinstance(node, ast.ListComp | ast.GeneratorExp):
        return _is_number(file, node.elt)
    if isinstance(node, ast.Starred) or file.inference.evidence(node) is not None:
        return False
    if isinstance(node, ast.Name) and file.inference.is_number(node):
        # A comparison of unknown values counts as a number, but it may be a tensor.
        return not any(isinstance(binding.value, _LOGICAL) for binding in file.names.bindings(node))
    return file.inference.is_no_tensor(node) and not any(_tensor_elements(file, node))


def _tensor_elements(file: SourceFile, node: ast.expr) -> Iterator[bool]:
    """Yields whether each element of a container, where it is bound to a literal, is a tensor."""
    bindings = file.names.bindings(node) if isinstance(node, ast.Name) else []
    for binding in bindings:
        if isinstance(binding.value, ast.List | ast.Tuple):
            yield from (file.inference.evidence(item) is not None for item in binding.value.elts)
        elif not isinstance(binding.value, ast.Constant | ast.BinOp | ast.Call):
            yield True
