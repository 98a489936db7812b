"""Names that PyTorch, Keras, MLX and optax have, and what replaces them here.

Nothing imports this module until a name is unknown. `spellings` has the names of ops. A name
that is ours in another module needs no entry, because the hint finds it there.
"""


def same_advice(names: str, advice: str) -> dict[str, str]:
    """Returns a dict that gives several names, separated by spaces, the same advice."""
    return dict.fromkeys(names.split(), advice)


_BATCHES = "use nn.data.batches(x, y, batch_size=32)"
_BY_EPOCH = "; schedules count steps, so an epoch is len(batches)"
_RATE = "pass a schedule as lr=, such as optim.SGD(model, lr=optim.schedules."
FIT = "use nn.fit(model, lambda x, y: loss_fn(model(x), y), optimizer, batches, epochs=3)"
SAVE, LOAD = "use io.save(model, 'model.safetensors')", "use io.load_model(model, 'model.safetensors')"
_CLIP = "use optim.clip_by_global_norm(model, 1.0) before optimizer.step()"
_CLASS_LOSS = "use nn.losses.cross_entropy(logits, class_ids)"
_LOSS_OF_TWO = "use nn.losses.binary_cross_entropy_with_logits(logits, targets)"
STATE = "use model.state_dict()"
CALL = "call the model itself: model(x)"
TRAINED = "use model.parameters()"
MOVE = "tensors follow the backend's default device; use model.to(device='cuda:0')"
GRAD = "use ops.backward(lambda: loss_fn(model(x), y), model), then optimizer.step()"
_UNRECORDED = "nothing is recorded outside of ops.grad and ops.backward; inside use ops.stop_gradient(x)"
_MSE = "use nn.losses.mse(predictions, targets)"
_ON_ARRAYS = "do it to the arrays, by NumPy, pandas or scikit-learn, before nn.data.batches(x, y, batch_size=32)"
_LABELS = (
    "np.unique(labels, return_inverse=True)[1] gives class ids from 0, and ops.one_hot(ids, num_classes) rows of one 1"
)
_SCALED = (
    "subtract the mean and divide by the standard deviation of the training data: (x - ops.mean(x, 0)) / ops.std(x, 0)"
)
CALLBACKS = (
    "callbacks of nn.fit are functions of a step; one that returns a text ends the training, as in "
    "callbacks=[lambda step: 'enough' if step.loss < 0.1 else '']"
)
_CHECKPOINT = "pass checkpoint=io.Checkpoint(folder) to nn.fit"
_REGULARIZED = (
    "pass weight_decay= to the optimizer, as optim.AdamW(model, weight_decay=0.01), or add the penalty to the loss"
)
_COSINE = "use ops.sum(ops.normalize(a, axis=-1) * ops.normalize(b, axis=-1), -1), or nn.losses.cosine_embedding"
CLEARED = "optimizer.step() clears the gradients; without a step use ops.zero_grad(model)"

