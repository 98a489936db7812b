"""The attributes, methods and operators that the tensors of NumPy, PyTorch and MLX share, as calls of ops."""

import math
from collections.abc import Callable, Mapping, Sequence
from types import ModuleType
from typing import Any, ClassVar, NoReturn

from emberharmony.core.errors import EmberError, TracedTensorError
from emberharmony.core.namespace import standard_namespace
from emberharmony.core.registry import ALIASES, OPS, complete
from emberharmony.core.tracing import outside_function_message
from emberharmony.core.types import Tensor

_OPERATORS: set[str] = set()
"""The ops of the binary operators."""


def op_of(ufunc: Any) -> str | None:
    """Returns the op of a ufunc that NumPy calls for an operator whose left operand is an array; None for others."""
    complete()  # a cell may exist before the ops are declared
    op_name = ALIASES.get(ufunc.__name__, ufunc.__name__)
    return op_name if op_name in _OPERATORS else None


def op_of_traced(ufunc: Any, method: str, options: Mapping[str, Any], tensor: Any = None) -> str:
    """Returns the op of a ufunc that NumPy calls for an operator with a tensor that is being differentiated.

    Args:
        ufunc: the ufunc.
        method: its method that was called, such as "reduce".
        options: the keyword arguments of the call.
        tensor: what stands for the tensor; None for a native tensor.

    Raises:
        TracedTensorError: if it is no operator.
    """
    name, op = f"numpy.{ufunc.__name__}", op_of(ufunc)
    if options.get("out") is not None:
        raise TracedTensorError(
            f"{name} would write a traced tensor into an array (out= or an operator such as +=), so its gradient would "
            f"be lost: write x = x + y, not x += y"
        )
    if op is not None and method == "__call__" and not options:
        return op
    raise outside_function_error(name if method == "__call__" else f"{name}.{method}", tensor)


def outside_function_error(what: str, tensor: Any = None) -> TracedTensorError:
    """Returns the error for a function outside of ops that is applied to a tensor which is being differentiated.

    Args:
        what: the function of Python or of another library.
        tensor: what stands for the tensor; None for a native tensor.
    """
    function_name = what.rpartition(".")[2]
    instead = f"ops.{function_name}" if function_name in OPS else "the functions of ops"
    return TracedTensorError(outside_function_message(what, instead), tensor)


def operator_method(op: str) -> Callable[[Any, Any], Tensor]:
    """Returns the method of a binary operator that calls an op."""
    _OPERATORS.add(op)
    return lambda self, other: self.run(self.ops_provider, op, (self, other))


def reflected_method(op: str) -> Callable[[Any, Any], Tensor]:
    """Returns the method of a binary operator whose left operand is not a tensor of this class."""
    return lambda self, other: self.run(self.ops_provider, op, (other, self))


def equality_method(op: str) -> Callable[[Any, Any], Any]:
    """Returns the method of `==` or `!=`, which compares elements, but no tensor with None."""
    _OPERATORS.add(op)
    return lambda self, other: NotImplemented if other is None else self.run(self.ops_provider, op, (self, other))


