"""Averages of parameters over the steps of a training."""

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from emberharmony import Buffer, Parameter, ops
from emberharmony.core.deferred import Deferred
from emberharmony.core.errors import ArgumentError
from emberharmony.core.state.commits import Step, assignment, commit
from emberharmony.core.types import Tensor
from emberharmony.optim.saved import to_active_backend

if TYPE_CHECKING:
    from emberharmony.transforms import derivatives, parameterless
else:
    derivatives = Deferred("emberharmony.transforms.derivatives")
    parameterless = Deferred("emberharmony.transforms.parameterless")


class Average:
    """The base of averages of parameters: one buffer for each trainable parameter in a tree.

    A subclass defines `weight`.

    Args:
        params: a tree with parameters.

    Attributes:
        parameters: the parameters that are averaged.
        averages: their averages, in buffers, so they follow the active backend.
        count: how many values are in the averages.

    Raises:
        ArgumentError: if there is no trainable parameter.
    """

    def __init__(self, params: Any) -> None:
        cells = derivatives.parameters_of(list(params) if hasattr(params, "__next__") else params)
        self.parameters = [cell for cell in cells if isinstance(cell, Parameter) and cell.trainable]
        if not self.parameters:
            raise ArgumentError(
                f"{type(self).__name__}(): there is no trainable Parameter in params{parameterless.advice_text(params)}"
            )
        self.averages = [Buffer(cell.value, name=cell.name) for cell in self.parameters]
        self.count = 0

    def weight(self) -> float:
        """Returns the weight that the next value gets in the average; subclasses define it."""
        raise NotImplementedError

    def update(self) -> None:
        """Updates the averages by the current values of the parameters; at the first call they become the averages."""
        weight = self.weight() if self.count else 1.0
        new_averages = [_mix(a.value, p.value, weight) for a, p in zip(self.averages, self.parameters, strict=True)]
        ops.eval(new_averages)
        steps = [average.replace_step(value) for average, value in zip(self.averages, new_averages, strict=True)]
        commit(steps, [(setattr, self, "count", self.count + 1)])

    def swap(self) -> None:
        """Exchanges the averages and the values of the parameters; a second call puts both back."""
        cells_and_values = [(a, p, a.value, p.value) for a, p in zip(self.averages, self.parameters, strict=True)]
        commit(step for a, p, x, y in cells_and_values for step in (a.replace_step(y), p.replace_step(x)))

    def state_dict(self) -> dict[str, Any]:
        """Returns the averages, in the order of the parameters, and their count."""
        return {"averages": [average.value for average in self.averages], "count": self.count}

    def load_state_dict(self, state_dict: Mapping[str, Any]) -> None:
        """Replaces the averages and their count by those of a state dict, whose tensors may be of any backend.

        Raises:
            ArgumentError: if anything is missing or unexpected, or the shapes differ; nothing is changed then.
        """
        commit(self.loading_steps(state_dict))

    def loading_steps(self, state_dict: Mapping[str, Any]) -> list[Step]:
        """Returns the assignments that `load_state_dict` makes, without making them."""
        message_start = f"{type(self).__name__}.load_state_dict(): "
        if state_dict.keys() != {"averages", "count"}:
            raise ArgumentError(f"{message_start}the state has {sorted(state_dict)}, expected ['averages', 'count']")
        averages = [to_active_backend(value) for value in state_dict["averages"]]
        saved_shapes, expected_shapes = (
            [tuple(x.shape) for x in tensor_list] for tensor_list in (averages, [a.value for a in self.averages])
        )
        if saved_shapes != expected_shapes:
            raise ArgumentError(
                f"{message_start}the averages have the shapes {saved_shapes}, expected {expected_shapes}"
            )
        cast_averages = [ops.cast(x, ops.dtype(a.value)) for x, a in zip(averages, self.averages, strict=True)]
        steps = [average.replace_step(value) for average, value in zip(self.averages, cast_averages, strict=True)]
        return [*steps, assignment(self, "count", int(state_dict["count"]))]


class EMA(Average):
    """The exponential moving average of parameters: `average + (1 - decay) * (value - average)` in each update.

    Args:
        params: a tree with parameters.
        decay: the share of the old average.

    Raises:
        ArgumentError: if there is no trainable parameter, or `decay` is not in [0, 1].

    Example:
        >>> from emberharmony import Parameter, optim
        >>> weight = Parameter([1.0])
        >>> average = optim.EMA(weight, decay=0.5)
        >>> for value in (2.0, 4.0, 8.0):
        ...     weight.value = [value]
        ...     average.update()
        >>> average.swap()  # to evaluate the model with the averages
        >>> weight.value.tolist()
        [5.5]
        >>> average.swap()
        >>> weight.value.tolist()
        [8.0]

    Source: `torch.optim.swa_utils.get_ema_avg_fn`.
    """

    def __init__(self, params: Any, decay: float = 0.999) -> None:
        if not 0 <= decay <= 1:
            raise ArgumentError(f"EMA(): decay is {decay}, expected a number in [0, 1]")
        super().__init__(params)
        self.decay = decay

    def weight(self) -> float:
        """Returns the weight that the next value gets in the average."""
        return 1 - self.decay


class SWA(Average):
    """The plain mean of the values that parameters had at each update, for stochastic weight averaging.

    Args:
        params: a tree with parameters.

    Raises:
        ArgumentError: if there is no trainable parameter.

    Example:
        >>> from emberharmony import Parameter, optim
        >>> weight = Parameter([1.0])
        >>> average = optim.SWA(weight)
        >>> for value in (1.0, 2.0, 6.0):
        ...     weight.value = [value]
        ...     average.update()
        >>> average.averages[0].value.tolist()
        [3.0]

    Source: Izmailov et al., "Averaging Weights Leads to Wider Optima and Better Generalization", 2018;
    `torch.optim.swa_utils.AveragedModel`.
    """

    def weight(self) -> float:
        """Returns the weight that the next value gets in the average."""
        return 1 / (self.count + 1)


def _mix(average: Tensor, value: Tensor, weight: float) -> Tensor:
    return value if weight == 1 else ops.add(average, ops.multiply(ops.subtract(value, average), weight))
