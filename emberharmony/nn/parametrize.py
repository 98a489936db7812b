"""Parametrized tensors: a parameter of a layer that is computed from others, such as a direction and a length.

They are those of `torch.nn.utils.parametrize`, with its names in the state dict. A layer whose parameter is computed
gets a class of its own, in which the name of the parameter is a property; everything else about it stays the same.
"""

import functools
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any, TypeVar

from emberharmony import Buffer, Parameter, ops
from emberharmony.core.errors import ArgumentError, ArgumentTypeError, brief, suggest
from emberharmony.core.names.lazy import public_getattr_and_dir
from emberharmony.nn import rngs
from emberharmony.nn.layers.transposed import ConvTranspose1d, ConvTranspose2d, ConvTranspose3d
from emberharmony.nn.locate import fault
from emberharmony.nn.module import Module
from emberharmony.nn.options import length_option, number_option
from emberharmony.types import Tensor

M = TypeVar("M", bound=Module)


class ParametrizationList(Module):
    """The modules that compute a parameter, one after the other, and the parameters that the first one takes.

    The parameters are `original`, or `original0`, `original1` and so on if there are several.

    Args:
        parametrization: the first module, which computes the parameter.
        before: the parameter as it was.
    """

    def __init__(self, parametrization: Module, before: Parameter) -> None:
        right_inverse = getattr(parametrization, "right_inverse", None)
        original_value = before.value if right_inverse is None else right_inverse(before.value)
        if not isinstance(original_value, tuple):
            if right_inverse is not None:
                before.value = original_value
            self.original = before
        else:
            for position, original_part in enumerate(original_value):
                setattr(self, f"original{position}", Parameter(original_part, before.trainable))
        self._chain = [parametrization]

    def append(self, parametrization: Module) -> None:
        """Adds a module at the end of the chain that computes the parameter.

        Args:
            parametrization: a module that takes and returns one tensor.
        """
        self._chain.append(parametrization)

    def members(self) -> Iterator[tuple[str, Any]]:
        yield from ((name, member) for name, member in vars(self).items() if name != "_chain")
        yield from ((str(position), member) for position, member in enumerate(self._chain))

    def put_member(self, key: str, member: Any) -> None:
        self._chain[int(key)] = member

    def originals(self) -> list[Parameter]:
        """Returns the original parameters, from which the chain of modules computes the parameter."""
        return [value for value in vars(self).values() if isinstance(value, Parameter)]

    def __call__(self) -> Any:
        """Computes the parameter from the original ones, and returns it as a parameter that is not registered."""
        originals = self.originals()
        computed_value = self._chain[0](*(original.value for original in originals))
        for module in self._chain[1:]:
            computed_value = module(computed_value)
        return originals[0].copy_holding(computed_value)


class _Parametrized(Module):
    """The base of the classes of layers with computed parameters."""

    parametrizations: dict[str, ParametrizationList]

    def __reduce_ex__(self, protocol: Any) -> Any:
        # `pickle` finds classes by name, but the class with computed parameters has none, so its origin is pickled.
        return _empty_layer, (_original_class(type(self)), tuple(self.parametrizations)), vars(self)


def _original_class(kind: type[Any]) -> Any:
    """Returns the original class of a layer with computed parameters."""
    class_line = kind.__mro__
    return class_line[class_line.index(_Parametrized) + 1] if issubclass(kind, _Parametrized) else kind


@functools.cache
def _class_with_properties(kind: Any, names: tuple[str, ...]) -> Any:
    """Returns a subclass of a layer's class with properties that compute the named parameters."""

    def make_property(name: str) -> property:
        return property(lambda self: self.parametrizations[name]())

    return type(f"Parametrized{kind.__name__}", (_Parametrized, kind), {name: make_property(name) for name in names})


def _empty_layer(kind: Any, names: tuple[str, ...]) -> Any:
    """Returns a new layer with computed parameters and without attributes, which `pickle` and `copy` fill."""
    return object.__new__(_class_with_properties(kind, names))


