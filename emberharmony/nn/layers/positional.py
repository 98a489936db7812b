"""Layers of positional encodings, such as `RoPE` and `ALiBi`."""

import math
from collections.abc import Sequence
from typing import Any

from emberharmony import Parameter, ops
from emberharmony.core.errors import ArgumentError, ShapeError
from emberharmony.core.types import DTypeLike
from emberharmony.nn import rngs
from emberharmony.nn.locate import fault
from emberharmony.nn.module import Module
from emberharmony.nn.options import length_option, number_option
from emberharmony.types import Tensor, TensorLike


def _even_option(name: str, value: int) -> int:
    """Returns an option that is a number of features after a check that it is positive and even.

    Raises:
        ArgumentError: if it is odd.
    """
    if length_option(name, value, 2) % 2:
        raise fault(ArgumentError(f"{name} must be even, because the features form pairs, got {value}"))
    return int(value)


class RoPE(Module):
    """Rotates pairs of features by angles that grow with the position.

    Position p turns pair i of `dims` / 2 by `scale * p * base ** (-2 * i / dims)`. A call takes the offset of the first
    position too, an integer, or a tensor with one for each element of the first axis, and the axis of the positions.

    Shape: x (..., time, features) to the same; features after the first `dims` stay as they are.

    Args:
        dims: how many features are rotated, an even number.
        traditional: whether a pair is two neighbours; else pair i is the features i and i + dims / 2, as in the models
            of Hugging Face.
        base: the base of the angles.
        scale: the factor of the positions.
        frequencies: one number for each pair in place of `base ** (-2 * i / dims)`, as models for long texts have them;
            None takes these.

    Raises:
        ArgumentError: if `dims` is odd, or there is not one frequency for each pair.

    Example:
        >>> layer = nn.RoPE(2)
        >>> [[round(x, 4) for x in row] for row in layer([[1.0, 0.0], [1.0, 0.0]]).tolist()]
        [[1.0, 0.0], [0.5403, 0.8415]]

    Source: Su et al., RoFormer, 2021; `mlx.nn.RoPE`.
    """

    def __init__(
        self,
        dims: int,
        traditional: bool = False,
        base: float = 10000.0,
        scale: float = 1.0,
        *,
        frequencies: Sequence[float] | None = None,
    ) -> None:
        self.dims, self.traditional = _even_option("dims", dims), bool(traditional)
        self.base, self.scale = number_option("base", base), number_option("scale", scale)
        self.frequencies = (
            None if frequencies is None else [number_option("frequencies", frequency) for frequency in frequencies]
        )
        if self.frequencies is not None and len(self.frequencies) != self.dims // 2:
            raise fault(ArgumentError(f"expected {self.dims // 2} frequencies, dims / 2, got {len(self.frequencies)}"))

    def __call__(self, x: TensorLike, offset: Any = 0, axis: int = -2) -> Tensor:
        return ops.rope(x, self.dims, offset, self.traditional, self.base, self.scale, self.frequencies, axis)


class ALiBi(Module):
    """Adds to the logits of attention a penalty that grows with the distance between query and key.

    A call takes the logits, the offset of the first query, and a mask that is added too. `bias` returns what is added,
    which `nn.MultiheadAttention` takes as `attn_mask`.

    Shape: (batch, heads, queries, keys) to the same.

    Example:
        >>> nn.ALiBi()(ops.zeros((1, 1, 2, 2))).tolist()
        [[[[0.0, -0.00390625], [-0.00390625, 0.0]]]]

    Source: Press et al., Train short, test long, 2022; `mlx.nn.ALiBi`.
    """

    @staticmethod
    def slopes(num_heads: int) -> list[float]:
        """Returns the slope of each attention head, the factor of its distance penalty: a geometric sequence.

        Args:
            num_heads: the number of heads.
        """
        power_of_two = 2 ** math.floor(math.log2(length_option("num_heads", num_heads)))
        factors = [2.0 ** (-8.0 * (i + 1) / power_of_two) for i in range(power_of_two)]
        return factors + [2.0 ** (-4.0 * (2 * i + 1) / power_of_two) for i in range(num_heads - power_of_two)]

    def bias(self, num_heads: int, queries: int, keys: int, offset: int = 0, dtype: DTypeLike | None = None) -> Tensor:
        """Returns the bias for the logits of attention, (1, heads, queries, keys): the negative scaled distances.

        Args:
            num_heads: the number of heads.
            queries: the number of queries.
            keys: the number of keys.
            offset: the position of the first query among the keys.
            dtype: the dtype of the result; None is the default float.
        """
        distances = ops.abs(
            ops.subtract(ops.reshape(ops.arange(offset, offset + queries), (queries, 1)), ops.arange(keys))
        )
        slopes = ops.reshape(ops.array(self.slopes(num_heads), dtype), (1, num_heads, 1, 1))
        return ops.negative(ops.multiply(slopes, ops.cast(distances, ops.dtype(slopes))))

    def __call__(self, attention_scores: TensorLike, offset: int = 0, mask: TensorLike | None = None) -> Tensor:
        scores = ops.convert_to_tensor(attention_scores)
        if len(scores.shape) != 4:
            raise fault(
                ShapeError(f"expected logits of shape (batch, heads, queries, keys), got {tuple(scores.shape)}")
            )
        biased_scores = self.bias(*scores.shape[1:], offset, ops.dtype(scores))
        biased_scores = ops.to_device(biased_scores, ops.get_device(scores))
        return ops.add(scores, biased_scores if mask is None else ops.add(biased_scores, mask))


