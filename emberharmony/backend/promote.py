"""Type promotion of a backend's ops: native ops run as they are where they follow the one promotion table already.

All other calls bring their operands to a common dtype first (`Promotion.common`). Each backend makes one `Promotion`
from its dtypes and two functions. What an op takes and gives is said by its declaration; the backend says in one line
which function of its library computes it:

    add = direct(np.add)
    power = direct(np.power, _power, guard="{0}.dtype.kind in 'fc'")
    gcd = staticmethod(np.gcd)
"""

from collections.abc import Callable, Mapping
from typing import Any

from emberharmony.core.axes import nonnegative_axes as nonnegative_axes
from emberharmony.core.dispatch import fast
from emberharmony.core.dtypes import DType, NativeDTypes, default_float, python_dtype
from emberharmony.core.errors import ArgumentError, DTypeError, ShapeError
from emberharmony.core.numeric.promotion import TABLE, check_fits, promote_weak
from emberharmony.core.registry import Facts

Native = Callable[..., Any]
_ABSORBS: dict[type, tuple[str, ...]] = {
    bool: ("bool", "signed", "unsigned", "float", "complex"),
    int: ("signed", "unsigned", "float", "complex"),
    float: ("float", "complex"),
    complex: ("complex",),
}
"""For each class of Python numbers, the kinds of tensors whose dtype such a number does not change."""


class _Table(dict[Any, Any]):
    """A dict from pairs of native dtypes to the native dtype that they promote to.

    The keys are native dtypes, since they hash faster than neutral ones and `torch.compile` can trace them.
    """

    def __init__(self, dtypes: NativeDTypes) -> None:
        native_by_dtype = {
            neutral_dtype: native_dtype
            for neutral_dtype, native_dtype in dtypes.natives.items()
            if native_dtype is not None
        }
        dtype_triples = ((a, b, TABLE[a, b]) for a in native_by_dtype for b in native_by_dtype)
        super().__init__(
            {
                (native_by_dtype[a], native_by_dtype[b]): native_by_dtype[common_dtype]
                for a, b, common_dtype in dtype_triples
                if common_dtype in native_by_dtype
            }
        )
        self._dtypes = dtypes

    def __missing__(self, pair: tuple[Any, Any]) -> Any:
        a, b = self._dtypes.neutral[pair[0]], self._dtypes.neutral[pair[1]]
        common_dtype = TABLE[a, b]
        if common_dtype not in self._dtypes.natives:
            raise DTypeError(
                f"{a.name} and {b.name} promote to {common_dtype.name}, which backend {self._dtypes.backend!r} does "
                "not have; cast one of them (ops.cast)"
            )
        self[pair] = self._dtypes[common_dtype]
        return self[pair]


class Kinds(dict[Any, str]):
    """A table from native dtypes to their kind ("bool", "signed", "unsigned", "float" or "complex")."""

    def __init__(self, dtypes: NativeDTypes) -> None:
        super().__init__(
            {
                native_dtype: neutral_dtype.kind
                for neutral_dtype, native_dtype in dtypes.natives.items()
                if native_dtype is not None
            }
        )
        self._dtypes = dtypes

    def __missing__(self, native: Any) -> str:
        self[native] = self._dtypes.neutral[native].kind
        return self[native]


SAME = "{0}.dtype is {1}.dtype"
"""The condition `same` of a library that has one object for each dtype."""


FLOAT = "{0}.dtype is native_float32 or {0}.dtype is native_float64"
"""The condition of such a library that a tensor is in single or double precision."""


def _has_dtype(operand: Any) -> bool:
    # The class comes first, because torch.compile knows only that of a number that changes between calls.
    return type(operand) not in _ABSORBS and hasattr(operand, "dtype")


class Direct:
    """A backend's definition of an op whose declaration says which dtypes it takes; see `direct`."""

    __slots__ = ("full", "guard", "native", "plain", "weak", "when")

    def __init__(
        self, native: Native, full: Native | None, guard: str | None, weak: bool | str, when: str | None, plain: str
    ) -> None:
        self.native, self.full, self.guard, self.weak, self.when, self.plain = native, full, guard, weak, when, plain

    def __call__(self, *tensors: Any) -> Any:
        """Calls the native function on tensors of one dtype."""
        return (self.full or self.native)(*tensors)


