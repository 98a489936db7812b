"""One row per op, by category: inputs, float64 oracle and tolerance; `all_samples` reads them all."""

import importlib
import pkgutil

from emberharmony.testing.sample import Sample


def all_samples() -> dict[str, Sample]:
    """Returns every row by op name.

    Raises: ValueError if an op has two rows.
    """
    found: dict[str, Sample] = {}
    for module in sorted(info.name for info in pkgutil.iter_modules(__path__)):
        for sample in importlib.import_module(f"{__name__}.{module}").SAMPLES:
            if sample.op in found:
                raise ValueError(f"op {sample.op!r} has two sample rows")
            found[sample.op] = sample
    return found
