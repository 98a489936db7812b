"""A backend made from a namespace that follows the array API standard: `from_array_api`.

It binds what the standard describes, and casts what the standard leaves out; all else runs bodies. JAX and Dask have
the same definitions (`standard_ops` over a `Library`) behind their corrections, which come first in the order of the
classes, and each of which says why it is there.
"""

from collections.abc import Mapping
from typing import Any

from emberharmony.backend.arrayapi.elementwise import bind as _bind_elementwise
from emberharmony.backend.arrayapi.extensions import bind as _bind_extensions
from emberharmony.backend.arrayapi.library import Library
from emberharmony.backend.arrayapi.reductions import bind as _bind_reductions
from emberharmony.backend.arrayapi.shapes import bind as _bind_shapes
from emberharmony.backend.arrayapi.standard import StandardBackend
from emberharmony.backend.arrayapi.tensors import bind as _bind_tensors
from emberharmony.backend.base import Backend, Unsupported, unsupported
from emberharmony.backend.discovery import check_backend
from emberharmony.backend.promote import Direct
from emberharmony.core.dtypes import ALL, NativeDTypes, as_dtype
from emberharmony.core.errors import BackendProtocolError, suggest
from emberharmony.core.registry import OPS, complete


def from_array_api(
    name: str,
    xp: Any,
    *,
    tensor_type: type,
    dtypes: Mapping[str, Any] | None = None,
    extras: Mapping[str, Any] | None = None,
    lazy: bool = False,
) -> Backend:
    """Returns a backend made from a namespace that follows the array API standard (2025.12, or earlier).

    Ops of the standard are bound to the namespace's functions, also where these have NumPy's names. Ops that it lacks
    run their bodies, and gradients come from the tape. Primitives, which have none, are declared unsupported, with the
    name of the function that the namespace lacks.

    Args:
        name: of the backend, as programs name it.
        xp: the namespace, such as `cupy`.
        tensor_type: the class of its arrays.
        dtypes: its dtypes by their neutral names; by default those that the namespace has under these names.
        extras: definitions that replace those of the namespace: functions by the name of the op, with its declared
            signature, or `unsupported("reason")`. Methods of `Backend`, such as `pullback` and `from_numpy`, are given
            in the same way; they take the backend as their first argument, like methods. By default none.
        lazy: whether the library computes later. Bodies that compute on the host what tensors hold are then not used:
            their ops are unsupported, unless `extras` defines them.

    Raises:
        BackendProtocolError: if an extra has the name of no op and of no method of `Backend`, or declares such a method
            unsupported.

    Example:
        >>> import numpy
        >>> from emberharmony.backend import from_array_api
        >>> made = from_array_api("plain", numpy, tensor_type=numpy.ndarray)
        >>> float(made.namespace.logsumexp(numpy.zeros(2)))
        0.6931471805599453
    """
    backend = array_api_type(name, xp, tensor_type=tensor_type, dtypes=dtypes, extras=extras, lazy=lazy)()
    check_backend(backend)
    return backend


def array_api_type(
    name: str,
    xp: Any,
    *,
    tensor_type: type,
    dtypes: Mapping[str, Any] | None = None,
    extras: Mapping[str, Any] | None = None,
    lazy: bool = False,
) -> type[Backend]:
    """Returns a class of backends over a namespace of the array API standard, from which classes can be derived.

    Args:
        name: of the backend, as programs name it.
        xp: the namespace, such as `cupy`.
        tensor_type: the class of its arrays.
        dtypes: its dtypes by their neutral names; by default those that the namespace has under these names.
        extras: definitions by the name of the op or of a method of `Backend`, in place of those of the namespace; by
            default none. See `from_array_api`.
        lazy: whether the library computes later, so that no op may read tensors on the host.

    Raises:
        BackendProtocolError: if an extra has the name of no op and of no method of `Backend`.
    """
    complete()
    native_by_dtype_name = (
        {dtype_name: getattr(xp, dtype_name) for dtype_name in ALL if hasattr(xp, dtype_name)}
        if dtypes is None
        else dict(dtypes)
    )
    native_dtypes = NativeDTypes(
        name, {as_dtype(dtype_name): dtype for dtype_name, dtype in native_by_dtype_name.items()}
    )
    library = Library(name, xp, native_dtypes)
    attributes = standard_ops(library, tensor_type) | {
        "name": name,
        "tensor_type": tensor_type,
        "dtypes": native_dtypes,
        "library": library,
    }
    attributes |= {"promotion": library.promotion}
    extras = extras or {}
    if {"standard_uniform", "standard_normal"} & extras.keys():
        # A backend that draws with its own library has random streams whose state the default methods do not read.
        attributes |= {"random_get_state": None, "random_set_state": None}
    for extra_name, implementation in extras.items():
        attributes[extra_name] = _namespace_attribute(name, extra_name, implementation)
    backend_type: type[Backend] = type(f"{name.title()}Backend", (StandardBackend,), attributes)
    reason_by_op = dict.fromkeys(backend_type.missing_ops(), f"the namespace {library.title} has no function for it")
    if lazy:
        lazy_reason = "its body reads tensors on the host, which would compute what the library computes later"
        undefined_ops = {op for op in OPS if getattr(backend_type, op, None) is None}
        reason_by_op |= dict.fromkeys(undefined_ops.intersection(ops_read_on_host()), lazy_reason)
    for op, reason in reason_by_op.items():
        placeholder = unsupported(reason)
        placeholder.__set_name__(backend_type, op)
        setattr(backend_type, op, placeholder)
    return backend_type


def standard_ops(library: Library, tensor_type: type) -> dict[str, Any]:
    """Returns by name the ops that a library's namespace has functions for, as attributes of a backend's class."""
    definition_by_op: dict[str, Any] = {}
    for bind in (_bind_elementwise, _bind_reductions, _bind_extensions):
        definition_by_op |= {
            op: definition if isinstance(definition, Direct) else staticmethod(definition)
            for op, definition in bind(library).items()
        }
    return definition_by_op | _bind_tensors(library, tensor_type) | _bind_shapes(library)


def ops_read_on_host() -> set[str]:
    """Returns the names of the ops whose bodies compute on the host what their tensors hold."""
    return {op for op, spec in OPS.items() if spec.facts.reads == "data"}


def _namespace_attribute(backend: str, name: str, implementation: Any) -> Any:
    if name in OPS:
        is_method = name in vars(Backend)
        return implementation if isinstance(implementation, Unsupported) or is_method else staticmethod(implementation)
    if hasattr(Backend, name):
        return implementation
    valid_names = [*OPS, *(dtype_name for dtype_name in dir(Backend) if not dtype_name.startswith("_"))]
    raise BackendProtocolError(
        f"backend {backend!r}: {name!r} is neither an op nor a method of Backend{suggest(name, valid_names)}"
    )
