"""Attributes and options that objects have in other libraries and lack here, each with what replaces it."""

from emberharmony.core.names.elsewhere import (
    CALL,
    CALLBACKS,
    CLEARED,
    FIT,
    GRAD,
    LOAD,
    MOVE,
    NAMES,
    SAVE,
    STATE,
    TRAINED,
    same_advice,
)

_MODULE = {
    **same_advice("cuda cpu mps", MOVE),
    **same_advice("half", "use model.to(dtype='float16')"),
    **same_advice("float astype type", "use model.to(dtype='float32')"),
    "double": "use model.to(dtype='float64')",
    "bfloat16": "use model.to(dtype='bfloat16')",
    **same_advice("add_weight add_variable", "assign it in __init__: self.weight = nn.Parameter(value)"),
    **same_advice("build", "make layers and parameters in __init__, with the sizes of the input"),
    **same_advice(
        "loss metrics history", "fit() returns the history: history = nn.fit(model, loss_fn, optimizer, batches)"
    ),
    **same_advice("classes_ feature_importances_ intercept_ n_features_in_", STATE),
    **same_advice(
        "get_params set_params", "options are given when a model is made; model.state_dict() has the weights"
    ),
    **same_advice("share_memory data_ptr", STATE),
    **same_advice(
        "init", "parameters get values when the model is made; nn.init.apply(parameter, nn.init.normal()) gives others"
    ),
    **same_advice("get_config to_json", "write the class again, and io.load_model(model, path)"),
    **same_advice("input_shape output_shape", "use ops.eval_shape(model, x)"),
    "zero_grad": CLEARED,
    **same_advice("fit train_on_batch train_step", FIT),
    **same_advice(
        "compile", "nothing is to be compiled: pass loss and optimizer to nn.fit, or the model to ops.compile"
    ),
    **same_advice("predict transform forward call", CALL),
    "predict_proba": "use ops.softmax(model(x))",
    **same_advice("copy clone", "use copy.deepcopy(model)"),
    **same_advice("weight bias kernel coef_", "dict(model.named_parameters()) has the parameters by name"),
    **same_advice("step optimizer", "an optimizer is an object of its own: optimizer = optim.Adam(model)"),
    **same_advice("evaluate score", "use model.eval(), and nn.metrics.Accuracy() or a loss of nn.losses"),
    **same_advice("save save_weights save_pretrained", SAVE),
    **same_advice("load load_weights from_pretrained", LOAD),
    "register_buffer": "assign it: self.mean = nn.Buffer(value)",
    "register_parameter": "assign it: self.weight = nn.Parameter(value)",
    **same_advice("add_module register_module", "assign the module: self.head = nn.Linear(2, 1)"),
    **same_advice("add", "use append(module), or pass the modules: nn.Sequential(a, b)"),
    "requires_grad_": "use model.freeze() and model.unfreeze()",
    "backward": GRAD,
    **same_advice("get_weights weights variables", STATE),
    "set_weights": "use model.load_state_dict(tensors)",
    **same_advice("trainable_weights trainable_variables trainable_parameters", TRAINED),
    **same_advice(
        "modules named_children layers get_submodule get_layer", "use dict(model.named_modules()) or children()"
    ),
    "to_backend": "use model.to(backend='torch')",
    "count_params": "print(model.summary())",
    **same_advice("device", "use ops.get_device(parameter.value)"),
    **same_advice("dtype", "use ops.dtype(parameter.value)"),
    **same_advice("get_parameter get_buffer keys items values", "use dict(model.named_parameters())[name]"),
    **same_advice("non_trainable_weights non_trainable_variables", "use model.parameters(trainable=False)"),
    **same_advice("trainable trainable_", "use model.freeze() and model.unfreeze()"),
    **same_advice("partial_fit", FIT),
    **same_advice("predict_on_batch predict_step predict_log_proba stateless_call", CALL),
    **same_advice("test_on_batch test_step compute_metrics compute_loss", "call a loss of nn.losses on model(x) and y"),
    **same_advice("set_dtype", "use model.to(dtype='float16')"),
    **same_advice("xpu ipu to_device", MOVE),
    **same_advice("input output inputs outputs", "ops.record() shows what layers get and return"),
    **same_advice("leaf_modules flattened_layers", "use dict(model.named_modules()) or children()"),
    **same_advice(
        "losses add_loss add_metric metrics_names", "the loss is a function: lambda x, y: loss_fn(model(x), y)"
    ),
    **same_advice("update state", STATE),
    **same_advice("extra_repr", "define __repr__"),
    **same_advice("set_submodule", "assign the module: self.head = nn.Linear(2, 1)"),
    **same_advice("pop", "use del model[-1], or nn.Sequential(*model.children()[:-1])"),
    **same_advice(
        "register_forward_hook register_hook register_forward_pre_hook register_full_backward_hook",
        "use ops.record() to see what layers return",
    ),
}
_OPTIMIZER = {
    **same_advice("minimize backward", GRAD),
    **same_advice("apply_gradients apply apply_updates", "use optimizer.step(gradients)"),
    **same_advice("iterations", "len(history) of nn.fit counts the steps"),
    **same_advice("variables get_config get_weights", "use optimizer.state_dict()"),
    **same_advice("set_weights from_config", "use optimizer.load_state_dict(state)"),
    **same_advice("build add_variable", "the model is given when it is made: optim.Adam(model)"),
    **same_advice("update_step apply_single", "use optimizer.step()"),
    **same_advice(
        "learning_rate lr set_lr get_lr", "use optimizer.learning_rates()[0], or assign optimizer.param_groups[0]['lr']"
    ),
}
_PARAMETER = {
    "device": "use ops.get_device(parameter.value)",
    "detach": "use ops.stop_gradient(parameter), or parameter.value for the tensor",
    "numpy": "use ops.to_numpy(parameter)",
    **same_advice("new_tensor new_full", "use ops.array(x), or ops.full(shape, fill_value)"),
    "requires_grad": "assign parameter.trainable = False",
    "data": "assign parameter.value = tensor",
    **same_advice("assign copy_ set_value assign_add", "assign parameter.value = tensor"),
    "backward": GRAD,
    "zero_grad": CLEARED,
    "numel": "use parameter.size",
    **same_advice("fill_ zero_ normal_ uniform_", "assign parameter.value = tensor, as ops.zeros(parameter.shape)"),
    **same_advice("cpu cuda", "use ops.to_device(parameter.value, device)"),
    **same_advice("is_leaf retain_grad", "every Parameter is one: ops.backward gives it a gradient in parameter.grad"),
}
_METRIC = {
    "result": "use compute()",
    **same_advice("update_state add_batch forward", "use update(outputs, labels)"),
    **same_advice("reset_state reset_states", "use reset()"),
    **same_advice("__call__ numpy item", "use update(outputs, labels), then compute()"),
}
_HISTORY = {
    **same_advice("on_epoch_end on_batch_end on_train_begin on_train_end on_epoch_begin", CALLBACKS),
    **same_advice("val_loss val_losses", "history.validations has the losses of validation="),
    **same_advice("show save savefig", "axes = history.plot(), and then axes.figure.savefig('loss.png')"),
    **same_advice("epochs", "each item is a step: len(history), history[-1].loss"),
    **same_advice("model params", "fit() trains the model that it is given: keep it under a name of its own"),
    "accuracy": "it has losses: nn.metrics.Accuracy(), with update(model(x), y) and compute(), gives the accuracy",
    "predict": "fit() trains the model that it is given: call the model itself, model(x)",
    "history": "the losses are history.losses",
    "epoch": "each item is a step: history[-1].loss",
}
_BATCH = {
    "dataset": "iterate over it: for x, y in batches",
    "take": "use next(iter(batches))",
    "repeat": "use forever()",
    **same_advice("num_batches steps_per_epoch cardinality", "len(batches) counts them"),
    **same_advice("shape element_spec", "x, y = next(iter(batches)) is one batch, and x.shape its shape"),
    **same_advice("map filter prefetch cache", "change x and y in the loop, or the arrays before nn.data.batches"),
    **same_advice("sampler num_workers collate_fn", "nn.data.batches takes shuffle=, drop_last= and rng= alone"),
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
    "Metric": _METRIC,
    "Step": {"epoch": "step.step counts the steps; len(batches) of them are an epoch"},
    "Batches": _BATCH,
    "Formula": _SCHEDULE,
    "Generator": {
        **same_advice(
            "beta binomial exponential gamma gumbel laplace poisson multivariate_normal permutation choice shuffle",
            "functions of ops.random take it: ops.random.gamma(shape, alpha, generator=generator)",
        ),
        "spawn": "use split(n)",
        **same_advice("get_state", "use state_dict()"),
        **same_advice("set_state", "use load_state_dict(state)"),
        **same_advice("manual_seed seed", "a seed is given when it is made: ops.random.Generator(0)"),
        **same_advice(
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
    **same_advice("decay l2", "weight_decay"),
    **same_advice("beta_1 beta_2", "betas"),
    "epsilon": "eps",
    **same_advice("use_bias bias_attr has_bias", "bias"),
    **same_advice("units output_size out_dim hidden_dim num_units", "out_features hidden_size"),
    "output_dim": "embedding_dim out_features",
    "filters": "out_channels",
    "strides": "stride",
    "dilation_rate": "dilation",
    **same_advice("pool_size kernel", "kernel_size"),
    **same_advice("rate dropout_rate", "p"),
    **same_advice("generator seed random_state key", "rng"),
    **same_advice("patience early_stopping", "callbacks"),
    "requires_grad": "trainable",
    "verbose": "progress",
    "validation_data": "validation",
    **same_advice("input_shape input_dim in_dim", "in_features num_embeddings input_size in_channels"),
    **same_advice("size vocab_size num_words", "num_embeddings"),
    **same_advice("dim embed_dim emb_dim d_model", "embedding_dim embed_dim axis normalized_shape"),
    **same_advice("nhead heads", "num_heads"),
    **same_advice("layers n_layers", "num_layers"),
    **same_advice("epoch iteration", "step"),
    **same_advice("loss criterion", "loss_fn"),
    "optim": "optimizer",
    **same_advice("loader data dataset train_loader", "batches"),
    "model": "module",
    "num_epochs": "epochs",
}
"""By the option of a layer, an optimizer or `nn.fit` in another library, ours, of which a function has the first."""

ABSENT_OPTIONS: dict[str, str] = {
    "return_sequences": "the output has every step, and with batch_first=True the last one is output[:, -1]",
    "activation": NAMES["nn"]["Activation"],
    "metrics": "fit() notes the losses: nn.metrics.Accuracy() measures after it, or in a callback",
    "shuffle": "nn.data.batches shuffles, unless it gets shuffle=False",
    "batch_size": "nn.data.batches takes it, as nn.data.batches(x, y, batch_size=32)",
    "validation_split": "leave rows out of the batches, and pass validation=lambda: loss_fn(x, y) for them",
    **same_advice("clipnorm max_norm grad_clip", "use optim.clip_by_global_norm(model, 1.0), or clip= of nn.fit"),
    "device": "make it in a block, with ops.device(name):, or move it: model.to(device=name)",
    "training": "use model.train() and model.eval()",
    "input_shape": "leave it out, or use nn.Linear(None, 3) and nn.build(model, example)",
    "map_location": "leave it out: io.load gives tensors of the active backend, on its default device",
    **same_advice("overwrite exist_ok", "leave it out: a file that is there is replaced"),
    **same_advice("trainable frozen", "freeze it when it is made: layer.freeze()"),
    **same_advice(
        "kernel_initializer bias_initializer init_fn",
        "give the values when it is made: nn.init.apply(layer.weight, nn.init.kaiming_normal())",
    ),
    **same_advice("kernel_regularizer activity_regularizer", "pass weight_decay= to the optimizer"),
    "from_logits": "leave it out: cross_entropy and binary_cross_entropy_with_logits take logits",
    **same_advice(
        "num_workers pin_memory collate_fn", "leave it out: the arrays are in memory, and a batch is a slice"
    ),
    "weights_only": "leave it out: files are read without running any program in them",
    "scheduler": "pass a schedule as lr= of the optimizer",
    "sample_weight": "use reduction='none', and then ops.mean(weights * losses)",
    "class_weight": "weight= takes a list with a number for each class",
    "input_size": "pass an example of the input, as model.summary(ops.zeros((1, 3)))",
}
"""By an option of another library that ours do not have, what to do in its place."""
