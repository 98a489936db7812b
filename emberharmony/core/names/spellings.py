"""What other libraries call the ops and their parameters, and the hints for unknown names, which suggest ours.

Nothing imports this module until a name is unknown, so the tables cost no program anything.
"""

import sys

from emberharmony.core.deferred import module_of
from emberharmony.core.errors import ArgumentTypeError, suggest
from emberharmony.core.names import elsewhere, relatives
from emberharmony.core.registry import ALIASES, OPS

NAMESPACES = ("ops", "ops.fft", "ops.image", "ops.linalg", "ops.nn", "ops.random")

NAMES: dict[str, str] = {
    # creation and conversion
    "around": "round(x, decimals)",
    **dict.fromkeys(
        ("tensor", "as_tensor", "from_numpy", "constant", "Variable", "FloatTensor"), "convert_to_tensor(x)"
    ),
    **dict.fromkeys(("ndarray", "Tensor"), "convert_to_tensor(x)"),
    "clone": "copy(x)",
    "fill": "full(shape, fill_value)",
    "new_zeros": "zeros(shape)",
    "new_ones": "ones(shape)",
    "range": "arange(start, stop, step)",
    "numpy": "to_numpy(x)",
    "asnumpy": "to_numpy(x)",
    "detach": "stop_gradient(x)",
    "device_put": "to_device(x, device)",
    **dict.fromkeys(("cpu", "cuda"), "to_device(x, device)"),
    "to": "cast(x, dtype) or ops.to_device(x, device)",
    **dict.fromkeys(("type", "type_as"), "cast(x, dtype)"),
    "float": "cast(x, dtype), or ops.float32 for the dtype",
    "half": "cast(x, dtype), or ops.float16 for the dtype",
    "double": "cast(x, dtype), or ops.float64 for the dtype",
    "int": "cast(x, dtype), or ops.int32 for the dtype",
    "long": "cast(x, dtype), or ops.int64 for the dtype",
    "promote_types": "result_type(x1, x2)",
    # shapes
    "view_as": "reshape(x, shape)",
    "flatten": "ravel(x) or ops.reshape(x, shape)",
    "permute": "permute_dims(x, axes)",
    "unsqueeze": "expand_dims(x, axis)",
    "expand": "broadcast_to(x, shape)",
    "expand_as": "broadcast_to(x, shape)",
    "broadcast_tensors": "broadcast_arrays(x1, x2)",
    "movedim": "moveaxis(x, source, destination)",
    "rollaxis": "moveaxis(x, source, destination)",
    "swapdims": "swapaxes(x, axis1, axis2)",
    "t": "matrix_transpose(x)",
    "T": "matrix_transpose(x)",
    "mT": "matrix_transpose(x)",
    "cat": "concatenate(xs, axis)",
    "column_stack": "stack(xs, axis=1)",
    "row_stack": "vstack(xs)",
    "unbind": "unstack(x, axis)",
    "chunk": "array_split(x, n, axis)",
    "tensor_split": "array_split(x, n, axis)",
    "repeat_interleave": "repeat(x, repeats, axis)",
    "numel": "size(x)",
    "dim": "ndim(x)",
    "rank": "ndim(x)",
    # reading and writing elements
    "index_select": "take(x, indices, axis)",
    **dict.fromkeys(("gather", "take_along_dim"), "take_along_axis(x, indices, axis)"),
    "gather_nd": "get_item(x, key)",
    "at": "slice_update(x, start_indices, updates) or ops.scatter_update(x, indices, updates)",
    "index_update": "scatter_update(x, indices, updates)",
    "dynamic_slice": "slice(x, start_indices, shape)",
    "dynamic_update_slice": "slice_update(x, start_indices, updates)",
    **dict.fromkeys(("masked_fill", "masked_select", "boolean_mask"), "where(condition, x1, x2)"),
    "topk": "top_k(x, k)",
    # arithmetic
    **dict.fromkeys(("clamp", "clip_by_value"), "clip(x, x_min, x_max)"),
    "sub": "subtract(x1, x2)",
    "mul": "multiply(x1, x2)",
    "div": "divide(x1, x2)",
    "truediv": "divide(x1, x2)",
    "floordiv": "floor_divide(x1, x2)",
    "neg": "negative(x)",
    "invert": "bitwise_invert(x)",
    "eq": "equal(x1, x2)",
    "ne": "not_equal(x1, x2)",
    "lt": "less(x1, x2)",
    "le": "less_equal(x1, x2)",
    "gt": "greater(x1, x2)",
    "ge": "greater_equal(x1, x2)",
    **dict.fromkeys(("mm", "bmm", "mv"), "matmul(x1, x2)"),
    "expit": "sigmoid(x)",
    "sgn": "sign(x)",
    **dict.fromkeys(("trapz", "trapezoidal"), "trapezoid(y, x)"),
    "math": "sqrt, ops.exp and so on",
    # reductions
    **{f"reduce_{name}": f"{name}(x, axis)" for name in ("sum", "mean", "max", "min", "prod", "all", "any", "std")},
    "reduce_variance": "var(x, axis)",
    "reduce_logsumexp": "logsumexp(x, axis)",
    "product": "prod(x, axis)",
    "alltrue": "all(x, axis)",
    "sometrue": "any(x, axis)",
    # random numbers
    **dict.fromkeys(("randn", "random_standard_normal"), "random.normal(shape)"),
    "rand": "random.uniform(shape)",
    "randperm": "random.permutation(n)",
    **dict.fromkeys(("manual_seed", "set_seed", "set_random_seed"), "random.seed(n)"),
    **dict.fromkeys(("default_rng", "PRNGKey", "RandomState"), "random.Generator(seed)"),
    "multinomial": "random.categorical(logits, num_samples)",
    # linear algebra
    "inverse": "inv(x)",
    "pinverse": "pinv(x)",
    "matrix_inverse": "inv(x)",
    "cholesky_inv": "cholesky_inverse(x)",
    "triangular_solve": "solve_triangular(a, b)",
    # neural networks
    "layer_norm": "layer_normalization(x, gamma, beta)",
    "batch_norm": "batch_normalization(x, mean, variance, axis)",
    "rms_norm": "rms_normalization(x, scale)",
    "group_norm": "group_normalization(x, groups, scale, offset)",
    "instance_norm": "group_normalization(x, channels, scale, offset)",
    "instance_normalization": "group_normalization(x, channels, scale, offset)",
    "local_response_norm": "local_response_normalization(x, size)",
    "scaled_dot_product_attention": "dot_product_attention(query, key, value)",
    **dict.fromkeys(("conv1d", "conv2d", "conv3d"), "conv(inputs, kernel)"),
    **dict.fromkeys(("max_pool1d", "max_pool2d", "max_pool3d"), "max_pool(inputs, pool_size)"),
    **dict.fromkeys(("lp_pool1d", "lp_pool2d", "lp_pool3d"), "lp_pool(inputs, norm_type, pool_size)"),
    **dict.fromkeys(("max_unpool1d", "max_unpool2d", "max_unpool3d"), "max_unpool(inputs, indices, output_size)"),
    **dict.fromkeys(("avg_pool1d", "avg_pool2d", "avg_pool3d", "avg_pool"), "average_pool(inputs, pool_size)"),
    **dict.fromkeys(("RoPE", "rotary_embedding", "apply_rotary_emb"), "rope(x)"),
    "LSTM": "lstm(x, weight_ih, weight_hh)",
    "GRU": "gru(x, weight_ih, weight_hh)",
    **dict.fromkeys(("RNN", "rnn_tanh", "rnn_relu"), "rnn(x, weight_ih, weight_hh)"),
    "upsample": "interpolate(x, size)",
    "binary_cross_entropy": "binary_crossentropy(target, output)",
    "hardtanh": "hard_tanh(x)",
    "hardsigmoid": "hard_sigmoid(x)",
    "hardswish": "hard_silu(x)",
    "hardshrink": "hard_shrink(x, threshold)",
    "logsigmoid": "log_sigmoid(x)",
    "softshrink": "soft_shrink(x, threshold)",
    "tanhshrink": "tanh_shrink(x)",
    # transforms and control flow
    "no_grad": "stop_gradient(x)",
    "gradient": "grad(fn)",
    **dict.fromkeys(("jit", "function"), "compile(fn)"),
    "requires_grad": "grad(fn)",
    "custom_jvp": "custom_gradient(fn)",
    "tree_structure": "tree_flatten(tree)",
    "remat": "checkpoint(fn)",
}
"""By the name in another library, the call that replaces it, without `ops.` in front."""

