"""The names that native libraries use: functions, conversions, dtypes, random numbers, devices."""

import ast
from collections.abc import Mapping
from functools import lru_cache
from typing import NamedTuple

# The modules in which each library keeps its functions, the longest name first.
ROOTS = ("jax.numpy", "jax", "mlx.core", "mlx", "numpy", "torch", "tensorflow.experimental.numpy", "tensorflow", "cupy")
MODULES = frozenset(
    {"mlx.core", "mlx.nn", "mlx.optimizers", "mlx.utils", "jax.numpy", "jax.lax", "jax.nn", "jax.scipy", "torch.nn"}
    | {"torch.nn.functional", "torch.optim", "torch.linalg", "torch.fft", "torch.special", "torch.utils"}
    | {"numpy.linalg", "numpy.fft", "numpy.typing", "numpy.testing", "tensorflow.keras", "tensorflow.math"}
)
_WIDTHS = {f"{kind}{bits}" for kind in ("int", "uint") for bits in (8, 16, 32, 64)} | {"float16", "float32", "float64"}
DTYPES = frozenset(
    _WIDTHS
    | {"bool", "bool_", "bfloat16", "complex64", "complex128", "complex32", "float128", "complex256", "longdouble"}
    | {"half", "single", "double", "float", "int", "short", "long", "byte", "ubyte", "cfloat", "cdouble", "chalf"}
    | {"int_", "uint", "intp", "uintp", "intc", "float_", "complex_", "longlong", "csingle", "float8_e4m3fn"}
    | {"generic", "number", "integer", "inexact", "floating", "complexfloating", "signedinteger", "unsignedinteger"}
    | {"float8_e5m2", "dtype", "Dtype", "dtypes", "DType", "object_", "str_", "float_power_dtype"}
)
_ARRAYS = {"array", "asarray", "from_dlpack"}
_NUMPY = {"asanyarray", "ascontiguousarray", "asfortranarray", "asarray_chkfinite", "frombuffer", "fromiter"}
_TENSORS = {f"{kind}Tensor" for kind in ("", "Float", "Double", "Half", "Long", "Int", "Bool", "Byte", "BFloat16")}
CONVERSIONS: Mapping[str, frozenset[str]] = {
    "numpy": frozenset(_ARRAYS | _NUMPY | {"asmatrix", "matrix", "fromstring"}),
    "torch": frozenset(
        _TENSORS | {"tensor", "as_tensor", "asarray", "from_numpy", "from_dlpack", "to_dlpack", "frombuffer"}
    ),
    "mlx.core": frozenset(_ARRAYS),
    "jax.numpy": frozenset(_ARRAYS | {"frombuffer"}),
    "tensorflow": frozenset({"convert_to_tensor", "constant", "make_ndarray", "make_tensor_proto"}),
    "tensorflow.experimental.numpy": frozenset(_ARRAYS),
    "cupy": frozenset(_ARRAYS | _NUMPY | {"asnumpy", "fromDlpack"}),
}
DLPACK = ("torch.utils.dlpack", "jax.dlpack", "tensorflow.experimental.dlpack")
# names that are conversions only when they are called
TYPES_TOO = frozenset({"mlx.core.array", *(f"torch.{name}" for name in _TENSORS)})
RANDOM_MODULES = ("numpy.random", "mlx.core.random", "jax.random", "tensorflow.random", "cupy.random", "torch.random")
RANDOM: frozenset[str] = frozenset(
    {"rand", "randn", "randint", "randperm", "rand_like", "randn_like", "randint_like", "normal", "bernoulli"}
    | {"multinomial", "poisson", "binomial", "manual_seed", "seed", "initial_seed", "Generator", "get_rng_state"}
    | {"set_rng_state", "default_generator"}
)
_KEYS = frozenset({"key_data", "key_impl", "wrap_key_data"})  # of JAX; they draw no numbers
_NO_DISTRIBUTIONS = ("torch.distributions.transforms", "torch.distributions.constraints")
DEVICE_MODULES = ("torch.cuda", "torch.mps", "torch.xpu", "torch.backends", "torch.accelerator", "cupy.cuda")
DEVICES: Mapping[str, frozenset[str]] = {
    "torch": frozenset({"device", "set_default_device", "get_default_device", "Stream", "get_device"}),
    "mlx.core": frozenset(
        {"set_default_device", "default_device", "Device", "DeviceType", "gpu", "cpu", "metal", "cuda", "stream"}
        | {"Stream", "default_stream", "set_default_stream", "new_stream", "is_available"}
    ),
    "jax": frozenset({"devices", "local_devices", "device_put", "device_get", "device_count", "default_device"}),
    "tensorflow": frozenset({"device", "config"}),
}
TESTS = frozenset({"torch.is_tensor", "tensorflow.is_tensor", "torch.overrides.is_tensor_like"})


class Use(NamedTuple):
    """A native name in the source: the whole dotted expression, its origin and its kind."""

    node: ast.expr
    origin: str
    kind: str  # the kind: use, conversion, dtype, random, device or type


def is_within(origin: str, modules: tuple[str, ...]) -> bool:
    """Returns whether a dotted origin is one of some modules or is inside one."""
    return any(origin == module or origin.startswith(module + ".") for module in modules)


def _is_distribution(origin: str) -> bool:
    """Returns whether an origin is a class of `torch.distributions`; functions and the rest of it draw nothing."""
    module, _, name = origin.rpartition(".")
    is_in_distributions = is_within(module, ("torch.distributions",)) and not is_within(module, _NO_DISTRIBUTIONS)
    return is_in_distributions and name[0].isupper()


@lru_cache(maxsize=4096)
def kind_of(origin: str, called: bool) -> str:
    """Returns the kind of a native name, such as "dtype" or "device", by its dotted origin."""
    if origin in TESTS:
        return "type"
    if origin.rpartition(".")[2] in _KEYS and is_within(origin, ("jax.random",)):
        return "use"
    if is_within(origin, RANDOM_MODULES) or ".manual_seed" in origin or "rng_state" in origin:
        return "random"
    if is_within(origin, DEVICE_MODULES):
        return "device"
    if is_within(origin, DLPACK):
        return "conversion"
    matching_root = next((matching_root for matching_root in ROOTS if origin.startswith(matching_root + ".")), "")
    first_name = origin[len(matching_root) + 1 :].partition(".")[0]
    if first_name in CONVERSIONS.get(matching_root, ()) and (called or origin not in TYPES_TOO):
        return "conversion"
    if first_name in DEVICES.get(matching_root, ()):
        return "device"
    if matching_root == "torch" and (first_name in RANDOM or (called and _is_distribution(origin))):
        return "random"
    return "dtype" if first_name in DTYPES else "use"
