"""Low-rank adaptation: training a small correction of linear layers whose weights stay as they are."""

from fnmatch import fnmatchcase
from typing import TypeVar

from emberharmony import Parameter, ops
from emberharmony.core.errors import ArgumentError
from emberharmony.core.types import DTypeLike
from emberharmony.nn import rngs
from emberharmony.nn.layers.dropout import Dropout
from emberharmony.nn.layers.linear import Linear, linear_of
from emberharmony.nn.module import Module
from emberharmony.nn.options import length_option, number_option
from emberharmony.types import Tensor, TensorLike

M = TypeVar("M", bound=Module)


class LoRALinear(Linear):
    """A linear layer that is not trained, plus a product of two small matrices that is.

    It returns `x @ weight.T + bias + alpha / rank * dropout(x) @ lora_a.weight.T @ lora_b.weight.T`. At first
    `lora_b.weight` is zeros, so the layer does what the linear layer does.

    Shape: x (..., in_features) to (..., out_features).

    Args:
        in_features: the length of the last axis of the input.
        out_features: the length of the last axis of the output.
        bias: whether a bias is added.
        rank: the number of columns of the small matrices.
        alpha: the size of the correction, which is multiplied by alpha / rank.
        dropout: the probability with which the correction does not see an element of the input, in training.
        rng: draws the initial values, which are uniform within 1 / sqrt(in_features), and the masks of the dropout.
        dtype: the dtype of the parameters; None is the default floating dtype.

    Attributes:
        weight, bias: those of `Linear`, which are not trainable.
        lora_a: a `Linear` from in_features to rank.
        lora_b: a `Linear` from rank to out_features.

    Raises:
        ArgumentError: if a number is not positive, or `dropout` is not from 0 to 1.

    Example:
        >>> layer = nn.LoRALinear(8, 8, rank=2)
        >>> [name for name, _ in layer.named_parameters(trainable=True)]
        ['lora_a.weight', 'lora_b.weight']

    Source: Hu et al., LoRA: low-rank adaptation of large language models, 2021; the names are those of torchtune.
    """

    def __init__(
        self,
        in_features: int,
        out_features: int,
        bias: bool = True,
        rank: int = 8,
        alpha: float = 16.0,
        dropout: float = 0.0,
        *,
        rng: "rngs.Generator | rngs.Rngs | None" = None,
        dtype: DTypeLike | None = None,
    ) -> None:
        super().__init__(length_option("in_features", in_features), out_features, bias, rng=rng, dtype=dtype)
        self.rank, self.alpha = length_option("rank", rank), number_option("alpha", alpha)
        self.lora_a = Linear(in_features, self.rank, bias=False, rng=rng, dtype=dtype)
        self.lora_b = Linear(self.rank, out_features, bias=False, rng=rng, dtype=dtype)
        self.lora_b.weight = Parameter(ops.zeros((out_features, self.rank), dtype))
        self.dropout = Dropout(dropout, rng=rng)
        for cell in (self.weight, self.bias):
            if cell is not None:
                cell.trainable = False

    @classmethod
    def from_linear(
        cls,
        linear: Linear,
        rank: int = 8,
        alpha: float = 16.0,
        dropout: float = 0.0,
        *,
        rng: "rngs.Generator | rngs.Rngs | None" = None,
    ) -> "LoRALinear":
        """Returns a LoRA layer with the weight and bias of a linear layer, which become untrainable.

        Args:
            linear: the layer whose weight and bias the new one keeps.

        Example:
            >>> base = nn.Linear(2, 3)
            >>> layer = nn.LoRALinear.from_linear(base, rank=1)
            >>> layer.weight is base.weight, layer([1.0, 2.0]).tolist() == base([1.0, 2.0]).tolist()
            (True, True)
        """
        outputs, inputs = linear.weight.shape
        has_bias = linear.bias is not None
        layer = cls(inputs, outputs, has_bias, rank, alpha, dropout, rng=rng, dtype=linear.weight.dtype)
        layer.weight, layer.bias, layer.training = linear.weight, linear.bias, linear.training
        return layer.freeze("weight", *["bias"] * has_bias).train(linear.training)

    def __call__(self, x: TensorLike) -> Tensor:
        low_rank_x = self.lora_a(self.dropout(x))
        return ops.add(super().__call__(x), self.lora_b(ops.multiply(low_rank_x, self.alpha / self.rank)))

    def merged(self) -> Linear:
        """Returns a linear layer whose weight is the sum of the original weight and the trained update.

        Example:
            >>> layer = nn.LoRALinear(2, 3, rank=1)
            >>> type(layer.merged()).__name__
            'Linear'
        """
        layer = Linear(
            self.in_features,
            self.out_features,
            self.bias is not None,
            rng=ops.random.Generator(0),
            dtype=self.weight.dtype,
        )
        weight_update = ops.matmul(self.lora_b.weight, self.lora_a.weight)
        layer.weight.value = ops.add(self.weight, ops.multiply(weight_update, self.alpha / self.rank))
        if layer.bias is not None and self.bias is not None:
            layer.bias.value = ops.copy(self.bias)
        return layer.train(self.training)


def add_lora(
    module: M,
    *patterns: str,
    rank: int = 8,
    alpha: float = 16.0,
    dropout: float = 0.0,
    rng: "rngs.Generator | rngs.Rngs | None" = None,
) -> M:
    """Freezes a model, puts `LoRALinear` in the place of its linear layers, and returns the model.

    Args:
        module: the model, which changes.
        patterns: names of linear layers, in which `*` stands for any text; without one, all linear layers.
        rank, alpha, dropout, rng: those of `LoRALinear`.

    Raises:
        ArgumentError: if no linear layer has a name that fits.

    Example:
        >>> net = nn.add_lora(nn.Sequential(nn.Linear(4, 4), nn.ReLU(), nn.Linear(4, 2)), "0", rank=2)
        >>> [name for name, _ in net.named_parameters(trainable=True)]
        ['0.lora_a.weight', '0.lora_b.weight']
    """
    named_linears = ((name, linear_of(layer)) for name, layer in module.named_modules() if name)
    linear_by_name = {name: linear for name, linear in named_linears if linear is not None}
    chosen_names = [
        name for name in linear_by_name if not patterns or any(fnmatchcase(name, pattern) for pattern in patterns)
    ]
    if not chosen_names:
        raise ArgumentError(
            f"add_lora(): {type(module).__name__} has no linear layer {' or '.join(map(repr, patterns)) or 'at all'}; "
            f"it has {', '.join(linear_by_name) or 'none'}"
        )
    module.freeze()
    for name in chosen_names:
        module.replace(name, LoRALinear.from_linear(linear_by_name[name], rank, alpha, dropout, rng=rng))
    return module
