"""What all optimizers share: groups, checks, the step that changes all or nothing, and the state."""

import copy
import functools
import importlib
import itertools
import pickle
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
import pytest

from emberharmony import Buffer, Parameter, errors, ops, optim, to_backend
from emberharmony.backend.discovery import BUILTIN, is_installed
from tests.ops.trees import lists
from tests.optim.oracle import recorded

INSTALLED = [name for name in BUILTIN if is_installed(name)]
pairs = pytest.mark.parametrize("here, there", list(itertools.permutations(INSTALLED, 2)))
KINDS: dict[str, Callable[..., optim.Optimizer]] = {
    "SGD": functools.partial(optim.SGD, lr=0.1),
    "momentum": functools.partial(optim.SGD, lr=0.1, momentum=0.9, dampening=0.1),
    "Adam": functools.partial(optim.Adam, lr=0.1, amsgrad=True),
    "AdamW": functools.partial(optim.AdamW, lr=optim.schedules.cosine(0.1, 30)),
}
kinds = pytest.mark.parametrize("kind", KINDS)


def trained(optimizer: optim.Optimizer, first: int, last: int) -> list[Any]:
    """Makes steps with recorded gradients, and returns the parameters as arrays."""
    gradients = recorded(20, "float32")[1]
    cells = [cell for group in optimizer.param_groups for cell in group["params"]]
    for row in gradients[first:last]:
        optimizer.step(dict(zip(cells, row, strict=True)))
    return [ops.to_numpy(cell.value) for cell in cells]


def parameters(names: tuple[str, ...] = ("", "", "", "")) -> list[Parameter]:
    return [Parameter(start, name=name) for start, name in zip(recorded(20, "float32")[0], names, strict=True)]


def near(found: list[Any], expected: list[Any], limit: float = 2e-6) -> bool:
    return all(np.allclose(a, b, rtol=limit, atol=limit) for a, b in zip(found, expected, strict=True))


@dataclass
class Model:
    weight: Parameter
    mean: Buffer
    layers: list[Parameter]


class Net:
    def __init__(self, first: Parameter, second: Parameter) -> None:
        self.name, self.mean, self.layers = "net", Buffer([1.0]), {"first": first, "second": [second, first]}


GIVEN: dict[str, Callable[[Parameter, Parameter], Any]] = {
    "list": lambda a, b: [a, b],
    "tuple": lambda a, b: (a, b),
    "iterator": lambda a, b: iter([a, b]),
    "dict": lambda a, b: {"a": a, "b": b},
    "dataclass": lambda a, b: Model(a, Buffer([1.0]), [b, a]),
    "list of trees": lambda a, b: [Model(a, Buffer([1.0]), [a]), {"b": b, "a": a}],
    "object": lambda a, b: Net(a, b),
    "groups": lambda a, b: [{"params": [a], "lr": 0.5}, {"params": b}],
    "names": lambda a, b: [("first", a), ("second", b)],
}


@pytest.mark.parametrize("form", GIVEN)
def test_parameters_are_found_in_any_form(form: str, backend: str) -> None:
    a, b = Parameter([1.0, 2.0]), Parameter(3.0)
    optimizer = optim.SGD(GIVEN[form](a, b), lr=0.5)
    assert [cell for group in optimizer.param_groups for cell in group["params"]] == [a, b]
    ops.backward(lambda: ops.add(ops.sum(ops.square(a)), ops.square(b)), [a, b])
    optimizer.step()
    assert lists([a.value, b.value]) == [[0.0, 0.0], 0.0]
    assert a.grad is None
    assert b.grad is None


def test_options_of_groups_differ(backend: str) -> None:
    a, b = Parameter([1.0]), Parameter([1.0])
    optimizer = optim.SGD([{"params": a}, {"params": b, "lr": 0.5}], lr=0.25)
    optimizer.add_param_group({"params": (c := Parameter([1.0])), "maximize": True})
    optimizer.step({a: [1.0], b: [1.0], c: [1.0]})
    assert lists([a.value, b.value, c.value]) == [[0.75], [0.5], [1.25]]
    assert optimizer.learning_rates() == [0.25, 0.5, 0.25]
    optimizer.param_groups[0]["lr"] = 0.75
    optimizer.step({a: [1.0]})
    assert lists([a.value, b.value]) == [[0.0], [0.5]]


