"""What transforms ask a backend, beside ops: to differentiate, to map and to compile a function.

Here they are computed by recording ops, or by calling the function more often. Libraries that can do it themselves
override this.
"""

from collections.abc import Callable, Sequence
from types import MethodType
from typing import TYPE_CHECKING, Any, ClassVar

from emberharmony.core.deferred import Deferred

if TYPE_CHECKING:
    from emberharmony.transforms import backward
else:
    backward = Deferred("emberharmony.transforms.backward")

TensorFunction = Callable[..., Sequence[Any]]
Pullback = Callable[[Sequence[Any]], list[Any]]
Pushforward = Callable[[Sequence[Any]], tuple[list[Any], list[Any]]]


class _ByTape:
    """A descriptor for a function of `transforms.backward` as a method; its first use imports the function."""

    def __init__(self, name: str) -> None:
        self._name = name

    def __get__(self, backend: Any, kind: type[Any]) -> Any:
        function = getattr(backward, self._name)
        setattr(Transforms, self._name, function)
        return function if backend is None else MethodType(function, backend)


class Transforms:
    """The part of a backend that differentiates, maps and compiles functions."""

    bound: Any
    kind_of: Callable[[Any], str]
    may_all_outlive_transforms: Callable[[Sequence[Any]], bool]
    is_twin: ClassVar[bool]
    run_uncompiled: Any = None
    """Calls a function that a compiler does not trace, because it would have to compile it in each call.

    None if no compiler traces the code around it.
    """

    def value_and_slope(self, op: str, arguments: Sequence[Any]) -> tuple[Any, Any] | None:
        """Returns an op's scalar result and its derivative by the first argument, computed together; None if it cannot.

        Args:
            op: an op whose rule is in `SLOPES` of `emberharmony.transforms.rule_registry`.
            arguments: native tensors and options in the declared order.

        Returns:
            None if the op and its rule have to be called, as for all arguments that are wrong.
        """
        return None

    if TYPE_CHECKING:

        def pullback(self, fn: TensorFunction, primals: Sequence[Any]) -> tuple[list[Any], Pullback]:
            """Returns the list of tensors `fn(*primals)`, and the pullback: the function from cotangents to gradients.

            The pullback takes one cotangent per output, of its shape and dtype, or None for zero, and returns one
            gradient per primal. It may be called several times; where the library keeps no graph (MLX), each call runs
            `fn` again. Calls may nest, for derivatives of higher order.
            """

        def gradients(
            self, fn: TensorFunction, primals: Sequence[Any], constant: bool = False
        ) -> tuple[list[Any], list[Any]]:
            """Returns the list of tensors `fn(*primals)`, and the gradients of the first one, a scalar; runs `fn` once.

            If `constant` is true, all of it is constant, so that a backend need not keep the graph.
            """
    else:
        pullback, gradients = _ByTape("pullback"), _ByTape("gradients")

    def constants(self, tensors: Sequence[Any]) -> list[Any]:
        """Returns tensors as constants, which nothing differentiates."""
        if not self.is_twin and self.may_all_outlive_transforms(tensors):
            return list(tensors)
        return list(map(self.bound.stop_gradient, tensors))

    def pushforward(
        self, fn: TensorFunction, primals: Sequence[Any], tangents: Sequence[Any]
    ) -> tuple[list[Any], list[Any]]:
        """Returns the list of tensors `fn(*primals)`, and their tangents; ignore the tangents of integer outputs."""
        return self.linearize(fn, primals)(tangents)

    def linearize(self, fn: TensorFunction, primals: Sequence[Any]) -> Pushforward:
        """Returns `pushforward` at fixed primals, as a function of the tangents; each call may run `fn` again."""
        return self.transpose_pullback(fn, primals)

    def transpose_pullback(self, fn: TensorFunction, primals: Sequence[Any]) -> Pushforward:
        """Returns a function from tangents to outputs and tangents, like `linearize`, by the pullback of the pullback.

        Source: Townsend, "A new trick for calculating Jacobian vector products" (2017).
        """
        outputs, pull = self.pullback(fn, primals)
        zero_tangents = [self.bound.zeros_like(output) for output in outputs]
        inexact_indices = [i for i, output in enumerate(outputs) if self.kind_of(output) in ("float", "complex")]

        def pull_inexact(*cotangents: Any) -> list[Any]:
            all_cotangents: list[Any] = [None] * len(outputs)
            for i, cotangent in zip(inexact_indices, cotangents, strict=True):
                all_cotangents[i] = cotangent
            return pull(all_cotangents)

        _, transpose = self.pullback(pull_inexact, [zero_tangents[i] for i in inexact_indices])

        def push_tangents(tangents: Sequence[Any]) -> tuple[list[Any], list[Any]]:
            pushed_tangents = list(zero_tangents)
            for i, tangent in zip(inexact_indices, transpose(list(tangents)), strict=True):
                pushed_tangents[i] = tangent
            return outputs, pushed_tangents

        return push_tangents

    def map_slices(
        self, fn: TensorFunction, tensors: Sequence[Any], axes: Sequence[int], same: bool = False
    ) -> list[Any]:
        """Applies `fn` to each slice of `tensors` along `axes`, and returns its list of results stacked along axis 0.

        Args:
            fn: takes one slice of each tensor and returns a list of tensors.
            tensors: the tensors to slice.
            axes: the axis to slice, one per tensor.
            same: whether `fn` gives all slices the same random draws, also if it is called once per slice; by default
                each slice has draws of its own.
        """
        return self.loop_over_slices(fn, tensors, axes)

    def loop_over_slices(self, fn: TensorFunction, tensors: Sequence[Any], axes: Sequence[int]) -> list[Any]:
        """Returns the same as `map_slices`, but calls `fn` once per slice, for what does not vectorize."""
        take, stack = self.bound.take, self.bound.stack
        result_rows = [
            fn(*(take(tensor, i, axis=axis) for tensor, axis in zip(tensors, axes, strict=True)))
            for i in range(tensors[0].shape[axes[0]])
        ]
        return [stack(list(column)) for column in zip(*result_rows, strict=True)]

    def cannot_transform(self, error: BaseException | None) -> bool:
        """Returns whether an error, or one of its causes, says that the library cannot vectorize or compile a function.

        The function may use an op without a rule, or read a value that is not computed yet.
        """
        return False

    takes_engine = False
    """Whether `compile_function` takes the name of an engine, which only the NumPy backend does."""

    def compile_function(self, fn: Callable[..., Any]) -> Callable[..., Any]:
        """Returns `fn` compiled by the library; here `fn` itself, for libraries without a compiler.

        It is called with the kind of ops that is active now, such as those of an `autocast` block.
        """
        return fn
