"""Default bodies of conversions, properties, dtypes and devices; a library without devices has the host's memory."""

from typing import Any

import numpy as np

from emberharmony.backend.fallback.tools import body, flat, on_host, placed, reading, width
from emberharmony.backend.host import dtype_or_number
from emberharmony.backend.shared.device import Placement, host_memory, name_of, unknown
from emberharmony.backend.shared.tensor import check_view, exporter, refuse_copy
from emberharmony.core.dtypes import DType
from emberharmony.core.errors import ArgumentError, DTypeError
from emberharmony.core.numeric import promotion
from emberharmony.core.options import dense

DLPACK_ERRORS = (
    (RuntimeError, "Unsupported dtype in DLTensor", DTypeError),
    (BufferError, "", ArgumentError),
)
"""Which typed error takes the place of one that NumPy or the other library raises in `from_dlpack`."""


@body
def copy(backend: Any, x: Any) -> Any:
    """Joins the tensor with nothing, which makes a new one."""
    ops = backend.bound
    return ops.reshape(ops.concatenate([flat(backend, x), ops.zeros((0,), x.dtype)]), tuple(x.shape))


@body
def shape(backend: Any, x: Any) -> tuple[int, ...]:
    """Reads the attribute."""
    return tuple(x.shape)


@body
def ndim(backend: Any, x: Any) -> int:
    """Counts the axes."""
    return len(x.shape)


@body
def size(backend: Any, x: Any) -> int:
    """Multiplies the lengths."""
    return int(np.prod(tuple(x.shape), dtype=np.int64))


@body
def dtype(backend: Any, x: Any) -> DType:
    """Reads the attribute."""
    return backend.dtype_of(x)


@body
def result_type(backend: Any, *operands: Any) -> DType:
    """Looks up the promotion table."""
    return promotion.result_type(
        *(backend.dtype_of(x) if isinstance(x, backend.tensor_type) else dtype_or_number(x) for x in operands)
    )


@body
def convert_to_tensor(
    backend: Any,
    x: Any,
    dtype: Any = None,
    sparse: Any = None,
    ragged: Any = None,
    device: Any = None,
    copy: Any = None,
) -> Any:
    """Casts, and copies if that is asked for and the cast did not."""
    if sparse or ragged:
        dense("sparse" if sparse else "ragged", True)
    ops = backend.bound
    result = x if dtype is None or x.dtype == dtype else ops.cast(x, dtype)
    result = result if device is None else ops.to_device(result, device)
    if result is not x:
        refuse_copy(copy)
    return ops.copy(x) if copy and result is x else result


@reading
def view(backend: Any, x: Any, dtype: Any) -> Any:
    """Reads the bits on the host."""
    wanted = backend.dtypes.neutral[dtype]
    check_view(tuple(x.shape), width(backend, x.dtype), width(backend, dtype))
    host = np.ascontiguousarray(on_host(backend, x)).reshape(tuple(x.shape))
    return placed(backend, host.view(wanted.name), dtype)


@body
def from_dlpack(backend: Any, x: Any, device: Any = None, copy: Any = None) -> Any:
    """Imports an array on the host."""
    if isinstance(x, backend.tensor_type):
        return backend.bound.convert_to_tensor(x, device=device, copy=copy)
    host = exporter(x, copy)
    refuse_copy(copy)
    tensor = backend.from_numpy(np.from_dlpack(host))
    return tensor if device is None else backend.bound.to_device(tensor, device)


@body
def eval_(backend: Any, *trees: Any) -> None:
    """Does nothing: a library that computes later needs a definition of its own."""


def placement_of(backend: Any) -> Placement:
    """Returns the default device of a backend that has only the host's memory."""
    placement: Placement | None = backend.__dict__.get("_placement")
    return backend.__dict__.setdefault("_placement", Placement()) if placement is None else placement


def native_device(device: Any) -> str:
    """Returns "cpu".

    Raises:
        DeviceError: if the device is another one.
    """
    if name_of(device) not in ("cpu", "cpu:0"):
        raise unknown(device, ["cpu"])
    return "cpu"


def _place(backend: Any, device: Any = None) -> None:
    placement = placement_of(backend)
    if device is not None:
        native_device(device)
    elif placement.touched:
        placement.chosen(native_device)


@body
def get_device(backend: Any, x: Any) -> str:
    """Names the host."""
    return "cpu"


@body
def to_device(backend: Any, x: Any, device: Any) -> Any:
    """Checks the name."""
    native_device(device)
    return x


@body
def get_available_devices(backend: Any) -> list[str]:
    """Names the host."""
    return ["cpu"]


@body
def get_default_device(backend: Any) -> str:
    """Names the host."""
    _place(backend)
    return "cpu"


@body
def set_default_device(backend: Any, device: Any) -> None:
    """Checks the name."""
    placement_of(backend).set_default(None if device is None else native_device(device))


@body
def synchronize(backend: Any, device: Any = None) -> None:
    """Checks the name: nothing is pending."""
    _place(backend, device)


@body
def memory_info(backend: Any, device: Any = None) -> dict[str, int]:
    """Asks the operating system."""
    _place(backend, device)
    return host_memory()
