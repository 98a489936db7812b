"""Tells apart the ways by which each op computes what its sample row declares.

`python -m tests.backend.fast_paths.counts` writes `counts.json` beside it: by backend and op one number for each call
of the row, with `3*5` for five numbers of 3 after each other. A number is 1 for the calls that call the fewest
functions, higher by 1 for each function more, and 0 for a call that raises. So a call that goes another way than before
is seen, also where both ways give the same result; what all calls of a row do more or less than before is not.
"""

import json
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from importlib.metadata import version
from itertools import groupby
from pathlib import Path
from statistics import mode
from typing import Any, NamedTuple

import numpy as np

from emberharmony import ops
from emberharmony.backend.discovery import is_installed
from emberharmony.backend.shared.random_streams import start_streams
from emberharmony.core import op_globals, selection
from emberharmony.core.errors import EmberError, UnsupportedOpError
from emberharmony.core.registry import OPS
from emberharmony.core.tracing import TELLERS
from emberharmony.testing.call import Call
from emberharmony.testing.checks import CHECKS, error_calls
from emberharmony.testing.gradient_rows import gradient_calls
from emberharmony.testing.inputs import Strided, non_contiguous_tensor
from emberharmony.testing.rows import call_of, dtypes_of, tensor_roles
from emberharmony.testing.sample import Case, Sample
from emberharmony.testing.samples import all_samples
from emberharmony.testing.verify import result_parts, verify
from tests.another import another
from tests.backend.fast_paths.comparing import calls

RECORD = Path(__file__).with_suffix(".json")
BACKENDS = ("numpy", "torch", "mlx")
PYTHON = "3.11"
"""The version of Python that the record is of: later ones enter no frames for comprehensions."""

MANY = (4097, 2**15 + 1)
"""Numbers of elements beyond those at which ops change to another way."""


class Given(NamedTuple):
    """A call that is counted.

    Attributes:
        label: what distinguishes it from the other calls of its row.
        call: the call of which it is a form.
        args: its arguments: native tensors in most forms.
        is_judged: whether no check of `emberharmony.testing.checks` compares its result with the oracle's.
    """

    label: str
    call: Call
    args: tuple[Any, ...]
    is_judged: bool

    def make(self, op: str) -> Any:
        """Makes the call on the active backend."""
        return OPS[op].function(*self.args, **self.call.kwargs, **self.call.options)

    def failure(self, op: str, sample: Sample) -> str:
        """Returns how the result differs from the oracle's; an empty string if it does not, or nothing says so."""
        if sample.reference or self.call.raises is not None:
            return ""
        try:
            result = detach(self.make(op))
            wanted = [*result_parts(self.call.oracle_result(sample))]
            verify(result, wanted, self.call.result, self.call.tolerance, sample.floor)
        except UnsupportedOpError:
            return ""
        except (AssertionError, EmberError) as error:
            return f"{op} {self.label}: {type(error).__name__}: {error}"
        return ""


def transpose_memory(array: Any) -> Any:
    """Returns a host array as a native tensor whose last axis is not the one whose elements follow each other."""
    return ops.transpose(ops.convert_to_tensor(np.array(np.transpose(array), order="C")))


def reverse(array: Any) -> Any:
    """Returns a host array as a native tensor that is a view of one in the opposite order, where there are such."""
    return ops.flip(ops.convert_to_tensor(np.flip(array).copy()))


def require_matching_gradient(array: Any) -> Any:
    """Returns a host array as a native tensor of which a gradient is required, where there are such."""
    x = ops.convert_to_tensor(array)
    return x.requires_grad_() if array.dtype.kind in "fc" and hasattr(x, "requires_grad_") else x


FORMS: dict[str, Callable[[Any], Any]] = {
    "transposed": transpose_memory,
    "reversed": reverse,
    "strided": non_contiguous_tensor,
    "with gradient": require_matching_gradient,
    "on the host": lambda array: array,
    "of Python": lambda array: array.tolist(),
}


def calls_to_count(sample: Sample) -> Iterator[Given]:
    """Yields the calls that are counted: those of the checks with native tensors, and some in other forms and sizes."""
    roles = tensor_roles(sample)
    for check in CHECKS:
        for call in check(sample) if check not in (gradient_calls, error_calls) else ():
            args = place_tensors(ops.convert_to_tensor, call.args, roles)
            yield Given(f"{call.check} {call.dtype} {call.label}", call, args, is_judged=False)
    for dtype in dtypes_of(sample)[:2]:
        for number, item in enumerate(sample.cases):
            call = call_of(sample, "", dtype, "", item)
            for form, function in FORMS.items():
                is_judged = form != "of Python"  # whose dtype is the default one
                yield Given(f"case {number} {dtype} {form}", call, place_tensors(function, call.args, roles), is_judged)
        for count in MANY if sample.elementwise and sample.cases else ():
            args = tuple(np.resize(x, count) if isinstance(x, np.ndarray) else x for x in sample.cases[0].args)
            call = call_of(sample, "", dtype, "", Case(args, sample.cases[0].kwargs))
            yield Given(
                f"{count} {dtype}", call, place_tensors(ops.convert_to_tensor, call.args, roles), is_judged=True
            )


