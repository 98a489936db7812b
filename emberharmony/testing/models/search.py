"""Comparison of two models, which names the first module that differs and the side on which it is wrong."""

import contextlib
import os
import platform
import tempfile
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from emberharmony.core.errors import ArgumentError
from emberharmony.core.trees.tree import tree_map
from emberharmony.testing.differences.report import Report
from emberharmony.testing.differences.spool import Writer
from emberharmony.testing.models.adapter import Adapter
from emberharmony.testing.models.alignment import Side, align
from emberharmony.testing.models.arrays import arrays_in, best_fit
from emberharmony.testing.models.functions import adapter_of
from emberharmony.testing.models.judging import Judge
from emberharmony.testing.models.runs import Model, Runs, sides_of_models
from emberharmony.testing.models.weights import unequal_tensors
from emberharmony.version import __version__

_MEMORY = 2**24
"""The number of bytes of small arrays that stay in memory instead of a file."""


def compare_models(
    first: Any,
    second: Any,
    *inputs: Any,
    match: Mapping[str, str] | None = None,
    original: str = "first",
    stop: str = "first",
    tolerance: float | None = None,
    gradients: bool = False,
) -> Report:
    """Returns the comparison of two models; see `emberharmony.compare`."""
    if stop not in ("first", "all"):
        raise ArgumentError(f"compare() stops at 'first' or compares 'all', not {stop!r}")
    if original not in ("first", "second", "neither"):
        raise ArgumentError(f"compare(): original must be 'first', 'second' or 'neither', not {original!r}")
    adapters = adapter_of(first), adapter_of(second)
    args, kwargs = _arguments_on_host(inputs)
    first_model, second_model = Model(adapters[0], first, args, kwargs), Model(adapters[1], second, args, kwargs)
    report = Report(_distinct_names(adapters), _environment(adapters))
    report._tolerance = tolerance
    moved_inputs = _moved_inputs((first_model, second_model), args, kwargs)
    if moved_inputs is not None and _takes_transposed(adapters[1], second, moved_inputs, (args, kwargs)):
        second_model = Model(adapters[1], second, *moved_inputs)
        side_text = "last" if adapters[1].channels_last(second) else "second"
        report.notes.append(f"images were transposed for {report.sides[1]}, where channels are the {side_text} axis")
    side_pair = sides_of_models(first_model, second_model)
    if first_model.error is not None and second_model.error is not None:
        raise first_model.error
    alignment = align(*side_pair, match or {})
    tensors, inner_paths = unequal_tensors(*side_pair, alignment)
    unpaired_paths = tuple(
        [path for path in paths if path not in paths_inside]
        for paths, paths_inside in zip(alignment.unpaired, inner_paths, strict=True)
    )
    judge = Judge(report, side_pair, (first_model, second_model), alignment, tensors, original, tolerance)
    with tempfile.TemporaryDirectory(prefix="emberharmony-") as folder, contextlib.ExitStack() as stack:
        writer = Writer(os.path.join(folder, "first"), _MEMORY)
        stack.callback(writer.close)
        runs = Runs(first_model, second_model, alignment.names, writer)
        judge.judge_calls(runs, stop)
        if gradients and not any(divergence.cause in ("formula", "error") for divergence in report.divergences):
            judge.judge_backward(runs)
    _note_results(report, side_pair, (first_model, second_model), unpaired_paths)
    return report


def _arguments_on_host(inputs: Sequence[Any]) -> tuple[Any, Any]:
    """Returns the inputs as positional and keyword arguments, with arrays of NumPy."""
    if len(inputs) == 1 and isinstance(inputs[0], Mapping):
        return (), tree_map(_to_host_array, dict(inputs[0]))
    return tree_map(_to_host_array, tuple(inputs)), {}


def _to_host_array(value: Any) -> Any:
    if isinstance(value, (np.ndarray, np.generic)):
        return np.asarray(value)
    if hasattr(value, "detach"):
        value = value.detach().cpu()
    return np.asarray(value) if hasattr(value, "__array__") else value


