"""Rules that record ops as the calls of NumPy that they make, which compiled functions repeat.

An op makes the call that dispatch would make. Where its function is one of the backend, a rule may make the calls of
NumPy inside of it, for the arguments that the op usually has, to the same bits; it returns None for others.
These rules repeat what the functions do, because a function that is called as one cannot share its calls with others,
nor write into memory that is free: without them, compiled programs would make each of its arrays anew.
"""

import functools
import operator
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from emberharmony.backend.numpy.arrays.indexing_ops import NumpyIndexingOps
from emberharmony.backend.numpy.arrays.shape_ops import NumpyShapeOps
from emberharmony.backend.numpy.dtypes import promotion
from emberharmony.backend.numpy.folding import FEW
from emberharmony.backend.numpy.images.fft_ops import NumpyFftOps
from emberharmony.backend.numpy.math_ops import NumpyMathOps
from emberharmony.backend.numpy.neural.activation_ops import NumpyActivationOps
from emberharmony.backend.numpy.neural.layers_ops import NumpyLayersOps
from emberharmony.backend.numpy.reductions.reduction_ops import NumpyReductionOps, logsumexp
from emberharmony.backend.numpy.tensor_ops import NumpyTensorOps
from emberharmony.backend.shared.arrays.shape import expanded_shape, fits_linear
from emberharmony.backend.shared.images.fft import axis_and_length, transform_length
from emberharmony.core.dispatch import convert_arguments
from emberharmony.core.op_code.op_source import compiled_source, fast_of, parameter_names, source_arguments
from emberharmony.core.registry import OpSpec
from emberharmony.transforms.program import ProgramCall, Register
from emberharmony.transforms.recorder import PLAIN, Recorder, UnrecordableError, split_arguments
from emberharmony.transforms.traced_tensor import TracedTensor

Emit = Callable[[Callable[..., Any], Any, dict[str, Any]], np.ndarray]
"""Makes a call of a native function, and returns its result."""

REDUCTIONS: dict[np.ufunc, Callable[..., Any]] = {ufunc: ufunc.reduce for ufunc in (np.add, np.maximum, np.minimum)}
"""The methods as single objects, because each access of the attribute makes a new one."""

_RESHAPE, _TRANSPOSE, _SWAPAXES = np.ndarray.reshape, np.ndarray.transpose, np.ndarray.swapaxes
_SQUEEZE, _ASTYPE = np.ndarray.squeeze, np.ndarray.astype
METHODS = (_RESHAPE, _TRANSPOSE, _SWAPAXES, _SQUEEZE, _ASTYPE, operator.getitem)
"""The methods of arrays that rules call."""

_BASIC = (int, slice, type(None), type(...))
"""The classes of keys that choose a view."""


def _emit_reduction(emit: Emit, ufunc: np.ufunc, x: np.ndarray, axis: Any, keepdims: bool) -> np.ndarray | None:
    """Returns the result of NumPy's own reduction for few elements, or along the last axis; else None.

    Along other axes `fold` adds blocks of rows, in another order than NumPy, so the digits differ.
    """
    if x.dtype.char not in "fd" or (x.size > FEW and not _is_along_last(x, axis)):
        return None
    return emit(REDUCTIONS[ufunc], (x, tuple(axis) if axis.__class__ is list else axis, None, None, keepdims), {})


def _is_along_last(x: np.ndarray, axis: Any) -> bool:
    """Returns whether an axis is the last of a contiguous array, along which NumPy adds accurately."""
    if axis is None:
        return x.flags.c_contiguous and x.ndim == 1
    return x.flags.c_contiguous and x.ndim > 0 and axis.__class__ is int and axis in (-1, x.ndim - 1)


def _emit_sum(
    emit: Emit, x: np.ndarray, axis: Any = None, keepdims: bool = False, dtype: Any = None
) -> np.ndarray | None:
    return _emit_reduction(emit, np.add, x, axis, keepdims) if dtype is None else None


def _emit_sum_of_few(
    emit: Emit, x: np.ndarray, axis: Any, dtype: Any = None, out: Any = None, keepdims: bool = False
) -> np.ndarray | None:
    """Emits NumPy's sum in the form of the other rules; a call already in this form is recorded unchanged."""
    return _emit_reduction(emit, np.add, x, axis, keepdims) if out is ... else None