WRONG: list[tuple[Callable[[], Any], type[Exception], str]] = [
    (lambda: optim.SGD([]), errors.ArgumentError, r"SGD\(\): there is no Parameter in params"),
    (lambda: optim.SGD({"b": Buffer([1.0])}), errors.ArgumentError, "there is no Parameter in params"),
    (lambda: optim.SGD([{"params": []}]), errors.ArgumentError, "there is no Parameter in params"),
    (lambda: optim.SGD([np.ones(2)]), errors.ArgumentTypeError, "of type ndarray, expected a Parameter; make it one"),
    (lambda: optim.SGD([p := Parameter([1.0]), p]), errors.ArgumentError, "is given twice"),
    (
        lambda: optim.SGD([{"params": (p := Parameter([1.0], name="w"))}, {"params": p}]),
        errors.ArgumentError,
        r"Parameter\('w', shape=\(1,\), dtype=float32\) is given twice",
    ),
    (lambda: optim.SGD([Parameter([1])]), errors.DTypeError, "int32|int64.*expected a real floating dtype"),
    (lambda: optim.SGD([Parameter([1j])]), errors.DTypeError, "complex64.*expected a real floating dtype"),
    (
        lambda: optim.SGD([{"params": Parameter([1.0]), "momentun": 0.9}]),
        errors.ArgumentError,
        "did you mean 'momentum'",
    ),
    (lambda: optim.Adam(lr=-0.1), errors.ArgumentError, r"Adam\(\): lr is -0.1, expected a number >= 0, or a schedule"),
    (lambda: optim.Adam(lr=float("nan")), errors.ArgumentError, "lr is nan"),
    (lambda: optim.Adam(lr="fast"), errors.ArgumentTypeError, "lr is 'fast'"),
    (lambda: optim.Adam(lr="1e-3"), errors.ArgumentTypeError, r"float\(lr\) makes a number of a text"),
    (lambda: optim.Adam(betas=(0.9, 1.0)), errors.ArgumentError, r"betas is \(0.9, 1.0\), expected two numbers in"),
    (lambda: optim.Adam(betas=0.9), errors.ArgumentTypeError, "betas is 0.9"),
    (lambda: optim.AdamW(eps=-1.0), errors.ArgumentError, "eps is -1.0"),
    (lambda: optim.AdamW(weight_decay=-1.0), errors.ArgumentError, "weight_decay is -1.0"),
    (lambda: optim.AdamW(amsgrad="no"), errors.ArgumentError, "amsgrad is 'no', expected True or False"),
    (lambda: optim.SGD(momentum=-1), errors.ArgumentError, "momentum is -1"),
    (
        lambda: optim.SGD().add_param_group([Parameter([1.0])]),
        errors.ArgumentTypeError,
        "a group is a dict with 'params'",
    ),
]


@pytest.mark.parametrize(("make", "error", "message"), WRONG)
def test_wrong_arguments_are_refused(make: Callable[[], Any], error: type[Exception], message: str) -> None:
    with pytest.raises(error, match=message):
        make()


def test_a_rate_in_the_place_of_the_model_and_a_step_for_another_model_are_named(backend: str) -> None:
    with pytest.raises(errors.ArgumentError, match=r"the model comes before the learning rate: \(model, lr=0\.001\)"):
        optim.Adam(0.001)
    with pytest.warns(errors.TrainingWarning, match="make a new optimizer for a new model"):
        optim.SGD(Parameter(1.0)).step()


def test_numbers_of_other_libraries_do_not_promote(backend: str) -> None:
    weight = Parameter([1.0, 2.0])
    optimizer = optim.Adam([weight], lr=np.float64(0.1), betas=(np.float64(0.5), np.float32(0.5)))
    optimizer.step({weight: [1.0, 1.0]})
    assert ops.dtype(weight.value) == "float32"
    assert type(optimizer.param_groups[0]["lr"]) is float


def test_frozen_parameters_and_those_without_gradient_stay(backend: str) -> None:
    a, b = Parameter([1.0]), Parameter([1], trainable=False)
    optimizer = optim.Adam([a, b])
    with pytest.warns(errors.TrainingWarning, match="no parameter has a gradient"):
        optimizer.step()
    assert lists([a.value, b.value]) == [[1.0], [1]]
    assert optimizer.state == {}
    assert optimizer.count == 1


def test_gradients_are_kept_if_asked_and_cleared_by_zero_grad(backend: str) -> None:
    a = Parameter([1.0])
    a.grad = ops.ones((1,))
    optimizer = optim.SGD([a], lr=0.5)
    optimizer.step(clear=False)
    assert lists(a.grad) == [1.0]
    optimizer.zero_grad()
    assert a.grad is None


