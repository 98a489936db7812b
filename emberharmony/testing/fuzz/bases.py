"""Usual calls, as source, of the ops whose sample rows have no cases; the fuzzer varies them."""

_F = "lambda x: ops.sum(ops.square(x))"
_X = "ops.ones((3,))"

BASES: dict[str, tuple[tuple[str, ...], ...]] = {
    "dtype": ((_X,),),
    "result_type": ((_X, "ops.float64"), ("1.0", "'int8'")),
    "can_cast": (("'int8'", "'float32'"), (_X, "'int8'")),
    "isdtype": (("'int8'", "'integral'"), ("ops.float32", "('bool', 'real floating')")),
    "finfo": (("'float32'",), (_X,)),
    "iinfo": (("'int8'",),),
    "get_device": ((_X,),),
    "native_dtype": (("'float32'",),),
    "to_device": ((_X, "'cpu'"),),
    "set_default_device": (("None",), ("'cpu'",)),
    "random_seed": (("3",),),
    "random_get_state": ((),),
    "random_set_state": (("ops.random.get_state()",),),
    **dict.fromkeys(("standard_uniform", "standard_normal"), (("(2, 3)",),)),
    "random_categorical": (("ops.zeros((2, 3))", "5"),),
    "random_permutation": (("6",), (_X,)),
    "random_shuffle": ((_X,),),
    "random_choice": (("5", "(2,)", "False"), (_X, "(4,)", "True", "[0.5, 0.25, 0.25]")),
    "dropout": (("ops.ones((4, 5))", "0.5"),),
    "grad": ((_F,), ("lambda x, y: ops.vdot(x, y)", "(0, 1)")),
    "value_and_grad": ((_F,),),
    "vjp": ((_F, _X),),
    "jvp": ((_F, f"({_X},)", f"({_X},)"),),
    **dict.fromkeys(("jacobian", "jacfwd"), (("lambda x: ops.multiply(x, ops.sin(x))",),)),
    "hessian": ((_F,),),
    "vmap": (("lambda x: ops.cumsum(x)", "0", "0"), ("lambda x, y: ops.add(x, y)", "(0, None)")),
    "vectorized_map": (("lambda x: ops.sum(x)", "ops.ones((3, 2))"),),
    "vectorize": (("lambda x, y: ops.maximum(x, y)",), ("lambda x: ops.sum(x)", "None", "'(n)->()'")),
    "custom_vjp": (("lambda x: [ops.sin(x)]", "lambda primals, outs, cotangents: [cotangents[0]]", f"[{_X}]"),),
    **dict.fromkeys(("checkpoint", "compile"), (("lambda x: ops.sin(x)",),)),
    "eval_shape": ((_F, _X), ("lambda x, y: ops.matmul(x, y)", "ops.TensorSpec((2, 3))", "ops.TensorSpec((3, 4))")),
    "custom_gradient": (("lambda x: (ops.sin(x), lambda g: g)",),),
    "backward": (("lambda: ops.array(1.0)", "[ops.Parameter(ops.ones((2,)))]"),),
    "zero_grad": (("[ops.Parameter(ops.ones((2,)))]",),),
    "stop_gradient": ((_X,),),
    "cond": (("True", "lambda: 1.0", "lambda: 2.0"), ("ops.array(False)", "ops.sin", "ops.cos", _X)),
    "switch": (("1", "[ops.sin, ops.cos]", _X),),
    "while_loop": (("Below(3)", "lambda x: ops.add(x, 1)", _X), ("Below(9)", "lambda x: (x,)", f"({_X},)", "4")),
    "fori_loop": (("0", "3", "lambda i, x: ops.add(x, i)", _X),),
    "scan": (("lambda c, x: (ops.add(c, x), c)", "0.0", _X), ("lambda c, x: (c, c)", _X, "None", "3")),
    "map": (("lambda x: ops.square(x)", "ops.ones((3, 2))"),),
    "associative_scan": (("lambda x, y: ops.add(x, y)", "ops.ones((3, 2))"),),
}
"""By op, the positional arguments of each call."""

BOUNDED = {("fori_loop", "lower"), ("fori_loop", "upper"), ("scan", "length"), ("while_loop", "cond")}
"""The (op, parameter) that determine how often a loop runs. Only small numbers are drawn for them: with a large one
the call would rightly run for ever, and count as a hang."""
