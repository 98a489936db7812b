"""Default bodies of parts of complex numbers."""

from typing import Any

import numpy as np

from emberharmony.backend.fallback.tools import floats, on_host, placed, reading
from emberharmony.backend.shared.shape import check_parts


@reading
def view_as_complex(backend: Any, x: Any) -> Any:
    """Makes the complex numbers on the host: a sum with 1j times infinity would be NaN."""
    x = floats(backend, x, ("complex",))
    check_parts(x.shape)
    host = on_host(backend, x)
    wide = "complex128" if backend.dtypes.neutral[x.dtype] == "float64" else "complex64"
    pairs = np.ascontiguousarray(host.astype(np.float64 if wide == "complex128" else np.float32))
    return placed(backend, pairs.view(wide)[..., 0], backend.dtypes[wide])
