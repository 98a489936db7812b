"""`Graph`, a captured module as plain data: its calls of operators, inputs, registers and results."""

from collections.abc import Sequence
from typing import Any, NamedTuple

from emberharmony.interop.torch.structure import Signature, Template
from emberharmony.transforms.program import Program

FLOAT = "float"
"""The mark for the dtype of the model's parameters, in the place of the dtype that they had at the capture."""

LAYER = "layer"
"""The function name of calls of a layer of this library; the first argument of such a call is the layer."""


class Slot(NamedTuple):
    """An input of a captured program: a parameter, a constant, a layer, an argument or the dtype.

    Attributes:
        kind: "dtype" for the dtype of the parameters, "cell" for a parameter or buffer, "constant" for a tensor of the
            graph, "layer" for a layer, and "input" for a tensor that is an argument.
        target: the name of the parameter, buffer, constant or layer; the path of the argument.
        dtype: the dtype of the tensor, or `FLOAT`.
        shape: its lengths; a string names one that varies.
    """

    kind: str
    target: str
    dtype: str | None = None
    shape: tuple[int | str, ...] = ()


class Graph(NamedTuple):
    """The captured program of a module in one mode, training or evaluation.

    Attributes:
        program: the calls. Their functions are names of operators of PyTorch.
        slots: what each input of the program holds.
        dtypes: the dtype of each register; None if it holds no tensor.
        lines: the line of the model for each call.
        written: the names of buffers that the first outputs are assigned to; the other outputs are results.
        signature: the arguments.
        result: how results are made of the other outputs.
        reference: the name of a parameter whose dtype is that of the model; None if it has none.
    """

    program: Program
    slots: Sequence[Slot]
    dtypes: Sequence[str | None]
    lines: Sequence[str]
    written: Sequence[str]
    signature: Signature
    result: Template
    reference: str | None

    @property
    def inputs(self) -> list[tuple[int, Slot]]:
        """The inputs that are arguments, as pairs of register number and slot."""
        return [(i, slot) for i, slot in enumerate(self.slots) if slot.kind == "input"]

    def describe_call(self, place: int) -> str:
        """Returns a text for messages with the operator of a call and the line of the model that makes it."""
        name: Any = self.program.calls[place].function
        return f"{name}{f', {self.lines[place]}' if self.lines[place] else ''}"