class SharedMethods:
    """The base class of objects that stand for a tensor; it has the parameters on which native tensors agree.

    A subclass has the attributes `ops_provider`, `shape` and `itemsize`, and the method `run`, which calls an op.
    """

    __slots__ = ()
    kind: ClassVar[str]
    """What a message calls such an object."""
    refusal: ClassVar[type[EmberError]] = TracedTensorError
    """The class of the error for a use in which native tensors differ."""
    run: Callable[[Any, str, tuple[Any, ...]], Any]

    @property
    def ops_provider(self) -> Any:
        """The backend whose ops are called, or these ops themselves: both have them as `bound`."""
        raise NotImplementedError

    @property
    def shape(self) -> tuple[int, ...]:
        """The lengths of the axes."""
        raise NotImplementedError

    @property
    def itemsize(self) -> int:
        """The size of one element in bytes."""
        raise NotImplementedError

    @property
    def ndim(self) -> int:
        """The number of axes."""
        return len(self.shape)

    @property
    def size(self) -> int:
        """The number of elements."""
        return math.prod(self.shape)

    @property
    def nbytes(self) -> int:
        """The size of all elements in bytes."""
        return self.size * self.itemsize

    @property
    def T(self) -> Any:
        """The tensor with its axes reversed."""
        return self.ops_provider.bound.transpose(self)

    @property
    def mT(self) -> Any:
        """The tensor with its last two axes exchanged."""
        return self.ops_provider.bound.matrix_transpose(self)

    @property
    def real(self) -> Any:
        """The real part."""
        return self.ops_provider.bound.real(self)

    @property
    def imag(self) -> Any:
        """The imaginary part."""
        return self.ops_provider.bound.imag(self)

    def reshape(self, *shape: Any) -> Any:
        """Returns the tensor in another shape, given as one sequence or as lengths."""
        return self.ops_provider.bound.reshape(self, shape[0] if len(shape) == 1 else shape)

    def flatten(self) -> Any:
        """Returns the elements as a vector."""
        return self.ops_provider.bound.reshape(self, -1)

    def squeeze(self, axis: int | None = None) -> Any:
        """Returns the tensor without an axis of length 1, or without all of them."""
        return self.ops_provider.bound.squeeze(self, axis)

    def swapaxes(self, axis1: int, axis2: int, /) -> Any:
        """Returns the tensor with two axes exchanged."""
        return self.ops_provider.bound.swapaxes(self, axis1, axis2)

    def diagonal(self, offset: int = 0, axis1: int = 0, axis2: int = 1, /) -> Any:
        """Returns the diagonals over two axes."""
        return self.ops_provider.bound.diagonal(self, offset, axis1, axis2)

    def conj(self) -> Any:
        """Returns the complex conjugate."""
        return self.ops_provider.bound.conj(self)

    def round(self, *, decimals: int = 0) -> Any:
        """Returns the tensor rounded, halves to the even neighbour."""
        return self.ops_provider.bound.round(self, decimals)

    def sum(self, axis: int | Sequence[int] | None = None, *, keepdims: bool = False) -> Any:
        """Returns the sum over axes."""
        return self.ops_provider.bound.sum(self, axis, keepdims)

    def mean(self, axis: int | Sequence[int] | None = None, *, keepdims: bool = False) -> Any:
        """Returns the mean over axes."""
        return self.ops_provider.bound.mean(self, axis, keepdims)

    def prod(self, axis: int | None = None, *, keepdims: bool = False) -> Any:
        """Returns the product over an axis, or of all elements."""
        return self.ops_provider.bound.prod(self, axis, keepdims)

    def max(self, *axis: Any, **options: Any) -> Any:
        """Returns the largest element; an axis is refused, because PyTorch's tensors then return a pair."""
        return self._of_all("max", axis or options)

    def min(self, *axis: Any, **options: Any) -> Any:
        """Returns the smallest element; an axis is refused, because PyTorch's tensors then return a pair."""
        return self._of_all("min", axis or options)

    def all(self, axis: int | None = None, *, keepdims: bool = False) -> Any:
        """Returns whether all elements over an axis are non-zero."""
        return self.ops_provider.bound.all(self, axis, keepdims)

    def any(self, axis: int | None = None, *, keepdims: bool = False) -> Any:
        """Returns whether any element over an axis is non-zero."""
        return self.ops_provider.bound.any(self, axis, keepdims)

    def argmax(self, axis: int | None = None, *, keepdims: bool = False) -> Any:
        """Returns the index of the largest element over an axis."""
        return self.ops_provider.bound.argmax(self, axis, keepdims)

    def argmin(self, axis: int | None = None, *, keepdims: bool = False) -> Any:
        """Returns the index of the smallest element over an axis."""
        return self.ops_provider.bound.argmin(self, axis, keepdims)

    def cumsum(self, axis: int) -> Any:
        """Returns the cumulative sums along an axis."""
        return self.ops_provider.bound.cumsum(self, axis)

    def cumprod(self, axis: int) -> Any:
        """Returns the cumulative products along an axis."""
        return self.ops_provider.bound.cumprod(self, axis)

    def __array_namespace__(self, *, api_version: str | None = None) -> ModuleType:
        return standard_namespace(self.ops_provider.bound.backend, api_version)

    def __len__(self) -> int:
        if not self.shape:
            raise TypeError("a tensor without axes has no length")
        return self.shape[0]

    def __getitem__(self, key: Any) -> Tensor:
        item: Tensor = self.ops_provider.bound.get_item(self, key)
        return item

    def __iter__(self) -> Any:
        return map(self.__getitem__, range(len(self)))

    __add__, __radd__ = operator_method("add"), reflected_method("add")
    __sub__, __rsub__ = operator_method("subtract"), reflected_method("subtract")
    __mul__, __rmul__ = operator_method("multiply"), reflected_method("multiply")
    __truediv__, __rtruediv__ = operator_method("divide"), reflected_method("divide")
    __floordiv__, __rfloordiv__ = operator_method("floor_divide"), reflected_method("floor_divide")
    __mod__, __rmod__ = operator_method("mod"), reflected_method("mod")
    __pow__, __rpow__ = operator_method("power"), reflected_method("power")
    __matmul__, __rmatmul__ = operator_method("matmul"), reflected_method("matmul")
    __and__, __rand__ = operator_method("bitwise_and"), reflected_method("bitwise_and")
    __or__, __ror__ = operator_method("bitwise_or"), reflected_method("bitwise_or")
    __xor__, __rxor__ = operator_method("bitwise_xor"), reflected_method("bitwise_xor")
    __lshift__, __rlshift__ = operator_method("bitwise_left_shift"), reflected_method("bitwise_left_shift")
    __rshift__, __rrshift__ = operator_method("bitwise_right_shift"), reflected_method("bitwise_right_shift")
    __lt__, __le__ = operator_method("less"), operator_method("less_equal")
    __gt__, __ge__ = operator_method("greater"), operator_method("greater_equal")

    def __neg__(self) -> Any:
        return self.run(self.ops_provider, "negative", (self,))

    def __pos__(self) -> Any:
        return self

    def __invert__(self) -> Any:
        return self.run(self.ops_provider, "bitwise_not", (self,))

    def __abs__(self) -> Any:
        return self.run(self.ops_provider, "absolute", (self,))

    def _of_all(self, name: str, options: Any) -> Any:
        if options:
            raise self.refusal(
                f"{name}() of {self.kind} takes no axis, because native tensors then return different results: use "
                f"ops.{name}(x, axis)"
            )
        return getattr(self.ops_provider.bound, name)(self)


