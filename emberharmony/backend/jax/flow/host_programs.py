"""Programs of ops that JAX compiles and runs on NumPy arrays, on the CPU."""

import functools
from collections.abc import Sequence
from typing import Any

import jax
import numpy as np

from emberharmony.core import selection
from emberharmony.core.errors import UnsupportedOpError
from emberharmony.core.registry import OPS
from emberharmony.core.state.settings import cache_folder
from emberharmony.transforms.program import Program, ProgramCall
from emberharmony.transforms.source import write_function


class HostProgram:
    """The function of NumPy arrays that runs a program; JAX traces and compiles it in the first call.

    JAX takes the memory of an array whose address is a multiple of 64 bytes, and copies others.

    Args:
        program: the program.
        bound: the ops of the backend.

    Raises:
        UnsupportedOpError: if an op refuses wrong values, which a compiled program of JAX does not look at.
    """

    def __init__(self, program: Program, bound: Any) -> None:
        for call in program.calls:
            if _may_refuse(call):
                raise UnsupportedOpError(f"{call.function}() refuses wrong values, which JAX does not look at")
        _set_cache_folder()
        self._bound, self._is_traced = bound, False
        self._device = jax.local_devices(backend="cpu")[0]
        self._compiled = jax.jit(write_function(program, functools.partial(getattr, bound)))

    def __call__(self, arrays: Sequence[np.ndarray]) -> list[np.ndarray]:
        """Returns the results; their memory is JAX's, unless that is the memory of an argument."""
        tensors = [jax.device_put(array, self._device) for array in arrays]
        if not self._is_traced:
            try:
                with selection.Override(self._bound.backend):
                    self._compiled(tensors)
            finally:
                selection.unguard()
            self._is_traced = True
        return [_array_of(tensor, arrays) for tensor in self._compiled(tensors)]


class _Writable:
    """The memory of a JAX array as writable memory for NumPy; nothing else refers to the array."""

    def __init__(self, tensor: jax.Array, view: np.ndarray) -> None:
        self._tensor = tensor  # keeps the memory
        address, _ = view.__array_interface__["data"]
        self.__array_interface__ = {**view.__array_interface__, "data": (address, False)}


def _array_of(tensor: jax.Array, arrays: Sequence[np.ndarray]) -> np.ndarray:
    """Returns a tensor as a NumPy array on its own memory, or as a copy if it shares memory with the arguments."""
    view = np.asarray(tensor)  # waits until it is computed
    if view.dtype.kind == "V" or any(np.may_share_memory(view, array) for array in arrays):
        return view.copy()
    return np.asarray(_Writable(tensor, view))


def _may_refuse(call: ProgramCall) -> bool:
    """Returns whether the call of an op may raise an error that depends on values, such as an index out of bounds."""
    spec = OPS[call.function]
    indices = [x for x, parameter in zip(call.args, spec.parameters, strict=False) if parameter.role == "Value"]
    index_call = call._replace(args=tuple(indices), keywords=())
    return spec.facts.along == "matrix" or bool(index_call.operands)


def _set_cache_folder() -> None:
    """Sets the folder where JAX stores compiled programs, unless the user has set one."""
    folder = cache_folder("jax")
    if folder is not None and jax.config.jax_compilation_cache_dir is None:
        jax.config.update("jax_compilation_cache_dir", folder)
        jax.config.update("jax_persistent_cache_min_compile_time_secs", 0.0)
