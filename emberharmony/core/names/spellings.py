"""What other libraries call the ops and their parameters, and the hints for unknown names, which suggest ours.

Nothing imports this module until a name is unknown, so the tables cost no program anything.
"""

import sys

from emberharmony.core.deferred import module_of
from emberharmony.core.errors import ArgumentTypeError, suggest
from emberharmony.core.names import elsewhere, relatives
from emberharmony.core.names.op_names import NAMES as NAMES
from emberharmony.core.registry import ALIASES, OPS

_NEAR = 0.75
"""How alike a name must be to be suggested: below that, unrelated names are."""

NAMESPACES = ("ops", "ops.fft", "ops.image", "ops.linalg", "ops.nn", "ops.random")

KEYWORDS: dict[str, tuple[str, ...]] = {
    "dim": ("axis", "axes"),
    "dims": ("axes", "axis", "shape"),
    "in_dims": ("in_axes",),
    "out_dims": ("out_axes",),
    "dimension": ("axis",),
    "perm": ("axes",),
    "axes": ("axis",),
    "axis": ("axes",),
    "reduction_indices": ("axis",),
    "keepdim": ("keepdims",),
    "keep_dims": ("keepdims",),
    **dict.fromkeys(("input", "self", "a", "array", "arr", "tensor", "data", "X"), ("x", "x1", "inputs")),
    **dict.fromkeys(("other", "y", "b"), ("x2",)),
    **dict.fromkeys(("tensors", "arrays", "values"), ("xs",)),
    **dict.fromkeys(("a_min", "min_value", "clip_value_min", "minimum", "lower"), ("x_min", "minval")),
    **dict.fromkeys(("a_max", "max_value", "clip_value_max", "maximum", "upper"), ("x_max", "maxval")),
    "low": ("minval",),
    "high": ("maxval",),
    **dict.fromkeys(("ddof", "unbiased"), ("correction",)),
    **dict.fromkeys(("size", "newshape", "new_shape"), ("shape",)),
    **dict.fromkeys(("value", "fill"), ("fill_value", "constant_values")),
    "pad": ("pad_width",),
    "paddings": ("pad_width",),
    **dict.fromkeys(("reps", "multiples"), ("repeats",)),
    "shifts": ("shift",),
    **dict.fromkeys(("end", "limit"), ("stop",)),
    "steps": ("num",),
    "delta": ("step",),
    "index": ("indices", "key"),
    "src": ("updates",),
    **dict.fromkeys(("split_size", "num_or_size_splits", "sections", "indices"), ("indices_or_sections",)),
    **dict.fromkeys(("std", "scale", "sigma"), ("stddev",)),
    "loc": ("mean",),
    **dict.fromkeys(("rng", "key"), ("generator", "seed")),
    "p": ("ord", "rate"),
    "norm": ("ord", "order"),
    "eps": ("epsilon",),
    "weight": ("gamma", "kernel"),
    "depth": ("num_classes",),
    "largest": ("descending",),
    "right": ("side",),
    "some": ("full_matrices",),
    "stride": ("strides",),
    "dilation": ("dilation_rate",),
    **dict.fromkeys(("labels", "y_true"), ("target",)),
    **dict.fromkeys(("logits", "y_pred"), ("output",)),
}
"""By the keyword in another library, our parameters with its meaning; the first one that the op has is suggested."""


PUBLIC = (*NAMESPACES, "nn", "nn.losses", "nn.metrics", "nn.data", "nn.init", "optim", "optim.schedules", "io", "")
"""The packages in which a name is looked for; "" is the package itself."""


def public_names(space: str) -> list[str]:
    """Returns the public names of a package such as "ops.linalg", "nn" or ""; of one that is none, no names."""
    module_name = f"emberharmony.{space}".rstrip(".")
    # The program may not have imported a public package, and the name may be there.
    module = module_of(module_name) if space in PUBLIC else sys.modules.get(module_name)
    return [] if module is None else list(getattr(module, "__all__", None) or dir(module))


def hint_for_name(name: str, space: str = "ops", called: str = "ops") -> str:
    """Returns a hint such as `"; use ops.clip(x, x_min, x_max)"` or `"; did you mean 'clip'?"`.

    A name that resembles none gets what to do without one; in a module that is not public the hint is empty.

    Args:
        name: the unknown name.
        space: the namespace in which it was looked up.
        called: the name that stands for `ops` in the hint.
    """
    return counterpart_hint(name, space, called) or elsewhere.WITHOUT_COUNTERPART.get(space.partition(".")[0], "")


def counterpart_hint(name: str, space: str = "ops", called: str = "ops") -> str:
    """Returns a hint with what replaces or resembles an unknown name, or an empty string; see `hint_for_name`."""
    advice = elsewhere.NAMES.get(space, {}).get(name)
    is_ops_namespace = space in NAMESPACES
    qualified_names = [
        f"{namespace}.{name}".removeprefix(".")
        for namespace in (NAMESPACES if is_ops_namespace else PUBLIC)
        if namespace != space and name in public_names(namespace)
    ]
    if advice:
        hint = f"; {advice}"
    elif qualified_names:
        hint = f"; did you mean {' or '.join(qualified_names)}?"
    elif space == "nn.functional":
        return counterpart_hint(name)
    elif is_ops_namespace and name in OPS and name not in public_names("ops"):
        return f"; it is an op of your own, which is called by its name alone: {name}(...)"
    elif name in NAMES and is_ops_namespace:
        hint = f"; use ops.{NAMES[name]}"
    elif is_ops_namespace and (
        names_elsewhere := [
            f"{namespace}.{name}" for namespace in PUBLIC if namespace and name in public_names(namespace)
        ]
    ):
        return f"; did you mean {' or '.join(names_elsewhere[:2])}?"
    elif rule_hint := relatives.hint_by_rule(name, space, public_names(space), NAMES):
        hint = f"; {rule_hint}"
    elif is_ops_namespace and f"{name.removesuffix('_loss')}" in public_names("nn.losses"):
        return f"; use nn.losses.{name.removesuffix('_loss')}(outputs, target)"
    elif other_spelling := _respelled_name(name, space):
        return f"; did you mean {other_spelling}?"
    elif library_hint := relatives.hint_for_other_library(name, space, public_names(space)):
        return f"; {library_hint}"
    else:
        return _nearest_hint(name, space, called)
    return hint.replace("ops.", f"{called}.") if is_ops_namespace else hint


