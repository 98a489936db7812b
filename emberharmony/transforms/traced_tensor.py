"""The tensor that a tape traces: it has the shape and dtype of its value, and its operators and methods are ops."""

import math
from collections.abc import Callable, Sequence
from types import ModuleType
from typing import Any, NoReturn

from emberharmony.core.errors import TracedTensorError
from emberharmony.core.namespace import standard_namespace
from emberharmony.core.registry import OPS
from emberharmony.core.tracing import TensorProxy, lost

_UFUNCS = {
    "add": "add",
    "subtract": "subtract",
    "multiply": "multiply",
    "divide": "divide",
    "true_divide": "divide",
    "floor_divide": "floor_divide",
    "remainder": "mod",
    "power": "power",
    "matmul": "matmul",
    "equal": "equal",
    "not_equal": "not_equal",
    "less": "less",
    "less_equal": "less_equal",
    "greater": "greater",
    "greater_equal": "greater_equal",
}
"""The ufuncs that NumPy calls for an operator whose left operand is an array, each with its op."""


def _operator(op: str) -> Callable[[Any, Any], Any]:
    return lambda self, other: self.run(self.tape.backend, op, (self, other))


def _reflected(op: str) -> Callable[[Any, Any], Any]:
    return lambda self, other: self.run(self.tape.backend, op, (other, self))


