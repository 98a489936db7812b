"""The small GPT trains in bfloat16 and float16 by `ops.autocast`, nearly as it does in float32."""

import functools
from typing import Any

import pytest

from emberharmony import ops, optim
from emberharmony.data import sonnets
from emberharmony.demo.programs import load_example

DTYPES = ("bfloat16", "float16")


def trained(dtype: str, steps: int, size: int, seed: int = 0, **sizes: Any) -> list[float]:
    """Returns the losses of a training of `examples/training/gpt.py` on the active backend.

    Args:
        dtype: "float32", or the dtype of `ops.autocast`; for float16 the loss is scaled.
        steps: how many steps are made; one whose gradients overflow changes nothing.
        size: how many pieces of the text a batch has.
        seed: of the initial weights, the dropout masks and the order of the batches.
        sizes: options of the model.
    """
    program = load_example("training/gpt")
    text = program.Text(sonnets())
    model = program.GPT(len(text.alphabet), seed=seed, **sizes)
    optimizer, scaler = program.adamw(model, steps), optim.LossScaler()
    batches = text.batches(size, seed=seed + 1).forever()

    def loss(numbers: Any, later: Any) -> Any:
        if dtype == "float32":
            found = program.loss(model, numbers, later)
        else:
            with ops.autocast(dtype):
                assert ops.dtype(model.head(ops.zeros((1, model.head.in_features)))) == dtype
                found = program.loss(model, numbers, later)
        assert ops.dtype(found) == "float32"
        return scaler.scaled(found) if dtype == "float16" else found

    losses = []
    for _ in range(steps):
        found = ops.backward(functools.partial(loss, *next(batches)), model)
        losses.append(float(found) / (scaler.scale if dtype == "float16" else 1.0))
        if dtype != "float16" or scaler.unscale(model):
            optimizer.step()
    assert {ops.dtype(parameter.value).name for parameter in model.parameters()} == {"float32"}
    return losses


@functools.cache
def in_float32(backend: str, **options: Any) -> list[float]:
    """Returns the losses of a training in float32 on a backend, which must be the active one."""
    return trained("float32", **options)


@pytest.mark.parametrize("dtype", DTYPES)
def test_a_few_steps_in_half_precision_reduce_the_loss_as_in_float32(backend: str, dtype: str) -> None:
    _require(backend, dtype, steps=8, size=4, width=16, heads=2, layers=1)


@pytest.mark.slow
@pytest.mark.parametrize("dtype", DTYPES)
def test_a_training_in_half_precision_ends_at_the_loss_of_float32(backend: str, dtype: str) -> None:
    losses = _require(backend, dtype, steps=150, size=8)
    assert losses[-1] < 2.7


def _require(backend: str, dtype: str, **options: Any) -> list[float]:
    """Checks that the losses are within 2 % of those in float32, and returns them."""
    if dtype == "bfloat16" and backend == "numpy":
        pytest.importorskip("ml_dtypes")
    losses, wide = trained(dtype, **options), in_float32(backend, **options)
    assert losses != wide
    assert all(abs(found - wanted) <= 0.02 * wanted for found, wanted in zip(losses, wide, strict=True))
    assert losses[-1] < losses[0] - 0.1
    return losses
