"""Scales a loss so that small gradients do not vanish in float16."""

import math
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from emberharmony import ops
from emberharmony.core.cells.cell import Cell
from emberharmony.core.deferred import Deferred
from emberharmony.core.errors import ArgumentError
from emberharmony.core.state.commits import Step, assignment, commit
from emberharmony.core.types import Tensor, TensorLike
from emberharmony.optim.terms import all_finite, at_least_float32

if TYPE_CHECKING:
    from emberharmony.transforms import derivatives
else:
    derivatives = Deferred("emberharmony.transforms.derivatives")

_STATE = {"scale": "scale", "_growth_tracker": "steps"}
"""The names of the state in torch, and of its attributes here."""


class LossScaler:
    """A dynamic factor of the loss: halved when a gradient overflows, doubled after many steps without overflow.

    Args:
        scale: the factor of the loss at the beginning.
        growth_factor: what the factor is multiplied with after `growth_interval` steps without overflow.
        backoff_factor: what it is multiplied with after an overflow.
        growth_interval: how many steps in a row without overflow let the factor grow.

    Attributes:
        scale: the current factor.
        steps: how many steps in a row were without overflow since the factor changed.

    Raises:
        ArgumentError: if an argument is out of range.

    Example:
        >>> from emberharmony import Parameter, ops, optim
        >>> weight = Parameter([1.0])
        >>> scaler, optimizer = optim.LossScaler(1024.0), optim.SGD([weight], lr=0.5)
        >>> loss = ops.backward(lambda: scaler.scaled(ops.sum(ops.square(weight))), weight)
        >>> if scaler.unscale(weight):
        ...     optimizer.step()
        >>> weight.value.tolist(), scaler.scale
        ([0.0], 1024.0)

    Source: `torch.amp.GradScaler`; Micikevicius et al., "Mixed Precision Training", 2018.
    """

    def __init__(
        self,
        scale: float = 65536.0,
        growth_factor: float = 2.0,
        backoff_factor: float = 0.5,
        growth_interval: int = 2000,
    ) -> None:
        for name, value, is_allowed, expected_text in (
            ("scale", scale, 0 < scale < math.inf, "a positive number"),
            ("growth_factor", growth_factor, growth_factor > 1, "a number > 1"),
            ("backoff_factor", backoff_factor, 0 < backoff_factor < 1, "a number in (0, 1)"),
            ("growth_interval", growth_interval, growth_interval >= 1, "an integer >= 1"),
        ):
            if not is_allowed:
                raise ArgumentError(f"LossScaler(): {name} is {value}, expected {expected_text}")
        self.scale, self.steps = scale, 0
        self.growth_factor, self.backoff_factor, self.growth_interval = growth_factor, backoff_factor, growth_interval

    def scaled(self, loss: TensorLike) -> Tensor:
        """Returns the loss multiplied by the scaling factor, for `ops.backward`.

        Args:
            loss: a scalar, as the loss function returns it.
        """
        return ops.multiply(loss, self.scale)

    def unscale(self, params: Any) -> bool:
        """Divides the gradients of all parameters in a tree by the factor, and returns whether they are finite.

        If a gradient is not finite, all gradients become None instead, and the result is False: a step would change
        nothing. Gradients and factor change together, so an interruption leaves both as they were.

        Args:
            params: a tree, or any object that holds parameters in its attributes, such as a module.
        """
        cells = [cell for cell in derivatives.parameters_of(params) if cell.grad is not None]
        gradients = [cell.grad for cell in cells]
        tensors_and_homes: list[Any] = [None] * len(cells)
        is_finite = bool(ops.to_numpy(all_finite(gradients)))
        if is_finite:
            steps_since_change = self.steps + 1
            should_grow = steps_since_change == self.growth_interval
            scale, steps_since_change = (
                (self.scale * self.growth_factor, 0) if should_grow else (self.scale, steps_since_change)
            )
            unscaled_gradients = [
                ops.cast(ops.multiply(at_least_float32(x), 1.0 / self.scale), ops.dtype(x)) for x in gradients
            ]
            ops.eval(unscaled_gradients)
            tensors_and_homes = [Cell(gradient).tensor_and_home() for gradient in unscaled_gradients]
        else:
            scale, steps_since_change = self.scale * self.backoff_factor, 0
        assignments = [
            assignment(cell, "_grad", tensor_and_home)
            for cell, tensor_and_home in zip(cells, tensors_and_homes, strict=True)
        ]
        commit(assignments, [assignment(self, "scale", scale), assignment(self, "steps", steps_since_change)])
        return is_finite

    def state_dict(self) -> dict[str, float]:
        """Returns the scaling factor and the number of steps since it changed, by torch's names."""
        return {name: getattr(self, attribute) for name, attribute in _STATE.items()}

    def load_state_dict(self, state_dict: Mapping[str, Any]) -> None:
        """Replaces the scaling factor and the number of steps since it changed by those of a state dict.

        Raises:
            ArgumentError: if one of the two is missing.
        """
        commit(self.loading_steps(state_dict))

    def loading_steps(self, state_dict: Mapping[str, Any]) -> list[Step]:
        """Returns the assignments that `load_state_dict` makes, without making them."""
        missing_names = [name for name in _STATE if name not in state_dict]
        if missing_names:
            raise ArgumentError(f"LossScaler.load_state_dict(): the state lacks {', '.join(missing_names)}")
        return [assignment(self, attribute, state_dict[name]) for name, attribute in _STATE.items()]
