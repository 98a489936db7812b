"""The backward passes of two models: the gradients of one loss by module, against the order of the calls."""

import contextlib
import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple, cast

import numpy as np

from emberharmony.core.errors import EmberError
from emberharmony.testing.differences.measures import distance
from emberharmony.testing.differences.records import Host
from emberharmony.testing.models.adapter import Adapter
from emberharmony.testing.models.alignment import Side
from emberharmony.testing.models.arrays import Pair, arrays_in
from emberharmony.testing.models.canonical import tensors_of
from emberharmony.testing.models.runs import HALF, Model
from emberharmony.testing.models.watching import EXIT, Event, Watching

_STEP = 1e-4
"""The step of the finite differences, as a share of the root of the mean square of an array."""

_TRUE = 1e-3
"""A derivative that differs from a finite difference by less than this share is right."""

Place = tuple[Event, int]
"""An array of an event: the event by the name of the module in the first model, and its number there."""


class Gradients(NamedTuple):
    """The gradients of a model's loss, by array of an event and by tensor of a module.

    Attributes:
        by_place: with respect to the arrays of events, in the form of the first model.
        tensors: with respect to the parameters directly in a module, by its name and theirs.
    """

    by_place: dict[Place, Host]
    tensors: dict[tuple[str, str], Any]


class _Probing(Watching):
    """A hook that adds a zero array to each array of the events, for the gradients with respect to these arrays.

    Args:
        adapter: of the model.
        wide: as in `Watching`.
        pairs: the arrays of the events that correspond, by event.
        names: the names in the first model, by those in this one.
        second: whether this is the second model.
        noise: how much the arrays are changed, as a share of each element.
    """

    def __init__(
        self,
        adapter: Adapter,
        wide: bool,
        pairs: Mapping[Event, Sequence[Pair]],
        names: Mapping[str, str],
        second: bool,
        noise: float,
    ) -> None:
        super().__init__(adapter, wide)
        self._pairs, self._names, self._second, self._noise = pairs, names, second, noise
        self.probes: dict[Place, Any] | None = None
        self.zeros: dict[Place, Any] = {}
        self._draws = np.random.default_rng(1)

    def take_event(self, event: Event, arrays: list[Any]) -> dict[int, Any]:
        """Returns the arrays of an event with the zero arrays added, by number."""
        first_path = self._names.get(event.path)
        if first_path is None:
            return {}
        first_event, new_tensor_by_number = event._replace(path=first_path), {}
        for pair in self._pairs.get(first_event, ()):
            number = pair.second if self._second else pair.first
            if number >= len(arrays) or pair.fit.mask or not self._adapter.is_floating(arrays[number]):
                continue
            array, gradient_place = arrays[number], (first_event, pair.first)
            if self.probes is None:
                self.zeros[gradient_place] = self._adapter.native(np.zeros(self._adapter.host(array).shape))
            elif gradient_place in self.probes:
                zero_probe = self.probes[gradient_place]
                new_tensor_by_number[number] = self._adapter.add(
                    self._add_noise(array, tuple(zero_probe.shape)), self._adapter.traced_as(array, zero_probe)
                )
        return new_tensor_by_number

    def _add_noise(self, array: Any, shape: tuple[int, ...]) -> Any:
        if not self._noise:
            return array
        signs = self._draws.integers(0, 2, shape) * 2.0 - 1.0
        factors = self._adapter.native(1.0 + self._noise * signs)
        return self._adapter.multiply(array, self._adapter.traced_as(array, factors))


