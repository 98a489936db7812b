"""Conversion of host data (NumPy arrays, Python numbers, nested lists) to NumPy arrays, with dtypes for the numbers."""

from __future__ import annotations

import functools
import sys
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from emberharmony.core.deferred import Deferred
from emberharmony.core.dtypes import ALL, DType, bfloat16, default_complex, default_float, uint64
from emberharmony.core.errors import (
    ArgumentTypeError,
    BackendMismatchError,
    DTypeError,
    EmberError,
    IndexOutOfBoundsError,
    RangeError,
    ShapeError,
    brief,
)
from emberharmony.core.numeric.promotion import check_fits

if TYPE_CHECKING:
    import numpy as np
else:
    np = Deferred("numpy")

_NUMBERS = frozenset((bool, int, float, complex))
_SEQUENCES = frozenset((list, tuple))
HOLD_NUMBERS = _NUMBERS | _SEQUENCES
"""The classes of Python numbers, and of what may hold them alone."""
_WEAK_KINDS = {"f": default_float, "c": default_complex}
_INTEGERS, _WHOLE = {int}, {int, bool}
_FOR_ALL_INTEGERS = frozenset(("float32", "float64"))
"""The dtypes to which NumPy casts all integers of 64 bits with one rounding and without a warning."""
_NAMES = frozenset(dtype.name for dtype in ALL)
_DEEPEST = 64
"""The largest number of axes of a NumPy array, so lists nested deeper cannot become one."""


def _are_number_classes(classes: set[type]) -> bool:
    """Returns whether all classes of a set are classes of numbers of Python or NumPy."""
    return classes <= _NUMBERS or all(cls in _NUMBERS or issubclass(cls, np.generic) for cls in classes)


@functools.lru_cache(maxsize=256)
def name_of(dtype: np.dtype[Any]) -> str:
    """Returns the name of a NumPy dtype from a cache, because NumPy 2.4 composes it in 5 µs each time."""
    return dtype.name


def is_integer(value: object) -> bool:
    """Returns whether a value is an integer of Python or NumPy; does not import NumPy."""
    cls = value.__class__
    return cls in _WHOLE if cls in HOLD_NUMBERS else isinstance(value, (int, np.integer))


def is_foreign(value: object) -> bool:
    """Returns whether `value` is a tensor of some array library other than NumPy."""
    return hasattr(value, "__dlpack__") and not isinstance(value, (np.ndarray, np.generic))


def refuse_masked(value: object) -> None:
    """Checks that `value` is neither a masked array nor a nested list that holds one.

    Raises:
        ArgumentTypeError: if it is.
    """
    # If a masked array exists, numpy.ma is imported already; importing it here would take 20 ms.
    masked_module: Any = sys.modules.get("numpy.ma")
    if masked_module is not None and _contains_instance(value, masked_module.MaskedArray):
        raise ArgumentTypeError(
            "a numpy.ma.MaskedArray would lose its mask: pass x.filled(value), or x.data and the mask x.mask as two "
            "arguments (ops.where)"
        )


def _contains_instance(value: Any, kind: type) -> bool:
    if isinstance(value, (list, tuple)):
        return not _are_number_classes(set(map(type, value))) and any(_contains_instance(item, kind) for item in value)
    return isinstance(value, kind)


def plain_array(value: Any) -> np.ndarray[Any, Any]:
    """Returns an array-like value as an array of NumPy's base class; a `numpy.matrix` becomes a 2-d array.

    Raises:
        ArgumentTypeError: if the value is a masked array, or a nested list that holds one.
    """
    if value.__class__ is not np.ndarray:
        refuse_masked(value)
        value = np.asarray(value)
    array: np.ndarray[Any, Any] = value
    return array


def dtype_or_number(operand: Any) -> Any:
    """Returns the dtype of a NumPy array, and anything else, such as a number, unchanged."""
    return plain_array(operand).dtype if isinstance(operand, np.ndarray) else operand


