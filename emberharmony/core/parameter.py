"""A tensor that training changes, with a place for its gradient."""

from typing import Any

from emberharmony.core import selection

_OBSERVED: "list[dict[Parameter, Any]]" = []
"""The dicts of all `ReadParameters` blocks that are open."""


class ReadParameters:
    """A context manager that collects the parameters whose values are read in its block, each with its value.

    `with ReadParameters() as read:` gives the dict from parameter to value. It also contains the parameters that other
    threads read meanwhile.
    """

    def __enter__(self) -> "dict[Parameter, Any]":
        self._read: dict[Parameter, Any] = {}
        _OBSERVED.append(self._read)
        return self._read

    def __exit__(self, *raised: object) -> None:
        _OBSERVED[:] = [read for read in _OBSERVED if read is not self._read]


class Parameter:
    """A tensor to be trained, with its gradient; in a tree it is a leaf.

    The loss function that is passed to `ops.backward` reads `parameter.value`. Outside `ops.backward` the value is a
    native tensor.

    Args:
        value: a tensor, number or list; becomes a tensor of the active backend.
        trainable: whether `ops.backward` gives it a gradient.
        name: shown in messages.

    Example:
        >>> from emberharmony import Parameter, ops
        >>> weight = Parameter([1.0, 2.0])
        >>> ops.backward(lambda: ops.sum(ops.square(weight.value)), weight).tolist()
        5.0
        >>> weight.grad.tolist()
        [2.0, 4.0]
    """

    __slots__ = ("__weakref__", "_value", "grad", "name", "trainable")

    def __init__(self, value: Any, trainable: bool = True, name: str = "") -> None:
        self._value = selection.active().convert_to_tensor(value)
        self.grad: Any = None
        self.trainable, self.name = trainable, name

    @property
    def value(self) -> Any:
        """The current tensor."""
        for read in _OBSERVED:
            read[self] = self._value
        return self._value

    @value.setter
    def value(self, value: Any) -> None:
        self._value = value

    def __repr__(self) -> str:
        name = f"{self.name!r}, " if self.name else ""
        frozen = "" if self.trainable else ", frozen"
        return f"Parameter({name}shape={tuple(self.value.shape)}, dtype={self.value.dtype}{frozen})"