def direct(
    native: Native,
    full: Native | None = None,
    *,
    guard: str | None = None,
    weak: bool | str = True,
    when: str | None = None,
    plain: str = "",
) -> Any:
    """Returns an op's definition by a native function that dispatch may call directly for operands of one dtype.

    It may call it for tensors of one dtype for which the function follows the declaration of the op. All other operands
    are brought to one dtype first, which is checked.

    Args:
        native: the function of the library.
        full: the function of tensors of one dtype for all other calls, if `native` is not right for them; by default
            `native` itself.
        guard: a further condition on `{0}` for a call of `native`; by default what the backend says of the library,
            see `Promotion`.
        weak: whether `native` may take a Python number as its second operand, or the condition for it.
        when: the whole condition; by default the one that follows from the declaration.
        plain: the name of a published type for which the whole condition need not be tested.
    """
    return Direct(native, full, guard, weak, when, plain)


class Promotion:
    """The promotion rules of one backend: finds the common dtype of operands, and casts operands to it.

    Some arguments are conditions: expressions that dispatch inlines, in which `{0}` and `{1}` stand for the
    operands (see `core.dispatch.fast`). While a condition holds, the native op follows the promotion table by itself.

    Args:
        dtypes: the backend's dtypes.
        cast: the function `cast(tensor, native_dtype)` of the library, which returns the tensor in that dtype.
        scalar: the function `scalar(number, native_dtype)`, which returns a tensor without axes.
        same: the condition for native binary ops of two tensors.
        weak: the condition for native binary ops of a tensor and a Python number `{1}`.
        inexact: the condition for native float functions of one tensor `{0}`.
        weak_inexact: the condition for native float functions of a tensor and a Python number `{1}`.
        element: the condition for native functions of one floating number `{0}` that is an element of a tensor.
        plain_same: the name of a published type that a tensor has only if `same` holds for it and any other one.
        plain_inexact: the name of a published type that a tensor has only if `inexact` holds for it.
        guards: for a word of what ops of two operands take, a further condition on `{0}`, where the library would
            compute with dtypes that the op refuses; by default none.
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
        guards: Mapping[str, str] | None = None,
    ) -> None:
        self.dtypes, self.cast, self.scalar = dtypes, cast, scalar
        self.same, self.weak, self.inexact, self.weak_inexact = same, weak, inexact, weak_inexact
        self.element, self.plain_same, self.plain_inexact = element, plain_same, plain_inexact
        self.guards = guards or {}
        self.table, self.kinds = _Table(dtypes), Kinds(dtypes)

    def native_result_dtype(self, *operands: Any) -> Any:
        """Returns the native dtype to which tensors and weak Python numbers promote.

        Args:
            operands: native tensors, and Python numbers, which are weak: they do not widen a tensor of their kind.

        Raises:
            DTypeError: if the backend does not have that dtype.
        """
        strong_dtypes = [x.dtype for x in operands if _has_dtype(x)]
        if len(strong_dtypes) > 2:
            # Ignore integers if any operand is floating, as `core.numeric.promotion` does, so that the order of the
            # operands does not matter.
            strong_dtypes = [
                strong_dtype for strong_dtype in strong_dtypes if self.kinds[strong_dtype] in ("float", "complex")
            ] or strong_dtypes
        dtype = None
        for strong_dtype in strong_dtypes:
            dtype = strong_dtype if dtype is None else self._promote(dtype, strong_dtype)
        for x in operands:
            if not _has_dtype(x):
                dtype = self.dtypes[python_dtype(type(x))] if dtype is None else self._promote_weak(dtype, type(x))
        return dtype

    def _promote(self, a: Any, b: Any) -> Any:
        if a == b:
            return a
        return self.table[a, b]

    def _promote_weak(self, dtype: Any, number_class: type) -> Any:
        dtype_kind = self.kinds[dtype]
        if dtype_kind in _ABSORBS[number_class]:
            return dtype
        return self.dtypes[promote_weak(self.dtypes.neutral[dtype], number_class)]

    def result_dtype(self, *operands: Any) -> DType:
        """Returns the neutral dtype to which tensors and weak Python numbers promote.

        Args:
            operands: native tensors and weak Python numbers, as in `native_result`.
        """
        return self.dtypes.neutral[self.native_result_dtype(*operands)]

    def dtype_of(self, operand: Any) -> DType:
        """Returns the neutral dtype of a tensor, or the default dtype of a Python number.

        Args:
            operand: a native tensor or a Python number.
        """
        return self.result_dtype(operand)

    def cast_to(self, operand: Any, dtype: DType) -> Any:
        """Returns a tensor or Python number as a tensor of a neutral dtype.

        Args:
            operand: a native tensor of any shape, or a Python number, which becomes one without axes.
            dtype: the dtype of the result; a tensor that has it already is returned as it is.

        Raises:
            RangeError: if a Python integer does not fit the dtype.
        """
        return self._cast_operand(operand, self.dtypes[dtype])

    def _cast_operand(self, operand: Any, native: Any) -> Any:
        if _has_dtype(operand):
            return operand if operand.dtype == native else self.cast(operand, native)
        if type(operand) is int:
            dtype_kind = self.kinds[native]
            if dtype_kind in ("signed", "unsigned"):
                check_fits(operand, self.dtypes.neutral[native])
            else:
                # The libraries cannot convert integers beyond 64 bits to float, so do it here.
                operand = float(operand)
        return self.scalar(operand, native)

    def fill_tensor(self, value: Any, native: Any) -> Any:
        """Returns a fill value, a number or tensor, as a tensor of a native dtype; None keeps the value's own dtype.

        An integer dtype drops the fraction of a Python float.

        Args:
            value: a Python number, or a native tensor of any shape.
            native: the dtype of the result as the library has it, or None.

        Raises:
            DTypeError: if a Python number is complex and the dtype is real.
            RangeError: if a Python number does not fit the dtype.
        """
        if native is None:
            return self._cast_operand(value, self.native_result_dtype(value))
        kind, number_class = self.kinds[native], type(value)
        if kind == "bool" and number_class in _ABSORBS:
            return self._cast_operand(bool(value), native)
        if number_class is complex and kind != "complex":
            raise DTypeError(f"the complex number {value} does not fit {self.dtypes.neutral[native].name}")
        is_truncated = number_class is float and kind in ("signed", "unsigned")
        return self._cast_operand(int(value) if is_truncated else value, native)

    def common(self, *operands: Any, inexact: bool = False) -> list[Any]:
        """Returns all operands as tensors of their common dtype; if `inexact`, the default float replaces integers.

        Args:
            operands: native tensors and weak Python numbers, as in `native_result`.
            inexact: whether the result is floating or complex also for integers and booleans.
        """
        native_dtype = self.native_result_dtype(*operands)
        # Look up the kind first, even if `inexact` is False: it raises for an array of strings or objects.
        if self.kinds[native_dtype] not in ("float", "complex") and inexact:
            native_dtype = self.dtypes[default_float()]
        return [self._cast_operand(operand, native_dtype) for operand in operands]

    def floats(self, x: Any) -> Any:
        """Returns `x` if it is floating or complex, else cast to the default float, as float functions take it.

        Args:
            x: a native tensor of any shape and dtype.
        """
        return x if self.kinds[x.dtype] in ("float", "complex") else self.cast_to(x, default_float())

    def complete_op(self, own: Native, facts: Facts, count: int) -> Native:
        """Returns an op that casts its operands to their common dtype, checks it, and calls the backend's function.

        Args:
            own: what the backend defines: `direct(...)`, or a function of tensors of one dtype.
            facts: what the declaration says.
            count: how many operands the op has.
        """
        if not isinstance(own, Direct):
            is_unchanged = count == 1 and not facts.refuses and facts.gives != "float"
            return own if is_unchanged or hasattr(own, "__promoted__") else self._promoting_op(own, facts, count)
        condition, weak_condition, plain_condition = (
            self._unary_conditions(own, facts) if count == 1 else self._binary_conditions(own, facts)
        )
        full_op = own.full or self.for_all_dtypes(own.native, facts, count)
        return fast(own.native, condition, weak_condition, plain=plain_condition)(
            self._promoting_op(full_op, facts, count)
        )

    def for_all_dtypes(self, native: Native, facts: Facts, count: int) -> Native:
        """Returns a native function extended to all dtypes of the op; some libraries lack kernels for some dtypes.

        Args:
            native: the function of the library.
            facts: what the declaration of the op says of it.
            count: how many operands it has, 1 or 2.
        """
        return native

    def _promoting_op(self, function: Native, facts: Facts, count: int) -> Native:
        refused_kinds, is_inexact = facts.refuses, facts.gives == "float"

        def call_unary(x: Any) -> Any:
            if refused_kinds:
                self.refuse(x, refused_kinds)
            return function(self.floats(x) if is_inexact else x)

        def call_on_several(*operands: Any) -> Any:
            tensors = self.common(*operands, inexact=is_inexact)
            if refused_kinds:
                self.refuse(tensors[0], refused_kinds)
            return function(*tensors)

        promoting: Any = call_unary if count == 1 else call_on_several
        promoting.__promoted__ = function
        promoting_op: Native = promoting
        return promoting_op

    def _unary_conditions(self, definition: Direct, facts: Facts) -> tuple[str, str, str]:
        """Returns the conditions, as source, under which dispatch calls a native function of one operand directly."""
        if definition.when is None and facts.gives == "float":
            return self.inexact, self.element, self.plain_inexact
        return definition.when or "", definition.weak if isinstance(definition.weak, str) else "", definition.plain

    def _binary_conditions(self, definition: Direct, facts: Facts) -> tuple[str, str, str]:
        """Returns the conditions, as source, under which dispatch calls a native function of two operands directly."""
        is_inexact = facts.gives == "float"
        guard = definition.guard
        if guard is None:
            guard = "" if is_inexact else self.guards.get(facts.takes, "")
        joined_conditions = " and ".join(
            condition for condition in (guard, f"({self.inexact})" if is_inexact else "") if condition
        )
        condition, weak_condition = (
            _condition_of_both(self.same, joined_conditions),
            self.weak_inexact if is_inexact else self.weak,
        )
        is_unguarded = not guard and (not is_inexact or self.plain_inexact == self.plain_same)
        if definition.when is not None:
            return definition.when, definition.weak if isinstance(definition.weak, str) else "", definition.plain
        if isinstance(definition.weak, str):
            return condition, definition.weak, definition.plain
        weak_condition = f"({weak_condition}) and {guard}" if guard and weak_condition else weak_condition
        return condition, weak_condition if definition.weak else "", self.plain_same if is_unguarded else ""

    def refuse(self, x: Any, kinds: tuple[str, ...]) -> None:
        """Checks that the dtype of `x` is of none of these kinds ("bool", "signed", "complex", …).

        Args:
            x: a native tensor of any shape.
            kinds: the kinds of dtypes that raise the error.

        Raises:
            DTypeError: if it is.
        """
        dtype = self.dtypes.neutral[x.dtype]
        if dtype.kind in kinds:
            raise DTypeError(f"the op is not defined for dtype {dtype.name}; cast the tensor first (ops.cast)")


def _condition_of_both(same_dtype: str, conditions: str) -> str:
    """Returns the source of a condition: that two tensors have the same dtype, and a further condition.

    If the further one begins with the dtype of the first tensor, it takes it from a local: reading it from the tensor
    again costs 280 instructions (NumPy).
    """
    if not conditions:
        return same_dtype
    if same_dtype == SAME and conditions.lstrip("(").startswith("{0}.dtype"):
        return f"(dtype := {{0}}.dtype) is {{1}}.dtype and {conditions.replace('{0}.dtype', 'dtype')}"
    return f"{same_dtype} and {conditions}"


def nonnegative_axis(axis: Any, ndim: int) -> int:
    """Returns an axis, which may be negative, as a number from 0 to ndim - 1.

    Raises:
        ArgumentError: if several axes are given.
        AxisError: if the axis is out of range.
    """
    axes = nonnegative_axes(axis, ndim)
    if len(axes) != 1:
        raise ArgumentError(f"expected one axis, got {axis}")
    return axes[0]


def tensor_and_axis(x: Any, axis: int | None, least: int = 0) -> tuple[Any, int]:
    """Returns a tensor and its axis, counted from 0; if the axis is None, the flattened tensor and 0.

    Args:
        x: the tensor.
        axis: its axis.
        least: how many axes a tensor counts as having at least. With 1 a 0-d tensor has the axis 0.
    """
    return (x.reshape(-1), 0) if axis is None else (x, nonnegative_axis(axis, max(x.ndim, least)))


def shape_after_reduction(shape: Any, axes: tuple[int, ...], keepdims: bool) -> tuple[int, ...]:
    """Returns the shape of the result of a reduction."""
    return tuple([1 if a in axes else n for a, n in enumerate(shape) if keepdims or a not in axes])


def require_nonempty(shape: Any, axis: Any) -> None:
    """Checks that an axis has elements, for a reduction that has no result for none, such as a maximum.

    Raises:
        ShapeError: if one of the axes has length 0.
    """
    if any(shape[a] == 0 for a in nonnegative_axes(axis, len(shape))):
        raise ShapeError(f"shape {tuple(shape)} has no elements along axis {axis} to reduce")
