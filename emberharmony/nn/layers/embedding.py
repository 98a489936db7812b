"""Embeddings: tables of vectors that are looked up by index."""

from collections.abc import Callable
from typing import Any

from emberharmony import Parameter, ops
from emberharmony.core.errors import ArgumentError, ShapeError
from emberharmony.core.types import DTypeLike
from emberharmony.nn import rngs, spatial
from emberharmony.nn.locate import fault
from emberharmony.nn.module import Module
from emberharmony.nn.options import choice_option, length_option
from emberharmony.types import Tensor, TensorLike


class _Table(Module):
    """The base of embeddings: a table of vectors, initialized by normal numbers of mean 0 and variance 1.

    Attributes:
        weight: (num_embeddings, embedding_dim).
    """

    def __init__(
        self,
        num_embeddings: int,
        embedding_dim: int,
        padding_idx: int | None,
        scale_grad_by_freq: bool,
        rng: "rngs.Generator | rngs.Rngs | None",
        dtype: DTypeLike | None,
    ) -> None:
        self.num_embeddings = length_option("num_embeddings", num_embeddings)
        self.embedding_dim = length_option("embedding_dim", embedding_dim)
        self.padding_idx = None if padding_idx is None else self._padding_row_index(padding_idx)
        self.scale_grad_by_freq = scale_grad_by_freq
        initial_values = ops.random.normal((num_embeddings, embedding_dim), dtype=dtype, generator=rngs.generator(rng))
        if self.padding_idx is not None:
            is_padding = ops.equal(ops.arange(num_embeddings), self.padding_idx)
            initial_values = ops.where(ops.expand_dims(is_padding, 1), 0, initial_values)
        self.weight = Parameter(initial_values)

    def _padding_row_index(self, padding_idx: int) -> int:
        row_index = length_option("padding_idx", padding_idx, -self.num_embeddings)
        if row_index >= self.num_embeddings:
            raise fault(
                ArgumentError(f"padding_idx must be less than num_embeddings {self.num_embeddings}, got {row_index}")
            )
        return row_index % self.num_embeddings

    def _look_up(self, indices_given: Any) -> Tensor:
        """Returns the rows of the table at indices, with gradients changed as the options of the layer say."""
        rows = ops.embedding(indices_given, self.weight)  # the op also checks indices in a list
        if self.padding_idx is None and not self.scale_grad_by_freq:
            return rows
        indices = spatial.to_tensor(indices_given)
        constant_rows = ops.stop_gradient(rows)
        nonnegative_indices = ops.where(ops.less(indices, 0), ops.add(indices, self.num_embeddings), indices)
        if self.scale_grad_by_freq:
            flat_indices = ops.reshape(nonnegative_indices, (-1,))
            index_counts = ops.segment_sum(
                ops.ones_like(flat_indices, dtype=rows.dtype), flat_indices, self.num_embeddings
            )
            # The added term is 0, and divides the gradient of each row by the number of times its index occurs.
            rows = ops.add(
                constant_rows,
                ops.divide(
                    ops.subtract(rows, constant_rows), ops.expand_dims(ops.take(index_counts, nonnegative_indices), -1)
                ),
            )
        if self.padding_idx is not None:
            rows = ops.where(ops.expand_dims(ops.equal(nonnegative_indices, self.padding_idx), -1), constant_rows, rows)
        return rows


