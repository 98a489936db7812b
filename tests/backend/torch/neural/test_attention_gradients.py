"""Gradients of attention on PyTorch: the fused kernel's agree with the composite's, in every order and on every way."""

from collections.abc import Callable, Iterator
from typing import Any

import pytest

from emberharmony import ops
from emberharmony.backend.choice import use_backend
from emberharmony.core.registry import OPS

torch = pytest.importorskip("torch")

SHAPES = [
    ((1, 1, 1, 1), (1, 1, 1, 1), 1),
    ((2, 3, 4, 5), (2, 3, 4, 5), 5),
    ((2, 3, 4, 5), (2, 7, 2, 5), 3),
    ((2, 3, 4, 5), (2, 7, 2, 5), 5),
    ((1, 7, 2, 4), (1, 3, 2, 4), 4),
    ((1, 130, 1, 8), (1, 65, 1, 8), 8),
]
"""The shapes of queries and keys, and the width of the values."""
OPTIONS = ["plain", "causal", "scale", "bias", "mask", "causal mask", "row of the mask"]


@pytest.fixture(autouse=True)
def torch_backend() -> Iterator[None]:
    with use_backend("torch"):
        yield


def random(*shape: int, seed: int = 0) -> Any:
    return torch.randn(shape, generator=torch.Generator().manual_seed(seed), dtype=torch.float64)


def options_of(kind: str, query: tuple[int, ...], key: tuple[int, ...]) -> dict[str, Any]:
    """Returns options; a mask leaves the first query without keys."""
    options: dict[str, Any] = {"is_causal": True} if "causal" in kind else {}
    if kind == "scale":
        options["scale"] = 0.3
    if kind == "bias":
        options["bias"] = random(query[2], query[1], key[1], seed=4)
    if "mask" in kind:
        options["mask"] = random(query[0], 1, query[1], key[1], seed=5) > 0
        options["mask"][:, :, 0] = False
    if kind.startswith("row"):
        options["mask"] = options["mask"][0, 0, -1]
    return options


def composite(query: Any, key: Any, value: Any, **options: Any) -> Any:
    return OPS["dot_product_attention"].declared(query, key, value, **{"bias": None, "mask": None, **options})


def leaves(query: tuple[int, ...], key: tuple[int, ...], width: int) -> list[Any]:
    return [x.requires_grad_() for x in (random(*query), random(*key, seed=1), random(*key[:3], width, seed=2))]


@pytest.mark.parametrize("shapes", SHAPES)
@pytest.mark.parametrize("kind", OPTIONS)
def test_the_gradients_are_those_of_the_composite(shapes: Any, kind: str) -> None:
    query, key, width = shapes
    tensors, options = leaves(query, key, width), options_of(kind, query, key)
    found, wanted = ops.dot_product_attention(*tensors, **options), composite(*tensors, **options)
    is_flash = kind in ("plain", "causal", "scale") and key[2:] == (query[2], width)
    assert type(found.grad_fn).__name__ == ("_FlashAttentionBackward" if is_flash else "_AttentionBackward")
    torch.testing.assert_close(found, wanted)
    cotangent = random(*found.shape, seed=3)
    for _ in range(2):  # the graph is kept
        gradients = torch.autograd.grad(found, tensors, cotangent, retain_graph=True)
        torch.testing.assert_close(gradients, torch.autograd.grad(wanted, tensors, cotangent, retain_graph=True))
    torch.testing.assert_close(torch.autograd.grad(found, tensors, cotangent), gradients)


