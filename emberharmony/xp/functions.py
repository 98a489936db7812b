"""Functions of an array API namespace that are written by hand, such as `asarray`, `astype` and `result_type`."""

import functools
from collections.abc import Callable
from typing import Any

from emberharmony.backend.host import numbers_to_host
from emberharmony.core.errors import ArgumentError, BackendMismatchError, DTypeError
from emberharmony.core.namespace import ArrayNamespaceInfo
from emberharmony.core.registry import OPS
from emberharmony.xp import source
from emberharmony.xp.array import ArrayBase
from emberharmony.xp.dtypes import Dtype, as_xp_dtype
from emberharmony.xp.links import LOCK, new_links, tensor_of

Function = Callable[..., Any]
_KINDS = {"real": "float", "complex": "complex"}
"""A dict from the standard's words for floating dtypes to our kinds of dtypes."""


def make_asarray(kit: Any) -> Function:
    """Returns the function `asarray` of a backend."""

    def asarray(obj: Any, /, *, dtype: Any = None, device: Any = None, copy: bool | None = None) -> Any:
        """Returns an array of the values of an array, a number, a nested list, or an array of another library.

        Args:
            copy: True always copies; None copies where it is necessary; False never copies.

        Raises:
            ArgumentError: if `copy` is False and a copy is necessary.
            BackendMismatchError: if `obj` is an array of another backend.
        """
        kit.join()
        if obj.__class__ is kit.array:
            if not copy and (dtype is None or obj.dtype == dtype) and (device is None or obj.device == device):
                return obj
            if copy is False:
                raise ArgumentError("another dtype or device needs a copy, which copy=False refuses")
        if isinstance(obj, ArrayBase) and obj.__class__ is not kit.array:
            raise BackendMismatchError(f"an array of {obj._kit.name!r} becomes one of {kit.name!r} by from_dlpack")
        if copy is False and isinstance(obj, (bool, int, float, complex, list, tuple)):
            raise ArgumentError("numbers and lists are copied, which copy=False refuses")
        target_dtype = _default_dtype(kit, obj) if dtype is None else as_xp_dtype(dtype).neutral
        array = kit.lift(kit.ops.convert_to_tensor(_array_data(obj), target_dtype, device=device, copy=copy))
        if not copy and (hasattr(obj, "__array__") or kit.is_native(obj)):
            array._links = new_links(foreign=not kit.memory.shares)
        return array

    return asarray


def _default_dtype(kit: Any, given: Any) -> Any:
    """Returns the namespace's own default dtype for Python numbers and lists of them; None for all other values."""
    host_array = None if kit.float is None else numbers_to_host(given)
    return (
        None
        if host_array is None
        else kit.default_dtype_of({"f": "float", "c": "complex"}.get(host_array.dtype.kind, ""))
    )


def with_default_dtype(kit: Any, function: Function) -> Function:
    """Returns a function that creates arrays, changed so that Python numbers get the namespace's default dtype."""

    @functools.wraps(function)
    def create(*args: Any, **options: Any) -> Any:
        array = function(*args, **options)
        if options.get("dtype") is not None or any(hasattr(x, "dtype") for x in (*args, *options.values())):
            return array
        default_dtype = kit.default_dtype_of(array.dtype.neutral.kind)
        return (
            array
            if default_dtype in (None, array.dtype.neutral)
            else function(*args, **options | {"dtype": default_dtype})
        )

    return create


def make_default_dtypes(kit: Any) -> Function:
    """Returns the function `default_dtypes` of a backend."""

    def default_dtypes(*, device: Any = None) -> dict[str, Dtype]:
        """Returns the default dtypes, by the kinds of the standard."""
        return dict(Info(kit).default_dtypes(device=device))

    return default_dtypes


def default_dtype_maker(kind: str) -> Callable[[Any], Function]:
    """Returns a maker of the function of a backend that returns the default dtype of a kind."""
    return lambda kit: lambda: Info(kit).default_dtypes()[kind]


def make_set_default_float(kit: Any) -> Function:
    """Returns the function `set_default_float` of a backend."""

    def set_default_float(dtype: Any) -> None:
        """Makes a dtype the default float of this namespace alone; None makes it that of `ops`.

        Arrays that are made of numbers of Python, and of nothing, take it, and so do functions of integers alone.

        Raises:
            DTypeError: if it is no real floating dtype, or if the backend lacks it.
        """
        if dtype is not None:
            default_dtype = as_xp_dtype(dtype).neutral
            kit.backend.dtypes.native_of(default_dtype)
            if not default_dtype.is_floating:
                raise DTypeError(f"set_default_float: {default_dtype.name!r} is not a floating dtype")
        kit.set_default_float(None if dtype is None else default_dtype)

    return set_default_float


