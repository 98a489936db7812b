"""Initial values of parameters: the names and formulas of `torch.nn.init`, as initializers that layers take.

Each function returns an `Initializer`, which is called with a shape. Weights have the layout of torch: (out, in, ...).
"""

import math
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any, TypeAlias, TypeVar

from emberharmony import ops
from emberharmony.core.cells.cell import Cell
from emberharmony.core.deferred import Deferred
from emberharmony.core.dtypes import as_dtype
from emberharmony.core.errors import ArgumentError, ArgumentTypeError, DTypeError, ShapeError, brief
from emberharmony.core.names.lazy import public_getattr_and_dir
from emberharmony.core.types import DTypeLike, HostArray, Shape, Tensor
from emberharmony.nn import rngs
from emberharmony.nn.options import choice_option

if TYPE_CHECKING:
    from emberharmony.backend.shared import initial
else:
    initial = Deferred("emberharmony.backend.shared.initial")

C = TypeVar("C", bound=Cell)
Draw: TypeAlias = Callable[[tuple[int, ...], Any, DTypeLike], Tensor]
"""A function of a shape, a random generator and a dtype that returns a tensor of initial values."""

_LINEAR = (
    *("linear", "conv1d", "conv2d", "conv3d"),
    *("conv_transpose1d", "conv_transpose2d", "conv_transpose3d"),
)


class Initializer:
    """An initializer of parameters: a call with a shape returns a tensor of initial values.

    The functions of this module make initializers. They are compared and pickled by their options.

    Args:
        factory: the function of this module that makes equal initializers.
        options: the arguments of that function, by name.
        draw: a function of a shape, a generator and a dtype, which returns the tensor.

    Example:
        >>> from emberharmony import nn, ops
        >>> nn.init.constant(0.5)((2,)).tolist()
        [0.5, 0.5]
        >>> rng = ops.random.Generator(0)
        >>> ops.shape(nn.init.xavier_uniform()((3, 4), rng=rng))
        (3, 4)
        >>> nn.init.normal(std=0.02)
        normal(mean=0.0, std=0.02)
    """

    def __init__(self, factory: "Callable[..., Initializer]", options: Mapping[str, Any], draw: Draw) -> None:
        for name, value in options.items():
            if len(getattr(value, "shape", ())):
                raise ArgumentTypeError(
                    f"nn.init.{factory.__name__}() makes an initializer of options, and {name} is a number, not "
                    f"{brief(value)}: use nn.init.apply(parameter, nn.init.{factory.__name__}()) for a parameter"
                )
        self._factory, self._options, self._draw = factory, dict(options), draw

    def __call__(
        self, shape: Shape, *, rng: "rngs.Generator | rngs.Rngs | None" = None, dtype: DTypeLike | None = None
    ) -> Tensor:
        """Returns a tensor of initial values of a shape.

        Args:
            shape: of the parameter.
            rng: a generator, whose numbers are the same on every backend, or streams by name; None takes the default
                stream, which `ops.random.seed` restarts.
            dtype: the floating dtype; None is the default one.

        Raises:
            DTypeError: if the dtype is not floating.
            ShapeError: if the initializer does not fit the shape.
        """
        axis_lengths = (shape,) if isinstance(shape, int) else tuple(shape)
        result_dtype = ops.default_float() if dtype is None else as_dtype(dtype)
        if not result_dtype.is_floating:
            raise DTypeError(f"{self!r} makes parameters, which are floating, not {result_dtype.name}")
        return self._draw(axis_lengths, rngs.generator(rng), result_dtype)

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Initializer):
            return NotImplemented
        return (self._factory, self._options) == (other._factory, other._options)

    def __hash__(self) -> int:
        return hash((self._factory, *self._options.values()))

    def __reduce__(self) -> tuple[Any, ...]:
        return self._factory, tuple(self._options.values())

    def __repr__(self) -> str:
        options_text = ", ".join(f"{name}={value!r}" for name, value in self._options.items())
        return f"{self._factory.__name__}({options_text})"


