"""An axis that is out of range is refused by every op, also by a fast path that could wrap it around."""

from typing import Any

import numpy as np
import pytest

from emberharmony import ops
from emberharmony.core.registry import OPS
from emberharmony.errors import ArgumentError, AxisError
from emberharmony.testing.checks import dtypes_of
from emberharmony.testing.sample import cast_to_dtype
from emberharmony.testing.samples import all_samples
from tests.together import together

ROWS = {name: row for name, row in all_samples().items() if row.cases}


@together("name", [name for name in ROWS if "axis" in [p.name for p in OPS[name].parameters] and name != "concatenate"])
def test_an_axis_beyond_those_of_the_tensors_is_refused(name: str, backend: str) -> None:
    parameters, (dtype, *_) = [p.name for p in OPS[name].parameters], dtypes_of(ROWS[name])
    for case in ROWS[name].cases[:4]:
        arguments = {**dict(zip(parameters, cast_to_dtype(case.args, dtype), strict=False)), **case.kwargs}
        most = max((np.ndim(x) for x in ops.tree_leaves(arguments) if isinstance(x, np.ndarray)), default=0)
        for count in {1, len(case.args)}:  # a fast path may take tensors in some places and host data in others
            native = {key: ops.tree_map(_tensor, arguments[key]) for key in parameters[:count] if key in arguments}
            # The result of some ops has one more axis. Wrapped around, these numbers give each axis of the tensors.
            for axis in (*range(most + 1, 2 * most + 2), *range(-2 * most - 2, -most - 1)):
                with pytest.raises((AxisError, ArgumentError)):
                    ops.eval(OPS[name].function(**{**arguments, **native, "axis": axis}))


def _tensor(value: Any) -> Any:
    return ops.convert_to_tensor(value) if isinstance(value, np.ndarray) else value
