"""Checks the arguments of `fit` before training, and with the first batch."""

import inspect
import math
import warnings
from collections.abc import Mapping
from typing import Any

from emberharmony import ops
from emberharmony.core.cells.models import warn_of_new_parameters
from emberharmony.core.errors import ArgumentError, ArgumentTypeError, TrainingWarning, brief
from emberharmony.nn.module import Module
from emberharmony.transforms import parameterless


def require_fit_arguments(module: Any, loss_fn: Any, optimizer: Any, batches: Any, validation: Any) -> None:
    """Checks the types of the module, the loss, the optimizer and the batches that `fit` gets.

    Raises:
        ArgumentError: if no parameter is trained.
        ArgumentTypeError: if one of them is something else than `fit` takes.
    """
    if not isinstance(module, Module):
        hint = f": make a model of the class, {module.__name__}()" if isinstance(module, type) else ""
        if hasattr(module, "shape"):
            hint = ": pass the model itself, without calling it"
        raise ArgumentTypeError(f"fit() trains an nn.Module, not {brief(module)}{hint}")
    if not module.parameters(trainable=True):
        raise ArgumentError(f"fit(): there is no trainable Parameter{parameterless.advice_text(module)}")
    _refuse_loss_of_predictions(loss_fn)
    if not callable(loss_fn) or not hasattr(optimizer, "zero_grad") or isinstance(optimizer, type):
        swapped_texts = brief(loss_fn), brief(optimizer)
        raise ArgumentTypeError(
            f"fit(): expected a function for the loss and an optimizer, got {swapped_texts[0]} and {swapped_texts[1]}; "
            f"the order is fit(model, loss_fn, optimizer, batches), as in fit(model, lambda x, y: loss_fn(model(x), "
            f"y), optim.Adam(model), batches)"
        )
    if validation is not None and not callable(validation):
        raise ArgumentTypeError(
            f"fit(): validation is {brief(validation)}, expected a function that returns the validation loss, such as "
            f"lambda: loss_fn(x, y)"
        )
    has_arrays = isinstance(batches, tuple) and any(hasattr(item, "shape") for item in batches)
    if (
        has_arrays
        or hasattr(batches, "shape")
        or isinstance(batches, (str, Mapping))
        or not hasattr(batches, "__iter__")
    ):
        raise ArgumentTypeError(
            f"fit(): batches is {brief(batches)}, expected batches of rows: nn.data.batches(x, y, batch_size=32)"
        )


def _refuse_loss_of_predictions(loss_fn: Any) -> None:
    """Checks that `fit` gets a loss of the batch, which calls the model, and not one of predictions and targets."""
    loss_function = loss_fn if hasattr(loss_fn, "__name__") else type(loss_fn)
    if getattr(loss_function, "__module__", "").startswith("emberharmony.nn.losses"):
        name = getattr(loss_function, "__name__", "loss_fn")
        loss_text = f"nn.losses.{name}" if loss_function is loss_fn and not isinstance(loss_fn, type) else "loss_fn"
        raise ArgumentTypeError(
            f"fit(): {name} takes predictions and targets, and would not call the model: pass lambda x, y: "
            f"{loss_text}(model(x), y), with a parameter for each array of nn.data.batches"
        )


def require_positive_numbers(numbers: Mapping[str, Any], callbacks: Any) -> None:
    """Checks that the numeric arguments of `fit` are None or positive, and that its callbacks are functions.

    Raises:
        ArgumentError: if a number is not positive, or both `steps` and `epochs` are given.
        ArgumentTypeError: if a number is something else, or `callbacks` is not a list of functions.
    """
    if numbers["steps"] is not None and numbers["epochs"] is not None:
        raise ArgumentError("fit() takes steps or epochs, not both")
    for name, number in numbers.items():
        if isinstance(number, (str, list, tuple)):
            raise ArgumentTypeError(f"fit(): {name} must be a number, got {brief(number)}")
        if name in ("steps", "epochs", "validate_every") and isinstance(number, float) and number % 1:
            raise ArgumentError(f"fit(): {name} must be an integer, got {brief(number)}: int(n) makes one")
        if number is not None and not number > 0:
            raise ArgumentError(f"fit(): {name} must be above 0, got {brief(number)}")
    if callable(callbacks) or not all(map(callable, callbacks)):
        raise ArgumentTypeError(f"fit(): callbacks is a list of functions of a Step, not {brief(callbacks)}")