NAMES: dict[str, dict[str, str]] = {
    "": {
        **same_advice("layers models Model Layer keras", "layers and models are in emberharmony.nn"),
        **same_advice("losses metrics data init", "it is in emberharmony.nn"),
        **same_advice("set_config config use", "use ops.set_backend(name), and ops.device(name) for a block"),
        **same_advice("devices local_devices device_count", "use ops.get_available_devices()"),
        **same_advice("optimizers lr_scheduler", "optimizers and schedules are in emberharmony.optim"),
        **same_advice("tensor array numpy functional", "use emberharmony.ops"),
        **same_advice("load_model load save_model load_state_dict", "files are read by emberharmony.io"),
        **same_advice("utils datasets", "batches are made by nn.data.batches(x, y, batch_size=32)"),
        **same_advice("torch mlx jax dask tensorflow", "a backend is chosen by ops.set_backend(name), as 'torch'"),
        **same_advice("callbacks EarlyStopping ModelCheckpoint Callback TensorBoard", CALLBACKS),
        **same_advice("regularizers Regularizer", _REGULARIZED),
        **same_advice("initializers", "it is emberharmony.nn.init"),
        **same_advice("cuda gpu", "use ops.get_available_devices() and ops.set_default_device(name)"),
        **same_advice("Array ndarray", "for annotations use emberharmony.Tensor; ops.array(x) makes a tensor"),
        **same_advice("device_get", "use ops.to_numpy(x)"),
        **same_advice("block_until_ready", "use ops.eval(x)"),
        **same_advice("fit train Trainer", FIT),
        **same_advice("set_seed manual_seed set_random_seed", "use ops.random.seed(n)"),
        **same_advice("list_backends available_backends", "use ops.available_backends()"),
        **same_advice("clear_session", "nothing is to be cleared: make the model anew"),
        **same_advice("preprocessing", _ON_ARRAYS),
    },
    "ops": {
        "Tensor": "for annotations use emberharmony.Tensor; ops.array(x) makes a tensor",
        "no_grad": _UNRECORDED,
        **dict.fromkeys(("inference_mode", "enable_grad", "set_grad_enabled"), _UNRECORDED),
        **same_advice("is_available list_backends backends get_backends", "use ops.available_backends()"),
        "to_backend": "use emberharmony.to_backend(x, 'torch')",
        **same_advice(
            "cuda", "use ops.get_available_devices(), ops.set_default_device(name), or ops.to_device(x, device)"
        ),
        **same_advice("Size", "use tuple(x.shape)"),
        **same_advice(
            "errstate seterr", "it is NumPy's: with numpy.errstate(...):, or ops.checked('nan') for any backend"
        ),
        **same_advice(
            "set_printoptions get_printoptions", "it is NumPy's: numpy.set_printoptions(...), for ops.to_numpy(x)"
        ),
        **same_advice(
            "genfromtxt fromfile fromstring memmap", "read it with NumPy, and use ops.convert_to_tensor(array)"
        ),
        **same_advice("savetxt savez savez_compressed", SAVE),
        **same_advice("use_deterministic_algorithms", "use ops.random.seed(n); results of one backend repeat"),
        **same_advice("set_num_threads get_num_threads", "it is the library's own: torch.set_num_threads(n)"),
        **same_advice("is_grad_enabled", "use ops.is_traced(x)"),
        **same_advice("add_weight", "use nn.Parameter(value) in __init__ of an nn.Module"),
        **same_advice("GradScaler", "use optim.LossScaler"),
        **same_advice("pad_sequences", "pad rows to one length by ops.pad(x, [(0, n)]), then ops.stack(rows)"),
        **same_advice("StandardScaler MinMaxScaler RobustScaler scale minmax_scale", _SCALED),
        **same_advice("LabelEncoder LabelBinarizer OneHotEncoder", _LABELS),
        **same_advice("clear_session", "nothing is to be cleared: make the model anew"),
        **same_advice("sparse_coo_tensor sparse_csr_tensor", "tensors are dense: ops.array(x.toarray())"),
        **same_advice("TensorShape", "use tuple(x.shape)"),
        **same_advice("backend current_backend", "use ops.get_backend()"),
        "gradient": "use ops.grad(fn) for derivatives; differences of neighbours are ops.diff(x)",
        **same_advice("GradientTape gradients autograd backward_", GRAD),
        **same_advice("loadtxt read_csv", "read it with NumPy or pandas, and use ops.convert_to_tensor(array)"),
        "item": "use float(x) or int(x)",
        "to_tensor": "use ops.convert_to_tensor(x)",
        "print": "use print(x)",
        "apply_along_axis": "use ops.vmap(fn)",
        "index_add": "use ops.segment_sum(x, ids, num_segments) or ops.scatter_update(x, indices, updates)",
    },
    "ops.random": {
        **same_advice("key split fold_in", "use ops.random.Generator(seed), and generator.split(n) for more"),
        **same_advice("random rand random_sample ranf sample", "use ops.random.uniform(shape)"),
        **same_advice("randn standard_exponential_", "use ops.random.normal(shape)"),
        **same_advice("integers random_integers", "use ops.random.randint(shape, minval, maxval)"),
        "spawn": "use ops.random.Generator(seed), and generator.split(n) for more",
        **same_advice("lognormal loggamma", "use ops.exp(ops.random.normal(shape))"),
        **same_advice("rademacher", "use 2.0 * ops.random.bernoulli(shape, 0.5) - 1.0"),
        **same_advice("chisquare", "use 2.0 * ops.random.gamma(shape, df / 2)"),
        **same_advice("standard_gamma", "use ops.random.gamma(shape, alpha)"),
        **same_advice("standard_exponential", "use ops.random.exponential(shape)"),
        **same_advice("bytes bits", "use ops.random.randint(shape, 0, 256, dtype='uint8')"),
        **same_advice("permuted", "use ops.random.permutation(x)"),
        **same_advice("multinomial", "use ops.random.categorical(logits, num_samples)"),
        **same_advice("truncated_normal_", "use ops.random.truncated_normal(shape)"),
    },
    "nn": {
        **same_advice("Dense DenseGeneral EinsumDense LinearGeneral", "use nn.Linear(in_features, out_features)"),
        **same_advice("Conv", "use nn.Conv1d, nn.Conv2d or nn.Conv3d"),
        **same_advice("ConvTranspose", "use nn.ConvTranspose1d, nn.ConvTranspose2d or nn.ConvTranspose3d"),
        **same_advice("InstanceNorm", "use nn.InstanceNorm1d, nn.InstanceNorm2d or nn.InstanceNorm3d"),
        **same_advice("AdaptivePool Pool", "use nn.AdaptiveAvgPool2d, nn.MaxPool2d and their like"),
        **{f"SpatialDropout{n}D": f"use nn.Dropout{n}d(p)" for n in (1, 2, 3)},
        **{f"Cropping{n}D": "use a slice, as x[:, :, 1:-1, 1:-1]" for n in (1, 2, 3)},
        **same_advice("Embed", "use nn.Embedding(num_embeddings, embedding_dim)"),
        **same_advice(
            "Attention AdditiveAttention SelfAttention MultiHeadDotProductAttention GroupQueryAttention",
            "use nn.MultiheadAttention(embed_dim, num_heads), or ops.dot_product_attention(query, key, value)",
        ),
        **same_advice("Masking", "zero what does not count: ops.where(mask, x, 0.0); cross_entropy has ignore_index"),
        **same_advice("TimeDistributed", "leave it out: nn.Linear acts on the last axis, whatever is in front"),
        **same_advice("Rescaling", "use nn.Lambda(lambda x: x / 255.0), or scale the array before nn.data.batches"),
        **same_advice("Normalization UnitNormalization", f"{_SCALED}; rows of length 1: ops.normalize(x, axis=-1)"),
        **same_advice("Resizing", "use ops.image.resize(images, size)"),
        **same_advice("CenterCrop RandomCrop", "use a slice, as x[:, :, 4:-4, 4:-4], or ops.image.crop_images"),
        **same_advice(
            "RandomFlip RandomRotation RandomZoom RandomBrightness RandomContrast RandomTranslation",
            "change the batch in the loop, as ops.flip(x, axis=-1) or ops.image.affine_transform; ops.random.bernoulli "
            "says when",
        ),
        **same_advice(
            "TextVectorization StringLookup IntegerLookup Hashing CategoryEncoding Discretization",
            f"{_LABELS}; {_ON_ARRAYS}",
        ),
        **same_advice("RepeatVector", "use ops.repeat(ops.expand_dims(x, 1), n, 1)"),
        **same_advice("ActivityRegularization", _REGULARIZED),
        **same_advice(
            "SpectralNorm SpectralNormalization WeightNorm",
            "use nn.parametrize.weight_norm(layer) or nn.parametrize.spectral_norm(layer)",
        ),
        **same_advice("Maximum Minimum Average Subtract Dot", "use ops.maximum, ops.minimum, + or - in __call__"),
        **same_advice("CosineSimilarity", _COSINE),
        **same_advice("PairwiseDistance", "use ops.norm(a - b, axis=-1)"),
        **same_advice("StackedRNNCells SimpleRNNCell MGUCell", "use nn.RNN, nn.LSTM or nn.GRU with num_layers="),
        **same_advice("FractionalMaxPool2d FractionalMaxPool3d", "use nn.AdaptiveMaxPool2d(output_size)"),
        **same_advice(
            "AdaptiveLogSoftmaxWithLoss", "use nn.Linear(width, classes) and nn.losses.cross_entropy(logits, ids)"
        ),
        **same_advice("Container", "use nn.Module, nn.Sequential or nn.ModuleList"),
        **same_advice("List", "use nn.ModuleList"),
        **same_advice("Dict FrozenDict", "use nn.ModuleDict"),
        **same_advice("Param UninitializedParameter State BatchStat", "use nn.Parameter(value), or nn.Buffer(value)"),
        **same_advice("Callback EarlyStopping LambdaCallback TerminateOnNaN ReduceLROnPlateau_", CALLBACKS),
        **same_advice(
            "CSVLogger TensorBoard ProgbarLogger RemoteMonitor", f"history.losses has the losses; {CALLBACKS}"
        ),
        **same_advice("ModelCheckpoint BackupAndRestore OrbaxCheckpoint", _CHECKPOINT),
        **same_advice("LearningRateScheduler", "pass a schedule as lr=, such as optim.schedules.cosine(0.1, 1000)"),
        **same_advice("summary tabulate", "use print(model.summary())"),
        **same_advice("clone_model", "use copy.deepcopy(model)"),
        **same_advice("model_from_json from_config", "write the class again, and io.load_model(model, path)"),
        **same_advice("to_categorical", _LABELS),
        **same_advice("pad_sequences", "pad rows to one length by ops.pad(x, [(0, n)]), then ops.stack(rows)"),
        **same_advice(
            "load_img img_to_array image_dataset_from_directory",
            f"read images with Pillow and numpy.asarray; {_BATCHES}",
        ),
        **same_advice("StandardScaler MinMaxScaler RobustScaler Normalizer", _SCALED),
        **same_advice("LabelEncoder LabelBinarizer OneHotEncoder OrdinalEncoder", _LABELS),
        **same_advice("Pipeline make_pipeline", "use nn.Sequential(layer, layer)"),
        **same_advice("GradientTape", GRAD),
        **same_advice("jit", "use ops.compile(fn)"),
        **same_advice("TrainState ModelAndOptimizer", "use a model of nn and an optimizer: optim.Adam(model)"),
        **same_advice("cosine_similarity", _COSINE),
        **same_advice("init_", "use nn.init.apply(parameter, nn.init.normal())"),
        **same_advice("update", "use model.load_state_dict(tensors)"),
        **same_advice("average_gradients", "use nn.DataParallel(model)"),
        **same_advice("Function", "use ops.custom_gradient(fn)"),
        **same_advice("parallel", "use nn.DataParallel(model)"),
        **same_advice("regularizers Regularizer", _REGULARIZED),
        **same_advice("initializers", "use nn.init"),
        **same_advice("BatchNormalization BatchNorm", "use nn.BatchNorm1d, nn.BatchNorm2d or nn.BatchNorm3d"),
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
        **same_advice("Concatenate Add Multiply", "use ops.concatenate, + or * in __call__ of an nn.Module"),
        **same_advice("Model Layer", "use nn.Module, with __init__ and __call__"),
        "Variable": "use nn.Parameter(value)",
        **same_advice("DataLoader Dataset TensorDataset", _BATCHES),
        "utils": "print(model.summary()) shows the layers, optim.clip_by_global_norm(model, 1.0) clips gradients",
        **same_advice("plot_model plot", "print(model.summary()) shows the layers, and history.plot() the losses"),
        **same_advice(
            "MLP MLPClassifier MLPRegressor", "use nn.Sequential(nn.Linear(4, 16), nn.ReLU(), nn.Linear(16, 3))"
        ),
        **same_advice("compact", "layers are made in __init__, and called in __call__"),
        **same_advice(
            "weight_norm spectral_norm", "use nn.parametrize.weight_norm(layer) or nn.parametrize.spectral_norm(layer)"
        ),
        **same_advice("functional F", "functions are in ops (ops.relu), losses in nn.losses"),
        **same_advice("no_grad eval", "use model.eval(); nothing is recorded outside of ops.grad"),
        "clip_grad_norm_": _CLIP,
        "SyncBatchNorm": "use nn.DataParallel(model)",
        **same_advice("CrossEntropy SparseCategoricalCrossentropy CategoricalCrossentropy", _CLASS_LOSS),
        "BinaryCrossentropy": _LOSS_OF_TWO,
        **same_advice("MeanSquaredError mse_loss", _MSE),
    },
    "nn.functional": {"cross_entropy": _CLASS_LOSS, "mse_loss": _MSE},
    "nn.losses": {
        "get": "pass the function itself, such as nn.losses.mse",
        **same_advice("CosineSimilarity cosine_similarity cosine_similarity_loss", _COSINE),
        **same_advice("CategoricalHinge", "use nn.losses.multi_margin(outputs, ids)"),
        **same_advice("SquaredHinge squared_hinge", "use ops.mean(ops.square(ops.maximum(1.0 - y * x, 0.0)))"),
        **same_advice("KLDivergence", "use nn.losses.kl_div(log_probabilities, target)"),
        **same_advice("Poisson poisson", "use nn.losses.poisson_nll(outputs, target)"),
        **same_advice("BinaryFocalCrossentropy CategoricalFocalCrossentropy", "use nn.losses.focal(logits, target)"),
        **same_advice(
            "MeanAbsolutePercentageError mean_absolute_percentage_error mape",
            "use ops.mean(ops.abs((target - x) / target))",
        ),
        **same_advice(
            "MeanSquaredLogarithmicError mean_squared_logarithmic_error msle rmsle",
            "use nn.losses.mse(ops.log1p(x), ops.log1p(target))",
        ),
        **same_advice("rmse RMSE root_mean_squared_error", "use ops.sqrt(nn.losses.mse(x, target))"),
        **same_advice("softmax_cross_entropy sparse_softmax_cross_entropy nll_loss_", _CLASS_LOSS),
        **same_advice("sigmoid_cross_entropy sigmoid_binary_cross_entropy", _LOSS_OF_TWO),
        **same_advice("Circle Tversky Jaccard IoU iou", "use nn.losses.dice(logits, target)"),
        **same_advice("CategoricalCrossentropy SparseCategoricalCrossentropy", _CLASS_LOSS),
        **same_advice("categorical_crossentropy sparse_categorical_crossentropy", _CLASS_LOSS),
        **same_advice("BinaryCrossentropy binary_crossentropy bce_with_logits bce", _LOSS_OF_TWO),
        **dict.fromkeys(("MeanSquaredError", "mean_squared_error", "mse_loss"), _MSE),
        **same_advice("MeanAbsoluteError mean_absolute_error mae l1_loss", "use nn.losses.l1"),
        "nll_loss": "use nn.losses.nll",
    },
    "nn.metrics": {
        **dict.fromkeys(
            ("CategoricalAccuracy", "SparseCategoricalAccuracy", "BinaryAccuracy"), "use nn.metrics.Accuracy()"
        ),
        "accuracy_score": "use nn.metrics.Accuracy(), with update(outputs, labels) and compute()",
        "f1_score": "use nn.metrics.F1(), with update(outputs, labels) and compute()",
        **same_advice(
            "RMSE RootMeanSquaredError root_mean_squared_error",
            "use nn.metrics.MSE(), and the square root of its result",
        ),
        **same_advice("categorical_accuracy sparse_categorical_accuracy binary_accuracy", "use nn.metrics.Accuracy()"),
        **same_advice("TopKCategoricalAccuracy SparseTopKCategoricalAccuracy", "use nn.metrics.TopK(k)"),
        **same_advice("top_k_categorical_accuracy sparse_top_k_categorical_accuracy", "use nn.metrics.TopK(k)"),
        **same_advice("F1Score FBetaScore", "use nn.metrics.F1()"),
        **same_advice("R2Score", "use nn.metrics.R2()"),
        **same_advice(
            "MeanIoU IoU BinaryIoU OneHotIoU TruePositives FalsePositives TrueNegatives FalseNegatives "
            "matthews_corrcoef precision_recall_fscore_support",
            "use nn.metrics.ConfusionMatrix(num_classes), from which it follows",
        ),
        **same_advice("MeanMetricWrapper Sum", "use nn.metrics.Mean()"),
        **same_advice("CosineSimilarity", _COSINE),
        **same_advice("MeanAbsoluteError mean_absolute_error", "use nn.metrics.MAE()"),
        **same_advice("MeanSquaredError mean_squared_error", "use nn.metrics.MSE()"),
    },
    "nn.data": {
        **same_advice("Subset ConcatDataset IterableDataset Sampler RandomSampler default_collate", _BATCHES),
        **same_advice(
            "train_test_split random_split",
            "order = ops.random.permutation(rows) is a random order: x[order[:n]] and x[order[n:]] are parts",
        ),
        **same_advice("DataLoader Dataset TensorDataset from_tensor_slices", _BATCHES),
        **same_advice(
            "SequentialSampler WeightedRandomSampler SubsetRandomSampler PyDataset Sequence loader", _BATCHES
        ),
        "DistributedSampler": "use nn.data.batches(x, y, batch_size=32, shard=True)",
        **same_advice(
            "KFold StratifiedKFold ShuffleSplit cross_val_score GridSearchCV split_dataset",
            "scikit-learn splits the rows: for train, test in KFold(5).split(x): make batches of x[train], y[train]",
        ),
        **same_advice("StandardScaler MinMaxScaler RobustScaler scale minmax_scale Normalizer", _SCALED),
        **same_advice("LabelEncoder LabelBinarizer OneHotEncoder OrdinalEncoder to_categorical", _LABELS),
        **same_advice("pad_sequences", "pad rows to one length by ops.pad(x, [(0, n)]), then ops.stack(rows)"),
        **same_advice(
            "mnist cifar10 MNIST CIFAR10 load_iris load_digits", "read the data by its library, as arrays of NumPy"
        ),
    },
    "nn.init": {
        **same_advice("GlorotUniform glorot_uniform", "use nn.init.xavier_uniform"),
        **same_advice("GlorotNormal glorot_normal", "use nn.init.xavier_normal"),
        **same_advice("HeUniform he_uniform", "use nn.init.kaiming_uniform"),
        **same_advice("HeNormal he_normal", "use nn.init.kaiming_normal"),
        **same_advice("VarianceScaling variance_scaling", "use nn.init.kaiming_normal or nn.init.xavier_uniform"),
        **same_advice("RandomNormal random_normal", "use nn.init.normal(std=0.02)"),
        **same_advice("RandomUniform random_uniform", "use nn.init.uniform(-0.05, 0.05)"),
        **same_advice("TruncatedNormal truncated_normal", "use nn.init.trunc_normal(std=0.02)"),
        **same_advice("OrthogonalInitializer delta_orthogonal", "use nn.init.orthogonal()"),
        **same_advice("Identity identity IdentityInitializer", "use nn.init.eye()"),
    },
    "optim": {
        "get": "pass an optimizer, such as optim.Adam(model)",
        **same_advice("lr_scheduler LRScheduler", f"{_RATE}cosine(0.1, 1000))"),
        "StepLR": f"{_RATE}step(0.1, step_size=30 * len(batches))){_BY_EPOCH}",
        "MultiStepLR": f"{_RATE}multistep(0.1, [30 * len(batches), 80 * len(batches)])){_BY_EPOCH}",
        "ExponentialLR": f"{_RATE}exponential(0.1, 0.99 ** (1 / len(batches)))){_BY_EPOCH}",
        **same_advice("ExponentialDecay exponential_decay", f"{_RATE}exponential(0.1, 0.99))"),
        "CosineAnnealingLR": f"{_RATE}cosine(0.1, 100 * len(batches))){_BY_EPOCH}",
        **same_advice("CosineDecay cosine_decay", f"{_RATE}cosine(0.1, 1000))"),
        "CosineAnnealingWarmRestarts": f"{_RATE}cosine_restarts(0.1, 10 * len(batches))){_BY_EPOCH}",
        "OneCycleLR": f"{_RATE}one_cycle(0.1, 1000))",
        "CyclicLR": f"{_RATE}cyclic(...))",
        "LinearLR": f"{_RATE}linear(0.1, total_iters=5 * len(batches))){_BY_EPOCH}",
        "PolynomialLR": f"{_RATE}polynomial(0.1, 5 * len(batches))){_BY_EPOCH}",
        "PolynomialDecay": f"{_RATE}polynomial(0.1, 1000))",
        **same_advice("PiecewiseConstantDecay step_decay", f"{_RATE}piecewise([30], [0.1, 0.01]))"),
        "LambdaLR": "pass a function of the number of steps as lr=",
        **same_advice("ConstantLR MultiplicativeLR", "pass a function of the number of steps as lr="),
        **same_advice(
            "apply_updates chain", "use optimizer.step(), or params, state = optimizer.update(grads, state, params)"
        ),
        **same_advice("SequentialLR join_schedules ChainedScheduler", f"{_RATE}join([...], [...]))"),
        **same_advice("warmup_cosine_decay_schedule", f"{_RATE}warmup(optim.schedules.cosine(0.1, 1000), steps=100))"),
        **same_advice("piecewise_constant_schedule", f"{_RATE}piecewise([30], [0.1, 0.01]))"),
        **same_advice("cosine_onecycle_schedule linear_onecycle_schedule", f"{_RATE}one_cycle(0.1, 1000))"),
        **same_advice("sgdr_schedule CosineDecayRestarts", f"{_RATE}cosine_restarts(0.1, 1000))"),
        **same_advice("InverseTimeDecay LearningRateSchedule", "pass a function of the number of steps as lr="),
        **same_advice("inject_hyperparams", "assign optimizer.param_groups[0]['lr']"),
        **same_advice("adaptive_grad_clip clip_by_block_rms", _CLIP),
        **same_advice("add_decayed_weights", "pass weight_decay= to the optimizer"),
        **same_advice("MultiSteps apply_every", "use optim.Accumulate(optimizer, steps)"),
        **same_advice("apply_if_finite zero_nans skip_not_finite", "use optim.SkipNonfinite(optimizer)"),
        **same_advice(
            "multi_transform masked partition MultiOptimizer", "pass groups: optim.SGD([{'params': a, 'lr': 0.1}])"
        ),
        **same_advice("softmax_cross_entropy softmax_cross_entropy_with_integer_labels", _CLASS_LOSS),
        **same_advice("sigmoid_binary_cross_entropy", _LOSS_OF_TWO),
        **same_advice("l2_loss squared_error", _MSE),
        **same_advice("cosine_similarity cosine_distance", _COSINE),
        **same_advice("smooth_labels", "use nn.losses.cross_entropy(logits, ids, label_smoothing=0.1)"),
        **same_advice("global_norm", "optim.clip_by_global_norm(model, float('inf')) returns the norm"),
        **same_advice("incremental_update polyak_sgd", "use optim.EMA(model, 0.999)"),
        **same_advice(
            "lars fromage novograd sm3 yogi adabelief Ftrl adan", "use optim.LAMB, optim.Adam or optim.AdamW"
        ),
        **same_advice("SparseAdam", "use optim.Adam(model)"),
        **same_advice("GradientTransformation OptState", "use optim.Adam(model), or a subclass of optim.Optimizer"),
        "ReduceLROnPlateau": "use optim.ReduceOnPlateau(0.1) as lr=",
        "GradScaler": "use optim.LossScaler",
        "swa_utils": "use optim.SWA or optim.EMA",
        **same_advice("clip_grad_norm_ clip_grad_norm clip_grads", _CLIP),
        **same_advice("clip_grad_value_ clip_gradients", "use optim.clip_by_value(model, 1.0)"),
        "zero_grad": CLEARED,
    },
    "optim.schedules": {
        "InverseTimeDecay": "use a function of the number of steps, as lr=lambda step: 0.1 / (1 + 0.01 * step)",
        "LearningRateSchedule": "any function of the number of steps is a schedule: pass it as lr=",
    },
    "io": {
        "save_model": "use io.save(model, 'model.safetensors')",
        **same_advice("dump savetxt write", SAVE),
        "read": "use io.load('model.safetensors')",
        **same_advice(
            "load_torch from_pretrained", "io.load_model(model, path) reads files of PyTorch and safetensors"
        ),
        **same_advice("save_weights save_file save_safetensors savez", SAVE),
        **same_advice("load_weights load_state_dict", LOAD),
        **same_advice("load_file safe_open loadz", "use io.load('model.safetensors')"),
        **same_advice("save_checkpoint load_checkpoint", "use io.Checkpoint(folder), with save and restore"),
    },
}
"""By public package, as "nn", and by the name that another library has there, the way out."""

_OWN_CLASS = "write it as a class: class Name(nn.Module):, with layers and nn.Parameter in __init__, and __call__"
WITHOUT_COUNTERPART: dict[str, str] = {
    "": "; the public modules are ops, nn, optim, io, xp and testing, and dir(module) lists their names",
    "ops": "; dir(ops) lists all names; a function of another library takes ops.to_numpy(x), and "
    "ops.convert_to_tensor(array) its result, without a gradient",
    "nn": f"; dir(nn) lists all names; {_OWN_CLASS}; functions are in ops, losses in nn.losses",
    "optim": "; dir(optim) lists all names; a rule of your own is a subclass of optim.Optimizer, and a schedule any "
    "function of the number of steps, as lr=lambda step: 0.1 * 0.99**step",
    "io": "; io.save(model, 'model.safetensors') or io.Checkpoint(folder) writes files, and io.load or "
    "io.load_model(model, path) reads them",
}
"""By the first part of a public package, what to do about a name that resembles none of it."""
