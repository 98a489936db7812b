"""Any history of steps, readings, assignments, copies and switches gives what the rule gives one parameter alone."""

import copy
import pickle
from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, precondition, rule, run_state_machine_as_test

from emberharmony import Buffer, Parameter, errors, ops
from emberharmony.optim import layout
from tests.optim.test_vectors import INSTALLED, KINDS, bits

SHAPES = [(4, 3), (), (17,), (0, 2), (33,), (2, 2), (17,), (40, 30)]
CONTINUOUS = sorted(KINDS.keys() - {"Lion", "Rprop"})
"""The rules in which a rounding has no large effect; the others compare signs."""

places = st.integers(0, len(SHAPES) - 1)
seeds = st.integers(0, 2**16)


def bits_of(tensor: Any) -> Any:
    """Returns the shape and the bytes of a tensor of any backend."""
    with ops.use_backend(like=tensor):
        return bits(Parameter(tensor))


class Histories(RuleBasedStateMachine):
    """An optimizer of all parameters beside one optimizer for each parameter, which nothing is computed together for.

    Attributes:
        names: the backends to switch between.
        joined: whether small parameters are joined, however few they are.
    """

    names: tuple[str, ...] = ()
    joined = True

    @initialize(kind=st.sampled_from(CONTINUOUS), seed=seeds)
    def begin(self, kind: str, seed: int) -> None:
        self.patch = pytest.MonkeyPatch()
        self.patch.setattr(layout, "FEWEST", 2 if self.joined else 10**6)
        self.patch.setattr("emberharmony.backend.numpy.flow.programs.BLOCK", 100)
        ops.set_backend(self.names[0])
        self.kind = kind
        starts = [self.drawn(i, seed) for i in range(len(SHAPES))]
        self.cells = [Parameter(x) for x in starts]
        self.twins = [Parameter(ops.copy(x)) for x in starts]
        self.optimizer = KINDS[kind](self.cells)
        self.alone = [KINDS[kind]([twin]) for twin in self.twins]
        self.held: list[tuple[Any, Any]] = []
        self.shared: set[int] = set()

    def drawn(self, place: int, seed: int) -> Any:
        values = np.random.default_rng([place, seed]).normal(size=SHAPES[place])
        return ops.convert_to_tensor(values.astype("float32"))

    def hold(self, tensor: Any) -> None:
        self.held.append((tensor, bits_of(tensor)))

    def buffers(self, place: int) -> list[tuple[Buffer, Buffer]]:
        ours, alone = self.optimizer.state.get(self.cells[place], {}), self.alone[place].state
        pairs = [(x, alone[self.twins[place]][name]) for name, x in ours.items()]
        return [pair for pair in pairs if isinstance(pair[0], Buffer)]

    @rule(seed=seeds, without=st.sets(places, max_size=3))
    def step(self, seed: int, without: set[int]) -> None:
        slopes = {i: self.drawn(i, seed + 1) for i in range(len(SHAPES)) if i not in without}
        self.stepped(slopes)

    @rule(seed=seeds)
    def step_by_grad(self, seed: int) -> None:
        for i, (cell, twin) in enumerate(zip(self.cells, self.twins, strict=True)):
            cell.grad = self.drawn(i, seed)
            twin.grad = self.drawn(i, seed)
        for optimizer in [self.optimizer, *self.alone]:
            optimizer.step()
        self.shared.clear()
        self.compare()

    @rule()
    def step_by_the_values_themselves(self) -> None:
        for i, twin in enumerate(self.twins):
            self.alone[i].step({twin: ops.copy(twin.value)})
        self.optimizer.step({cell: cell.value for cell in self.cells})
        self.shared.clear()
        self.compare()

    @rule(seed=seeds)
    def step_by_one_gradient_for_two(self, seed: int) -> None:
        slope = self.drawn(2, seed)
        self.hold(slope)
        self.stepped({2: slope, 6: slope})

    def stepped(self, slopes: dict[int, Any]) -> None:
        self.optimizer.step({self.cells[i]: slope for i, slope in slopes.items()})
        for i, alone in enumerate(self.alone):
            alone.step({self.twins[i]: ops.copy(slopes[i])} if i in slopes else {})
        self.shared -= slopes.keys()
        self.compare()

    def compare(self) -> None:
        self.assert_same(list(zip(self.cells, self.twins, strict=True)))
        assert [bits_of(x) for x, _ in self.held] == [before for _, before in self.held]

    def assert_same(self, pairs: list[tuple[Any, Any]]) -> None:
        """Asserts that bits are equal, but for the roundings that PyTorch's lists leave out."""
        for ours, alone in pairs:
            if "torch" not in self.names:
                assert bits(ours) == bits(alone)
                continue
            found, wanted = ops.to_numpy(ours.value), ops.to_numpy(alone.value)
            limit = 2e-5 * np.abs(wanted[np.isfinite(wanted)]).max(initial=1.0)
            np.testing.assert_allclose(found, wanted, rtol=0, atol=limit)

    @rule(place=places)
    def hold_a_value(self, place: int) -> None:
        self.hold(self.cells[place].value)

    @rule(place=places)
    def read_the_state(self, place: int) -> None:
        self.assert_same(self.buffers(place))

    @rule(place=places)
    def hold_the_state(self, place: int) -> None:
        for ours, _ in self.buffers(place):
            self.hold(ours.value)

    @rule(place=places, seed=seeds)
    def assign_a_value(self, place: int, seed: int) -> None:
        self.cells[place].value = self.drawn(place, seed)
        self.twins[place].value = self.drawn(place, seed)
        self.shared.discard(place)

    @rule(seed=seeds)
    def assign_one_tensor_to_two(self, seed: int) -> None:
        tensor = self.drawn(2, seed)
        self.shared |= {2, 6}
        for place in 2, 6:
            self.cells[place].value = tensor
            self.twins[place].value = ops.copy(tensor)

    @rule(seed=seeds)
    def assign_parts_of_a_tensor(self, seed: int) -> None:
        whole = self.drawn(7, seed)
        self.hold(whole)
        self.shared |= {2, 6}
        for place, start in (2, 0), (6, 5):  # they overlap
            part = ops.reshape(whole, (1200,))[start : start + 17]
            self.cells[place].value = part
            self.twins[place].value = ops.copy(part)

    @rule(place=places, seed=seeds)
    def assign_the_state(self, place: int, seed: int) -> None:
        for ours, alone in self.buffers(place):
            made = ops.cast(ops.absolute(self.drawn(place, seed)), ops.dtype(ours.value))
            if tuple(made.shape) == tuple(ours.value.shape):
                ours.value = made
                alone.value = ops.copy(made)

    @rule(place=places)
    def write_into_a_value(self, place: int) -> None:
        if place not in self.shared:
            for cell in self.cells[place], self.twins[place]:
                value = cell.value
                value[...] = 0.5
            self.held = [(x, bits_of(x)) for x, _ in self.held]

    @rule(rate=st.sampled_from([0.05, 0.2]))
    def change_the_rate(self, rate: float) -> None:
        for optimizer in [self.optimizer, *self.alone]:
            optimizer.param_groups[0]["lr"] = rate

    @rule()
    def copy(self) -> None:
        for x in [*self.cells, *(ours for i in range(len(SHAPES)) for ours, _ in self.buffers(i))]:
            self.hold(x.value)
        self.cells, self.optimizer = copy.deepcopy((self.cells, self.optimizer))

    @rule()
    def pickle(self) -> None:
        self.cells, self.optimizer = pickle.loads(pickle.dumps((self.cells, self.optimizer)))

    @rule()
    def load_into_a_new_optimizer(self) -> None:
        saved = self.optimizer.state_dict()
        self.optimizer = KINDS[self.kind](self.cells)
        self.optimizer.load_state_dict(saved)
        # A schedule is not saved, and a saved rate does not replace one.
        self.optimizer.param_groups[0]["lr"] = self.alone[0].param_groups[0]["lr"]

    @rule(place=places)
    def an_error_changes_nothing(self, place: int) -> None:
        wrong = {cell: ops.zeros((1, 1, 3)) for cell in self.cells[place:]}
        with pytest.raises(errors.ShapeError):
            self.optimizer.step(wrong)
        self.compare()

    @precondition(lambda self: len(self.names) > 1)
    @rule(place=st.integers(0, 5))
    def switch(self, place: int) -> None:
        ops.set_backend(self.names[place % len(self.names)])

    def teardown(self) -> None:
        self.patch.undo()


WAYS = {"joined": {}, "each alone": {"joined": False}}


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("names", dict.fromkeys([*zip(INSTALLED), tuple(INSTALLED)]), ids=" ".join)
def test_histories(names: tuple[str, ...], way: str) -> None:
    machine = type("Machine", (Histories,), {"names": names, **WAYS[way]})
    run_state_machine_as_test(
        machine,
        settings=settings(
            max_examples=settings().max_examples // 5,
            stateful_step_count=20,
            deadline=None,
            suppress_health_check=list(HealthCheck),
        ),
    )
