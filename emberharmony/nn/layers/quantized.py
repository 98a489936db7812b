"""Quantised layers: linear layers and embeddings whose weights have 4 or 8 bits for each value."""

import math
from collections.abc import Callable, Iterator
from typing import Any, TypeVar

from emberharmony import Buffer, Parameter, ops
from emberharmony.core import selection
from emberharmony.core.cells.forms import hold_forms, layout_of
from emberharmony.core.errors import ArgumentError, ArgumentTypeError, ShapeError
from emberharmony.core.named_tuple import Record
from emberharmony.core.types import DTypeLike
from emberharmony.nn import rngs, spatial, walk
from emberharmony.nn.layers.embedding import Embedding
from emberharmony.nn.layers.linear import Linear, linear_of
from emberharmony.nn.layers.lora import LoRALinear
from emberharmony.nn.module import Module
from emberharmony.types import Tensor, TensorLike

M = TypeVar("M", bound=Module)
Where = Callable[[str, Module], bool]
"""A function of the name of a layer and the layer that returns whether to quantise it."""


class QuantizationError(Record):
    """The error of a quantised weight: the largest difference from the original, and the relative root mean square.

    Attributes:
        largest: the greatest absolute difference.
        relative: the root mean square of the differences, as a share of that of the weight.

    Args:
        values: the two numbers, `largest` and `relative`, by position.
        named: the two numbers by name.
    """

    largest: float
    relative: float


class _Quantized(Module):
    """The base of quantised layers, whose matrix is stored as packed integers, scales and biases.

    A backend may have a kernel that reads the integers in another layout. Then `weight` holds them in that layout from
    the first product on, until somebody reads it.

    Attributes:
        weight: the packed integers, a buffer (rows, columns * bits / 32) of uint32.
        scales, biases: (rows, columns / group_size), which are not trainable.
    """

    def _pack_weight(self, matrix: Tensor, group_size: int, bits: int) -> None:
        packed, scales, biases = ops.quantize(matrix, bits=bits, group_size=group_size)
        self.group_size, self.bits = group_size, bits
        self.weight = Buffer(packed)
        self.scales, self.biases = Parameter(scales, trainable=False), Parameter(biases, trainable=False)

    def _quantized_product(self, x: TensorLike) -> Tensor:
        kernel_weight = self._kernel_weight(x)
        weight = self.weight.value if kernel_weight is None else kernel_weight
        scales, biases = self.scales.value, self.biases.value
        return ops.quantized_matmul(x, weight, scales, biases, group_size=self.group_size, bits=self.bits)

    def _kernel_weight(self, x: TensorLike, makes_buffers: bool = True) -> Any:
        """Returns the packed weight in the layout that the active backend's kernel reads; None if it has none.

        Args:
            x: what they are used with.
            makes_buffers: whether the layout is made if `weight` holds words.
        """
        backend, cells = selection.active().backend, (self.weight, self.scales, self.biases)
        if not backend.takes_layouts(x) or self.scales.trainable or self.biases.trainable:
            return None
        kernel_weight = layout_of(cells, backend.home)
        if kernel_weight is None and makes_buffers:
            hold_forms(cells, lambda *tensors: backend.quantized_forms(*tensors, self.bits))
            kernel_weight = layout_of(cells, backend.home)
        return kernel_weight

    def _dequantized_weight(self) -> Tensor:
        return ops.dequantize(self.weight, self.scales, self.biases, bits=self.bits, group_size=self.group_size)


