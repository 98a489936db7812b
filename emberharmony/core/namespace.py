"""What the array API standard lets a library ask of a namespace: `ops.__array_namespace_info__()`."""

from collections.abc import Iterator
from typing import Any

from emberharmony.core import selection
from emberharmony.core.dtypes import DType, as_dtype, bfloat16, default_complex, default_float, float16
from emberharmony.core.errors import ArgumentError, brief
from emberharmony.core.numeric.finfo import KINDS


def capabilities() -> dict[str, Any]:
    """Returns whether there are boolean indexing and shapes that depend on data, and the most axes, if limited."""
    return {"boolean indexing": True, "data-dependent shapes": True, "max dimensions": None}


def default_dtypes(*, device: Any = None) -> dict[str, DType]:
    """Returns the dtypes numbers take when none is named, by the kinds of the array API standard."""
    return {
        "real floating": default_float(),
        "complex floating": default_complex(),
        "integral": as_dtype(int),
        "indexing": as_dtype("int64"),
    }


class ArrayNamespaceInfo:
    """Tells what the active backend can do.

    Example:
        >>> ops.__array_namespace_info__().capabilities()["data-dependent shapes"]
        True
    """

    def capabilities(self) -> dict[str, Any]:
        """Returns what the function of that name does."""
        return capabilities()

    def default_device(self) -> str:
        """Returns the name of the device new tensors are made on."""
        return str(selection.current().get_default_device())

    def devices(self) -> tuple[str, ...]:
        """Returns the names of the devices there are."""
        return tuple(selection.current().get_available_devices())

    def default_dtypes(self, *, device: Any = None) -> dict[str, DType]:
        """Returns what the function of that name does."""
        return default_dtypes(device=device)

    def dtypes(self, *, device: Any = None, kind: Any = None) -> dict[str, DType]:
        """Returns those of the active backend's dtypes that the standard knows, by name: not float16 and bfloat16.

        Args:
            kind: one of the kinds of `isdtype`, or a tuple of them.

        Raises: ArgumentError for another kind.
        """
        wanted = tuple(KINDS) if kind is None else kind if isinstance(kind, (tuple, list)) else (kind,)
        if not all(isinstance(name, str) and name in KINDS for name in wanted):
            raise ArgumentError(f"kind is one of {', '.join(KINDS)}, or a tuple of them, not {brief(kind)}")
        kinds = {own for name in wanted for own in KINDS[name]}
        return {dtype.name: dtype for dtype in _available() if dtype.kind in kinds}


def _available() -> Iterator[DType]:
    return (dtype for dtype in selection.current().dtypes.available if dtype not in (float16, bfloat16))


def __array_namespace_info__() -> ArrayNamespaceInfo:  # noqa: N807  (the standard's name)
    """Returns what can be asked of the namespace, as the array API standard says."""
    return ArrayNamespaceInfo()
