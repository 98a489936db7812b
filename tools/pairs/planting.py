"""Plants a fault into one of two models: an option, a tensor or the code of a class, at a place drawn by a seed."""

import contextlib
import inspect
import re
import textwrap
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

import numpy as np
from code_faults import CODE
from pairs import models_of

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


def candidates(kind: str, library: str, model: Any, second: bool) -> list[Any]:
    """Returns the faults that a model can have, as functions of a generator that plant one."""
    adapter = adapter_of(model)
    modules = adapter.modules(model)
    made: list[Any] = []
    for path, module in modules.items():
        made += [(name, path, plant) for name, plant in _tensor_faults(adapter, modules, path, module)]
        made += [(name, path, plant) for name, plant in _option_faults(library, path, module)]
    for fault in CODE.get((kind, library), []):
        owners = [path for path, module in modules.items() if type(module).__name__ == fault.owner]
        if not owners and "." not in fault.owner and not hasattr(models_of(kind, library), fault.owner):
            raise ValueError(f"{kind} of {library} has no {fault.owner}")
        made += [(fault.kind, path, _code_fault(models_of(kind, library), fault, modules, path)) for path in owners]
    # A fault that only the knowledge which model is the original can tell is in the port, the second model.
    return made if second else [fault for fault in made if _tells(fault, modules)]


_TELLING = ("missing bias", "weights cut to float16", "dtype cut")


def _tells(fault: Any, modules: dict[str, Any]) -> bool:
    name, path, plant = fault
    alone = sum(type(module) is type(modules[path]) for module in modules.values()) == 1
    tensor = getattr(plant, "of_tensor", False)
    return name in _TELLING or not (tensor or alone)


def _tensor_faults(adapter: Any, modules: dict[str, Any], path: str, module: Any) -> Iterator[tuple[str, Any]]:
    own = {name: adapter.host(array).values() for name, array in adapter.own(module).items()}
    own = {name: array for name, array in own.items() if array.dtype.kind == "f" and "freq" not in name}

    def putting(name: str, change: Callable[[Any, Any], Any]) -> Any:
        def plant(draw: Any) -> Planted:
            before = adapter.own(module)[name]
            adapter.put(module, {name: adapter.native(np.ascontiguousarray(change(own[name], draw)), before)})
            above = path.rpartition(".")[0]
            whole = type(modules.get(above)).__name__.endswith(("Attention", "LSTM"))
            accepted = (path, above) if whole and type(modules[above]).__module__.startswith(LIBRARIES) else (path,)
            return Planted("", path, accepted, False, lambda: adapter.put(module, {name: before}))

        plant.of_tensor = True  # type: ignore[attr-defined]
        return plant

    for name, array in own.items():
        if "bias" in name or name == "beta":
            yield "missing bias", putting(name, lambda x, _: np.zeros_like(x))
        if array.ndim == 2 and array.shape[0] == array.shape[1]:
            yield "transposed weight", putting(name, lambda x, _: x.T)
        if array.ndim >= 3 and "Conv" in type(module).__name__:
            square = [
                i for i in range(array.ndim - 1) if array.shape[i] == array.shape[i + 1] and array.shape[i] in (2, 3)
            ]
            if square:
                at = square[0]
                yield "layout of convolution", putting(name, lambda x, _, at=at: np.swapaxes(x, at, at + 1))
        if array.ndim >= 2 and array.size > 64:
            yield "weights cut to float16", putting(name, lambda x, _: x.astype("float16").astype("float32"))
            yield (
                "weights not loaded",
                putting(name, lambda x, draw: draw.normal(size=x.shape).astype("float32") * x.std()),
            )
        if "LSTM" in type(module).__name__ and array.ndim == 2 and 4 * min(array.shape) == max(array.shape):
            axis = int(np.argmax(array.shape))
            yield (
                "order of gates",
                putting(
                    name, lambda x, _, axis=axis: np.concatenate([np.split(x, 4, axis)[i] for i in (0, 2, 1, 3)], axis)
                ),
            )
    if "norm" in type(module).__name__.lower() and own:
        others = [
            other
            for other, each in modules.items()
            if other != path and type(each) is type(module) and _shapes(adapter, each) == _shapes(adapter, module)
        ]
        if others:

            def swap(draw: Any) -> Planted:
                other = str(draw.choice(others))
                before = adapter.own(module), adapter.own(modules[other])
                adapter.put(module, before[1])
                adapter.put(modules[other], before[0])

                def undo() -> None:
                    adapter.put(module, before[0])
                    adapter.put(modules[other], before[1])

                return Planted("", path, (path, other), False, undo)

            swap.of_tensor = True  # type: ignore[attr-defined]
            yield "swapped norms", swap


