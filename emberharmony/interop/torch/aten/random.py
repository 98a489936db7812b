"""Operators of ATen that draw random numbers, here from the stream of `ops.random`."""

from collections.abc import Sequence
from typing import Any

from emberharmony import ops
from emberharmony.interop.torch.aten.table import aten


@aten("dropout")
def dropout(x: Any, p: float, train: bool) -> Any:
    """Returns the elements, of which in training a random share is set to 0 and the others are scaled up."""
    if not train or p == 0:
        return x
    return ops.multiply(x, 0.0) if p == 1 else ops.dropout(x, p)


@aten("native_dropout")
def native_dropout(x: Any, p: float, train: bool | None) -> tuple[Any, Any]:
    """Returns the elements after dropout, and booleans that tell which elements were kept."""
    if train is False or p == 0:
        return x, ops.ones(tuple(x.shape), "bool")
    is_kept = ops.less(ops.random.uniform(tuple(x.shape)), 1 - p)
    return ops.divide(ops.where(is_kept, x, 0), 1 - p) if p < 1 else ops.multiply(x, 0.0), is_kept


@aten("bernoulli.p")
def bernoulli(x: Any, p: float = 0.5) -> Any:
    """Returns random ones and zeros in the shape of a tensor; 1 has the probability `p`."""
    return ops.cast(ops.less(ops.random.uniform(tuple(x.shape)), p), ops.dtype(x))


@aten("bernoulli.default", "bernoulli.Tensor")
def bernoulli_each(x: Any, p: Any = None) -> Any:
    """Returns random ones and zeros, with the probabilities of 1 in a tensor."""
    return ops.cast(ops.less(ops.random.uniform(tuple(x.shape)), x if p is None else p), ops.dtype(x))


aten("rand")(lambda size, dtype=None: ops.cast(ops.random.uniform(tuple(size)), dtype))
aten("randn")(lambda size, dtype=None: ops.cast(ops.random.normal(tuple(size)), dtype))
aten("rand_like")(lambda x, dtype=None: ops.cast(ops.random.uniform(tuple(x.shape)), dtype or ops.dtype(x)))
aten("randn_like")(lambda x, dtype=None: ops.cast(ops.random.normal(tuple(x.shape)), dtype or ops.dtype(x)))
aten("randint")(lambda high, size, dtype=None: ops.random.randint(tuple(size), 0, high, dtype))
aten("randint.low")(lambda low, high, size, dtype=None: ops.random.randint(tuple(size), low, high, dtype))
aten("randint_like")(
    lambda x, high, dtype=None: ops.cast(ops.random.randint(tuple(x.shape), 0, high), dtype or ops.dtype(x))
)
aten("randint_like.low_dtype")(
    lambda x, low, high, dtype=None: ops.cast(ops.random.randint(tuple(x.shape), low, high), dtype or ops.dtype(x))
)
aten("randperm")(lambda n, dtype=None: ops.random.permutation(n))


@aten("uniform")
def uniform(x: Any, start: float = 0.0, to: float = 1.0) -> Any:
    """Returns uniformly distributed numbers in the shape of a tensor."""
    return ops.cast(ops.random.uniform(tuple(x.shape), start, to), ops.dtype(x))


@aten("normal_functional")
def normal(x: Any, mean: float = 0.0, std: float = 1.0) -> Any:
    """Returns normally distributed numbers in the shape of a tensor."""
    return ops.cast(ops.random.normal(tuple(x.shape), mean, std), ops.dtype(x))


@aten("normal.Tensor_Tensor", "normal.Tensor_float", "normal.float_Tensor")
def normal_of_tensors(mean: Any, std: Any = 1.0) -> Any:
    """Returns normally distributed numbers whose means and standard deviations are in tensors."""
    parameter_shapes = [tuple(getattr(each, "shape", ())) for each in (mean, std)]
    return ops.add(mean, ops.multiply(std, ops.random.normal(ops.broadcast_shapes(*parameter_shapes))))


@aten("exponential")
def exponential(x: Any, lambd: float = 1.0) -> Any:
    """Returns exponentially distributed numbers in the shape of a tensor."""
    return ops.cast(ops.divide(ops.random.exponential(tuple(x.shape)), lambd), ops.dtype(x))


@aten("multinomial")
def multinomial(x: Any, num_samples: int, replacement: bool = False) -> Any:
    """Returns random indices, drawn for each row of a tensor with the weights in the row.

    Each weight's logarithm gets a random number of Gumbel's distribution; the largest sums are drawn.
    """
    draw_count = num_samples if replacement else 1
    gumbel_shape: Sequence[int] = (*x.shape[:-1], draw_count, x.shape[-1])
    perturbed_logits = ops.add(ops.expand_dims(ops.log(x), -2), ops.random.gumbel(tuple(gumbel_shape)))
    return (
        ops.argmax(perturbed_logits, axis=-1)
        if replacement
        else ops.top_k(ops.squeeze(perturbed_logits, -2), num_samples)[1]
    )
