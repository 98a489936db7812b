"""Names that PyTorch, Keras, MLX and optax have, and what replaces them here.

Nothing imports this module until a name is unknown. `spellings` has the names of ops. A name
that is ours in another module needs no entry, because the hint finds it there.
"""


def _same_advice(names: str, advice: str) -> dict[str, str]:
    """Returns a dict that gives several names, separated by spaces, the same advice."""
    return dict.fromkeys(names.split(), advice)


_BATCHES = "use nn.data.batches(x, y, batch_size=32)"
_RATE = "pass a schedule as lr=, such as optim.SGD(model, lr=optim.schedules."
_FIT = "use nn.fit(model, loss_fn, optimizer, batches, epochs=3)"
_SAVE, _LOAD = "use io.save(model, 'model.safetensors')", "use io.load_model(model, 'model.safetensors')"
_CLIP = "use optim.clip_by_global_norm(model, 1.0) before optimizer.step()"
_CLASS_LOSS = "use nn.losses.cross_entropy(logits, class_ids)"
_LOSS_OF_TWO = "use nn.losses.binary_cross_entropy_with_logits(logits, targets)"
_STATE = "use model.state_dict()"
_CALL = "call the model itself: model(x)"
_TRAINED = "use model.parameters()"
_MOVE = "tensors follow the backend's default device; use model.to(device='cuda:0')"
_GRAD = "use ops.backward(lambda: loss_fn(model(x), y), model), then optimizer.step()"
_UNRECORDED = "nothing is recorded outside of ops.grad and ops.backward; inside use ops.stop_gradient(x)"
_MSE = "use nn.losses.mse(predictions, targets)"
_CLEARED = "optimizer.step() clears the gradients; without a step use ops.zero_grad(model)"

