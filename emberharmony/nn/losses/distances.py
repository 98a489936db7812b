"""Losses of distances between pairs and triplets of vectors."""

from collections.abc import Callable

from emberharmony import ops
from emberharmony.core.errors import ShapeError
from emberharmony.core.types import Tensor, TensorLike
from emberharmony.nn.locate import fault
from emberharmony.nn.losses.operands import (
    Reduction,
    convert_matching_operands,
    convert_operands,
    reduce_losses,
    require_option,
    shortfall,
)

_EPSILON = 1e-12
"""The number added to the squared norms of vectors in the computation of their cosine, as in torch."""


def hinge_embedding(
    input: TensorLike, target: TensorLike, margin: float = 1.0, *, reduction: Reduction = "mean"
) -> Tensor:
    """Returns `input` where the target is 1, and `max(0, margin - input)` where it is -1, by default the mean.

    Args:
        input: distances, a tensor of any shape.
        target: 1 for pairs that belong together, -1 for others, in a tensor of the same shape.
        margin: the distance that others should have at least.
        reduction: "none" gives each loss, "mean" their mean, and "sum" their sum.

    Raises:
        ShapeError: if the shapes differ.

    Example:
        >>> from emberharmony import nn
        >>> nn.losses.hinge_embedding([0.5, 0.75], [1.0, -1.0], reduction="none").tolist()
        [0.5, 0.25]

    Source: `torch.nn.functional.hinge_embedding_loss`.
    """
    (x, t), result_dtype = convert_matching_operands("hinge_embedding", input=input, target=target)
    dissimilar_losses = ops.where(ops.equal(t, 1.0), 0.0, shortfall(x, margin))
    similar_losses = ops.where(ops.equal(t, -1.0), 0.0, x)
    return reduce_losses("hinge_embedding", ops.add(dissimilar_losses, similar_losses), reduction, result_dtype)


def cosine_embedding(
    input1: TensorLike,
    input2: TensorLike,
    target: TensorLike,
    margin: float = 0.0,
    *,
    reduction: Reduction = "mean",
) -> Tensor:
    """Returns `1 - cos` where the target is 1, and `max(0, cos - margin)` where it is -1, by default the mean.

    Args:
        input1, input2: vectors, `(features,)` or `(batch, features)`.
        target: 1 for pairs that belong together, -1 for others, `()` or `(batch,)`.
        margin: the cosine that others should have at most, from -1 to 1.
        reduction: "none" gives each loss, "mean" their mean, and "sum" their sum.

    Raises:
        ArgumentError: if `margin` is not a cosine.
        ShapeError: if the shapes do not fit.

    Example:
        >>> from emberharmony import nn
        >>> nn.losses.cosine_embedding([[3.0, 0.0]], [[0.0, 2.0]], [1]).tolist()
        1.0

    Source: `torch.nn.functional.cosine_embedding_loss`.
    """
    name = "cosine_embedding"
    require_option(name, "margin", margin, -1 <= margin <= 1, "a number from -1 to 1")
    (x, y), result_dtype = convert_matching_operands(name, input1=input1, input2=input2)
    (t,), _ = convert_operands(name, target)
    if len(x.shape) not in (1, 2) or tuple(t.shape) != tuple(x.shape[:-1]):
        raise fault(
            ShapeError(
                f"{name}(): expected vectors of shape (features,) or (batch, features) and a target () or (batch,), got"
                f" {tuple(x.shape)} and {tuple(t.shape)}"
            )
        )
    norms = [ops.sqrt(ops.add(ops.sum(ops.square(vectors), -1), _EPSILON)) for vectors in (x, y)]
    cosine = ops.divide(ops.sum(ops.multiply(x, y), -1), ops.multiply(*norms))
    similar_losses = ops.where(ops.equal(t, 1.0), ops.add(ops.negative(cosine), 1.0), 0.0)
    dissimilar_losses = ops.where(ops.equal(t, -1.0), shortfall(ops.negative(cosine), -margin), 0.0)
    return reduce_losses(name, ops.add(similar_losses, dissimilar_losses), reduction, result_dtype)


