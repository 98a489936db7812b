"""The layers `Identity`, `Linear` and `Bilinear`."""

import math
from typing import Any

from emberharmony import Parameter, ops
from emberharmony.core.errors import ShapeError
from emberharmony.core.types import DTypeLike
from emberharmony.nn import rngs
from emberharmony.nn.lazy import UninitializedParameter
from emberharmony.nn.locate import fault
from emberharmony.nn.module import Module
from emberharmony.nn.options import flag_option, length_option
from emberharmony.types import Tensor, TensorLike


class Identity(Module):
    """Returns its input; the arguments of the constructor are ignored.

    Args:
        *args: arguments of any kind, which are ignored.
        **kwargs: options of any kind, which are ignored.
    """

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        pass

    def __call__(self, x: TensorLike) -> Tensor:
        return ops.convert_to_tensor(x)


class Linear(Module):
    """A linear layer: `x @ weight.T + bias`.

    Shape: x (..., in_features) to (..., out_features).

    Args:
        in_features: the length of the last axis of the input; None if `nn.build` shall find it.
        out_features: the length of the last axis of the output.
        bias: whether a bias is added.
        rng: draws the initial values, which are uniform within 1 / sqrt(in_features), as in PyTorch.
        dtype: the dtype of the parameters; None is the default floating dtype.

    Attributes:
        weight: (out_features, in_features).
        bias: (out_features,), or None.

    Raises:
        ArgumentError: if a number of features is not a positive integer.

    Example:
        >>> layer = nn.Linear(3, 2)
        >>> tuple(layer(ops.zeros((5, 3))).shape), tuple(layer.weight.shape)
        ((5, 2), (2, 3))
    """

    def __init__(
        self,
        in_features: int | None,
        out_features: int,
        bias: bool = True,
        *,
        rng: "rngs.Generator | rngs.Rngs | None" = None,
        dtype: DTypeLike | None = None,
    ) -> None:
        self.in_features = None if in_features is None else length_option("in_features", in_features)
        self.out_features = length_option("out_features", out_features)
        self.weight: Parameter
        self.bias: Parameter | None
        bias = flag_option("bias", bias)
        if in_features is None:
            self.weight = UninitializedParameter(self)
            self.bias = UninitializedParameter(self) if bias else None
            self._build = (bias, rngs.generator(rng), dtype)
        else:
            self._initialize(self.in_features or 1, bias, rngs.generator(rng), dtype)

    def _initialize(self, sources: int, bias: bool, rng: "rngs.Generator", dtype: DTypeLike | None) -> None:
        bound = 1 / math.sqrt(sources)
        self.weight = Parameter(rngs.uniform(rng, (self.out_features, sources), bound, dtype))
        self.bias = Parameter(rngs.uniform(rng, (self.out_features,), bound, dtype)) if bias else None

    def build(self, shape: tuple[int, ...]) -> None:
        """Makes the parameters for an input of a shape, if there are none yet."""
        if self.in_features is None:
            self.in_features = shape[-1]
            self._initialize(shape[-1], *vars(self).pop("_build"))

    def __call__(self, x: TensorLike) -> Tensor:
        return ops.linear(x, self.weight, self.bias, True)


def linear_of(part: Any) -> Linear | None:
    """Returns a module that is a linear layer, or its conversion by `to_linear`; None for other modules.

    Args:
        part: a module. One whose weight has another layout has a method `to_linear`, which returns a linear layer with
            a weight of its own.
    """
    if type(part) is Linear:
        return part
    layer: Linear | None = part.to_linear() if hasattr(type(part), "to_linear") else None
    return layer


class Bilinear(Module):
    """A bilinear layer: `x1 @ weight[k] @ x2 + bias[k]` for each output feature k.

    Shape: x1 (..., in1_features) and x2 (..., in2_features) to (..., out_features).

    Args:
        in1_features, in2_features: the lengths of the last axes of the inputs.
        out_features: the length of the last axis of the output.
        bias: whether a bias is added.
        rng: draws the initial values, which are uniform within 1 / sqrt(in1_features), as in PyTorch.
        dtype: the dtype of the parameters; None is the default floating dtype.

    Attributes:
        weight: (out_features, in1_features, in2_features).
        bias: (out_features,), or None.

    Raises:
        ArgumentError: if a number of features is not a positive integer.

    Example:
        >>> tuple(nn.Bilinear(3, 4, 2)(ops.zeros((5, 3)), ops.zeros((5, 4))).shape)
        (5, 2)
    """

    def __init__(
        self,
        in1_features: int,
        in2_features: int,
        out_features: int,
        bias: bool = True,
        *,
        rng: "rngs.Generator | rngs.Rngs | None" = None,
        dtype: DTypeLike | None = None,
    ) -> None:
        self.in1_features = length_option("in1_features", in1_features)
        self.in2_features = length_option("in2_features", in2_features)
        self.out_features = length_option("out_features", out_features)
        generator, bound, bias = rngs.generator(rng), 1 / math.sqrt(in1_features), flag_option("bias", bias)
        self.weight = Parameter(rngs.uniform(generator, (out_features, in1_features, in2_features), bound, dtype))
        self.bias = Parameter(rngs.uniform(generator, (out_features,), bound, dtype)) if bias else None

    def __call__(self, x1: TensorLike, x2: TensorLike) -> Tensor:
        x1, x2 = ops.convert_to_tensor(x1), ops.convert_to_tensor(x2)
        if x1.shape[-1:] != (self.in1_features,) or x2.shape[-1:] != (self.in2_features,):
            raise fault(
                ShapeError(
                    f"expected inputs of shapes (..., {self.in1_features}) and (..., {self.in2_features}), got "
                    f"{tuple(x1.shape)} and {tuple(x2.shape)}"
                )
            )
        products = ops.einsum("...i,kij,...j->...k", x1, self.weight, x2)
        return products if self.bias is None else ops.add(products, self.bias)