class ExplainedMethods(SharedMethods):
    """The methods of objects that exist inside a transform, which explain each attribute that they lack.

    A class with `__getattr__` makes every read of an attribute slow (500 instructions on CPython 3.11), which cells,
    the operands of all layers, cannot afford.
    """

    __slots__ = ()
    plain: ClassVar[str]
    """The expression that gives the native tensor of `x`, empty if there is none."""

    def __getattr__(self, name: str) -> NoReturn:
        if name.startswith("__"):  # probed by a library, such as `copy`, which expects this plain error
            raise AttributeError(name)
        # Imported here, because only unknown names need it.
        from emberharmony.core.names.spellings import method_hint

        self.note_missing(name)
        hint = method_hint(name, self.plain)
        raise AttributeError(
            f"{self.kind} has no attribute {name!r}, because native tensors differ in it: {hint}",
            name=name,
        )

    def note_missing(self, name: str) -> None:
        """Called when an attribute is read that only some libraries' tensors have; does nothing unless overridden."""


# Set after the class is made, because `__eq__` in its body would take its hash away. Dynamo (PyTorch 2.13) hashes no
# object of a class that names `object.__hash__` itself.
for _name, _op in (("__eq__", "equal"), ("__ne__", "not_equal")):
    setattr(SharedMethods, _name, equality_method(_op))
