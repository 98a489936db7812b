"""The checks "dtype", "device", "lazy" and "gradients": unmeant dtypes and devices, growing graphs, lost gradients."""

from collections.abc import Collection
from typing import Any

from emberharmony.core.dtypes import default_float
from emberharmony.core.numeric.promotion import promote
from emberharmony.core.registry import OpSpec
from emberharmony.transforms.checks.findings import Finding, Findings, place_text
from emberharmony.transforms.checks.nonfinite import INEXACT
from emberharmony.transforms.logs.lines import line_text
from emberharmony.transforms.observe import WatchedCall

_INTEGERS = ("signed", "unsigned")
_WIDTHS = {"complex64": 32, "complex128": 64}
_PROMOTED = frozenset(("TensorLike", "Operand", "Tensors"))
"""The roles of arguments whose dtypes are promoted; indices, counts and shapes have none of them."""

_AT_POSITIONS = frozenset(("indexing", "segments"))
"""The categories of ops whose integers are positions of elements."""

_MOVING = frozenset(("to_device", "to_numpy", "convert_to_tensor", "array"))


class Drift:
    """The base class of the checks that look at each call of an op and report it with the user's line.

    Args:
        findings: what gets the findings.
    """

    name = ""

    def __init__(self, findings: Findings) -> None:
        self._findings = findings

    def before(self, call: WatchedCall, line: Any) -> None:
        """Called when an op of the program begins; does nothing unless overridden."""

    def after(self, call: WatchedCall, result: Any, line: Any) -> None:
        """Called when an op of the program has ended; does nothing unless overridden."""

    def _report(self, call: WatchedCall, line: Any, text: str) -> None:
        location = line_text(line)
        call_text = f"{call.op}() on backend {call.backend.name!r}"
        self._findings.add(
            Finding(
                self.name,
                call.op,
                f"{call_text} {text}{place_text(call.path, location)}",
                call.path,
                location,
                call.backend.name,
            )
        )


class DTypes(Drift):
    """Finds results whose dtype is wider than the program meant: float64, float32 of half precision, promoted integers.

    A call that names the dtype means it.
    """

    name = "dtype"

    def after(self, call: WatchedCall, result: Any, line: Any) -> None:
        """Compares the dtype of the result with those of the arguments."""
        backend = call.backend
        if not isinstance(result, backend.tensor_type) or _names_a_dtype(call.spec, call):
            return
        result_dtype = backend.dtype_of(result)
        if result_dtype.kind not in (*INEXACT, *_INTEGERS):
            return
        # The program may not have chosen the dtype of an array that becomes a tensor, so it is not compared.
        is_conversion = call.op in ("convert_to_tensor", "array")
        dtype_by_name = (
            {} if is_conversion else {name: backend.dtype_of(x) for name, x in _named_tensors(call, _PROMOTED)}
        )
        finding_text = _drift_text(result_dtype, dtype_by_name, call.spec.category in _AT_POSITIONS)
        if finding_text:
            self._report(call, line, finding_text)


def _drift_text(result_dtype: Any, argument_dtypes: dict[str, Any], at_positions: bool = False) -> str:
    """Returns how a dtype differs from those of the arguments; "" if it is as meant.

    Args:
        result_dtype: the dtype of the result.
        argument_dtypes: the dtypes of the arguments that are promoted, by name.
        at_positions: whether integers are positions, of which the op makes the ones of a one-hot tensor.
    """
    inexact_dtype_by_name = {name: dtype for name, dtype in argument_dtypes.items() if dtype.kind in INEXACT}
    if result_dtype.kind in _INTEGERS:
        integer_dtype_by_name = {name: dtype for name, dtype in argument_dtypes.items() if dtype.kind in _INTEGERS}
        narrower_names = [
            name for name, dtype in integer_dtype_by_name.items() if dtype.itemsize < result_dtype.itemsize
        ]
        # A result that is wider than all arguments is that of a sum, or holds positions.
        if narrower_names and promote(*integer_dtype_by_name.values()) is result_dtype:
            narrow_dtype = integer_dtype_by_name[narrower_names[0]]
            return (
                f"promoted {narrower_names[0]} of {narrow_dtype.name} to {result_dtype.name}; "
                f"cast one argument (ops.cast)"
            )
        return ""
    if not inexact_dtype_by_name:
        integer_dtype_by_name = {name: dtype for name, dtype in argument_dtypes.items() if dtype.kind in _INTEGERS}
        if integer_dtype_by_name and not at_positions:
            name, dtype = next(iter(integer_dtype_by_name.items()))
            return f"made {result_dtype.name} of integers ({name} is {dtype.name}); cast it before (ops.cast)"
        if _float_bits(result_dtype) == 64 and default_float().name != "float64":
            return f"made a tensor of {result_dtype.name}, while the default is {default_float().name}; name the dtype"
        return ""
    narrower_names = [
        name for name, dtype in inexact_dtype_by_name.items() if _float_bits(dtype) < _float_bits(result_dtype)
    ]
    if not narrower_names:
        return ""
    wide_name = next(
        (name for name, dtype in inexact_dtype_by_name.items() if _float_bits(dtype) == _float_bits(result_dtype)), ""
    )
    cause_text = f", because {wide_name} is {inexact_dtype_by_name[wide_name].name}" if wide_name else ""
    narrow_dtype = inexact_dtype_by_name[narrower_names[0]]
    return (
        f"promoted {narrower_names[0]} of {narrow_dtype.name} to {result_dtype.name}{cause_text}; "
        f"cast one of them (ops.cast)"
    )


