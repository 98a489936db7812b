"""Host data on its way in: what counts as it, and which dtype Python numbers take."""

import sys
from typing import Any

import numpy as np

from emberharmony.core.dtypes import ALL, DType, bfloat16, default_complex, default_float
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

_NUMBERS = frozenset((bool, int, float, complex))
_WEAK_KINDS = {"f": default_float, "c": default_complex}
_INT64 = np.dtype(np.int64)
_NAMES = frozenset(dtype.name for dtype in ALL)
_DEEPEST = 64
"""The most axes that a NumPy array has, and so the deepest nesting of lists that makes one."""


def is_foreign(value: object) -> bool:
    """Returns whether `value` is a tensor of some array library other than NumPy."""
    return hasattr(value, "__dlpack__") and not isinstance(value, (np.ndarray, np.generic))


def refuse_masked(value: object) -> None:
    """Checks that `value` is no masked array, nor a nested list that holds one.

    Raises: ArgumentTypeError.
    """
    # Whoever made a masked array has imported the module, which takes 20 ms.
    ma: Any = sys.modules.get("numpy.ma")
    if ma is not None and _holds(value, ma.MaskedArray):
        raise ArgumentTypeError(
            "a numpy.ma.MaskedArray would lose its mask: pass x.filled(value), or x.data and the mask x.mask as two "
            "arguments (ops.where)"
        )


def _holds(value: Any, kind: type) -> bool:
    if isinstance(value, (list, tuple)):
        return not set(map(type, value)) <= _NUMBERS and any(_holds(item, kind) for item in value)
    return isinstance(value, kind)


def plain(value: Any) -> np.ndarray[Any, Any]:
    """Returns what NumPy makes an array of as one of its base class: of a `numpy.matrix` the elements.

    Raises: ArgumentTypeError for a masked array, and a nested list that holds one.
    """
    if value.__class__ is not np.ndarray:
        refuse_masked(value)
        value = np.asarray(value)
    array: np.ndarray[Any, Any] = value
    return array


def dtype_or_number(operand: Any) -> Any:
    """Returns the dtype of a NumPy array that is beside tensors of another library, and anything else as it is."""
    return plain(operand).dtype if isinstance(operand, np.ndarray) else operand


def holds_tensors(value: Any, kind: type | tuple[type, ...], depth: int = 1) -> bool:
    """Returns whether a nested list holds tensors of this kind, or of some array library other than NumPy.

    Raises: ShapeError for a list nested too deeply for any tensor.
    """
    if set(map(type, value)) <= _NUMBERS:
        return False
    if depth > _DEEPEST:
        raise ShapeError(f"lists nested more than {_DEEPEST} deep make no tensor")
    return any(
        holds_tensors(item, kind, depth + 1)
        if isinstance(item, (list, tuple))
        else isinstance(item, kind) or is_foreign(item)
        for item in value
    )


def to_host(value: Any, dtype: DType | None = None) -> np.ndarray[Any, Any]:
    """Returns host data as a NumPy array in native byte order.

    NumPy arrays and scalars keep their dtype. Python numbers, and lists of them, take `dtype`, without one the default
    of their kind: int64 (uint64 above its range), the default float, its complex.

    Raises: ShapeError for ragged lists; RangeError for integers that do not fit; DTypeError for strings, objects and
    other dtypes that no backend has; ArgumentTypeError for masked arrays and what is no array at all.
    """
    typed = isinstance(value, (np.ndarray, np.generic)) or hasattr(value, "__array__")
    try:
        array = plain(value)
    except EmberError:  # a masked array, or a traced tensor inside, says so itself
        raise
    except (ValueError, TypeError) as error:
        if "inhomogeneous" in str(error) or "sequence" in str(error):
            raise ShapeError(f"a nested list must be rectangular to become a tensor: {error}") from error
        raise ArgumentTypeError(f"{type(value).__name__} does not convert to a tensor: {error}") from error
    if array.dtype.kind == "O" and not typed and array.size and all(isinstance(item, int) for item in array.flat):
        raise RangeError(f"an integer of {brief(value)} does not fit 64 bits; use a float or split it")
    if array.dtype.name not in _NAMES:
        raise DTypeError(f"{brief(value)} has dtype {array.dtype}, which no backend has; give numbers or booleans")
    if not typed:
        array = _weakened(value, array) if dtype is None or _holds_numpy(value) else _read(array, dtype)
    return array if array.dtype.isnative else array.astype(array.dtype.newbyteorder("="))


def _weakened(value: Any, array: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
    """Gives an array made from Python numbers the default dtype; lists of NumPy scalars keep theirs."""
    default = _WEAK_KINDS.get(array.dtype.kind)
    if array.size == 0 and isinstance(value, (list, tuple)):
        default = default_float
    elif default is None or _holds_numpy(value):
        return array.astype(np.int64) if array.dtype.kind == "i" and not _holds_numpy(value) else array
    name = default().name
    return array.astype("f4" if name in ("float32", "bfloat16") else name)


def _read(array: np.ndarray[Any, Any], dtype: DType) -> np.ndarray[Any, Any]:
    """Returns an array made from Python numbers in a dtype; of complex numbers the real part, if it is a real one."""
    if array.dtype.kind in "iu" and array.size:
        for end in (array.min(), array.max()):
            check_fits(int(end), dtype)
    real = array.dtype.kind == "c" and not dtype.is_complex and dtype.kind != "bool"
    with np.errstate(all="ignore"):
        return (array.real if real else array).astype("float32" if dtype is bfloat16 else dtype.name)


def _holds_numpy(value: Any) -> bool:
    if isinstance(value, (list, tuple)):
        return bool(value) and any(_holds_numpy(item) for item in value[:1])
    return isinstance(value, (np.generic, np.ndarray))


def bfloat16_of_numpy() -> np.dtype[Any]:
    """Returns NumPy's bfloat16, which the package ml_dtypes adds.

    Raises: DTypeError naming the install line if it is missing.
    """
    try:
        import ml_dtypes
    except ImportError as error:
        raise DTypeError('bfloat16 in NumPy needs ml_dtypes: pip install "emberharmony[bfloat16]"') from error
    return np.dtype(ml_dtypes.bfloat16)


def host_indices(indices: Any) -> np.ndarray:
    """Returns indices known to the host as an int64 array.

    Raises: ArgumentTypeError if they are no integers; IndexOutOfBoundsError for one beyond int64; BackendMismatchError
    for a tensor of another backend.
    """
    if is_foreign(indices):
        raise BackendMismatchError(
            f"the indices are a {type(indices).__module__}.{type(indices).__qualname__}, a tensor of another backend; "
            f"convert them with ops.convert_to_tensor(ops.to_numpy(indices))"
        )
    array = plain(indices)
    if array.dtype is _INT64:
        return array
    if array.dtype.kind not in "iu" and (array.size or array is indices):
        # An empty list says nothing of its dtype.
        if array.dtype.kind != "O" or not all(isinstance(index, int) for index in array.flat):
            raise ArgumentTypeError(f"indices are integers, not {array.dtype}")
    elif array.dtype != np.uint64 or not (array >= 2**63).any():
        return array.astype(_INT64)
    # As int64 it would wrap, and might point into the axis.
    beyond = max(map(int, array.flat), key=abs, default=0)
    raise IndexOutOfBoundsError(f"index {beyond} does not fit into 64 bits, so no axis has it")