KEYWORDS: dict[str, tuple[str, ...]] = {
    "dim": ("axis", "axes"),
    "dims": ("axes", "axis", "shape"),
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
    name = f"emberharmony.{space}".rstrip(".")
    # The program may not have imported a public package, and the name may be there.
    module = module_of(name) if space in PUBLIC else sys.modules.get(name)
    return [] if module is None else list(getattr(module, "__all__", None) or dir(module))


def nearest(name: str, space: str = "ops", called: str = "ops") -> str:
    """Returns a hint such as `"; use ops.clip(x, x_min, x_max)"` or `"; did you mean 'clip'?"`, or an empty string.

    Args:
        name: the unknown name.
        space: the namespace in which it was looked up.
        called: the name that stands for `ops` in the hint.
    """
    alternative = elsewhere.NAMES.get(space, {}).get(name)
    is_of_ops = space in NAMESPACES
    qualified_names = [
        f"{other}.{name}".removeprefix(".")
        for other in (NAMESPACES if is_of_ops else PUBLIC)
        if other != space and name in public_names(other)
    ]
    if alternative:
        hint = f"; {alternative}"
    elif qualified_names:
        hint = f"; did you mean {' or '.join(qualified_names)}?"
    elif name in NAMES and is_of_ops:
        hint = f"; use ops.{NAMES[name]}"
    elif is_of_ops and (others := [f"{other}.{name}" for other in PUBLIC if other and name in public_names(other)]):
        return f"; did you mean {' or '.join(others[:2])}?"
    elif followed := relatives.by_rule(name, space, public_names(space), NAMES):
        hint = f"; {followed}"
    elif is_of_ops and f"{name.removesuffix('_loss')}" in public_names("nn.losses"):
        return f"; use nn.losses.{name.removesuffix('_loss')}(outputs, target)"
    elif alone := relatives.elsewhere_alone(name, space, public_names(space)):
        return f"; {alone}"
    else:
        closest = suggest(name, public_names(space), 0.6)
        others = [other for other in PUBLIC if other != space and name in elsewhere.NAMES.get(other, {})]
        if not closest and others:
            hint = f"; {elsewhere.NAMES[others[0]][name]}"
        elif not closest and name in NAMES:
            hint = f"; use ops.{NAMES[name]}"
        else:
            return closest
    return hint.replace("ops.", f"{called}.") if is_of_ops else hint


def unknown_keyword(op: str, keyword: str) -> ArgumentTypeError:
    """Returns the error for a keyword that an op does not have."""
    names = [parameter.name for parameter in OPS[op].parameters]
    own_keyword = next((name for name in KEYWORDS.get(keyword, ()) if name in names), None)
    hint = f"; use {own_keyword}=" if own_keyword else f"; {ADVICE[keyword]}" if keyword in ADVICE else ""
    hint = hint or suggest(keyword, names, 0.6) or "; it has no counterpart: leave it out, or use another op for it"
    accepted_names = ", ".join(names)
    return ArgumentTypeError(f"{op}() got an unexpected keyword argument {keyword!r}{hint} (it takes {accepted_names})")


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
    """Returns the way out for a method of a tensor: "use ops.expand_dims(x, axis), or …".

    A name that ends in `_` is that of a method of PyTorch that works in place.

    Args:
        native: the expression that gives the native tensor, which has the method; empty if there is none.
    """
    plain_name = name if name in METHODS else name.removesuffix("_")
    if plain_name in METHODS:
        call = f"ops.{METHODS[plain_name]}"
    elif plain_name in OPS or plain_name in ALIASES:
        call = f"ops.{plain_name}(x, ...)"
    elif plain_name in NAMES:
        call = f"ops.{NAMES[plain_name]}"
    else:
        call = "the functions of ops"
    if plain_name != name:
        call += ", which returns a new tensor"
    constant = "ops.stop_gradient(x)"
    return f"use {call}" if call == constant or not native else f"use {call}, or {native} for the plain tensor"
