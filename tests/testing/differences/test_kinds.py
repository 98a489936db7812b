"""`compare`: faults of each kind are named, with op and side, and right programs raise no alarm."""

import itertools
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from emberharmony import compare, ops
from emberharmony.backend.discovery import is_installed
from emberharmony.testing.sample import EPSILON
from emberharmony.testing.samples import all_samples
from tests.sampling import portion
from tests.testing.differences.faults import faulty
from tests.testing.differences.kinds import DIFFERENTIATED, KINDS, LONG, RIGHT, SPD, X, times

SIDES = [name for name in ("numpy", "torch", "mlx") if is_installed(name)]
PAIRS = [*itertools.permutations(SIDES, 2)]
TURNS = portion(range(len(PAIRS)), max(1, len(PAIRS)))
"""With which pairs of backends each fault is tried: with one of six, the next fault with the next pair."""

pytestmark = pytest.mark.skipif(len(SIDES) < 2, reason="a comparison needs two backends")


@pytest.mark.parametrize("turn", TURNS)
def test_faults_are_named(turn: int) -> None:
    missed = []
    for at, (name, kind) in enumerate(KINDS.items()):
        bad, good = PAIRS[(at + turn) % len(PAIRS)]
        sides = [faulty(bad, kind.op, kind.change), good]
        report = compare(kind.program, *kind.inputs, backends=sides[:: 1 if at % 2 else -1], gradients=kind.gradients)
        first = report.first
        if first is None or (first.op, first.wrong) != (kind.op, bad):
            missed.append(f"{name} on {bad}, compared with {good}: {report.summary()}")
        elif kind.gradients is not bool(first.gradient_of):
            missed.append(f"{name} on {bad}: the gradient is of {first.gradient_of!r}")
    assert not missed, "\n".join(missed)


MARGINS: dict[str, Callable[..., Any]] = {
    "tanh": ops.tanh,
    "exp": ops.exp,
    "sigmoid": ops.sigmoid,
    "sin": ops.sin,
    "sqrt": ops.sqrt,
    "log1p": ops.log1p,
    "erf": ops.erf,
    "sum": lambda x: ops.sum(x, axis=1),
    "mean": lambda x: ops.mean(x, axis=0),
    "matmul": lambda x: ops.matmul(x, ops.transpose(x)),
    "softmax": ops.softmax,
    "logsumexp": lambda x: ops.logsumexp(x, axis=1),
    "divide": lambda x: ops.divide(1.0, x),
    "cumsum": lambda x: ops.cumsum(x, axis=1),
    "layer_normalization": lambda x: ops.layer_normalization(x),
    "rsqrt": ops.rsqrt,
    "gelu": ops.gelu,
    "softplus": ops.softplus,
    "power": lambda x: ops.power(x, 1.5),
    "var": lambda x: ops.var(x, axis=1),
}


@pytest.mark.parametrize("dtype", ["float32", "float64", "bfloat16"])
@pytest.mark.parametrize("turn", TURNS)
def test_an_op_is_wrong_from_8_times_the_tolerance_of_its_row(turn: int, dtype: str) -> None:
    rows = [all_samples()[op] for op in MARGINS]
    # A tolerance of more than 4 eps of bfloat16 allows errors as large as the numbers.
    chosen = [row.op for row in rows if dtype in row.dtypes and (dtype != "bfloat16" or row.tolerance <= 4)]
    wrong = []
    for at, op in enumerate(portion(chosen, 4 if dtype == "float32" else 12)):
        bad, good = PAIRS[(at + turn) % len(PAIRS)]
        for share in (0.5, 2, 8, 64):
            factor = 1 + share * 8 * all_samples()[op].tolerance * EPSILON[dtype]
            program = lambda x, op=op: MARGINS[op](ops.cast(x, dtype))
            report = compare(program, X, backends=(good, faulty(bad, op, times(factor))))
            first = report.first
            named = None if first is None else (first.op, first.wrong)
            if named != (None if share < 1 else (op, bad)):
                wrong.append(f"{op} on {bad}, {share} times the allowed error: {report.summary()}")
            elif first is not None and not share / 2 < first.error[bad] < share * 1.1:
                wrong.append(f"{op} on {bad}, {share} times the allowed error: {first.error}")
    assert not wrong, "\n".join(wrong)


