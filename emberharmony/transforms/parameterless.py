"""Advice for the error on an object that was given as a model and has no parameters."""

from collections.abc import Iterator, Mapping
from types import ModuleType
from typing import Any

from emberharmony.core.cells.cell import Cell
from emberharmony.core.trees.objects import instances_in


def advice_text(given: Any) -> str:
    """Returns advice on an object that was given as a model and has no parameters, as the end of a message.

    Args:
        given: what was given for a model or parameters.
    """
    class_name = type(given).__name__
    cells = [] if isinstance(given, type) else instances_in(given, Cell)
    if cells and not any(cell.trainable for cell in cells):
        return f"; all {len(cells)} are frozen or buffers: use model.unfreeze()"
    if isinstance(given, type):
        return f"; {given.__name__} is a class: make a model of it first, model = {given.__name__}()"
    if callable(given) and getattr(given, "__name__", "") == "<lambda>":
        return "; it is a function: the loss comes first, and then the model"
    if callable(given) and getattr(given, "__name__", "") in ("parameters", "named_parameters", "state_dict"):
        return f"; call it: {given.__name__}()" if given.__name__ != "state_dict" else "; pass the model itself"
    if isinstance(given, Mapping):
        return "; a state dict has tensors: pass the model" if given else ""
    if isinstance(given, (int, float)):
        return f"; the model comes before the learning rate: (model, lr={given!r})"
    if isinstance(given, Iterator):
        return "; an iterator gives its items once: pass model.parameters()"
    if _is_tensor(given) or isinstance(given, str):
        return f"; it is a {class_name}: pass the model, or nn.Parameter(tensor)"
    if isinstance(given, ModuleType):
        return f"; {given.__name__} is a module of Python: pass the model"
    if isinstance(given, (list, tuple, set)):
        return f"; the {class_name} holds none" if given else f"; the {class_name} is empty"
    if is_of_pytorch(given):
        return (
            "; it is a model of PyTorch: use the layers of emberharmony.nn, or emberharmony.from_torch(module, inputs)"
        )
    return _advice_for_object(given, class_name)


def is_of_pytorch(value: Any) -> bool:
    """Returns whether something is a layer or a parameter of PyTorch, or of a subclass."""
    return any(base.__module__.partition(".")[0] == "torch" for base in type(value).__mro__)


def _advice_for_object(given: Any, class_name: str) -> str:
    tensor_names = [name for name, value in getattr(given, "__dict__", {}).items() if _is_tensor(value)]
    if len(tensor_names) > 1:
        names_text = " and ".join(f"{class_name}.{name}" for name in tensor_names[:4])
        return f"; {names_text} are tensors: make each an nn.Parameter, as nn.Parameter({tensor_names[0]})"
    if tensor_names:
        return f"; {class_name}.{tensor_names[0]} is a tensor: make it nn.Parameter({tensor_names[0]})"
    class_attributes = [name for name, value in vars(type(given)).items() if _has_parameters(value)]
    if class_attributes:
        return (
            f"; {class_name}.{class_attributes[0]} is made in the class: make it in __init__, as "
            f"self.{class_attributes[0]} = ..."
        )
    if "__init__" in vars(type(given)) or hasattr(given, "named_parameters"):
        return (
            f"; {class_name} has no layers or parameters in its attributes: make them in __init__, as self.layer = ..."
        )
    return ""


def _is_tensor(value: Any) -> bool:
    return hasattr(value, "shape") and hasattr(value, "dtype") and not isinstance(value, (Cell, type))


def _has_parameters(value: Any) -> bool:
    return hasattr(value, "__dict__") and not isinstance(value, type) and bool(instances_in(value, Cell))