def number_classes_of(value: Any, depth: int = 1) -> set[type] | None:
    """Returns the classes of the Python numbers in a nested list or tuple; None if it contains anything else."""
    classes = set(map(type, value))
    if classes <= _NUMBERS:
        return classes
    if not classes <= _SEQUENCES or depth >= _DEEPEST:
        return None
    nested_classes: set[type] = set()
    for item in value:
        inner_classes = number_classes_of(item, depth + 1)
        if inner_classes is None:
            return None
        nested_classes |= inner_classes
    return nested_classes


def holds_tensors(value: Any, kind: type | tuple[type, ...], depth: int = 1) -> bool:
    """Returns whether a nested list holds tensors of class `kind`, or of some array library other than NumPy.

    Raises:
        ShapeError: if the list is nested too deeply for any tensor.
    """
    if _are_number_classes(set(map(type, value))):
        return False
    if depth > _DEEPEST:
        raise ShapeError(f"lists nested more than {_DEEPEST} deep cannot become a tensor")
    return any(
        holds_tensors(item, kind, depth + 1)
        if isinstance(item, (list, tuple))
        else isinstance(item, kind) or is_foreign(item)
        for item in value
    )


def numbers_to_host(value: Any, dtype: DType | None = None) -> np.ndarray[Any, Any] | None:
    """Returns a Python number, or a list of nothing else, as `to_host` does; None for anything but these."""
    cls = value.__class__
    classes = {cls} if cls in _NUMBERS else number_classes_of(value) if cls in _SEQUENCES else None
    if classes is None:
        return None
    if dtype is not None and classes == _INTEGERS and dtype.is_integer:
        integer_array = _integer_array(value, dtype)
        if integer_array is not None:
            return integer_array
    array = _as_array(value, np.asarray)
    kind_of_array = array.dtype.kind
    if dtype is None:
        if kind_of_array in "ib":
            return array
    elif kind_of_array == "i" and dtype.name in _FOR_ALL_INTEGERS:
        return array.astype(dtype.name)
    _check_dtype(value, array, host=False)
    if kind_of_array == "f" and classes <= _WHOLE and array.size and (dtype is None or dtype.is_integer):
        # NumPy (2.4) makes floats of integers that only int64 holds beside ones that only uint64 holds.
        unsigned_array = _integer_array(value, uint64)
        if unsigned_array is None:
            raise RangeError(f"no integer dtype holds all integers in {brief(value)}; use floats or split it")
        array = unsigned_array
    return _as_default_dtype(value, array) if dtype is None else _numbers_as_dtype(array, dtype)


def _integer_array(value: Any, dtype: DType) -> np.ndarray[Any, Any] | None:
    """Returns integers as an array of an integer dtype; None if one does not fit, or if a list is ragged."""
    try:
        return np.array(value, dtype.name)
    except (OverflowError, ValueError):  # the complete conversion raises the error that names the integer or the list
        return None


def _as_array(value: Any, convert: Callable[[Any], np.ndarray[Any, Any]]) -> np.ndarray[Any, Any]:
    """Returns a value converted by a function of NumPy, whose error becomes a typed one that says how to convert it.

    Raises:
        ArgumentTypeError: if it does not convert to an array.
        ShapeError: if a nested list is ragged.
    """
    try:
        return convert(value)
    except EmberError:  # raised for a masked array or a traced tensor; its message is right already
        raise
    except (ValueError, TypeError) as error:
        if "inhomogeneous" in str(error) or "sequence" in str(error):
            raise ShapeError(f"a nested list must be rectangular, so pad its rows to one length: {error}") from error
        raise ArgumentTypeError(f"{type(value).__name__} does not convert to a tensor: {error}") from error


def _is_text(value: Any) -> bool:
    """Returns whether a value is text, or a nested list of text."""
    if isinstance(value, (list, tuple)):
        return all(map(_is_text, value))
    return isinstance(value, (str, bytes)) or getattr(getattr(value, "dtype", None), "kind", "") in ("U", "S")


