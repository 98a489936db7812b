"""What a checkpoint and the parts that it is restored into do not have in common is named, all at once."""

import json
import shutil
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from emberharmony import io, nn, ops, optim
from emberharmony.core.state import commits
from emberharmony.errors import ArgumentError, ArgumentTypeError, CheckpointError, CheckpointWarning
from emberharmony.io.checkpoints.collecting import option_description
from tests.io.checkpoints.trainings import Training, restored


@pytest.fixture
def saved(tmp_path: Path) -> Iterator[io.Checkpoint]:
    """Yields two checkpoints; NumPy is active, as nothing here depends on the backend."""
    with ops.use_backend("numpy"):
        checkpoint = io.Checkpoint(tmp_path / "run", keep=None)
        training = Training()
        training.train(1)
        checkpoint.save(1, **training.parts)
        training.train(1)
        checkpoint.save(2, **training.parts, extra={"loss": 0.5})
        yield checkpoint


def test_everything_that_does_not_fit_is_named_and_nothing_changes(saved: io.Checkpoint) -> None:
    other = Training(seed=3)
    other.train(2)
    other.model.layers[2] = nn.Dropout(0.3, rng=ops.random.Generator(0))
    other.model.more = nn.Linear(1, 1)
    other.model.layers[1] = nn.BatchNorm1d(9)
    before = other.everything()
    data = nn.data.batches(ops.arange(7), batch_size=2)
    parts = other.parts | {"data": data, "random": {"noise": other.random}}
    with pytest.raises(CheckpointError) as caught:
        saved.restore(**parts)
    error = caught.value
    assert (error.kind, error.path) == ("different", f"{saved.folder}/step-000002")
    for expected in (
        "model: missing: more.weight",
        "model: wrong: layers.1.running_mean: has shape (8,), expected (9,)",
        "model: layers.2.rng, last.rng share a random generator in the checkpoint and not here",
        "missing: random['noise'], which the checkpoint does not have",
        "unexpected: random",
        "data: load_state_dict(): the state has rows=20, these batches 7",
    ):
        assert any(fault.startswith(expected) for fault in error.faults), (expected, error.faults)
        assert expected in str(error)
    assert other.everything() == before


def test_a_model_without_a_common_name_is_refused(saved: io.Checkpoint) -> None:
    layer = nn.Linear(3, 8)
    with pytest.raises(
        CheckpointError, match=r"none of the 11 names in the checkpoint, .* is in Linear, which has \['w"
    ):
        saved.restore(model=layer)


def test_tensors_that_are_tied_on_one_side_are_named(saved: io.Checkpoint) -> None:
    apart = Training(seed=3)
    apart.model.tied = nn.Linear(8, 3)
    with pytest.raises(CheckpointError, match=r"layers\.3\.weight, tied\.weight are one tensor only in the checkpoint"):
        saved.restore(model=apart.model)
    saved.save(3, model=apart.model)
    with pytest.raises(CheckpointError, match=r"layers\.3\.bias, tied\.bias are one tensor only here"):
        saved.restore(model=Training().model)


def test_options_dtypes_and_parts_that_differ_are_named(saved: io.Checkpoint) -> None:
    other = Training(seed=3, rate=0.25)
    other.model.to(dtype="float16")
    other.optimizer.param_groups[0]["weight_decay"] = 0.5
    with pytest.warns(CheckpointWarning) as caught:
        saved.restore(model=other.model, optimizer=other.optimizer, random=other.random)
    (note,) = (str(each.message) for each in caught)
    for expected in (
        "the checkpoint has data, for which restore() was given nothing",
        "are float32 in the checkpoint and float16 here, so they are cast",
        "optimizer: lr of group 0 is cosine(0.05, 50, 0.0) in the checkpoint and 0.25 here; the one of the checkpoint",
        "optimizer: weight_decay of group 0 is 0.01 in the checkpoint and 0.5 here; the one of the checkpoint is used",
    ):
        assert expected in note
    assert other.optimizer.param_groups[0]["weight_decay"] == 0.01
    other = Training(rate=optim.schedules.exponential(0.1, 0.9))
    assert (
        "lr of group 0 is cosine(0.05, 50, 0.0) in the checkpoint and exponential(0.1, 0.9) here; the one here"
        in (restored(saved, other)[0])
    )
    other.optimizer = optim.Adam(other.model, lr=optim.schedules.cosine(0.05, 50), decoupled_weight_decay=True)
    assert "optimizer is a AdamW in the checkpoint and a Adam here" in restored(saved, other)[0]


