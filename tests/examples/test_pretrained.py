"""The models in `examples/pretrained` compute on every backend what their originals compute from the same weights.

`make models` installs the packages with the weights. Without them, the same programs run with random weights.
"""

import wave
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from emberharmony import io, ops, to_backend
from emberharmony.demo.programs import load_example
from tests.examples import originals

EXAMPLES = Path(__file__).parents[2] / "examples" / "pretrained"
CLOSE = 1e-6
"""The largest difference from the original in float64, as a share of the largest number in the results."""
pictures = originals.module_of(EXAMPLES.parents[1] / "docs" / "pretrained_pictures.py", "pretrained_pictures")
DOG, CAT, CAR, FRANCE, PARIS = 11203, 6635, 1559, 3444, 3681
TEXTS = [[DOG], [CAT], [CAR], [FRANCE], [PARIS], [DOG, CAT, CAR]]


def noise(*shape: int) -> Any:
    return np.random.default_rng(4).standard_normal(shape).astype(np.float32)


def tone(hertz: float, samples: int) -> Any:
    phase = 2 * np.pi * hertz * np.arange(samples) / 16000
    return sum(np.sin(k * phase) / k for k in range(1, 6)).astype(np.float32) / 4


def require_original(found: Any, right: Any) -> None:
    """Compares the results of a model, one or a list, with those of the original in float64."""
    found, right = ((x,) if hasattr(x, "shape") else tuple(x) for x in (found, right))
    right = [x.detach().numpy() for x in right]
    scale = max(np.abs(x).max() for x in right)
    for one, other in zip(found, right, strict=True):
        assert tuple(one.shape) == other.shape
        assert np.abs(ops.to_numpy(one) - other).max() <= CLOSE * scale


def random_weights(model: Any, seed: int = 7) -> dict[str, Any]:
    """Returns arrays in the shapes of the weights of a model, at the scale that keeps the results apart."""
    generator = np.random.default_rng(seed)
    found = {}
    for name, x in model.state_dict(host=True).items():
        scale = 1 / np.sqrt(np.prod(x.shape[1:])) if x.ndim > 1 else 0.2
        found[name] = x if x.dtype.kind == "i" else (scale * generator.standard_normal(x.shape)).astype(x.dtype)
        if name.endswith("running_var"):
            found[name] = np.abs(found[name]) + np.float32(0.5)
    return found


def require_numpys_results(make: Any, run: Any) -> Any:
    """Runs a model with random weights on the active backend and on NumPy; returns the results, which are equal."""
    results = []
    for name in (ops.get_backend(), "numpy"):
        with ops.use_backend(name):
            model = make()
            model.load_state_dict(random_weights(model))
            found = run(model.eval())
            results.append([ops.to_numpy(x) for x in (found if isinstance(found, tuple) else (found,))])
    for found, right in zip(*results, strict=True):
        np.testing.assert_allclose(found, right, rtol=0, atol=2e-6 * np.abs(right).max())
    return results[0]


def test_each_example_is_short_and_tested() -> None:
    lines = {file.stem: len(file.read_text(encoding="utf-8").splitlines()) for file in EXAMPLES.glob("*.py")}
    assert set(lines) == {"silero", "crepe", "resemblyzer", "mtcnn", "wordllama"}
    assert all(50 <= count <= 130 for count in lines.values()), lines


def test_silero_carries_its_state_from_step_to_step(backend: str) -> None:
    silero = load_example("pretrained/silero")
    samples = noise(1200) * 0.1
    (found,) = require_numpys_results(silero.Silero, lambda model: silero.probabilities(model, samples))
    assert found.shape == (3,)
    model = silero.Silero()
    model.load_state_dict(random_weights(model))
    first, state = model(ops.array(np.pad(samples[:512], (64, 0))[None]))
    second, _ = model(ops.array(samples[None, 448:1024]), state)
    np.testing.assert_allclose([float(first[0]), float(second[0])], found[:2], rtol=1e-5)
    assert not np.allclose(ops.to_numpy(model(ops.array(samples[None, 448:1024]))[0]), found[1], atol=1e-4)


def test_silero_reads_its_file_and_recordings(backend: str, tmp_path: Path) -> None:
    silero = load_example("pretrained/silero")
    state = random_weights(silero.Silero())
    io.save(state, tmp_path / "a.safetensors")
    loaded = silero.load(tmp_path / "a.safetensors").state_dict(host=True)
    assert all(np.array_equal(loaded[name], x) for name, x in state.items())
    for rate, module in ((16000, silero), (8000, silero), (16000, load_example("pretrained/crepe"))):
        with wave.open(str(tmp_path / "a.wav"), "wb") as file:
            file.setparams((1, 2, rate, 0, "NONE", ""))
            file.writeframes(np.array([0, 16384, -32768], "<i2").tobytes())
        if rate == 8000:
            with pytest.raises(ValueError, match="expected 16000 samples per second"):
                module.read(tmp_path / "a.wav")
        else:
            assert module.read(tmp_path / "a.wav").tolist() == [0, 0.5, -1]


