"""The models in `examples/models` compute what transformers computes from the same files, on every backend.

`record_models.py` has recorded three small models, so that these are compared without transformers, too.
"""

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from emberharmony import nn, ops
from emberharmony.demo.programs import load_example
from tests.examples import record_models as recorded

EXAMPLES = Path(__file__).parents[2] / "examples" / "models"
CLOSE = 1e-5
"""The largest difference of a logit, as a share of the largest logit."""
APART = 1e-4
"""Where the two largest logits differ by more, the likeliest token must be equal."""


def require_close(found: Any, right: Any) -> None:
    assert np.abs(ops.to_numpy(found) - right).max() <= CLOSE * np.abs(right).max()


def require_equal_models(name: str, folder: Path, wanted: dict[str, Any]) -> None:
    """Compares logits, the continuation and the caches of a model with what transformers has computed."""
    model = load_example(f"models/{recorded.CONFIGS[name][0]}").load(folder)
    tokens = wanted["tokens"]
    require_close(model(tokens), wanted["logits"])
    if "masked" in wanted:
        # What transformers computes at a place that is masked has no meaning.
        found = ops.multiply(model(tokens, wanted["parts"], wanted["mask"]), wanted["mask"][..., None])
        require_close(found, wanted["masked"] * wanted["mask"][..., None])
        return
    best = np.sort(wanted["later"], -1)
    assert (best[..., -1] - best[..., -2] > APART).all(), "record other weights"
    assert nn.generate(model, tokens, recorded.MORE) == wanted["continued"].tolist()
    texts = [tokens[0].tolist(), tokens[1, 4:].tolist()]
    alone = [nn.generate(model, text, recorded.MORE) for text in texts]
    assert nn.generate(model, texts, recorded.MORE) == alone == wanted.get("padded", alone)
    caches = model.caches()
    model(tokens[:, :4], caches)
    require_close(model(tokens[:, 4:], caches)[:, 0], wanted["later"][:, 0])


def test_each_example_is_short_and_compared() -> None:
    files = {file.stem: len(file.read_text(encoding="utf-8").splitlines()) for file in EXAMPLES.glob("*.py")}
    assert set(files) == {architecture for architecture, _ in recorded.CONFIGS.values()}
    assert all(60 <= lines <= 150 for lines in files.values()), files


@pytest.mark.parametrize("name", recorded.KEPT)
def test_a_model_computes_what_transformers_has_recorded(name: str, backend: str) -> None:
    folder = recorded.FOLDER / name
    require_equal_models(name, folder, dict(np.load(folder / "recorded.npz")))


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("name", recorded.CONFIGS)
def test_a_model_computes_what_transformers_computes(name: str, backend: str, tmp_path: Path) -> None:
    pytest.importorskip("torch")
    pytest.importorskip("transformers", reason="the extra models-test installs transformers")
    original = recorded.made(name, tmp_path)
    wanted = recorded.computed(original, recorded.tokens()) | {"tokens": recorded.tokens()}
    if "continued" in wanted:
        wanted["padded"] = recorded.padded(original, recorded.tokens())
    require_equal_models(name, tmp_path, wanted)


def test_a_text_goes_on_after_a_switch_of_the_backend(backend: str) -> None:
    for name in ("gpt2", "llama-sharded"):
        model = load_example(f"models/{recorded.CONFIGS[name][0]}").load(recorded.FOLDER / name)
        for options in ({}, {"temperature": 1.1, "top_k": 8, "top_p": 0.95}):
            found = nn.generate(model, [1, 2], 6, rng=ops.random.Generator(2), **options)
            stream = nn.stream_generate(model, [1, 2], 6, rng=ops.random.Generator(2), **options)
            moved = [next(stream), next(stream)]
            with ops.use_backend("numpy"):
                moved += [next(stream), next(stream)]
            assert [*moved, *stream] == found


def test_a_model_can_be_trained_on(backend: str) -> None:
    model = load_example("models/gpt2").load(recorded.FOLDER / "gpt2").train()
    tokens = recorded.tokens()

    def loss() -> Any:
        logits = ops.reshape(model(tokens[:, :-1]), (-1, 13))
        return nn.losses.cross_entropy(logits, ops.reshape(tokens[:, 1:], (-1,)))

    before = float(ops.backward(loss, model))
    assert all(cell.grad is not None for cell in model.parameters())
    for cell in model.parameters():
        cell.value = ops.subtract(cell.value, ops.multiply(cell.grad, 0.01))
    assert float(loss()) < before
    assert model.head.weight is model.tokens.weight


def test_a_rotation_of_an_unknown_kind_is_refused() -> None:
    llama = load_example("models/llama")
    with pytest.raises(ValueError, match="expected the rope_type default, linear or llama3, got yarn"):
        llama.rotations({"rope_scaling": {"type": "yarn", "factor": 2.0}}, 4)
    old = llama.rotations({"rope_theta": 500.0, "rope_scaling": {"type": "linear", "factor": 2.0}}, 4)
    assert (old.base, old.scale) == (500.0, 0.5)


def test_names_that_the_table_lacks_stay() -> None:
    renamed = load_example("models/gpt2").renamed
    assert renamed("transformer.h.11.mlp.c_fc.bias") == "blocks.11.inner.bias"
    assert renamed("transformer.h.1.other.bias") == "transformer.h.1.other.bias"
