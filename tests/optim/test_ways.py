"""Each way in which an optimizer computes a step gives what the rule gives for each parameter alone."""

from collections.abc import Iterator
from itertools import product
from typing import Any

import pytest

from emberharmony import ops, optim
from emberharmony.optim import layout, stepping
from emberharmony.transforms.recorder import record_rule
from tests.optim.test_vectors import assert_same, cells_of, rows_of, states_of, trained
from tests.sampling import portion


def grid(**options: tuple[Any, ...]) -> Iterator[dict[str, Any]]:
    """Yields each combination of options."""
    for values in product(*options.values()):
        yield dict(zip(options, values, strict=True))


FLAGS = (False, True)
SGD = [
    each
    for each in grid(momentum=(0.0, 0.9), dampening=(0.0, 0.3), nesterov=FLAGS, weight_decay=(0.0, 0.1), maximize=FLAGS)
    if not (each["nesterov"] and (each["dampening"] or not each["momentum"]))
]
OPTIONS: dict[str, list[dict[str, Any]]] = {
    "SGD": SGD,
    "Adam": [*grid(amsgrad=FLAGS, weight_decay=(0.0, 0.1), maximize=FLAGS, decoupled_weight_decay=FLAGS)],
    "AdamW": [*grid(amsgrad=FLAGS, betas=((0.9, 0.999), (0.0, 0.5)))],
    "Adamax": [*grid(weight_decay=(0.0, 0.1), maximize=FLAGS)],
    "NAdam": [*grid(weight_decay=(0.0, 0.1), decoupled_weight_decay=FLAGS)],
    "RAdam": [*grid(weight_decay=(0.0, 0.1), decoupled_weight_decay=FLAGS, betas=((0.9, 0.999), (0.5, 0.5)))],
    "RMSprop": [*grid(centered=FLAGS, momentum=(0.0, 0.9), weight_decay=(0.0, 0.1))],
    "Adagrad": [*grid(lr_decay=(0.0, 0.1), weight_decay=(0.0, 0.1), initial_accumulator_value=(0.0, 0.5))],
    "Adadelta": [*grid(weight_decay=(0.0, 0.1), maximize=FLAGS)],
    "ASGD": [*grid(t0=(2, 1e6), weight_decay=(0.0, 0.1), maximize=FLAGS)],
    "Lion": [*grid(weight_decay=(0.0, 0.1))],
    "Rprop": [*grid(maximize=FLAGS)],
}
WAYS = ["vectors", "rows", "ops"]


def set_way(patch: pytest.MonkeyPatch, way: str) -> None:
    """Lets steps be computed in a way, whatever the number and the sizes of the parameters."""
    patch.setattr(layout, "FEWEST", 2 if way == "vectors" else 10**6)
    if way == "ops":
        patch.setattr(stepping.Updates, "update_for", lambda self, state, hyper: None)
    patch.setattr("emberharmony.backend.numpy.flow.programs.BLOCK", 13)