def _array_data(given: Any) -> Any:
    """Returns the data for a new array: arrays in lists become tensors, everything else stays, also NumPy's scalars."""
    if isinstance(given, ArrayBase):
        return tensor_of(given)
    return [_array_data(x) for x in given] if given.__class__ in (list, tuple) else given


def make_from_dlpack(kit: Any) -> Function:
    """Returns the function `from_dlpack` of a backend."""

    def from_dlpack(x: Any, /, *, device: Any = None, copy: bool | None = None) -> Any:
        """Returns an array of another library, or of another backend, by DLPack; memory is shared if it can be.

        Raises:
            ArgumentError: if `copy` is False and a copy is necessary.
        """
        kit.join()
        if x.__class__ is kit.array:
            return kit.namespace.asarray(x, device=device, copy=copy)
        if isinstance(x, ArrayBase):
            x = x._shared_tensor()
        array = kit.lift(kit.ops.from_dlpack(x, device=device, copy=copy))
        array._links = None if copy else new_links(foreign=not kit.memory.shares)
        return array

    return from_dlpack


def make_astype(kit: Any) -> Function:
    """Returns the function `astype` of a backend."""

    def astype(x: Any, dtype: Any, /, *, copy: bool = True, device: Any = None) -> Any:
        """Returns an array in another dtype.

        Args:
            copy: whether the result always has memory of its own; if False, it is `x` itself if that has the dtype.
        """
        kit.join()
        if x.__class__ is not kit.array:
            x = kit.namespace.asarray(x)
        target_dtype = as_xp_dtype(dtype)
        if x.dtype == target_dtype and (device is None or device == x.device):
            return x.copy() if copy else x
        return kit.lift(kit.ops.convert_to_tensor(tensor_of(x), target_dtype.neutral, device=device, copy=True))

    return astype


def make_put_along_axis(kit: Any) -> Function:
    """Returns the function `put_along_axis` of a backend."""

    def put_along_axis(arr: Any, indices: Any, values: Any, axis: int | None = -1) -> None:
        """Writes values into an array along an axis, as NumPy does; `ops.put_along_axis` returns another tensor.

        Libraries for NumPy's arrays call it for what it writes, and use no result.

        Raises:
            TypeError: if `arr` is no array of the namespace, which could be written into.
        """
        if arr.__class__ is not kit.array:
            raise TypeError(f"put_along_axis writes into an array of {kit.module}, not into {type(arr).__name__}")
        kit.join()
        with LOCK:
            arr[...] = kit.lift(kit.ops.put_along_axis(tensor_of(arr), kit.lower(indices), kit.lower(values), axis))

    return put_along_axis


def maker_with_numpy_options(name: str) -> Callable[[Any], Function]:
    """Returns a maker of the mean, `std` or `var` of a backend that also takes NumPy's `ddof` and `dtype`."""

    def make_function(kit: Any) -> Function:
        spec = OPS[name]
        function, has_dtype = source.array_function(kit, spec), any(p.name == "dtype" for p in spec.parameters)

        @functools.wraps(function)
        def call_with_ddof(*args: Any, **options: Any) -> Any:
            if "ddof" in options:
                options["correction"] = options.pop("ddof")
            dtype = None if has_dtype else options.pop("dtype", None)
            if dtype is not None:
                args = kit.namespace.astype(args[0], dtype, copy=False), *args[1:]
            return function(*args, **options)

        return call_with_ddof

    return make_function


def make_lstsq(kit: Any) -> Function:
    """Returns the function `linalg.lstsq` of a backend."""
    solve = source.array_function(kit, OPS["lstsq"], "linalg")

    def lstsq(a: Any, b: Any, rcond: float | None = None) -> tuple[Any, Any, Any, Any]:
        """Returns the four results that NumPy, PyTorch and JAX return; `ops.linalg.lstsq` returns the first alone.

        Args:
            a: a matrix (m, n), real or complex.
            b: a vector (m,), or a matrix (m, k) whose columns are right-hand sides.
            rcond: singular values up to `rcond` times the largest one count as zero; None is eps times the larger of m
                and n.

        Returns:
            The x of least norm that minimises `norm(a @ x - b)`, the sums of the squared residuals of each column,
            without elements if m <= n, the rank of `a`, and its singular values.
        """
        namespace, (rows, columns) = kit.namespace, a.shape
        x, singular_values = solve(a, b, rcond), namespace.linalg.svdvals(a)
        relative_cutoff = namespace.finfo(singular_values.dtype).eps * max(rows, columns) if rcond is None else rcond
        squared_residuals = namespace.reshape(namespace.abs(b - a @ x) ** 2, (rows, -1))
        residual_sums = (
            namespace.sum(squared_residuals, axis=0)
            if rows > columns
            else namespace.zeros(0, dtype=squared_residuals.dtype)
        )
        return (
            x,
            residual_sums,
            namespace.count_nonzero(singular_values > relative_cutoff * namespace.max(singular_values)),
            singular_values,
        )

    return lstsq


