"""The judge of one call: its error against the same op in float64 on NumPy, in units of the tolerance of its row."""

import contextlib
import functools
import importlib.util
import math
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np

from emberharmony.backend.shared.random import HOST
from emberharmony.core import selection
from emberharmony.core.dtypes import as_dtype
from emberharmony.core.registry import EMPTY, OPS, OpSpec
from emberharmony.testing.differences.measures import carried, largest, share, unlike
from emberharmony.testing.differences.records import Array, Host, Record, decoded
from emberharmony.testing.differences.runs import RANDOM, STREAM, portable, streams
from emberharmony.testing.sample import EPSILON, TINY, Sample

MARGIN = 8.0
"""So many times the tolerance of its row may an op be off, because inputs are other than those of the row."""

ORACLE = "the oracle of the op's row"
"""What judges where NumPy's backend and a side disagree, if the row has an oracle that takes the arguments."""

_USUAL = 4.0
"""The tolerance, in eps, of an op without a row or whose row has no oracle."""

_SENSITIVE = 16.0
"""So many times the change that rounding of the inputs causes may an op be off."""

_AS_GIVEN = frozenset(("view", "nextafter", "spacing", "frexp", "ldexp", "to_numpy", "finfo", "from_dlpack"))
"""Ops whose results depend on the dtype of the inputs."""

_BLOCK = 2**16
"""So many elements are compared at once, so that the memory for them is small."""

_UNSPECIFIED = frozenset(("empty", "empty_like", "argpartition", "get_device", "to_device", "memory_info"))
"""Ops whose results may differ between backends."""

_EDGES = frozenset(("isclose", "allclose", "histogram", "matrix_rank", "digitize", "mod", "remainder", "fmod"))
"""Ops without rounding errors of their own, whose results jump where a computed number crosses an edge."""

_ROUNDED = frozenset(("saturate_cast", "cast", "astype"))

_WIDE = {"float16": "float64", "bfloat16": "float64", "float32": "float64", "complex64": "complex128"}


class NotJudgedError(Exception):
    """Raised if a call cannot be made again on NumPy; the message has the reason."""


class Judged(NamedTuple):
    """What the judge says about a call: its error in units of the tolerance, and by what it was judged."""

    error: float
    by: str
    why: str = ""


class Difference(NamedTuple):
    """How two results differ.

    `units` is the largest difference in units of the allowed one, `share` that difference as a share of the largest
    element, and `why` says what differs in kind: a dtype, a shape, the number of results.
    """

    units: float
    share: float
    why: str = ""


@functools.cache
def rows() -> dict[str, Sample]:
    """Returns the sample rows, by op; none if SciPy, which they need, is not installed."""
    if importlib.util.find_spec("scipy") is None:
        return {}
    from emberharmony.testing.samples import all_samples  # here, because it needs SciPy

    return all_samples()


class _Allowed(NamedTuple):
    """The error that is allowed for an op: in eps, below which magnitude it no longer shrinks, and of what."""

    eps: float
    floor: float
    each: bool
    exact: bool


@functools.cache
def _allowed(op: str) -> _Allowed:
    row = rows().get(op)
    if row is None or row.reference:
        whole = op in OPS and OPS[op].category in ("comparison", "sorting", "bitwise")
        return _Allowed(MARGIN * _USUAL, 1.0, False, whole)
    if not row.tolerance:
        return _Allowed(1.0, 0.0, True, op not in _EDGES)
    return _Allowed(MARGIN * row.tolerance, row.floor, _is_elementwise(row), False)


def _is_elementwise(row: Sample) -> bool:
    return row.elementwise or row.op == "gelu"  # its row is not so marked, because it takes complex numbers too


