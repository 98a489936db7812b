"""How a backend's ops reach the one promotion table: bare where the native op obeys it already, else through `common`.

Each backend makes one `Promotion` from its dtypes and two functions; the ops are then bound in a line:

    add = staticmethod(promotion.binary(np.add))
    sin = staticmethod(promotion.unary(np.sin))
"""

from collections.abc import Callable
from typing import Any

from emberharmony.core.axes import normalized as normalized
from emberharmony.core.dispatch import fast
from emberharmony.core.dtypes import DType, NativeDTypes, default_float, python_dtype
from emberharmony.core.errors import ArgumentError, DTypeError, ShapeError
from emberharmony.core.numeric.promotion import TABLE, check_fits, promote_weak

Native = Callable[..., Any]
_ABSORBS: dict[type, tuple[str, ...]] = {
    bool: ("bool", "signed", "unsigned", "float", "complex"),
    int: ("signed", "unsigned", "float", "complex"),
    float: ("float", "complex"),
    complex: ("complex",),
}
"""The kinds of tensor that a Python number of each class leaves as they are."""


class _Table(dict[Any, Any]):
    """Maps two native dtypes to the one they promote to; native ones hash faster and are traced by torch.compile."""

    def __init__(self, dtypes: NativeDTypes) -> None:
        native = {neutral: known for neutral, known in dtypes.natives.items() if known is not None}
        pairs = ((a, b, TABLE[a, b]) for a in native for b in native)
        super().__init__({(native[a], native[b]): native[both] for a, b, both in pairs if both in native})
        self._dtypes = dtypes

    def __missing__(self, pair: tuple[Any, Any]) -> Any:
        a, b = self._dtypes.neutral[pair[0]], self._dtypes.neutral[pair[1]]
        both = TABLE[a, b]
        if both not in self._dtypes.natives:
            raise DTypeError(
                f"{a.name} and {b.name} promote to {both.name}, which backend {self._dtypes.backend!r} does not have; "
                f"cast one of them (ops.cast)"
            )
        self[pair] = self._dtypes[both]
        return self[pair]


class Kinds(dict[Any, str]):
    """Maps native dtypes to their kind."""

    def __init__(self, dtypes: NativeDTypes) -> None:
        super().__init__({known: neutral.kind for neutral, known in dtypes.natives.items() if known is not None})
        self._dtypes = dtypes

    def __missing__(self, native: Any) -> str:
        self[native] = self._dtypes.neutral[native].kind
        return self[native]