def test_gradients_are_given_by_name(backend: str) -> None:
    a, b = Parameter([1.0], name="a"), Parameter([1.0])
    optimizer = optim.SGD([("b", b), ("other", a)], lr=0.5)
    optimizer.step({"a": [1.0], "b": [2.0]})
    assert lists([a.value, b.value]) == [[0.5], [0.0]]
    with pytest.raises(errors.ArgumentError, match="grads has 'c', which is no parameter of the optimizer"):
        optimizer.step({"c": [1.0]})


def test_gradients_in_a_list_are_refused(backend: str) -> None:
    optimizer = optim.SGD([Parameter([1.0])])
    for each in (optimizer, optim.Lookahead(optimizer)):
        with pytest.raises(
            errors.ArgumentTypeError, match=r"SGD\(\): grads is .* of type list, expected a mapping from"
        ):
            each.step([ops.ones((1,))])  # type: ignore[arg-type]


BAD_GRADIENTS: list[tuple[Callable[[], Any], type[Exception], str]] = [
    (lambda: ops.ones((3,)), errors.ShapeError, r"gradient of Parameter\('w'.*has shape \(3,\), expected \(2,\)"),
    (lambda: ops.ones((2,), "float16"), errors.DTypeError, "has dtype float16, expected float32; use ops.cast"),
]


@pytest.mark.parametrize(("gradient", "error", "message"), BAD_GRADIENTS)
def test_after_an_error_all_is_as_before(
    gradient: Callable[[], Any], error: type[Exception], message: str, backend: str
) -> None:
    a, b = Parameter([1.0, 2.0]), Parameter([1.0, 2.0], name="w")
    optimizer = optim.Adam([a, b])
    optimizer.step({a: [1.0, 1.0], b: [1.0, 1.0]})
    before = pickle.dumps(optimizer)
    values = a.value, b.value
    with pytest.raises(error, match=message):
        optimizer.step({a: [1.0, 1.0], b: gradient()})
    assert pickle.dumps(optimizer) == before
    assert a.value is values[0]
    assert b.value is values[1]
    with pytest.raises(error, match="the gradient of a parameter has"):
        optimizer.update([gradient()], optimizer.init([values[0]]), [values[0]])


def test_a_sparse_gradient_is_refused() -> None:
    torch = pytest.importorskip("torch")
    with ops.use_backend("torch"):
        weight = Parameter([[1.0, 2.0]])
        weight.grad = torch.ones(1, 2).to_sparse()
        with pytest.raises(errors.ArgumentTypeError, match="is sparse, expected a dense tensor"):
            optim.SGD([weight]).step()


def test_a_step_inside_of_a_transform_is_refused(backend: str) -> None:
    weight = Parameter([1.0])
    optimizer = optim.SGD([weight])

    def loss() -> Any:
        optimizer.step({weight: [1.0]})
        return ops.sum(weight.value)

    with pytest.raises(errors.TracedTensorError, match=r"cannot change in the loss function of ops.backward"):
        ops.backward(loss, weight)

    def traced(gradient: Any) -> Any:
        optimizer.step({weight: gradient})
        return ops.sum(weight.value)

    with pytest.raises(errors.EmberError):
        ops.grad(traced)(ops.ones((1,)))
    assert lists(weight.value) == [1.0]
    assert optimizer.count == 0


@kinds
def test_the_pure_form_makes_the_same_steps(kind: str, backend: str) -> None:
    starts, gradients = recorded(20, "float32")
    expected = trained(KINDS[kind](parameters()), 0, 20)
    tree = {
        "w": [ops.convert_to_tensor(start) for start in starts[:2]],
        "b": tuple(map(ops.convert_to_tensor, starts[2:])),
    }
    pure = KINDS[kind]()
    state = pure.init(tree)
    for row in gradients:
        found = [ops.convert_to_tensor(gradient) for gradient in row]
        tree, state = pure.update({"w": found[:2], "b": tuple(found[2:])}, state, tree)
    assert int(state["count"]) == 20
    assert near([ops.to_numpy(x) for x in (*tree["w"], *tree["b"])], expected)


def test_the_pure_form_refuses_other_trees(backend: str) -> None:
    pure = optim.SGD()
    one = {"a": ops.ones((2,))}
    with pytest.raises(errors.ArgumentError, match="must be those of the parameters"):
        pure.update({"b": ops.ones((2,))}, pure.init(one), one)
    with pytest.raises(errors.ArgumentError, match="the state"):
        pure.update(one, pure.init([*one.values(), *one.values()]), one)


