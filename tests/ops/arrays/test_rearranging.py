"""Patterns of `rearrange`: their meaning, and those that are refused."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from emberharmony import ops
from emberharmony.backend.discovery import BUILTIN, is_installed
from emberharmony.core import errors

INSTALLED = [name for name in BUILTIN if is_installed(name)]
X = np.arange(24).reshape(2, 3, 4)


@pytest.mark.parametrize(
    ("pattern", "lengths", "wanted"),
    [
        ("a b c -> a b c", {}, X),
        ("a b c->c b a", {}, X.T),
        ("a b c -> (a b c)", {}, X.ravel()),
        ("a b (c d) -> d a b c", {"c": 2}, X.reshape(2, 3, 2, 2).transpose(3, 0, 1, 2)),
        ("... -> (...)", {}, X.ravel()),
        ("a ... b -> b ... a", {}, X.T),
        ("... a b -> ... b a", {}, X.swapaxes(1, 2)),
        ("a b ... c -> c a b ...", {}, X.transpose(2, 0, 1)),
        ("a b c -> a 1 (b c) ()", {}, X.reshape(2, 1, 12, 1)),
        ("(a one) b c -> one a c b", {"one": 1}, X.reshape(1, 2, 3, 4).swapaxes(2, 3)),
        ("(a b) c d -> a b c d", {"a": 2, "b": 1}, X.reshape(2, 1, 3, 4)),
    ],
)
def test_a_pattern_splits_moves_and_joins_axes(
    backend: str, pattern: str, lengths: dict[str, int], wanted: np.ndarray
) -> None:
    got = ops.to_numpy(ops.rearrange(X, pattern, lengths))
    assert got.shape == wanted.shape
    assert got.tolist() == wanted.tolist()


def test_a_pattern_may_add_and_remove_axes_of_length_one(backend: str) -> None:
    assert ops.rearrange([[[1, 2]]], "1 () a -> a").tolist() == [1, 2]
    assert ops.rearrange(ops.full((), 3), " -> 1").tolist() == [3]
    assert ops.rearrange([3], "1 -> ").tolist() == 3


@pytest.mark.parametrize(
    ("pattern", "lengths", "error"),
    [
        ("a b c", {}, errors.ArgumentError),
        ("a b c -> a -> b", {}, errors.ArgumentError),
        ("a b c -> a b", {}, errors.ArgumentError),
        ("a b c -> a b c d", {}, errors.ArgumentError),
        ("a a b -> a b", {}, errors.ArgumentError),
        ("a b c -> a b b c", {}, errors.ArgumentError),
        ("a b (c -> a b c", {}, errors.ArgumentError),
        ("a b ((c)) -> a b c", {}, errors.ArgumentError),
        ("a b c? -> a b c", {}, errors.ArgumentError),
        ("... ... -> ...", {}, errors.ArgumentError),
        ("a (... b) -> a b", {}, errors.ArgumentError),
        ("a b (c d) -> a b c d", {}, errors.ArgumentError),
        ("a b c -> a b c", {"d": 2}, errors.ArgumentError),
        ("a b -> b a", {}, errors.ShapeError),
        ("a b c d ... -> ... a b c d", {}, errors.ShapeError),
        ("a b (c d) -> a b c d", {"c": 3}, errors.ShapeError),
        ("a b c -> b a c", {"a": 5}, errors.ShapeError),
        ("1 b c -> b c", {}, errors.ShapeError),
    ],
)
def test_a_wrong_pattern_is_refused(
    backend: str, pattern: str, lengths: dict[str, int], error: type[Exception]
) -> None:
    with pytest.raises(error, match=rf"rearrange\(\) on backend '{backend}'"):
        ops.rearrange(X, pattern, lengths)


@pytest.mark.parametrize("data_format", ["channels_last", "channels_first"])
def test_depth_to_space_undoes_space_to_depth(backend: str, data_format: str) -> None:
    x = np.arange(2 * 6 * 6 * 6).reshape(2, 6, 6, 6)
    deep = ops.space_to_depth(x, 3, data_format)
    assert ops.shape(deep) == ((2, 2, 2, 54) if data_format == "channels_last" else (2, 54, 2, 2))
    assert ops.to_numpy(ops.depth_to_space(deep, 3, data_format)).tolist() == x.tolist()


def test_lengths_that_the_block_size_does_not_divide_are_refused(backend: str) -> None:
    with pytest.raises(errors.ShapeError):
        ops.space_to_depth(ops.zeros((1, 5, 4, 1)), 2)
    with pytest.raises(errors.ShapeError):
        ops.depth_to_space(ops.zeros((1, 2, 2, 6)), 2)
    with pytest.raises(errors.ArgumentError, match="data_format"):
        ops.space_to_depth(ops.zeros((1, 4, 4, 1)), 2, "last")


@pytest.mark.parametrize("op", ["depth_to_space", "space_to_depth"])
def test_a_block_has_a_length(op: str, backend: str) -> None:
    for size, error in ((0, errors.ArgumentError), (-2, errors.ArgumentError), (2.0, errors.ArgumentTypeError)):
        with pytest.raises(error, match=rf"{op}\(\) on backend '{backend}': expected .*block_size"):
            getattr(ops, op)(ops.zeros((1, 4, 4, 4)), size)


def test_four_rotations_by_90_degrees_change_nothing(backend: str) -> None:
    turned = X
    for _ in range(4):
        turned = ops.rot90(turned, axes=(2, 0))
    assert ops.to_numpy(turned).tolist() == X.tolist()
    assert ops.to_numpy(ops.rot90(X, -1)).tolist() == np.rot90(X, -1).tolist()


def test_a_cached_pattern_works_for_other_shapes(backend: str) -> None:
    for shape in ((2, 6), (2, 4), (0, 4), (2, 6)):
        assert ops.shape(ops.rearrange(ops.zeros(shape), "a (b c) -> c (a b)", {"c": 2})) == (
            2,
            shape[0] * shape[1] // 2,
        )
    assert ops.shape(ops.rearrange(ops.zeros((2, 6)), "a (b c) -> c (a b)", {"c": 3})) == (3, 4)
    with pytest.raises(errors.ShapeError):
        ops.rearrange(ops.zeros((2, 5)), "a (b c) -> c (a b)", {"c": 2})


LETTERS = "abcde"


@given(data=st.data())
def test_the_reversed_pattern_undoes_a_pattern(data: st.DataObject) -> None:
    count = data.draw(st.integers(1, 4))
    lengths = {name: data.draw(st.integers(1, 3)) for name in LETTERS[:count]}
    order = data.draw(st.permutations(list(lengths)))
    joined = data.draw(st.integers(1, count))
    source = " ".join(lengths)
    target = " ".join([f"({' '.join(order[:joined])})", *order[joined:]])
    x = np.arange(int(np.prod(list(lengths.values())))).reshape(*lengths.values())
    turned = np.transpose(x, [list(lengths).index(name) for name in order])
    for backend in INSTALLED:
        with ops.use_backend(backend):
            there = ops.rearrange(x, f"{source} -> {target}")
            assert ops.to_numpy(there).tolist() == turned.reshape(-1, *turned.shape[joined:]).tolist()
            assert ops.to_numpy(ops.rearrange(there, f"{target} -> {source}", lengths)).tolist() == x.tolist()
