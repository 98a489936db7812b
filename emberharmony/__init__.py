"""One namespace of plain array functions, with which the same program runs on NumPy, PyTorch and MLX.

>>> from emberharmony import ops
>>> ops.add([1, 2], 3).tolist()
[4, 5]
"""

from typing import TYPE_CHECKING

from emberharmony.core.names.lazy import lazy_getattr_and_dir
from emberharmony.version import __version__ as __version__

if TYPE_CHECKING:
    from emberharmony import backend as backend
    from emberharmony import distributed as distributed
    from emberharmony import errors as errors
    from emberharmony import io as io
    from emberharmony import nn as nn
    from emberharmony import ops as ops
    from emberharmony import optim as optim
    from emberharmony import testing as testing
    from emberharmony import types as types
    from emberharmony import xp as xp
    from emberharmony.backend import create_backend as create_backend
    from emberharmony.backend.protocol import TensorBackend as TensorBackend
    from emberharmony.backend.transfer import to_backend as to_backend
    from emberharmony.core.parameter import Buffer as Buffer
    from emberharmony.core.parameter import Parameter as Parameter
    from emberharmony.core.tensor_spec import TensorSpec as TensorSpec
    from emberharmony.interop.torch.aten.table import register_aten as register_aten
    from emberharmony.interop.torch.conversion import from_torch as from_torch
    from emberharmony.interop.torch.files import load_program as load_program
    from emberharmony.rules.registration import register_op as register_op
    from emberharmony.rules.registration import register_vjp as register_vjp
    from emberharmony.testing.models.compare import compare as compare
    from emberharmony.transforms.logs.log import Log as Log
    from emberharmony.types import Tensor as Tensor
    from emberharmony.types import TensorLike as TensorLike

_LAZY = {
    "ops": "emberharmony.ops",
    "nn": "emberharmony.nn",
    "optim": "emberharmony.optim",
    "io": "emberharmony.io",
    "backend": "emberharmony.backend",
    "distributed": "emberharmony.distributed",
    "errors": "emberharmony.errors",
    "testing": "emberharmony.testing",
    "types": "emberharmony.types",
    "xp": "emberharmony.xp",
    "Buffer": "emberharmony.ops",
    "Log": "emberharmony.transforms.logs.log",
    "Parameter": "emberharmony.ops",
    "Tensor": "emberharmony.types",
    "TensorBackend": "emberharmony.backend.protocol",
    "TensorLike": "emberharmony.types",
    "TensorSpec": "emberharmony.ops",
    "compare": "emberharmony.testing.models.compare",
    "create_backend": "emberharmony.backend",
    "from_torch": "emberharmony.interop.torch.conversion",
    "load_program": "emberharmony.interop.torch.files",
    "register_aten": "emberharmony.interop.torch.aten.table",
    "register_op": "emberharmony.rules.registration",
    "register_vjp": "emberharmony.rules.registration",
    "to_backend": "emberharmony.backend.transfer",
}

__all__ = ["__version__", *_LAZY]

# `import emberharmony` itself costs almost nothing.
if not TYPE_CHECKING:
    __getattr__, __dir__ = lazy_getattr_and_dir(__name__, _LAZY)