def apply(parameter: C, initializer: Callable[..., Tensor], *, rng: "rngs.Generator | rngs.Rngs | None" = None) -> C:
    """Assigns a new value from an initializer to an existing parameter, and returns the parameter.

    Args:
        parameter: a `Parameter` or `Buffer`.
        initializer: called with the shape, `rng=` and `dtype=`.
        rng: a generator, whose numbers are the same on every backend, or streams by name; None takes the default
            stream.

    Raises:
        ArgumentTypeError: if the first argument is no parameter, or the second is not callable.
        ShapeError: if the initializer does not fit the shape of the parameter.

    Example:
        >>> from emberharmony import nn
        >>> layer = nn.Linear(2, 1)
        >>> nn.init.apply(layer.weight, nn.init.ones()).value.tolist()
        [[1.0, 1.0]]
    """
    if not isinstance(parameter, Cell):
        raise ArgumentTypeError(f"init.apply() takes a Parameter or Buffer, not {brief(parameter)}")
    if not callable(initializer):
        raise ArgumentTypeError(f"init.apply() takes an initializer such as init.normal(), not {brief(initializer)}")
    old_value = parameter.value
    shape = tuple(old_value.shape)
    tensor = initializer(shape, rng=rng, dtype=ops.dtype(old_value))
    if tuple(tensor.shape) != shape:
        raise ShapeError(f"init.apply(): the initializer made shape {tuple(tensor.shape)}, expected {shape}")
    parameter.value = ops.to_device(tensor, ops.get_device(old_value))
    return parameter


def fans(shape: Shape) -> tuple[int, int]:
    """Returns how many inputs each output of a weight has, and how many outputs each input.

    Args:
        shape: (out, in) or (out, in, ...), in which the other axes are those of a kernel.

    Raises:
        ShapeError: if there are fewer than two axes.

    Example:
        >>> from emberharmony import nn
        >>> nn.init.fans((16, 3, 5, 5))
        (75, 400)
    """
    axis_lengths = (shape,) if isinstance(shape, int) else tuple(shape)
    if len(axis_lengths) < 2:
        raise ShapeError(f"a weight of shape {axis_lengths} has no fans, expected (out, in, ...)")
    kernel_size = math.prod(axis_lengths[2:])
    return axis_lengths[1] * kernel_size, axis_lengths[0] * kernel_size


def calculate_gain(nonlinearity: str, param: float | None = None) -> float:
    """Returns the factor of the standard deviation that is recommended before a nonlinearity.

    Args:
        nonlinearity: "linear", "conv1d" and so on, "sigmoid", "tanh", "relu", "leaky_relu" or "selu".
        param: the slope of "leaky_relu" below 0; None is 0.01.

    Raises:
        ArgumentError: if the nonlinearity is unknown.

    Example:
        >>> from emberharmony import nn
        >>> nn.init.calculate_gain("leaky_relu", 1.0)
        1.0

    Source: `torch.nn.init.calculate_gain`.
    """
    slope = 0.01 if param is None else param
    gain_by_name = {
        "tanh": 5.0 / 3.0,
        "relu": math.sqrt(2.0),
        "leaky_relu": math.sqrt(2.0 / (1.0 + slope**2)),
        "selu": 0.75,
    }
    choice_option("nonlinearity", nonlinearity, (*_LINEAR, "sigmoid", *gain_by_name))
    return gain_by_name.get(nonlinearity, 1.0)


def uniform(a: float = 0.0, b: float = 1.0) -> Initializer:
    """Returns an initializer of uniform numbers in [a, b).

    Args:
        a: the lower bound, which can be drawn.
        b: the upper bound, which cannot be drawn.

    Raises:
        ArgumentError: if `a` exceeds `b`.
    """
    _require_option("uniform", a <= b, f"a={a} exceeds b={b}")
    return Initializer(uniform, {"a": a, "b": b}, lambda *given: _uniform_tensor(a, b, *given))