class Embedding(_Table):
    """Returns the vectors of a table at indices.

    Shape: indices (...) to (..., embedding_dim).

    Args:
        num_embeddings: the number of vectors: the length of the first axis of the table.
        embedding_dim: the length of a vector: that of the last axis of the result.
        padding_idx: the index of a vector that is zeros at first and gets no gradient; None if there is none.
        scale_grad_by_freq: whether the gradient of a vector is divided by how often its index occurs in the input.
        rng: draws the initial values, which are normal numbers of mean 0 and variance 1, as in PyTorch.
        dtype: the dtype of the table; None is the default floating dtype.

    Attributes:
        weight: (num_embeddings, embedding_dim).

    Raises:
        ArgumentError: if a number is not positive, or `padding_idx` is out of range.
        IndexOutOfBoundsError: from the call, if an index is out of range; see `ops.embedding`.

    Example:
        >>> layer = nn.Embedding(3, 2, padding_idx=0)
        >>> layer.load_state_dict({"weight": [[0.0, 0.0], [1.0, 2.0], [3.0, 4.0]]}).loaded
        ['weight']
        >>> layer([2, 0]).tolist()
        [[3.0, 4.0], [0.0, 0.0]]
        >>> layer.as_linear([[1.0, 1.0]]).tolist()
        [[0.0, 3.0, 7.0]]
    """

    def __init__(
        self,
        num_embeddings: int,
        embedding_dim: int,
        padding_idx: int | None = None,
        *,
        scale_grad_by_freq: bool = False,
        rng: "rngs.Generator | rngs.Rngs | None" = None,
        dtype: DTypeLike | None = None,
    ) -> None:
        super().__init__(num_embeddings, embedding_dim, padding_idx, scale_grad_by_freq, rng, dtype)

    @classmethod
    def from_pretrained(
        cls,
        embeddings: TensorLike,
        freeze: bool = True,
        padding_idx: int | None = None,
        *,
        scale_grad_by_freq: bool = False,
    ) -> "Embedding":
        """Returns an embedding layer with a given table as weight.

        Args:
            embeddings: the table, (num_embeddings, embedding_dim), of a floating dtype.
            freeze: whether the table is not trained.
            padding_idx: the index of a vector that gets no gradient and stays as given; None if there is none.
            scale_grad_by_freq: whether the gradient of a vector is divided by how often its index occurs.

        Raises:
            ShapeError: if the table is not a matrix.

        Example:
            >>> nn.Embedding.from_pretrained([[1.0, 2.0], [3.0, 4.0]])(1).tolist()
            [3.0, 4.0]
        """
        table = ops.convert_to_tensor(embeddings)
        if len(table.shape) != 2:
            raise ShapeError(f"expected a table (num_embeddings, embedding_dim), got shape {tuple(table.shape)}")
        embedding = cls(*table.shape, padding_idx, scale_grad_by_freq=scale_grad_by_freq, rng=ops.random.Generator(0))
        embedding.weight = Parameter(table, trainable=not freeze)
        return embedding

    def __call__(self, input: Any) -> Tensor:
        return self._look_up(input)

    def as_linear(self, x: TensorLike) -> Tensor:
        """Returns `x @ weight.T`, as the head of a language model that shares the table.

        Shape: x (..., embedding_dim) to (..., num_embeddings).

        Args:
            x: (..., embedding_dim): features, of a floating dtype.
        """
        return ops.linear(x, self.weight, None, True)


