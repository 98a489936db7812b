"""Hints for errors that Python and the array libraries raise where operators, indices and results are misused."""

from emberharmony.core.names import members

_ONE = (
    "the tensor has several elements where one is wanted: reduce it by ops.mean(x), ops.all(x) or their like, take "
    "one, as x[0], or choose for each element by ops.where(condition, x, y)"
)
_SHAPES = (
    "print x.shape of both: axes are compared from the last one, and must be equal or 1, so ops.expand_dims(x, axis) "
    "may help; for x @ w the last axis of x has the length of the last but one of w"
)
_INDEX = "print x.shape: an axis of length n has the indices from -n to n - 1, and x[i, j] needs two axes"
_PARTS = "it is a tuple: take its parts, as in output, state = layer(x) of LSTM, GRU and MultiheadAttention"
_BATCH = (
    "each batch has as many parts as nn.data.batches got arrays: for x, y in batches, or x, y = next(iter(batches)); "
    "with a number for i, (x, y) in enumerate(batches)"
)
_CALLED = "call the method or function, with parentheses: parameters(), state_dict()"
_DEVICE = "ops.get_available_devices() names the devices; tensors are made on the default device, so leave the move out"

_ESTIMATOR = (
    "models are no estimators of scikit-learn: nn.fit trains them, and model(x) predicts (Coming from scikit-learn)"
)

