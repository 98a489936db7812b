"""The choice of a namespace by tensors: `ops.array_namespace`."""

from __future__ import annotations

from types import ModuleType
from typing import TYPE_CHECKING, Any

from emberharmony.backend.base import Backend
from emberharmony.backend.choice import OWNERS, owning_backend_of
from emberharmony.backend.discovery import load
from emberharmony.core.deferred import Deferred
from emberharmony.core.errors import ArgumentTypeError, BackendMismatchError, brief
from emberharmony.core.namespace import standard_namespace
from emberharmony.core.trees.tree import tree_leaves

if TYPE_CHECKING:
    import numpy as np
else:
    np = Deferred("numpy")


def array_namespace(*tensors: Any, api_version: str | None = None) -> ModuleType:
    """Returns the functions of `ops` bound to the backend of the tensors, whichever backend is active.

    The namespace follows the array API standard: it has its functions, constants, extensions and inspection, and its
    dtypes are those of the library (`xp.float32 is torch.float32`), so that `x.dtype == xp.float32` holds on every
    backend. Beyond the standard it has all other ops: gradients, random numbers, neural networks, images. Conversions
    and errors are those of `ops`. There is one namespace per backend, which can be pickled.

    Args:
        tensors: tensors of one backend, or trees of them. Numbers and None have no backend; nor have NumPy's scalars,
            unless nothing else is given.
        api_version: the version of the standard that the caller is written for, such as "2024.12"; None takes any.

    Raises:
        ArgumentError: if the version is unknown.
        ArgumentTypeError: if no argument is a tensor, or one is of another type.
        BackendMismatchError: if there are tensors of two backends.

    Example:
        >>> x = ops.array([0.0, 3.0, 4.0])
        >>> xp = ops.array_namespace(x)
        >>> xp.linalg.vector_norm(x).tolist()
        5.0
        >>> xp.grad(lambda x: xp.sum(xp.square(x)))(x).tolist()
        [0.0, 6.0, 8.0]
        >>> x.dtype == xp.float32
        True
    """
    backend_by_name: dict[str, Backend] = {}
    foreign_tensors = []
    for tensor in tensors:
        backend = OWNERS.get(tensor.__class__)  # the common case, at a fifth of the cost of a search in trees
        if backend is None:
            foreign_tensors.append(tensor)
        else:
            backend_by_name[backend.name] = backend
    has_scalar = False
    for leaf in tree_leaves(foreign_tensors) if foreign_tensors else ():
        if isinstance(leaf, np.generic):
            has_scalar = True
        elif not isinstance(leaf, (int, float, complex)):
            backend = _backend_of_leaf(leaf)
            backend_by_name[backend.name] = backend
    if len(backend_by_name) > 1:
        raise BackendMismatchError(
            f"array_namespace() got tensors of the backends {' and '.join(sorted(backend_by_name))}; convert one kind: "
            f"array_namespace(y).asarray(array_namespace(x).to_numpy(x))"
        )
    if backend_by_name:
        return standard_namespace(backend_by_name.popitem()[1], api_version)
    if has_scalar:
        return standard_namespace(load("numpy"), api_version)
    raise ArgumentTypeError(
        "array_namespace() got no tensor, so the backend is unknown: pass at least one tensor, or call the functions "
        "of emberharmony.ops, which give numbers and lists to the active backend"
    )


def _backend_of_leaf(leaf: Any) -> Backend:
    backend = owning_backend_of(leaf)
    if backend is None:
        cls = type(leaf)
        raise ArgumentTypeError(
            f"array_namespace() takes tensors, numbers and None, not {brief(leaf)} of type "
            f"{cls.__module__}.{cls.__qualname__}; pass the tensors alone"
        )
    return backend
