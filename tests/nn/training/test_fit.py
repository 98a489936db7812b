"""The training loop `nn.fit`, on every backend."""

import math
import warnings
from typing import Any

import numpy as np
import pytest

from emberharmony import nn, ops, optim
from emberharmony.errors import ArgumentError, ArgumentTypeError, IndexOutOfBoundsError, NonFiniteError, TrainingWarning


class Training:
    """A linear regression: the layer, its loss, an optimizer and batches."""

    def __init__(self, rate: float = 0.1) -> None:
        rng = np.random.default_rng(0)
        x = rng.normal(size=(32, 3)).astype("float32")
        y = x @ np.float32([[1.0], [2.0], [3.0]])
        self.layer = nn.Linear(3, 1, rng=ops.random.Generator(0))
        self.optimizer = optim.SGD(self.layer, lr=rate)
        self.batches = nn.data.batches(x, y, batch_size=8, rng=ops.random.Generator(1))

    def loss(self, x: Any, y: Any) -> Any:
        return ops.mean(ops.square(ops.subtract(self.layer(x), y)))

    def fit(self, **options: Any) -> nn.History:
        options = {"progress": False, **options}
        return nn.fit(self.layer, self.loss, self.optimizer, self.batches, **options)

    @property
    def weights(self) -> list[Any]:
        return ops.to_numpy(self.layer.weight.value).ravel().tolist()


def test_fit_trains_and_notes_each_step(backend: str) -> None:
    run = Training()
    history = run.fit(steps=100)
    np.testing.assert_allclose(run.weights, [1, 2, 3], atol=1e-2)
    assert [step.step for step in history] == list(range(1, 101))
    assert history.losses[-1] < 1e-3 < history.losses[0]
    assert history[0].learning_rate == 0.1
    assert all(step.seconds > 0 and step.gradient_norm > 0 for step in history)
    assert history.stopped == ""


def test_fit_equals_a_loop_of_ones_own(backend: str) -> None:
    fitted, own = Training(), Training()
    fitted.fit(epochs=2)
    for _ in range(2):
        for x, y in own.batches:
            ops.backward(lambda x=x, y=y: own.loss(x, y), own.layer)  # type: ignore[misc]
            own.optimizer.step()
    assert fitted.weights == own.weights
    assert len(Training().fit()) == 4


def test_clipping_equals_that_of_a_loop_of_ones_own(backend: str) -> None:
    fitted, own = Training(), Training()
    history = fitted.fit(epochs=2, clip=0.7)
    norms = []
    for _ in range(2):
        for x, y in own.batches:
            ops.backward(lambda x=x, y=y: own.loss(x, y), own.layer)  # type: ignore[misc]
            norms.append(float(optim.clip_by_global_norm(own.layer, 0.7)))
            own.optimizer.step()
    assert max(norms) > 0.7
    assert [step.gradient_norm for step in history] == norms
    assert fitted.weights == own.weights


def test_clipping_leaves_small_gradients_as_they_are(backend: str) -> None:
    clipped, plain = Training(), Training()
    clipped.fit(steps=3, clip=1e6)
    plain.fit(steps=3)
    np.testing.assert_array_equal(clipped.weights, plain.weights)


def test_an_infinite_gradient_of_a_finite_loss_ends_the_training(backend: str) -> None:
    layer = nn.Linear(1, 1, bias=False, rng=ops.random.Generator(0))
    before = ops.to_numpy(layer.weight.value).tolist()
    root = lambda x: ops.sum(ops.sqrt(ops.multiply(layer(x), 0.0)))
    with pytest.warns(nn.NonFiniteLossWarning, match=r"the loss of step 1 is 0.*\['weight'\]"):
        history = nn.fit(layer, root, optim.SGD(layer), [ops.ones((2, 1))], progress=False)
    assert history.stopped.startswith("the loss of step 1 is 0")
    assert ops.to_numpy(layer.weight.value).tolist() == before
    assert layer.weight.grad is None


def test_clipping_limits_the_norm_of_the_gradients(backend: str) -> None:
    run = Training(rate=1.0)
    before = np.array([*run.weights, *ops.to_numpy(run.layer.bias.value)])  # type: ignore[union-attr]
    history = run.fit(steps=1, clip=0.5)
    after = np.array([*run.weights, *ops.to_numpy(run.layer.bias.value)])  # type: ignore[union-attr]
    assert history[0].gradient_norm > 0.5
    assert math.isclose(float(np.linalg.norm(after - before)), 0.5, rel_tol=1e-5)


def test_validation_runs_in_evaluation_and_modes_are_restored(backend: str) -> None:
    run = Training()
    modes: list[bool] = []

    def validation() -> Any:
        modes.append(run.layer.training)
        return ops.array(0.25)

    run.layer.eval()
    history = run.fit(steps=5, validation=validation, validate_every=2)
    assert [step.validation for step in history] == [None, 0.25, None, 0.25, 0.25]
    assert modes == [False] * 3
    assert run.layer.training is False