NAMES: dict[str, dict[str, str]] = {
    "": {
        **_same_advice("layers models Model Layer keras", "layers and models are in emberharmony.nn"),
        **_same_advice("losses metrics data init", "it is in emberharmony.nn"),
        **_same_advice("set_config config use", "use ops.set_backend(name), and ops.device(name) for a block"),
        **_same_advice("devices local_devices device_count", "use ops.get_available_devices()"),
        **_same_advice("optimizers lr_scheduler", "optimizers and schedules are in emberharmony.optim"),
        **_same_advice("tensor array numpy functional", "use emberharmony.ops"),
        **_same_advice("load_model load save_model load_state_dict", "files are read by emberharmony.io"),
        **_same_advice("utils datasets", "batches are made by nn.data.batches(x, y, batch_size=32)"),
    },
    "ops": {
        "Tensor": "for annotations use emberharmony.Tensor; ops.array(x) makes a tensor",
        "no_grad": _UNRECORDED,
        **dict.fromkeys(("inference_mode", "enable_grad", "set_grad_enabled"), _UNRECORDED),
        "is_available": "use ops.available_backends()",
        **_same_advice("backend current_backend", "use ops.get_backend()"),
        "gradient": "use ops.grad(fn) for derivatives; differences of neighbours are ops.diff(x)",
        **_same_advice("GradientTape gradients autograd backward_", _GRAD),
        **_same_advice("loadtxt read_csv", "read it with NumPy or pandas, and use ops.convert_to_tensor(array)"),
        "item": "use float(x) or int(x)",
        "to_tensor": "use ops.convert_to_tensor(x)",
        "print": "use print(x)",
        "apply_along_axis": "use ops.vmap(fn)",
        "index_add": "use ops.segment_sum(x, ids, num_segments) or ops.scatter_update(x, indices, updates)",
    },
    "ops.random": {
        **_same_advice("key split fold_in", "use ops.random.Generator(seed), and generator.split(n) for more"),
        "random": "use ops.random.uniform(shape)",
    },
    "nn": {
        "Dense": "use nn.Linear(in_features, out_features)",
        **_same_advice("BatchNormalization BatchNorm", "use nn.BatchNorm1d, nn.BatchNorm2d or nn.BatchNorm3d"),
        "LayerNormalization": "use nn.LayerNorm(normalized_shape)",
        "GroupNormalization": "use nn.GroupNorm(num_groups, num_channels)",
        **{f"MaxPooling{n}D": f"use nn.MaxPool{n}d(kernel_size)" for n in (1, 2, 3)},
        **{f"AveragePooling{n}D": f"use nn.AvgPool{n}d(kernel_size)" for n in (1, 2, 3)},
        **{f"GlobalAveragePooling{n}D": "use nn.GlobalAvgPool()" for n in (1, 2, 3)},
        **{f"GlobalMaxPooling{n}D": "use nn.GlobalMaxPool()" for n in (1, 2, 3)},
        **{f"Conv{n}DTranspose": f"use nn.ConvTranspose{n}d(in_channels, out_channels, size)" for n in (1, 2, 3)},
        **{f"ZeroPadding{n}D": f"use nn.ZeroPad{n}d(padding)" for n in (1, 2, 3)},
        **{f"UpSampling{n}D": "use nn.Upsample(scale_factor=2)" for n in (1, 2, 3)},
        "SimpleRNN": "use nn.RNN(input_size, hidden_size)",
        "Activation": "use nn.ReLU() and its like, or a function such as ops.relu, in nn.Sequential",
        **dict.fromkeys(("Input", "InputLayer"), "leave it out: the first layer has the size of the input"),
        "LazyLinear": "use nn.Linear(None, out_features) and nn.build(model, example)",
        **_same_advice("Concatenate Add Multiply", "use ops.concatenate, + or * in __call__ of an nn.Module"),
        **_same_advice("Model Layer", "use nn.Module, with __init__ and __call__"),
        "Variable": "use nn.Parameter(value)",
        **_same_advice("DataLoader Dataset TensorDataset", _BATCHES),
        "utils": "print(model.summary()) shows the layers, optim.clip_by_global_norm(model, 1.0) clips gradients",
        **_same_advice("plot_model plot", "print(model.summary()) shows the layers, and history.plot() the losses"),
        **_same_advice(
            "MLP MLPClassifier MLPRegressor", "use nn.Sequential(nn.Linear(4, 16), nn.ReLU(), nn.Linear(16, 3))"
        ),
        **_same_advice("compact", "layers are made in __init__, and called in __call__"),
        **_same_advice("functional F", "functions are in ops (ops.relu), losses in nn.losses"),
        **_same_advice("no_grad eval", "use model.eval(); nothing is recorded outside of ops.grad"),
        "clip_grad_norm_": _CLIP,
        "SyncBatchNorm": "use nn.DataParallel(model)",
        **_same_advice("CrossEntropy SparseCategoricalCrossentropy CategoricalCrossentropy", _CLASS_LOSS),
        "BinaryCrossentropy": _LOSS_OF_TWO,
        **_same_advice("MeanSquaredError mse_loss", _MSE),
    },
    "nn.functional": {"cross_entropy": _CLASS_LOSS, "mse_loss": _MSE},
    "nn.losses": {
        "get": "pass the function itself, such as nn.losses.mse",
        **_same_advice("CategoricalCrossentropy SparseCategoricalCrossentropy", _CLASS_LOSS),
        **_same_advice("categorical_crossentropy sparse_categorical_crossentropy", _CLASS_LOSS),
        **_same_advice("BinaryCrossentropy binary_crossentropy bce_with_logits bce", _LOSS_OF_TWO),
        **dict.fromkeys(("MeanSquaredError", "mean_squared_error", "mse_loss"), _MSE),
        **_same_advice("MeanAbsoluteError mean_absolute_error mae l1_loss", "use nn.losses.l1"),
        "nll_loss": "use nn.losses.nll",
    },
    "nn.metrics": {
        **dict.fromkeys(
            ("CategoricalAccuracy", "SparseCategoricalAccuracy", "BinaryAccuracy"), "use nn.metrics.Accuracy()"
        ),
        "accuracy_score": "use nn.metrics.Accuracy(), with update(outputs, labels) and compute()",
        "f1_score": "use nn.metrics.F1(), with update(outputs, labels) and compute()",
        "RMSE": "use nn.metrics.MSE(), and the square root of its result",
    },
    "nn.data": {
        **_same_advice("Subset ConcatDataset IterableDataset Sampler RandomSampler default_collate", _BATCHES),
        **_same_advice(
            "train_test_split random_split",
            "order = ops.random.permutation(rows) is a random order: x[order[:n]] and x[order[n:]] are parts",
        ),
        **_same_advice("DataLoader Dataset TensorDataset from_tensor_slices", _BATCHES),
    },
    "nn.init": {
        **_same_advice("GlorotUniform glorot_uniform", "use nn.init.xavier_uniform"),
        **_same_advice("GlorotNormal glorot_normal", "use nn.init.xavier_normal"),
        **_same_advice("HeUniform he_uniform", "use nn.init.kaiming_uniform"),
        **_same_advice("HeNormal he_normal", "use nn.init.kaiming_normal"),
    },
    "optim": {
        "get": "pass an optimizer, such as optim.Adam(model)",
        **_same_advice("lr_scheduler LRScheduler", f"{_RATE}cosine(0.1, 1000))"),
        "StepLR": f"{_RATE}step(0.1, step_size=30))",
        "MultiStepLR": f"{_RATE}multistep(0.1, [30, 80]))",
        **_same_advice("ExponentialLR ExponentialDecay exponential_decay", f"{_RATE}exponential(0.1, 0.99))"),
        **_same_advice("CosineAnnealingLR CosineDecay cosine_decay", f"{_RATE}cosine(0.1, 1000))"),
        "CosineAnnealingWarmRestarts": f"{_RATE}cosine_restarts(0.1, 1000))",
        "OneCycleLR": f"{_RATE}one_cycle(0.1, 1000))",
        "CyclicLR": f"{_RATE}cyclic(...))",
        "LinearLR": f"{_RATE}linear(0.1))",
        **_same_advice("PolynomialLR PolynomialDecay", f"{_RATE}polynomial(0.1, 1000))"),
        **_same_advice("PiecewiseConstantDecay step_decay", f"{_RATE}piecewise([30], [0.1, 0.01]))"),
        "LambdaLR": "pass a function of the number of steps as lr=",
        **_same_advice("ConstantLR MultiplicativeLR", "pass a function of the number of steps as lr="),
        **_same_advice(
            "apply_updates chain", "use optimizer.step(), or params, state = optimizer.update(grads, state, params)"
        ),
        "SequentialLR": f"{_RATE}join([...], [...]))",
        "ReduceLROnPlateau": "use optim.ReduceOnPlateau(0.1) as lr=",
        "GradScaler": "use optim.LossScaler",
        "swa_utils": "use optim.SWA or optim.EMA",
        **_same_advice("clip_grad_norm_ clip_grad_norm clip_grads", _CLIP),
        **_same_advice("clip_grad_value_ clip_gradients", "use optim.clip_by_value(model, 1.0)"),
        "zero_grad": _CLEARED,
    },
    "optim.schedules": {},
    "io": {
        "save_model": "use io.save(model, 'model.safetensors')",
        **_same_advice("dump savetxt write", _SAVE),
        "read": "use io.load('model.safetensors')",
        **_same_advice(
            "load_torch from_pretrained", "io.load_model(model, path) reads files of PyTorch and safetensors"
        ),
        **_same_advice("save_weights save_file save_safetensors savez", _SAVE),
        **_same_advice("load_weights load_state_dict", _LOAD),
        **_same_advice("load_file safe_open loadz", "use io.load('model.safetensors')"),
        **_same_advice("save_checkpoint load_checkpoint", "use io.Checkpoint(folder), with save and restore"),
    },
}
"""By public package, as "nn", and by the name that another library has there, the way out."""

