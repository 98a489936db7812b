"""One object with the ops for each library; authors of backends import from here, all other modules are private."""

from typing import TYPE_CHECKING

from emberharmony.backend.base import Backend as Backend
from emberharmony.backend.base import unsupported as unsupported
from emberharmony.backend.choice import available_backends as available_backends
from emberharmony.backend.choice import backend_of as backend_of
from emberharmony.backend.choice import current as current
from emberharmony.backend.choice import get_backend as get_backend
from emberharmony.backend.choice import set_backend as set_backend
from emberharmony.backend.choice import use_backend as use_backend
from emberharmony.backend.discovery import create_backend as create_backend
from emberharmony.backend.promote import Promotion as Promotion
from emberharmony.backend.promote import direct as direct
from emberharmony.core.dispatch import fast as fast
from emberharmony.core.dtypes import ALL as DTYPES
from emberharmony.core.dtypes import NativeDTypes as NativeDTypes
from emberharmony.core.dtypes import as_dtype as as_dtype
from emberharmony.core.names.lazy import lazy_getattr_and_dir
from emberharmony.core.registry import OPS as OPS

if TYPE_CHECKING:
    from emberharmony.backend.arrayapi import array_api_type as array_api_type
    from emberharmony.backend.arrayapi import from_array_api as from_array_api
    from emberharmony.backend.protocol import TensorBackend as TensorBackend

__all__ = [
    "DTYPES",
    "OPS",
    "Backend",
    "NativeDTypes",
    "Promotion",
    "TensorBackend",
    "array_api_type",
    "as_dtype",
    "available_backends",
    "backend_of",
    "create_backend",
    "current",
    "direct",
    "fast",
    "from_array_api",
    "get_backend",
    "set_backend",
    "unsupported",
    "use_backend",
]

# What few programs need; the protocol, with one method per op, takes 3 ms.
if not TYPE_CHECKING:
    __getattr__, __dir__ = lazy_getattr_and_dir(
        __name__,
        {
            "TensorBackend": "emberharmony.backend.protocol",
            "array_api_type": "emberharmony.backend.arrayapi",
            "from_array_api": "emberharmony.backend.arrayapi",
        },
    )