def register(module: M, name: str, parametrization: Module) -> M:
    """Replaces a parameter of a layer by the output of a module of new parameters, and returns the layer.

    The module is called with the original parameter each time the layer reads the parameter. If it has a method
    `right_inverse`, this gets the present value and returns that of the original parameter, or a tuple of the values of
    several. A parameter may have several such modules, of which each takes the output of the one before.

    Args:
        module: the layer, which changes.
        name: the name of its parameter.
        parametrization: computes the parameter.

    Raises:
        ArgumentError: if the layer has no parameter of this name.
        ArgumentTypeError: if `parametrization` is not a module.

    Example:
        >>> layer = nn.parametrize.register(nn.Linear(2, 2), "weight", nn.Lambda(ops.triu))
        >>> bool(layer.weight[1, 0] == 0), list(layer.state_dict())
        (True, ['bias', 'parametrizations.weight.original'])
    """
    if not isinstance(parametrization, Module):
        raise ArgumentTypeError(f"register() takes a module that computes a parameter, not {brief(parametrization)}")
    parametrizations_by_name = vars(module).get("parametrizations", {})
    if name in parametrizations_by_name:
        parametrizations_by_name[name].append(parametrization)
        return module
    old_attribute = vars(module).get(name)
    if not isinstance(old_attribute, Parameter):
        parameter_names = [key for key, value in vars(module).items() if isinstance(value, Parameter)]
        raise ArgumentError(f"{type(module).__name__} has no parameter {name!r}{suggest(name, parameter_names)}")
    parametrizations = ParametrizationList(parametrization, old_attribute)
    parametrization.train(module.training)
    del vars(module)[name]
    vars(module)["parametrizations"] = {**parametrizations_by_name, name: parametrizations}
    module.__class__ = _class_with_properties(_original_class(type(module)), (*parametrizations_by_name, name))
    return module


def remove(module: M, name: str) -> M:
    """Replaces a computed parameter by a plain one with its present value, and returns the layer.

    Args:
        module: the module that has the parametrization.
        name: the name of the attribute, such as "weight".

    Raises:
        ArgumentError: if the parameter is not computed.

    Example:
        >>> layer = nn.parametrize.weight_norm(nn.Linear(2, 2))
        >>> list(nn.parametrize.remove(layer, "weight").state_dict()), type(layer).__name__
        (['bias', 'weight'], 'Linear')
    """
    parametrizations_by_name = dict(vars(module).get("parametrizations", {}))
    if name not in parametrizations_by_name:
        raise ArgumentError(
            f"{type(module).__name__} has no computed parameter {name!r}{suggest(name, parametrizations_by_name)}"
        )
    parametrizations = parametrizations_by_name.pop(name)
    new_parameter = Parameter(parametrizations().value, parametrizations.originals()[0].trainable)
    vars(module)["parametrizations"] = parametrizations_by_name
    if not parametrizations_by_name:
        del vars(module)["parametrizations"]
    original_class = _original_class(type(module))
    module.__class__ = (
        _class_with_properties(original_class, tuple(parametrizations_by_name))
        if parametrizations_by_name
        else original_class
    )
    setattr(module, name, new_parameter)
    return module


def is_parametrized(module: Module, name: str | None = None) -> bool:
    """Returns whether a parameter of a layer is computed; without a name, whether any is.

    Args:
        module: any module, of which the parametrizations are looked at.
        name: the name of an attribute, such as "weight"; None asks for any.

    Example:
        >>> nn.parametrize.is_parametrized(nn.parametrize.weight_norm(nn.Linear(2, 2)), "weight")
        True
    """
    parametrizations_by_name = vars(module).get("parametrizations", {})
    return bool(parametrizations_by_name) if name is None else name in parametrizations_by_name


class WeightNorm(Module):
    """Computes a weight from lengths and directions: `lengths * directions / norm(directions)`; see `weight_norm`.

    Args:
        dim: the axis whose slices each have a norm of their own; None takes the norm of the whole tensor.
    """

    def __init__(self, dim: int | None = 0) -> None:
        self.dim = None if dim == -1 else dim

    def __call__(self, lengths: Tensor, directions: Tensor) -> Tensor:
        return ops.multiply(directions, ops.divide(lengths, self._norm(directions)))

    def right_inverse(self, value: Tensor) -> tuple[Tensor, Tensor]:
        """Returns the lengths and directions of a weight.

        Args:
            value: the weight, a tensor with the axis `dim`.
        """
        return self._norm(value), value

    def _norm(self, x: Tensor) -> Tensor:
        if self.dim is None:
            return ops.sqrt(ops.sum(ops.square(x)))
        kept_axis = self.dim % len(x.shape)
        reduced_axes = [axis for axis in range(len(x.shape)) if axis != kept_axis]
        return ops.sqrt(ops.sum(ops.square(x), reduced_axes, True))


def weight_norm(module: M, name: str = "weight", dim: int | None = 0) -> M:
    """Makes a layer learn the lengths of its weight vectors apart from their directions, and returns the layer.

    Args:
        module: the layer, which changes.
        name: the name of the weight.
        dim: the axis along which each index has a length of its own; None for one length of all.

    Raises:
        ArgumentError: if the layer has no parameter of this name.

    Example:
        >>> layer = nn.parametrize.weight_norm(nn.Linear(3, 2))
        >>> list(layer.state_dict())
        ['bias', 'parametrizations.weight.original0', 'parametrizations.weight.original1']
        >>> tuple(layer(ops.zeros((5, 3))).shape)
        (5, 2)

    Source: Salimans and Kingma, Weight normalization, 2016; `torch.nn.utils.parametrizations.weight_norm`.
    """
    return register(module, name, WeightNorm(dim))


