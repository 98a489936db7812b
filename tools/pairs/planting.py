"""Plants a fault into one of two models: an option, a tensor or the code of a class, at a place drawn by a seed."""

import contextlib
import inspect
import re
import textwrap
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

import numpy as np
from code_faults import CODE
from pairs import module_of_models

from emberharmony.testing.models.functions import adapter_of

LIBRARIES = ("torch.", "mlx.", "keras.", "flax.", "equinox.")
"""A fault in a part of a layer of these may be named by the layer."""


class Planted(NamedTuple):
    """A planted fault: its kind, the module that is wrong, those that may be named for it, and what undoes it."""

    kind: str
    path: str
    accepted: tuple[str, ...]
    everywhere: bool
    undo: Callable[[], None]


Option = tuple[str, str, dict[str, Any]]


def possible_faults(kind: str, library: str, model: Any, second: bool) -> list[Any]:
    """Returns the faults that a model can have, as functions of a generator that plant one."""
    adapter = adapter_of(model)
    modules = adapter.modules(model)
    faults: list[Any] = []
    for path, module in modules.items():
        faults += [(name, path, plant) for name, plant in _tensor_faults(adapter, modules, path, module)]
        faults += [(name, path, plant) for name, plant in _option_faults(library, path, module)]
    for fault in CODE.get((kind, library), []):
        owners = [path for path, module in modules.items() if type(module).__name__ == fault.owner]
        if not owners and "." not in fault.owner and not hasattr(module_of_models(kind, library), fault.owner):
            raise ValueError(f"{kind} of {library} has no {fault.owner}")
        faults += [
            (fault.kind, path, _code_planter(module_of_models(kind, library), fault, modules, path)) for path in owners
        ]
    # A fault that only the knowledge which model is the original can tell is in the port, the second model.
    return faults if second else [fault for fault in faults if _is_evident(fault, modules)]


_TELLING = ("missing bias", "weights cut to float16", "dtype cut")


def _is_evident(fault: Any, modules: dict[str, Any]) -> bool:
    name, path, plant = fault
    is_alone = sum(type(module) is type(modules[path]) for module in modules.values()) == 1
    is_tensor_fault = getattr(plant, "of_tensor", False)
    return name in _TELLING or not (is_tensor_fault or is_alone)


def _tensor_faults(adapter: Any, modules: dict[str, Any], path: str, module: Any) -> Iterator[tuple[str, Any]]:
    array_by_name = {name: adapter.host(array).values() for name, array in adapter.own(module).items()}
    array_by_name = {
        name: array for name, array in array_by_name.items() if array.dtype.kind == "f" and "freq" not in name
    }

    def tensor_planter(name: str, change: Callable[[Any, Any], Any]) -> Any:
        def plant(draw: Any) -> Planted:
            saved_tensor = adapter.own(module)[name]
            adapter.put(
                module, {name: adapter.native(np.ascontiguousarray(change(array_by_name[name], draw)), saved_tensor)}
            )
            parent_path = path.rpartition(".")[0]
            is_composite = type(modules.get(parent_path)).__name__.endswith(("Attention", "LSTM"))
            accepted_paths = (
                (path, parent_path)
                if is_composite and type(modules[parent_path]).__module__.startswith(LIBRARIES)
                else (path,)
            )
            return Planted("", path, accepted_paths, False, lambda: adapter.put(module, {name: saved_tensor}))

        plant.of_tensor = True  # type: ignore[attr-defined]
        return plant

    for name, array in array_by_name.items():
        if "bias" in name or name == "beta":
            yield "missing bias", tensor_planter(name, lambda x, _: np.zeros_like(x))
        if array.ndim == 2 and array.shape[0] == array.shape[1]:
            yield "transposed weight", tensor_planter(name, lambda x, _: x.T)
        if array.ndim >= 3 and "Conv" in type(module).__name__:
            square_axes = [
                i for i in range(array.ndim - 1) if array.shape[i] == array.shape[i + 1] and array.shape[i] in (2, 3)
            ]
            if square_axes:
                at = square_axes[0]
                yield "layout of convolution", tensor_planter(name, lambda x, _, at=at: np.swapaxes(x, at, at + 1))
        if array.ndim >= 2 and array.size > 64:
            yield "weights cut to float16", tensor_planter(name, lambda x, _: x.astype("float16").astype("float32"))
            yield (
                "weights not loaded",
                tensor_planter(name, lambda x, draw: draw.normal(size=x.shape).astype("float32") * x.std()),
            )
        if "LSTM" in type(module).__name__ and array.ndim == 2 and 4 * min(array.shape) == max(array.shape):
            axis = int(np.argmax(array.shape))
            yield (
                "order of gates",
                tensor_planter(
                    name, lambda x, _, axis=axis: np.concatenate([np.split(x, 4, axis)[i] for i in (0, 2, 1, 3)], axis)
                ),
            )
    if "norm" in type(module).__name__.lower() and array_by_name:
        other_paths = [
            other
            for other, each in modules.items()
            if other != path
            and type(each) is type(module)
            and _tensor_shapes(adapter, each) == _tensor_shapes(adapter, module)
        ]
        if other_paths:

            def swap_tensors(draw: Any) -> Planted:
                other_path = str(draw.choice(other_paths))
                saved_tensors = adapter.own(module), adapter.own(modules[other_path])
                adapter.put(module, saved_tensors[1])
                adapter.put(modules[other_path], saved_tensors[0])

                def undo() -> None:
                    adapter.put(module, saved_tensors[0])
                    adapter.put(modules[other_path], saved_tensors[1])

                return Planted("", path, (path, other_path), False, undo)

            swap_tensors.of_tensor = True  # type: ignore[attr-defined]
            yield "swapped norms", swap_tensors