def triplet_margin(
    anchor: TensorLike,
    positive: TensorLike,
    negative: TensorLike,
    margin: float = 1.0,
    p: float = 2.0,
    eps: float = 1e-6,
    swap: bool = False,
    *,
    reduction: Reduction = "mean",
) -> Tensor:
    """Returns `max(0, margin + |anchor - positive| - |anchor - negative|)`, by default the mean.

    Args:
        anchor, positive, negative: vectors `(..., features)` of one shape.
        margin: by how much the negative example should be farther away.
        p: the order of the norm.
        eps: what is added to each difference, so that the gradient of a distance of 0 is defined.
        swap: whether the negative example may be nearer to the positive one than to the anchor, and this distance is
            used then.
        reduction: "none" gives each loss, "mean" their mean, and "sum" their sum.

    Raises:
        ArgumentError: if `margin` is not positive.
        ShapeError: if the shapes do not fit.

    Example:
        >>> from emberharmony import nn
        >>> round(nn.losses.triplet_margin([[0.0, 0.0]], [[3.0, 4.0]], [[0.0, 2.0]]).tolist(), 4)
        4.0

    Source: `torch.nn.functional.triplet_margin_loss`; Balntas et al., "Learning shallow convolutional feature
    descriptors with triplet losses", 2016.
    """

    def distance(x: Tensor, y: Tensor) -> Tensor:
        return ops.vector_norm(ops.add(ops.subtract(x, y), eps), -1, ord=p)

    return _triplet_loss("triplet_margin", anchor, positive, negative, distance, margin, swap, reduction)


def triplet_margin_with_distance(
    anchor: TensorLike,
    positive: TensorLike,
    negative: TensorLike,
    *,
    distance_function: Callable[[Tensor, Tensor], Tensor] | None = None,
    margin: float = 1.0,
    swap: bool = False,
    reduction: Reduction = "mean",
) -> Tensor:
    """Returns the loss of `triplet_margin` with a given distance function.

    Args:
        anchor, positive, negative: tensors that `distance_function` takes, such as vectors `(..., features)`.
        distance_function: returns the distances between two tensors of vectors; None takes the Euclidean ones.
        margin: by how much the negative example should be farther away, in the unit of the distance.
        swap: whether the negative example may be nearer to the positive one than to the anchor, and this distance is
            used then.
        reduction: "none" gives each loss, "mean" and "sum" one number.

    Raises:
        ArgumentError: if `margin` is not positive.
        ShapeError: if the shapes do not fit.

    Example:
        >>> from emberharmony import nn, ops
        >>> vectors = [[0.0, 0.0]], [[3.0, 4.0]], [[0.0, 2.0]]
        >>> largest = lambda x, y: ops.max(ops.abs(ops.subtract(x, y)), -1)
        >>> nn.losses.triplet_margin_with_distance(*vectors, distance_function=largest).tolist()
        3.0

    Source: `torch.nn.functional.triplet_margin_with_distance_loss`.
    """
    if distance_function is None:
        return triplet_margin(anchor, positive, negative, margin, swap=swap, reduction=reduction)
    name = "triplet_margin_with_distance"
    return _triplet_loss(name, anchor, positive, negative, distance_function, margin, swap, reduction)


def _triplet_loss(
    name: str,
    anchor: TensorLike,
    positive: TensorLike,
    negative: TensorLike,
    distance: Callable[[Tensor, Tensor], Tensor],
    margin: float,
    swap: bool,
    reduction: Reduction,
) -> Tensor:
    require_option(name, "margin", margin, margin > 0, "a number > 0")
    (a, p, n), result_dtype = convert_matching_operands(name, anchor=anchor, positive=positive, negative=negative)
    if not a.shape:
        raise fault(ShapeError(f"{name}(): anchor has no axes, expected vectors (..., features)"))
    positive_distance, negative_distance = distance(a, p), distance(a, n)
    if swap:
        negative_distance = ops.minimum(negative_distance, distance(p, n))
    return reduce_losses(
        name, shortfall(ops.subtract(negative_distance, positive_distance), margin), reduction, result_dtype
    )