@pytest.mark.parametrize("kind", OPTIONS)
def test_second_gradients_are_those_of_the_composite(kind: str) -> None:
    query, key, width = SHAPES[1]
    tensors, options = leaves(query, key, width), options_of(kind, query, key)

    def curvatures(attention: Callable[..., Any]) -> Any:
        first = torch.autograd.grad(attention(*tensors, **options).pow(3).sum(), tensors, create_graph=True)
        return torch.autograd.grad(sum(x.square().sum() for x in first), tensors)

    torch.testing.assert_close(curvatures(ops.dot_product_attention), curvatures(composite))
    slope = ops.grad(lambda *xs: ops.sum(ops.power(ops.dot_product_attention(*xs, **options), 3)), argnums=(0, 1, 2))
    squares = lambda *xs: sum(ops.sum(ops.square(x)) for x in slope(*xs))
    nested = ops.grad(squares, argnums=(0, 1, 2))(*(x.detach() for x in tensors))
    torch.testing.assert_close(nested, curvatures(composite))


def test_one_tensor_in_three_places_has_the_sum_of_its_gradients() -> None:
    (x,) = leaves((2, 3, 4, 5), (2, 3, 4, 5), 5)[:1]
    for is_second in (False, True):
        gradients = []
        for attention in (ops.dot_product_attention, composite):
            (gradient,) = torch.autograd.grad(attention(x, x, x).pow(3).sum(), x, create_graph=is_second)
            gradients.append(torch.autograd.grad(gradient.square().sum(), x)[0] if is_second else gradient)
        torch.testing.assert_close(*gradients)


def test_only_what_requires_a_gradient_gets_one() -> None:
    query, key, value = leaves(*SHAPES[1])
    result = ops.dot_product_attention(query.detach(), key, value.detach())
    (gradient,) = torch.autograd.grad(result.sum(), key)
    (wanted,) = torch.autograd.grad(composite(query, key, value).sum(), key)
    torch.testing.assert_close(gradient, wanted)


@pytest.mark.parametrize("shapes", SHAPES[1:3])
def test_a_gradient_frees_the_scores_of_the_kernel(shapes: Any) -> None:
    query, key, value = leaves(*shapes)
    result = ops.dot_product_attention(query, key, value)
    node = result.grad_fn
    result.sum().backward()
    assert getattr(node, "result", None) is None
    with pytest.raises(RuntimeError, match="second time"):
        result.sum().backward()


def test_the_gradient_of_the_bias_is_that_of_the_composite() -> None:
    tensors = leaves(*SHAPES[1])
    bias = random(4, 3, 3, seed=4).requires_grad_()
    found = torch.autograd.grad(ops.dot_product_attention(*tensors, bias=bias).pow(2).sum(), bias)
    torch.testing.assert_close(found, torch.autograd.grad(composite(*tensors, bias=bias).pow(2).sum(), bias))


def test_checkpoints_compute_attention_again() -> None:
    from torch.utils.checkpoint import checkpoint

    tensors = leaves(*SHAPES[1])
    again = checkpoint(lambda *xs: ops.dot_product_attention(*xs), *tensors, use_reentrant=False)
    found = torch.autograd.grad(again.pow(2).sum(), tensors)
    torch.testing.assert_close(found, torch.autograd.grad(composite(*tensors).pow(2).sum(), tensors))
    through_ops = ops.grad(ops.checkpoint(lambda q: ops.sum(ops.square(ops.dot_product_attention(q, *tensors[1:])))))
    torch.testing.assert_close(through_ops(tensors[0].detach()), found[0])


def test_blocks_of_the_library_hold_for_attention_with_a_gradient() -> None:
    from torch.nn.attention import SDPBackend, sdpa_kernel

    tensors = leaves(*SHAPES[1])
    wanted = torch.autograd.grad(composite(*tensors, is_causal=True).sum(), tensors)
    for block in (sdpa_kernel(SDPBackend.MATH), torch.autocast("cpu")):
        with block:
            found = ops.dot_product_attention(*tensors, is_causal=True)
        assert type(found.grad_fn).__name__ == "_AttentionBackward"
        torch.testing.assert_close(torch.autograd.grad(found.sum(), tensors), wanted)
    with torch.autocast("cpu"):
        single = [x.detach().float().requires_grad_() for x in tensors]
        assert ops.dot_product_attention(*single).dtype == torch.bfloat16
