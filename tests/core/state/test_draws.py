"""Blocks that repeat, clone and set back the random streams that a function draws from."""

import copy

import numpy as np

from emberharmony.core.state.draws import Aside, Draws, Rewinding, WithoutDraws, is_without_draws, stream_to_draw_from


def clone(stream):
    return copy.deepcopy(stream)


def draw(stream):
    return float(stream_to_draw_from(stream, clone).random())


def numbers(seed, count):
    return np.random.default_rng(seed).random(count).tolist()


def test_later_runs_draw_the_numbers_of_the_first_and_leave_the_stream():
    stream, draws = np.random.default_rng(0), Draws()
    first, *later = numbers(0, 4)
    assert draw(stream) == first
    for _ in range(3):
        with draws.next_run():
            assert [draw(stream), draw(stream)] == later[:2]
    assert draw(stream) == later[2]


def test_a_stream_that_only_a_later_run_draws_from_advances():
    known, other, draws = np.random.default_rng(0), np.random.default_rng(1), Draws()
    with draws.next_run():
        draw(known)
    with draws.next_run():
        assert draw(other) == numbers(1, 2)[0]
    assert draw(other) == numbers(1, 2)[1]


def test_draws_aside_do_not_advance_the_stream():
    stream = np.random.default_rng(0)
    with Aside():
        assert [draw(stream), draw(stream)] == numbers(0, 2)
    with Aside():
        assert draw(stream) == numbers(0, 1)[0]
    assert draw(stream) == numbers(0, 1)[0]


def test_streams_are_set_back():
    stream, block = np.random.default_rng(0), Rewinding()
    with block:
        assert [draw(stream), draw(stream)] == numbers(0, 2)
    block.rewind()
    assert draw(stream) == numbers(0, 1)[0]


def test_the_innermost_block_decides():
    stream, draws = np.random.default_rng(0), Draws()
    with draws.next_run(), Aside():
        assert draw(stream) == numbers(0, 1)[0]
    assert draw(stream) == numbers(0, 1)[0]


def test_a_block_without_draws_is_known_inside_of_others() -> None:
    assert not is_without_draws()
    with Draws().first_run():
        assert not is_without_draws()
        with WithoutDraws():
            with Draws().first_run():
                assert is_without_draws()
            assert is_without_draws()
    assert not is_without_draws()
