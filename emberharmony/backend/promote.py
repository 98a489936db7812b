"""Type promotion of a backend's ops: native ops run as they are where they follow the one promotion table already.

All other calls bring their operands to a common dtype first (`Promotion.common`). Each backend makes one `Promotion`
from its dtypes and two functions; an op is then bound in one line:

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
"""For each class of Python numbers, the kinds of tensors whose dtype such a number does not change."""


class _Table(dict[Any, Any]):
    """A table from two native dtypes to the one that they promote to.

    The keys are native dtypes, since they hash faster than neutral ones and `torch.compile` can trace them.
    """

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
    """A table from native dtypes to their kind ("bool", "signed", "unsigned", "float" or "complex")."""

    def __init__(self, dtypes: NativeDTypes) -> None:
        super().__init__({known: neutral.kind for neutral, known in dtypes.natives.items() if known is not None})
        self._dtypes = dtypes

    def __missing__(self, native: Any) -> str:
        self[native] = self._dtypes.neutral[native].kind
        return self[native]


SAME = "{0}.dtype is {1}.dtype"
"""The condition `same` of a library that has one object for each dtype."""


def _has_dtype(operand: Any) -> bool:
    # The class comes first, because torch.compile knows only that of a number that changes between calls.
    return type(operand) not in _ABSORBS and hasattr(operand, "dtype")


class Promotion:
    """The promotion rules of one backend: finds the common dtype of operands, and casts operands to it.

    Five arguments are conditions: expressions that dispatch inlines, in which `{0}` and `{1}` stand for the
    operands (see `core.dispatch.fast`). While a condition holds, the native op follows the promotion table by itself.

    Args:
        dtypes: the backend's dtypes.
        cast: `cast(tensor, native_dtype)`.
        scalar: `scalar(number, native_dtype)`, a 0-d tensor.
        same: the condition for native binary ops of two tensors.
        weak: the condition for native binary ops of a tensor and a Python number `{1}`.
        inexact: the condition for native float functions of one tensor `{0}`.
        weak_inexact: the condition for native float functions of a tensor and a Python number `{1}`.
        element: the condition for native functions of one floating number `{0}` that is an element of a tensor.
        plain_same: the name of a published type that a tensor has only if `same` holds for it and any other one.
        plain_inexact: the name of a published type that a tensor has only if `inexact` holds for it.
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
        element: str = "",
        plain_same: str = "",
        plain_inexact: str = "",
    ) -> None:
        self.dtypes, self.cast, self.scalar = dtypes, cast, scalar
        self.same, self.weak, self.inexact, self.weak_inexact = same, weak, inexact, weak_inexact
        self.element, self.plain_same, self.plain_inexact = element, plain_same, plain_inexact
        self.table, self.kinds = _Table(dtypes), Kinds(dtypes)

    def native_result(self, *operands: Any) -> Any:
        """Returns the native dtype to which tensors and weak Python numbers promote.

        Raises:
            DTypeError: if the backend does not have that dtype.
        """
        strong = [x.dtype for x in operands if _has_dtype(x)]
        if len(strong) > 2:
            # Ignore integers if any operand is floating, as `core.numeric.promotion` does, so that the order of the
            # operands does not matter.
            strong = [own for own in strong if self.kinds[own] in ("float", "complex")] or strong
        dtype = None
        for own in strong:
            dtype = own if dtype is None else self._promoted(dtype, own)
        for x in operands:
            if not _has_dtype(x):
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
        """Returns the neutral dtype to which tensors and weak Python numbers promote."""
        return self.dtypes.neutral[self.native_result(*operands)]

    def dtype_of(self, operand: Any) -> DType:
        """Returns the neutral dtype of a tensor, or the default dtype of a Python number."""
        return self.result(operand)

    def to(self, operand: Any, dtype: DType) -> Any:
        """Returns a tensor or Python number as a tensor of a neutral dtype.

        Raises:
            RangeError: if a Python integer does not fit the dtype.
        """
        return self._to(operand, self.dtypes[dtype])

    def _to(self, operand: Any, native: Any) -> Any:
        if _has_dtype(operand):
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
        """Returns a fill value, a number or tensor, as a tensor of a native dtype; None keeps the value's own dtype.

        An integer dtype drops the fraction of a Python float.

        Raises:
            DTypeError: if a Python number is complex and the dtype is real.
            RangeError: if a Python number does not fit the dtype.
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
        """Returns all operands as tensors of their common dtype; if `inexact`, the default float replaces integers."""
        native = self.native_result(*operands)
        # Look up the kind first, even if `inexact` is False: it raises for an array of strings or objects.
        if self.kinds[native] not in ("float", "complex") and inexact:
            native = self.dtypes[default_float()]
        return [self._to(operand, native) for operand in operands]

    def floats(self, x: Any) -> Any:
        """Returns `x` if it is floating or complex, else cast to the default float, as float functions take it."""
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
        """Returns a binary op that calls `native` with two tensors of one dtype.

        Args:
            native: the native function.
            inexact: whether integers are cast to the default float.
            weak: whether the native function takes a Python number as its second operand.
            kinds: the kinds of dtypes for which the op raises a `DTypeError`.
            guard: a further condition on `{0}` that must hold if dispatch is to call the native function directly.
            fast_native: the function that dispatch calls directly, if it is not `native`.
            direct: whether dispatch may call the native function directly at all.
        """
        further = " and ".join([*([guard] if guard else []), *([f"({self.inexact})"] if inexact else [])])
        when = _both(self.same, further)
        number = (self.weak_inexact if inexact else self.weak) if weak else ""
        if guard and number:
            number = f"({number}) and {guard}"
        sure = not guard and (not inexact or self.plain_inexact == self.plain_same)

        def promoted(x1: Any, x2: Any) -> Any:
            a, b = self.common(x1, x2, inexact=inexact)
            if kinds:
                self.refuse(a, kinds)
            return native(a, b)

        plain = self.plain_same if sure else ""
        return fast(fast_native or native, when, number, plain=plain)(promoted) if direct else promoted

    def unary(self, native: Native) -> Native:
        """Returns a float function that calls `native`; integers and booleans are cast to the default float first."""

        @fast(native, self.inexact, self.element, plain=self.plain_inexact)
        def floating(x: Any) -> Any:
            return native(self.floats(x))

        return floating

    def refuse(self, x: Any, kinds: tuple[str, ...]) -> None:
        """Checks that the dtype of `x` is of none of these kinds ("bool", "signed", "complex", …).

        Raises:
            DTypeError: if it is.
        """
        dtype = self.dtypes.neutral[x.dtype]
        if dtype.kind in kinds:
            raise DTypeError(f"the op is not defined for dtype {dtype.name}; cast the tensor first (ops.cast)")


def _both(same: str, further: str) -> str:
    """Returns the condition that two tensors have the same dtype and that a further condition holds.

    If the further one begins with the dtype of the first tensor, it takes it from a local: reading it from the tensor
    again costs 280 instructions (NumPy).
    """
    if not further:
        return same
    if same == SAME and further.lstrip("(").startswith("{0}.dtype"):
        return f"(dtype := {{0}}.dtype) is {{1}}.dtype and {further.replace('{0}.dtype', 'dtype')}"
    return f"{same} and {further}"


def single(axis: Any, ndim: int) -> int:
    """Returns one axis as a number from 0 to ndim - 1.

    Raises:
        ArgumentError: if several axes are given.
        AxisError: if the axis is out of range.
    """
    axes = normalized(axis, ndim)
    if len(axes) != 1:
        raise ArgumentError(f"expected one axis, got {axis}")
    return axes[0]


def along(x: Any, axis: int | None, least: int = 0) -> tuple[Any, int]:
    """Returns a tensor and the axis to work along; without an axis, the flattened tensor and 0.

    Args:
        x: the tensor.
        axis: its axis.
        least: how many axes a tensor counts as having at least. With 1 a 0-d tensor has the axis 0.
    """
    return (x.reshape(-1), 0) if axis is None else (x, single(axis, max(x.ndim, least)))


def remaining(shape: Any, axes: tuple[int, ...], keepdims: bool) -> tuple[int, ...]:
    """Returns the shape of the result of a reduction."""
    return tuple([1 if a in axes else n for a, n in enumerate(shape) if keepdims or a not in axes])


def nonempty(shape: Any, axis: Any) -> None:
    """Checks that a reduction without an identity has elements to reduce.

    Raises:
        ShapeError: if one of the axes has length 0.
    """
    if any(shape[a] == 0 for a in normalized(axis, len(shape))):
        raise ShapeError(f"shape {tuple(shape)} has no elements along axis {axis} to reduce")
