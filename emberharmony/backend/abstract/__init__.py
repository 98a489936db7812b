"""The backend that wraps another one and computes only the shapes and dtypes of its results.

It has a rule for the shape of each primitive, and of composites whose rule is cheaper than the body; elementwise ops
share one, and other composites run through their bodies. The dtype, and the errors about dtypes and options, come from
the wrapped backend, which runs the op on tensors of one element. Some composites are overridden because their bodies
read values on which their shapes do not depend, or because a loop would take many equal steps.

The fake tensors of PyTorch and the laziness of MLX would do the same for native functions, but each op that computes on
the host, or reads a value for a check, would need an exception there, and NumPy needs the rules anyway. With them alone
all backends, also those of third parties, give the same answers.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from emberharmony.backend.abstract.creation import AbstractCreation
from emberharmony.backend.abstract.indexing import AbstractIndexing
from emberharmony.backend.abstract.linear import AbstractLinear
from emberharmony.backend.abstract.loops import AbstractLoops
from emberharmony.backend.abstract.readers import AbstractReaders
from emberharmony.backend.abstract.reductions import AbstractReductions
from emberharmony.backend.abstract.rules import pointwise_rule
from emberharmony.backend.abstract.shapes import AbstractShapes
from emberharmony.backend.abstract.tensors import AbstractTensors
from emberharmony.backend.base import Backend
from emberharmony.core.registry import OPS, complete
from emberharmony.core.tracing import TensorProxy
from emberharmony.transforms.abstract_tensor import AbstractTensor, NoValueError


class AbstractBackend(
    AbstractReductions,
    AbstractCreation,
    AbstractShapes,
    AbstractIndexing,
    AbstractLinear,
    AbstractTensors,
    AbstractLoops,
    AbstractReaders,
    Backend,
):
    """A backend whose tensors have the shapes and dtypes of the wrapped backend's, and no values.

    It has a rule for every primitive; one that no base class defines works element by element, like most. So do the
    composites that say it. The bodies of all others run over these, so no op of the wrapped backend runs on tensors of
    more than one element.
    """

    tensor_type = AbstractTensor
    defines_all = True
    observable = False

    def __init__(self, wrapped: Backend) -> None:
        complete()
        for op, spec in OPS.items():
            if getattr(type(self), op, None) is None and (spec.facts.elementwise or not spec.composite):
                setattr(type(self), op, pointwise_rule(op))
        self.wrapped = wrapped
        self.name, self.dtypes, self.errors = wrapped.name, wrapped.dtypes, wrapped.errors  # type: ignore[misc]
        super().__init__()
        self.home = wrapped.home

    @classmethod
    def over(cls, wrapped: Backend) -> AbstractBackend:
        """Returns the backend that computes shapes as another backend does; there is one for each backend object."""
        if isinstance(wrapped, AbstractBackend):  # a call inside of another one
            return wrapped
        wrapped = wrapped.without_watchers
        if "_abstract" not in wrapped.__dict__:
            wrapped.__dict__.setdefault("_abstract", cls(wrapped))
        abstract_backend: AbstractBackend = wrapped.__dict__["_abstract"]
        return abstract_backend

    @property
    def version(self) -> str:
        """The version of the library behind the wrapped backend."""
        return self.wrapped.version

    def tensor_of(self, shape: Sequence[int], dtype: Any, known: Any = None) -> AbstractTensor:
        """Returns a tensor without values that has this shape and native dtype."""
        return AbstractTensor(self, shape, dtype, known)

    def single_element(self, value: Any) -> Any:
        """Returns, for a tensor, a tensor of the wrapped backend with the single element 1; other values unchanged."""
        if isinstance(value, list):
            return [self.single_element(item) for item in value]
        if not isinstance(value, AbstractTensor):
            return value
        shape, neutral_dtype = (1,) * value.ndim, self.dtypes.neutral[value.dtype]
        if neutral_dtype == "bfloat16":  # which NumPy has only with ml_dtypes
            return self.wrapped.bound.ones(shape, value.dtype)
        # Make a new tensor each time, because the default device may have changed since.
        return self.wrapped.from_numpy(np.ones(shape, neutral_dtype.name))

    def from_numpy(self, array: np.ndarray[Any, Any]) -> AbstractTensor:
        """Returns the shape and dtype of a host array, with its values.

        Raises:
            DTypeError: if the wrapped backend does not have this dtype.
        """
        return self.tensor_of(array.shape, self.dtypes[array.dtype.name], array)

    def convert(self, value: Any, dtype: Any = None) -> Any:
        """Returns a `TensorLike` value as a tensor without values, or with the values that were given.

        Raises:
            EmberError: as `Backend.convert` does.
        """
        if isinstance(value, AbstractTensor):
            return value
        abstract_value = self.adopt(value)
        return abstract_value if isinstance(abstract_value, AbstractTensor) else super().convert(value, dtype)

    def adopt(self, value: Any) -> Any:
        """Returns a tensor of the wrapped backend as one of this backend, with its values; other values unchanged."""
        if isinstance(value, AbstractTensor) or not self.wrapped.is_tensor(value) or isinstance(value, np.ndarray):
            return value
        native_tensor = None if isinstance(value, TensorProxy) else value
        return self.tensor_of(value.shape, value.dtype, native_tensor)

    def adopt_all(self, values: Any) -> Any:
        """Returns values with the tensors of the wrapped backend, at any depth in lists and tuples, as ones of this."""
        if values.__class__ is not list and values.__class__ is not tuple:
            return self.adopt(values)
        return values.__class__(map(self.adopt_all, values))

    def is_tensor(self, value: object) -> bool:
        """Returns whether `value` is a tensor of this backend or of the wrapped one."""
        return isinstance(value, AbstractTensor) or self.wrapped.is_tensor(value)

    def device_scope(self, device: Any) -> Any:
        """Returns the wrapped backend's context manager for `with ops.device(...)`."""
        return self.wrapped.device_scope(device)

    def pullback(
        self, fn: Callable[..., Sequence[Any]], primals: Sequence[Any]
    ) -> tuple[list[Any], Callable[[Sequence[Any]], list[Any]]]:
        """Returns the outputs of `fn`, and a function that returns gradients: they have the shapes of the primals."""
        return list(fn(*primals)), lambda cotangents: [self.tensor_of(x.shape, x.dtype) for x in primals]

    def linearize(self, fn: Callable[..., Sequence[Any]], primals: Sequence[Any]) -> Any:
        """Returns a function that returns the outputs of `fn` and their tangents, which have the same shapes."""

        def push_tangents(tangents: Sequence[Any]) -> tuple[list[Any], list[Any]]:
            outputs = list(fn(*primals))
            return outputs, [self.tensor_of(y.shape, y.dtype) for y in outputs]

        return push_tangents

    def map_slices(
        self, fn: Callable[..., Sequence[Any]], tensors: Sequence[Any], axes: Sequence[int], same: bool = False
    ) -> list[Any]:
        """Returns the results of `fn` for one slice, with the mapped axis in front: all slices have the same shapes."""
        slice_count = tensors[0].shape[axes[0]]
        slice_results = fn(*(self.bound.take(x, 0, axis=axis) for x, axis in zip(tensors, axes, strict=True)))
        return [self.bound.broadcast_to(y, (slice_count, *y.shape)) for y in slice_results]

    def cannot_transform(self, error: BaseException | None) -> bool:
        """Returns whether an error says that a value of a tensor without values was read."""
        return isinstance(error, NoValueError)