def test_a_warning_that_is_an_error_changes_nothing(saved: io.Checkpoint) -> None:
    other = Training(rate=0.5)
    before = other.everything()
    with pytest.raises(CheckpointWarning):
        saved.restore(**other.parts)
    assert other.everything() == before


def test_a_schedule_outside_of_the_optimizer(saved: io.Checkpoint) -> None:
    plateau, later = optim.ReduceOnPlateau(0.5, patience=0), optim.ReduceOnPlateau(0.5)
    plateau.observe(1.0)
    plateau.observe(2.0)
    cosine = optim.schedules.cosine(0.1, 10)
    saved.save(3, schedule={"plateau": plateau, "cosine": cosine})
    with pytest.warns(CheckpointWarning, match=r"schedule\['cosine'\] is cosine\(0.1, 10, 0.0\) .* cosine\(0.1, 11, 0"):
        saved.restore(schedule={"plateau": later, "cosine": optim.schedules.cosine(0.1, 11)})
    assert later.state_dict() == plateau.state_dict()
    with pytest.raises(CheckpointError, match="one of the two sides has a state"):
        saved.restore(schedule={"plateau": cosine, "cosine": cosine})


def test_a_model_alone_is_restored_without_the_random_streams(saved: io.Checkpoint) -> None:
    drawn = ops.random.get_state()
    other = Training(seed=3)
    other.model.last = nn.Dropout(0.1)
    with pytest.warns(CheckpointWarning, match="share a random generator in the checkpoint and not here"):
        saved.restore(model=other.model)
    fitting = Training(seed=3)
    state = ops.random.get_state()
    assert saved.restore(model=fitting.model) == 2
    assert ops.random.get_state() == state != drawn


Damage = Callable[[Path], object]
DAMAGES: dict[str, tuple[Damage, str]] = {
    "a file cut off": (lambda path: cut(path / "model.safetensors"), "model.safetensors has .* bytes, expected"),
    "a changed bit of a weight": (lambda path: flip(path / "model.safetensors"), "model.safetensors has changed"),
    "a changed bit of the optimizer": (lambda path: flip(path / "optimizer.safetensors"), "optimizer.* has changed"),
    "no file of tensors": (lambda path: (path / "model.safetensors").unlink(), "model.safetensors is missing"),
    "no record": (lambda path: (path / "state.json").unlink(), "has no state.json"),
    "a record cut off": (lambda path: cut(path / "state.json"), "state.json cannot be read"),
    "an empty record": (lambda path: (path / "state.json").write_text(""), "state.json cannot be read"),
    "a record of another kind": (lambda path: (path / "state.json").write_text("[]"), "state.json has changed"),
    "a deep record": (lambda path: (path / "state.json").write_text("[" * 100_000), "state.json cannot be read"),
    "a changed step": (lambda path: edit(path, '"step": 2', '"step": 3'), "state.json has changed"),
    "a folder": (lambda path: replaced(path), "state.json"),
}


def cut(path: Path) -> None:
    path.write_bytes(path.read_bytes()[:-1])


def flip(path: Path) -> None:
    content = bytearray(path.read_bytes())
    content[-3] ^= 1
    path.write_bytes(content)


def edit(path: Path, old: str, new: str) -> None:
    text = (path / "state.json").read_text()
    assert old in text
    (path / "state.json").write_text(text.replace(old, new))


def replaced(path: Path) -> None:
    (path / "state.json").unlink()
    (path / "state.json").mkdir()


def test_a_damaged_checkpoint_is_named_and_the_one_before_stays(saved: io.Checkpoint) -> None:
    path = Path(saved.folder, "step-000002")
    whole = Path(saved.folder).parent / "whole"
    shutil.copytree(path, whole)
    training = Training(seed=3)
    before = training.everything()
    for name, (damage, message) in DAMAGES.items():
        damage(path)
        with pytest.raises(CheckpointError, match=message) as caught:
            saved.restore(**training.parts, step=2)
        assert caught.value.kind == "damaged", name
        assert training.everything() == before, name
        if "changed bit" not in name:  # only the digests show that
            assert (saved.steps(), saved.latest()) == ([1], 1), name
            assert "the folder of step 2 is no whole checkpoint" in restored(saved, Training())[0], name
        shutil.rmtree(path)
        shutil.copytree(whole, path)
    assert saved.latest() == 2


