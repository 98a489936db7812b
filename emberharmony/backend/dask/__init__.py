"""The Dask backend: tensors in blocks, which NumPy computes when values are read.

The NumPy backend, which is asked for by name, computes each block, and Dask only moves blocks (`blockwise`,
`reduction`, `reshape`, slices, `matmul`). So there is one semantics without a line about dtypes, and a composite such
as `gelu` is one task for each block. Dask's own namespace would bring NumPy's promotion, results of unknown shape and
no sort, and bodies read shapes and indices on the host.

Shapes and dtypes without computing come from the backend of `eval_shape`; elementwise ops, which are most, run NumPy's
op on one element instead (150 µs for `add`, Dask's own takes 380). A broadcast tensor keeps its source, with which
elementwise ops compute, or the cotangent of a mean would be written out in blocks of its own. Variance is computed from
the moments of the blocks: in two passes Dask would keep all blocks between them, or compute them twice. `Generator`
draws normal numbers on the host, because they take a varying number of bits each, so a block cannot begin in the middle
of their stream.

Blocks of 16 MiB on one thread fit 4 GB of rows by gradient descent in 366 MB of address space. Blocks of 4 MiB exceed
512 MB, because the graph takes memory for each of them.
"""

import contextlib
from collections.abc import Iterator
from typing import Any

import dask
import dask.array as da
import numpy as np

from emberharmony.backend.base import Backend
from emberharmony.backend.dask.blocks import put_slots
from emberharmony.backend.dask.creation import DaskCreationOps
from emberharmony.backend.dask.dtypes import DTYPES
from emberharmony.backend.dask.elementwise import DaskElementwiseOps
from emberharmony.backend.dask.gathered import DaskGatheredOps
from emberharmony.backend.dask.histograms import DaskHistogramsOps
from emberharmony.backend.dask.indexing import DaskIndexingOps
from emberharmony.backend.dask.products import DaskProductsOps
from emberharmony.backend.dask.random import DaskRandomOps
from emberharmony.backend.dask.reductions import DaskReductionOps
from emberharmony.backend.dask.segments import DaskSegmentsOps
from emberharmony.backend.dask.shapes import DaskShapeOps
from emberharmony.backend.dask.standard import DaskStandardOps
from emberharmony.backend.dask.tensors import DaskTensorOps
from emberharmony.backend.discovery import load
from emberharmony.backend.shared.device import native_device, placement_of
from emberharmony.backend.shared.tensor import DLPACK_ERRORS
from emberharmony.core.errors import ShapeError


class DaskBackend(
    DaskReductionOps,
    DaskCreationOps,
    DaskShapeOps,
    DaskTensorOps,
    DaskIndexingOps,
    DaskSegmentsOps,
    DaskHistogramsOps,
    DaskProductsOps,
    DaskRandomOps,
    DaskGatheredOps,
    DaskElementwiseOps,  # type: ignore[misc]
    DaskStandardOps,  # type: ignore[misc]
    Backend,
):
    """Dask: tensors are `dask.array.Array`; the NumPy backend computes their blocks."""

    name = "dask"
    tensor_type = da.Array
    dtypes = DTYPES
    boolean_keys = False
    errors = DLPACK_ERRORS

    @property
    def version(self) -> str:
        """The version of Dask."""
        return str(dask.__version__)

    def __init__(self) -> None:
        super().__init__()
        # Loading NumPy checks EMBERHARMONY_DEVICE, except while a block `with ops.device(name):` is entered.
        load("numpy")

    def from_numpy(self, array: np.ndarray) -> da.Array:
        """Returns a copy of a host array as a tensor; a read-only one, such as a file in memory, is not copied.

        Raises:
            DTypeError: if the backend does not have its dtype.
        """
        self.dtypes.neutral[array.dtype]
        # Dask 2026.8 divides by zero if it chooses the blocks of a tensor without elements.
        return da.from_array(array.copy() if array.flags.writeable else array, "auto" if array.size else -1)

    @contextlib.contextmanager
    def device_scope(self, device: Any) -> Iterator[None]:
        """Returns the context manager behind `with ops.device(...)`, which sets the device of NumPy, too.

        Raises:
            DeviceError: if the device is not the CPU.
        """
        with placement_of(self).override_default(native_device(device)), load("numpy").device_scope(device):
            yield

    def computes_later(self) -> bool:
        """Returns True: Dask computes when values are read."""
        return True

    def translate(self, op: str, error: Exception, arguments: tuple[Any, ...]) -> Exception:
        """Returns the typed error for an error that an op raised; one about an axis of unknown length comes first."""
        try:
            put_slots(arguments, {})
        except ShapeError as shape_error:
            error = shape_error
        return super().translate(op, error, arguments)

    def _message_for(self, op: str, message: str) -> str:
        # The NumPy backend checks arguments and computes blocks, so its messages name it.
        return super()._message_for(op, message).replace("on backend 'numpy'", f"on backend {self.name!r}")


BACKEND = DaskBackend