def test_validation_runs_after_each_epoch_if_epochs_are_counted(backend: str) -> None:
    assert Training().fit(epochs=3, validation=lambda: 0.5).validations == [(4, 0.5), (8, 0.5), (12, 0.5)]
    assert Training().fit(validation=lambda: 0.5).validations == [(4, 0.5)]
    assert Training().fit(epochs=2, validation=lambda: 0.5, validate_every=3).validations == [
        (3, 0.5),
        (6, 0.5),
        (8, 0.5),
    ]
    assert Training().fit(steps=9, validation=lambda: 0.5).validations == [(9, 0.5)]
    run = Training()
    unsized = nn.fit(run.layer, run.loss, run.optimizer, iter(run.batches), validation=lambda: 0.5, progress=False)
    assert unsized.validations == []


def test_validation_data_are_refused_before_the_first_step(backend: str) -> None:
    run = Training()
    with pytest.raises(ArgumentTypeError, match=r"validation loss, such as lambda: loss_fn\(x, y\)"):
        run.fit(steps=1, validation=([1.0], [1.0]))
    assert not run.optimizer.count


def test_an_interruption_returns_the_history_after_a_whole_step(backend: str) -> None:
    run, other = Training(), Training()

    def interrupted(x: Any, y: Any) -> Any:
        loss = run.loss(x, y)
        if len(seen) == 3:
            raise KeyboardInterrupt
        return loss

    seen: list[nn.Step] = []
    history = nn.fit(
        run.layer, interrupted, run.optimizer, run.batches, steps=9, callbacks=[seen.append], progress=False
    )
    assert history.stopped == "interrupted"
    assert len(history) == 3
    other.fit(steps=3)
    assert run.weights == other.weights
    assert run.layer.weight.grad is None


def test_a_loss_that_is_not_finite_stops_the_training_before_it_changes_anything(backend: str) -> None:
    run = Training()

    def loss(x: Any, y: Any) -> Any:
        found = run.loss(x, y)
        return ops.multiply(found, float("nan")) if len(seen) == 2 else found

    seen: list[nn.Step] = []
    with pytest.warns(nn.NonFiniteLossWarning, match=r"the loss of step 3 is nan.*\['weight', 'bias'\]"):
        history = nn.fit(run.layer, loss, run.optimizer, run.batches, steps=9, callbacks=[seen.append], progress=False)
    assert len(history) == 2
    assert history.stopped.startswith("the loss of step 3 is nan")
    assert np.isfinite(run.weights).all()


def test_a_batch_that_is_not_finite_is_named(backend: str) -> None:
    layer = nn.Linear(2, 1)
    for x, rate, message in (
        (np.nan, 0.1, "the batch itself has NaN"),
        (1e30, 0.1, "step 1 is inf.*no step was made before, so the learning rate is not the cause"),
        (1.0, 1e30, r"step 2 is inf.*take a smaller learning rate or clip=1\.0"),
    ):
        batches = nn.data.batches(np.full((3, 2), x, "float32"), np.zeros((3, 1), "float32"), batch_size=3)
        optimizer = optim.SGD(layer, lr=rate)
        with pytest.warns(nn.NonFiniteLossWarning, match=message):
            nn.fit(layer, lambda x, y: nn.losses.mse(layer(x), y), optimizer, batches, steps=2, progress=False)


def test_the_advice_for_a_loss_that_is_not_finite_names_the_op(backend: str) -> None:
    layer = nn.Linear(2, 1)
    batches = nn.data.batches(-np.ones((3, 2), "float32"), batch_size=3)

    def fit() -> nn.History:
        return nn.fit(layer, lambda x: ops.sum(ops.log(x) * layer(x)), optim.SGD(layer), batches, progress=False)

    with pytest.warns(nn.NonFiniteLossWarning, match=r"\bfit\(\) in \"with ops\.checked\('nan'\):\" names the op"):
        fit()
    with (
        warnings.catch_warnings(action="ignore", category=nn.NonFiniteLossWarning),
        pytest.raises(NonFiniteError, match=r"log\(\) .* made 6 NaN"),
        ops.checked("nan"),
    ):
        fit()


def test_a_loss_that_does_not_call_the_model_is_noticed(backend: str) -> None:
    run = Training()
    with pytest.warns(TrainingWarning, match="does the loss call this model"):
        nn.fit(run.layer, lambda x, y: ops.mean(y), run.optimizer, run.batches, steps=2, progress=False)


def test_a_layer_that_is_made_in_each_call_is_noticed(backend: str) -> None:
    run = Training()

    def loss(x: Any, y: Any) -> Any:
        return ops.mean(ops.square(nn.Linear(1, 1)(run.layer(x)) - y))

    with pytest.warns(TrainingWarning, match=r"Parameter is made in a function .* once in __init__"):
        nn.fit(run.layer, loss, run.optimizer, run.batches, steps=1, progress=False)