def test_spans_begin_above_the_threshold_and_end_well_below_it(backend: str) -> None:
    spans = load_example("pretrained/silero").spans
    assert spans(ops.array([0.1, 0.6, 0.4, 0.3, 0.2, 0.9])) == [(0.032, 0.096), (0.16, 0.192)]
    assert spans(ops.array([0.1])) == []


def test_crepe_scales_windows_and_follows_its_likelihoods(backend: str) -> None:
    crepe = load_example("pretrained/crepe")
    (found,) = require_numpys_results(crepe.Crepe, lambda model: model(crepe.windows(tone(220, 100))))
    assert found.shape == (1, 360)
    assert tuple(crepe.windows(tone(220, 1600)).shape) == (11, 1024)
    bins = np.arange(360)
    likely = np.exp(-(((bins - np.array([[120.25], [2]])) / 2) ** 2)).astype(np.float32)
    pitch, share = crepe.pitches(ops.array(likely))
    cents = 1200 * np.log2(ops.to_numpy(pitch) / 10)
    np.testing.assert_allclose(cents[0], crepe.LOWEST + 20 * 120.25, atol=1)
    near = likely[1, :7]  # four bins on each side of bin 2, as far as there are any
    np.testing.assert_allclose(cents[1], crepe.LOWEST + 20 * (near @ bins[:7]) / near.sum(), atol=0.01)
    np.testing.assert_array_equal(ops.to_numpy(share), likely.max(1))


def test_resemblyzer_joins_the_embeddings_of_parts(backend: str) -> None:
    resemblyzer = load_example("pretrained/resemblyzer")
    (found,) = require_numpys_results(resemblyzer.Encoder, lambda model: model(noise(2, 6, 40)))
    assert found.shape == (2, 256)
    np.testing.assert_allclose(np.linalg.norm(found, axis=1), 1, rtol=1e-5)

    def counted(mels: Any) -> Any:
        parts.append(ops.to_numpy(mels))
        return ops.add(ops.mean(mels, 1), 1.0)

    parts: list[Any] = []
    for frames in (10, 160, 200, 300):
        voice = resemblyzer.voice(counted, noise(frames, 40))
        np.testing.assert_allclose(np.linalg.norm(ops.to_numpy(voice)), 1, rtol=1e-5)
    assert [part.shape for part in parts] == [(1, 160, 40), (1, 160, 40), (2, 160, 40), (3, 160, 40)]
    np.testing.assert_array_equal(parts[2][1, :123], noise(200, 40)[77:])
    assert not parts[2][1, 123:].any()


@pytest.mark.parametrize(("name", "size"), [("pnet", (17, 14)), ("rnet", (24, 24)), ("onet", (48, 48))])
def test_mtcnn_judges_pictures(name: str, size: tuple[int, int], backend: str) -> None:
    mtcnn = load_example("pretrained/mtcnn")
    picture = np.random.default_rng(2).integers(0, 256, (*size, 3))
    found = require_numpys_results(mtcnn.NETWORKS[name], lambda model: model(mtcnn.scaled(picture)))
    shapes = {"pnet": [(1, 4, 4, 2), (1, 2, 4, 2)], "rnet": [(1, 4), (1, 2)], "onet": [(1, 4), (1, 10), (1, 2)]}
    assert [x.shape for x in found] == shapes[name]
    np.testing.assert_allclose(found[-1].sum(1), 1, rtol=1e-5)
    if name == "pnet":
        seen = mtcnn.squares(ops.array([[[[0.2, 0.9]], [[0.8, 0.1]]]]))
        assert [(row, column, round(share, 6)) for row, column, share in seen] == [(0, 0, 0.8)]


def test_wordllama_reads_only_the_rows_of_its_tokens(backend: str, tmp_path: Path) -> None:
    wordllama = load_example("pretrained/wordllama")
    table = noise(50, 4).astype(np.float16)
    io.save({wordllama.TABLE: table}, tmp_path / "a.safetensors")
    texts = [[3, 49, 3], [7]]
    model = wordllama.load(tmp_path / "a.safetensors", texts)
    assert tuple(model.embedding.weight.value.shape) == (3, 4)
    means = np.stack([table[text].astype(np.float64).mean(0) for text in texts])
    right = means / np.linalg.norm(means, axis=1, keepdims=True)
    np.testing.assert_allclose(ops.to_numpy(model(texts)), right, atol=1e-6)


