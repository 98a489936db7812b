"""The tensor of which only the shape and dtype are known; its operators and methods are ops."""

from typing import Any, NoReturn

from emberharmony.core.errors import TracedTensorError
from emberharmony.core.stand_ins.shared_methods import ExplainedMethods, op_of


class AbstractTensor(ExplainedMethods):
    """A tensor that has a shape and a dtype but, unless it was given to the function as a value, no values.

    Args:
        backend: the backend that computes shapes only.
        shape: the lengths of the axes.
        dtype: the native dtype.
        known: a host array or native tensor of the values that the function takes from outside; no op computed it.
    """

    __slots__ = ("_backend", "_shape", "dtype", "known")
    kind, plain = "a tensor of eval_shape", ""

    def __init__(self, backend: Any, shape: Any, dtype: Any, known: Any = None) -> None:
        self._backend, self._shape, self.dtype, self.known = backend, tuple(shape), dtype, known

    @property
    def backend(self) -> Any:
        """The backend that computes shapes only."""
        return self._backend

    ops_provider = backend

    @property
    def shape(self) -> tuple[int, ...]:
        """The lengths of the axes."""
        return self._shape

    def run(self, backend: Any, op: str, arguments: tuple[Any, ...]) -> Any:
        """Calls an op of the backend that computes shapes only."""
        return getattr(backend.bound, op)(*arguments)

    @property
    def itemsize(self) -> int:
        """The size of one element in bytes."""
        byte_count: int = self.backend.dtypes.neutral[self.dtype].itemsize
        return byte_count

    @property
    def device(self) -> Any:
        """The name of the default device."""
        return self.backend.wrapped.bound.get_default_device()

    def value(self, what: str) -> Any:
        """Returns the values as a host array, if the tensor was given to the function as a value.

        Args:
            what: the function that reads them, for the message.

        Raises:
            TracedTensorError: if an op computed the tensor, so that there are no values.
        """
        if self.known is None:
            raise no_value_error(f"{what} was applied to a tensor of shape {self.shape}")
        return self.backend.wrapped.bound.to_numpy(self.known)

    def item(self) -> Any:
        """Returns the only element of a tensor that was given as a value."""
        return self.value("item()").item()

    def tolist(self) -> Any:
        """Returns the elements of a tensor that was given as a value."""
        return self.value("tolist()").tolist()

    def __repr__(self) -> str:
        return f"<abstract tensor of shape {self.shape} and dtype {self.backend.dtypes.neutral[self.dtype].name}>"

    def __bool__(self) -> bool:
        return bool(self.value("an `if`, a `while` or bool()"))

    def __float__(self) -> float:
        return float(self.value("float()"))

    def __int__(self) -> int:
        return int(self.value("int()"))

    def __complex__(self) -> complex:
        return complex(self.value("complex()"))

    def __index__(self) -> int:
        index: int = self.value("the use as an index").__index__()
        return index

    def __array__(self, dtype: Any = None, copy: Any = None) -> Any:
        return self.value("a function of NumPy or another library")

    def __array_ufunc__(self, ufunc: Any, method: str, *inputs: Any, **options: Any) -> Any:
        op = op_of(ufunc)
        if op is None or method != "__call__" or options:
            raise no_value_error(f"numpy.{ufunc.__name__} was applied to a tensor of shape {self.shape}")
        return self.run(self.backend, op, inputs)

    def __array_function__(self, function: Any, types: Any, args: Any, kwargs: Any) -> NoReturn:
        raise no_value_error(f"{function.__module__}.{function.__name__} was applied to a tensor of shape {self.shape}")

    def __setitem__(self, key: Any, value: Any) -> NoReturn:
        raise TracedTensorError(
            "eval_shape computes shapes only, and its tensors cannot be changed in place: use ops.set_item, "
            "ops.scatter_update or ops.where, which return a new tensor"
        )


class NoValueError(TracedTensorError):
    """Raised when a function whose shapes are computed reads a value; `cond` and `switch` then run all branches."""


def no_value_error(what: str) -> NoValueError:
    """Returns the error for a value that is read while only shapes are computed.

    Args:
        what: what needs the value, as a sentence.
    """
    return NoValueError(
        f"eval_shape computes shapes only, so no values exist: {what}; write the function with ops whose shapes do not "
        f"depend on values (ops.where for a choice), or pass the value itself and not a spec"
    )
