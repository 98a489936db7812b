"""Plugin of pytest: scikit-learn's tests of the array API run on the namespace that EMBERHARMONY_SUITE names."""

import importlib
import os
from collections.abc import Iterator

NAME = os.environ["EMBERHARMONY_SUITE"]
TESTED = importlib.import_module("sklearn.utils._array_api")


def namespaces(include_numpy_namespaces: bool = True) -> Iterator[str]:
    """Yields the name of the namespace in the place of those that scikit-learn knows."""
    yield NAME


def combinations(include_numpy_namespaces: bool = True) -> Iterator[tuple[str, str, str]]:
    """Yields the namespace with a device and each dtype, as scikit-learn does for PyTorch."""
    for dtype in ("float64", "float32"):
        yield NAME, "cpu", dtype


vars(TESTED).update(yield_namespaces=namespaces, yield_namespace_device_dtype_combinations=combinations)