@pytest.mark.slow
def test_silero_is_its_original_and_hears_the_voices(backend: str) -> None:
    torch = pytest.importorskip("torch")

    file, original = originals.silero()
    silero = load_example("pretrained/silero")
    model = silero.load(file)
    samples, sounds = pictures.recording()
    x = np.stack([samples[8000:11072], samples[56000:59072]])
    ours = theirs = None
    steps: list[tuple[Any, ...]] = []
    for at in range(64, x.shape[1], 512):
        step = x[:, at - 64 : at + 512] if at + 512 <= x.shape[1] else x[:, -576:]
        found, ours = model(ops.array(step), ours)
        right, theirs = original(torch.tensor(step).double(), theirs)
        steps.append((found, ops.stack(ours), right, torch.stack(theirs)))
    found, ours, right, theirs = zip(*steps, strict=True)
    require_original(ops.stack(found), torch.stack(right))
    require_original(ops.stack(ours), torch.stack(theirs))
    spans = silero.spans(silero.probabilities(model, samples))
    voices = [sound[:2] for sound in sounds if "voice" in sound[2]]
    np.testing.assert_allclose(spans, voices, atol=0.16)


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore")
def test_silero_is_the_program_that_its_package_runs(backend: str) -> None:
    """The TorchScript of the package has other weights than the safetensors file, by the names here."""
    torch = pytest.importorskip("torch")

    whole = torch.jit.load(originals.shipped("silero-vad", "silero_vad/data/silero_vad.jit"), map_location="cpu")
    names = {"stft.forward_basis_buffer": "stft_conv.weight", "decoder.decoder.2.": "final_conv."}
    names |= {f"encoder.{layer}.reparam_conv.": f"conv{layer + 1}." for layer in range(4)}
    names |= {"decoder.rnn.": "lstm_cell."}
    found = {}
    for name, x in whole.state_dict().items():
        head = next((key for key in names if name.startswith(f"_model.{key}")), None)
        if head is not None:
            found[name.replace(f"_model.{head}", names[head])] = x.numpy()
    silero = load_example("pretrained/silero")
    model = silero.Silero()
    model.load_state_dict(found)
    samples = pictures.recording()[0][8000:11072]
    right = torch.cat([whole(torch.tensor(samples[None, at : at + 512]), 16000)[0] for at in range(0, 3072, 512)])
    require_original(silero.probabilities(model.eval(), samples), right)


@pytest.mark.slow
def test_crepe_is_its_original_and_follows_a_melody(backend: str) -> None:
    torch = pytest.importorskip("torch")

    file, original = originals.crepe()
    crepe = load_example("pretrained/crepe")
    samples, hertz = pictures.melody()
    places = [10, 140, 240]
    windows = ops.take(crepe.windows(samples), places, 0)
    found = crepe.load(file)(windows)
    require_original(found, original(torch.tensor(ops.to_numpy(windows)).double()))
    pitch, share = crepe.pitches(found)
    assert np.abs(1200 * np.log2(ops.to_numpy(pitch) / hertz[places])).max() < 20
    assert float(ops.min(share)) > 0.7


@pytest.mark.slow
def test_resemblyzer_is_its_original(backend: str) -> None:
    torch = pytest.importorskip("torch")

    file, original = originals.resemblyzer()
    mels = np.abs(noise(2, 160, 40)) ** 2
    found = load_example("pretrained/resemblyzer").load(file)(mels)
    require_original(found, original(torch.tensor(mels).double()))


@pytest.mark.slow
def test_mtcnn_is_its_original(backend: str) -> None:
    torch = pytest.importorskip("torch")

    folder, networks = originals.mtcnn()
    mtcnn = load_example("pretrained/mtcnn")
    generator = np.random.default_rng(2)
    sizes = {"pnet": (61, 50), "rnet": (24, 24), "onet": (48, 48)}
    for name, model in mtcnn.load(folder).items():
        x = mtcnn.scaled(generator.integers(0, 256, (*sizes[name], 3)))
        require_original(model(x), networks[name](torch.tensor(ops.to_numpy(x)).double()))


@pytest.mark.slow
def test_wordllama_is_its_original(backend: str) -> None:
    torch = pytest.importorskip("torch")

    file, original = originals.wordllama()
    model = load_example("pretrained/wordllama").load(file, TEXTS)
    width = max(map(len, TEXTS))
    tokens = torch.tensor([text + [0] * (width - len(text)) for text in TEXTS])
    mask = torch.tensor([[1] * len(text) + [0] * (width - len(text)) for text in TEXTS])
    require_original(model(TEXTS), original(tokens, mask))
    dog, cat, car, france, paris, _ = ops.to_numpy(model(TEXTS))
    assert dog @ cat > 0.1 > dog @ car
    assert france @ paris > 0.3 > france @ dog


@pytest.mark.slow
def test_a_shipped_model_follows_the_backend_within_a_recording(backend: str) -> None:
    file, _ = originals.silero()
    silero = load_example("pretrained/silero")
    model, x = silero.load(file), pictures.recording()[0][8000:9600]
    steps = [x[None, at - 64 : at + 512] for at in (64, 576, 1024)]
    with ops.use_backend("numpy"):
        state, right = None, []
        for step in steps:
            found, state = model(step, state)
            right.append(float(found[0]))
    state, moved = None, []
    for step, name in zip(steps, (backend, "numpy", backend), strict=True):
        with ops.use_backend(name):
            found, state = model(step, to_backend(state, name))
            moved.append(float(found[0]))
    np.testing.assert_allclose(moved, right, rtol=0, atol=1e-6)
