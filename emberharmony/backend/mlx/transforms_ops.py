"""Derivatives, on MLX, which keeps no graph: what is differentiated again is traced again."""

import contextlib
from collections.abc import Callable, Sequence
from typing import Any

import mlx.core as mx

from emberharmony.backend.diagnosis import says
from emberharmony.backend.mlx.compilation import Compiled
from emberharmony.backend.mlx.derivatives import Transforming, to_front
from emberharmony.core.draws import Draws, HostDrawError, WithoutDraws

Flat = Callable[..., Sequence[mx.array]]
Tensors = Sequence[mx.array]
_NO_RULE = r"not (yet )?implemented|cannot vmap|during function transformations|without a primitive|\[addmm\]"


class _NoOutputsError(Exception):
    """Tells that a function with derivatives of its own returned no tensor."""


class MLXTransformsOps:
    """Holds the ops of `ops/transforms.py` and what the others are made of."""

    stop_gradient = staticmethod(mx.stop_gradient)

    looped: Any
    transposed: Any

    @staticmethod
    def pullback(fn: Flat, primals: Tensors) -> tuple[list[mx.array], Any]:
        draws = Draws()
        with draws.recorded():
            outputs = list(fn(*primals))

        def pull(cotangents: Sequence[mx.array | None]) -> list[mx.array]:
            given = {i: cotangent for i, cotangent in enumerate(cotangents) if cotangent is not None}
            with draws.replayed(), Transforming():
                _, gradients = mx.vjp(_kept(fn, list(given)), list(primals), list(given.values()))
            return list(gradients)

        return outputs, pull

    @staticmethod
    def gradients(fn: Flat, primals: Tensors) -> tuple[list[mx.array], list[mx.array]]:
        with Transforming():
            outputs, gradients = mx.value_and_grad(lambda leaves: tuple(fn(*leaves)))(list(primals))
        return list(outputs), list(gradients)

    def linearized(self, fn: Flat, primals: Tensors) -> Any:
        def push(tangents: Tensors) -> tuple[list[mx.array], list[mx.array]]:
            try:
                with Transforming():
                    outputs, pushed = mx.jvp(lambda *leaves: list(fn(*leaves)), list(primals), list(tangents))
            except Exception as error:
                if not self.cannot_transform(error):
                    raise
                found: tuple[list[mx.array], list[mx.array]] = self.transposed(fn, primals)(tangents)
                return found
            return list(outputs), list(pushed)

        return push

    def batched(self, fn: Flat, tensors: Tensors, axes: Sequence[int], same: bool = False) -> list[mx.array]:
        function = mx.vmap(lambda *slices: list(fn(*slices)), in_axes=tuple(axes))
        try:
            with Transforming(), contextlib.nullcontext() if same else WithoutDraws():
                return list(function(*tensors))
        except Exception as error:
            if not self.cannot_transform(error):
                raise
        return self.looped(fn, tensors, axes)

    @staticmethod
    def cannot_transform(error: BaseException | None) -> bool:
        return says(error, (ValueError, RuntimeError), _NO_RULE) or says(error, (HostDrawError,))

    def custom_vjp(self, forward: Flat, backward: Callable[..., Any], primals: Tensors) -> list[mx.array]:
        @mx.custom_function
        def function(leaves: list[mx.array]) -> list[mx.array]:
            # Without it MLX would look for the derivatives of what `forward` does, and refuse where one lacks.
            outputs = list(forward(*(mx.stop_gradient(leaf) for leaf in leaves)))
            if not outputs:
                raise _NoOutputsError
            return outputs

        @function.vjp
        def pull(leaves: list[mx.array], cotangents: list[mx.array], outputs: list[mx.array]) -> list[mx.array]:
            # Without it what `backward` computes again might be computed at once, and kept.
            return list(backward(mx.depends(leaves, outputs), cotangents))

        @function.jvp
        def push(leaves: list[mx.array], tangents: list[mx.array]) -> list[mx.array]:
            zeros = [mx.zeros_like(output) for output in forward(*leaves)]
            _, pushed = mx.vjp(lambda *cts: list(backward(leaves, cts)), zeros, tangents)
            return list(pushed)

        @function.vmap
        def batch(leaves: list[mx.array], axes: list[int | None]) -> tuple[list[mx.array], list[int]]:
            outputs = self.custom_vjp(
                lambda *rows: self.batched(forward, rows, [0] * len(rows)),
                lambda rows, cts: self.batched(
                    lambda *row: backward(row[: len(rows)], row[len(rows) :]), [*rows, *cts], [0] * len(rows + cts)
                ),
                to_front(leaves, axes),
            )
            return outputs, [0] * len(outputs)

        try:
            outputs: Any = function(list(primals))
        except _NoOutputsError:  # MLX 0.32 reads the first output, and dies if there is none
            return []
        return list(outputs)

    def compiled(self, fn: Callable[..., Any]) -> Callable[..., Any]:
        return Compiled(fn, self.cannot_transform)


def _kept(fn: Flat, wanted: Sequence[int]) -> Flat:
    """Returns `fn` with some of its outputs only, none of them the result of `stop_gradient` itself.

    MLX counts such outputs out and would give their cotangents to the next.
    """

    def kept(*leaves: mx.array) -> list[mx.array]:
        outputs = fn(*leaves)
        return [mx.contiguous(outputs[i]) for i in wanted]

    return kept
