"""Presets: settings for kinds of projects and well-known array namespaces, as tables of `[tool.emberlint]`."""

from collections.abc import Mapping

_KERAS_CLASSES = [
    f"{package}.{name}"
    for name, module in (
        ("Layer", "layers.layer"),
        ("Model", "models.model"),
        ("Loss", "losses.loss"),
        ("Metric", "metrics.metric"),
        ("Operation", "ops.operation"),
    )
    for package in ("keras", f"keras.{module.partition('.')[0]}", f"keras.src.{module}")
]

PRESETS: Mapping[str, Mapping[str, object]] = {
    # Libraries, whose callers pass tensors of any dtype: each operator on a tensor is a finding. The default.
    "strict": {"allow-safe-operators": False},
    # Programs: only operators are findings whose operands may differ in dtype, or be integers or booleans.
    "application": {"allow-safe-operators": True},
    # Keras itself, and code over `keras.ops` that runs on each backend of Keras.
    "keras": {
        "namespaces": [
            "keras.ops",
            "keras.random",
            "keras.src.ops",
            "keras.src.random",
            "keras.src.backend",
        ],
        "backends": ["numpy", "torch", "jax", "tensorflow", "openvino"],
        "host": ["numpy"],
        "module-classes": _KERAS_CLASSES,
        "tensor-types": ["keras.KerasTensor", "keras.Variable", "keras.src.backend.KerasTensor"],
        "roles": {
            "test": ["integration_tests/**", "**/testing/**"],
            # folders of Keras with host data, files, and code that is made for one library
            "script": [
                "**/datasets/**",
                "**/data_adapters/**",
                "**/saving/**",
                "**/export/**",
                "**/legacy/**",
                "**/visualization/**",
            ],
        },
    },
    # Code over the array API standard, which gets its functions as `xp`. The standard defines the operators.
    "array-api": {
        "namespaces": ["array_api", "array_api_extra"],
        "namespace-names": ["xp"],
        "backends": ["numpy", "torch", "mlx", "jax", "tensorflow", "cupy", "dask", "sparse", "ndonnx"],
        "ignore": ["EMB201", "EMB202"],
    },
}
