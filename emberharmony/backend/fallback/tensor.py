"""The default body of views; it reads bits on the host."""

from typing import Any

import numpy as np

from emberharmony.backend.fallback.tools import on_host, placed, reading, width
from emberharmony.backend.shared.tensor import check_view


@reading
def view(backend: Any, x: Any, dtype: Any) -> Any:
    """Reads the bits on the host."""
    wanted = backend.dtypes.neutral[dtype]
    check_view(tuple(x.shape), width(backend, x.dtype), width(backend, dtype))
    host = np.ascontiguousarray(on_host(backend, x)).reshape(tuple(x.shape))
    return placed(backend, host.view(wanted.name), dtype)
