"""A cell as an operand: operators, conversions, and the protocols by which libraries take other objects for arrays.

An operator, an index and a method of a cell are ops, as those of a traced tensor are. A function of a library gets the
tensor of the cell, through the protocol of that library.
"""

import operator
from collections.abc import Callable, Iterable, Mapping
from typing import Any, NoReturn

from emberharmony.core import selection
from emberharmony.core.errors import ArgumentTypeError, EmberError, TracedTensorError
from emberharmony.core.registry import OPS
from emberharmony.core.stand_ins.shared_methods import SharedMethods, op_of
from emberharmony.core.tracing import TensorProxy, is_traced, outside_function_message


class TensorMethods(SharedMethods):
    """The base class of cells, which have the attributes, methods and operators of a tensor.

    A subclass has the attribute `value`, its tensor on the active backend.
    """

    __slots__ = ()
    __torch_function__: Any
    """How functions of PyTorch take a cell; its backend sets it."""
    kind, refusal = "a parameter or buffer", ArgumentTypeError
    value: Any

    @property
    def ops_provider(self) -> Any:
        """The ops of the active backend, which the operators call."""
        return selection.active()

    @property
    def shape(self) -> tuple[int, ...]:
        """The lengths of the axes."""
        return tuple(self.value.shape)

    @property
    def dtype(self) -> Any:
        """The native dtype on the active backend."""
        return self.value.dtype

    @property
    def itemsize(self) -> int:
        """The size of one element in bytes."""
        byte_count: int = selection.current().dtypes.neutral[self.value.dtype].itemsize
        return byte_count

    def item(self) -> Any:
        """Returns the only element as a Python number."""
        return self._host_array("item()").item()

    def tolist(self) -> Any:
        """Returns the elements as nested lists of Python numbers."""
        return self._host_array("tolist()").tolist()

    def __bool__(self) -> bool:
        return bool(self.value)

    def __float__(self) -> float:
        return float(self._untraced_value("float()"))

    def __int__(self) -> int:
        return int(self._untraced_value("int()"))

    def __complex__(self) -> complex:
        return complex(self._untraced_value("complex()"))

    def __index__(self) -> int:
        return operator.index(self._untraced_value("the use as an index"))

    def __pos__(self) -> Any:
        return self.value

    def __setitem__(self, key: Any, value: Any) -> NoReturn:
        raise self._write_error("x[key] = value", "ops.set_item(x, key, value)")

    def _in_place(self, other: Any) -> NoReturn:
        raise self._write_error("an operator such as +=", "x + y")

    __iadd__ = __isub__ = __imul__ = __itruediv__ = __ifloordiv__ = __imod__ = __ipow__ = __imatmul__ = _in_place
    __iand__ = __ior__ = __ixor__ = __ilshift__ = __irshift__ = _in_place

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> Any:
        """Returns the values as an array of NumPy, which cannot be written to."""
        array = self._host_array("a function of NumPy or another library")
        if copy or dtype not in (None, array.dtype):
            return array.astype(dtype or array.dtype)
        return _read_only(array)

    def __array_ufunc__(self, ufunc: Any, method: str, *inputs: Any, **options: Any) -> Any:
        ufunc_name = f"numpy.{ufunc.__name__}"
        if method == "at" or any(isinstance(x, TensorMethods) for x in options.get("out", ())):
            raise self._write_error(f"{ufunc_name}, by out= or at()", f"ops.{op_of(ufunc) or ufunc.__name__}(...)")
        op = op_of(ufunc)
        if op is not None and method == "__call__" and not options:
            tensors = [x.value if isinstance(x, TensorMethods) else x for x in inputs]
            if len(set(map(type, tensors))) == 1 and not isinstance(tensors[0], TensorProxy):
                return getattr(selection.current(), op)(*tensors)  # unobserved, as the operator of a library is
            return self.run(selection.active(), op, inputs)
        return _call_on_tensors(getattr(ufunc, method), ufunc_name, inputs, options)

    def __array_function__(self, function: Any, types: Any, args: Any, kwargs: Any) -> Any:
        function_name = f"{function.__module__}.{function.__name__}"
        if _holds_cell(kwargs.get("out")):
            raise self._write_error(f"{function_name}, by out=", f"{function_name}(...)")
        try:
            return _call_on_tensors(function, function_name, args, kwargs)
        except ValueError as error:
            if "read-only" not in str(error):
                raise
            raise self._write_error(function_name, "the new tensor") from error

    def __mlx_array__(self) -> Any:
        """Returns the tensor for the operators and functions of MLX, as far as they ask for it."""
        return self.value

    def __jax_array__(self) -> Any:
        """Returns the tensor for the operators and functions of JAX."""
        return self.value

    def _untraced_value(self, what: str) -> Any:
        """Returns the tensor, unless its library is differentiating it, because a reader would lose the gradient.

        Args:
            what: the reader, for the message.

        Raises:
            TracedTensorError: if the tensor is being differentiated, so that its gradient would be lost.
        """
        tensor = self.value
        if not isinstance(tensor, TensorProxy) and is_traced(tensor):
            raise TracedTensorError(outside_function_message(what))
        return tensor

    def _host_array(self, what: str) -> Any:
        """Returns the values as an array of NumPy; raises an error if the tensor is being differentiated."""
        tensor = self._untraced_value(what)
        if isinstance(tensor, TensorProxy):
            raise TracedTensorError(outside_function_message(what), tensor)
        return selection.active().to_numpy(tensor)

    def _write_error(self, what: str, instead: str) -> EmberError:
        return in_place_error(what, instead, repr(self))


