"""Programs of ops that PyTorch compiles and runs on NumPy arrays, whose memory it shares."""

import os
import threading
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
import torch

from emberharmony.backend.torch.flow.compilation import call_whole
from emberharmony.core import selection
from emberharmony.core.deferred import Deferred
from emberharmony.core.state.settings import cache_folder

if TYPE_CHECKING:
    from emberharmony.backend.torch.flow import attention_fusion
else:
    attention_fusion = Deferred("emberharmony.backend.torch.flow.attention_fusion")

_LOCK = threading.Lock()
"""Only one thread compiles: the ops of the process are guarded meanwhile."""


class HostProgram:
    """The function of NumPy arrays that runs a program; PyTorch traces and compiles it in the first call.

    Later calls look at nothing: whoever calls it gives arrays of the same shapes, dtypes and strides.

    Args:
        function: runs the program on a list of tensors.
        bound: the ops of the backend.
    """

    def __init__(self, function: Callable[[list[Any]], list[Any]], bound: Any) -> None:
        folder = cache_folder("torch")
        if folder is not None:  # by default Inductor's is one for temporary files
            os.environ.setdefault("TORCHINDUCTOR_CACHE_DIR", folder)
        self._bound, self._is_traced = bound, False
        options = {"guard_filter_fn": torch.compiler.skip_all_guards_unsafe, **attention_fusion.OPTIONS}
        self._compiled = torch.compile(function, fullgraph=True, dynamic=False, options=options)

    def __call__(self, arrays: Sequence[np.ndarray]) -> list[np.ndarray]:
        """Returns the results; their memory is PyTorch's."""
        tensors = [_tensor_on_memory(array) for array in arrays]
        if self._is_traced:
            with torch.no_grad():
                return [tensor.numpy(force=True) for tensor in self._compiled(tensors)]
        with _LOCK, torch.no_grad():
            try:
                with selection.Override(self._bound.backend):
                    result_tensors = call_whole(self._bound, self._compiled, tensors)
            finally:
                selection.unguard()
        self._is_traced = True
        return [tensor.numpy(force=True) for tensor in result_tensors]


class _Writable:
    """A read-only array presented as writable, as PyTorch requires; nothing writes into it."""

    def __init__(self, array: np.ndarray) -> None:
        self._array = array  # keeps the memory
        address, _ = array.__array_interface__["data"]
        self.__array_interface__ = {**array.__array_interface__, "data": (address, False)}


def _tensor_on_memory(array: np.ndarray) -> torch.Tensor:
    """Returns a tensor on the memory of an array, or on a copy where PyTorch does not support the strides."""
    if not array.flags.writeable:  # PyTorch would warn
        array = np.asarray(_Writable(array))
    try:
        return torch.from_numpy(array)
    except ValueError:  # negative strides, or strides that are no multiple of the size of an element
        return torch.from_numpy(np.array(array))
