"""Elementwise ops, on Dask: NumPy's, block by block; a composite such as `gelu` is one call for each block."""

from functools import partial
from typing import Any

from emberharmony.backend.base import Backend
from emberharmony.backend.dask.blocks import apply_elementwise
from emberharmony.core.registry import OPS, complete

complete()


def _class_attributes() -> dict[str, Any]:
    op_names = [name for name, spec in OPS.items() if spec.facts.elementwise and not hasattr(Backend, name)]
    return {name: staticmethod(partial(apply_elementwise, name)) for name in op_names} | {"__doc__": __doc__}


DaskElementwiseOps: Any = type("DaskElementwiseOps", (), _class_attributes())
"""The mixin that holds these ops."""