class SpectralNorm(Module):
    """Divides a weight by an approximation of its largest singular value; see `spectral_norm`.

    Args:
        weight: the tensor whose shape the vectors of the power iteration take.
        n_power_iterations: how many iterations a call in training makes.
        dim: the axis of the rows of the matrix whose singular value counts.
        eps: the least divisor of a norm.
        rng: draws the vectors that the power iteration begins with.
    """

    def __init__(
        self,
        weight: Tensor,
        n_power_iterations: int = 1,
        dim: int = 0,
        eps: float = 1e-12,
        *,
        rng: "rngs.Generator | rngs.Rngs | None" = None,
    ) -> None:
        self.n_power_iterations = length_option("n_power_iterations", n_power_iterations)
        rank = len(weight.shape)
        if not -rank <= dim < rank:
            raise fault(ArgumentError(f"dim must be an axis of the weight, from {-rank} to {rank - 1}, got {dim}"))
        self.dim, self.eps = dim % rank, number_option("eps", eps)
        if rank > 1:
            generator, matrix = rngs.generator(rng), self._weight_matrix(weight)
            self._u, self._v = (
                Buffer(self._unit_vector(ops.random.normal((length,), dtype=weight.dtype, generator=generator)))
                for length in matrix.shape
            )
            self._run_power_iterations(matrix, 15)

    def _weight_matrix(self, weight: Tensor) -> Tensor:
        weight_with_dim_first = weight if self.dim == 0 else ops.moveaxis(weight, self.dim, 0)
        return ops.reshape(weight_with_dim_first, (weight_with_dim_first.shape[0], -1))

    def _unit_vector(self, x: Tensor) -> Tensor:
        return ops.divide(x, ops.maximum(ops.sqrt(ops.sum(ops.square(x))), self.eps))

    def _run_power_iterations(self, matrix: Tensor, times: int) -> None:
        matrix = ops.stop_gradient(matrix)
        left_vector, right_vector = self._u.value, self._v.value
        for _ in range(times):
            left_vector = self._unit_vector(ops.matmul(matrix, right_vector))
            right_vector = self._unit_vector(ops.matmul(left_vector, matrix))
        self._u.value, self._v.value = left_vector, right_vector

    def __call__(self, weight: Tensor) -> Tensor:
        if len(weight.shape) == 1:
            return self._unit_vector(weight)
        matrix = self._weight_matrix(weight)
        if self.training:
            self._run_power_iterations(matrix, self.n_power_iterations)
        return ops.divide(weight, ops.vdot(self._u, ops.matmul(matrix, self._v)))


def spectral_norm(
    module: M,
    name: str = "weight",
    n_power_iterations: int = 1,
    eps: float = 1e-12,
    dim: int | None = None,
    *,
    rng: "rngs.Generator | rngs.Rngs | None" = None,
) -> M:
    """Divides the weight of a layer by its largest singular value, which is approximated, and returns the layer.

    In training each read of the weight improves the approximation by some steps of the power iteration.

    Args:
        module: the layer, which changes.
        name: the name of the weight.
        n_power_iterations: the number of steps by which each call in training improves the estimate of the norm.
        eps: the least length of a vector that is divided by its length.
        dim: the axis of the outputs; None is 0, and 1 for transposed convolutions.
        rng: draws the vectors that the power iteration begins with.

    Raises:
        ArgumentError: if the layer has no parameter of this name, or an option is out of range.

    Example:
        >>> layer = nn.parametrize.spectral_norm(nn.Linear(2, 2), n_power_iterations=20)
        >>> round(float(ops.max(ops.svdvals(layer.weight))), 4)
        1.0

    Source: Miyato et al., Spectral normalization for generative adversarial networks, 2018;
    `torch.nn.utils.parametrizations.spectral_norm`.
    """
    if dim is None:
        dim = int(isinstance(module, (ConvTranspose1d, ConvTranspose2d, ConvTranspose3d)))
    old_attribute = getattr(module, name, None)
    if not isinstance(old_attribute, Parameter):
        raise ArgumentError(f"{type(module).__name__} has no parameter {name!r}")
    return register(module, name, SpectralNorm(old_attribute.value, n_power_iterations, dim, eps, rng=rng))


if not TYPE_CHECKING:
    __getattr__, __dir__ = public_getattr_and_dir(__name__)
