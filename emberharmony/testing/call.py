"""A call of an op that a conformance check makes, with the result or the error that it must have."""

from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from emberharmony import ops
from emberharmony.core.errors import EmberError, UnsupportedOpError
from emberharmony.core.registry import OPS
from emberharmony.testing.inputs import as_argument, host_data
from emberharmony.testing.repr_source import source, spell_op
from emberharmony.testing.sample import Sample, as_reference
from emberharmony.testing.verify import DisagreementError, result_parts, verify

_VALUE = """\
got = {call}
expected = {expected}
print("got     ", got)
print("expected", expected)
verify(got, expected, dtype={dtype!r}, tolerance={tolerance!r}, floor={floor!r})
"""
_ERROR = """\
try:
    got = {call}
    ops.eval(got)  # a library that computes later may raise the error only now
except errors.{error} as error:
    print("as expected:", error)
else:
    raise AssertionError(f"returns {{got}}, expected {error}")
"""


@dataclass(frozen=True)
class Call:
    """A call of an op, which must agree with the oracle of the op's sample row, or raise an error of class `raises`.

    Args:
        check: the name of the check that makes the call.
        dtype: the dtype of the inputs.
        label: a text that distinguishes the call from the others of its check.
        result: the name of the dtype that the result must have; "" for any.
        tolerance: the tolerance of the row, in eps.
        raises: the error that the call must raise; None if it must return.
        case: the number of the row's case that the call is made from.
        options: further keyword arguments, which the oracle does not take.
        may_refuse: errors that are also correct, besides the oracle's result.
        read_as: the dtype that `options` asks for; the oracle gets the tensors in this dtype.
        numbers_as: the type to which Python integers are converted for the oracle.
    """

    check: str
    dtype: str
    label: str
    args: tuple[Any, ...]
    kwargs: dict[str, Any] = field(default_factory=dict)
    result: str | tuple[str, ...] = ""
    tolerance: float = 0.0
    raises: type[EmberError] | None = None
    case: int = 0
    options: dict[str, Any] = field(default_factory=dict)
    may_refuse: tuple[type[EmberError], ...] = ()
    read_as: str = ""
    numbers_as: type = int

    def make(self, sample: Sample) -> Any:
        """Makes the call on the active backend and returns the op's result."""
        native_kwargs = {name: as_argument(value) for name, value in self.kwargs.items()}
        return OPS[sample.op].function(*as_argument(self.args), **native_kwargs, **self.options)

    def oracle_result(self, sample: Sample) -> Any:
        """Returns the expected result: what the oracle of the sample row returns for the call's arguments."""
        with np.errstate(all="ignore"):
            expected_result = sample.oracle(
                *(self._reference(sample, value) for value in self.args),
                **{name: self._reference(sample, value) for name, value in self.kwargs.items()},
            )
            if self.read_as and np.asarray(expected_result).dtype.kind in "iu":
                return np.asarray(expected_result).astype(
                    self.read_as
                )  # the op sums in this dtype, where integers wrap
            return expected_result

    def _reference(self, sample: Sample, value: Any) -> Any:
        if self.read_as and isinstance(value, np.ndarray):
            value = value.astype(self.read_as)
        if type(value) is int:
            return self.numbers_as(value)
        reference = as_reference(host_data(value), sample.result)
        is_boolean_as_float = self.dtype == "bool" and sample.result == "float" and isinstance(reference, np.ndarray)
        return reference.astype(np.float64) if is_boolean_as_float else reference

    def judge(self, sample: Sample) -> float:
        """Makes the call and returns the error of its result in units of the row's tolerance.

        Raises:
            DisagreementError: if the result or the error is not as expected. It is an AssertionError.
            Exception: whatever the op or the oracle raises.
        """
        if self.raises is not None:
            return self._check_refusal(sample, self.raises)
        try:
            result = self.make(sample)
        except self.may_refuse:
            return 0.0
        if sample.reference:
            return 0.0
        return verify(result, list(result_parts(self.oracle_result(sample))), self.result, self.tolerance, sample.floor)

    def _check_refusal(self, sample: Sample, error_class: type[EmberError]) -> float:
        try:
            result = self.make(sample)
            ops.eval(result)  # reading the result makes a lazy library raise its error
        except UnsupportedOpError:
            raise
        except EmberError as error:
            if isinstance(error, error_class):
                return 0.0
            raise DisagreementError(
                f"raises {type(error).__name__}, expected {error_class.__name__}: {error}"
            ) from error
        raise DisagreementError(f"returns {result!r:.200}, expected {error_class.__name__}")

    def half_calls(self) -> Iterator["Call"]:
        """Yields the calls with the first and with the second half of the elements of all arrays.

        There are none if the arrays differ in their shapes, or have one element.
        """
        arrays = [value for value in (*self.args, *self.kwargs.values()) if isinstance(value, np.ndarray)]
        array_size = arrays[0].size if arrays else 0
        if array_size < 2 or any(array.shape != arrays[0].shape for array in arrays):
            return
        for half_slice in (slice(array_size // 2), slice(array_size // 2, None)):
            args = tuple(_part_of_value(value, half_slice) for value in self.args)
            yield replace(
                self, args=args, kwargs={name: _part_of_value(value, half_slice) for name, value in self.kwargs.items()}
            )

    def program_source(self, sample: Sample) -> str:
        """Returns the Python source of a program that makes the call and compares its result with the expected one."""
        call_text = f"{spell_op(sample.op)}({self.arguments_source(sample)})"
        if self.raises is not None:
            return _ERROR.format(call=call_text, error=self.raises.__name__)
        try:
            expected_source = "" if sample.reference else source(self.oracle_result(sample))
        except Exception as error:  # noqa: BLE001  (the oracle may raise anything; the program says what failed)
            expected_source, call_text = "", f"{call_text}  # the oracle raises {error!r}"
        if not expected_source:
            return f"got = {call_text}\nprint(got)\n"
        return _VALUE.format(
            call=call_text,
            expected=expected_source,
            dtype=self.result,
            tolerance=self.tolerance,
            floor=sample.floor,
        )

    def arguments_source(self, sample: Sample) -> str:
        """Returns the Python source of the call's arguments."""
        case_source = f"all_samples()[{sample.op!r}].cases[{self.case}]"
        argument_texts = [_source_or_place(value, f"{case_source}.args[{i}]") for i, value in enumerate(self.args)]
        argument_texts += [
            f"{name}={_source_or_place(value, f'{case_source}.kwargs[{name!r}]')}"
            for name, value in self.kwargs.items()
        ]
        argument_texts += [f"{name}={source(value)}" for name, value in self.options.items()]
        return ", ".join(argument_texts)


def _part_of_value(value: Any, part: slice) -> Any:
    return value.reshape(-1)[part] if isinstance(value, np.ndarray) else value


def _source_or_place(value: Any, place: str) -> str:
    try:
        return source(value)
    except TypeError:
        return place  # a function has no source expression, so the program takes it from the sample row