def place_tensors(form: Callable[[Any], Any], args: Sequence[Any], roles: dict[int, str]) -> tuple[Any, ...]:
    return tuple(_place_arrays(form, value) if position in roles else value for position, value in enumerate(args))


def _place_arrays(form: Callable[[Any], Any], value: Any) -> Any:
    if isinstance(value, (list, tuple)):
        return type(value)(_place_arrays(form, item) for item in value)
    if isinstance(value, Strided):
        return non_contiguous_tensor(value.array)
    return form(value) if isinstance(value, np.ndarray) else value


@contextmanager
def looked_up(backend: str) -> Iterator[None]:
    """Makes a backend the active one by an override, as an earlier test may have left one that is alive.

    While one is, ops find the backend in another way. Of the backends that tests have loaded before only the active one
    is asked whether it differentiates a value.
    """
    before, tellers = op_globals.override, dict[Any, Any]()
    try:
        op_globals.publish(override=selection._OVERRIDE.get)
        with ops.use_backend(another(backend)), ops.use_backend(backend):  # type: ignore[arg-type]
            x = ops.zeros(())
            type(selection.active().backend.without_watchers).import_categories()  # the first call of each takes more
            tellers |= TELLERS
            for kind in tellers:
                if not isinstance(x, kind):
                    del TELLERS[kind]
            yield
    finally:
        TELLERS.update(tellers)
        op_globals.publish(override=before)


def count(op: str, item: Given) -> int:
    """Returns the number of calls that a call takes; 0 if it raises."""
    start_streams(0)  # how often some distributions draw depends on the numbers
    try:
        return calls(item.make, op)
    except EmberError:
        return 0


def detach(value: Any) -> Any:
    """Returns tensors, also in lists and tuples, without what records their gradients."""
    if isinstance(value, (list, tuple)):
        return [detach(item) for item in value]
    return value.detach() if hasattr(value, "detach") else value


def extra(numbers: Sequence[int]) -> list[int]:
    """Returns how many calls more than the fewest each number is, plus 1; 0 remains 0."""
    fewest = min(filter(None, numbers), default=0)
    return [number and number - fewest + 1 for number in numbers]


def indices_of_other_ways(recorded: Sequence[int], numbers: Sequence[int]) -> list[int]:
    """Returns the places of those numbers of calls that differ from the others by more or less than is recorded.

    Args:
        recorded: what `extra` has returned for some calls of an op.
        numbers: how many calls they take.
    """
    steps = [number - more for number, more in zip(numbers, recorded, strict=True) if number and more]
    usual = mode(steps) if steps else 0
    pairs = enumerate(zip(recorded, numbers, strict=True))
    return [place for place, (more, number) in pairs if number != (more and more + usual)]


def encode(numbers: Sequence[int]) -> str:
    """Returns numbers as a text, in which `3*5` stands for five numbers of 3."""
    groups = [(number, len([*group])) for number, group in groupby(numbers)]
    return " ".join(str(number) if count == 1 else f"{number}*{count}" for number, count in groups)


def decode(text: str) -> list[int]:
    """Returns the numbers of a text that `encode` has made."""
    parts = [word.partition("*") for word in text.split()]
    return [int(number) for number, _, count in parts for _ in range(int(count or 1))]


def main() -> None:
    """Counts all ops on all backends and writes the record."""
    if sys.version_info[:2] != tuple(map(int, PYTHON.split("."))):
        sys.exit(f"the record is of Python {PYTHON}")
    record: dict[str, Any] = {"program": "python -m tests.backend.fast_paths.counts"}
    record |= {"versions": {name: version(name).partition("+")[0] for name in BACKENDS}}
    for backend in filter(is_installed, BACKENDS):
        ops.set_backend(backend)  # type: ignore[arg-type]
        with np.errstate(all="ignore"), looked_up(backend):
            samples = sorted(all_samples().items())
            rows = {op: [count(op, item) for item in calls_to_count(sample)] for op, sample in samples}
        record[backend] = {op: encode(extra(numbers)) for op, numbers in rows.items()}
    RECORD.write_text(json.dumps(record, indent=1) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