def _conversion_advice(value: Any) -> str:
    """Returns advice how to convert a value to numbers, of which NumPy made an array of objects."""
    if value is None:
        return (
            "a function without return gives it: return the result of __call__, and of the loss; "
            "a grad is None until ops.backward()"
        )
    if hasattr(value, "toarray"):
        return "x.toarray() gives the array of a sparse matrix"
    if hasattr(value, "select_dtypes"):
        return "take the columns with numbers: frame.select_dtypes('number'), and encode the others"
    if str(getattr(value, "dtype", "")) == "category":
        return "x.cat.codes has an integer for each category"
    if str(getattr(value, "dtype", "")).startswith("datetime64"):
        return "x.astype('int64') counts the time units of dates"
    if hasattr(value, "unique") and str(getattr(value, "dtype", "")) in ("str", "string", "object"):
        return "np.unique(x, return_inverse=True)[1] gives class ids of text, and x.astype('float32') numbers"
    if isinstance(value, type):
        return f"it is a class: make an object of it, and call that, as in {value.__name__}()(x)"
    if callable(value):
        return "it is a function or layer: call it, and pass the result, as in layer(x)"
    if hasattr(value, "__next__"):
        return "it is an iterator: list(x) makes a list of it"
    if isinstance(value, (dict, set, frozenset)):
        return f"a {type(value).__name__} has no order: pass list(x{'.values()' if isinstance(value, dict) else ''})"
    if isinstance(value, (list, tuple)) and any(item is None for item in value):
        return "it holds None: write float('nan') for a missing value"
    return "give numbers or booleans; x.astype('float32') makes some of an array of objects"


def _check_dtype(value: Any, array: np.ndarray[Any, Any], host: bool) -> None:
    """Checks that an array, made from a user's value, has a dtype that some backend supports.

    Args:
        value: the value.
        array: the array.
        host: whether the value itself had a dtype.

    Raises:
        DTypeError: if none has it.
        RangeError: if the value holds an integer that does not fit 64 bits.
    """
    if array.dtype.kind == "O" and not host and array.size and all(isinstance(item, int) for item in array.flat):
        raise RangeError(f"an integer in {brief(value)} does not fit 64 bits; use a float or split it")
    if name_of(array.dtype) not in _NAMES:
        advice = _conversion_advice(value)
        if array.dtype.kind in "US" and isinstance(value, (list, tuple)) and not _is_text(value):
            advice = "it holds text and numbers: convert the text by float(item)"
        elif isinstance(value, (str, bytes)):
            advice = "it is one text: is it in the place of another argument?"
            if str(value).endswith((".npy", ".npz", ".csv", ".txt", ".png", ".jpg", ".safetensors")):
                advice = "it is the name of a file: read it first, as np.load(path), np.loadtxt(path) or io.load(path)"
        elif array.dtype.kind in "US":
            advice = "np.unique(x, return_inverse=True)[1] gives class ids of text"
        raise DTypeError(f"{brief(value)} has dtype {array.dtype}, which no backend has; {advice}")


def to_host(value: Any, dtype: DType | None = None) -> np.ndarray[Any, Any]:
    """Returns host data as a NumPy array in native byte order.

    NumPy arrays and scalars keep their dtype. Anything else whose elements are Python numbers takes `dtype`, or by
    default the dtype of their kind: int64, the default float, or the default complex. `numbers_to_host` takes numbers
    and lists of nothing else.

    Raises:
        ArgumentTypeError: if the value is a masked array, or does not convert to an array.
        DTypeError: if the array's dtype is one that no backend has, such as strings and objects.
        RangeError: if an integer does not fit the dtype, or 64 bits.
        ShapeError: if a nested list is ragged.
    """
    is_host = isinstance(value, (np.ndarray, np.generic)) or hasattr(value, "__array__")
    array = _as_array(value, plain_array)
    _check_dtype(value, array, is_host)
    if not is_host and not _starts_with_numpy(value):
        array = _as_default_dtype(value, array) if dtype is None else _numbers_as_dtype(array, dtype)
    return array if array.dtype.isnative else array.astype(array.dtype.newbyteorder("="))