_MODULE = {
    **_same_advice("cuda cpu mps", _MOVE),
    **_same_advice("half float double bfloat16 astype", "use model.to(dtype='float16')"),
    "zero_grad": _CLEARED,
    **_same_advice("fit train_on_batch train_step", _FIT),
    **_same_advice(
        "compile", "nothing is to be compiled: pass loss and optimizer to nn.fit, or the model to ops.compile"
    ),
    **_same_advice("predict transform forward call", _CALL),
    "predict_proba": "use ops.softmax(model(x))",
    **_same_advice("copy clone", "use copy.deepcopy(model)"),
    **_same_advice("weight bias kernel coef_", "dict(model.named_parameters()) has the parameters by name"),
    **_same_advice("step optimizer", "an optimizer is an object of its own: optimizer = optim.Adam(model)"),
    **_same_advice("evaluate score", "use model.eval(), and nn.metrics.Accuracy() or a loss of nn.losses"),
    **_same_advice("save save_weights save_pretrained", _SAVE),
    **_same_advice("load load_weights from_pretrained", _LOAD),
    "register_buffer": "assign it: self.mean = nn.Buffer(value)",
    "register_parameter": "assign it: self.weight = nn.Parameter(value)",
    **_same_advice("add_module register_module", "assign the module: self.head = nn.Linear(2, 1)"),
    **_same_advice("add", "use append(module), or pass the modules: nn.Sequential(a, b)"),
    "requires_grad_": "use model.freeze() and model.unfreeze()",
    "backward": _GRAD,
    **_same_advice("get_weights weights variables", _STATE),
    "set_weights": "use model.load_state_dict(tensors)",
    **_same_advice("trainable_weights trainable_variables trainable_parameters", _TRAINED),
    **_same_advice(
        "modules named_children layers get_submodule get_layer", "use dict(model.named_modules()) or children()"
    ),
    "count_params": "print(model.summary())",
    **_same_advice("device", "use ops.get_device(parameter.value)"),
    **_same_advice("dtype", "use ops.dtype(parameter.value)"),
    **_same_advice("register_forward_hook register_hook", "use ops.record() to see what layers return"),
}
_OPTIMIZER = {
    **_same_advice("minimize backward", _GRAD),
    **_same_advice("apply_gradients apply apply_updates", "use optimizer.step(gradients)"),
    **_same_advice(
        "learning_rate lr set_lr get_lr", "use optimizer.learning_rates()[0], or assign optimizer.param_groups[0]['lr']"
    ),
}
_PARAMETER = {
    "requires_grad": "assign parameter.trainable = False",
    "data": "assign parameter.value = tensor",
    **_same_advice("assign copy_ set_value assign_add", "assign parameter.value = tensor"),
    "backward": _GRAD,
    "zero_grad": _CLEARED,
    "numel": "use parameter.size",
}
_HISTORY = {
    "accuracy": "it has losses: nn.metrics.Accuracy(), with update(model(x), y) and compute(), gives the accuracy",
    "predict": "fit() trains the model that it is given: call the model itself, model(x)",
    "history": "the losses are history.losses",
    "epoch": "each item is a step: history[-1].loss",
}
_BATCH = {
    "dataset": "iterate over it: for x, y in batches",
    "take": "use next(iter(batches))",
    "repeat": "use forever()",
}
_SCHEDULE = {
    "optimizer": "it is given to the optimizer: optim.SGD(model, lr=schedule)",
    "step": "it is a function of the number of steps: pass it as lr=, and step() the optimizer",
    "get_last_lr": "use optimizer.learning_rates()[0]",
}
ATTRIBUTES: dict[str, dict[str, str]] = {
    "Module": _MODULE,
    "ParameterGroups": _OPTIMIZER,
    "Parameter": _PARAMETER,
    "Buffer": _PARAMETER,
    "History": _HISTORY,
    "Batches": _BATCH,
    "Formula": _SCHEDULE,
    "Generator": {
        **_same_advice("manual_seed seed", "a seed is given when it is made: ops.random.Generator(0)"),
        **_same_advice(
            "random rand standard_normal randn randint",
            "use uniform(shape), normal(shape) or integers(shape, low, high)",
        ),
    },
    "ReduceOnPlateau": {"step": "use observe(loss), and give it to the optimizer: optim.SGD(model, lr=plateau)"},
}
"""By class, and by the attribute that the same thing has in another library, the way out."""