class SinusoidalPositionalEncoding(Module):
    """Returns sines and cosines of positions, with frequencies in a geometric sequence.

    Shape: positions (...) to (..., dims), first the sines and then the cosines; with the dtype of the positions, or
    float32 for integers.

    Args:
        dims: the number of features, an even number.
        min_freq, max_freq: the last and the first frequency.
        scale: the factor of the results; None is sqrt(2 / dims), which makes them vectors of length 1.
        cos_first: whether the cosines come first.
        full_turns: whether the frequencies count full turns, and so are multiplied by 2 pi.

    Raises:
        ArgumentError: if `dims` is odd, or a frequency is not positive.

    Example:
        >>> layer = nn.SinusoidalPositionalEncoding(4, scale=1.0)
        >>> [[round(x, 4) for x in row] for row in layer([0, 1]).tolist()]
        [[0.0, 0.0, 1.0, 1.0], [0.8415, 0.0001, 0.5403, 1.0]]

    Source: Vaswani et al., Attention is all you need, 2017; `mlx.nn.SinusoidalPositionalEncoding`.
    """

    def __init__(
        self,
        dims: int,
        min_freq: float = 0.0001,
        max_freq: float = 1.0,
        scale: float | None = None,
        cos_first: bool = False,
        full_turns: bool = False,
    ) -> None:
        self.dims = _even_option("dims", dims)
        if min_freq <= 0 or max_freq <= 0:
            raise fault(ArgumentError(f"min_freq and max_freq must be positive, got {min_freq} and {max_freq}"))
        self.min_freq, self.max_freq = min_freq, max_freq
        self.scale, self._factor = scale, math.sqrt(2 / dims) if scale is None else scale
        self.cos_first, self.full_turns = cos_first, full_turns
        log_of_first, log_of_last, pair_count = math.log(max_freq), math.log(min_freq), dims // 2
        angle_factor = 2 * math.pi if full_turns else 1.0
        self._frequencies = [
            angle_factor * math.exp(log_of_first + (log_of_last - log_of_first) * i / max(pair_count - 1, 1))
            for i in range(pair_count)
        ]

    def __call__(self, x: TensorLike) -> Tensor:
        positions = ops.expand_dims(x, -1)
        positions_dtype = ops.dtype(positions)
        # The angles are computed in float32, because float16 would be off by radians for positions over 2,048.
        wide_dtype: DTypeLike = (
            positions_dtype if positions_dtype.is_floating and positions_dtype.itemsize > 4 else "float32"
        )
        frequencies = ops.to_device(ops.array(self._frequencies, wide_dtype), ops.get_device(positions))
        angles = ops.multiply(ops.cast(positions, wide_dtype), frequencies)
        sines_and_cosines = [ops.sin(angles), ops.cos(angles)]
        encoding = ops.multiply(
            ops.concatenate(sines_and_cosines[::-1] if self.cos_first else sines_and_cosines, -1), self._factor
        )
        return ops.cast(encoding, positions_dtype) if positions_dtype.is_floating else encoding


class LearnedPositional(Module):
    """Adds a learned vector to each position of a sequence.

    A call takes the offset of the first position too: an integer, or one for each element of the first axis, where
    negative positions are padding.

    Shape: x (..., time, dims) to the same.

    Args:
        num_positions: the greatest length of a sequence.
        dims: the length of the last axis.
        time_axis: the axis of the time, along which each position gets its own vector.
        rng: draws the initial values, which are normal with the standard deviation 0.02.
        dtype: the dtype of the parameters; None is the default floating dtype.

    Attributes:
        weight: (num_positions, dims).

    Raises:
        ArgumentError: if a number is not a positive integer.

    Example:
        >>> layer = nn.LearnedPositional(10, 4)
        >>> tuple(layer(ops.zeros((2, 3, 4))).shape)
        (2, 3, 4)
    """

    def __init__(
        self,
        num_positions: int,
        dims: int,
        time_axis: int = -2,
        *,
        rng: "rngs.Generator | rngs.Rngs | None" = None,
        dtype: DTypeLike | None = None,
    ) -> None:
        self.num_positions, self.dims = length_option("num_positions", num_positions), length_option("dims", dims)
        self.time_axis = time_axis
        weight_shape = (self.num_positions, self.dims)
        self.weight = Parameter(ops.random.normal(weight_shape, 0.0, 0.02, dtype, generator=rngs.generator(rng)))

    def __call__(self, x: TensorLike, offset: "int | Sequence[int]" = 0) -> Tensor:
        x = ops.convert_to_tensor(x)
        if len(x.shape) < 2 or x.shape[-1] != self.dims:
            raise fault(ShapeError(f"expected x of shape (..., time, {self.dims}), got {tuple(x.shape)}"))
        step_count, has_offsets = x.shape[self.time_axis], isinstance(offset, Sequence)
        first_offsets = offset if isinstance(offset, Sequence) else (offset,)
        if (not has_offsets and first_offsets[0] < 0) or max(first_offsets) + step_count > self.num_positions:
            raise fault(
                ShapeError(
                    f"expected positions below num_positions, {self.num_positions}, got {step_count} from "
                    f"{max(first_offsets)} on"
                )
            )
        encoding_shape = [1] * len(x.shape)
        encoding_shape[self.time_axis], encoding_shape[-1] = step_count, self.dims
        if not has_offsets:
            return ops.add(
                x, ops.reshape(self.weight[first_offsets[0] : first_offsets[0] + step_count], tuple(encoding_shape))
            )
        if len(first_offsets) != x.shape[0] or self.time_axis % len(x.shape) == 0:
            raise fault(
                ShapeError(f"expected one offset for each of the {x.shape[0]} samples, got {len(first_offsets)}")
            )
        encoding_shape[0] = len(first_offsets)
        positions = [max(first_offset + step, 0) for first_offset in first_offsets for step in range(step_count)]
        return ops.add(x, ops.reshape(ops.embedding(positions, self.weight), tuple(encoding_shape)))