class TracedTensor(TensorProxy):
    """A tensor that stands for `value` while a tape records.

    `source` is the node that computed it or, if that node has several results, the pair of the node and the index. The
    methods are those that the tensors of NumPy, PyTorch and MLX share, with the parameters on which they agree. Other
    uses raise `TracedTensorError`.
    """

    __slots__ = ("source", "tape", "value")

    def __init__(self, value: Any, tape: Any, source: Any) -> None:
        self.value, self.tape, self.source = value, tape, source

    def run(self, backend: Any, op: str, arguments: tuple[Any, ...]) -> Any:
        """Runs an op on the tape of the innermost traced argument."""
        return self.tape.run(backend, op, arguments)

    @property
    def backend(self) -> Any:
        """The backend of the value."""
        return self.tape.backend

    @property
    def shape(self) -> tuple[int, ...]:
        """The shape of the value."""
        return self.value.shape  # type: ignore[no-any-return]

    @property
    def dtype(self) -> Any:
        """The native dtype of the value."""
        return self.value.dtype

    @property
    def ndim(self) -> int:
        """The number of axes."""
        return len(self.value.shape)

    @property
    def size(self) -> int:
        """The number of elements."""
        return math.prod(self.value.shape)

    @property
    def itemsize(self) -> int:
        """The size of one element in bytes."""
        return self.value.itemsize  # type: ignore[no-any-return]

    @property
    def nbytes(self) -> int:
        """The size of all elements in bytes."""
        return self.size * self.itemsize

    @property
    def device(self) -> Any:
        """The native device of the value, if native tensors have that attribute."""
        return self.value.device

    @property
    def T(self) -> Any:
        """The tensor with its axes reversed."""
        return self.tape.backend.bound.transpose(self)

    @property
    def mT(self) -> Any:
        """The tensor with its last two axes exchanged."""
        return self.tape.backend.bound.matrix_transpose(self)

    @property
    def real(self) -> Any:
        """The real part."""
        return self.tape.backend.bound.real(self)

    @property
    def imag(self) -> Any:
        """The imaginary part."""
        return self.tape.backend.bound.imag(self)

    def reshape(self, *shape: Any) -> Any:
        """Returns the tensor in another shape, given as one sequence or as lengths."""
        return self.tape.backend.bound.reshape(self, shape[0] if len(shape) == 1 else shape)

    def flatten(self) -> Any:
        """Returns the elements as a vector."""
        return self.tape.backend.bound.ravel(self)

    def squeeze(self, axis: int | None = None) -> Any:
        """Returns the tensor without an axis of length 1, or without all of them."""
        return self.tape.backend.bound.squeeze(self, axis)

    def swapaxes(self, axis1: int, axis2: int, /) -> Any:
        """Returns the tensor with two axes exchanged."""
        return self.tape.backend.bound.swapaxes(self, axis1, axis2)

    def diagonal(self, offset: int = 0, axis1: int = 0, axis2: int = 1, /) -> Any:
        """Returns the diagonals over two axes."""
        return self.tape.backend.bound.diagonal(self, offset, axis1, axis2)

    def conj(self) -> Any:
        """Returns the complex conjugate."""
        return self.tape.backend.bound.conj(self)

    def round(self, *, decimals: int = 0) -> Any:
        """Returns the tensor rounded, halves to the even neighbour."""
        return self.tape.backend.bound.round(self, decimals)

    def sum(self, axis: int | Sequence[int] | None = None, *, keepdims: bool = False) -> Any:
        """Returns the sum over axes."""
        return self.tape.backend.bound.sum(self, axis, keepdims)

    def mean(self, axis: int | Sequence[int] | None = None, *, keepdims: bool = False) -> Any:
        """Returns the mean over axes."""
        return self.tape.backend.bound.mean(self, axis, keepdims)

    def prod(self, axis: int | None = None, *, keepdims: bool = False) -> Any:
        """Returns the product over an axis, or of all elements."""
        return self.tape.backend.bound.prod(self, axis, keepdims)

    def max(self, *axis: Any, **options: Any) -> Any:
        """Returns the largest element; an axis is refused, because PyTorch's tensors then return a pair."""
        return self._of_all("max", axis or options)

    def min(self, *axis: Any, **options: Any) -> Any:
        """Returns the smallest element; an axis is refused, because PyTorch's tensors then return a pair."""
        return self._of_all("min", axis or options)

    def all(self, axis: int | None = None, *, keepdims: bool = False) -> Any:
        """Returns whether all elements over an axis are non-zero."""
        return self.tape.backend.bound.all(self, axis, keepdims)

    def any(self, axis: int | None = None, *, keepdims: bool = False) -> Any:
        """Returns whether any element over an axis is non-zero."""
        return self.tape.backend.bound.any(self, axis, keepdims)

    def argmax(self, axis: int | None = None, *, keepdims: bool = False) -> Any:
        """Returns the index of the largest element over an axis."""
        return self.tape.backend.bound.argmax(self, axis, keepdims)

    def argmin(self, axis: int | None = None, *, keepdims: bool = False) -> Any:
        """Returns the index of the smallest element over an axis."""
        return self.tape.backend.bound.argmin(self, axis, keepdims)

    def cumsum(self, axis: int) -> Any:
        """Returns the cumulative sums along an axis."""
        return self.tape.backend.bound.cumsum(self, axis)

    def cumprod(self, axis: int) -> Any:
        """Returns the cumulative products along an axis."""
        return self.tape.backend.bound.cumprod(self, axis)

    def item(self) -> NoReturn:
        """Raises `TracedTensorError`, because a Python number has no gradient."""
        self._refuse("item()")

    def tolist(self) -> NoReturn:
        """Raises `TracedTensorError`, because Python numbers have no gradient."""
        self._refuse("tolist()")

    def __array_namespace__(self, *, api_version: str | None = None) -> ModuleType:
        return standard_namespace(self.backend, api_version)

    def __len__(self) -> int:
        return len(self.value)

    def __getitem__(self, key: Any) -> Any:
        return self.tape.backend.bound.get_item(self, key)

    def __iter__(self) -> Any:
        return iter([self[i] for i in range(len(self))])

    def __repr__(self) -> str:
        return f"<traced {self.value!r}>"

    __hash__ = object.__hash__
    __add__, __radd__ = _operator("add"), _reflected("add")
    __sub__, __rsub__ = _operator("subtract"), _reflected("subtract")
    __mul__, __rmul__ = _operator("multiply"), _reflected("multiply")
    __truediv__, __rtruediv__ = _operator("divide"), _reflected("divide")
    __floordiv__, __rfloordiv__ = _operator("floor_divide"), _reflected("floor_divide")
    __mod__, __rmod__ = _operator("mod"), _reflected("mod")
    __pow__, __rpow__ = _operator("power"), _reflected("power")
    __matmul__, __rmatmul__ = _operator("matmul"), _reflected("matmul")
    __lt__, __le__ = _operator("less"), _operator("less_equal")
    __gt__, __ge__ = _operator("greater"), _operator("greater_equal")
    __eq__ = _operator("equal")
    __ne__ = _operator("not_equal")

    def __neg__(self) -> Any:
        return self.run(self.tape.backend, "negative", (self,))

    def __pos__(self) -> Any:
        return self

    def __abs__(self) -> Any:
        return self.run(self.tape.backend, "absolute", (self,))

    def __bool__(self) -> bool:
        # Allowed, so that Python code may branch on a value: the gradient is that of the branch that runs.
        return bool(self.value)

    def __array_ufunc__(self, ufunc: Any, method: str, *inputs: Any, **options: Any) -> Any:
        op = _UFUNCS.get(ufunc.__name__)
        if options.get("out") is not None:
            raise TracedTensorError(
                f"numpy.{ufunc.__name__} would write a traced tensor into an array (out= or an operator such as +=), "
                f"so its gradient would be lost: write x = x + y, not x += y"
            )
        if op is None or method != "__call__" or options:
            self._refuse(f"numpy.{ufunc.__name__}" + ("" if method == "__call__" else f".{method}"))
        return self.run(self.tape.backend, op, inputs)

    def __array_function__(self, function: Any, types: Any, args: Any, kwargs: Any) -> NoReturn:
        self._refuse(f"{function.__module__}.{function.__name__}")

    def __array__(self, dtype: Any = None, copy: Any = None) -> NoReturn:
        raise TracedTensorError(lost("a function of NumPy or another library"), self)

    def __float__(self) -> NoReturn:
        self._refuse("float()")

    def __int__(self) -> NoReturn:
        self._refuse("int()")

    def __complex__(self) -> NoReturn:
        self._refuse("complex()")

    def __index__(self) -> NoReturn:
        self._refuse("the use as an index")

    def __setitem__(self, key: Any, value: Any) -> NoReturn:
        raise TracedTensorError(
            "a traced tensor cannot be changed in place, because the gradients of earlier results would be wrong: "
            "use ops.set_item, ops.scatter_update or ops.where, which return a new tensor"
        )

    def __getattr__(self, name: str) -> NoReturn:
        if name.startswith("__"):  # probed by a library, such as `copy`, which expects this plain error
            raise AttributeError(name)
        # Imported here, because only unknown names need it.
        from emberharmony.core.spellings import method_hint

        raise AttributeError(
            f"a traced tensor has no attribute {name!r}, because native tensors differ in it: {method_hint(name)}",
            name=name,
        )

    def _of_all(self, name: str, options: Any) -> Any:
        if options:
            raise TracedTensorError(
                f"{name}() of a traced tensor takes no axis, because native tensors then return different results: use "
                f"ops.{name}(x, axis)"
            )
        return getattr(self.tape.backend.bound, name)(self)

    def _refuse(self, what: str) -> NoReturn:
        name = what.rpartition(".")[2]
        raise TracedTensorError(lost(what, f"ops.{name}" if name in OPS else "the functions of ops"), self)