def _tensor_shapes(adapter: Any, module: Any) -> dict[str, tuple[int, ...]]:
    return {name: tuple(array.shape) for name, array in adapter.own(module).items()}


def _option_faults(library: str, path: str, module: Any) -> Iterator[tuple[str, Any]]:
    def option_planter(**values: Any) -> Any:
        def plant(draw: Any) -> Planted:
            value_by_option = {name: getattr(module, name) for name in values}
            for name, value in values.items():
                object.__setattr__(module, name, value) if library in ("flax", "equinox") else setattr(
                    module, name, value
                )

            def undo() -> None:
                for name, value in value_by_option.items():
                    object.__setattr__(module, name, value) if library in ("flax", "equinox") else setattr(
                        module, name, value
                    )

            return Planted("", path, (path,), False, undo)

        return plant

    for name in ("eps", "epsilon", "variance_epsilon"):
        if isinstance(getattr(module, name, None), float):
            yield "wrong eps", option_planter(**{name: 1e-3})
            yield "wrong eps", option_planter(**{name: 1e-2})
    class_name = type(module).__name__
    if class_name == "RoPE":
        accepted_paths = (path, path.rpartition(".")[0])
        for kind, values in (("rope base", {"base": 1000.0}), ("rope halves", {"traditional": True})):

            def plant(draw: Any, values: Any = values) -> Planted:
                return option_planter(**values)(draw)._replace(accepted=accepted_paths)

            yield kind, plant
    if "BatchNorm" in class_name:
        if library == "torch":
            yield "BN in train mode", option_planter(training=True)
        if library == "flax":
            yield "BN in train mode", option_planter(use_running_average=False)
    is_convolution = library == "torch" and class_name in ("Conv1d", "Conv2d")
    if is_convolution and max(module.kernel_size) > 1 and any(np.atleast_1d(module.padding)):
        yield "padding mode", option_planter(padding_mode="reflect")
        yield "padding mode", option_planter(padding_mode="replicate")
    if library == "keras" and class_name == "ZeroPadding2D":
        yield "padding mode", option_planter(padding=((0, 2), (0, 2)))


def _code_planter(source_of: Any, fault: Any, modules: dict[str, Any], path: str) -> Any:
    """Returns what plants a fault into the code of a class: of one of its objects, or of all."""
    layer_class = type(modules[path])
    source = inspect.getsource(layer_class)
    if fault.original not in source:
        raise ValueError(f"{fault.owner} has no {fault.original!r}")
    namespace = dict(vars(source_of))
    exec(textwrap.dedent(source.replace(fault.original, fault.replacement, 1)), namespace)
    wrong_class = namespace[layer_class.__name__]
    method_names = [n for n, f in vars(layer_class).items() if inspect.isfunction(f) and n not in ("__init__", "build")]
    (name,) = [n for n in method_names if fault.original in inspect.getsource(getattr(layer_class, n))][:1] or [
        method_names[0]
    ]
    instances = [p for p, module in modules.items() if type(module) is layer_class]

    def plant(draw: Any, everywhere: bool = False) -> Planted:
        original_method, right_method = vars(layer_class)[name], getattr(layer_class, name)
        module = modules[path]

        def method(self: Any, *args: Any, **kwargs: Any) -> Any:
            return (getattr(wrong_class, name) if everywhere or self is module else right_method)(self, *args, **kwargs)

        setattr(layer_class, name, method)
        first_path = instances[0] if everywhere else path
        accepted_paths = tuple(instances) if everywhere else (path,)
        return Planted("", first_path, accepted_paths, everywhere, lambda: setattr(layer_class, name, original_method))

    plant.is_code = True  # type: ignore[attr-defined]
    return plant


@contextlib.contextmanager
def plant_fault(draw: Any, kind: str, library: str, model: Any, second: bool, used: set[str]) -> Iterator[Planted]:
    """Plants a fault for the time of the block; its kind is new as long as there are new ones."""
    faults = possible_faults(kind, library, model, second)
    kinds = sorted({name for name, _, _ in faults})
    fresh_kinds = [name for name in kinds if name not in used] or kinds
    name = str(draw.choice(fresh_kinds))
    fitting_plants = [plant for each, _, plant in faults if each == name]
    plant = fitting_plants[int(draw.integers(len(fitting_plants)))]
    if getattr(plant, "is_code", False):
        planted_fault = plant(draw, bool(second and draw.integers(2)))
    else:
        planted_fault = plant(draw)
    try:
        yield planted_fault._replace(kind=name)
    finally:
        planted_fault.undo()


def relative_path(path: str) -> str:
    """Returns the name of a module in a report without the class of the model."""
    return re.sub(r"^[^.]*\.?", "", path)