_TENSOR = r"'(?:numpy\.ndarray|Tensor|(?:mlx\.core\.)?array|ArrayImpl)'"
RAISED: tuple[tuple[str, str, str], ...] = (
    (r"'NoneType' object does not support the context", "set_backend", "use with ops.use_backend(name): for a block"),
    (r"'function' object does not support the context manager", "", "call it, as in: with ops.checked():"),
    (
        r"'list' object is not an iterator",
        "",
        "parameters(), buffers() and children() return lists: use next(iter(model.parameters()))",
    ),
    (
        r"'Batches' object is not (an iterator|subscriptable)",
        "",
        "use for x, y in batches:, or next(iter(batches)) for one batch",
    ),
    (
        r"'(dict|Loaded)' object is not callable",
        "",
        "a file and state_dict() give a dict of tensors, and load_model() reports what it loaded: make the model "
        "first, then io.load_model(model, path), then model(x)",
    ),
    (
        r"load_model\(\) missing 1 required positional argument: 'path'",
        "",
        "a file has no architecture: make the model first, then io.load_model(model, path), then model(x)",
    ),
    (
        r"'History' object is not callable",
        "",
        "fit() trains the model that it is given, and returns the history: keep the model under a name of its own",
    ),
    (
        r"unsupported operand type.*'NoneType'",
        "grad",
        "grad is None until ops.backward(lambda: loss_fn(x, y), parameters) is called, and after optimizer.step()",
    ),
    (
        r"'NoneType' object has no attribute",
        "grad",
        "grad is None until ops.backward(lambda: loss_fn(model(x), y), model), and again after optimizer.step()",
    ),
    (
        r"Concatenation operation is not",
        "",
        "these are tensors of two backends, an array of NumPy left of a tensor of PyTorch: call ops.array(x) before "
        "the model, or ops.add(x, y)",
    ),
    (
        rf"unsupported operand type.*: {_TENSOR} and {_TENSOR}",
        "",
        "these are tensors of two backends: ops.to_numpy(x) makes an array, which the ops of each backend take, and "
        "ops.convert_to_tensor(array) a tensor of the active one",
    ),
    (r"NoneType", "", "a value is None: does the function that made it return its result?"),
    (
        r"sub-type of ndarray|Cannot interpret '-?\d+' as a data type|view\(\): incompatible|array\.view\(\) is not",
        "view",
        "view() of this backend takes a dtype: use ops.reshape(x, shape), such as ops.reshape(x, (x.shape[0], -1))",
    ),
    (
        r"'(tuple|torch.Size|Size)' object is not callable",
        "shape",
        "shape is no method: use x.shape, of which x.shape[0] is the first length, or ops.shape(x)",
    ),
    (
        r"object is not callable",
        "T mT",
        "T is no method: use x.T, or ops.matrix_transpose(x) where x has more than two axes",
    ),
    (r"(dtype|DType|Dtype)' object is not callable", "dtype", "dtype is no method: use x.dtype, or ops.dtype(x)"),
    (
        r"'int' object is not callable",
        "ndim itemsize nbytes",
        "it is a number, and no method: leave the parentheses out",
    ),
    (r"'int' object is not callable", "size numel", "size is a number: use x.shape[axis], or ops.size(x)"),
    (r"'float' object is not callable", "scale", "use optim.LossScaler().scaled(loss)"),
    (
        r"'(numpy\.\w+|Tensor|array|ArrayImpl|float)' object is not callable",
        "",
        "the name of a function is now that of a tensor or number: give the value another name, and define the "
        "function again",
    ),
    (r"'module' object is not callable", "", "it is a module, which holds functions: call one, as in ops.fft.fft(x)"),
    (r"module\(\) takes at most 2 arguments", "", "a base is a class, and not a module: class Net(nn.Module):"),
    (
        r"'tuple' object is not callable",
        "",
        "it is a tuple: a comma at the end of a line makes one, as in self.layer = nn.Linear(2, 3),",
    ),
    (
        r"'(bool|str|dict|list)' object is not callable",
        "",
        "an attribute or variable has the name of a method or function: give it another one",
    ),
    (
        r"'(function|method)' object is not (iterable|subscriptable)|'method' has no len|'builtin_function_or_method'",
        "",
        _CALLED,
    ),
    (r"'generator' object|'generator' has no len", "", "make a dict or list of it: dict(model.named_parameters())"),
    (
        r"list indices must be integers or slices, not str",
        "",
        "it is a list: dict(model.named_parameters()) has parameters by name, optimizer.param_groups[0] options",
    ),
    (
        r"tuple indices must be integers or slices, not str",
        "",
        "it is a tuple: take a part by x[0], or by its name, x.name",
    ),
    (r"tuple indices must be integers|'tuple' object has no attribute", "", _PARTS),
    (
        r"values to unpack \(expected 2",
        "max min",
        "max and min give the values alone: use ops.max_and_argmax(x, axis) or ops.min_and_argmin(x, axis)",
    ),
    (
        r"values to unpack \(expected 2",
        "sort argsort",
        "sort gives the values alone: ops.argsort(x, axis) gives the indices",
    ),
    (r"values to unpack", "parameters", "parameters() gives no names: use for name, p in model.named_parameters():"),
    (
        r"values to unpack",
        "LSTM GRU lstm gru MultiheadAttention",
        "use output, state = layer(x); the state of LSTM is (h, c)",
    ),
    (r"values to unpack", "digits", "data = digits() has train_images, train_labels, test_images and test_labels"),
    (r"values to unpack", "batches loader enumerate", _BATCH),
    (
        r"cannot unpack non-iterable int",
        "restore",
        "restore() returns the step alone: it changes model and optimizer in place",
    ),
    (
        r"not subscriptable|cannot unpack|values to unpack",
        "backward",
        "ops.backward returns the loss; gradients are in parameter.grad",
    ),
    (
        r"(iteration over|len\(\) of|iter\(\)|len\(\)) (a )?0-d|unsized object",
        "",
        "the tensor is one number, without an axis: float(x) gives it; ops.backward returns the loss alone",
    ),
    (
        r"Cannot cast ufunc|can't be cast to the desired output type",
        "",
        "an assignment such as x += 0.5 keeps the dtype of x: use x = x + 0.5, or make x of floats",
    ),
    (
        r"bitwise_\w+.* not |not allowed with bitwise",
        "",
        "& and | take comparisons in brackets: (x > 0) & (x < 1), or ops.logical_and",
    ),
    (
        r"truth value of an array|Boolean value of Tensor|to Python scalars|converted to Scalar|to a Python scalar",
        "",
        _ONE,
    ),
    (
        r"could not be broadcast|must match the size of tensor|cannot be broadcast|mat1 and mat2|in its core dimension|"
        r"must match second to last|size mismatch|inconsistent tensor size",
        "",
        _SHAPES,
    ),
    (r"and 'list'|array and list", "", "ops.array(x) makes a tensor of a list"),
    (r"same dtype, but", "", "cast one of the two: ops.cast(x, 'float32'); ops.matmul(x1, x2) does it by itself"),
    (r"index -?\d+ is out of bounds|^index out of range|[Tt]oo many indices", "", _INDEX),
    (
        r"only integers, slices|Cannot index mlx array|invalid data type 'str'",
        "",
        "an index is an integer, a slice, or a tensor of integers: int(i) makes one of a float, and ops.take(x, i, "
        "axis) takes several",
    ),
    (
        r"boolean index did not match|shape of the mask|boolean indices are not",
        "",
        "a mask has the shape of what it selects: ops.where(mask, x, 0) keeps that shape, and ops.take(x, "
        "ops.nonzero(mask)[0], 0) takes the rows",
    ),
    (
        r"scalar index|converted to an index|cannot be interpreted as an integer",
        "",
        "an integer is wanted: int(x) makes one of a number, n // 2 divides to one, and x.shape[axis] is a length",
    ),
    (
        r"unsupported format string passed to",
        "",
        "a format such as :.2f takes one number: float(x), or print the tensor itself",
    ),
    (
        r"dtype\('<U|concatenate str|mlx.core.array and str|'str'$|\+: 'str' and",
        "",
        'put a number into a text by f"loss {float(loss):.3f}"',
    ),
    (r"implement(ing)? .?fit|estimator should be|does not have a '(fit|predict)", "", _ESTIMATOR),
    (
        r"'DType' object is not callable",
        "",
        "a dtype makes no tensor: ops.array(x, 'float64') or ops.cast(x, 'float64')",
    ),
    (
        r"cannot unpack non-iterable",
        "",
        "one value stands for several names; numbers come by for i, layer in enumerate(layers)",
    ),
    (r"step must be greater than zero", "", "use ops.flip(x, axis)"),
    (
        r"'bool' object has no attribute",
        "mean sum all any float astype",
        "a tensor that is compared with a list gives one bool: make a tensor of the list, by ops.array(x)",
    ),
    (
        r"__\w+__\(\): incompatible function arguments",
        "",
        "the shapes or the kinds of both sides do not fit: the function of ops, as ops.matmul(x, w), says which",
    ),
    (
        r"is not an Optimizer",
        "",
        "pass a schedule as lr=, such as optim.SGD(model, lr=optim.schedules.cosine(0.1, 1000))",
    ),
    (
        r"pickle .*(<lambda>|<locals>|local object)",
        "",
        "a lambda or an inner function has no name in its file: write a function of the file, or io.save(model, path)",
    ),
    (r"^ZeroDivisionError", "", "integers have no quotient by 0: use floats, or ops.divide_no_nan(x1, x2)"),
    (r"doesn't define __round__", "", "use ops.round(x, decimals), or round(float(x), 2) for one number"),
    (r"list index out of range", "", "print(len(x)): a list or nn.Sequential of n items has the indices 0 to n - 1"),
    (r"'dict' object has no attribute", "param_groups", "a group is a dict: optimizer.param_groups[0]['lr']"),
    (r"'dict' object has no attribute", "", "it is a dict: take an item by its name, as state['weight']"),
    (
        r"^('[\w.]+'|\d+)$",
        "state_dict param_groups state named_parameters load",
        "it is a dict, and has no such key: list(x) gives the keys, names such as '0.weight'",
    ),
    (r"not JSON serializable", "", "float(x) or x.tolist() gives numbers of Python"),
    (
        r"unhashable type: '(numpy.ndarray|mlx.core.array|array)'",
        "",
        "a tensor is no key: use int(x), float(x) or tuple(x.tolist())",
    ),
    (r"Invalid device string", "", "ops.cast(x, dtype) changes the dtype, ops.to_device(x, device) the device"),
    (r"not compiled with CUDA enabled|Found no NVIDIA driver", "", _DEVICE),
    (r"does not require grad and does not have a grad_fn", "", members.ATTRIBUTES["Module"]["backward"]),
    (r"Can't call numpy\(\) on Tensor that requires grad", "", "use the functions of ops, such as ops.exp"),
    (r"dtype must be either a floating point", "", "use ops.mean(x), or ops.cast(x, 'float32') before it"),
    (
        r"is not a Module subclass",
        "",
        "torch.nn takes layers of PyTorch: use nn.Sequential and the layers of emberharmony.nn",
    ),
    (r"optimizer can only optimize Tensors", "", "use the optimizers of emberharmony.optim, such as optim.Adam(model)"),
    (
        r"must be Tensor, not",
        "",
        "functions of PyTorch take its tensors alone: use ops and nn.losses, or ops.set_backend('torch')",
    ),
)
"""A pattern in the message of an error, names of which the program must use one (without any, all programs), a way out.

The first that fits counts.
"""