def test_a_record_whose_digest_was_made_to_fit_raises_typed_errors(saved: io.Checkpoint) -> None:
    from emberharmony.io.checkpoints import records

    path = Path(saved.folder, "step-000002")
    good = json.loads((path / "state.json").read_text())
    for change in (
        {"version": 2},
        {"version": "1"},
        {"parts": []},
        {"parts": {"model": {"": {}}, "optimizer": {"": {"class": "AdamW"}}}},
        {"parts": {"model": {"": {**good["parts"]["model"][""], "state": {"$tensor": "x"}}}}},
        {"parts": {"model": {"": {**good["parts"]["model"][""], "state": {"$what": 1}}}}},
        {"parts": {"data": {"": {"class": "Batches", "state": 1}}}},
        {"files": {"../x": {}}},
        {"files": {"model.safetensors": {}}},
        {"files": {}},
    ):
        held = {**good, **change}
        held["sha256"] = records._digest_of(held)
        (path / "state.json").write_text(json.dumps(held))
        training = Training(seed=3)
        before = training.everything()
        with pytest.raises(CheckpointError):
            saved.restore(**training.parts, step=2)
        assert training.everything() == before


def test_wrong_arguments_are_named(saved: io.Checkpoint) -> None:
    layer = nn.Linear(1, 1)
    wrong: list[tuple[type[Exception], str, Callable[[], Any]]] = [
        (ArgumentError, "keep is 0", lambda: io.Checkpoint("a", keep=0)),
        (ArgumentError, "mode is 'least'", lambda: io.Checkpoint("a", mode="least")),
        (ArgumentError, "step is -1", lambda: saved.save(-1, model=layer)),
        (ArgumentError, "step is 1.0", lambda: saved.save(1.0, model=layer)),  # type: ignore[arg-type]
        (ArgumentError, "nothing to save", lambda: saved.save(1)),
        (ArgumentError, "nothing to restore", lambda: saved.restore()),
        (ArgumentError, "without parameters", lambda: saved.save(1, model=nn.ReLU())),
        (ArgumentError, "needs the name of a number", lambda: saved.best()),
        (ArgumentError, "extra lacks 'loss'", lambda: io.Checkpoint("a", keep_best="loss").save(1, extra={"los": 1.0})),
        (ArgumentTypeError, "model is 3 of type int", lambda: saved.save(1, model=3)),
        (ArgumentTypeError, r"data\['x'\] is", lambda: saved.save(1, data={"x": [1]})),
        (ArgumentTypeError, "extra is a dict", lambda: saved.save(1, model=layer, extra={1: 2})),  # type: ignore[dict-item]
        (ArgumentTypeError, "several elements", lambda: saved.save(1, model=layer, extra={"x": ops.ones(2)})),
        (ArgumentTypeError, "cannot hold", lambda: saved.save(1, model=layer, extra={"x": {"y": object()}})),
        (CheckpointError, r"has not a checkpoint of step 7: there are those of \[1, 2\]", lambda: saved.extra(7)),
    ]
    for kind, message, call in wrong:
        with pytest.raises(kind, match=message):
            call()
    with pytest.raises(CheckpointError, match="nothing was saved there") as caught:
        io.Checkpoint(Path(saved.folder, "none")).restore(model=layer)
    assert caught.value.kind == "missing"
    assert io.Checkpoint(Path(saved.folder, "none")).latest() is None
    assert saved.steps() == [1, 2]


def test_an_interruption_of_a_restore_leaves_the_old_state_or_the_new_one(
    saved: io.Checkpoint, monkeypatch: pytest.MonkeyPatch
) -> None:
    training = Training(seed=3)
    before = training.everything()
    from emberharmony.io.checkpoints import restoring

    def interrupt(*steps: Any) -> None:
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(restoring, "commit", interrupt)
        with pytest.raises(KeyboardInterrupt):
            saved.restore(**training.parts)
    assert training.everything() == before
    assert commits.commit is not interrupt


def test_schedules_are_stored_by_the_names_of_their_functions() -> None:
    """Another name would make an old checkpoint differ from the program that wrote it."""
    constant = optim.schedules.constant(0.1)
    schedules = {
        "constant": constant,
        "join": optim.schedules.join([constant, constant], [3]),
        "step": optim.schedules.step(0.1, 3),
        "exponential": optim.schedules.exponential(0.1, 0.9),
        "cosine": optim.schedules.cosine(0.1, 10),
        "cosine_restarts": optim.schedules.cosine_restarts(0.1, 10),
        "inverse_sqrt": optim.schedules.inverse_sqrt(0.1, 10),
    }
    assert [option_description(schedule)["schedule"] for schedule in schedules.values()] == list(schedules)
