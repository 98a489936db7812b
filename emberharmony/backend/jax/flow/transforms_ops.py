"""Transforms of functions, on JAX: its own, which nest with each other and with those that the user calls directly."""

import contextlib
from collections.abc import Callable, Sequence
from typing import Any, cast

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax

from emberharmony.backend.base import Backend
from emberharmony.backend.jax.dtypes import is_complex, kind_of
from emberharmony.backend.jax.flow.compilation import JAXFunction
from emberharmony.backend.jax.flow.host_programs import HostProgram
from emberharmony.backend.jax.tracing import READS, Tracer, is_traced
from emberharmony.backend.shared.compilation import OnTapeError, untaped_outputs
from emberharmony.core.errors import TracedTensorError, has_message
from emberharmony.core.state.draws import HostDrawError, WithoutDraws
from emberharmony.core.tracing import CLOSED_OVER, TensorProxy
from emberharmony.transforms.program import Program

TensorFunction = Callable[..., Sequence[jax.Array]]
Tensors = Sequence[jax.Array]
_INEXACT = ("float", "complex")
_NO_FORWARD = "forward-mode|custom_vjp|Differentiation rule .* not implemented|jvp"


def conjugate(x: jax.Array) -> jax.Array:
    """Returns the conjugate of a complex tensor, others unchanged.

    A gradient of JAX is the transpose of the derivative times the cotangent; those of the other backends, which our
    ops return, are the conjugate transpose.
    """
    return jnp.conj(x) if is_complex(x) else x


class JAXTransformsOps:
    """Holds the ops of `ops/flow/transforms.py` and the methods that the other transforms are made of."""

    stop_gradient = staticmethod(lax.stop_gradient)

    constants: Any
    loop_over_slices: Any
    transpose_pullback: Any

    @staticmethod
    def is_traced(x: Any) -> bool:
        return isinstance(x, TensorProxy) or (isinstance(x, Tracer) and is_traced(x))

    @staticmethod
    def may_outlive_transforms(x: Any) -> bool:
        return not isinstance(x, (TensorProxy, Tracer))

    def pullback(self, fn: TensorFunction, primals: Tensors, first: bool = False) -> tuple[list[jax.Array], Any]:
        if _are_on_tape(primals):
            outputs_and_pull: tuple[list[jax.Array], Any] = Backend.pullback(cast(Backend, self), fn, primals)
            return outputs_and_pull
        inexact_positions = [i for i, x in enumerate(primals) if kind_of(x) in _INEXACT]
        output_positions: list[int] = []

        def split_outputs(*leaves: jax.Array) -> tuple[Any, Any]:
            new_primals = list(primals)
            for i, leaf in zip(inexact_positions, leaves, strict=True):
                new_primals[i] = leaf
            outputs = untaped_outputs(fn(*new_primals))
            # JAX calls users' gradient functions also for outputs with zero cotangents, so leave those outputs out.
            output_positions[:] = [i for i, y in enumerate(outputs[:1] if first else outputs) if kind_of(y) in _INEXACT]
            return tuple(outputs[i] for i in output_positions), tuple(outputs)

        inexact_outputs, pull, outputs = jax.vjp(split_outputs, *(primals[i] for i in inexact_positions), has_aux=True)
        outputs = list(outputs)
        for i, output in zip(output_positions, inexact_outputs, strict=True):
            outputs[i] = output

        def pull_cotangents(cotangents: Sequence[jax.Array | None]) -> list[jax.Array]:
            inexact_cotangents = [cotangents[i] for i in output_positions]
            outputs_and_cotangents = zip(inexact_outputs, inexact_cotangents, strict=True)
            gradients = iter(
                pull(
                    tuple(
                        jnp.zeros_like(y) if ct is None else conjugate(_cast_cotangent(ct, y))
                        for y, ct in outputs_and_cotangents
                    )
                )
            )
            return [
                conjugate(next(gradients)) if i in inexact_positions else jnp.zeros_like(x)
                for i, x in enumerate(primals)
            ]

        return outputs, pull_cotangents

    def gradients(
        self, fn: TensorFunction, primals: Tensors, constant: bool = False
    ) -> tuple[list[jax.Array], list[jax.Array]]:
        outputs, pull = self.pullback(fn, primals, True)
        gradients = pull([jnp.ones_like(outputs[0]), *[None] * (len(outputs) - 1)])
        return (self.constants(outputs), self.constants(gradients)) if constant else (outputs, gradients)

    def linearize(self, fn: TensorFunction, primals: Tensors) -> Any:
        if _are_on_tape(primals):
            return self.transpose_pullback(fn, primals)

        def push_tangents(tangents: Tensors) -> tuple[list[jax.Array], list[jax.Array]]:
            jax_tangents = tuple(
                t if kind_of(x) in _INEXACT else np.zeros(x.shape, jax.dtypes.float0)
                for x, t in zip(primals, tangents, strict=True)
            )
            try:
                outputs, pushed_tangents = jax.jvp(
                    lambda *leaves: tuple(untaped_outputs(fn(*leaves))), tuple(primals), jax_tangents
                )
            except Exception as error:
                if not has_message(error, (TypeError, NotImplementedError), _NO_FORWARD):
                    raise
                outputs_and_tangents: tuple[list[jax.Array], list[jax.Array]] = self.transpose_pullback(fn, primals)(
                    tangents
                )
                return outputs_and_tangents
            return list(outputs), [
                t if kind_of(y) in _INEXACT else jnp.zeros_like(y)
                for y, t in zip(outputs, pushed_tangents, strict=True)
            ]

        return push_tangents

    def map_slices(
        self, fn: TensorFunction, tensors: Tensors, axes: Sequence[int], same: bool = False
    ) -> list[jax.Array]:
        if any(isinstance(tensor, TensorProxy) for tensor in tensors):
            return self.loop_over_slices(fn, tensors, axes)
        mapped_function = jax.vmap(lambda *slices: tuple(untaped_outputs(fn(*slices))), in_axes=tuple(axes))
        try:
            with contextlib.nullcontext() if same else WithoutDraws():
                return list(mapped_function(*tensors))
        except Exception as error:
            if not self.cannot_transform(error):
                raise
        return self.loop_over_slices(fn, tensors, axes)

    @staticmethod
    def cannot_transform(error: BaseException | None) -> bool:
        return has_message(error, (*READS, HostDrawError, OnTapeError)) or has_message(
            error, (NotImplementedError,), "[Bb]atching rule"
        )

    def custom_vjp(self, forward: TensorFunction, backward: Callable[..., Any], primals: Tensors) -> list[jax.Array]:
        if any(isinstance(primal, TensorProxy) for primal in primals):
            return Backend.custom_vjp(cast(Backend, self), forward, backward, primals)
        outputs = list(forward(*map(lax.stop_gradient, primals)))
        if any(isinstance(output, TensorProxy) or is_traced(output) for output in outputs):
            raise TracedTensorError(CLOSED_OVER)
        return _link_custom_gradient(backward, list(primals), outputs) if outputs and len(primals) else outputs

    def compile_function(self, fn: Callable[..., Any]) -> Callable[..., Any]:
        return JAXFunction(fn, self.cannot_transform)

    def compile_program(self, program: Program) -> Callable[[Sequence[np.ndarray]], list[np.ndarray]]:
        """Returns the function of NumPy arrays that runs a program of ops, compiled.

        Args:
            program: its inputs are arrays, whose shapes and dtypes never change.

        Raises:
            UnsupportedOpError: if an op refuses wrong values, which a compiled program of JAX does not look at.
        """
        return HostProgram(program, cast(Backend, self).bound)