def in_place_error(what: str, instead: str, cell: str = "a parameter or buffer") -> EmberError:
    """Returns the error for a write in place, which other holders of the tensor would see.

    Args:
        what: what would write.
        instead: the expression whose value to assign.
        cell: what would be changed.
    """
    return ArgumentTypeError(
        f"{what} would change {cell} in place, where gradients and other holders of the tensor do not expect it: "
        f"assign x.value = {instead}"
    )


def _call_on_tensors(function: Callable[..., Any], name: str, args: Any, kwargs: Any) -> Any:
    """Returns the result of a function of NumPy for the tensors of the cells among its arguments.

    Raises:
        TracedTensorError: if one is being differentiated by its library, of which NumPy knows nothing.
    """
    for cell in _cells_in(args, kwargs):
        op = name.rpartition(".")[2]
        tensor = cell.value
        if not isinstance(tensor, TensorProxy) and is_traced(tensor):
            raise TracedTensorError(
                outside_function_message(name, f"ops.{op}" if op in OPS else "the functions of ops")
            )
    return function(*replace_cells_by(args, _as_numpy_argument), **replace_cells_by(kwargs, _as_numpy_argument))


def replace_cells_by(value: Any, view: Callable[[Any], Any] = lambda x: x) -> Any:
    """Returns arguments in which `view(cell.value)` replaces each cell, at any depth of lists, tuples and dicts."""
    if isinstance(value, TensorMethods):
        return view(value.value)
    cls = value.__class__
    if cls is tuple or cls is list:
        return cls([replace_cells_by(item, view) for item in value])
    return {name: replace_cells_by(item, view) for name, item in value.items()} if cls is dict else value


def _cells_in(*value: Any) -> "Iterable[TensorMethods]":
    """Yields the cells among arguments, at any depth of lists, tuples and dicts."""
    for item in value:
        if isinstance(item, TensorMethods):
            yield item
        elif isinstance(item, (list, tuple)):
            yield from _cells_in(*item)
        elif isinstance(item, Mapping):
            yield from _cells_in(*item.values())


def _holds_cell(value: Any) -> bool:
    return any(True for _ in _cells_in(value))


def _as_numpy_argument(tensor: Any) -> Any:
    """Returns a tensor for a function of NumPy: itself if its library overrides NumPy's functions, else its values."""
    if hasattr(tensor, "setflags"):
        return _read_only(tensor)
    return tensor if getattr(tensor, "__array_function__", None) else selection.active().to_numpy(tensor)


def _read_only(array: Any) -> Any:
    """Returns a view of an array of NumPy that cannot be written to."""
    view = array.view()
    view.setflags(write=False)
    return view
