"""An axis means the same as a number, as a number of NumPy, and as a sequence of one."""

import itertools
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from emberharmony.core.registry import OPS
from emberharmony.testing.sample import cast_to_dtype
from emberharmony.testing.samples import all_samples
from tests.properties.strategies import INSTALLED, host, on

FORMS: tuple[Callable[[int], Any], ...] = (int, np.int64, lambda axis: [axis], lambda axis: (axis,))
MOVED = ("source", "destination")
NAMES = {
    name: [p.name for p in spec.parameters if p.annotation == "Axis" or p.name in MOVED] for name, spec in OPS.items()
}
ROWS = {name: row for name, row in all_samples().items() if NAMES[name] and not row.reference}


def _calls(op: str) -> list[tuple[dict[str, Any], list[str]]]:
    """Returns the arguments of calls by name, and which of them are one axis."""
    found = []
    for item in ROWS[op].cases:
        given = {p.name: p.default for p in OPS[op].parameters} | item.kwargs
        given |= dict(zip(given, (cast_to_dtype(x, "float32") for x in item.args), strict=False))
        axes = [name for name in NAMES[op] if type(given[name]) is int]
        if axes:
            found.append((given, axes))
    return found


def _parts(result: Any) -> list[np.ndarray]:
    return [part for item in result for part in _parts(item)] if isinstance(result, (list, tuple)) else [host(result)]


@pytest.mark.parametrize("op", ROWS)
def test_an_axis_may_be_given_in_any_form(op: str) -> None:
    for name, (given, axes) in itertools.product(INSTALLED, _calls(op)):
        with on(name):
            wanted = _parts(OPS[op].function(**given))
            for forms in itertools.product(FORMS, repeat=len(axes)):
                changed = {axis: form(given[axis]) for axis, form in zip(axes, forms, strict=True)}
                for got, want in zip(_parts(OPS[op].function(**given | changed)), wanted, strict=True):
                    np.testing.assert_allclose(got, want, 1e-5, 1e-6, err_msg=f"{op} on {name}: {changed}")