class Judge:
    """Compares calls, and judges them.

    Args:
        tolerance: how many times the tolerance of its row an op may be off.
    """

    def __init__(self, tolerance: float | None = None) -> None:
        self._share = 1.0 if tolerance is None else tolerance / MARGIN
        self.fallbacks: set[str] = set()

    def difference(self, one: Record, other: Record) -> Difference:
        """Returns how the results of the same call on two sides differ."""
        if one.op in _UNSPECIFIED:
            return Difference(0.0, 0.0)
        first, second = one.made(), other.made()
        why = unlike(first, second) or ("" if one.numbers() == other.numbers() else "the numbers returned differ")
        if why:
            return Difference(math.inf, math.inf, why)
        ratio = _length(one)
        allowed = _allowed(one.op)
        worst, most = 0.0, 0.0
        for a, b in zip(first, second, strict=True):
            if np.array_equal(a.bits, b.bits):
                continue
            part = carried(a, b)
            most = max(most, part)
            if allowed.each or a.dtype not in EPSILON or not math.isfinite(part):
                worst = max(worst, self._units(one.op, a, b.wide(), ratio, _reach(one)))
            else:
                worst = max(worst, part / (self._share * allowed.eps * ratio * EPSILON[a.dtype]))
        return Difference(worst, most)

    def judged(self, record: Record, kinds: bool = True) -> Judged:
        """Returns the error of a call in units of the allowed one.

        Args:
            record: the call.
            kinds: whether the dtypes of the result are judged too.

        Raises:
            NotJudgedError: if NumPy cannot make the call.
        """
        if record.op in _UNSPECIFIED:
            raise NotJudgedError("its result is not specified")
        wanted = self.wanted(record)
        made = record.made()
        if record.error:
            return Judged(math.inf, "NumPy in float64", record.error)
        if len(wanted) != len(made):
            return Judged(math.inf, "NumPy in float64", f"{len(made)} results in the place of {len(wanted)}")
        error, why, off = 0.0, "", []
        for place, (got, want) in enumerate(zip(made, wanted, strict=True)):
            if got.shape != want.shape:
                return Judged(math.inf, "NumPy in float64", f"its shape is {got.shape}, expected {want.shape}")
            units = self._units(record.op, got, want, _length(record), _reach(record))
            if not units <= 1:
                off.append(place)
            error = max(error, units)
        unlikely = self._kinds(record) if kinds else ""
        if unlikely:
            return Judged(math.inf, "NumPy", unlikely)
        by = "NumPy in float64"
        if off:
            error = min(error, self._beyond_rounding(record, wanted))
        if not error <= 1:
            oracle = self._by_oracle(record)
            if oracle is None:
                self.fallbacks.add(record.op)
            else:
                return Judged(min(oracle, error) if oracle <= 1 else error, ORACLE)
        return Judged(error, by, why)

    def _units(self, op: str, got: Host, want: Array, length: float, reach: float, spare: Any = 0.0) -> float:
        """Returns the error of a tensor in units of the allowed one.

        Args:
            op: the name of the op.
            got: the tensor.
            want: what it should be.
            length: by how much sums allow larger errors.
            reach: the magnitude of the inputs.
            spare: the error that rounding of the inputs explains.
        """
        allowed = _allowed(op)
        if got.dtype not in EPSILON:
            values = got.values()
            if op in _EDGES and values.shape == want.shape and np.any(spare):
                return 0.0
            return 0.0 if np.array_equal(values, want) else math.inf
        if not got.bits.size:
            return 0.0
        eps, limit = EPSILON[got.dtype], largest(got.dtype)
        tiny = TINY.get(got.dtype, 2.0**-1022)
        scale: Any
        units: Any
        with np.errstate(all="ignore"):
            if np.ndim(spare) == 0:
                finite = self._units_if_finite(allowed, got, want, length, reach, float(spare))
                if math.isfinite(finite):
                    return finite
            values = got.wide()
            off = np.abs(values - want)
            same = (values == want) | (np.isnan(values) & np.isnan(want))
            if same.all():
                return 0.0
            off = np.where(same, 0.0, np.abs(values - want))
            over = (np.abs(want) > limit) & ~np.isfinite(values)  # the result is too large for the dtype on every side
            off = np.where(over & ~np.isnan(values) & ~np.isnan(want), 0.0, off)
            size = np.abs(np.where(np.isfinite(want), want, 0.0))
            most = float(size.max())
            scale = np.maximum(size if allowed.each else most, min(allowed.floor, max(most, reach)))
            bound = self._share * allowed.eps * (1.0 if allowed.each else length) * eps * scale + tiny
            if not allowed.exact:
                bound = bound + _SENSITIVE * np.where(np.isfinite(spare), spare, 0.0)
            units = off / bound
        units = np.where(np.isnan(off) | np.isinf(off), math.inf, units)
        return float(units.max())

    def _units_if_finite(
        self, allowed: _Allowed, got: Host, want: Array, length: float, reach: float, spare: float
    ) -> float:
        """Returns the result of `_units` if all numbers are finite, as in most calls, else NaN; a block at a time."""
        values, flat, eps = got.values().reshape(-1), want.reshape(-1), EPSILON[got.dtype]
        blocks = [slice(i, i + _BLOCK) for i in range(0, flat.size, _BLOCK)]
        most = max(float(np.abs(flat[block]).max()) for block in blocks)
        if not most <= largest(got.dtype):
            return math.nan
        spared = TINY.get(got.dtype, 2.0**-1022) + (0.0 if allowed.exact else _SENSITIVE * spare)
        unit, worst = self._share * allowed.eps * eps, 0.0
        low = min(allowed.floor, max(most, reach))
        for block in blocks:
            off = np.abs(values[block] - flat[block])
            if allowed.each:
                units = float(np.max(off / (unit * np.maximum(np.abs(flat[block]), low) + spared)))
            else:
                units = float(np.max(off)) / (unit * length * max(most, low) + spared)
            if not math.isfinite(units):
                return math.nan
            worst = max(worst, units)
        return worst

    def wanted(self, record: Record, change: float = 0.0) -> list[Array]:
        """Returns the results of the call on NumPy in float64.

        Args:
            record: the call.
            change: by which share of themselves the floating inputs are changed.
        """
        wide = record.op not in _AS_GIVEN and OPS[record.op].category not in RANDOM and record.op != "dropout"
        noise = np.random.default_rng(0)

        def tensor(place: int) -> Any:
            host = record.tensors[place]
            values = host.wide() if wide else host.exact()
            if change and values.dtype.kind in "fc":
                values = values * (1.0 + change * np.where(noise.random(values.shape) < 0.5, -1.0, 1.0))
            return np.asarray(values)

        def dtype(name: str) -> Any:
            return as_dtype(_WIDE.get(name, name) if wide else name)

        return [np.asarray(x) for x in self._made(record, tensor, dtype)]

    def _made(self, record: Record, tensor: Callable[[int], Any], dtype: Callable[[str], Any]) -> list[Any]:
        """Makes the call on NumPy and returns the tensors of the result, and its numbers as arrays."""
        try:
            args, kwargs = decoded(record.args, tensor, dtype), decoded(record.kwargs, tensor, dtype)
            drawing = streams() if record.streams else contextlib.nullcontext()
            with drawing, selection.Override(portable("numpy")), np.errstate(all="ignore"):
                if record.streams:
                    STREAM.get().load_state_dict(record.streams[0])
                    HOST.get().load_state_dict(record.streams[1])
                result = OPS[record.op].function(*_hosted(args, OPS[record.op]), **kwargs)
        except Exception as error:  # an op may raise anything for the arguments of a damaged call
            raise NotJudgedError(f"NumPy raises {type(error).__name__}: {error}"[:200]) from error
        return list(_leaves(result))

    def _kinds(self, record: Record) -> str:
        """Returns what is wrong with the dtypes of the result; "" if nothing is."""
        made = [host.dtype for host in record.made()]
        if all(name in ("bool", "float32", "int64") for name in made) and not record.given():
            return ""
        try:
            want = self._made(record, lambda place: record.tensors[place].exact(), as_dtype)
        except NotJudgedError:
            return ""
        names = [np.asarray(x).dtype.name for x in want]
        if names == made or any(name not in EPSILON and name not in _WHOLE for name in names):
            return ""
        pairs = [(a, b) for a, b in zip(made, names, strict=False) if a != b]
        row = rows().get(record.op)
        if (row is not None and row.narrows) or all({a, b} == {"complex64", "complex128"} for a, b in pairs):
            return ""  # a backend without complex128 may compute in single precision
        return f"its dtype is {pairs[0][0]}, expected {pairs[0][1]}" if pairs else ""

    def _beyond_rounding(self, record: Record, wanted: Sequence[Array]) -> float:
        """Returns the error of a call, where an error that rounding of its inputs explains is allowed."""
        names = [host.dtype for host in (*record.given(), *record.made()) if host.dtype in EPSILON]
        if not names or (_allowed(record.op).exact and record.op not in _EDGES):
            return math.inf
        change = max(EPSILON[name] for name in names) / 2
        try:
            moved = self.wanted(record, change)
        except NotJudgedError:
            return math.inf
        error = 0.0
        for got, want, other in zip(record.made(), wanted, moved, strict=True):
            with np.errstate(all="ignore"):
                spare: Any = np.abs(np.subtract(want, other, dtype=None if want.dtype.kind == "c" else np.float64))
            if not _allowed(record.op).each and spare.size and got.dtype in EPSILON:
                spare = np.nanmax(np.where(np.isfinite(spare), spare, 0.0))
            if got.dtype not in EPSILON and not _allowed(record.op).exact and np.any(spare):
                continue
            error = max(error, self._units(record.op, got, want, _length(record), _reach(record), spare))
        return error

    def by_oracle(self, record: Record) -> Judged | None:
        """Returns the verdict of the oracle alone; None if there is none."""
        error = self._by_oracle(record)
        return None if error is None else Judged(error, ORACLE)

    def condition(self, record: Record) -> float:
        """Returns how much the op enlarges relative errors of its inputs, by one change of them; NaN if unknown."""
        try:
            wanted, moved = self.wanted(record), self.wanted(record, 2.0**-26)
        except NotJudgedError:
            return math.nan
        grown = [share(a, b) / 2.0**-26 for a, b in zip(wanted, moved, strict=True) if a.dtype.kind in "fc"]
        return max(grown, default=math.nan)

    def _by_oracle(self, record: Record) -> float | None:
        """Returns the error against the oracle of the op's row; None if there is none that takes these arguments."""
        row = rows().get(record.op)
        if row is None or row.reference:
            return None
        try:
            args = decoded(record.args, lambda place: record.tensors[place].wide())
            kwargs = decoded(record.kwargs, lambda place: record.tensors[place].wide())
            given, named = _spared(OPS[record.op], args, kwargs)
            with np.errstate(all="ignore"):
                wanted = [np.asarray(x) for x in _leaves(row.oracle(*given, **named))]
            made = record.made()
            if [x.shape for x in wanted] != [host.shape for host in made]:
                return None
            length, reach = _length(record), _reach(record)
            return max(self._units(record.op, g, w, length, reach) for g, w in zip(made, wanted, strict=True))
        except Exception:  # noqa: BLE001  (an oracle may raise anything for arguments that its row does not have)
            return None