class Backward:
    """The backward pass of a model, whose loss is the sum of its results times random numbers.

    Args:
        model: the model.
        side: its modules.
        pairs: the arrays of the events that correspond.
        names: the names in the first model, by those in this one.
        second: whether this is the second model.
    """

    def __init__(
        self, model: Model, side: Side, pairs: Mapping[Event, Sequence[Pair]], names: Mapping[str, str], second: bool
    ) -> None:
        self._model, self._side, self._second = model, side, second
        self._pairs, self._names = pairs, names
        self._zeros: dict[Place, Any] = {}

    def _projected_loss(self, result: Any) -> Any:
        adapter = self._model.adapter
        arrays, loss_sum = list(arrays_in(result, adapter.is_array)), None
        for pair in self._pairs.get(Event("", 0, EXIT), ()):
            array = arrays[pair.second if self._second else pair.first]
            if not adapter.is_floating(array):
                continue
            factors = np.random.default_rng(pair.first).normal(size=pair.fit.first)
            factors = pair.fit.to_second(factors) if self._second else factors
            projection = adapter.dot(array, adapter.native(factors))
            loss_sum = projection if loss_sum is None else adapter.add(loss_sum, projection)
        return loss_sum

    @contextlib.contextmanager
    def _prepare_model(self) -> Iterator[None]:
        adapter, model = self._model.adapter, self._model.model
        with adapter.keep_state(model), adapter.prepare_training(model), adapter.wide(model):
            yield

    def gradients(self, noise: float = 0.0) -> Gradients:
        """Returns the gradients of the loss in float64."""
        adapter, model = self._model.adapter, self._model.model
        zeros_hook = _Probing(adapter, True, self._pairs, self._names, self._second, noise)
        with self._prepare_model():
            args, kwargs = self._model.inputs(True)

            def loss(probes: Sequence[Any]) -> Any:
                probing_hook = _Probing(adapter, True, self._pairs, self._names, self._second, noise)
                probing_hook.probes = dict(zip(self._zeros, probes, strict=True))
                with adapter.attach(model, probing_hook):
                    return self._projected_loss(adapter.forward(model, args, kwargs))

            with adapter.attach(model, zeros_hook):
                adapter.call(model, args, kwargs)
            self._zeros = zeros_hook.zeros
            probe_gradients, tensors = adapter.differentiate(model, loss, list(self._zeros.values()))
            fit_by_place = {(event, pair.first): pair.fit for event, pairs in self._pairs.items() for pair in pairs}
            host_by_place: dict[Place, Host] = {}
            for place, gradient in zip(self._zeros, probe_gradients, strict=True):
                host = Host(np.zeros(0), "float64") if gradient is None else adapter.host(gradient)
                if gradient is not None and self._second:
                    host = Host(np.ascontiguousarray(fit_by_place[place].to_first(host.bits)), host.dtype)
                if gradient is None:
                    host = Host(np.zeros(fit_by_place[place].first), "float64")
                host_by_place[place] = host
        return Gradients(host_by_place, tensors)

    def is_gradient_true(self, place: Place, gradient: Host) -> bool | None:
        """Returns whether finite differences of the loss confirm the gradient of an event's array; None if unknown."""
        array_fit = next(pair.fit for pair in self._pairs[place[0]] if pair.first == place[1])
        direction: Any = np.random.default_rng(2).normal(size=gradient.shape)
        own_direction = array_fit.to_second(direction) if self._second else direction

        def shifted_probes(step: float) -> dict[Place, Any]:
            array = self._model.adapter.native(np.ascontiguousarray(own_direction * step))
            return {place: array}

        return self._is_slope(shifted_probes, float(np.vdot(gradient.values(), direction)), gradient)

    def is_parameter_gradient_true(self, path: str, name: str, gradients: Gradients) -> bool | None:
        """Returns whether finite differences confirm the gradient of a module's parameter; None if unknown."""
        adapter, module = self._model.adapter, self._side.modules[path]
        tensor = adapter.own(module).get(name)
        if tensor is None or (path, name) not in gradients.tensors:
            return None
        gradient, parameter_values = adapter.host(gradients.tensors[path, name]), adapter.host(tensor).wide_array()
        direction: Any = np.random.default_rng(2).normal(size=gradient.shape)

        def shifted_probes(step: float) -> dict[Place, Any]:
            adapter.put(module, {name: adapter.native(parameter_values + step * direction)})
            return {}

        try:
            return self._is_slope(shifted_probes, float(np.vdot(gradient.values(), direction)), gradient)
        finally:
            adapter.put(module, {name: tensor})

    def _is_slope(
        self, shifted_probes: Callable[[float], dict[Place, Any]], directional_derivative: float, gradient: Host
    ) -> bool | None:
        adapter, model = self._model.adapter, self._model.model
        losses = []
        for step in (_STEP, -_STEP):
            with self._prepare_model():
                args, kwargs = self._model.inputs(True)
                probing_hook = _Probing(adapter, True, self._pairs, self._names, self._second, 0.0)
                probing_hook.probes = shifted_probes(step)
                with adapter.attach(model, probing_hook):
                    loss = self._projected_loss(adapter.call(model, args, kwargs))
                losses.append(float(adapter.host(loss).values()))
        slope = (losses[0] - losses[1]) / (2 * _STEP)
        slope_scale = max(abs(slope), abs(directional_derivative), float(np.linalg.norm(gradient.values())))
        return bool(abs(slope - directional_derivative) <= _TRUE * slope_scale) if math.isfinite(slope) else None