def normal(mean: float = 0.0, std: float = 1.0) -> Initializer:
    """Returns an initializer of normal numbers with a mean and a standard deviation.

    Args:
        mean: the mean of the numbers.
        std: the standard deviation of the numbers, at least 0.

    Raises:
        ArgumentError: if the standard deviation is negative.
    """
    _require_option("normal", std >= 0, f"std={std} is negative")
    return Initializer(normal, {"mean": mean, "std": std}, lambda *given: _normal_tensor(mean, std, *given))


def trunc_normal(mean: float = 0.0, std: float = 1.0, a: float = -2.0, b: float = 2.0) -> Initializer:
    """Returns an initializer of normal numbers that are drawn again outside [a, b].

    Args:
        mean: the mean of the numbers before they are cut off.
        std: their standard deviation before they are cut off.
        a: the smallest number, which is not in units of `std`.
        b: the largest number, which is not in units of `std`.

    Raises:
        ArgumentError: if the standard deviation is not positive, or `a` is not less than `b`.
    """
    _require_option("trunc_normal", std > 0, f"std={std}, expected a number > 0")
    _require_option("trunc_normal", a < b, f"a={a} is not less than b={b}")
    options = {"mean": mean, "std": std, "a": a, "b": b}

    def draw(shape: tuple[int, ...], rng: Any, dtype: DTypeLike) -> Tensor:
        return _tensor_of_values(initial.truncated_normal(rng, shape, mean, std, a, b), dtype)

    return Initializer(trunc_normal, options, draw)


def constant(value: float) -> Initializer:
    """Returns an initializer of one number.

    Args:
        value: the number of all elements.
    """
    return Initializer(constant, {"value": value}, lambda shape, rng, dtype: ops.full(shape, value, dtype))


def zeros() -> Initializer:
    """Returns an initializer of zeros."""
    return Initializer(zeros, {}, lambda shape, rng, dtype: ops.zeros(shape, dtype))


def ones() -> Initializer:
    """Returns an initializer of ones."""
    return Initializer(ones, {}, lambda shape, rng, dtype: ops.ones(shape, dtype))


def eye() -> Initializer:
    """Returns an initializer of matrices with ones on the diagonal and zeros elsewhere."""

    def identity_matrix(shape: tuple[int, ...], rng: Any, dtype: DTypeLike) -> Tensor:
        _require_matrix("eye", shape)
        return ops.eye(shape[0], shape[1], dtype=dtype)

    return Initializer(eye, {}, identity_matrix)


def dirac(groups: int = 1) -> Initializer:
    """Returns an initializer of kernels of convolutions, (out, in, ...), that pass their channels through unchanged.

    Args:
        groups: how many groups the channels of the convolution are in; each group copies its own.
    """

    def dirac_kernel(shape: tuple[int, ...], rng: Any, dtype: DTypeLike) -> Tensor:
        if len(shape) not in (3, 4, 5) or shape[0] % groups:
            raise ShapeError(
                f"dirac() makes kernels (out, in, ...) of one to three axes, with out a multiple of groups={groups}, "
                f"not shape {shape}"
            )
        return _tensor_of_values(initial.dirac_kernel(shape, groups), dtype)

    return Initializer(dirac, {"groups": groups}, dirac_kernel)


def xavier_uniform(gain: float = 1.0) -> Initializer:
    """Returns an initializer of uniform numbers within `gain * sqrt(6 / (fan_in + fan_out))`.

    Args:
        gain: a factor, which `calculate_gain` gives for a nonlinearity.

    Source: Glorot and Bengio, "Understanding the difficulty of training deep feedforward neural networks", 2010.
    """
    return _initializer_by_fans(
        xavier_uniform, {"gain": gain}, _uniform_with_std, lambda inputs, outputs: gain * _glorot_std(inputs, outputs)
    )