def test_the_caller_may_allow_other_errors() -> None:
    bad, good = PAIRS[0]
    sides = faulty(bad, "tanh", times(1 + 40 * 4 * EPSILON["float32"])), good  # the row allows 4 eps
    assert [compare(ops.tanh, X, backends=sides, tolerance=tolerance).ok for tolerance in (None, 20, 60)] == [
        False,
        False,
        True,
    ]


@pytest.mark.parametrize("op", ["maximum", "negative", "reshape", "sort", "where"])
def test_an_op_that_does_not_round_must_be_exact(op: str) -> None:
    programs = {
        "where": lambda x: ops.where(ops.greater(x, 0.7), x, 0.0),
        "reshape": lambda x: ops.reshape(x, (8, 6)),
        "maximum": lambda x: ops.maximum(x, 0.7),
    }
    for bad, good in PAIRS[:: len(PAIRS) // 2]:
        sides = good, faulty(bad, op, times(1 + 2.0**-22))
        first = compare(programs.get(op, getattr(ops, op)), X, backends=sides).first
        assert first is not None
        assert (first.op, first.wrong) == (op, bad)


def _alarms(programs: dict[str, Any], turn: int, gradients: bool) -> list[str]:
    pairs = [*itertools.combinations(SIDES, 2)]
    found = []
    for at, (name, (program, inputs)) in enumerate(programs.items()):
        for pair in {pairs[(at + turn) % len(pairs)], pairs[(at + turn + 1) % len(pairs)]}:
            report = compare(program, *inputs, backends=pair, stop="all", gradients=gradients)
            ended = [note for note in report.notes if "ended" in note]
            if not report.ok or ended or not report.rows:
                found.append(f"{name} on {pair}: {report.summary()} {ended}")
    return found


@pytest.mark.filterwarnings("ignore:torch.searchsorted:UserWarning")
def test_right_programs_raise_no_alarm() -> None:
    assert len(RIGHT) >= 40
    alarms = [line for turn in portion(range(3), 3) for line in _alarms(RIGHT, turn, False)]
    assert not alarms, "\n".join(alarms)


def test_right_programs_with_gradients_raise_no_alarm() -> None:
    alarms = [line for turn in portion(range(3), 3) for line in _alarms(DIFFERENTIATED, turn, True)]
    assert not alarms, "\n".join(alarms)


def test_rounding_that_grows_with_the_length_is_allowed() -> None:
    """A naive sum of 65,536 positive numbers is off by hundreds of eps, and so is a product of long rows."""

    def naive(f: Any, x: Any, *rest: Any, **kwargs: Any) -> Any:
        total = np.float32(0)
        for part in np.add.reduceat(ops.to_numpy(x), np.arange(0, x.size, 16)):
            total += part
        return ops.convert_to_tensor(total)

    bad, good = PAIRS[0]
    report = compare(ops.sum, LONG, backends=(good, faulty(bad, "sum", naive)))
    assert report.ok
    matrix = np.abs(np.resize(LONG, (64, 1024)))
    product = faulty(bad, "matmul", times(1 + 60 * EPSILON["float32"]))
    assert compare(lambda x: ops.matmul(x, ops.transpose(x)), matrix, backends=(good, product)).ok
    assert not compare(lambda x: ops.matmul(x, ops.transpose(x)), matrix[:, :8], backends=(good, product)).ok


def test_ill_conditioned_calls_may_be_off_by_what_rounding_of_their_inputs_does() -> None:
    bad, good = PAIRS[0]
    singular = (SPD - np.linalg.eigvalsh(SPD)[0] * (1 - 1e-4) * np.eye(6)).astype("float32")
    sides = good, faulty(bad, "solve", times(1 + 1e-3))
    assert compare(lambda a: ops.solve(a, ops.ones((6,))), singular, backends=sides).ok
    assert not compare(lambda a: ops.solve(a, ops.ones((6,))), SPD, backends=sides).ok
