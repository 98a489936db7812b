"""The constructors and limits that follow from the fields of an optimizer."""

import inspect

import pytest

from emberharmony import optim
from emberharmony.core.errors import ArgumentError


def test_options_are_in_the_groups_and_no_attributes() -> None:
    assert str(inspect.signature(optim.Lion.__init__)).startswith("(self, params: Any = None, lr: float | ")
    assert str(inspect.signature(optim.Lion)).endswith(
        "betas: tuple[float, float] = (0.9, 0.99), weight_decay: float = 0.0, *, maximize: bool = False) -> None"
    )
    optimizer = optim.Lion(None, 0.5, maximize=True)
    assert optimizer.defaults == {"lr": 0.5, "betas": (0.9, 0.99), "weight_decay": 0.0, "maximize": True}
    assert not any(hasattr(optimizer, name) for name in ("params", "lr", "betas", "maximize", "_"))
    assert list(optim.Lion.limits) == list(optimizer.defaults)
    with pytest.raises(TypeError, match=r"Lion.__init__\(\) got an unexpected keyword argument 'beta'"):
        optim.Lion(beta=0.5)  # type: ignore[call-arg]
    with pytest.raises(ArgumentError, match=r"Lion\(\): maximize is 1, expected True or False"):
        optim.Lion(maximize=1)  # type: ignore[arg-type]
