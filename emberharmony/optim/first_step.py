"""Warns of gradients that are all zero or not finite at the first step of an optimizer; later steps are not checked."""

import math
import warnings
from collections.abc import Sequence
from typing import Any

from emberharmony import ops
from emberharmony.core.errors import TrainingWarning


def warn_of_gradients(caller: str, gradients: Sequence[Any]) -> None:
    """Warns if all gradients of a first step are zero, or if some number in them is not finite.

    Args:
        caller: whose step it is, as `Adam.step()`.
        gradients: the gradients of all parameters.
    """
    float32_gradients = [ops.cast(ops.stop_gradient(x), "float32") for x in gradients if math.prod(x.shape)]
    magnitude_sums = [ops.sum(ops.abs(x)) for x in float32_gradients]
    total_magnitude = (
        float(ops.sum(ops.stack(magnitude_sums))) if magnitude_sums else 1.0
    )  # emberlint: ignore[precision-cast] -- for a message
    if total_magnitude == 0.0:
        message = (
            "the gradients are zero: does the loss call this model, and has it no function without a slope, such as "
            "argmax, round, a comparison or one of NumPy? nn.fit takes lambda x, y: loss_fn(model(x), y), "
            "and ops.backward lambda: loss_fn(model(x), y)"
        )
    elif not math.isfinite(total_magnitude):
        message = (
            f'the gradients are not finite ({total_magnitude}), and the parameters will not be: ops.backward in "with '
            "ops.checked('nan'):\" names the op that makes the first NaN or infinity; the data may have some"
        )
    else:
        return
    warnings.warn(f"at the first {caller} {message}", TrainingWarning, stacklevel=3)
