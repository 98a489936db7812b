"""The rules by which the shape and the dtype of an op's result are found without computing it.

A rule computes the shape from the shapes and options of the arguments. The dtype, and most errors about dtypes and
options, come from the wrapped backend, which runs the op on tensors of one element (`call_with_one_element`).
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from emberharmony.core.axes import broadcast_shape, nonnegative_axes
from emberharmony.transforms.abstract_tensor import AbstractTensor

if TYPE_CHECKING:
    from emberharmony.backend.abstract import AbstractBackend


class Rule:
    """An op, as a descriptor: `run(backend, name, *args, **kwargs)` returns the result of the op of that name."""

    def __init__(self, run: Callable[..., Any]) -> None:
        self._run, self._name = run, ""

    def __set_name__(self, owner: type, name: str) -> None:
        self._name = name

    def __get__(self, backend: AbstractBackend | None, owner: type | None = None) -> Any:
        return self if backend is None else functools.partial(self._run, backend, self._name)


def call_with_one_element(backend: AbstractBackend, name: str, *args: Any, **kwargs: Any) -> Any:
    """Returns the result of the wrapped backend's primitive, called with tensors of one element in place of the others.

    Each tensor keeps its dtype and its number of axes.
    """
    wrapped_op = getattr(backend.wrapped.bound, name)
    with np.errstate(all="ignore"):
        return wrapped_op(
            *map(backend.single_element, args), **{key: backend.single_element(value) for key, value in kwargs.items()}
        )


def dtype_from(backend: AbstractBackend, name: str, *args: Any, **kwargs: Any) -> Any:
    """Returns the native dtype of a primitive's result, which the wrapped backend computes from single elements."""
    return call_with_one_element(backend, name, *args, **kwargs).dtype


def shapes_in(values: Sequence[Any]) -> list[tuple[int, ...]]:
    """Returns the shapes of the tensors among arguments."""
    return [value.shape for value in values if isinstance(value, AbstractTensor)]


def _broadcast_result(backend: AbstractBackend, name: str, *args: Any, **kwargs: Any) -> Any:
    shape = broadcast_shape(shapes_in((*args, *kwargs.values())))
    return backend.tensor_of(shape, dtype_from(backend, name, *args, **kwargs))


def pointwise_rule(name: str) -> Rule:
    """Returns the rule of an op that works element by element: the shapes of all tensors are broadcast."""
    rule = Rule(_broadcast_result)
    rule.__set_name__(Rule, name)
    return rule


def reduced_shape(shape: Sequence[int], axis: Any, keepdims: bool) -> tuple[int, ...]:
    """Returns the shape of a reduction over axes, where None stands for all."""
    axes = nonnegative_axes(axis, len(shape))
    return tuple([1 if a in axes else n for a, n in enumerate(shape) if keepdims or a not in axes])


def resized_shape(shape: Sequence[int], axis: int, length: int) -> tuple[int, ...]:
    """Returns a shape with another length of one axis, which is counted from 0."""
    return (*shape[:axis], length, *shape[axis + 1 :])
