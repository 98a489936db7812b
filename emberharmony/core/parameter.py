"""The cells of a model: tensors that training changes, and state that it does not differentiate."""

import warnings
from typing import Any

from emberharmony.core import op_globals
from emberharmony.core.cells.blocks import THREAD
from emberharmony.core.cells.cell import Cell
from emberharmony.core.errors import TrainingWarning


class Parameter(Cell):
    """A tensor to be trained, with its gradient; it follows the active backend.

    Ops, operators and the functions of the active library take a parameter in the place of its tensor,
    `parameter.value`. Its own operators and methods are ops. It is not changed in place: assign `parameter.value`.

    If another backend has become active, the tensor is converted exactly when it is read next, and so is the gradient
    `grad`. In a tree a parameter is a leaf.

    Args:
        value: a tensor, number or list; becomes a tensor of the active backend.
        trainable: whether `ops.backward` gives it a gradient.
        name: shown in messages.

    Example:
        >>> from emberharmony import Parameter, ops
        >>> weight = Parameter([1.0, 2.0])
        >>> ops.backward(lambda: ops.sum(ops.square(weight)), weight).tolist()
        5.0
        >>> weight.grad.tolist()
        [2.0, 4.0]
    """

    __slots__ = ("trainable",)

    def __init__(self, value: Any, trainable: bool = True, name: str = "") -> None:
        super().__init__(value, name)
        self.trainable = trainable
        if value.__class__ is tuple and trainable and value and {*map(type, value)} == {int}:
            warnings.warn(
                f"Parameter({value}) holds these integers; one of this shape is Parameter(ops.zeros({value}))",
                TrainingWarning,
                stacklevel=2,
            )
        if trainable and THREAD.entry is not None and THREAD.entry[0]:  # other parameters hold traced tensors
            warnings.warn(
                "a Parameter is made in a function that is differentiated or compiled: each call makes a new one "
                "that no optimizer changes; make it, or the layer that holds it, once in __init__ (self.layer = ...)",
                TrainingWarning,
                stacklevel=2,
            )

    def _extra_text(self) -> str:
        return "" if self.trainable else ", frozen"


class Buffer(Cell):
    """A tensor that belongs to a model and follows the active backend, but has no gradient, such as a running mean.

    What the loss function of `ops.backward` assigns to a buffer is kept.

    Args:
        value: a tensor, number or list; becomes a tensor of the active backend.
        persistent: whether it belongs to the state that is saved, rather than being computed anew.
        name: shown in messages.

    Example:
        >>> from emberharmony import Buffer, ops
        >>> mean = Buffer([0.0, 0.0])
        >>> mean.value = ops.add(mean, 1.0)
        >>> mean.value.tolist()
        [1.0, 1.0]
    """

    __slots__ = ("persistent",)

    def __init__(self, value: Any, persistent: bool = True, name: str = "") -> None:
        super().__init__(value, name)
        self.persistent = persistent

    def _extra_text(self) -> str:
        return "" if self.persistent else ", not persistent"


for _class in (Parameter, Buffer):
    _class.__module__ = "emberharmony"  # the public module, which pickles name

op_globals.publish(parameter=Parameter)
