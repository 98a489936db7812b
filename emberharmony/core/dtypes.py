"""Neutral dtypes: one singleton for each dtype, equal to its name and to the corresponding native dtypes."""

from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Literal, Protocol, TypeAlias

from emberharmony.core import op_globals
from emberharmony.core.errors import DTypeError, brief, suggest
from emberharmony.core.state.commits import assignment, commit

if TYPE_CHECKING:
    import numpy as np  # only for type checkers: nothing below the backends may depend on an array library

Kind = Literal["bool", "signed", "unsigned", "float", "complex"]


class _WithItemsize(Protocol):
    """A NumPy or PyTorch dtype, which has an `itemsize`."""

    @property
    def itemsize(self) -> int:
        """The size of one element in bytes."""
        ...


class _WithSize(Protocol):
    """An MLX dtype, which has a `size`."""

    @property
    def size(self) -> int:
        """The size of one element in bytes."""
        ...


_IntegerName: TypeAlias = Literal["int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64"]
_InexactName: TypeAlias = Literal["float16", "bfloat16", "float32", "float64", "complex64", "complex128"]
_PythonType: TypeAlias = type[bool] | type[int] | type[float] | type[complex]
DTypeLike: TypeAlias = (
    "DType | Literal['bool'] | _IntegerName | _InexactName | _PythonType | type[np.generic] | _WithItemsize | _WithSize"
)
"""A neutral dtype, its name, a Python type of numbers, or a native dtype."""