def xavier_normal(gain: float = 1.0) -> Initializer:
    """Returns an initializer of normal numbers with the standard deviation `gain * sqrt(2 / (fan_in + fan_out))`.

    Args:
        gain: a factor, which `calculate_gain` gives for a nonlinearity.

    Source: Glorot and Bengio, "Understanding the difficulty of training deep feedforward neural networks", 2010.
    """
    return _initializer_by_fans(
        xavier_normal, {"gain": gain}, _normal_with_std, lambda inputs, outputs: gain * _glorot_std(inputs, outputs)
    )


def kaiming_uniform(a: float = 0.0, mode: str = "fan_in", nonlinearity: str = "leaky_relu") -> Initializer:
    """Returns an initializer of uniform numbers within `sqrt(3) * gain / sqrt(fan)`.

    Args:
        a: the slope of a leaky ReLU below 0, for the gain.
        mode: "fan_in" keeps the variance of activations, "fan_out" that of gradients.
        nonlinearity: what follows the layer; `calculate_gain` has the names.

    Raises:
        ArgumentError: if the mode or the nonlinearity is unknown.

    Source: He et al., "Delving deep into rectifiers", 2015.
    """
    return _kaiming_initializer(kaiming_uniform, a, mode, nonlinearity, _uniform_with_std)


def kaiming_normal(a: float = 0.0, mode: str = "fan_in", nonlinearity: str = "leaky_relu") -> Initializer:
    """Returns an initializer of normal numbers of standard deviation `gain / sqrt(fan)`; see `kaiming_uniform`.

    Args:
        a: the slope of a leaky ReLU below 0, for the gain.
        mode: "fan_in" keeps the variance of activations, "fan_out" that of gradients.
        nonlinearity: what follows the layer; `calculate_gain` has the names.
    """
    return _kaiming_initializer(kaiming_normal, a, mode, nonlinearity, _normal_with_std)


def lecun_uniform() -> Initializer:
    """Returns an initializer of uniform numbers within `sqrt(3 / fan_in)`.

    Source: LeCun et al., "Efficient BackProp", 1998.
    """
    return _initializer_by_fans(
        lecun_uniform, {}, _uniform_with_std, lambda inputs, outputs: 1.0 / math.sqrt(max(inputs, 1))
    )


def lecun_normal() -> Initializer:
    """Returns an initializer of normal numbers with the standard deviation `1 / sqrt(fan_in)`.

    The numbers are not cut off, as "Self-normalizing neural networks" (Klambauer et al., 2017) has it for `selu`; Keras
    draws those beyond two standard deviations again.

    Source: LeCun et al., "Efficient BackProp", 1998.
    """
    return _initializer_by_fans(
        lecun_normal, {}, _normal_with_std, lambda inputs, outputs: 1.0 / math.sqrt(max(inputs, 1))
    )


def orthogonal(gain: float = 1.0) -> Initializer:
    """Returns an initializer of matrices with orthonormal rows or columns, times a gain.

    A tensor with more axes is a matrix (first axis, all others).

    Args:
        gain: a factor, which `calculate_gain` gives for a nonlinearity.

    Source: Saxe et al., "Exact solutions to the nonlinear dynamics of learning in deep linear neural networks", 2013.
    """

    def draw(shape: tuple[int, ...], rng: Any, dtype: DTypeLike) -> Tensor:
        if len(shape) < 2:
            raise ShapeError(f"orthogonal() makes tensors of two or more axes, not shape {shape}")
        matrix = initial.orthogonal_matrix(rng, shape[0], math.prod(shape[1:]), gain)
        return _tensor_of_values(matrix.reshape(shape), dtype)

    return Initializer(orthogonal, {"gain": gain}, draw)