def stepped(name: str, options: dict[str, Any], dtype: str, way: str, keep: bool = False) -> Any:
    """Returns the parameters and states after four steps, between which the rate changes.

    Args:
        name: the class of the optimizer.
        options: its options.
        dtype: of the parameters.
        way: one of `WAYS`.
        keep: whether to keep all tensors, so that no step may write over one.
    """
    with pytest.MonkeyPatch.context() as patch:
        set_way(patch, way)
        optimizer = getattr(optim, name)(cells := cells_of(dtype), lr=0.1, **options)
        kept = []
        for i, row in enumerate(rows_of(dtype, 4)):
            kept += [cell.value for cell in cells] if keep else []
            optimizer.param_groups[0]["lr"] = 0.1 / (1 + i // 2)
            trained(optimizer, [row])
        return trained(optimizer, []), states_of(optimizer)


@pytest.mark.parametrize("name", OPTIONS)
def test_every_way_gives_the_step_of_the_rule(name: str, backend: str) -> None:
    for i, options in portion([*enumerate(OPTIONS[name])], 2 if len(OPTIONS[name]) > 2 else 1):
        dtype = "float16" if i % 3 == 2 else "float32"
        wanted = stepped(name, options, dtype, "ops")
        for way in WAYS[:2]:
            assert_same(stepped(name, options, dtype, way, keep=(i + len(way)) % 4 == 0), wanted, dtype)


@pytest.mark.parametrize("way", WAYS)
def test_a_step_with_gradients_in_other_layouts(way: str, backend: str) -> None:
    found: list[Any] = []
    for turned in (False, True):
        with pytest.MonkeyPatch.context() as patch:
            set_way(patch, way)
            optimizer = optim.SGD(cells_of(), lr=0.1, momentum=0.9)
            rows = rows_of(steps=4)
            if turned:
                rows = [
                    [ops.transpose(ops.copy(ops.transpose(x))) if i % 2 else x for x in row]
                    for i, row in enumerate(rows)
                ]
            found.append((trained(optimizer, rows), states_of(optimizer)))
    assert_same(*found)


BUFFERS = {"RMSprop": "momentum_buffer", "SGD": "momentum_buffer", "Adam": "exp_avg_sq", "Lion": "exp_avg"}


@pytest.mark.parametrize("change", ["number", "tensor", "no buffer", "dtype"])
@pytest.mark.parametrize("way", WAYS[:2])
@pytest.mark.parametrize("name", BUFFERS)
def test_a_step_after_somebody_changed_a_state(name: str, way: str, change: str, backend: str) -> None:
    found: list[Any] = []
    for each in (way, "ops"):
        with pytest.MonkeyPatch.context() as patch:
            set_way(patch, each)
            options = {"momentum": 0.9} if "momentum" in BUFFERS[name] else {}
            optimizer = getattr(optim, name)(cells := cells_of(), lr=0.01, **options)
            rows = rows_of(steps=4)
            trained(optimizer, rows[:2])
            for cell in (cells[0], cells[4]):
                entry = optimizer.state[cell]
                buffer = entry[BUFFERS[name]]
                if change == "number":
                    entry.update({"step": 7} if "step" in entry else {})
                elif change == "no buffer":
                    entry[BUFFERS[name]] = ops.full_like(buffer.value, 0.25)
                elif change == "tensor":
                    buffer.value = ops.full_like(buffer.value, 0.25)
                else:
                    buffer.value = ops.cast(buffer.value, "float64")
            found.append((trained(optimizer, rows[2:]), [cell.value.dtype for cell in cells], states_of(optimizer)))
    (one, kinds, states), (other, others, wanted) = found
    assert kinds == others
    if change == "dtype":  # which PyTorch's lists round otherwise
        for entry in (*states, *wanted):
            entry.pop(BUFFERS[name])
    assert_same((one, states), (other, wanted))


class Ahead(optim.SGD):
    """Looks ahead by half of the buffer, whatever the momentum, as no option of SGD does."""

    @staticmethod
    @optim.elementwise
    def rule(gradient: Any, parameter: Any, state: Any, hyper: Any) -> Any:
        buffer = ops.add(ops.multiply(state["momentum_buffer"], hyper["momentum"]), gradient)
        direction = ops.add(gradient, ops.multiply(buffer, 0.5))
        return ops.subtract(parameter, ops.multiply(direction, hyper["lr"])), {"momentum_buffer": buffer}

    @staticmethod
    def initial(parameter: Any, hyper: Any) -> Any:
        return {"momentum_buffer": ops.zeros_like(parameter)}


class Late(Ahead):
    """Reads a parameter after it has computed its new value."""

    @staticmethod
    @optim.elementwise
    def rule(gradient: Any, parameter: Any, state: Any, hyper: Any) -> Any:
        after = ops.subtract(parameter, ops.multiply(gradient, hyper["lr"]))
        return after, {"momentum_buffer": ops.add(ops.multiply(parameter, 0.5), state["momentum_buffer"])}


@pytest.mark.parametrize("rule", [Ahead, Late])
@pytest.mark.parametrize("way", WAYS[:2])
def test_a_rule_that_is_nearly_that_of_sgd_is_not_computed_as_that(way: str, rule: Any, backend: str) -> None:
    found = []
    for each in (way, "ops"):
        with pytest.MonkeyPatch.context() as patch:
            set_way(patch, each)
            optimizer = rule(cells_of(), lr=0.1, momentum=0.9)
            found.append((trained(optimizer, rows_of(steps=3)), states_of(optimizer)))
    assert_same(*found)


def test_a_number_before_a_tensor_changes_places_with_it_where_it_may(backend: str) -> None:
    def rule(gradient: Any, parameter: Any, state: Any, hyper: Any) -> Any:
        return ops.add(2.0, ops.multiply(0.5, gradient)), state

    found = record_rule(rule, {}, {"lr": 0.1})
    assert found is not None
    assert found.program.instructions == (("multiply", (0, 4), 2), ("add", (2, 5), 3))
    assert (found.numbers([0.1]), found.program.outputs) == ([0.1, 0.5, 2.0], (3,))


@pytest.mark.parametrize("order", [("float32", "float64"), ("float64", "float32")])
def test_the_pure_form_takes_parameters_of_several_dtypes(order: tuple[Any, Any], backend: str) -> None:
    adam = optim.Adam(lr=0.1)
    weights = [ops.ones(3, dtype=dtype) for dtype in order]
    state = adam.init(weights)
    for _ in range(3):
        weights, state = adam.update([ops.multiply(w, 0.5) for w in weights], state, weights)
    assert [ops.dtype(w).name for w in weights] == list(order)
    one, other = (ops.to_numpy(ops.cast(w, "float64")).tolist() for w in weights)
    assert one == pytest.approx(other, rel=1e-6)
    assert one == pytest.approx([0.7] * 3, rel=1e-2)
    assert int(state["count"]) == 3