class DType(str):
    """A dtype of no library: a string that equals its name and the corresponding native dtypes.

    It is a `str` whose value is the dtype's name (`ops.float32 == "float32"`), so it hashes, prints and sorts like the
    name. It also equals the corresponding native dtypes (`ops.float32 == torch.float32`), on either side of `==`.

    Args:
        name: its name, such as "float32", which is the value of the string.
        kind: "bool", "signed", "unsigned", "float" or "complex".
        bits: the bits of an element.
    """

    name: str
    """The name as a plain string. It is no property, because `torch.compile` (2.13) takes `str.__str__` for `repr`."""
    kind: Kind
    bits: int

    def __new__(cls, name: str, kind: Kind = "float", bits: int = 0) -> "DType":
        """Returns the singleton with this name, or a new dtype if the name is not known yet."""
        existing_dtype = _BY_NAME.get(name)
        if existing_dtype is not None:
            return existing_dtype
        self = super().__new__(cls, name)
        self.name, self.kind, self.bits = str(name), kind, bits
        return self

    @property
    def itemsize(self) -> int:
        """The size of one element in bytes."""
        return max(1, self.bits // 8)

    @property
    def is_floating(self) -> bool:
        """Whether this is a real floating dtype."""
        return self.kind == "float"

    @property
    def is_complex(self) -> bool:
        """Whether this is a complex dtype."""
        return self.kind == "complex"

    @property
    def is_integer(self) -> bool:
        """Whether this is a signed or unsigned integer dtype; bool is not one."""
        return self.kind in ("signed", "unsigned")

    def __eq__(self, other: object) -> bool:
        if self is other:
            return True
        if isinstance(other, DType):
            return False
        # Looking up a name in a table of dtypes compares it with the dtype of that name.
        return (other.__class__ is str and other == self.name) or native_name(other) == self.name

    def __ne__(self, other: object) -> bool:
        return not self == other

    __hash__ = str.__hash__

    def __repr__(self) -> str:
        return f"emberharmony.{self.name}"

    def __reduce__(self) -> tuple[type["DType"], tuple[str]]:
        return DType, (self.name,)


op_globals.publish(DType=DType)

# `__eq__` alone would make the class unhashable, so it had to assign `__hash__`. Remove the attribute now, to inherit
# the hash of `str`: `torch.compile` traces the hash of a dtype only then.
del DType.__hash__

_BY_NAME: dict[str, DType] = {}


def _define_dtype(name: str, kind: Kind, bits: int) -> DType:
    _BY_NAME[name] = dtype = DType(name, kind, bits)
    return dtype


bool_ = _define_dtype("bool", "bool", 8)
int8 = _define_dtype("int8", "signed", 8)
int16 = _define_dtype("int16", "signed", 16)
int32 = _define_dtype("int32", "signed", 32)
int64 = _define_dtype("int64", "signed", 64)
uint8 = _define_dtype("uint8", "unsigned", 8)
uint16 = _define_dtype("uint16", "unsigned", 16)
uint32 = _define_dtype("uint32", "unsigned", 32)
uint64 = _define_dtype("uint64", "unsigned", 64)
float16 = _define_dtype("float16", "float", 16)
bfloat16 = _define_dtype("bfloat16", "float", 16)
float32 = _define_dtype("float32", "float", 32)
float64 = _define_dtype("float64", "float", 64)
complex64 = _define_dtype("complex64", "complex", 64)
complex128 = _define_dtype("complex128", "complex", 128)

ALL: tuple[DType, ...] = tuple(_BY_NAME.values())
FLOATS = tuple(d for d in ALL if d.kind == "float")
INTEGERS = tuple(d for d in ALL if d.is_integer)

_ALIASES = {
    "bool_": "bool",
    "half": "float16",
    "float": "float32",
    "double": "float64",
    "short": "int16",
    "int": "int64",
    "long": "int64",
    "cfloat": "complex64",
    "cdouble": "complex128",
}
_PYTHON: tuple[type, ...] = (bool, int, float, complex)


_PLUGGED: dict[int, tuple[object, str | None]] = {}
"""Native dtypes of third-party backends whose text does not show their name: by `id`, the dtype and its neutral name.

The dtype itself is kept so that no other object can take its `id`.
"""


def native_name(dtype: object) -> str | None:
    """Returns the neutral name of a native dtype, a dtype name or a NumPy scalar class, or None for anything else."""
    if isinstance(dtype, str):
        name = str.__str__(dtype)
    elif isinstance(dtype, type):
        # A NumPy scalar class (np.float32) names its dtype; the Python classes are resolved by `as_dtype`.
        name = dtype.__name__ if dtype.__module__ in ("numpy", "ml_dtypes", "jax.numpy") else ""
    elif "dtype" in type(dtype).__name__.lower():
        # np.dtype prints as 'float32', torch and mlx dtypes as 'torch.float32' and 'mlx.core.float32'.
        dtype_text = str(dtype)
        if dtype_text[:1] in ("<", ">"):  # an np.dtype in the other byte order prints as '>f4'
            dtype_text = getattr(dtype, "name", "")
        module, _, name = dtype_text.rpartition(".")
        name = name if module in ("", "torch", "mlx.core") else ""
    else:
        name = ""
    # Of the aliases, apply only 'bool_' (np.bool_) here: with 'float' too, float32 would equal the string 'float'.
    name = _ALIASES.get(name, name) if name.endswith("_") else name
    return name if name in _BY_NAME else _PLUGGED.get(id(dtype), (None, None))[1]


def as_dtype(dtype: object) -> DType:
    """Returns the neutral dtype that `dtype` denotes: a dtype, its name or alias, or a Python class of numbers.

    Args:
        dtype: a neutral or native dtype, its name ("float32"), an alias ("double"), or `bool`, `int`, `float`,
            `complex`.

    Raises:
        DTypeError: if `dtype` does not denote a dtype; the message suggests the nearest name.
    """
    if isinstance(dtype, DType):
        return dtype
    if isinstance(dtype, type) and dtype in _PYTHON:
        return python_dtype(dtype)
    dtype_name = native_name(dtype)
    if dtype_name is None and isinstance(dtype, str):
        dtype_name = _ALIASES.get(dtype)
    if dtype_name is None:
        hint = suggest(dtype, _BY_NAME)
        if isinstance(dtype, (tuple, list)):
            hint = "; ops.reshape(x, shape) gives a tensor another shape"
        elif hasattr(dtype, "shape"):
            hint = "; the dtype comes after the tensor, as in ops.cast(x, 'float32')"
        raise DTypeError(f"{brief(dtype)} is not a dtype{hint} (known: {', '.join(_BY_NAME)})")
    return _BY_NAME[dtype_name]


def python_dtype(kind: type) -> DType:
    """Returns the dtype that a Python number of this class takes if no operand is a tensor."""
    if kind is bool:
        return bool_
    if kind is int:
        return DEFAULTS.int
    return default_complex() if kind is complex else DEFAULTS.float


class NativeDTypes(dict[Any, Any]):
    """A cache from anything that denotes a dtype to the native dtype of one backend.

    It is a dict because dispatch looks up a dtype in each call, and a known key then costs one subscript.

    Args:
        backend: the backend's name, for messages.
        dtypes: its native dtypes, by neutral dtype.
        on_first_use: functions to call when a dtype is looked up for the first time, by neutral dtype; if the result is
            not None, it replaces the native dtype. That of a dtype the backend lacks raises an error which says why.
    """

    def __init__(
        self,
        backend: str,
        dtypes: Mapping[DType, Any],
        on_first_use: Mapping[DType, Callable[[], Any]] = MappingProxyType({}),
    ) -> None:
        native_by_neutral = {
            neutral_dtype: native_dtype
            for neutral_dtype, native_dtype in dtypes.items()
            if neutral_dtype not in on_first_use
        }
        super().__init__(native_by_neutral)
        self.update({native_dtype: native_dtype for native_dtype in native_by_neutral.values()})
        for neutral_dtype, native_dtype in native_by_neutral.items():
            if native_name(native_dtype) is None:
                _PLUGGED[id(native_dtype)] = native_dtype, neutral_dtype.name
        self.backend, self.natives, self.available = backend, dict(dtypes), tuple(dtypes)
        self.neutral: dict[Any, DType] = _Neutral(self)
        # Filled here, because torch.compile would compile a function again after an entry is added.
        self.neutral.update({native_dtype: neutral_dtype for neutral_dtype, native_dtype in native_by_neutral.items()})
        self._on_first_use = dict(on_first_use)

    def __missing__(self, dtype: object) -> Any:
        neutral_dtype = as_dtype(dtype)
        if neutral_dtype not in self.natives:
            if neutral_dtype in self._on_first_use:
                self._on_first_use[neutral_dtype]()  # raises the error with the install line
            raise DTypeError(
                f"backend {self.backend!r} has no dtype {neutral_dtype.name!r}; it has "
                f"{', '.join(self.available)}: cast to one of these"
            )
        # Removed after the call, because another thread that looks up the dtype meanwhile must not go on without it.
        replacement_dtype = self._on_first_use.get(neutral_dtype, _do_nothing)()
        if replacement_dtype is not None:
            self.natives[neutral_dtype] = replacement_dtype
        self._on_first_use.pop(neutral_dtype, None)
        native_dtype = self.natives[neutral_dtype]
        if not isinstance(dtype, type) or dtype not in _PYTHON:
            # Do not cache a Python class, because `set_default_float` changes the dtype that it denotes.
            self[dtype] = native_dtype
        return native_dtype

    def native_of(self, neutral: DType) -> Any:
        """Returns the native dtype of a neutral one, without the call of `on_first_use` that a look-up makes.

        Args:
            neutral: the dtype, one of `emberharmony.backend.DTYPES`.

        Raises:
            DTypeError: if the backend lacks it.
        """
        native_dtype = self.natives.get(neutral)
        return self[neutral] if native_dtype is None else native_dtype


class _Neutral(dict[Any, DType]):
    """A cache from the native dtypes of one backend to the neutral dtypes."""

    def __init__(self, dtypes: NativeDTypes) -> None:
        super().__init__()
        self._dtypes = dtypes

    def __missing__(self, native: Any) -> DType:
        name = native_name(native)
        if name in self._dtypes.natives:
            # Trigger on_first_use for this dtype.
            self._dtypes[name]
        for neutral_dtype, native_dtype in self._dtypes.natives.items():
            if native_dtype is not None and native_dtype == native:
                self[native] = neutral_dtype
                return neutral_dtype
            if neutral_dtype == name and type(native_dtype) is type(native):
                return neutral_dtype  # in the other byte order; not cached, because the backend itself does not use it
        is_text = getattr(native, "kind", "") in ("U", "S", "T")
        advice = (
            "np.unique(x, return_inverse=True)[1] gives class ids of text" if is_text else f"cast to {', '.join(ALL)}"
        )
        raise DTypeError(f"no backend has the dtype {native}; {advice}")


def _do_nothing() -> None:
    return None


class _Defaults:
    """The default dtypes of the process."""

    __slots__ = ("float", "int")

    def __init__(self) -> None:
        self.float, self.int = float32, int64


DEFAULTS = _Defaults()


def default_float() -> DType:
    """Returns the dtype of Python floats, and of integers in float functions; float32 unless it was set."""
    return DEFAULTS.float


def default_complex() -> DType:
    """Returns the default complex dtype: complex128 if the default float is float64, else complex64."""
    return complex128 if DEFAULTS.float is float64 else complex64


def set_default_float(dtype: "DTypeLike") -> None:
    """Makes `dtype` the default float for the whole process.

    Args:
        dtype: a real floating dtype of any library, or its name, such as "float64".

    Raises:
        DTypeError: if `dtype` is not a real floating dtype.
    """
    default_dtype = as_dtype(dtype)
    if not default_dtype.is_floating:
        raise DTypeError(
            f"set_default_float: {default_dtype.name!r} is not a floating dtype; use one of {', '.join(FLOATS)}"
        )
    # In one commit, so that no thread sees the new default while dispatch still uses the flag of the old one.
    commit(
        [assignment(DEFAULTS, "float", default_dtype)],
        op_globals.set_flag_steps("float32_default", default_dtype is float32),
    )