def _are_on_tape(tensors: Tensors) -> bool:
    """Returns whether the tape differentiates instead of JAX, because a tensor is recorded on a tape."""
    return any(isinstance(tensor, TensorProxy) for tensor in tensors)


def _cast_cotangent(cotangent: jax.Array, output: jax.Array) -> jax.Array:
    return cotangent if cotangent.dtype == output.dtype else cotangent.astype(output.dtype)


def _link_custom_gradient(
    backward: Callable[..., Any], primals: list[jax.Array], outputs: list[jax.Array]
) -> list[jax.Array]:
    """Returns the outputs of a function such that JAX differentiates them by a user-defined gradient.

    Args:
        backward: called as `backward(primals, cotangents)`, returns the gradients of the primals.
        primals: the primals.
        outputs: the outputs, which are constants to all transforms that differentiate.
    """
    output_identity: Any = jax.custom_vjp(lambda primals, outputs: outputs)

    def push_tangents(primals: list[jax.Array], outputs: list[jax.Array]) -> Any:
        # Where derivatives are nested, the outer ones go through the outputs as well.
        return output_identity(primals, outputs), (primals, outputs)

    def pull_cotangents(residuals: Any, cotangents: list[Any]) -> Any:
        primals, outputs = residuals
        backward_cotangents = [
            conjugate(ct) if kind_of(y) in _INEXACT else jnp.zeros_like(y)
            for y, ct in zip(outputs, cotangents, strict=True)
        ]
        user_gradients = backward(primals, backward_cotangents)
        gradients = [
            conjugate(_cast_cotangent(g, x)) if kind_of(x) in _INEXACT else None
            for g, x in zip(user_gradients, primals, strict=True)
        ]
        return gradients, None

    output_identity.defvjp(push_tangents, pull_cotangents)
    return list(output_identity(primals, outputs))