def _float_bits(dtype: Any) -> int:
    """Returns the bits of a floating dtype, or of the parts of a complex one."""
    return _WIDTHS.get(dtype.name) or dtype.itemsize * 8


def _names_a_dtype(spec: OpSpec, call: WatchedCall) -> bool:
    """Returns whether a call gives a dtype as an argument."""
    for i, parameter in enumerate(spec.parameters):
        if parameter.role == "DTypeLike" or parameter.name == "dtype":
            dtype_argument = call.kwargs.get(parameter.name, call.args[i] if i < len(call.args) else None)
            if dtype_argument is not None:
                return True
    return spec.name == "view"


def _named_tensors(call: WatchedCall, roles: Collection[str] = ()) -> list[tuple[str, Any]]:
    """Returns the tensors among the arguments of a call, with the names of the parameters.

    Args:
        call: the call.
        roles: the roles of the parameters that count; all if there are none.
    """
    tensor_type, tensors = call.backend.tensor_type, []
    role_by_name = {parameter.name: parameter.role for parameter in call.spec.parameters}
    parameter_names = list(role_by_name)
    arguments = [(parameter_names[min(i, len(parameter_names) - 1)], x) for i, x in enumerate(call.args)] + list(
        call.kwargs.items()
    )
    for name, value in arguments:
        if roles and role_by_name.get(name) not in roles:
            continue
        if isinstance(value, tensor_type):
            tensors.append((name, value))
        elif isinstance(value, (list, tuple)):
            tensors += [(f"{name}[{i}]", item) for i, item in enumerate(value) if isinstance(item, tensor_type)]
    return tensors


class DeviceMixes(Drift):
    """Finds ops whose arguments, or result, are on several devices."""

    name = "device"

    def after(self, call: WatchedCall, result: Any, line: Any) -> None:
        """Compares the devices of the arguments and of the result."""
        backend = call.backend
        if call.op in _MOVING or call.spec.category == "device":
            return
        device_by_name = {name: backend.bound.get_device(x) for name, x in _named_tensors(call)}
        if len(set(device_by_name.values())) > 1:
            devices_text = ", ".join(f"{name} is on {device}" for name, device in device_by_name.items())
            self._report(call, line, f"has arguments on several devices: {devices_text}; move them (ops.to_device)")
        elif device_by_name and isinstance(result, backend.tensor_type):
            device = next(iter(device_by_name.values()))
            result_device = backend.bound.get_device(result)
            if result_device != device:
                self._report(call, line, f"has arguments on {device}, and its result is on {result_device}")


class Graphs(Drift):
    """Finds graphs of a lazy library that grow because nothing evaluates them.

    Args:
        findings: what gets the findings.
        limit: the number of operations.
    """

    name = "lazy"

    def __init__(self, findings: Findings, limit: int) -> None:
        super().__init__(findings)
        self._limit, self._count = limit, 0

    def after(self, call: WatchedCall, result: Any, line: Any) -> None:
        """Counts the ops; only after many of them it asks how large the graph is."""
        if call.op == "eval":
            self._count = 0
        if not isinstance(result, call.backend.tensor_type):
            return
        self._count += 1
        if self._count < self._limit:
            return
        self._count = 0
        waiting_count = call.backend.pending_op_count(result)
        if waiting_count >= self._limit:
            finding_text = (
                f"returned a tensor for which {waiting_count} operations wait; call ops.eval once in each step"
            )
            self._report(call, line, finding_text)


class Gradients(Drift):
    """Finds tensors that the library's own automatic differentiation records, and that are copied out of it."""

    name = "gradients"

    def before(self, call: WatchedCall, line: Any) -> None:
        """Reports a tensor that autograd records if an op copies it to the host, where its gradient is lost."""
        if call.op in ("to_numpy", "host_call"):
            for name, tensor in _named_tensors(call):
                if call.backend.loses_gradient(tensor):
                    finding_text = (
                        f"copies {name}, which autograd records, so its gradient is lost: use the functions of ops, "
                        f"or ops.stop_gradient({name}) for a constant"
                    )
                    self._report(call, line, finding_text)
                    return
