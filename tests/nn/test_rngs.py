"""Named streams of random numbers."""

import json

import pytest

from emberharmony import nn, ops
from emberharmony.errors import ArgumentTypeError


def test_streams_are_reproducible_and_independent(backend: str) -> None:
    one, two = nn.Rngs(0, dropout=5), nn.Rngs(0, dropout=5)
    first = ops.random.normal((3,), generator=one.params).tolist()
    assert first == ops.random.normal((3,), generator=two.params).tolist()
    assert first != ops.random.normal((3,), generator=one.dropout).tolist()
    assert ops.random.normal((3,), generator=two.dropout).tolist() == (
        ops.random.normal((3,), generator=ops.random.Generator(5)).tolist()
    )
    with pytest.raises(AttributeError, match="_x"):
        one._x


def test_the_state_is_json_and_continues(backend: str) -> None:
    rngs = nn.Rngs(0)
    ops.random.normal((3,), generator=rngs.params)
    state = json.loads(json.dumps(rngs.state_dict()))
    later = ops.random.normal((3,), generator=rngs.params).tolist()
    other = nn.Rngs(9)
    other.load_state_dict(state)
    assert ops.random.normal((3,), generator=other.params).tolist() == later
    assert nn.Linear(2, 2, rng=other).weight.value.tolist() == nn.Linear(2, 2, rng=rngs).weight.value.tolist()


def test_layers_that_have_a_stream_continue_with_its_loaded_state(backend: str) -> None:
    rngs, other = nn.Rngs(0), nn.Rngs(1)
    layer, loaded = nn.Dropout(rng=rngs), nn.Dropout(rng=other)
    layer(ops.ones(5))
    other.load_state_dict(rngs.state_dict())
    assert loaded.rng is other.dropout
    assert loaded(ops.ones(50)).tolist() == layer(ops.ones(50)).tolist()
    for wrong in ([], {"default": rngs.state_dict()["default"]}):
        with pytest.raises(ArgumentTypeError, match="'default' and 'streams'"):
            other.load_state_dict(wrong)  # type: ignore[arg-type]


def test_streams_are_shown_with_their_seeds() -> None:
    rngs = nn.Rngs(3, dropout=7)
    _ = rngs.params
    shown = "<Generator of seed {}, 0 words of bits drawn>".format
    assert repr(rngs) == f"Rngs(default={shown(3)}, dropout={shown(7)}, params={shown('3, split 0')})"
