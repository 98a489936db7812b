"""One namespace of plain functions over NumPy, PyTorch, MLX, JAX and Dask: `from emberharmony import ops`.

The import of the files of declarations registers the ops, which are then made the names of this module. `__init__.pyi`,
which `make generate` writes, has them for type checkers and editors.
"""

from types import ModuleType as _Module
from typing import TYPE_CHECKING as _TYPE_CHECKING

from emberharmony.core.docstrings.docstring import document_all as _document_all
from emberharmony.core.registry import functions_by_module as _by_module
from emberharmony.core.state.collector import PausedCollector as _PausedCollector

if _TYPE_CHECKING:  # Type checkers read `__init__.pyi`; editors look here for the docstring and the place of an op.
    from emberharmony.ops.device import *
    from emberharmony.ops.distributions import *
    from emberharmony.ops.dtype import *
    from emberharmony.ops.dtype import dtype as dtype  # not the module
    from emberharmony.ops.math import *
    from emberharmony.ops.random_ops import *
    from emberharmony.ops.solver import *
    from emberharmony.ops.tensor import *
    from emberharmony.ops.algebra.matrix_functions import *
    from emberharmony.ops.algebra.norms import *
    from emberharmony.ops.algebra.products import *
    from emberharmony.ops.arrays.creation import *
    from emberharmony.ops.arrays.indexing import *
    from emberharmony.ops.arrays.rearranging import *
    from emberharmony.ops.arrays.shape import *
    from emberharmony.ops.arrays.writing import *
    from emberharmony.ops.elementwise.complex_numbers import *
    from emberharmony.ops.elementwise.elementary import *
    from emberharmony.ops.elementwise.rounding import *
    from emberharmony.ops.elementwise.special import *
    from emberharmony.ops.elementwise.transcendental import *
    from emberharmony.ops.flow.control import *
    from emberharmony.ops.flow.transforms import *
    from emberharmony.ops.images.fft_ops import *
    from emberharmony.ops.images.image_ops import *
    from emberharmony.ops.images.interpolation import *
    from emberharmony.ops.images.resampling import *
    from emberharmony.ops.images.signals import *
    from emberharmony.ops.images.warping import *
    from emberharmony.ops.logic.bitwise import *
    from emberharmony.ops.logic.comparison import *
    from emberharmony.ops.neural.activation import *
    from emberharmony.ops.neural.attention import *
    from emberharmony.ops.neural.convolution import *
    from emberharmony.ops.neural.layers import *
    from emberharmony.ops.neural.losses import *
    from emberharmony.ops.neural.normalization import *
    from emberharmony.ops.neural.pooling import *
    from emberharmony.ops.neural.quantization import *
    from emberharmony.ops.neural.recurrent import *
    from emberharmony.ops.neural.sequences import *
    from emberharmony.ops.reductions.histograms import *
    from emberharmony.ops.reductions.quantiles import *
    from emberharmony.ops.reductions.reduction import *
    from emberharmony.ops.reductions.segments import *
    from emberharmony.ops.reductions.sorting import *
    from emberharmony.ops.reductions.statistics import *

    # These names are also those of functions and modules that the files above import.
    from emberharmony.ops.elementwise.rounding import ceil as ceil
    from emberharmony.ops.neural.layers import linear as linear
    from emberharmony.ops.reductions.reduction import prod as prod
    from emberharmony.ops.tensor import shape as shape

