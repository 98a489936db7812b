"""The runs of two models: unchanged, in float64, and with inputs changed as by rounding."""

import contextlib
from collections.abc import Mapping
from typing import Any

import numpy as np

from emberharmony.core.trees.tree import tree_map
from emberharmony.testing.differences.records import Host
from emberharmony.testing.differences.runs import Stopped
from emberharmony.testing.differences.spool import Stored, Writer
from emberharmony.testing.models.adapter import Adapter
from emberharmony.testing.models.alignment import Side
from emberharmony.testing.models.arrays import Pair
from emberharmony.testing.models.watching import EXIT, Event, Following, Order, Spooling, Watching
from emberharmony.testing.sample import EPSILON

HALF = 2.0**-24
"""The share by which rounding to float32 changes a number at most."""


class Model:
    """A model, its adapter and its inputs.

    Attributes:
        adapter: of the library.
        model: the model.
        error: the error that its run raised, or None.
        failed_path: the innermost module that was running then.
        wide: whether it computes in float64.
        result: what it returned.
    """

    def __init__(self, adapter: Adapter, model: Any, args: Any, kwargs: Any) -> None:
        self.adapter, self.model, self._arguments = adapter, model, (args, kwargs)
        self.error: Exception | None = None
        self.failed_path, self.wide, self.result = "", True, None

    def run(self, hook: Watching, wide: bool = False) -> Any:
        """Runs the model and returns its result."""
        adapter, model = self.adapter, self.model
        wide_context = adapter.wide(model) if wide else contextlib.nullcontext()
        with adapter.keep_state(model), wide_context:
            args, kwargs = self.inputs(wide)
            with adapter.attach(model, hook):
                return adapter.call(model, args, kwargs)

    def inputs(self, wide: bool) -> Any:
        """Returns the positional and the keyword arguments of the model as arrays of its library."""

        def to_native(value: Any) -> Any:
            if not isinstance(value, np.ndarray):
                return value
            return self.adapter.native(value.astype(np.float64) if wide and value.dtype.kind == "f" else value)

        return tree_map(to_native, self._arguments)

    def note_order(self) -> Order:
        """Runs the model as it is, notes the order of its calls, and keeps its result or its error."""
        order_hook = Order(self.adapter)
        try:
            self.result = self.run(order_hook)
        except Exception as error:  # noqa: BLE001  (the report has it)
            self.error, self.failed_path = error, order_hook.open_calls[-1].path if order_hook.open_calls else ""
        return order_hook

    def run_widest(self, make_hook: Any) -> Any:
        """Runs the model in float64 or, if it cannot compute in it, as it is.

        Args:
            make_hook: makes the hook, from whether the run is in float64.
        """
        if self.wide:
            hook = make_hook(True)
            try:
                self.run(hook, True)
            except Stopped:
                return hook
            except Exception as error:  # noqa: BLE001  (the report has it)
                if self.error is None:  # the model fails only in float64
                    self.wide, self.error_of_wide = False, error
                else:
                    return hook
            else:
                return hook
        hook = make_hook(False)
        with contextlib.suppress(Exception, Stopped):
            self.run(hook, False)
        return hook


class Seen:
    """The distances of a run's arrays from those of the first model in float64, by event.

    Attributes:
        shares: the distance of each array of the first model that has a counterpart, by event.
        alone: the events that cannot be compared: the arguments or the result have no counterpart.
        dtypes: the dtypes of the arrays of the run.
        pairs: which arrays correspond.
        whole: whether each floating array has its counterpart.
    """

    def __init__(self) -> None:
        self.shares: dict[Event, dict[int, float]] = {}
        self.alone: set[Event] = set()
        self.dtypes: dict[Event, list[str]] = {}
        self.pairs: dict[Event, list[Pair]] = {}
        self.whole: dict[Event, bool] = {}

    def record_event(self, event: Event, stored_tensors: list[Stored], hosts: list[Host], pairs: list[Pair]) -> None:
        """Records the distances of the arrays of an event."""
        share_by_number = {pair.first: pair.share for pair in pairs}
        float_indices = [i for i, host in enumerate(stored_tensors) if host.dtype.startswith(("float", "bfloat"))]
        if float_indices and hosts and (float_indices[0] not in share_by_number if event.place == EXIT else not pairs):
            self.alone.add(event)
        self.shares[event] = share_by_number
        self.dtypes[event] = [host.dtype for host in hosts]
        float_count = sum(host.dtype.startswith(("float", "bfloat")) for host in hosts)
        self.pairs[event] = pairs
        self.whole[event] = len(float_indices) == float_count == sum(pair.first in float_indices for pair in pairs)

    def largest_share(self, event: Event) -> float:
        """Returns the largest distance of the arrays of an event."""
        return max(self.shares.get(event, {}).values(), default=0.0)


class Runs:
    """The runs of two models of which modules correspond.

    Attributes:
        events: the arrays of the first model in float64, in a file.
        apart: how far the second model is from it, in float64.
        noise: how far rounding of the values moves the first model.
        own: how far each of the models is from it as it is.
        between, inside: of each model, as in `Comparing`.
    """

    def __init__(self, first: Model, second: Model, names: Mapping[str, str], writer: Writer) -> None:
        same_path_by_path = {path: path for path in names}
        first_path_by_path = {second_path: path for path, second_path in names.items()}
        spooling_run = first.run_widest(lambda wide: Spooling(first.adapter, wide, same_path_by_path, writer))
        self.events: dict[Event, list[Stored]] = spooling_run.events
        self.apart, self.noise, self.own = Seen(), Seen(), (Seen(), Seen())
        following_run = second.run_widest(
            lambda wide: Following(second.adapter, wide, self.events, first_path_by_path, self.apart.record_event)
        )
        self.between = spooling_run.between, following_run.between
        self.inside = spooling_run.inside, following_run.inside
        if first.error is None:
            noisy_run = Following(
                first.adapter, first.wide, self.events, same_path_by_path, self.noise.record_event, HALF
            )
            first.run(noisy_run, first.wide)
        for model, mapped_names, own_run in (
            (first, same_path_by_path, self.own[0]),
            (second, first_path_by_path, self.own[1]),
        ):
            if model.error is None:
                model.run(Following(model.adapter, False, self.events, mapped_names, own_run.record_event))

    def has_narrow_array(self, event: Event) -> bool:
        """Returns whether a run in float64 met an array in a narrower floating dtype.

        Functions of a library may round float64 to the library's default dtype; Keras on JAX does.
        """
        dtypes = [host.dtype for host in self.events[event]] + self.apart.dtypes.get(event, [])
        return any(EPSILON.get(dtype, 0.0) > EPSILON["float64"] for dtype in dtypes)


def sides_of_models(first: Model, second: Model) -> tuple[Side, Side]:
    """Runs two models as they are, and returns them with the order of their calls."""
    call_orders = [model.note_order().first_calls() for model in (first, second)]
    return tuple(  # type: ignore[return-value]
        Side(model.adapter, model.model, order) for model, order in zip((first, second), call_orders, strict=True)
    )
