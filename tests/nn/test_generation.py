"""Generation of tokens: the likeliest, those drawn, their ends, and the switch of the backend between two tokens."""

from typing import Any

import numpy as np
import pytest

from emberharmony import nn, ops
from emberharmony.errors import ArgumentError, ArgumentTypeError, ShapeError

DRAWN: list[dict[str, Any]] = [
    {},
    {"temperature": 1.3},
    {"temperature": 0.8, "top_k": 4},
    {"temperature": 1.5, "top_p": 0.7},
    {"temperature": 1.2, "top_k": 9, "top_p": 0.9, "eos": [3, 5]},
]


class Model(nn.Module):
    """A model of one layer, whose weights do not depend on the backend."""

    def __init__(self) -> None:
        rngs = nn.Rngs(7)
        self.tokens = nn.Embedding(23, 8, rng=rngs)
        self.attention = nn.MultiheadAttention(8, 2, batch_first=True, rope=nn.RoPE(4), rng=rngs)

    def caches(self) -> list[nn.KVCache]:
        return [nn.KVCache()]

    def __call__(self, tokens: Any, caches: Any = None) -> Any:
        x = self.tokens(tokens)
        found, _ = self.attention(x, need_weights=False, is_causal=True, cache=caches and caches[0])
        return self.tokens.as_linear(ops.add(x, ops.multiply(found, 3.0)))


class Fixed(nn.Module):
    """A model whose logits are given."""

    def __init__(self, *logits: float) -> None:
        self.logits = logits

    def caches(self) -> list[nn.KVCache]:
        return []

    def __call__(self, tokens: Any, caches: Any) -> Any:
        return ops.broadcast_to(ops.array(self.logits, "float32"), (*tokens.shape, len(self.logits)))


def rng() -> Any:
    return ops.random.Generator(5)


def test_the_likeliest_tokens_are_those_of_the_model_without_a_cache(backend: str) -> None:
    model, text = Model(), [1, 2, 3]
    found = nn.generate(model, text, 12)
    for token in found:
        assert token == int(ops.argmax(model(ops.array([text]))[0, -1]))
        text = [*text, token]
    assert list(nn.stream_generate(model, ops.array([1, 2, 3]), 12)) == found
    batch = nn.generate(model, [[1, 2, 3], [4, 0, 9]], 12)
    assert batch == [found, nn.generate(model, np.array([4, 0, 9]), 12)]


def test_texts_of_different_length_go_on_as_each_does_alone(backend: str) -> None:
    model, texts = Model(), [[1, 2, 3, 5, 8], [4], [0, 9, 7]]
    alone = [nn.generate(model, text, 8) for text in texts]
    assert nn.generate(model, texts, 8) == alone
    assert nn.generate(model, [np.array(text) for text in texts], 8) == alone
    ends = alone[1][2]
    assert nn.generate(model, texts, 8, eos=ends) == [nn.generate(model, text, 8, eos=ends) for text in texts]
    stream = nn.stream_generate(model, texts, 8)
    moved = [next(stream), next(stream)]
    with ops.use_backend("numpy"):
        moved.append(next(stream))
    assert [list(row) for row in zip(*moved, *stream, strict=True)] == alone


def test_texts_of_different_length_need_a_model_that_masks_padding(backend: str) -> None:
    for caches in ([], [nn.KVCache()]):
        model = Fixed(0.0, 1.0)
        model.caches = lambda caches=caches: caches  # type: ignore[method-assign]
        with pytest.raises(ArgumentError, match="Fixed does not ask its caches for the mask of padding"):
            nn.generate(model, [[0, 1], [1]], 1)


