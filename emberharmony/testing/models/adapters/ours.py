"""Models of emberharmony: `emberharmony.nn.Module`, on the active backend."""

import contextlib
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager
from typing import Any

import numpy as np

from emberharmony import Parameter, ops
from emberharmony.core import selection
from emberharmony.nn import walk
from emberharmony.testing.differences.records import Host, bits_of
from emberharmony.testing.models.adapter import Adapter, Hook, plain_options
from emberharmony.testing.models.patching import hook_classes
from emberharmony.version import __version__


class OurModels(Adapter):
    """The adapter of emberharmony."""

    name = "emberharmony"

    def version(self) -> str:
        return f"{__version__} on {ops.get_backend()}"

    def channels_last(self, model: Any) -> bool:
        data_formats = [getattr(module, "data_format", None) for module in self.modules(model).values()]
        return next((data_format == "channels_last" for data_format in data_formats if data_format), False)

    def modules(self, model: Any) -> dict[str, Any]:
        return dict(walk.named_modules(model))

    def own(self, module: Any) -> dict[str, Any]:
        return {name: cell.value for name, cell in walk.direct_cells(module)}

    def put(self, module: Any, tensors: Mapping[str, Any]) -> None:
        cell_by_name = dict(walk.direct_cells(module))
        for name, tensor in tensors.items():
            cell_by_name[name].value = tensor

    def is_array(self, value: Any) -> bool:
        return ops.is_tensor(value) or isinstance(value, np.ndarray)

    def host(self, array: Any) -> Host:
        return Host(*bits_of(array, selection.active().backend))

    def native(self, array: np.ndarray[Any, Any], like: Any = None) -> Any:
        tensor = ops.array(np.ascontiguousarray(array))
        return tensor if like is None else ops.cast(tensor, ops.dtype(like))

    def to_float64(self, array: Any) -> Any:
        return ops.cast(array, "float64") if ops.dtype(array).is_floating else array

    def attach(self, model: Any, hook: Hook) -> AbstractContextManager[None]:
        return hook_classes(self.modules(model), hook)

    @contextlib.contextmanager
    def wide(self, model: Any) -> Iterator[None]:
        yield

    @contextlib.contextmanager
    def keep_state(self, model: Any) -> Iterator[None]:
        cells_and_values = [(cell, cell.value) for cell in walk.cells(model)]
        try:
            yield
        finally:
            for cell, value in cells_and_values:
                if cell.value is not value:
                    cell.value = value

    def is_floating(self, array: Any) -> bool:
        return bool(ops.dtype(array).is_floating)

    def add(self, x: Any, y: Any) -> Any:
        return ops.add(x, y)

    def multiply(self, x: Any, y: Any) -> Any:
        return ops.multiply(x, y)

    def dot(self, x: Any, y: Any) -> Any:
        return ops.sum(ops.multiply(x, y))

    def differentiate(
        self, model: Any, loss: Callable[[Sequence[Any]], Any], arrays: Sequence[Any]
    ) -> tuple[list[Any], dict[tuple[str, str], Any]]:
        cell_by_path_and_name = {
            (path, name): cell
            for path, module in self.modules(model).items()
            if isinstance(module, walk.Holder)
            for name, cell in walk.direct_cells(module)
            if isinstance(cell, Parameter) and cell.trainable
        }

        probes = [Parameter(array) for array in arrays]
        kept_gradients = [cell.grad for cell in cell_by_path_and_name.values()]
        try:
            for cell in cell_by_path_and_name.values():
                cell.grad = None
            ops.backward(lambda: loss([probe.value for probe in probes]), [*probes, *cell_by_path_and_name.values()])
            gradient_by_path_and_name = {
                name: ops.zeros_like(cell.value) if cell.grad is None else cell.grad
                for name, cell in cell_by_path_and_name.items()
            }
        finally:
            for cell, kept_gradient in zip(cell_by_path_and_name.values(), kept_gradients, strict=True):
                cell.grad = kept_gradient
        return [probe.grad for probe in probes], gradient_by_path_and_name

    def options(self, module: Any) -> dict[str, Any]:
        return plain_options({name: value for name, value in vars(module).items() if not name.startswith("_")})