class QuantizedLinear(_Quantized):
    """A linear layer whose weight has 4 or 8 bits for each value; the names are those of `mlx.nn`.

    Shape: x (..., in_features) to (..., out_features).

    Args:
        in_features: the length of the last axis of the input, which `group_size` divides.
        out_features: the length of the last axis of the output.
        bias: whether a bias is added.
        group_size: how many values share a scale: 32, 64 or 128.
        bits: the width of a value, 4 or 8.
        rng: draws the initial values of the layer that is quantised, a `Linear`.
        dtype: the dtype of scales, biases and bias; None is the default floating dtype.

    Attributes:
        weight: the packed integers, a buffer (out_features, in_features * bits / 32) of uint32.
        scales, biases: (out_features, in_features / group_size), which are not trainable.
        bias: (out_features,), or None.

    Raises:
        ArgumentError: if a number is not positive, or `group_size` or `bits` has another value.
        ShapeError: if `group_size` does not divide `in_features`.

    Example:
        >>> layer = nn.QuantizedLinear(64, 2, bits=8)
        >>> tuple(layer(ops.zeros((5, 64))).shape), tuple(layer.weight.shape)
        ((5, 2), (2, 16))

    Source: MLX's quantization mode "affine"; see `ops.quantize`.
    """

    def __init__(
        self,
        in_features: int,
        out_features: int,
        bias: bool = True,
        group_size: int = 64,
        bits: int = 4,
        *,
        rng: "rngs.Generator | rngs.Rngs | None" = None,
        dtype: DTypeLike | None = None,
    ) -> None:
        self._quantize(Linear(in_features, out_features, bias, rng=rng, dtype=dtype), group_size, bits)

    def _quantize(self, linear: Linear, group_size: int, bits: int) -> None:
        weight = linear.weight
        self.out_features, self.in_features = weight.shape
        self._pack_weight(weight, group_size, bits)
        self.bias = linear.bias

    @classmethod
    def from_linear(cls, linear: Linear, group_size: int = 64, bits: int = 4) -> "QuantizedLinear":
        """Returns a quantised layer made from the weight of a linear layer, with the same bias object.

        Args:
            linear: the layer whose weight is quantised, in rows of its inputs.

        Example:
            >>> base = nn.Linear(64, 2)
            >>> nn.QuantizedLinear.from_linear(base).bias is base.bias
            True
        """
        layer = cls.__new__(cls)
        layer._quantize(linear, group_size, bits)
        return layer.train(linear.training)

    def __call__(self, x: TensorLike) -> Tensor:
        product = self._quantized_product(x)
        return product if self.bias is None else ops.add(product, self.bias)

    def dequantized(self) -> Linear:
        """Returns a linear layer with the dequantised weight, which is trainable, and the same bias object."""
        layer = Linear(self.in_features, self.out_features, False, rng=ops.random.Generator(0))
        layer.weight, layer.bias = Parameter(self._dequantized_weight()), self.bias
        return layer.train(self.training)


class QuantizedEmbedding(_Quantized):
    """An embedding whose table has 4 or 8 bits for each value; the names are those of `mlx.nn`.

    Only the rows at the indices are computed.

    Shape: indices (...) to (..., embedding_dim).

    Args:
        num_embeddings: the number of vectors.
        embedding_dim: their length, which `group_size` divides.
        group_size: how many values share a scale: 32, 64 or 128.
        bits: the width of a value, 4 or 8.
        rng: draws the initial values of the layer that is quantised, an `Embedding`.
        dtype: the dtype of scales, biases and results; None is the default floating dtype.

    Attributes:
        weight: the packed integers, a buffer (num_embeddings, embedding_dim * bits / 32) of uint32.
        scales, biases: (num_embeddings, embedding_dim / group_size), which are not trainable.

    Raises:
        ArgumentError: if a number is not positive, or `group_size` or `bits` has another value.
        IndexOutOfBoundsError: from the call, if an index is out of range; see `ops.embedding`.
        ShapeError: if `group_size` does not divide `embedding_dim`.

    Example:
        >>> layer = nn.QuantizedEmbedding(10, 32, group_size=32)
        >>> tuple(layer([[1, 2, 3]]).shape), tuple(layer.as_linear(ops.zeros((5, 32))).shape)
        ((1, 3, 32), (5, 10))
    """

    def __init__(
        self,
        num_embeddings: int,
        embedding_dim: int,
        group_size: int = 64,
        bits: int = 4,
        *,
        rng: "rngs.Generator | rngs.Rngs | None" = None,
        dtype: DTypeLike | None = None,
    ) -> None:
        self._quantize(Embedding(num_embeddings, embedding_dim, rng=rng, dtype=dtype), group_size, bits)

    def _quantize(self, embedding: Embedding, group_size: int, bits: int) -> None:
        table = embedding.weight
        self.num_embeddings, self.embedding_dim = table.shape
        self._pack_weight(table, group_size, bits)

    @classmethod
    def from_embedding(cls, embedding: Embedding, group_size: int = 64, bits: int = 4) -> "QuantizedEmbedding":
        """Returns a quantised layer made from the table of an embedding.

        Args:
            embedding: the layer whose table is quantised, in rows.

        Example:
            >>> base = nn.Embedding.from_pretrained(ops.ones((3, 64)))
            >>> nn.QuantizedEmbedding.from_embedding(base)(0).tolist() == base(0).tolist()
            True
        """
        layer = cls.__new__(cls)
        layer._quantize(embedding, group_size, bits)
        return layer.train(embedding.training)

    def __call__(self, input: Any) -> Tensor:
        scales, biases = ops.embedding(input, self.scales), ops.embedding(input, self.biases)
        kernel_weight = self._kernel_weight(scales, makes_buffers=False)
        if kernel_weight is None:
            rows = ops.embedding(input, self.weight)
        else:  # reading `weight` would discard the kernel's layout, which `as_linear` uses
            indices = spatial.to_tensor(input)
            rows = selection.active().backend.quantized_rows(kernel_weight, indices, self.num_embeddings, self.bits)
        return ops.dequantize(rows, scales, biases, bits=self.bits, group_size=self.group_size)

    def as_linear(self, x: TensorLike) -> Tensor:
        """Returns `x @ table.T`, as the head of a language model that shares the table.

        Shape: x (..., embedding_dim) to (..., num_embeddings).

        Args:
            x: (..., embedding_dim): features, of a floating dtype.
        """
        return self._quantized_product(x)

    def dequantized(self) -> Embedding:
        """Returns an embedding layer with the dequantised table, which is trainable."""
        return Embedding.from_pretrained(self._dequantized_weight(), freeze=False).train(self.training)


