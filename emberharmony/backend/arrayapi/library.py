"""A namespace of the array API standard with what all definitions over it need: casts, promotion, and its functions."""

from collections.abc import Callable, Sequence
from typing import Any, ClassVar, TypeVar

import numpy as np

from emberharmony.backend.host import bfloat16_of_numpy
from emberharmony.backend.promote import Promotion
from emberharmony.backend.shared.device import check_memory, memory_limit
from emberharmony.core.dtypes import NativeDTypes, bfloat16
from emberharmony.core.registry import OPS

F = TypeVar("F", bound=Callable[..., Any])


def as_program(*static: str) -> Callable[[F], F]:
    """Returns a decorator of a method of `Definitions` that computes with tensors alone; see `Library.program`."""

    def decorate(definition: F) -> F:
        definition.static = static  # type: ignore[attr-defined]
        return definition

    return decorate


def requires_function(function: str) -> Callable[[F], F]:
    """Returns a decorator of a definition that calls the function of another op; see `Definitions`."""

    def decorate(definition: F) -> F:
        definition.needs = function  # type: ignore[attr-defined]
        return definition

    return decorate


class Library:
    """A namespace, and the conversions that its functions need before they do what the ops' docstrings say.

    Args:
        name: of the backend.
        xp: the namespace.
        dtypes: its dtypes.
        promotion: the promotion rules of the backend; by default those that hold for any namespace.
    """

    takes_all: ClassVar[bool] = False
    """Whether functions are NumPy's: they have its names, and take each dtype that the ops take.

    Those of the standard take the dtypes that it names.
    """
    floating: ClassVar[str] = "{0}.dtype == native_float32"
    """The condition under which dispatch may call a function that is defined for floats."""

    def __init__(self, name: str, xp: Any, dtypes: NativeDTypes, promotion: Promotion | None = None) -> None:
        self.name, self.xp, self.dtypes = name, xp, dtypes
        self.title = getattr(xp, "__name__", name)
        self.linalg: Any = getattr(xp, "linalg", None)
        self.fft: Any = getattr(xp, "fft", None)
        self._functions: dict[str, Any] = {}
        self.promotion = promotion or Promotion(
            dtypes,
            self.cast,
            lambda number, dtype: self.xp.asarray(number, dtype=dtype),
            same="{0}.dtype == {1}.dtype",
            weak="",
            inexact="{0}.dtype == native_float32",
            weak_inexact="",
        )

    def program(self, function: F, *static: str) -> F:
        """Returns a function of tensors unchanged; the subclass of a library that compiles returns it compiled.

        Args:
            function: the function.
            static: the names of its arguments that are no tensors.
        """
        return function

    def function(self, op: str) -> Any:
        """Returns the function of the namespace that computes an op; None if it has none.

        Where the standard has another name than NumPy, it is an alias of the op, and comes first: what the name of the
        op stands for in an extended namespace may be something else, such as `torch.transpose`.
        """
        if op not in self._functions:
            function_names = (op, *OPS[op].aliases) if self.takes_all else (*OPS[op].aliases, op)
            self._functions[op] = next(
                (native_function for name in function_names if (native_function := getattr(self.xp, name, None))), None
            )
        return self._functions[op]

    def kind(self, x: Any) -> str:
        """Returns the kind of a tensor's dtype: "bool", "signed", "unsigned", "float" or "complex"."""
        return self.promotion.kinds[x.dtype]

    def astype(self, x: Any, dtype: Any) -> Any:
        """Returns a tensor in a dtype, cast by the library's own function or method."""
        if x.dtype == dtype:
            return x
        astype_function = getattr(self.xp, "astype", None)
        return x.astype(dtype) if astype_function is None else astype_function(x, dtype)

    def cast(self, x: Any, dtype: Any) -> Any:
        """Returns a tensor in a dtype; a complex one gives its real part, except to bool, which tests for non-zero."""
        if self.kind(x) == "complex":
            target_kind = self.promotion.kinds[dtype]
            if target_kind == "bool":
                return self.xp.not_equal(x, self.xp.zeros_like(x))
            if target_kind != "complex":
                x = self.xp.real(x)
        return self.astype(x, dtype)

    def number(self, value: Any, like: Any) -> Any:
        """Returns a number as a tensor without axes, of the dtype of another tensor."""
        return self.xp.asarray(value, dtype=like.dtype)

    def from_host(self, array: np.ndarray) -> Any:
        """Returns a host array as a tensor; bfloat16, which NumPy itself does not have, goes through float32.

        Raises:
            DTypeError: if the library does not have the dtype.
        """
        dtype = self.dtypes[array.dtype.name]
        if any(stride < 0 for stride in array.strides):  # which some libraries refuse
            array = array.copy()
        if self.dtypes.neutral[dtype] is not bfloat16:
            return self.xp.asarray(array, dtype=dtype)
        # Shift the bits instead of casting, because a cast may lose the sign of NaN.
        x_float32 = (array.view(np.uint16).astype(np.uint32) << 16).view(np.float32)
        return self.astype(self.xp.asarray(x_float32, dtype=self.dtypes["float32"]), dtype)

    def to_host(self, x: Any) -> np.ndarray:
        """Returns a tensor as a host array."""
        if self.dtypes.neutral[x.dtype] is not bfloat16:
            return np.asarray(x)
        return np.asarray(self.astype(x, self.dtypes["float32"])).astype(bfloat16_of_numpy())

    def check_memory(self, shape: Sequence[int], dtype: Any) -> None:
        """Checks that a tensor is not larger than the memory.

        Raises:
            OutOfMemoryError: if it is.
        """
        check_memory(shape, max(self.bits(dtype) // 8, 1), memory_limit)

    def bits(self, dtype: Any) -> int:
        """Returns the number of bits of an element of a dtype."""
        return int(self.dtypes.neutral[dtype].bits)

    def is_half(self, x: Any) -> bool:
        """Returns whether a tensor is floating and has 16 bits."""
        return self.kind(x) == "float" and self.bits(x.dtype) == 16

    def widen(self, x: Any) -> Any:
        """Returns half precision as float32; other tensors unchanged."""
        return self.astype(x, self.dtypes["float32"]) if self.is_half(x) else x

    def widen_for_sum(self, x: Any, count: int) -> Any:
        """Returns a tensor in a dtype wide enough for an accurate sum of `count` elements."""
        return self.widen(x)

    def widen_for_product(self, x: Any) -> Any:
        """Returns a tensor in a dtype wide enough for an accurate product of its elements."""
        return self.widen_fully(x)

    def widen_fully(self, x: Any) -> Any:
        """Returns a floating or complex tensor in the widest dtype of its kind; other tensors unchanged."""
        dtype_kind = self.kind(x)
        dtype_names = {"float": ("float64", "float32"), "complex": ("complex128", "complex64")}.get(dtype_kind, ())
        wide_dtype_name = next((name for name in dtype_names if name in self.dtypes.natives), None)
        return x if wide_dtype_name is None else self.astype(x, self.dtypes[wide_dtype_name])


class Definitions:
    """Definitions of ops over a namespace: the methods with the names of ops.

    Args:
        library: the namespace.
    """

    def __init__(self, library: Library) -> None:
        self._library, self._xp = library, library.xp
        for name, method in vars(type(self)).items():
            if hasattr(method, "static"):
                setattr(self, name, library.program(getattr(self, name), *method.static))

    def bound_definitions(self) -> dict[str, Callable[..., Any]]:
        """Returns the definitions of the ops that the namespace has functions for."""
        method_by_op = {op: method for op, method in vars(type(self)).items() if op in OPS}
        return {
            op: getattr(self, op)
            for op, method in method_by_op.items()
            if self.has_function(getattr(method, "needs", op))
        }

    def has_function(self, op: str) -> bool:
        """Returns whether the namespace has the function of an op."""
        return self._library.function(op) is not None