@pytest.mark.parametrize("options", DRAWN, ids=str)
def test_equal_tokens_are_drawn_on_every_backend_and_after_each_switch(backend: str, options: Any) -> None:
    model = Model()
    found = nn.generate(model, [1, 2, 3], 12, rng=rng(), **options)
    with ops.use_backend("numpy"):
        assert nn.generate(model, [1, 2, 3], 12, rng=rng(), **options) == found
    moved, stream = [], nn.stream_generate(model, [1, 2, 3], 12, rng=rng(), **options)
    for place in ["numpy", "numpy", backend, backend] * 3:
        with ops.use_backend(place):
            moved += [token for token in [next(stream, None)] if token is not None]
    assert moved == found


def test_tokens_are_drawn_with_the_probabilities_of_the_options(backend: str) -> None:
    shares = [0.4, 0.3, 0.2, 0.1]
    model = Fixed(*np.log(shares))
    for options, right in (
        ({}, shares),
        ({"temperature": 0.5}, np.square(shares)),
        ({"top_k": 2}, [0.4, 0.3, 0, 0]),
        ({"top_k": 9}, shares),
        ({"top_p": 0.65}, [0.4, 0.3, 0, 0]),
        ({"top_p": 0.75}, [0.4, 0.3, 0.2, 0]),
        ({"top_p": 1e-9}, [1, 0, 0, 0]),
        ({"top_k": 3, "top_p": 0.75}, [0.4, 0.3, 0, 0]),
        ({"top_p": 1.0}, shares),
    ):
        drawn = nn.generate(model, np.zeros((1000, 1), int), 1, rng=rng(), **{"temperature": 1.0, **options})
        counts = np.bincount([row[0] for row in drawn], minlength=4)
        wanted = np.array(right) / np.sum(right)
        assert (counts[wanted == 0] == 0).all(), options
        assert np.abs(counts / 1000 - wanted).max() < 0.06, options


def test_a_text_ends_with_its_last_token(backend: str) -> None:
    class Counting(Fixed):
        def __call__(self, tokens: Any, caches: Any) -> Any:
            return ops.one_hot(ops.add(tokens, 1), 12)

    model = Counting()
    assert nn.generate(model, [2], 5, eos=4) == [3, 4]
    assert nn.generate(model, [2], 5, eos=(9, 6)) == [3, 4, 5, 6]
    assert nn.generate(model, [[2], [0]], 9, eos=4) == [[3, 4], [1, 2, 3, 4]]
    assert list(nn.stream_generate(model, [[2], [0]], eos=4)) == [[3, 1], [4, 2], [4, 3], [4, 4]]
    assert nn.generate(model, [2], 0) == []
    assert nn.generate(model, [[2], [3]], 0) == [[], []]


def test_without_a_generator_the_seed_decides(backend: str) -> None:
    def drawn() -> Any:
        ops.random.seed(4)
        return nn.generate(Fixed(0, 0, 0, 0), [0], 20, temperature=1.0)

    assert drawn() == drawn()


def test_wrong_options_are_refused(backend: str) -> None:
    model = Fixed(0.0, 1.0)
    options: list[tuple[type[Exception], str, dict[str, Any]]] = [
        (ArgumentError, "temperature must be 0 or positive, got -1", {"temperature": -1}),
        (ArgumentError, "temperature must be 0 or positive, got nan", {"temperature": float("nan")}),
        (ArgumentError, "top_k must be at least 1, got 0", {"top_k": 0}),
        (ArgumentError, "top_p must be more than 0", {"top_p": 0.0}),
        (ArgumentError, "top_p must be a probability", {"top_p": 1.5}),
        (ArgumentError, "max_tokens must be at least 0", {"max_tokens": -1}),
        (ArgumentTypeError, "eos must be an integer", {"eos": "end"}),
    ]
    for kind, message, wrong in options:
        with pytest.raises(kind, match=message):
            nn.generate(model, [0], **{"max_tokens": 1, **wrong})
    for prompt in ([], [[]], [0.5], 3, [[1, 2], []], [[1, 2], [0.5]]):
        with pytest.raises(ShapeError, match="expected a prompt of integers"):
            nn.stream_generate(model, prompt, 1)
