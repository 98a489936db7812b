"""The sample rows, one per op: inputs, oracle and tolerance. Each category has a file, in its folder as in `ops/`."""

import importlib
import pkgutil

from emberharmony.core.registry import OPS
from emberharmony.testing.sample import Sample


def all_samples() -> dict[str, Sample]:
    """Returns every row, by the name of its op.

    Raises:
        ValueError: if an op has two rows.
    """
    sample_by_op: dict[str, Sample] = {}
    module_names = (info.name for info in pkgutil.walk_packages(__path__, f"{__name__}.") if not info.ispkg)
    for module_name in sorted(module_names, key=lambda name: name.rpartition(".")[2]):
        for sample in importlib.import_module(module_name).SAMPLES:
            if sample.op in sample_by_op:
                raise ValueError(f"op {sample.op!r} has two sample rows")
            sample_by_op[sample.op] = sample
    return sample_by_op


def missing_row_messages() -> dict[str, str]:
    """Returns, by op, a message about each declared op that has no row."""
    return {
        op: f"{op} has no sample row: add one to emberharmony/testing/samples/{OPS[op].category_path}.py"
        for op in sorted(OPS.keys() - all_samples().keys())
    }