def _emit_mean(emit: Emit, x: np.ndarray, axis: Any = None, keepdims: bool = False) -> np.ndarray | None:
    sum_array = _emit_reduction(emit, np.add, x, axis, keepdims)
    if sum_array is None:
        return None
    return emit(np.divide, (sum_array, x.size // (sum_array.size or 1)), {})


def _extreme_rule(ufunc: np.ufunc) -> Any:
    def emit_extreme(
        emit: Emit, x: np.ndarray, axis: Any = None, keepdims: bool = False, initial: Any = None
    ) -> np.ndarray | None:
        return _emit_reduction(emit, ufunc, x, axis, keepdims) if initial is None else None

    return emit_extreme


def _emit_logsumexp(emit: Emit, x: np.ndarray, axis: Any, keepdims: bool) -> np.ndarray | None:
    if x.size > FEW:
        return None
    maximum = emit(REDUCTIONS[np.maximum], (x, axis, None, None, True, -np.inf), {})
    shift = emit(np.where, (emit(np.isfinite, (maximum,), {}), maximum, 0), {})
    exponentials = emit(np.exp, (emit(np.subtract, (x, shift), {}),), {})
    log_sum = emit(np.log, (emit(REDUCTIONS[np.add], (exponentials, axis, None, None, True), {}),), {})
    log_sum = emit(np.add, (log_sum, shift), {})
    return log_sum if keepdims else emit(_SQUEEZE, (log_sum, axis), {})


def _emit_linear(
    emit: Emit, x: np.ndarray, weight: np.ndarray, bias: np.ndarray | None = None, transposed: bool = False
) -> np.ndarray | None:
    dtype = x.dtype
    is_supported = dtype.char in "fd" and weight.dtype == dtype and (bias is None or bias.dtype == dtype) and x.size > 0
    if not is_supported or x.ndim != 2 or not fits_linear(x, weight, bias, transposed):
        return None
    product = emit(np.matmul, (x, emit(_TRANSPOSE, (weight,), {}) if transposed else weight), {})
    return product if bias is None else emit(np.add, (product, bias), {})


def _emit_softmax(emit: Emit, x: np.ndarray, axis: Any = -1) -> np.ndarray | None:
    maximum = _emit_reduction(emit, np.maximum, x, axis, True) if 0 < x.size <= FEW and x.ndim else None
    if maximum is None:
        return None
    exponentials = emit(np.exp, (emit(np.subtract, (x, maximum), {}),), {})
    return emit(np.divide, (exponentials, _emit_reduction(emit, np.add, exponentials, axis, True)), {})


def _emit_log_softmax(emit: Emit, x: np.ndarray, axis: Any = -1) -> np.ndarray | None:
    maximum = _emit_reduction(emit, np.maximum, x, axis, True) if 0 < x.size <= FEW and x.ndim else None
    if maximum is None:
        return None
    shifted_x = emit(np.subtract, (x, maximum), {})
    exponential_sums = _emit_reduction(emit, np.add, emit(np.exp, (shifted_x,), {}), axis, True)
    return emit(np.subtract, (shifted_x, emit(np.log, (exponential_sums,), {})), {})


def _binary_rule(ufunc: np.ufunc) -> Any:
    def emit_binary(emit: Emit, x1: Any, x2: Any) -> np.ndarray | None:
        """Emits a ufunc for a number as first operand, a call that dispatch would make by its slow path."""
        if x1.__class__ not in (int, float) or x2.__class__ is not np.ndarray or x2.dtype.char not in "fd":
            return None
        return emit(ufunc, (promotion.common(x1, x2)[0], x2), {})

    return emit_binary


def _transform_rule(name: str, dtype_chars: str, halved: bool = False) -> Any:
    def emit_transform(
        emit: Emit,
        x: np.ndarray,
        n: int | None = None,
        axis: int = -1,
        norm: str = "backward",
        *,
        fft_length: Any = None,
    ) -> np.ndarray | None:
        if x.dtype.char not in dtype_chars or not x.size:
            return None
        axis_index, length = axis_and_length(
            x.shape, n if fft_length is None else transform_length(n, fft_length), axis, norm, halved
        )
        return emit(getattr(np.fft, name), (x, length, axis_index, norm), {})

    return emit_transform


def _emit_rsqrt(emit: Emit, x: np.ndarray) -> np.ndarray | None:
    return _binary_rule(np.divide)(emit, 1, emit(np.sqrt, (x,), {})) if x.dtype.char in "fd" else None


def _emit_cast(emit: Emit, x: np.ndarray, dtype: np.dtype) -> np.ndarray | None:
    return None if x.dtype.kind == "c" else emit(_ASTYPE, (x, dtype), {"copy": False})


def _emit_expand_dims(emit: Emit, x: np.ndarray, axis: Any = 0) -> np.ndarray:
    return emit(_RESHAPE, (x, tuple(expanded_shape(x.shape, axis))), {})


def _emit_squeeze(emit: Emit, x: np.ndarray, axis: Any = None) -> np.ndarray | None:
    return emit(_SQUEEZE, (x, tuple(axis) if isinstance(axis, list) else axis), {}) if x.ndim else None


def _emit_get_item(emit: Emit, x: np.ndarray, key: Any) -> np.ndarray | None:
    key_parts = key if key.__class__ is tuple else (key,)
    return emit(operator.getitem, (x, key), {}) if all(key_part.__class__ in _BASIC for key_part in key_parts) else None


def _emit_reshape(emit: Emit, x: np.ndarray, shape: Any, copy: bool | None = None) -> np.ndarray | None:
    return emit(_RESHAPE, (x, shape), {}) if copy is None else None


def _emit_transpose(emit: Emit, x: np.ndarray, axes: Any = None) -> np.ndarray:
    return emit(_TRANSPOSE, (x, axes), {})


def _emit_swapaxes(emit: Emit, x: np.ndarray, axis1: int, axis2: int) -> np.ndarray:
    return emit(_SWAPAXES, (x, axis1, axis2), {})


def _emit_matrix_transpose(emit: Emit, x: np.ndarray) -> np.ndarray | None:
    return _emit_swapaxes(emit, x, -1, -2) if x.ndim > 1 else None


def promotes_alike(function: Any, args: Sequence[Any]) -> bool:
    """Returns whether a function that promotes arrays before it calls a ufunc does what the ufunc alone does."""
    ufunc = getattr(function, "__promoted__", None)
    if not isinstance(ufunc, np.ufunc) or len(args) != ufunc.nin or any(x.__class__ is not np.ndarray for x in args):
        return False
    empty_samples = [np.empty(0, x.dtype) for x in args]
    native_dtype, common_dtype = function(*empty_samples).dtype, promotion.common(*empty_samples)[0].dtype
    *operand_dtypes, result_dtype = ufunc.resolve_dtypes((*(x.dtype for x in args), None))
    return result_dtype == native_dtype and all(dtype == common_dtype for dtype in operand_dtypes)


_ARITHMETIC = (np.add, np.subtract, np.multiply, np.divide, np.maximum, np.minimum)


@functools.cache
def lowering_rules() -> dict[Callable[..., Any], Callable[..., Any]]:
    """Returns the rules by native function; a backend adds its own functions when it is created."""
    return {
        NumpyReductionOps.sum: _emit_sum,
        NumpyReductionOps.sum.__fast__.native: _emit_sum_of_few,  # type: ignore[attr-defined]
        NumpyReductionOps.mean: _emit_mean,
        NumpyReductionOps.max: _extreme_rule(np.maximum),
        NumpyReductionOps.min: _extreme_rule(np.minimum),
        logsumexp: _emit_logsumexp,
        NumpyLayersOps.linear: _emit_linear,
        NumpyShapeOps.reshape: _emit_reshape,
        NumpyShapeOps.transpose: _emit_transpose,
        NumpyShapeOps.swapaxes: _emit_swapaxes,
        NumpyShapeOps.expand_dims: _emit_expand_dims,
        NumpyShapeOps.squeeze: _emit_squeeze,
        NumpyIndexingOps.get_item: _emit_get_item,
        NumpyActivationOps.softmax: _emit_softmax,
        NumpyActivationOps.log_softmax: _emit_log_softmax,
        NumpyFftOps.fft: _transform_rule("fft", "fdFD"),
        NumpyFftOps.ifft: _transform_rule("ifft", "fdFD"),
        NumpyFftOps.rfft: _transform_rule("rfft", "fd"),
        NumpyFftOps.irfft: _transform_rule("irfft", "fdFD", halved=True),
        NumpyMathOps.rsqrt: _emit_rsqrt,
        NumpyTensorOps.cast: _emit_cast,
        NumpyShapeOps.matrix_transpose: _emit_matrix_transpose,
        NumpyShapeOps.matrix_transpose.__fast__.native: _emit_matrix_transpose,  # type: ignore[attr-defined]
        **{getattr(NumpyMathOps, ufunc.__name__): _binary_rule(ufunc) for ufunc in _ARITHMETIC},
    }


class NumpyRecorder(Recorder):
    """The record of the calls of NumPy that a function makes.

    Args:
        backend: the backend.
        inputs: the arrays that the function takes; no other object may refer to them.
        of_ops: whether to note the ops too.

    Attributes:
        ops: the calls of the ops that made these calls, with the same registers, for another library; None unless they
            are noted.
    """

    __slots__ = ("ops",)

    plain = (*PLAIN, np.dtype, np.generic)

    def __init__(self, backend: Any, inputs: Sequence[Any], of_ops: bool = False) -> None:
        super().__init__(backend, inputs)
        self.ops: list[ProgramCall] | None = [] if of_ops else None

    def draw(self, draw: Callable[[], Any]) -> TracedTensor:
        """Draws random numbers and notes the draw; returns the traced tensor of them.

        Raises:
            UnrecordableError: if the draw does not give a tensor.
        """
        tensor = super().draw(draw)
        if self.ops is not None:
            self.ops.append(self.calls[-1])
        return tensor

    def call_op(self, spec: OpSpec, values: Sequence[Any]) -> Any:
        """Runs an op on values, and notes the call of the native function; returns its result.

        Raises:
            UnrecordableError: if the call cannot be repeated.
        """
        function, args, keywords = _native_call(self.backend, spec, values)
        if not self._registers_in(values) <= self._registers_in([*args, *keywords.values()]):
            raise UnrecordableError(f"{spec.name}() converts a tensor")
        if self.ops is None:
            return self.call_native(function, args, keywords)
        start = len(self.values)
        result = self.call_native(function, args, keywords)
        self._note_op(spec, values, result, start)
        return result

    def _note_op(self, spec: OpSpec, values: Sequence[Any], result: Any, start: int) -> None:
        """Records the call of an op, unless its result existed before or is not a tensor.

        Args:
            spec: the op.
            values: its arguments.
            result: its result.
            start: the number of registers before the call.
        """
        has_several_results = isinstance(result, (tuple, list))
        result_registers = tuple(
            [self._places.get(id(item), Register(-1)) for item in (result if has_several_results else [result])]
        )
        if result_registers and min(result_registers) >= start:
            args, keywords = split_arguments(spec, values)
            operands = tuple(map(self._operand, args))
            options = tuple([(name, self._operand(value)) for name, value in keywords.items()])
            self.ops.append(ProgramCall(spec.name, operands, result_registers, options, has_several_results))  # type: ignore[union-attr]

    def call_native(self, function: Callable[..., Any], args: Sequence[Any], keywords: dict[str, Any]) -> Any:
        """Calls a native function on values and notes it, or the calls that a rule makes in its place."""
        rule = lowering_rules().get(getattr(function, "__func__", function))
        result = None if rule is None else rule(self.call_native, *args, **keywords)
        if result is None and not keywords and promotes_alike(function, args):
            return self.call_native(function.__promoted__, args, {})  # type: ignore[attr-defined]
        return self.note_call(function, args, keywords, function(*args, **keywords)) if result is None else result

    def _registers_in(self, values: Sequence[Any]) -> set[int]:
        """Returns the registers of the values in nested lists and tuples."""
        registers = set()
        for value in values:
            if value.__class__ is self.tensor_type and id(value) in self._places:
                registers.add(int(self._places[id(value)]))
            elif value.__class__ is list or value.__class__ is tuple:
                registers |= self._registers_in(value)
        return registers


def _native_call(backend: Any, spec: OpSpec, values: Sequence[Any]) -> tuple[Any, Sequence[Any], dict[str, Any]]:
    """Returns the native function that runs an op on native tensors, and its arguments.

    Raises:
        EmberError: if an argument cannot be converted.
    """
    probe_by_op: dict[str, Callable[..., Any]] = backend.__dict__.setdefault("_probes", {})
    probe = probe_by_op.get(spec.name)
    if probe is None:
        probe = probe_by_op[spec.name] = _call_probe(backend, spec)
    names = parameter_names(spec)
    keyword_count = sum(parameter.keyword_only for parameter in spec.parameters)
    positional_count = len(values) - keyword_count
    native_call = probe(
        *values[:positional_count],
        **{f"p{len(names) - keyword_count + i}": value for i, value in enumerate(values[positional_count:])},
    )
    if native_call is not None:
        native_function, args, keywords = native_call
        value_by_name = {
            names[int(name[1:])] if name[1:].isdigit() else name: value for name, value in keywords.items()
        }
        return native_function, args, value_by_name
    positional_args, keywords = convert_arguments(backend, spec.parameters, tuple(values))
    return backend.implementation(spec), positional_args, keywords


def _call_probe(backend: Any, spec: OpSpec) -> Callable[..., Any]:
    """Returns a function that returns the native call that an op's fast path would make; None for its slow path."""
    native_function, implementation = fast_of(spec, backend).native, backend.implementation(spec)
    scope: dict[str, Any] = {
        "native": lambda *args, **keywords: (native_function, args, keywords),
        "native_whole": lambda *args, **keywords: (implementation, args, keywords),
        "native_type": backend.tensor_type,
        "native_backend": backend,
        "native_dtypes": backend.dtypes,
        "native_float32": backend.dtypes["float32"],
        "native_float64": backend.dtypes.get("float64"),
        "native_tensors": backend.as_tensors,
        "native_wrap": lambda result: result,
        "traced_tensor": None,
        "parameter": None,  # a recorded function gets the tensors of parameters
        **dict.fromkeys(("slow", "rescue", "reraise"), lambda *_: None),
    }
    exec(compiled_source(*source_arguments(spec, backend)), scope)
    probe: Callable[..., Any] = scope["template"]
    return probe