def quantize(model: Module, *, bits: int = 4, group_size: int = 64, where: Where | None = None) -> dict[str, Module]:
    """Replaces the linear layers and embeddings of a model by quantised ones, and returns these by name.

    Either all of them change or, if there is an error, none. `LoRALinear` and layers of other classes stay as they are.
    A weight that two layers share is quantised for each. The weights of a saved quantised model are loaded into a model
    that was quantised with the same options.

    Args:
        model: the model, whose layers are replaced in place.
        bits: the width of a value, 4 or 8. With 64 values in a group, normally distributed weights get a relative error
            of 9 % with 4 bits and of 0.5 % with 8 bits; `quantization_error` computes it for each layer.
        group_size: how many values share a scale: 32, 64 or 128.
        where: returns whether a layer is quantised, for its name and the layer; None means all.

    Raises:
        ArgumentError: if the model has no such layer, or is one itself, or an option has another value.
        ArgumentTypeError: if a layer is in a tuple.
        ShapeError: if `group_size` does not divide the rows of a weight; the message has the name of the layer.

    Example:
        >>> net = nn.Sequential(nn.Linear(64, 128), nn.ReLU(), nn.Linear(128, 10))
        >>> list(nn.quantize(net, bits=8, where=lambda name, layer: name == "0"))
        ['0']
        >>> type(net[0]).__name__, type(net[2]).__name__
        ('QuantizedLinear', 'Linear')
    """
    layer_by_id: dict[int, Module] = {}
    for name, layer in _layers_to_quantize(model, where):
        layer_by_id[id(layer)] = _quantize_layer(name, layer, group_size, bits)
    return _replace_layers(model, layer_by_id, "quantize")


def dequantize(model: Module) -> dict[str, Module]:
    """Replaces the quantised layers of a model by linear layers and embeddings, and returns these by name.

    Their weights are trainable, and have the values of the quantised ones.

    Args:
        model: the model, which changes.

    Raises:
        ArgumentError: if the model has no quantised layer, or is one itself.
        ArgumentTypeError: if a layer is in a tuple.

    Example:
        >>> net = nn.Sequential(nn.QuantizedLinear(64, 10))
        >>> list(nn.dequantize(net)), net
        (['0'], Sequential(
          (0): Linear(64, 10)
        ))
    """
    layers = [layer for _, layer in model.named_modules() if isinstance(layer, (QuantizedLinear, QuantizedEmbedding))]
    if not layers:
        raise ArgumentError(f"dequantize(): {type(model).__name__} has no quantised layer")
    return _replace_layers(
        model, {id(quantized_layer): quantized_layer.dequantized() for quantized_layer in layers}, "dequantize"
    )


