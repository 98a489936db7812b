"""`nn.build`, which creates the parameters of layers whose input sizes are found by a call."""

from typing import Any, NoReturn, TypeVar

from emberharmony import Parameter, ops
from emberharmony.core.errors import ArgumentError, UninitializedParameterError
from emberharmony.nn.locate import fault
from emberharmony.nn.module import Module

M = TypeVar("M", bound=Module)


class UninitializedParameter(Parameter):
    """A placeholder for a parameter whose shape is unknown until `nn.build` has found it.

    Args:
        layer: the layer that has the parameter.
    """

    __slots__ = ("layer",)

    def __init__(self, layer: Module) -> None:
        super().__init__(0.0)
        self._held = self._held[0], None  # without a backend, each way of reading it raises an error
        self.layer = type(layer).__name__

    def tensor_on(self, bound: Any) -> NoReturn:
        """Raises an error that says that the parameter has no shape yet and how to find it.

        Raises:
            UninitializedParameterError: always.
        """
        raise fault(
            UninitializedParameterError(
                f"a parameter of a layer {self.layer} has no shape yet, because the layer has not seen an input: call "
                f"nn.build(model, example) before the model is used"
            )
        )

    def tensor_and_home(self) -> NoReturn:
        """Raises the error that the parameter has no shape yet."""
        self.tensor_on(None)

    @property
    def value(self) -> NoReturn:
        """Raises the error that the parameter has no shape yet."""
        self.tensor_on(None)

    @value.setter
    def value(self, value: Any) -> NoReturn:
        self.tensor_on(None)

    def __repr__(self) -> str:
        return "UninitializedParameter()"


def build(module: M, *examples: Any) -> M:
    """Creates the parameters of layers whose input sizes were given as None, and returns the module.

    Nothing is computed: the module runs on shapes.

    Args:
        module: a module with layers such as `nn.Linear(None, 10)`.
        examples: what the module is called with: tensors, or `TensorSpec` of shape and dtype.

    Raises:
        ArgumentError: if a layer is not called, so its size stays unknown. The layers that were called keep theirs.

    Example:
        >>> net = nn.build(nn.Sequential(nn.Linear(None, 4), ops.relu, nn.Linear(None, 2)), ops.zeros((1, 3)))
        >>> print(net)
        Sequential(
          (0): Linear(3, 4)
          (1): Lambda(relu)
          (2): Linear(4, 2)
        )
    """
    unbuilt_by_name = {name: layer for name, layer in module.named_modules() if hasattr(layer, "_build")}
    snapshots = [(layer, layer.__class__, dict(vars(layer))) for layer in unbuilt_by_name.values()]
    shape_by_layer: dict[Module, tuple[int, ...]] = {}
    try:
        for unbuilt_layer, layer_class, _ in snapshots:
            unbuilt_layer.__class__ = _class_that_builds(layer_class, shape_by_layer)
        ops.eval_shape(module, *examples)
    finally:
        for unbuilt_layer, layer_class, attributes in snapshots:
            unbuilt_layer.__class__ = layer_class
            vars(unbuilt_layer).clear()
            vars(unbuilt_layer).update(attributes)
    unreached_names = [name for name, layer in unbuilt_by_name.items() if layer not in shape_by_layer]
    for unbuilt_layer, shape in shape_by_layer.items():
        unbuilt_layer.build(shape)
    if unreached_names:
        raise ArgumentError(
            f"build() did not call {', '.join(unreached_names)} of {type(module).__name__}; build them one by one"
        )
    return module


def _class_that_builds(kind: type[Any], shapes: dict[Module, tuple[int, ...]]) -> type[Any]:
    """Returns a subclass of a layer's class whose calls record the input's shape and create abstract parameters."""

    def call_and_build(self: Any, x: Any, *args: Any, **kwargs: Any) -> Any:
        shapes.setdefault(self, tuple(x.shape))
        self.build(shapes[self])
        return kind.__call__(self, x, *args, **kwargs)

    return type(kind.__name__, (kind,), {"__call__": call_and_build})