def _distinct_names(adapters: Sequence[Adapter]) -> list[str]:
    adapter_names = [adapter.name for adapter in adapters]
    return (
        adapter_names
        if adapter_names[0] != adapter_names[1]
        else [f"{adapter_names[0]} (1)", f"{adapter_names[1]} (2)"]
    )


def _environment(adapters: Sequence[Adapter]) -> dict[str, str]:
    version_by_name = {"emberharmony": __version__, "python": platform.python_version(), "machine": platform.platform()}
    return version_by_name | {adapter.name: adapter.version() for adapter in adapters}


def _moved_inputs(models: Sequence[Model], args: Any, kwargs: Any) -> Any:
    """Returns the inputs for the second model if it has the channels of images on another axis; else None."""
    are_channels_last = [model.adapter.channels_last(model.model) for model in models]
    kernel_shapes = [_first_kernel_shape(model) for model in models]
    if are_channels_last[0] == are_channels_last[1] or None in kernel_shapes:
        return None
    axis_count = len(kernel_shapes[0] or ())

    def move_channels(value: Any) -> Any:
        if not isinstance(value, np.ndarray) or value.ndim != axis_count or value.dtype.kind != "f":
            return value
        return np.moveaxis(value, 1, -1) if are_channels_last[1] else np.moveaxis(value, -1, 1)

    return tree_map(move_channels, (args, kwargs))


def _takes_transposed(adapter: Adapter, model: Any, moved_inputs: Any, given_inputs: Any) -> bool:
    """Returns whether a model takes images that were transposed, rather than those of the first model as they are."""
    trial_models = [Model(adapter, model, *inputs) for inputs in (moved_inputs, given_inputs)]
    trial_models[0].note_order()
    if trial_models[0].error is not None:
        trial_models[1].note_order()
    return trial_models[0].error is None or trial_models[1].error is not None


def _first_kernel_shape(model: Model) -> tuple[int, ...] | None:
    """Returns the shape of the kernel of the first convolution of a model, or None."""
    side = Side(model.adapter, model.model, {})
    for path in side.modules:
        if side.kind(path).lower().startswith("conv"):
            shapes = [tuple(array.shape) for array in model.adapter.own(side.modules[path]).values()]
            kernel_shape = max(shapes, key=len, default=())
            if len(kernel_shape) > 2:
                return kernel_shape
    return None


def _note_results(
    report: Report, pair: tuple[Side, Side], models: tuple[Model, Model], unpaired_paths: Sequence[Sequence[str]]
) -> None:
    """Adds to a report what could not be aligned or computed, and how far the results are apart."""
    for side, side_paths, name in zip(pair, unpaired_paths, report.sides, strict=True):
        paths_with_tensors = [path for path in side_paths if side.adapter.own(side.modules[path])]
        other_paths = [path for path in side_paths if path not in paths_with_tensors and path in side.order]
        for paths, tensors_text in ((paths_with_tensors, "tensors"), (other_paths, "no tensors")):
            if paths:
                paths_text = ", ".join(paths[:20]) + (f" and {len(paths) - 20} more" if len(paths) > 20 else "")
                report.notes.append(
                    f"modules of {name} with {tensors_text} that correspond to none of the other: {paths_text}"
                )
    for model, name in zip(models, report.sides, strict=True):
        if not model.wide:
            report.notes.append(f"{name} does not compute this model in float64: {model.error_of_wide}")
    result_arrays = [list(arrays_in(model.result, model.adapter.is_array)) for model in models]
    if all(result_arrays):
        result_hosts = [model.adapter.host(arrays[0]) for model, arrays in zip(models, result_arrays, strict=True)]
        share_and_fit = best_fit(*result_hosts)
        if share_and_fit is not None:
            report.notes.append(f"the results as they are differ by {share_and_fit[0]:.2g} of the largest element")