def test_a_state_in_the_place_of_the_gradients_is_named(backend: str) -> None:
    weights = ops.ones(2)
    state = optim.Adam().init(weights)
    with pytest.raises(errors.ArgumentError, match=r"the order is update\(gradients, state, parameters\)"):
        optim.Adam().update(weights, weights, state)


@pytest.mark.parametrize("kind", ["momentum", pytest.param("AdamW", marks=pytest.mark.slow)])
def test_the_pure_form_can_be_compiled(kind: str, backend: str, monkeypatch: pytest.MonkeyPatch) -> None:
    if backend == "torch":
        torch = importlib.import_module("torch")
        monkeypatch.setattr(torch, "compile", functools.partial(torch.compile, backend="eager"))
    starts, gradients = recorded(20, "float32")
    expected = trained(KINDS[kind](parameters()), 0, 5)
    pure = KINDS[kind]()
    params = [ops.convert_to_tensor(start) for start in starts]
    state = pure.init(params)
    update = ops.compile(pure.update)
    for row in gradients[:5]:
        params, state = update([ops.convert_to_tensor(gradient) for gradient in row], state, params)
    assert near([ops.to_numpy(x) for x in params], expected)


def test_the_pure_form_can_be_mapped_and_differentiated(backend: str) -> None:
    pure = optim.Adam(lr=0.1)
    params, grads = ops.convert_to_tensor([[1.0, 2.0], [3.0, 4.0]]), ops.convert_to_tensor([[0.1, -0.2], [0.0, 3.0]])
    state = ops.vmap(pure.init)(params)
    for _ in range(3):
        params, state = ops.vmap(pure.update)(grads, state, params)
    alone = [[1.0, 2.0], [3.0, 4.0]]
    for i, start in enumerate(alone):
        weight = Parameter(start)
        optimizer = optim.Adam([weight], lr=0.1)
        for _ in range(3):
            optimizer.step({weight: grads[i]})
        assert near([ops.to_numpy(params[i])], [ops.to_numpy(weight.value)])

    descent = optim.SGD(lr=0.1)

    def loss_after(rate: Any) -> Any:
        x = ops.convert_to_tensor([1.0, 2.0])
        moved, _ = descent.update([ops.multiply(x, rate)], descent.init([x]), [x])
        return ops.sum(moved[0])

    assert float(ops.grad(loss_after)(2.0)) == pytest.approx(-0.3)


@pairs
@kinds
def test_training_goes_on_after_a_switch_of_the_backend(kind: str, here: str, there: str) -> None:
    before = ops.get_backend()
    try:
        ops.set_backend("numpy")
        expected = trained(KINDS[kind](parameters()), 0, 20)
        ops.set_backend(here)
        optimizer = KINDS[kind](parameters())
        trained(optimizer, 0, 7)
        ops.set_backend(there)
        trained(optimizer, 7, 14)
        with ops.use_backend(here):
            assert near(trained(optimizer, 14, 20), expected)
    finally:
        ops.set_backend(before)


@pairs
def test_to_backend_moves_an_optimizer(here: str, there: str) -> None:
    with ops.use_backend("numpy"):
        expected = trained(optim.Adam(parameters(), lr=0.1), 0, 20)
    with ops.use_backend(here):
        optimizer = to_backend(optim.Adam(parameters(), lr=0.1), here)
        trained(optimizer, 0, 9)
    assert to_backend(optimizer, there) is optimizer
    with ops.use_backend(there):
        held = [
            cell.tensor_and_home()[1].backend.name
            for entry in optimizer.state.values()
            for cell in entry.values()
            if isinstance(cell, Buffer)
        ]
        assert set(held) == {there}
        assert near(trained(optimizer, 9, 20), expected)


@kinds
def test_a_state_dict_continues_the_training(kind: str, backend: str) -> None:
    expected = trained(KINDS[kind](parameters()), 0, 20)
    first = KINDS[kind](cells := parameters())
    trained(first, 0, 8)
    for host in (False, True):
        saved = pickle.loads(pickle.dumps(first.state_dict(host=True))) if host else first.state_dict()
        second = KINDS[kind](copy.deepcopy(cells))
        second.load_state_dict(saved)
        found = trained(second, 8, 20)
        assert all(np.array_equal(a, b) for a, b in zip(found, expected, strict=True))


