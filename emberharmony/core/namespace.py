"""The inspection API of the array API standard: `ops.__array_namespace_info__()`."""

from types import ModuleType
from typing import Any

from emberharmony.core import selection
from emberharmony.core.dtypes import DType, as_dtype, bfloat16, default_complex, default_float, float16
from emberharmony.core.errors import ArgumentError, brief
from emberharmony.core.numeric.constants import __array_api_version__
from emberharmony.core.numeric.finfo import KINDS

VERSIONS = ("2021.12", "2022.12", "2023.12", "2024.12", __array_api_version__)
"""The versions of the array API standard whose names a namespace has."""


def standard_namespace(backend: Any, api_version: str | None) -> ModuleType:
    """Returns the namespace of a backend, as the standard's method `__array_namespace__` does.

    Raises:
        ArgumentError: if the version of the standard is unknown.
    """
    if api_version is not None and api_version not in VERSIONS:
        raise ArgumentError(f"expected api_version to be one of {', '.join(VERSIONS)}, got {brief(api_version)}")
    namespace: ModuleType = backend.namespace
    return namespace


def capabilities() -> dict[str, Any]:
    """Returns whether boolean indexing and data-dependent shapes are supported, and the maximum number of axes.

    Boolean indexing means `x[mask]` on native tensors; `ops.get_item(x, mask)` works on every backend.
    """
    return ArrayNamespaceInfo().capabilities()


def default_dtypes(*, device: Any = None) -> dict[str, DType]:
    """Returns the default dtypes, by the kinds of the array API standard.

    Args:
        device: ignored, because the defaults are the same on every device; the standard requires the argument.
    """
    return {
        "real floating": default_float(),
        "complex floating": default_complex(),
        "integral": as_dtype(int),
        "indexing": as_dtype("int64"),
    }


class ArrayNamespaceInfo:
    """The inspection namespace of the array API standard.

    Args:
        backend: whose dtypes and devices it reports, with native dtypes; None for the active one, with neutral dtypes.

    Example:
        >>> ops.__array_namespace_info__().capabilities()["data-dependent shapes"]
        True
    """

    def __init__(self, backend: Any = None) -> None:
        self._backend = backend

    def _current_backend(self) -> Any:
        return selection.current() if self._backend is None else self._backend

    def _spell_dtypes(self, dtypes: dict[str, DType]) -> dict[str, Any]:
        if self._backend is None:
            return dict(dtypes)
        return {name: self._backend.dtypes.native_of(dtype) for name, dtype in dtypes.items()}

    def capabilities(self) -> dict[str, Any]:
        """Returns what the namespace's function `capabilities()` returns, for the backend of this object."""
        return {
            "boolean indexing": self._current_backend().boolean_keys,
            "data-dependent shapes": True,
            "max dimensions": None,
        }

    def default_device(self) -> str:
        """Returns the name of the device on which new tensors are created."""
        return str(self._current_backend().get_default_device())

    def devices(self) -> tuple[str, ...]:
        """Returns the names of the available devices."""
        return tuple(self._current_backend().get_available_devices())

    def default_dtypes(self, *, device: Any = None) -> dict[str, Any]:
        """Returns the default dtypes of the backend, by the kinds of the array API standard."""
        return self._spell_dtypes(default_dtypes(device=device))

    def dtypes(self, *, device: Any = None, kind: Any = None) -> dict[str, Any]:
        """Returns the backend's dtypes by name, without float16 and bfloat16, which the standard does not have.

        Args:
            kind: one of the kinds of `isdtype`, or a tuple of them; None for all dtypes.

        Raises:
            ArgumentError: if `kind` is anything else.
        """
        kind_names = tuple(KINDS) if kind is None else kind if isinstance(kind, (tuple, list)) else (kind,)
        if not all(isinstance(name, str) and name in KINDS for name in kind_names):
            raise ArgumentError(f"kind is one of {', '.join(KINDS)}, or a tuple of them, not {brief(kind)}")
        dtype_kinds = {dtype_name for name in kind_names for dtype_name in KINDS[name]}
        available_dtypes = (
            dtype for dtype in self._current_backend().dtypes.available if dtype not in (float16, bfloat16)
        )
        return self._spell_dtypes({dtype.name: dtype for dtype in available_dtypes if dtype.kind in dtype_kinds})


def __array_namespace_info__() -> ArrayNamespaceInfo:  # noqa: N807  (the standard's name)
    """Returns the inspection namespace that the array API standard requires."""
    return ArrayNamespaceInfo()