def test_probabilities_before_a_loss_of_logits_are_noticed(backend: str) -> None:
    x, y = ops.convert_to_tensor(np.linspace(-1.0, 1.0, 16, dtype="float32").reshape(8, 2)), np.array([0, 1] * 4)
    batches = nn.data.batches(x, y, batch_size=8)
    layer = nn.Linear(2, 2, rng=ops.random.Generator(0))
    made = nn.Sequential(nn.Linear(2, 1, rng=ops.random.Generator(0)), nn.Sigmoid())
    wrong = {
        "softmax": lambda x, y: nn.losses.cross_entropy(ops.softmax(layer(x)), y),
        "sigmoid": lambda x, y: nn.losses.binary_cross_entropy_with_logits(made(x)[:, 0], y),
    }
    for (function, loss), model in zip(wrong.items(), (layer, made), strict=True):
        with pytest.warns(TrainingWarning, match=f"has a {function} of its own"):
            nn.fit(model, loss, optim.SGD(model, lr=0.1), batches, steps=1, progress=False)
    right = optim.SGD(layer, lr=0.1)
    nn.fit(layer, lambda x, y: nn.losses.cross_entropy(layer(x), y), right, batches, steps=2, progress=False)


def test_a_callback_can_end_the_training(backend: str) -> None:
    history = Training().fit(steps=9, callbacks=[lambda step: "enough" if step.step == 4 else ""])
    assert len(history) == 4
    assert history.stopped == "enough"


def test_progress_is_written_to_the_error_stream(capsys: pytest.CaptureFixture[str]) -> None:
    Training().fit(steps=3, progress=True, validation=lambda: 0.5)
    written = capsys.readouterr()
    assert written.out == ""
    assert "step 3 of 3: loss" in written.err
    assert "validation 0.5" in written.err
    Training().fit(steps=3)
    assert capsys.readouterr().err == ""


def test_the_bar_is_drawn_on_a_terminal(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("rich")
    monkeypatch.setattr("sys.stderr.isatty", lambda: True)
    Training().fit(steps=3, progress=True)
    assert "3/3" in capsys.readouterr().err


def test_wrong_arguments_are_refused() -> None:
    run = Training()
    with pytest.raises(ArgumentError, match="steps or epochs, not both"):
        run.fit(steps=1, epochs=1)
    with pytest.raises(ArgumentError, match="steps must be above 0, got 0"):
        run.fit(steps=0)
    with pytest.raises(ArgumentError, match="got no batch"):
        nn.fit(run.layer, run.loss, run.optimizer, [], progress=False)
    with pytest.raises(ArgumentTypeError, match=r"fit\(\) trains an nn\.Module"):
        nn.fit(3, run.loss, run.optimizer, [], progress=False)  # type: ignore[arg-type]


@pytest.mark.parametrize("compiled", [False, True])
def test_the_first_step_reads_labels_on_every_backend(backend: str, compiled: bool) -> None:
    model = nn.Sequential(nn.Linear(3, 8), nn.ReLU(), nn.Linear(8, 3))
    features, labels = np.ones((8, 3), np.float32), np.arange(8) % 3 + 1
    loss: Any = lambda x, y: nn.losses.cross_entropy(model(x), y)
    batches = nn.data.batches(features, labels, batch_size=4)
    before = ops.to_numpy(model[0].weight.value)
    with pytest.raises(IndexOutOfBoundsError, match="class 3 in target is out of range, expected 0 to 2"):
        nn.fit(model, ops.compile(loss) if compiled else loss, optim.Adam(model), batches, progress=False)
    np.testing.assert_array_equal(ops.to_numpy(model[0].weight.value), before)
    right = nn.data.batches(features, labels - 1, batch_size=4)
    assert len(nn.fit(model, ops.compile(loss) if compiled else loss, optim.Adam(model), right, progress=False)) == 2


def test_the_first_step_reads_labels_of_a_model_with_a_native_operand(backend: str) -> None:
    class Residual(nn.Module):
        def __init__(self) -> None:
            self.layer, self.head = nn.Linear(3, 3), nn.Linear(3, 2)

        def __call__(self, x: Any) -> Any:
            return self.head(x + self.layer(x))

    model = Residual()
    batches = nn.data.batches(np.ones((8, 3), np.float32), np.arange(8) % 2 + 1, batch_size=4)
    with pytest.raises(IndexOutOfBoundsError, match="class 2 in target is out of range, expected 0 to 1"):
        nn.fit(model, lambda x, y: nn.losses.cross_entropy(model(x), y), optim.Adam(model), batches, progress=False)


def test_arrays_of_numpy_in_batches_become_tensors(backend: str) -> None:
    class Residual(nn.Module):
        def __init__(self) -> None:
            self.layer = nn.Linear(2, 2, bias=False)
            self.layer.weight.value = ops.zeros((2, 2))

        def __call__(self, x: Any) -> Any:
            return x + self.layer(x)

    rows = np.ones((4, 2), np.float32)
    weights = []
    for batches in ([rows] * 4, nn.data.batches(ops.array(np.tile(rows, (4, 1))), batch_size=4)):
        model = Residual()
        loss = lambda x, model=model: ops.mean(ops.square(model(x)))
        assert len(nn.fit(model, loss, optim.SGD(model, lr=0.1), batches, progress=False)) == 4
        weights.append(model.layer.weight.tolist())
    assert weights[0] == weights[1] != [[0.0, 0.0]] * 2
