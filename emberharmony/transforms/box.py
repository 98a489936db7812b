"""The tensor a tape traces: it has its value's shape and dtype, answers operators with ops, and refuses the rest."""

from collections.abc import Callable
from typing import Any, NoReturn

from emberharmony.core.errors import TracedTensorError
from emberharmony.core.registry import OPS
from emberharmony.core.tracing import Traced

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
"""The ufuncs that NumPy calls for an operator with an array at the left."""


def _operator(op: str) -> Callable[[Any, Any], Any]:
    return lambda self, other: self.run(self.tape.backend, op, (self, other))


def _reflected(op: str) -> Callable[[Any, Any], Any]:
    return lambda self, other: self.run(self.tape.backend, op, (other, self))


class Box(Traced):
    """Stands for `value` while a tape records; `source` is the node that made it, or of several results one of them."""

    __slots__ = ("source", "tape", "value")

    def __init__(self, value: Any, tape: Any, source: Any) -> None:
        self.value, self.tape, self.source = value, tape, source

    def run(self, backend: Any, op: str, arguments: tuple[Any, ...]) -> Any:
        """Runs an op on the tape of the innermost traced argument."""
        return self.tape.run(backend, op, arguments)

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
        return self.value.size  # type: ignore[no-any-return]

    @property
    def T(self) -> Any:
        """The tensor with its axes reversed."""
        return OPS["transpose"].function(self)

    def __len__(self) -> int:
        return len(self.value)

    def __getitem__(self, key: Any) -> Any:
        return OPS["get_item"].function(self, key)

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
        return bool(self.value)

    def __array_ufunc__(self, ufunc: Any, method: str, *inputs: Any, **options: Any) -> Any:
        op = _UFUNCS.get(ufunc.__name__)
        if options.get("out") is not None:
            raise TracedTensorError(
                f"numpy.{ufunc.__name__} would write a traced tensor into an array (out= or an operator such as +=), "
                f"and its gradient would be lost: write x = x + y, not x += y"
            )
        if op is None or method != "__call__" or options:
            self._refuse(f"numpy.{ufunc.__name__}" + ("" if method == "__call__" else f".{method}"))
        return self.run(self.tape.backend, op, inputs)

    def __array_function__(self, function: Any, types: Any, args: Any, kwargs: Any) -> NoReturn:
        self._refuse(f"{function.__module__}.{function.__name__}")

    def __array__(self, dtype: Any = None, copy: Any = None) -> NoReturn:
        raise TracedTensorError(_message("a function of NumPy or another library"), self)

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
            "a traced tensor cannot be changed in place, for what was computed from it would be differentiated "
            "wrongly: use ops.slice_update, ops.scatter_update or ops.where, which return a new tensor"
        )

    def __getattr__(self, name: str) -> NoReturn:
        if name.startswith("__"):
            raise AttributeError(name)
        hint = f"use ops.{name}(x, ...)" if name in OPS else "use the functions of ops"
        raise AttributeError(
            f"a traced tensor has no attribute {name!r}, as native tensors differ in theirs: {hint}, "
            f"or ops.stop_gradient(x) for the plain tensor"
        )

    def _refuse(self, what: str) -> NoReturn:
        raise TracedTensorError(_message(what), self)


def _message(what: str) -> str:
    name = what.rpartition(".")[2]
    instead = f"ops.{name}" if name in OPS else "the functions of ops"
    return (
        f"{what} was applied to a tensor that is being differentiated, and its gradient would be lost: use {instead}, "
        f"or ops.stop_gradient(x) where no gradient is wanted"
    )