with _PausedCollector(lasting=True):
    from emberharmony.ops import device as _device, distributions, dtype as _dtype, math, random_ops, solver, tensor
    from emberharmony.ops.algebra import linalg_ops, matrix_functions, norms, products
    from emberharmony.ops.arrays import creation, indexing, rearranging, shape as _shape, writing
    from emberharmony.ops.elementwise import complex_numbers, elementary, rounding, special, transcendental
    from emberharmony.ops.flow import control, transforms
    from emberharmony.ops.images import fft_ops, image_ops, interpolation, resampling, signals, warping
    from emberharmony.ops.logic import bitwise, comparison
    from emberharmony.ops.neural import (
        activation,
        attention,
        convolution,
        layers,
        losses,
        normalization,
        pooling,
        quantization,
        recurrent,
        sequences,
    )
    from emberharmony.ops.reductions import histograms, quantiles, reduction, segments, sorting, statistics

    # Each import of a module has bound its name here, where it would hide that `ops` has no such op.
    for _name in [_name for _name, _value in globals().items() if isinstance(_value, _Module)]:
        del globals()[_name]
    _modules = {_name: _found for _name, _found in _by_module().items() if _name.startswith("emberharmony.ops.")}
    for _name, _ops in _modules.items():
        if _name != "emberharmony.ops.algebra.linalg_ops":  # other ops here have the same names
            globals().update(_ops)
    del globals()["fft"]  # the name of a namespace

    from emberharmony.backend.autocast import autocast as autocast
    from emberharmony.backend.choice import (
        available_backends as available_backends,
        backend_of as backend_of,
        get_backend as get_backend,
        set_backend as set_backend,
        use_backend as use_backend,
    )
    from emberharmony.backend.choice import load_at_import as _prepare
    from emberharmony.backend.namespace import array_namespace as array_namespace
    from emberharmony.backend.precision import precision as precision
    from emberharmony.backend.shared.device import device as device
    from emberharmony.core.dtypes import (
        bfloat16 as bfloat16,
        bool_ as bool_,
        complex128 as complex128,
        complex64 as complex64,
        default_complex as default_complex,
        default_float as default_float,
        DType as DType,
        float16 as float16,
        float32 as float32,
        float64 as float64,
        int16 as int16,
        int32 as int32,
        int64 as int64,
        int8 as int8,
        set_default_float as set_default_float,
        uint16 as uint16,
        uint32 as uint32,
        uint64 as uint64,
        uint8 as uint8,
    )
    from emberharmony.core.errors import EmberError as EmberError
    from emberharmony.core.namespace import (
        __array_namespace_info__ as __array_namespace_info__,
        capabilities as capabilities,
        default_dtypes as default_dtypes,
    )
    from emberharmony.core.numeric.constants import (
        __array_api_version__ as __array_api_version__,
        e as e,
        inf as inf,
        nan as nan,
        newaxis as newaxis,
        pi as pi,
    )
    from emberharmony.core.parameter import Buffer as Buffer, Parameter as Parameter
    from emberharmony.core.tensor_spec import TensorSpec as TensorSpec
    from emberharmony.core.trees.nodes import register_node as register_node
    from emberharmony.core.trees.paths import (
        tree_flatten_with_path as tree_flatten_with_path,
        tree_map_with_path as tree_map_with_path,
        tree_paths as tree_paths,
    )
    from emberharmony.core.trees.tree import (
        tree_flatten as tree_flatten,
        tree_leaves as tree_leaves,
        tree_map as tree_map,
        tree_unflatten as tree_unflatten,
    )
    from emberharmony.transforms.entry_points import checked as checked, profile as profile, record as record

    from emberharmony.ops import fft as fft, image as image, linalg as linalg, nn as nn, random as random

    _document_all([_name for _name in globals() if _name.startswith("tree_")], globals())
    _prepare()
    from emberharmony.core.state.hooks import install_hooks as _install

    _install()

bool = bool_

_STANDARD = ("__array_api_version__", "__array_namespace_info__")
__all__ = sorted([*_STANDARD, *(_name for _name in globals() if not _name.startswith("_"))])


def __getattr__(name: str) -> object:
    """Returns what an old name stands for, with a warning; raises `AttributeError` with a hint for an unknown one."""
    if name == "distributed":  # on a floor above; only programs with several processes pay for it
        import importlib

        globals()[name] = module = importlib.import_module("emberharmony.distributed")
        return module
    # Imported here, so that `dir` of the module shows public names only.
    from emberharmony.core.names.deprecation import op_of_old_name

    return op_of_old_name(__name__, name)


def __dir__() -> list[str]:
    """Returns the public names."""
    return __all__
