"""What the bodies of ops share besides ops: promotion of some arguments, wide dtypes, the way to the host and back.

All work with the ops of the active backend, as the bodies do.
"""

from typing import Any

from emberharmony.core import op_globals
from emberharmony.core.op_code.prologue import common as common


def widest(x: Any) -> Any:
    """Returns a tensor in the widest floating or complex dtype that the backend has, to keep digits."""
    bound = op_globals.active()
    names = ("complex128", "complex64") if bound.backend.kind_of(x) == "complex" else ("float64", "float32")
    return bound.cast(x, next(name for name in names if name in bound.backend.dtypes.natives))