def quantization_error(
    model: Module, *, bits: int = 4, group_size: int = 64, where: Where | None = None
) -> dict[str, QuantizationError]:
    """Returns, by name, the error that `quantize` would make in the weight of each layer; the model does not change.

    Args:
        model: the model, which does not change.
        bits: the width of a value, 4 or 8.
        group_size: how many adjacent values of a row share a scale and a bias: 32, 64 or 128.
        where: returns whether a layer is quantised, for its name and the layer; None means all.

    Example:
        >>> net = nn.Sequential(nn.Linear(64, 128), nn.ReLU(), nn.Linear(128, 10))
        >>> errors = nn.quantization_error(net, bits=8)
        >>> list(errors), max(error.relative for error in errors.values()) < 0.01
        (['0', '2'], True)
    """
    error_by_name = {}
    for name, layer in _layers_to_quantize(model, where):
        matrix = (linear_of(layer) or layer).weight
        dequantized_values = _quantize_layer(name, layer, group_size, bits)._dequantized_weight()
        wide_matrix = ops.cast(matrix, "float32")
        weight_error = ops.subtract(ops.cast(dequantized_values, "float32"), wide_matrix)
        largest_magnitude = ops.max(ops.abs(wide_matrix))
        mean_squares = [
            ops.mean(ops.square(ops.divide(tensor, largest_magnitude))) for tensor in (weight_error, wide_matrix)
        ]
        error_numbers = ops.stack([ops.max(ops.abs(weight_error)), *mean_squares])
        largest_error, wrong_value, is_whole = ops.to_numpy(error_numbers).tolist()
        error_by_name[name] = QuantizationError(
            largest_error, math.sqrt(wrong_value / is_whole) if largest_error else 0.0
        )
    return error_by_name


def _quantize_layer(name: str, layer: Any, group_size: int, bits: int) -> QuantizedLinear | QuantizedEmbedding:
    """Returns the quantised layer for a linear layer or an embedding.

    Raises:
        ShapeError: if `group_size` does not divide the rows of the weight; the message has the name of the layer.
    """
    try:
        linear = linear_of(layer)
        if linear is not None:
            return QuantizedLinear.from_linear(linear, group_size, bits)
        return QuantizedEmbedding.from_embedding(layer, group_size, bits)
    except ShapeError as error:
        raise ShapeError(f"{name}, {type(layer).__name__}: {error}; or leave it out by `where`") from error


def _layers_to_quantize(model: Module, where: Where | None) -> Iterator[tuple[str, Any]]:
    """Yields (name, layer) for each linear layer and embedding of a model that shall be quantised.

    Raises:
        ArgumentError: if there is none, or the model is one itself.
    """
    lora_ids = {
        id(submodule)
        for _, layer in model.named_modules()
        if isinstance(layer, LoRALinear)
        for submodule in (layer.lora_a, layer.lora_b)
    }
    layer_by_name = {
        name: submodule
        for name, submodule in model.named_modules()
        if (type(submodule) in (Linear, Embedding) or hasattr(type(submodule), "to_linear"))
        and id(submodule) not in lora_ids
    }
    if "" in layer_by_name:
        class_name, function_name = (
            type(model).__name__,
            f"Quantized{type(model).__name__}.from_{type(model).__name__.lower()}",
        )
        raise ArgumentError(
            f"expected a model, got a {class_name}, which cannot be replaced in itself; call nn.{function_name}"
        )
    chosen_layers = [
        (name, submodule) for name, submodule in layer_by_name.items() if where is None or where(name, submodule)
    ]
    if not chosen_layers:
        raise ArgumentError(
            f"{type(model).__name__} has no linear layer or embedding to quantise; it has "
            f"{', '.join(layer_by_name) or 'none'}"
        )
    yield from chosen_layers


def _replace_layers(model: Module, new_layers: dict[int, Module], function: str) -> dict[str, Module]:
    """Replaces layers of a model, given by identity, by new ones in all their places, and returns these by name."""
    places_by_name = {
        name: place_of_layer
        for name, place_of_layer in walk.place_by_name(model).items()
        if id(place_of_layer.module) in new_layers
    }
    for name, place in places_by_name.items():
        if isinstance(place.holder, tuple):
            raise ArgumentTypeError(f"{function}(): {name} is in a tuple, where it cannot be replaced: use a list")
    for place in places_by_name.values():
        place.replace_module(new_layers[id(place.module)])
    return {name: new_layers[id(place.module)] for name, place in places_by_name.items()}
