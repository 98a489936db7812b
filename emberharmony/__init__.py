"""One namespace of plain array functions that runs the same program on NumPy, PyTorch and MLX.

>>> from emberharmony import ops
>>> ops.add([1, 2], 3).tolist()
[4, 5]
"""

import gc
import importlib
from typing import TYPE_CHECKING, Any

from emberharmony.version import __version__ as __version__

if TYPE_CHECKING:
    from emberharmony import ops as ops
    from emberharmony.backend import create_backend as create_backend
    from emberharmony.core.parameter import Parameter as Parameter
    from emberharmony.rules.registration import register_op as register_op
    from emberharmony.rules.registration import register_vjp as register_vjp

_LAZY = {
    "ops": "emberharmony.ops",
    "Parameter": "emberharmony.ops",
    "create_backend": "emberharmony.backend",
    "register_op": "emberharmony.rules.registration",
    "register_vjp": "emberharmony.rules.registration",
}


def __getattr__(name: str) -> Any:
    """Imports the public names on first use, so that `import emberharmony` itself costs next to nothing."""
    if name not in _LAZY:
        raise AttributeError(f"module 'emberharmony' has no attribute {name!r}")
    # What an import makes stays: a collector that looked for garbage in it again and again would cost 1.5 ms.
    collecting = gc.isenabled()
    gc.disable()
    try:
        module = importlib.import_module(_LAZY[name])
    finally:
        if collecting:
            gc.enable()
    value = module if module.__name__ == f"emberharmony.{name}" else getattr(module, name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted([*globals(), *_LAZY])