_WHOLE = frozenset(("bool", "int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64"))


def _hosted(args: Sequence[Any], spec: OpSpec) -> list[Any]:
    """Returns arguments without devices, which NumPy lacks."""
    names = [p for p in spec.parameters if not p.keyword_only]
    return [
        None if at < len(names) and "Device" in names[at].annotation and isinstance(arg, str) else arg
        for at, arg in enumerate(args)
    ]


def _spared(spec: OpSpec, args: Sequence[Any], kwargs: dict[str, Any]) -> tuple[list[Any], dict[str, Any]]:
    """Returns arguments without those that have their default, because oracles take few options."""
    if any(p.variadic for p in spec.parameters):
        return list(args), kwargs
    named: dict[str, Any] = {}
    given: list[Any] = []
    by_name = {p.name: p for p in spec.parameters}
    skipped = False
    for parameter, value in zip(spec.parameters, args, strict=False):
        if parameter.default is not EMPTY and _is(value, parameter.default):
            skipped = True
        elif skipped:
            named[parameter.name] = value
        else:
            given.append(value)
    named |= {n: v for n, v in kwargs.items() if n not in by_name or not _is(v, by_name[n].default)}
    return given, named


def _is(value: Any, default: Any) -> bool:
    return value is default or (type(value) is type(default) and not isinstance(value, np.ndarray) and value == default)


def _leaves(result: Any) -> Any:
    if isinstance(result, (list, tuple)):
        for item in result:
            yield from _leaves(item)
    elif isinstance(result, (np.ndarray, np.generic)):
        yield result


def _length(record: Record) -> float:
    """Returns by how much longer sums allow larger errors: a quarter of the root of the inputs for each result."""
    given = max((host.bits.size for host in record.given()), default=1)
    made = min((host.bits.size for host in record.made()), default=1)
    return max(1.0, math.sqrt(given / max(made, 1)) / 4)


def _reach(record: Record) -> float:
    """Returns the largest magnitude of a finite number in the floating inputs."""
    row = rows().get(record.op)
    if row is None or not _is_elementwise(row) or not row.floor:
        return 0.0
    sizes = [np.abs(host.values()) for host in record.given() if host.dtype in EPSILON]
    with np.errstate(all="ignore"):
        return max((float(np.max(x[np.isfinite(x)], initial=0.0)) for x in sizes), default=0.0)
