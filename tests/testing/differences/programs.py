"""Random programs: calls of ops with arguments of their sample rows, whose results go through further ops."""

from collections.abc import Callable
from functools import cache
from random import Random
from typing import Any

from emberharmony import ops
from emberharmony.core.registry import OPS
from emberharmony.testing.sample import Sample, cast_to_dtype
from emberharmony.testing.samples import all_samples

_AFTER = ("tanh", "sigmoid", "sin", "gelu", "atan", "softsign", "square", "relu", "floor", "sign", "isfinite")
DTYPES = ("float32", "float32", "float16", "bfloat16", "int32", "bool")


@cache
def _rows() -> list[Sample]:
    left_out = ("host_call", "to_numpy")  # what they return is a tensor on NumPy alone, so the program goes other ways
    return [row for op, row in sorted(all_samples().items()) if row.cases and not row.reference and op not in left_out]


def program(seed: int) -> tuple[Callable[..., Any], list[Any], list[str]]:
    """Returns a program, its inputs, and the names of its ops; they depend only on the seed."""
    rng = Random(seed)
    chosen: list[tuple[str, Any, Any, list[str]]] = []
    for _ in range(rng.randint(2, 6)):
        row, dtype = rng.choice(_rows()), rng.choice(DTYPES)
        kinds = (*row.dtypes, *row.integers)
        dtype = dtype if dtype in kinds else next((name for name in kinds if name != "float64"), "float32")
        item = rng.choice(row.cases)
        args = cast_to_dtype(item.args, dtype, not row.fixed)
        kwargs = {name: cast_to_dtype(value, dtype, not row.fixed) for name, value in item.kwargs.items()}
        chosen.append((row.op, args, kwargs, [rng.choice(_AFTER) for _ in range(rng.randint(0, 3))]))

    def run(*given: Any) -> None:
        for (name, _, kwargs, after), args in zip(chosen, given, strict=True):
            x = OPS[name].function(*args, **kwargs)
            x = x[0] if isinstance(x, (tuple, list)) and x else x
            if not ops.is_tensor(x) or not ops.dtype(x).is_floating:
                continue
            for further in after:
                x = getattr(ops, further)(x)
                if not ops.dtype(x).is_floating:
                    x = ops.cast(x, "float32")

    return run, [args for _, args, _, _ in chosen], [name for name, *_ in chosen]