def _as_default_dtype(value: Any, array: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
    """Returns an array made from Python numbers in their default dtype."""
    default_dtype_function = _WEAK_KINDS.get(array.dtype.kind)
    if array.size == 0 and isinstance(value, (list, tuple)):
        default_dtype_function = default_float
    elif default_dtype_function is None:
        return array.astype(np.int64, copy=False) if array.dtype.kind == "i" else array
    dtype_name = default_dtype_function().name
    # NumPy itself has no bfloat16; the backend narrows float32 to it.
    return array.astype("f4" if dtype_name in ("float32", "bfloat16") else dtype_name)


def _numbers_as_dtype(array: np.ndarray[Any, Any], dtype: DType) -> np.ndarray[Any, Any]:
    """Returns an array made from Python numbers in a dtype; a real dtype takes the real parts of complex numbers.

    Raises:
        RangeError: if an integer does not fit the dtype.
    """
    if array.dtype.kind in "iu":
        if array.size and dtype.name != name_of(array.dtype):
            check_fits(int(np.minimum.reduce(array, axis=None)), dtype)
            check_fits(int(np.maximum.reduce(array, axis=None)), dtype)
        if dtype.is_integer:  # nothing can overflow any more, so no warning has to be hidden
            return array.astype(dtype.name, copy=False)
    is_real = not dtype.is_complex and dtype.kind != "bool"  # the real part of real numbers is themselves
    with np.errstate(all="ignore"):
        return (array.real if is_real else array).astype("float32" if dtype is bfloat16 else dtype.name)


def _starts_with_numpy(value: Any) -> bool:
    while isinstance(value, (list, tuple)):
        if not value:
            return False
        value = value[0]
    return isinstance(value, (np.generic, np.ndarray))


def bfloat16_of_numpy() -> np.dtype[Any]:
    """Returns NumPy's bfloat16, which the package ml_dtypes adds.

    Raises:
        DTypeError: if ml_dtypes is missing; the message has the install line.
    """
    try:
        import ml_dtypes
    except ImportError as error:
        raise DTypeError('bfloat16 in NumPy needs ml_dtypes: pip install "emberharmony[bfloat16]"') from error
    return np.dtype(ml_dtypes.bfloat16)


def safe_key(key: Any) -> Any:
    """Returns a key for a NumPy array with its indices of uint64 as int64, because NumPy 2.4 would wrap them around.

    Raises:
        ArgumentTypeError: if the key is a masked array, or holds one.
        IndexOutOfBoundsError: if an index does not fit int64.
    """
    if key.__class__ is tuple:
        return tuple([key_part if key_part.__class__ is slice else safe_key(key_part) for key_part in key])
    if key.__class__ is list:
        refuse_masked(key)
        array = np.asarray(key) if key else None
        return key if array is None or array.dtype.kind != "u" else host_indices(array)
    if isinstance(key, (np.ndarray, np.generic)):
        refuse_masked(key)
        return key if key.dtype.kind != "u" else host_indices(key)
    return key


def host_indices(indices: Any) -> np.ndarray:
    """Returns indices that are host data as an int64 array.

    Raises:
        ArgumentTypeError: if they are not integers.
        BackendMismatchError: if they are a tensor of another backend.
        IndexOutOfBoundsError: if one does not fit int64.
    """
    if is_foreign(indices):
        raise BackendMismatchError(
            f"the indices are a {type(indices).__module__}.{type(indices).__qualname__}, a tensor of another backend; "
            f"ops.to_numpy(indices) under `with ops.use_backend(like=indices):` gives an array that every backend takes"
        )
    array = plain_array(indices)
    if array.dtype.kind == "i":
        return array.astype("int64", copy=False)
    if array.dtype.kind != "u" and (array.size or array is indices):
        # NumPy gives an empty list the dtype float64, and integers beyond 64 bits the dtype object.
        if array.dtype.kind != "O" or not all(isinstance(index, int) for index in array.flat):
            raise ArgumentTypeError(f"indices are integers, not {array.dtype}: ops.cast(indices, 'int64')")
    elif array.dtype != np.uint64 or not (array >= 2**63).any():
        return array.astype("int64")
    # A cast to int64 would wrap such an index around, perhaps to a valid one.
    largest_index = max(map(int, array.flat), key=abs, default=0)
    raise IndexOutOfBoundsError(
        f"index {largest_index} does not fit into 64 bits, so it is out of bounds for every axis"
    )
