"""The layers of this library that captured modules use in the places of equal layers of PyTorch."""

import inspect
from collections.abc import Mapping
from typing import Any

from emberharmony import Parameter, nn, ops
from emberharmony.core.cells.cell import Cell
from emberharmony.core.errors import ArgumentError, CaptureError, EmberError, brief

_SAME = (nn.Linear, nn.Embedding, nn.Conv1d, nn.Conv2d, nn.Conv3d, nn.LayerNorm, nn.GroupNorm, nn.RMSNorm)
"""The layers that compute the same function as PyTorch's layers of the same names."""


class Conv1D(nn.Module):
    """The `Conv1D` of transformers: a linear layer whose weight is transposed.

    Args:
        nf: the length of the last axis of the output.
        nx: the length of the last axis of the input.
    """

    def __init__(self, nf: int, nx: int) -> None:
        self.nf, self.nx = nf, nx
        self.weight, self.bias = Parameter(ops.zeros((nx, nf))), Parameter(ops.zeros((nf,)))

    def __call__(self, x: Any) -> Any:
        """Returns `x @ weight + bias`."""
        return ops.add(ops.matmul(x, self.weight), self.bias)

    def to_linear(self) -> nn.Linear:
        """Returns an equal linear layer, with a transposed copy of the weight and the same bias object."""
        layer = nn.Linear(self.nx, self.nf, False, rng=ops.random.Generator(0))
        layer.weight = Parameter(ops.matrix_transpose(self.weight), trainable=self.weight.trainable)
        layer.bias = self.bias
        return layer.train(self.training)


KINDS: dict[str, type[nn.Module]] = {
    kind.__name__: kind for kind in (*_SAME, Conv1D, nn.LoRALinear, nn.QuantizedLinear, nn.QuantizedEmbedding)
}
"""The layer classes that a captured program can use, by class name."""


def make_layer(path: str, options: Any, cells: Mapping[str, Any]) -> nn.Module:
    """Returns a layer of this library made from its options, with the given parameters and buffers.

    Args:
        path: its name in the model.
        options: its class under "class", and the arguments of the constructor by name.
        cells: its parameters and buffers by name.

    Raises:
        CaptureError: if there is no such layer, or its parameters have other names or shapes.
    """
    argument_by_name = dict(options) if isinstance(options, dict) else {}
    layer_class = KINDS.get(str(argument_by_name.pop("class", "")))
    if layer_class is None:
        raise CaptureError(f"the program is damaged: layer {path} has {brief(options)}")
    layer = _make_layer_without_draws(path, layer_class, argument_by_name)
    cell_by_name = cells_of(layer)
    class_and_shape_by_name = {name: (type(cell), tuple(cell.shape)) for name, cell in cell_by_name.items()}
    given_class_and_shape_by_name = {name: (type(cell), tuple(cell.shape)) for name, cell in cells.items()}
    if class_and_shape_by_name != given_class_and_shape_by_name:
        raise CaptureError(
            f"the program is damaged: {path}, a {layer_class.__name__}, has {brief(given_class_and_shape_by_name)}, "
            f"not {brief(class_and_shape_by_name)}"
        )
    module_by_path = dict(layer.named_modules())
    for name, cell in cells.items():
        owner, _, cell_attribute = name.rpartition(".")
        setattr(module_by_path[owner], cell_attribute, cell)
    return layer


def _make_layer_without_draws(path: str, kind: type[nn.Module], arguments: Mapping[str, Any]) -> nn.Module:
    """Creates a layer without drawing initial values for its parameters.

    Raises:
        CaptureError: if the constructor refuses the arguments.
    """
    made_layers: list[Any] = []
    rng_option = {"rng": ops.random.Generator(0)} if "rng" in inspect.signature(kind).parameters else {}
    try:
        ops.eval_shape(lambda: made_layers.append(kind(**arguments, **rng_option)))
    except (EmberError, TypeError) as error:
        raise CaptureError(f"the program is damaged: layer {path}, a {kind.__name__}: {error}") from error
    layer: nn.Module = made_layers[0]
    if isinstance(layer, nn.LoRALinear):
        layer.dropout = nn.Dropout(layer.dropout.p)  # a dropout with the default random stream
    return layer


def cells_of(layer: nn.Module) -> dict[str, Cell]:
    """Returns the parameters and buffers of a layer by name."""
    return {**dict(layer.named_parameters()), **dict(layer.named_buffers())}


def options_of(layer: Any, kind: type[nn.Module]) -> dict[str, Any]:
    """Returns the class name and constructor arguments of a layer of this library or PyTorch, read from attributes.

    Args:
        layer: the layer.
        kind: its class in this library.
    """
    options: dict[str, Any] = {"class": kind.__name__}
    for name, parameter in inspect.signature(kind).parameters.items():
        value = getattr(layer, name, inspect.Parameter.empty)
        if value is inspect.Parameter.empty or name in ("rng", "dtype"):
            continue
        if isinstance(parameter.default, bool):  # parameters stand for True, None for False
            value = value if isinstance(value, bool) else value is not None
        elif isinstance(value, nn.Dropout):
            value = value.p
        options[name] = list(value) if isinstance(value, tuple) else value
    return options


def describe_layer(path: str, layer: nn.Module) -> dict[str, Any]:
    """Returns the class name and constructor arguments of a layer for the file of a captured module.

    Raises:
        ArgumentError: if it is none that a program can have.
    """
    layer_class = KINDS.get(type(layer).__name__)
    if layer_class is not type(layer):
        raise ArgumentError(
            f"save() cannot write {path}, a {type(layer).__name__}: put one of {', '.join(KINDS)} in its place "
            f"(Module.replace), or save its state_dict beside the program"
        )
    return options_of(layer, layer_class)


def plain_layer(layer: nn.Module) -> nn.Module:
    """Returns the plain form of a layer: LoRA layers merged, quantised ones dequantised, others unchanged."""
    if isinstance(layer, nn.LoRALinear):
        return layer.merged()
    return layer.dequantized() if isinstance(layer, (nn.QuantizedLinear, nn.QuantizedEmbedding)) else layer