@kinds
def test_an_optimizer_survives_pickle_and_deepcopy(kind: str, backend: str) -> None:
    expected = trained(KINDS[kind](parameters()), 0, 20)
    for again in (copy.deepcopy, lambda x: pickle.loads(pickle.dumps(x))):
        optimizer = KINDS[kind](parameters())
        trained(optimizer, 0, 5)
        found = trained(again(optimizer), 5, 20)
        assert all(np.array_equal(a, b) for a, b in zip(found, expected, strict=True))


TORCH: list[tuple[str, dict[str, Any]]] = [
    ("SGD", {"lr": 0.1}),
    ("SGD", {"lr": 0.1, "momentum": 0.9, "dampening": 0.1}),
    ("Adam", {"lr": 0.1, "amsgrad": True, "betas": (0.8, 0.9)}),
    ("AdamW", {"lr": 0.1}),
]


@pytest.mark.parametrize(("name", "options"), TORCH)
def test_state_dicts_go_to_torch_and_back(name: str, options: dict[str, Any], backend: str) -> None:
    torch = pytest.importorskip("torch")
    starts, gradients = recorded(20, "float32")
    theirs = [torch.tensor(start, requires_grad=True) for start in starts]
    optimizer = getattr(torch.optim, name)(theirs, **options)

    def steps(first: int, last: int) -> list[Any]:
        for row in gradients[first:last]:
            for cell, gradient in zip(theirs, row, strict=True):
                cell.grad = torch.tensor(gradient)
            optimizer.step()
        return [cell.detach().numpy().copy() for cell in theirs]

    cells = [Parameter(value) for value in steps(0, 6)]
    ours = getattr(optim, name)(cells)
    ours.load_state_dict(optimizer.state_dict())
    assert near(trained(ours, 6, 7), steps(6, 7))
    trained(ours, 7, 10)
    with ops.use_backend("torch"):
        optimizer = getattr(torch.optim, name)(theirs)
        optimizer.load_state_dict(ours.state_dict())
        with torch.no_grad():
            for cell, our_cell in zip(theirs, cells, strict=True):
                cell.copy_(our_cell.value)
    assert near(trained(ours, 10, 15), steps(10, 15))


def test_parameters_are_matched_by_name_if_both_sides_have_names(backend: str) -> None:
    names = ("a", "b", "c", "d")
    first = optim.Adam(parameters(names))
    trained(first, 0, 3)
    saved = first.state_dict()
    assert saved["param_groups"][0]["param_names"] == list(names)
    cells = parameters(names)
    second = optim.Adam(cells[::-1])
    second.load_state_dict(saved)
    for cell, source in zip(cells, first.param_groups[0]["params"], strict=True):
        ours, theirs = second.state[cell], first.state[source]
        assert lists(ours["exp_avg"].value) == lists(theirs["exp_avg"].value)
    third = optim.Adam(parameters(("a", "b", "x", "d")))
    with pytest.raises(errors.ArgumentError, match="missing parameter 'x'; unexpected parameter 'c'"):
        third.load_state_dict(saved)


def test_everything_that_does_not_fit_is_named_and_nothing_changes(backend: str) -> None:
    first = optim.Adam(parameters())
    trained(first, 0, 2)
    saved = first.state_dict()
    saved["state"][0]["exp_avg"] = ops.ones((2,))
    del saved["state"][1]["exp_avg_sq"]
    saved["state"][2]["moment"] = ops.ones((5,))
    saved["state"][9] = {"step": 1}
    del saved["param_groups"][0]["eps"]
    saved["param_groups"][0]["rho"] = 0.5
    second = optim.Adam(parameters())
    trained(second, 0, 1)
    before = pickle.dumps(second)
    with pytest.raises(errors.ArgumentError) as caught:
        second.load_state_dict(saved)
    for part in (
        "missing option 'eps' of group 0",
        "unexpected option 'rho' of group 0",
        "'exp_avg' of parameter 0 of group 0 has shape (2,), expected (4, 3)",
        "missing 'exp_avg_sq' of parameter 1 of group 0",
        "unexpected 'moment' of parameter 2 of group 0",
        "unexpected state of parameter 9",
    ):
        assert part in str(caught.value)
    assert pickle.dumps(second) == before


