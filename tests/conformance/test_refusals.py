"""Every op refuses a nonsensical value for any of its arguments with a typed error."""

from typing import Any

import pytest

from emberharmony import ops  # noqa: F401  (declares the ops)
from emberharmony.core.registry import OPS
from emberharmony.errors import EmberError
from emberharmony.testing.sample import cast_to_dtype
from emberharmony.testing.samples import all_samples
from tests.sampling import portion


class Unprintable:
    """An object whose `repr` raises, so an error message cannot show it."""

    def __repr__(self) -> str:
        raise ZeroDivisionError("no repr")


def nested(depth: int) -> Any:
    """Returns a number inside `depth` nested lists."""
    value: Any = 1.0
    for _ in range(depth):
        value = [value]
    return value


WRONG = {"nested": nested(2000), "unprintable": Unprintable(), "dict": {}}
CALLS = sorted(op for op, row in all_samples().items() if row.cases and not OPS[op].takes_callable)


@pytest.mark.parametrize("wrong", sorted(WRONG))
def test_a_nonsensical_argument_raises_a_typed_error(wrong: str, backend: str) -> None:
    refused, faults = 0, []
    # Most conversions are shared, so other backends than NumPy run a third of the ops in a quick run.
    chosen = portion(CALLS, 2 if backend == "numpy" else 6)
    for op in chosen:
        item = all_samples()[op].cases[0]
        args, parameters = cast_to_dtype(item.args, "float32"), OPS[op].parameters
        for place, parameter in enumerate(parameters):
            given, named = list(args), dict(item.kwargs)
            if parameter.variadic:
                given = [*given[:place], WRONG[wrong]]
            elif place < len(given) and not parameter.keyword_only:
                given[place] = WRONG[wrong]
            else:
                named[parameter.name] = WRONG[wrong]
            try:
                OPS[op].function(*given, **named)
            except EmberError as error:
                refused += 1
                if f"on backend '{backend}': " not in str(error):
                    faults.append(f"{op}({parameter.name}=...) does not name op and backend: {error}")
            except Exception as error:  # noqa: BLE001  (any untyped error is a fault that this test looks for)
                faults.append(f"{op}({parameter.name}=...) raises {type(error).__name__}: {error}")
    assert not faults
    assert refused > 600 * len(chosen) / len(CALLS)