UNLISTED = ("Loaded", "History", "DType")
"""Classes whose objects are taken for others when they are called, so that their members are no way out."""

OPTIONS: dict[str, str] = {
    "learning_rate": "lr",
    **_same_advice("decay l2", "weight_decay"),
    "beta_1": "betas",
    "beta_2": "betas",
    "epsilon": "eps",
    "use_bias": "bias",
    "units": "out_features",
    "output_dim": "embedding_dim",
    "filters": "out_channels",
    "strides": "stride",
    "pool_size": "kernel_size",
    **_same_advice("rate dropout_rate", "p"),
    "return_sequences": "the output has every step, and with batch_first=True the last one is output[:, -1]",
    "size": "num_embeddings",
    **_same_advice("generator seed random_state key", "rng"),
    **_same_advice("patience early_stopping", "callbacks"),
    "requires_grad": "trainable",
    "activation": NAMES["nn"]["Activation"],
    "verbose": "progress",
    "validation_data": "validation",
    **_same_advice("metrics", "fit() notes the losses: nn.metrics.Accuracy() measures after it, or in a callback"),
    "shuffle": "nn.data.batches shuffles, unless it gets shuffle=False",
    "batch_size": "nn.data.batches takes it, as nn.data.batches(x, y, batch_size=32)",
    **_same_advice(
        "validation_split", "leave rows out of the batches, and pass validation=lambda: loss_fn(x, y) for them"
    ),
    **_same_advice("clipnorm max_norm grad_clip", "use optim.clip_by_global_norm(model, 1.0), or clip= of nn.fit"),
    **_same_advice("device", "make it in a block, with ops.device(name):, or move it: model.to(device=name)"),
    **_same_advice("training", "use model.train() and model.eval()"),
    **_same_advice("input_shape input_dim in_dim", "in_features"),
    **_same_advice("vocab_size num_words", "num_embeddings"),
    **_same_advice("dim embed_dim emb_dim", "embedding_dim"),
    **_same_advice("map_location", "leave it out: io.load gives tensors of the active backend, on its default device"),
    **_same_advice("overwrite exist_ok", "leave it out: a file that is there is replaced"),
    **_same_advice("epoch iteration", "step"),
    "model": "module",
    "num_epochs": "epochs",
}
"""By the option of a layer, an optimizer or `nn.fit` in another library, ours, or what to do where there is none."""
