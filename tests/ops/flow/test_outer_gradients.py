"""What a gradient returns beside it, and the value, have the derivatives that an outer gradient asks for."""

from collections.abc import Callable
from typing import Any

import pytest

from emberharmony import ops

LOSSES: dict[str, Callable[[Any, Any], Any]] = {
    "of the inner": lambda w, x: ops.multiply(w, w),
    "of both": lambda w, x: ops.multiply(w, x),
    "the outer itself": lambda w, x: x,
    "a number": lambda w, x: ops.ones(()),
}
BESIDE: dict[str, tuple[Callable[[Any, Any], Any], float]] = {
    "of the outer": (lambda w, x: ops.multiply(x, x), 4.0),
    "of both": (lambda w, x: ops.multiply(x, w), 3.0),
    "the outer itself": (lambda w, x: x, 1.0),
    "of the inner": (lambda w, x: ops.multiply(w, w), 0.0),
}


@pytest.mark.parametrize("loss", LOSSES)
def test_an_outer_gradient_goes_through_what_is_returned_beside(loss: str, backend: str) -> None:
    w = ops.array(3.0)
    for name, (beside, wanted) in BESIDE.items():

        def outer(x: Any, beside: Any = beside) -> Any:
            return ops.grad(lambda w: (LOSSES[loss](w, x), beside(w, x)), has_aux=True)(w)[1]

        assert (name, ops.grad(outer)(ops.array(2.0)).tolist()) == (name, wanted)


def test_an_outer_gradient_goes_through_the_value(backend: str) -> None:
    wanted = {"of the inner": 0.0, "of both": 3.0, "the outer itself": 1.0, "a number": 0.0}
    for name, loss in LOSSES.items():

        def outer(x: Any, loss: Any = loss) -> Any:
            return ops.value_and_grad(lambda w: loss(w, x))(ops.array(3.0))[0]

        assert (name, ops.grad(outer)(ops.array(2.0)).tolist()) == (name, wanted[name])