def make_qr(kit: Any) -> Function:
    """Returns the function `linalg.qr` of a backend."""
    decompose = source.array_function(kit, OPS["qr"], strict=False)

    def qr(x: Any, /, *, mode: str = "reduced") -> Any:
        """Returns Q and R with `x = Q @ R`, with the signs that NumPy gives them; `ops.qr` has a positive diagonal.

        Args:
            x: matrices (..., m, n).
            mode: "reduced" gives Q as many columns as R has rows; "complete" makes Q square.
        """
        return decompose(x, mode, False)

    return qr


def make_isdtype(kit: Any) -> Function:
    """Returns the function `isdtype` of a backend."""

    def isdtype(dtype: Any, kind: Any) -> bool:
        """Returns whether a dtype is of a kind: a word of the standard, a dtype, or a tuple of these."""
        return bool(kit.ops.isdtype(as_xp_dtype(dtype).neutral, kit.lower(kind)))

    return isdtype


def make_result_type(kit: Any) -> Function:
    """Returns the function `result_type` of a backend."""
    promote_types = source.array_function(kit, OPS["result_type"])

    @functools.wraps(promote_types)
    def result_type(*arrays_and_dtypes: Any) -> Dtype:
        dtype: Dtype = promote_types(*arrays_and_dtypes)
        default_dtype = kit.default_dtype_of(dtype.neutral.kind)
        given_dtypes = [
            getattr(x, "dtype", x) for x in arrays_and_dtypes if x.__class__ not in (bool, int, float, complex)
        ]
        if default_dtype is None or any(as_xp_dtype(each).kind in "fc" for each in given_dtypes):
            return dtype
        return Dtype(default_dtype)  # a Python float beside integers, or alone

    return result_type


def make_info(kit: Any) -> Function:
    """Returns the function `__array_namespace_info__` of a backend."""
    return lambda: Info(kit)


def make_capabilities(kit: Any) -> Function:
    """Returns the function `capabilities` of a backend."""
    return lambda: Info(kit).capabilities()


class Devices(tuple[str, ...]):
    """The names of devices: a tuple, as the standard asks; SciPy 1.17 adds lists to it, as the one before allowed."""

    __slots__ = ()

    def __add__(self, other: Any) -> Any:
        return [*self, *other] if isinstance(other, list) else Devices(tuple(self) + tuple(other))

    def __radd__(self, other: Any) -> Any:
        return [*other, *self]


class Info(ArrayNamespaceInfo):
    """The inspection namespace of one backend."""

    def __init__(self, kit: Any) -> None:
        super().__init__(kit.backend)
        self._kit = kit

    def default_dtypes(self, *, device: Any = None) -> dict[str, Any]:
        """Returns the default dtypes, by the kinds of the standard."""
        default_by_kind = super().default_dtypes(device=device)
        own_default_by_kind = {
            f"{word} floating": self._kit.default_dtype_of(dtype_kind) for word, dtype_kind in _KINDS.items()
        }
        return default_by_kind | {
            name: Dtype(dtype) for name, dtype in own_default_by_kind.items() if dtype is not None
        }

    def _spell_dtypes(self, dtypes: dict[str, Any]) -> dict[str, Any]:
        return {name: Dtype(dtype) for name, dtype in dtypes.items()}

    def devices(self) -> tuple[str, ...]:
        """Returns the names of the available devices."""
        return Devices(super().devices())

    def capabilities(self) -> dict[str, Any]:
        """Returns the standard's capabilities by name; all backends have boolean indexing, since `x[mask]` is an op."""
        return super().capabilities() | {"boolean indexing": True}


MAKERS: dict[str, Callable[[Any], Function]] = {
    "__array_namespace_info__": make_info,
    "asarray": make_asarray,
    "astype": make_astype,
    "capabilities": make_capabilities,
    "default_complex": default_dtype_maker("complex floating"),
    "default_dtypes": make_default_dtypes,
    "default_float": default_dtype_maker("real floating"),
    "from_dlpack": make_from_dlpack,
    "isdtype": make_isdtype,
    "linalg.lstsq": make_lstsq,
    "linalg.qr": make_qr,
    "put_along_axis": make_put_along_axis,
    "result_type": make_result_type,
    "set_default_float": make_set_default_float,
}
MAKERS |= {
    name: maker_with_numpy_options(name)
    for name in ("mean", *(f"{nan}{n}" for nan in ("", "nan") for n in ("std", "var")))
}
"""By name, the makers of the functions of the main namespace, and of `linalg`."""