def _shapes(adapter: Any, module: Any) -> dict[str, tuple[int, ...]]:
    return {name: tuple(array.shape) for name, array in adapter.own(module).items()}


def _option_faults(library: str, path: str, module: Any) -> Iterator[tuple[str, Any]]:
    def setting(**values: Any) -> Any:
        def plant(draw: Any) -> Planted:
            before = {name: getattr(module, name) for name in values}
            for name, value in values.items():
                object.__setattr__(module, name, value) if library in ("flax", "equinox") else setattr(
                    module, name, value
                )

            def undo() -> None:
                for name, value in before.items():
                    object.__setattr__(module, name, value) if library in ("flax", "equinox") else setattr(
                        module, name, value
                    )

            return Planted("", path, (path,), False, undo)

        return plant

    for name in ("eps", "epsilon", "variance_epsilon"):
        if isinstance(getattr(module, name, None), float):
            yield "wrong eps", setting(**{name: 1e-3})
            yield "wrong eps", setting(**{name: 1e-2})
    title = type(module).__name__
    if title == "RoPE":
        inner = (path, path.rpartition(".")[0])
        for kind, values in (("rope base", {"base": 1000.0}), ("rope halves", {"traditional": True})):

            def plant(draw: Any, values: Any = values) -> Planted:
                return setting(**values)(draw)._replace(accepted=inner)

            yield kind, plant
    if "BatchNorm" in title:
        if library == "torch":
            yield "BN in train mode", setting(training=True)
        if library == "flax":
            yield "BN in train mode", setting(use_running_average=False)
    convolves = library == "torch" and title in ("Conv1d", "Conv2d")
    if convolves and max(module.kernel_size) > 1 and any(np.atleast_1d(module.padding)):
        yield "padding mode", setting(padding_mode="reflect")
        yield "padding mode", setting(padding_mode="replicate")
    if library == "keras" and title == "ZeroPadding2D":
        yield "padding mode", setting(padding=((0, 2), (0, 2)))


def _code_fault(source_of: Any, fault: Any, modules: dict[str, Any], path: str) -> Any:
    """Returns what plants a fault into the code of a class: of one of its objects, or of all."""
    kind = type(modules[path])
    source = inspect.getsource(kind)
    if fault.original not in source:
        raise ValueError(f"{fault.owner} has no {fault.original!r}")
    space = dict(vars(source_of))
    exec(textwrap.dedent(source.replace(fault.original, fault.replacement, 1)), space)
    wrong = space[kind.__name__]
    names = [n for n, f in vars(kind).items() if inspect.isfunction(f) and n not in ("__init__", "build")]
    (name,) = [n for n in names if fault.original in inspect.getsource(getattr(kind, n))][:1] or [names[0]]
    instances = [p for p, module in modules.items() if type(module) is kind]

    def plant(draw: Any, everywhere: bool = False) -> Planted:
        before, right = vars(kind)[name], getattr(kind, name)
        module = modules[path]

        def method(self: Any, *args: Any, **kwargs: Any) -> Any:
            return (getattr(wrong, name) if everywhere or self is module else right)(self, *args, **kwargs)

        setattr(kind, name, method)
        first = instances[0] if everywhere else path
        accepted = tuple(instances) if everywhere else (path,)
        return Planted("", first, accepted, everywhere, lambda: setattr(kind, name, before))

    plant.is_code = True  # type: ignore[attr-defined]
    return plant


@contextlib.contextmanager
def planted(draw: Any, kind: str, library: str, model: Any, second: bool, used: set[str]) -> Iterator[Planted]:
    """Plants a fault for the time of the block; its kind is new as long as there are new ones."""
    faults = candidates(kind, library, model, second)
    kinds = sorted({name for name, _, _ in faults})
    fresh = [name for name in kinds if name not in used] or kinds
    name = str(draw.choice(fresh))
    fitting = [plant for each, _, plant in faults if each == name]
    plant = fitting[int(draw.integers(len(fitting)))]
    if getattr(plant, "is_code", False):
        made = plant(draw, bool(second and draw.integers(2)))
    else:
        made = plant(draw)
    try:
        yield made._replace(kind=name)
    finally:
        made.undo()


def plain(path: str) -> str:
    """Returns the name of a module in a report without the class of the model."""
    return re.sub(r"^[^.]*\.?", "", path)