def _respelled_name(name: str, space: str) -> str:
    """Returns our name for one that another library writes in another way, as "nn.losses.huber" for huber_loss."""
    matching_name = relatives.matching_name(name, public_names(space))
    if matching_name:
        return repr(matching_name)
    for other_space in PUBLIC:
        if other_space not in ("", space) and (name_there := relatives.matching_name(name, public_names(other_space))):
            return f"{other_space}.{name_there}"
    return ""


def _nearest_hint(name: str, space: str, called: str) -> str:
    """Returns a hint with the public name nearest to an unknown one, or with what replaces it in another package."""
    closest_hint = suggest(name, public_names(space), _NEAR)
    other_spaces = [
        other_space for other_space in PUBLIC if other_space != space and name in elsewhere.NAMES.get(other_space, {})
    ]
    if not closest_hint and other_spaces:
        return f"; {elsewhere.NAMES[other_spaces[0]][name]}"
    if not closest_hint and name in NAMES:
        return f"; use {called if space in NAMESPACES else 'ops'}.{NAMES[name]}"
    return closest_hint


def unknown_keyword_error(op: str, keyword: str) -> ArgumentTypeError:
    """Returns the error for a keyword that an op does not have."""
    parameter_names = [parameter.name for parameter in OPS[op].parameters]
    op_keyword = next((name for name in KEYWORDS.get(keyword, ()) if name in parameter_names), None)
    hint = f"; use {op_keyword}=" if op_keyword else f"; {ADVICE[keyword]}" if keyword in ADVICE else ""
    hint = (
        hint
        or suggest(keyword, parameter_names, 0.6)
        or "; it has no counterpart: leave it out, or use another op for it"
    )
    names_text = ", ".join(parameter_names)
    return ArgumentTypeError(f"{op}() got an unexpected keyword argument {keyword!r}{hint} (it takes {names_text})")


ADVICE: dict[str, str] = {
    "backend": "choose it for a block: with ops.use_backend(name):",
    "device": "choose it for a block: with ops.device(name):",
    "requires_grad": "leave it out: ops.grad(fn) differentiates by arguments, ops.backward by parameters",
    "where": "choose before the call: ops.where(mask, x, value)",
    "order": "order='F' of NumPy is ops.transpose(ops.reshape(ops.transpose(x), shape[::-1]))",
    "out": "leave it out: the result is a new tensor",
    **dict.fromkeys(("static_argnums", "static_argnames"), "leave it out: arguments that are no tensors are constants"),
}
"""By a keyword that no op has, what to do in its place."""

METHODS: dict[str, str] = {
    **dict.fromkeys(("grad", "backward", "requires_grad", "requires_grad_", "retain_grad"), "grad(fn)"),
    **dict.fromkeys(("grad_fn", "is_leaf", "register_hook"), "vjp(fn, *primals) or ops.custom_gradient(f)"),
    "data": "stop_gradient(x)",
    "is_cuda": "get_device(x)",
    "flat": "ravel(x)",
    "contiguous": "copy(x)",
    "bfloat16": "cast(x, dtype)",
    **dict.fromkeys(("itemset", "put", "index_put", "index_fill"), "set_item(x, key, value)"),
    "compress": "take(x, indices, axis)",
    "histc": "histogram(x, bins)",
    "zero": "zeros_like(x)",
    "copy_": "copy(x)",
    "where": "where(condition, x1, x2)",
    "apply": "vectorize(pyfunc) or ops.host_call(fn, x, vjp=...)",
}
"""By the method or attribute of another library's tensors, the call that replaces it, without `ops.` in front."""


def method_hint(name: str, native: str = "ops.stop_gradient(x)") -> str:
    """Returns a hint for a method that tensors lack here: "use ops.expand_dims(x, axis), or …".

    A name that ends in `_` is that of a method of PyTorch that works in place.

    Args:
        native: the expression that gives the native tensor, which has the method; empty if there is none.
    """
    base_name = name if name in METHODS else name.removesuffix("_")
    if base_name in METHODS:
        replacement_text = f"ops.{METHODS[base_name]}"
    elif base_name in OPS or base_name in ALIASES:
        replacement_text = f"ops.{base_name}(x, ...)"
    elif base_name in NAMES:
        replacement_text = f"ops.{NAMES[base_name]}"
    else:
        replacement_text = "the functions of ops"
    if base_name != name:
        replacement_text += ", which returns a new tensor"
    stop_gradient_text = "ops.stop_gradient(x)"
    return (
        f"use {replacement_text}"
        if replacement_text == stop_gradient_text or not native
        else f"use {replacement_text}, or {native} for the plain tensor"
    )
