"""Loading state dicts: everything that is wrong is said at once, and nothing changes then."""

from typing import Any

import numpy as np
import pytest

from emberharmony import nn, ops
from emberharmony.errors import ArgumentTypeError, StateDictError


def net() -> nn.Sequential:
    return nn.Sequential(nn.Linear(3, 4), nn.Linear(4, 2))


def test_a_state_dict_of_any_backend_loads(backend: str) -> None:
    made = net()
    for other in ops.available_backends():
        with ops.use_backend(other):
            given = net().state_dict()
            right = {name: ops.to_numpy(x) for name, x in given.items()}
        loaded = made.load_state_dict(given)
        assert loaded.loaded == list(given)
        assert not loaded.missing
        for name, x in made.state_dict(host=True).items():
            assert np.array_equal(x, right[name])


def test_loading_copies(backend: str) -> None:
    made, given = net(), {name: np.ones(x.shape, "float32") for name, x in net().state_dict(host=True).items()}
    made.load_state_dict(given)
    given["0.bias"][:] = 7
    assert made.state_dict()["0.bias"].tolist() == [1.0] * 4


def test_buffers_that_are_not_persistent_are_neither_saved_nor_loaded(backend: str) -> None:
    class Counting(nn.Module):
        """Has a buffer that is saved and one that is not."""

        def __init__(self) -> None:
            self.total, self.last = nn.Buffer([0.0]), nn.Buffer([7.0], persistent=False)

    made = nn.Sequential(Counting(), nn.Linear(1, 1))
    saved = made.state_dict()
    assert list(saved) == ["0.total", "1.weight", "1.bias"]
    assert list(made.state_dict(persistent_only=False)) == ["0.total", "0.last", "1.weight", "1.bias"]
    assert not made.load_state_dict(saved).missing
    with pytest.raises(StateDictError, match=r"unexpected: 0\.last"):
        made.load_state_dict(made.state_dict(persistent_only=False))
    assert made[0].last.value.tolist() == [7.0]


def test_all_faults_are_listed_and_nothing_changes(backend: str) -> None:
    made = net()
    before = {name: x.tolist() for name, x in made.state_dict().items()}
    state: dict[str, Any] = dict(made.state_dict())
    state["0.wieght"] = state.pop("0.weight")
    state["1.weight"] = ops.zeros((4, 2))
    state["1.bias"] = ops.array([1, 2], "int32")
    with pytest.raises(StateDictError) as caught:
        made.load_state_dict(state)
    lines = str(caught.value).splitlines()
    assert lines[0].startswith("load_state_dict() of Sequential changed nothing")
    assert lines[1].strip() == "missing: 0.weight; did you mean '0.wieght'?"
    assert lines[2].strip() == "unexpected: 0.wieght; did you mean '0.weight'?"
    assert lines[3].strip() == "wrong: 1.weight: has shape (4, 2), expected (2, 4)"
    assert lines[4].strip() == "wrong: 1.bias: has dtype int32, which cannot become float32"
    assert isinstance(caught.value, KeyError)
    assert {name: x.tolist() for name, x in made.state_dict().items()} == before


def test_without_strict_missing_and_unexpected_names_are_returned(backend: str) -> None:
    made = net()
    loaded = made.load_state_dict({"0.bias": [1.0, 2.0, 3.0, 4.0], "extra": [1.0]}, strict=False)
    assert loaded == (["0.bias"], ["0.weight", "1.weight", "1.bias"], ["extra"], [])
    with pytest.raises(StateDictError, match=r"wrong: 0\.bias: has shape \(1,\)"):
        made.load_state_dict({"0.bias": [1.0]}, strict=False)


def test_names_can_be_changed(backend: str) -> None:
    made = net()
    made.load_state_dict({f"model.{k}": v for k, v in net().state_dict().items()}, rename=lambda k: k[6:])
    with pytest.raises(StateDictError, match=r"rename.. gives 'a' and 'b' the same name 'c'"):
        made.load_state_dict({"a": [1.0], "b": [1.0]}, rename=lambda name: "c")
    with pytest.raises(ArgumentTypeError, match=r"rename.. must return the new name, got None for 'a'"):
        made.load_state_dict({"a": [1.0]}, rename=lambda name: None)  # type: ignore[arg-type, return-value]


def test_dtypes_are_kept_or_taken(backend: str) -> None:
    made = net()
    half = {name: ops.cast(x, "float16") for name, x in made.state_dict().items()}
    assert made.load_state_dict(half).cast == list(half)
    assert ops.dtype(made[0].weight.value).name == "float32"
    assert made.load_state_dict(half, keep_dtype=False).cast == []
    assert ops.dtype(made[0].weight.value).name == "float16"


def test_tied_parameters_load_under_one_name_and_must_agree_under_two(backend: str) -> None:
    first = nn.Linear(3, 3, bias=False)
    tied = nn.Sequential(first, first)
    assert list(tied.state_dict()) == ["0.weight", "1.weight"]
    tied.load_state_dict({"1.weight": np.eye(3, dtype="float32")})
    assert ops.to_numpy(first.weight.value).tolist() == np.eye(3).tolist()
    with pytest.raises(StateDictError, match="same parameter as another name, whose value differs"):
        tied.load_state_dict({"0.weight": ops.zeros((3, 3)), "1.weight": ops.ones((3, 3))})


def test_what_is_no_dict_or_tensor_is_refused(backend: str) -> None:
    with pytest.raises(ArgumentTypeError, match="takes a dict"):
        net().load_state_dict([1.0])  # type: ignore[arg-type]
    with pytest.raises(StateDictError, match=r"wrong: 0\.bias: expected a tensor, array or list, got 'x'"):
        net().load_state_dict({"0.bias": "x"}, strict=False)


def test_wrong_shapes_among_others_have_a_way_out(backend: str) -> None:
    net, other = (nn.Sequential(nn.Linear(2, 3), nn.Linear(3, classes)) for classes in (2, 5))
    tensors = other.state_dict()
    with pytest.raises(StateDictError, match=r"leave these out of the dict .* and pass strict=False"):
        net.load_state_dict(tensors)
    rest = {name: value for name, value in tensors.items() if not name.startswith("1.")}
    assert net.load_state_dict(rest, strict=False).loaded == ["0.weight", "0.bias"]
    with pytest.raises(StateDictError) as caught:  # none fits
        net[1].load_state_dict(other[1].state_dict())
    assert "strict" not in str(caught.value)


def test_a_prefix_of_all_names_is_said_with_the_way_out(backend: str) -> None:
    net = nn.Sequential(nn.Linear(2, 1))
    prefixed = {f"module.{name}": value for name, value in net.state_dict().items()}
    with pytest.raises(StateDictError, match=r"pass rename=lambda name: name\.removeprefix\('module\.'\)"):
        net.load_state_dict(prefixed)
    assert len(net.load_state_dict(prefixed, rename=lambda name: name.removeprefix("module.")).loaded) == 2
    inner = net[0].state_dict()
    with pytest.raises(StateDictError, match=r"pass rename=lambda name: '0\.' \+ name"):
        net.load_state_dict(inner)
    assert len(net.load_state_dict(inner, rename=lambda name: "0." + name).loaded) == 2
    shapes = {"0.weight": ops.ones((3, 3)), "0.bias": inner["bias"]}
    for other in ({"0.wieght": inner["weight"], "0.bias": inner["bias"]}, shapes, {}):
        with pytest.raises(StateDictError) as caught:
            net.load_state_dict(other)
        assert "rename" not in str(caught.value)
