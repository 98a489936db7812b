"""The array object of the array API standard: what the classes of all backends share.

An array stands for its tensor (`core.tracing`), as a cell does: an op that meets one runs the function of the array's
namespace, so `ops`, `nn`, `optim` and `io` take arrays and give them back. NumPy gets the memory of an array, or a copy
that becomes it (`xp.loans`), since a function with `output=` would otherwise write into a copy without a word.
"""

import operator
from types import ModuleType
from typing import Any, ClassVar

import numpy as np

from emberharmony.core.errors import ArgumentError, TracedTensorError, brief
from emberharmony.core.namespace import VERSIONS
from emberharmony.core.registry import OPS
from emberharmony.core.stand_ins.shared_methods import SharedMethods
from emberharmony.core.tracing import Standing, outside_function_message, require_untraced
from emberharmony.xp.dtypes import Dtype, as_xp_dtype
from emberharmony.xp.links import LOCK, call_op, loan_of, new_links, tensor_of

_CPU = 1
"""DLPack's number of the device type CPU."""
_TREES = ("Any", "tuple[Any, ...]", "Callable[..., Any]")


class ArrayBase(SharedMethods, Standing):
    """An array of one backend, whose class has the operators; functions of its namespace make arrays.

    `_v` is a native tensor, or what stands for one inside a transform. `_links` is what the array has to do with others
    (`views.Links`); None if it shares its memory with nobody.
    """

    __slots__ = ("__weakref__", "_links", "_v")
    __array_priority__ = 1000.0
    __hash__ = None  # type: ignore[assignment]
    kind, refusal = "an array", TracedTensorError
    _kit: ClassVar[Any]
    _v: Any
    _links: Any

    @property
    def ops_provider(self) -> Any:
        """The backend that computes the array."""
        return self._kit.backend

    def tensor_on(self, bound: Any) -> Any:
        """Returns the native tensor of the array for the ops of a backend.

        Args:
            bound: the ops of the backend that asks, as `backend.bound`.

        Raises:
            BackendMismatchError: if another backend asks for it.
        """
        return self._kit.tensor_for(self, bound)

    def run(self, backend: Any, op: str, arguments: tuple[Any, ...]) -> Any:
        """Runs an op that has this array among its arguments; its result is an array too.

        Args:
            backend: the backend whose op has been called.
            op: the name of the op.
            arguments: the arguments of the call, in the order of the op's parameters.
        """
        spec = OPS[op]
        if spec.takes_callable or spec.returns in _TREES:  # arrays are tree nodes there
            return self._kit.call_on_trees(spec, arguments)
        return call_op(self._kit.plain_function(op), op, arguments)

    def __array_namespace__(self, *, api_version: str | None = None) -> ModuleType:
        """Returns the namespace of the backend.

        Raises:
            ValueError: if the version of the standard is unknown.
        """
        if api_version is not None and api_version not in VERSIONS:
            raise ArgumentError(f"expected api_version to be one of {', '.join(VERSIONS)}, got {brief(api_version)}")
        return self._kit.namespace  # type: ignore[no-any-return]

    @property
    def shape(self) -> tuple[int, ...]:
        """The lengths of the axes."""
        return tuple(self._v.shape)

    @property
    def ndim(self) -> int:
        """The number of axes."""
        return self._v.ndim  # type: ignore[no-any-return]

    @property
    def dtype(self) -> Dtype:
        """The dtype."""
        return self._kit.dtypes[self._v.dtype]  # type: ignore[no-any-return]

    @property
    def itemsize(self) -> int:
        """The size of one element in bytes."""
        return self.dtype.itemsize

    @property
    def device(self) -> Any:
        """The name of the device."""
        return self._kit.ops.get_device(tensor_of(self))

    @property
    def native(self) -> Any:
        """The tensor of the library; where it has memory that can be written to, this is the memory of the array."""
        return self._shared_tensor()

    @property
    def T(self) -> Any:
        """The transpose of a matrix.

        Raises:
            ValueError: if it has not two axes.
        """
        if self.ndim != 2:
            raise ValueError(f"x.T needs two axes, not {self.ndim}: use x.mT, or permute_dims")
        return self._kit.namespace.permute_dims(self, (1, 0))

    def to_device(self, device: Any, /, *, stream: Any = None) -> Any:
        """Returns the array on a device.

        Args:
            device: a device, or its name, such as "cpu" or "gpu:1".
            stream: part of the standard; only None is accepted.

        Raises:
            ArgumentError: if a stream is given.
        """
        if stream is not None:
            raise ArgumentError("to_device takes no stream")
        return self._kit.namespace.to_device(self, device)

    def astype(self, dtype: Any, /, *, copy: bool = True) -> Any:
        """Returns the array in another dtype.

        Args:
            dtype: a dtype of the namespace, or a name such as "float32".
            copy: whether the result always has memory of its own.
        """
        return self._kit.namespace.astype(self, dtype, copy=copy)

    def view(self, dtype: Any) -> Any:
        """Returns the bits of the elements as elements of another dtype; complex numbers become pairs of real ones.

        Args:
            dtype: the dtype that the bits are read as.
        """
        target_dtype, namespace = (
            as_xp_dtype(np.dtype(dtype).name if isinstance(dtype, type) else dtype),
            self._kit.namespace,
        )
        if target_dtype == self.dtype:
            return self[...]
        if target_dtype.itemsize * 2 == self.itemsize and (target_dtype.kind, self.dtype.kind) == ("f", "c"):
            # Unlike `view`, `view_as_real` has a derivative.
            return namespace.reshape(namespace.view_as_real(self), (*self.shape[:-1], -1))
        return namespace.view(self, target_dtype)

    def copy(self) -> Any:
        """Returns an array of the same values with memory of its own."""
        return self._kit.lift(self._kit.ops.copy(tensor_of(self)))

    def ravel(self) -> Any:
        """Returns the elements as a vector."""
        return self._kit.namespace.reshape(self, (-1,))

    def sum(self, axis: Any = None, dtype: Any = None, out: None = None, *, keepdims: bool = False) -> Any:
        """Returns the sum over axes; `out` is accepted as None only, which libraries for NumPy's arrays pass."""
        _require_no_out(out)
        return self._kit.namespace.sum(self, axis=axis, dtype=dtype, keepdims=keepdims)

    def prod(self, axis: Any = None, dtype: Any = None, out: None = None, *, keepdims: bool = False) -> Any:
        """Returns the product over axes."""
        _require_no_out(out)
        return self._kit.namespace.prod(self, axis=axis, dtype=dtype, keepdims=keepdims)

    def mean(self, axis: Any = None, dtype: Any = None, out: None = None, *, keepdims: bool = False) -> Any:
        """Returns the mean over axes."""
        _require_no_out(out)
        return self._kit.namespace.mean(self, axis=axis, dtype=dtype, keepdims=keepdims)

    def std(self, axis: Any = None, dtype: Any = None, out: None = None, **options: Any) -> Any:
        """Returns the standard deviation over axes; the options are `correction`, or `ddof`, and `keepdims`.

        Args:
            **options: `correction`, or `ddof`, which is subtracted from the number of elements, and `keepdims`.
        """
        _require_no_out(out)
        return self._kit.namespace.std(self, axis=axis, dtype=dtype, **options)

    def var(self, axis: Any = None, dtype: Any = None, out: None = None, **options: Any) -> Any:
        """Returns the variance over axes; the options are `correction`, or `ddof`, and `keepdims`.

        Args:
            **options: `correction`, or `ddof`, which is subtracted from the number of elements, and `keepdims`.
        """
        _require_no_out(out)
        return self._kit.namespace.var(self, axis=axis, dtype=dtype, **options)

    def max(self, axis: Any = None, out: None = None, *, keepdims: bool = False) -> Any:
        """Returns the largest element over axes."""
        _require_no_out(out)
        return self._kit.namespace.max(self, axis=axis, keepdims=keepdims)

    def min(self, axis: Any = None, out: None = None, *, keepdims: bool = False) -> Any:
        """Returns the smallest element over axes."""
        _require_no_out(out)
        return self._kit.namespace.min(self, axis=axis, keepdims=keepdims)

    def __setitem__(self, key: Any, given: Any) -> None:
        kit = self._kit
        kit.join()
        with LOCK:
            if not kit.memory.write(self, kit.lower(key), kit.lower(given)) and kit.memory.shares:
                kit.memory.mark_kept(key, given)  # a transform may have recorded the write

    def __pos__(self) -> Any:
        return self.copy()

    def _shared_tensor(self) -> Any:
        """Returns the native tensor to code that may keep it: later writes go into its memory, or into a copy of it."""
        if self._links is None:
            self._links = new_links(foreign=not self._kit.memory.shares)
        return tensor_of(self)

    def _untraced_tensor(self, what: str) -> Any:
        """Returns the native tensor, whose values are about to be read by Python or another library.

        Raises:
            TracedTensorError: if the tensor is being differentiated, so that its gradient would be lost.
        """
        self._kit.join()
        tensor = tensor_of(self)
        if not self._kit.is_native(tensor):
            raise TracedTensorError(outside_function_message(what), tensor)
        require_untraced(tensor)
        return tensor

    def _only_number(self, what: str) -> Any:
        if self.shape:
            raise TypeError(f"{what} takes an array without axes, not one of shape {self.shape}")
        return self._kit.ops.to_numpy(self._untraced_tensor(what)).item()

    def item(self) -> Any:
        """Returns the only element as a Python number."""
        return self._kit.ops.to_numpy(self._untraced_tensor("item()")).item()

    def tolist(self) -> Any:
        """Returns the elements as nested lists of Python numbers."""
        return self._kit.ops.to_numpy(self._untraced_tensor("tolist()")).tolist()

    def __bool__(self) -> bool:
        if self.shape and self._kit.size(self) != 1:
            raise TypeError(f"bool() takes an array of one element, not one of shape {self.shape}")
        self._kit.join()
        with LOCK:
            return bool(tensor_of(self))  # a traced tensor raises its own error

    def __float__(self) -> float:
        return float(_convertible_number(self._only_number("float()"), float))

    def __int__(self) -> int:
        return int(_convertible_number(self._only_number("int()"), float))

    def __complex__(self) -> complex:
        return complex(self._only_number("complex()"))

    def __index__(self) -> int:
        return operator.index(_convertible_number(self._only_number("the use as an index"), int))

    def __len__(self) -> int:
        if not self.ndim:
            raise TypeError("an array without axes has no length")
        return int(self._v.shape[0])

    def __iter__(self) -> Any:
        return map(self.__getitem__, range(len(self)))

    def __contains__(self, item: Any) -> bool:
        return bool((self == item).any())

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> Any:
        """Returns the values as an array of NumPy, in the memory of this one.

        On MLX and JAX they are copied once, and what is written into the copy is read whenever the array is used.

        Raises:
            ValueError: if `copy` is False and a copy is necessary.
        """
        kit, loan = self._kit, loan_of(self)
        if loan is None:
            tensor = self._untraced_tensor("a function of NumPy or another library")
            array = kit.ops.to_numpy(self._shared_tensor() if kit.memory.shares else tensor)
        else:
            array = loan.memory
        has_other_dtype = dtype is not None and array.dtype != np.dtype(dtype)
        if copy or has_other_dtype:
            if copy is False:
                raise ValueError(f"an array of {array.dtype} becomes one of {dtype} only by a copy")
            return array.astype(array.dtype if dtype is None else dtype)
        return array if kit.memory.shares else kit.memory.lend(self)

    def __dlpack_device__(self) -> Any:
        """Returns the kind and the number of the device, for DLPack."""
        return self._untraced_tensor("DLPack").__dlpack_device__()

    def __dlpack__(
        self, *, stream: Any = None, max_version: Any = None, dl_device: Any = None, copy: bool | None = None
    ) -> Any:
        """Returns the array for a library that imports it by DLPack.

        Tensors that must not change are copied for a library on the host, which may write into what it gets, unless
        `copy` is False.
        """
        self._untraced_tensor("DLPack")
        kit, tensor = self._kit, tensor_of(self)
        dlpack_options = {"max_version": max_version, "dl_device": dl_device}
        if not kit.memory.shares and copy is not False and tensor.__dlpack_device__()[0] == _CPU:
            tensor = kit.ops.to_numpy(tensor).copy()
        else:
            dlpack_options["stream"] = stream
            tensor = kit.ops.copy(tensor) if copy else self._shared_tensor()
        given_options = {name: each for name, each in dlpack_options.items() if each is not None}
        try:
            return tensor.__dlpack__(**given_options)
        except TypeError:  # the tensor has an older version of the protocol
            return tensor.__dlpack__()
        except BufferError:
            if given_options.pop("max_version", None) is None:
                raise
            # The protocol allows a capsule of another version than asked for, and JAX makes no older one.
            return tensor.__dlpack__(**given_options)

    def __copy__(self) -> Any:
        return self.copy()

    def __deepcopy__(self, memo: Any) -> Any:
        return self.copy()

    def __reduce__(self) -> Any:
        return _from_pickle, (self._kit.namespace, self._kit.backend.pack(self._untraced_tensor("pickle")))

    def __repr__(self) -> str:
        tensor = tensor_of(self)
        if not self._kit.is_native(tensor):
            return f"Array({tensor!r})"
        values_text = np.array2string(self._kit.ops.to_numpy(tensor), separator=", ", prefix="Array(")
        return f"Array({values_text}, dtype={self.dtype}, backend={self._kit.name!r})"

    def __format__(self, spec: str) -> str:
        return format(self.item(), spec) if spec and not self.ndim else str(self)


def _require_no_out(out: Any) -> None:
    """Raises a TypeError if the argument `out` is given, because results are never written into it."""
    if out is not None:
        raise TypeError("out is not supported: write x[...] = result")


def _convertible_number(number: Any, kind: type) -> Any:
    """Returns a Python number after a check that converting it to a class drops no imaginary or fractional part.

    Raises:
        TypeError: if it does not.
    """
    if isinstance(number, complex) or (kind is int and type(number) is not int):
        raise TypeError(f"an array of {type(number).__name__} does not convert to {kind.__name__}")
    return number


def _from_pickle(namespace: Any, packed: Any) -> Any:
    """Returns a pickled array."""
    kit = namespace._kit
    return kit.lift(kit.backend.unpack(packed))