def require_loss_of_batch(loss_fn: Any, inputs: tuple[Any, ...]) -> None:
    """Checks that the loss of `fit` takes as many arguments as a batch has parts.

    Raises:
        ArgumentTypeError: if it takes more or fewer arguments.
    """
    try:
        signature = inspect.signature(loss_fn)
    except (TypeError, ValueError):  # functions written in C may have no signature
        return
    try:
        signature.bind(*inputs)
    except TypeError as error:
        parameters_text = ", ".join(signature.parameters)
        raise ArgumentTypeError(
            f"fit() calls the loss with the {len(inputs)} parts of a batch, and this one takes ({parameters_text}): "
            f"{error}; write lambda x, y: loss_fn(model(x), y), with a parameter for each array of nn.data.batches"
        ) from None


def warn_of_double_precision(module: Module, loss_fn: Any, inputs: tuple[Any, ...], loss: Any) -> None:
    """Warns if a batch or some parameters are float64, so that a float32 model computes in float64.

    Args:
        module: the model; one whose parameters are all of float64 means it.
        loss_fn: the loss, whose parameters name the parts of a batch.
        inputs: the parts.
        loss: what it returned for them.
    """
    if not _is_double(loss) or all(map(_is_double, module.parameters())):
        return
    part_names = _names_of_parts(loss_fn, len(inputs))
    double_texts = [
        f"{name} of the batch"
        for name, batch_part in zip(part_names, inputs, strict=True)
        if any(map(_is_double, filter(ops.is_tensor, ops.tree_leaves(batch_part))))
    ]
    double_texts += [
        repr(name) for name, cell in (*module.named_parameters(), *module.named_buffers()) if _is_double(cell)
    ]
    if double_texts:
        warnings.warn(
            f"fit() computes in float64, because these are of float64, as NumPy makes them: "
            f"{', '.join(double_texts[:5])}; other parameters are of float32: make them by x.astype('float32'), "
            f"or the model by model.to(dtype='float64')",
            TrainingWarning,
            stacklevel=6,
        )


def _is_double(x: Any) -> bool:
    return bool(ops.dtype(x) == ops.float64)


def _names_of_parts(loss_fn: Any, count: int) -> list[str]:
    """Returns the names of the loss's parameters for the parts of a batch, or numbers where it has none."""
    try:
        parameter_names = list(inspect.signature(loss_fn).parameters)
    except (TypeError, ValueError):  # functions written in C may have no signature
        parameter_names = []
    return [*parameter_names[:count], *(f"part {i}" for i in range(len(parameter_names), count))]


def warn_of_missing_parameters(module: Module, optimizer: Any) -> None:
    """Warns of parameters of a model that the optimizer lacks, if it has parameters that the model no longer has."""
    if not hasattr(optimizer, "parameters"):
        return
    optimized_cells, trained_by_name = set(optimizer.parameters()), dict(module.named_parameters(True))
    missing_names = [name for name, cell in trained_by_name.items() if cell not in optimized_cells]
    if (
        missing_names
        and len(missing_names) < len(trained_by_name)
        and not optimized_cells <= set(trained_by_name.values())
    ):
        warn_of_new_parameters(optimizer, "fit()", missing_names, 3)


def warn_of_early_end(epoch: int, wanted: float) -> None:
    """Warns that the batches ended before all epochs, because an iterator yields its items only once."""
    if 0 < epoch < math.ceil(wanted):
        warnings.warn(
            f"fit() made {epoch} of {wanted} epochs, because batches gave no more: an iterator gives its items once, "
            f"so pass nn.data.batches(x, y, batch_size=32) or a list",
            TrainingWarning,
            stacklevel=4,
        )