class Parting(NamedTuple):
    """The first place in backward order where the gradients of two models differ.

    Attributes:
        path: the module of the first model whose gradient differs.
        call: the number of its call.
        what: what the gradient is with respect to.
        share: how far the gradients are apart.
        place: the array of an event, or None for a parameter.
        name: the parameter.
    """

    path: str
    call: int
    what: str
    share: float
    place: Place | None
    name: str = ""


def first_parting(
    events: Sequence[Event],
    sides: tuple[Side, Side],
    names: Mapping[str, str],
    gradients: tuple[Gradients, Gradients],
    noise: Gradients,
    margin: float,
) -> Parting | None:
    """Returns the last call whose gradients differ, the first of the backward pass; None if all agree."""
    open_events: list[Event] = []
    seen_paths: set[str] = set()
    for event in reversed(events):
        is_exit = event.place == EXIT
        blamed_event = (open_events[-1] if open_events else event) if is_exit else event
        for place in [
            event_and_index
            for event_and_index in gradients[0].by_place
            if event_and_index[0] == event and event_and_index in gradients[1].by_place
        ]:
            share, largest_noise = _relative_distance(place, gradients, noise, margin)
            if share > largest_noise:
                place_text = "its arguments" if not is_exit else f"the result of {event.path.rpartition('.')[2]}"
                return Parting(blamed_event.path, event.call, place_text, share, place)
        if is_exit:
            open_events.append(event)
            continue
        while open_events and open_events.pop().path != event.path:
            pass
        if event.path not in seen_paths and event.call == 0:
            seen_paths.add(event.path)
            parameter_and_share = _most_different_parameter(event.path, sides, names, gradients, noise, margin)
            if parameter_and_share is not None:
                return Parting(
                    event.path,
                    event.call,
                    f"its {parameter_and_share[0]}",
                    parameter_and_share[1],
                    None,
                    parameter_and_share[0],
                )
    return None


def _relative_distance(
    place: Place, gradients: tuple[Gradients, Gradients], noise: Gradients, margin: float
) -> tuple[float, float]:
    first_gradient, second_gradient, noisy_gradient = (
        gradients[0].by_place[place],
        gradients[1].by_place[place],
        noise.by_place.get(place),
    )
    if not first_gradient.values().any() and not second_gradient.values().any():
        return 0.0, 0.0
    rounding_error = HALF if noisy_gradient is None else max(HALF, distance(first_gradient, noisy_gradient).share)
    share = distance(first_gradient, second_gradient).share
    return (share if math.isfinite(share) else 1.0), margin * rounding_error


def _most_different_parameter(
    path: str,
    sides: tuple[Side, Side],
    names: Mapping[str, str],
    gradients: tuple[Gradients, Gradients],
    noise: Gradients,
    margin: float,
) -> tuple[str, float] | None:
    """Returns the parameter of a module whose gradients differ most, and how far, if by more than rounding."""
    try:
        first_gradients, second_gradients, noisy_gradients = (
            tensors_of(cast(Adapter, _Overlay(side.adapter, grads, name)), side.modules[name], {})[0].hosts
            for side, grads, name in (
                (sides[0], gradients[0], path),
                (sides[1], gradients[1], names[path]),
                (sides[0], noise, path),
            )
        )
    except EmberError:
        return None
    worst_name_and_share: tuple[str, float] | None = None
    for name, host in first_gradients.items():
        if (
            name not in second_gradients
            or second_gradients[name].shape != host.shape
            or not (host.values().any() or second_gradients[name].values().any())
        ):
            continue
        share = distance(host, second_gradients[name]).share
        limit = margin * max(HALF, distance(host, noisy_gradients[name]).share if name in noisy_gradients else 0.0)
        if share > limit and (worst_name_and_share is None or share > worst_name_and_share[1]):
            worst_name_and_share = name, share if math.isfinite(share) else 1.0
    return worst_name_and_share


class _Overlay:
    """An adapter that returns the gradients of a module's tensors in place of the tensors."""

    def __init__(self, adapter: Adapter, gradients: Gradients, path: str) -> None:
        self._adapter, self._gradients, self._path = adapter, gradients, path

    def __getattr__(self, name: str) -> Any:
        return getattr(self._adapter, name)

    def own(self, module: Any) -> dict[str, Any]:
        """Returns the gradients with respect to the tensors of a module."""
        grads = self._gradients.tensors
        return {name: grads[self._path, name] for name in self._adapter.own(module) if (self._path, name) in grads}