def test_a_state_dict_of_other_groups_is_refused(backend: str) -> None:
    optimizer = optim.SGD(parameters(), lr=0.1)
    with pytest.raises(errors.ArgumentError, match="2 groups of parameters were given, expected 1"):
        a, b = parameters()[:2]
        optimizer.load_state_dict(optim.SGD([{"params": a}, {"params": b}]).state_dict())
    with pytest.raises(errors.ArgumentError, match="group 0 has 2 parameters, expected 4"):
        optimizer.load_state_dict(optim.SGD(parameters()[:2]).state_dict())
    with pytest.raises(errors.ArgumentError, match="a state dict has 'state' and 'param_groups'"):
        optimizer.load_state_dict({"state": {}})
    with pytest.raises(errors.ArgumentError, match=r"lr is -1\.0"):
        wrong = optim.SGD(parameters()).state_dict()
        wrong["param_groups"][0]["lr"] = -1.0
        optimizer.load_state_dict(wrong)


@pytest.mark.parametrize("dtype", ["float16", "bfloat16"])
def test_parameters_of_half_precision_keep_their_dtype(dtype: str, backend: str) -> None:
    try:
        weight = Parameter(ops.ones((3,), dtype))
    except errors.DTypeError:
        pytest.skip(f"{backend} lacks {dtype}")
    optimizer = optim.AdamW([weight], lr=0.1)
    for _ in range(3):
        weight.grad = ops.ones((3,), dtype)
        optimizer.step()
    assert ops.dtype(weight.value) == dtype
    assert {ops.dtype(x.value) for x in optimizer.state[weight].values() if isinstance(x, Buffer)} == {dtype}
    params = [ops.ones((3,), dtype)]
    state = optimizer.init(params)
    for _ in range(3):
        params, state = optimizer.update([ops.ones((3,), dtype)], state, params)
    assert ops.dtype(params[0]) == dtype
    assert np.allclose(ops.to_numpy(ops.cast(params[0], "float32")), 0.7, atol=0.02)


def test_empty_parameters_and_those_without_axes(backend: str) -> None:
    cells = [Parameter(ops.zeros((0, 3))), Parameter(2.0)]
    optimizer = optim.Adam(cells, lr=0.5)
    optimizer.step({cells[0]: ops.zeros((0, 3)), cells[1]: 1.0})
    assert tuple(cells[0].value.shape) == (0, 3)
    assert float(cells[1].value) == pytest.approx(1.5)


def test_the_repr_shows_the_options() -> None:
    optimizer = optim.SGD([Parameter([1.0]), Parameter([2.0])], lr=0.5)
    assert repr(optimizer).startswith("SGD(2 parameters, lr=0.5, momentum=0.0")
    assert repr(optim.SGD(lr=0.5)).startswith("SGD(lr=0.5")


class Signs(optim.Optimizer):
    """An optimizer that a user wrote."""

    limits: ClassVar[Mapping[str, Any]] = {"lr": optim.SGD.limits["lr"]}

    @staticmethod
    def rule(gradient: Any, parameter: Any, state: Any, hyper: Any) -> Any:
        return ops.subtract(parameter, ops.multiply(ops.sign(gradient), hyper["lr"])), state

    @staticmethod
    def initial(parameter: Any, hyper: Any) -> Any:
        return {}


def test_users_write_optimizers_by_a_rule(backend: str) -> None:
    weight = Parameter([1.0, 1.0])
    Signs([weight], 0.5).step({weight: [-7.0, 3.0]})
    assert lists(weight.value) == [1.5, 0.5]
    pure = Signs(None, 0.5)
    assert lists(pure.update([ops.ones((1,))], pure.init([ops.ones((1,))]), [ops.ones((1,))])[0]) == [[0.5]]


def test_an_unknown_name_gets_a_hint() -> None:
    with pytest.raises(AttributeError, match="has no attribute 'AdamWW'; did you mean 'AdamW'"):
        _ = optim.AdamWW  # type: ignore[attr-defined]


def test_gradients_that_no_step_uses_are_noticed(backend: str) -> None:
    weight = Parameter([1.0, 2.0])
    loss = lambda: ops.sum(ops.square(weight))
    optimizer = optim.SGD([weight], lr=0.1)
    for _ in range(3):  # who accumulates on purpose is not disturbed
        for _ in range(32):
            ops.backward(loss, weight)
        optimizer.step()
    for _ in range(32):
        ops.backward(loss, weight)
    with pytest.warns(errors.TrainingWarning, match=r"added 33 gradients .* call optimizer\.step\(\)"):
        ops.backward(loss, weight)