class EmbeddingBag(_Table):
    """Returns the sums, means or maxima of the vectors of a table at bags of indices.

    Shape: indices (bags, length), or (n,) with offsets (bags,), to (bags, embedding_dim). An empty bag gives zeros.

    Args:
        num_embeddings: the number of vectors: the length of the first axis of the table.
        embedding_dim: the length of a vector: that of the last axis of the result.
        scale_grad_by_freq: whether the gradient of a vector is divided by how often its index occurs in the input.
        mode: how the vectors of a bag become one: their `"sum"`, `"mean"` or `"max"`.
        include_last_offset: whether the offsets end with the number of indices.
        padding_idx: the index of a vector that is zeros at first, gets no gradient, and belongs to no bag; None if
            there is none.
        rng: draws the initial values, which are normal numbers of mean 0 and variance 1, as in PyTorch.
        dtype: the dtype of the table; None is the default floating dtype.

    Attributes:
        weight: (num_embeddings, embedding_dim).

    Raises:
        ArgumentError: if a number is not positive, or `padding_idx` is out of range, or the mode is unknown.
        IndexOutOfBoundsError: from the call, if an index is out of range; see `ops.embedding`.

    Example:
        >>> layer = nn.EmbeddingBag(3, 2, mode="sum")
        >>> layer.load_state_dict({"weight": [[10.0, 20.0], [1.0, 2.0], [3.0, 4.0]]}).loaded
        ['weight']
        >>> layer([[2, 1]]).tolist(), layer([2, 1, 0], [0, 2]).tolist()
        ([[4.0, 6.0]], [[4.0, 6.0], [10.0, 20.0]])
    """

    def __init__(
        self,
        num_embeddings: int,
        embedding_dim: int,
        *,
        scale_grad_by_freq: bool = False,
        mode: str = "mean",
        include_last_offset: bool = False,
        padding_idx: int | None = None,
        rng: "rngs.Generator | rngs.Rngs | None" = None,
        dtype: DTypeLike | None = None,
    ) -> None:
        self.mode, self.include_last_offset = choice_option("mode", mode, ("sum", "mean", "max")), include_last_offset
        if scale_grad_by_freq and mode == "max":
            raise fault(ArgumentError("scale_grad_by_freq is for the modes 'sum' and 'mean'"))
        super().__init__(num_embeddings, embedding_dim, padding_idx, scale_grad_by_freq, rng, dtype)

    def __call__(self, input: Any, offsets: Any = None, per_sample_weights: TensorLike | None = None) -> Tensor:
        """Returns the sum, mean or maximum of the table's rows for each bag of indices.

        Args:
            input: the indices, of shape (bags, length) or (n,).
            offsets: where each bag begins, for indices of shape (n,); from 0, in ascending order.
            per_sample_weights: factors of the shape of the indices, for the mode `"sum"`.

        Raises:
            ArgumentError: if there are factors in another mode.
            ShapeError: if the shapes do not fit.
        """
        indices = spatial.to_tensor(input)
        shape = tuple(indices.shape)
        sum_bags, max_bags, bag_count = self._bag_reducers_and_count(shape, offsets)
        rows = self._look_up(input)
        if per_sample_weights is not None:
            weights = spatial.to_tensor(per_sample_weights)
            if self.mode != "sum":
                raise fault(ArgumentError(f"per_sample_weights are for the mode 'sum', not {self.mode!r}"))
            if tuple(weights.shape) != shape:
                raise fault(ShapeError(f"expected per_sample_weights of shape {shape}, got {tuple(weights.shape)}"))
            rows = ops.multiply(rows, ops.expand_dims(weights, -1))
        if 0 in shape:
            return ops.multiply(ops.zeros((bag_count, self.embedding_dim), rows.dtype), 1.0)
        entry_counts = ops.ones(shape, rows.dtype)
        if self.padding_idx is not None:
            entry_counts = ops.cast(ops.not_equal(indices, self.padding_idx), rows.dtype)
            is_entry = ops.expand_dims(ops.greater(entry_counts, 0), -1)
            rows = ops.where(is_entry, rows, float("-inf") if self.mode == "max" else 0.0)
        if self.mode == "sum":
            return sum_bags(rows)
        bag_lengths = ops.expand_dims(sum_bags(entry_counts), -1)
        if self.mode == "mean":
            return ops.divide(sum_bags(rows), ops.maximum(bag_lengths, 1.0))
        return ops.where(ops.greater(bag_lengths, 0), max_bags(rows), 0.0)

    def _bag_reducers_and_count(
        self, shape: tuple[int, ...], offsets: Any
    ) -> tuple[Callable[[Any], Tensor], Callable[[Any], Tensor], int]:
        """Returns a function that sums over each bag, one that takes maxima, and the number of bags.

        Raises:
            ShapeError: if the shapes do not fit.
        """
        if offsets is None:
            if len(shape) != 2:
                raise fault(ShapeError(f"expected indices (bags, length), or (n,) with offsets, got shape {shape}"))
            return (lambda x: ops.sum(x, 1)), (lambda x: ops.max(x, 1)), shape[0]
        bag_starts = spatial.to_tensor(offsets)
        if len(shape) != 1 or len(bag_starts.shape) != 1:
            raise fault(
                ShapeError(
                    f"expected indices (n,) and offsets (bags,), got shapes {shape} and {tuple(bag_starts.shape)}"
                )
            )
        bag_count = bag_starts.shape[0] - self.include_last_offset
        positions = ops.arange(shape[0], dtype=bag_starts.dtype)
        bag_ids = ops.subtract(
            ops.searchsorted(ops.get_item(bag_starts, slice(0, bag_count)), positions, side="right"), 1
        )
        return (
            (lambda x: ops.segment_sum(x, bag_ids, bag_count)),
            (lambda x: ops.segment_max(x, bag_ids, bag_count)),
            bag_count,
        )