class Promotion:
    """Brings operands to the dtype they have in common.

    Conditions are expressions that dispatch inlines, with `{0}` and `{1}` for the operands (see `core.dispatch.fast`).

    Args:
        dtypes: the backend's dtypes.
        cast: `cast(tensor, native_dtype)`.
        scalar: `scalar(number, native_dtype)`, a 0-d tensor.
        same: when the native binary ops, given two tensors, obey the table by themselves.
        weak: when they do with a Python number as `{1}`.
        inexact: when the native float functions do, given the tensor `{0}`.
        weak_inexact: when the native float functions of two operands do with a Python number as `{1}`.
    """

    def __init__(
        self,
        dtypes: NativeDTypes,
        cast: Native,
        scalar: Native,
        *,
        same: str,
        weak: str,
        inexact: str,
        weak_inexact: str,
    ) -> None:
        self.dtypes, self.cast, self.scalar = dtypes, cast, scalar
        self.same, self.weak, self.inexact, self.weak_inexact = same, weak, inexact, weak_inexact
        self.table, self.kinds = _Table(dtypes), Kinds(dtypes)

    def native_result(self, *operands: Any) -> Any:
        """Returns the native dtype that tensors and weak Python numbers have in common."""
        strong = [x.dtype for x in operands if hasattr(x, "dtype")]
        if len(strong) > 2:
            # As `core.promotion.promote` does, so that the order does not matter.
            strong = [own for own in strong if self.kinds[own] in ("float", "complex")] or strong
        dtype = None
        for own in strong:
            dtype = own if dtype is None else self._promoted(dtype, own)
        for x in operands:
            if not hasattr(x, "dtype"):
                dtype = self.dtypes[python_dtype(type(x))] if dtype is None else self._weak(dtype, type(x))
        return dtype

    def _promoted(self, a: Any, b: Any) -> Any:
        if a == b:
            return a
        return self.table[a, b]

    def _weak(self, dtype: Any, number: type) -> Any:
        kind = self.kinds[dtype]
        if kind in _ABSORBS[number]:
            return dtype
        return self.dtypes[promote_weak(self.dtypes.neutral[dtype], number)]

    def result(self, *operands: Any) -> DType:
        """Returns the neutral dtype that tensors and weak Python numbers have in common."""
        return self.dtypes.neutral[self.native_result(*operands)]

    def dtype_of(self, operand: Any) -> DType:
        """Returns the neutral dtype of a tensor, or the one a Python number takes when alone."""
        return self.result(operand)

    def to(self, operand: Any, dtype: DType) -> Any:
        """Returns a tensor or Python number as a tensor of that neutral dtype.

        Raises: RangeError for a Python integer that does not fit.
        """
        return self._to(operand, self.dtypes[dtype])

    def _to(self, operand: Any, native: Any) -> Any:
        if hasattr(operand, "dtype"):
            return operand if operand.dtype == native else self.cast(operand, native)
        if type(operand) is int:
            kind = self.kinds[native]
            if kind in ("signed", "unsigned"):
                check_fits(operand, self.dtypes.neutral[native])
            elif kind != "bool":
                # The libraries cannot convert integers beyond 64 bits to float, so do it here.
                operand = float(operand)
        return self.scalar(operand, native)

    def filling(self, value: Any, native: Any) -> Any:
        """Returns a number or tensor as a tensor of a native dtype, or of its own; integer dtypes drop fractions.

        Raises: RangeError for a Python number that does not fit; DTypeError for a complex one in a real dtype.
        """
        if native is None:
            return self._to(value, self.native_result(value))
        kind, number = self.kinds[native], type(value)
        if kind == "bool" and number in _ABSORBS:
            return self._to(bool(value), native)
        if number is complex and kind != "complex":
            raise DTypeError(f"the complex number {value} does not fit {self.dtypes.neutral[native].name}")
        whole = number is float and kind in ("signed", "unsigned")
        return self._to(int(value) if whole else value, native)

    def common(self, *operands: Any, inexact: bool = False) -> list[Any]:
        """Returns all operands as tensors of the dtype they have in common (the default float instead of integers)."""
        native = self.native_result(*operands)
        # Asked of every dtype, so that an array of strings or objects is refused.
        if self.kinds[native] not in ("float", "complex") and inexact:
            native = self.dtypes[default_float()]
        return [self._to(operand, native) for operand in operands]

    def floats(self, x: Any) -> Any:
        """Returns `x` itself if floating or complex, else cast to the default float: the rule of float functions."""
        return x if self.kinds[x.dtype] in ("float", "complex") else self.to(x, default_float())

    def binary(
        self,
        native: Native,
        *,
        inexact: bool = False,
        weak: bool = True,
        kinds: tuple[str, ...] = (),
        guard: str = "",
        fast_native: Native | None = None,
        direct: bool = True,
    ) -> Native:
        """Returns a binary op over `native`, which is called with two tensors of one dtype.

        Args:
            inexact: integers take the default float.
            weak: the native op takes a Python number as its second operand.
            kinds: dtype kinds that are refused with a `DTypeError`.
            guard: a further condition on `{0}` under which dispatch may call the native op directly.
            fast_native: what dispatch calls then, if not `native`.
            direct: whether dispatch may ever call the native op directly.
        """
        when = f"{self.same} and ({self.inexact})" if inexact else self.same
        number = (self.weak_inexact if inexact else self.weak) if weak else ""
        if guard:
            when, number = f"{when} and {guard}", f"({number}) and {guard}" if number else ""

        def promoted(x1: Any, x2: Any) -> Any:
            a, b = self.common(x1, x2, inexact=inexact)
            if kinds:
                self.refuse(a, kinds)
            return native(a, b)

        return fast(fast_native or native, when, number)(promoted) if direct else promoted

    def unary(self, native: Native) -> Native:
        """Returns a float function over `native`: integers and booleans are cast to the default float first."""

        @fast(native, self.inexact)
        def floating(x: Any) -> Any:
            return native(self.floats(x))

        return floating

    def refuse(self, x: Any, kinds: tuple[str, ...]) -> None:
        """Raises a `DTypeError` if the dtype of `x` is of one of these kinds ("bool", "signed", "complex", …)."""
        dtype = self.dtypes.neutral[x.dtype]
        if dtype.kind in kinds:
            raise DTypeError(f"dtype {dtype.name} has no such op; cast the tensor first (ops.cast)")


def single(axis: Any, ndim: int) -> int:
    """Returns one axis as a number from 0 to ndim - 1.

    Raises: AxisError for one out of range; ArgumentError for several.
    """
    axes = normalized(axis, ndim)
    if len(axes) != 1:
        raise ArgumentError(f"this takes one axis, not {axis}")
    return axes[0]


def nonempty(shape: Any, axis: Any) -> None:
    """Checks that a reduction without an identity has elements.

    Raises: ShapeError.
    """
    if any(shape[a] == 0 for a in normalized(axis, len(shape))):
        raise ShapeError(f"shape {tuple(shape)} has no elements along axis {axis} to reduce")
