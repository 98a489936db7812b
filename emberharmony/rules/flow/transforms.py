"""Gradient rule of `custom_vjp`, which calls the gradient that a user wrote for it."""

from typing import Any

from emberharmony.ops.dtype import dtype
from emberharmony.ops.elementwise.complex_numbers import conj

T = Any


def _custom_vjp_gradients(g: list[T], y: list[T], forward: Any, backward: Any, primals: list[T]) -> list[Any]:
    # The tape holds conjugated gradients of complex numbers (see `transforms.tape`), which users never see.
    return [None, None, [_conjugate(x) for x in backward(primals, [_conjugate(x) for x in g])]]


def _conjugate(x: T) -> T:
    return conj(x) if dtype(x).is_complex else x


RULES = {"custom_vjp": _custom_vjp_gradients}