def sparse(sparsity: float, std: float = 0.01) -> Initializer:
    """Returns an initializer of matrices of normal numbers in which a share of each column is 0.

    Args:
        sparsity: the share, from 0 to 1; the number of zeros is rounded up.
        std: the standard deviation of the other numbers.

    Raises:
        ArgumentError: if the share is out of range.

    Source: Martens, "Deep learning via Hessian-free optimization", 2010.
    """
    _require_option("sparse", 0 <= sparsity <= 1, f"sparsity={sparsity}, expected a number from 0 to 1")

    def draw(shape: tuple[int, ...], rng: Any, dtype: DTypeLike) -> Tensor:
        _require_matrix("sparse", shape)
        return _tensor_of_values(initial.sparse_matrix(rng, shape[0], shape[1], sparsity, std), dtype)

    return Initializer(sparse, {"sparsity": sparsity, "std": std}, draw)


glorot_uniform, glorot_normal = xavier_uniform, xavier_normal
he_uniform, he_normal = kaiming_uniform, kaiming_normal


def _tensor_of_values(values: HostArray, dtype: DTypeLike) -> Tensor:
    """Returns float64 values of the host as a tensor of a dtype; 16-bit dtypes are rounded by way of float32.

    Backends differ in whether they round float64 to half precision in one step or in two.
    """
    return ops.convert_to_tensor(values if ops.float64 == dtype else values.astype("float32"), dtype)


def _uniform_tensor(low: float, high: float, shape: tuple[int, ...], rng: Any, dtype: DTypeLike) -> Tensor:
    return ops.random.uniform(shape, low, high, dtype, generator=rng)


def _normal_tensor(mean: float, std: float, shape: tuple[int, ...], rng: Any, dtype: DTypeLike) -> Tensor:
    return ops.random.normal(shape, mean, std, dtype, generator=rng)


def _uniform_with_std(std: float, *argument: Any) -> Tensor:
    """Returns uniform random numbers of mean 0 with the given standard deviation."""
    bound = math.sqrt(3.0) * std
    return _uniform_tensor(-bound, bound, *argument)


def _normal_with_std(std: float, *argument: Any) -> Tensor:
    return _normal_tensor(0.0, std, *argument)


def _glorot_std(inputs: int, outputs: int) -> float:
    return math.sqrt(2.0 / max(inputs + outputs, 1))


def _initializer_by_fans(
    factory: Callable[..., Initializer],
    options: Mapping[str, Any],
    draw: Callable[..., Tensor],
    std: Callable[[int, int], float],
) -> Initializer:
    """Returns an initializer whose standard deviation follows from the fans of the shape."""
    return Initializer(factory, options, lambda shape, rng, dtype: draw(std(*fans(shape)), shape, rng, dtype))


def _kaiming_initializer(
    factory: Callable[..., Initializer], a: float, mode: str, nonlinearity: str, draw: Callable[..., Tensor]
) -> Initializer:
    choice_option("mode", mode, ("fan_in", "fan_out"))
    gain = calculate_gain(nonlinearity, a)

    def std_of_fans(inputs: int, outputs: int) -> float:
        return gain / math.sqrt(max(inputs if mode == "fan_in" else outputs, 1))

    return _initializer_by_fans(factory, {"a": a, "mode": mode, "nonlinearity": nonlinearity}, draw, std_of_fans)


def _require_option(name: str, holds: bool, message: str) -> None:
    """Raises an error with the given message if an option of an initializer is not allowed.

    Raises:
        ArgumentError: if the condition does not hold.
    """
    if not holds:
        raise ArgumentError(f"{name}(): {message}")


def _require_matrix(name: str, shape: tuple[int, ...]) -> None:
    """Checks that the shape for an initializer has two axes.

    Raises:
        ShapeError: if it is not.
    """
    if len(shape) != 2:
        raise ShapeError(f"{name}() makes matrices, not shape {shape}")


if not TYPE_CHECKING:
    __getattr__, __dir__ = public_getattr_and_dir(__name__)
