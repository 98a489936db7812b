"""Draws what people look at rather than read: activations, windows, image ops and schedules of the learning rate.

The build of the documentation calls it. A picture shows the op itself, called on NumPy, and is drawn anew each time.
"""

from pathlib import Path
from typing import Any

import matplotlib as mpl
import numpy as np
from matplotlib.figure import Figure

from emberharmony import ops
from emberharmony.core.registry import EMPTY, OpSpec
from emberharmony.optim import schedules

INK, SECOND = "#4c72b0", "#dd8452"
mpl.rcParams |= {"svg.hashsalt": "emberharmony", "font.size": 9}


IMAGES = {
    "resize": "ops.resize(image, (12, 24))",
    "gaussian_blur": "ops.image.gaussian_blur(image, (9, 9), (2.0, 2.0))",
    "sobel_edges": "ops.max(ops.absolute(ops.image.sobel_edges(image)), axis=(-2, -1))",
    "rgb_to_grayscale": "ops.image.rgb_to_grayscale(image)",
    "rgb_to_hsv": "ops.image.rgb_to_hsv(image)",
    "pad_images": "ops.image.pad_images(image, 4, 12, 4, 12)",
    "crop_images": "ops.image.crop_images(image, 8, 12, 8, 12)",
    "scale_and_translate": 'ops.image.scale_and_translate(image, (48, 48, 3), (0.5, 1), (20, 8), (0, 1), "linear")',
    "affine_transform": "ops.image.affine_transform(image, [1, 0.4, -8, 0.1, 1, 0, 0, 0])",
    "perspective_transform": "ops.image.perspective_transform(image, corners, [[10, 6], [37, 6], [0, 47], [47, 47]])",
    "elastic_transform": "ops.image.elastic_transform(image, 12.0, 4.0, seed=1)",
    "grid_sample": "ops.image.grid_sample(image[None], swirl[None])[0]",
}
"""By image op, the call that is drawn; `image` is that of `scene`."""

SCHEDULES: dict[str, tuple[Any, ...]] = {
    "step": (1.0, 25),
    "multistep": (1.0, [30, 80]),
    "piecewise": ([30, 60], [1.0, 0.5, 0.1]),
    "exponential": (1.0, 0.97),
    "linear": (1.0, 1 / 3, 1.0, 60),
    "cosine": (1.0, 100),
    "cosine_restarts": (1.0, 30),
    "polynomial": (1.0, 80, 2.0),
    "warmup": (1.0, 30),
    "inverse_sqrt": (1.0, 20),
    "wsd": (1.0, 20, 50, 30),
    "one_cycle": (1.0, 100),
    "cyclic": (0.1, 1.0, 20),
}
"""By schedule, the arguments of the one that is drawn over 100 steps."""


def draw_op(spec: OpSpec, folder: Path) -> str:
    """Draws the picture of an op into a folder, and returns the Markdown that shows it; "" for an op without one."""
    figure = Figure(figsize=(4.4, 2.6), layout="constrained")
    if spec.category == "activation" and spec.facts.elementwise:
        text = _activation(spec, figure)
    elif (
        spec.category == "creation"
        and spec.parameters[0].annotation == "int"
        and "window" in str(spec.declared.__doc__)
    ):
        text = _window(spec, figure)
    elif spec.name in IMAGES:
        text = _image(IMAGES[spec.name], figure)
    else:
        return ""
    return _saved(figure, folder, spec.name, text)


def draw_schedule(name: str, folder: Path) -> str:
    """Does the same for a schedule of the learning rate."""
    if name not in SCHEDULES:
        return ""
    figure = Figure(figsize=(4.4, 2.2), layout="constrained")
    schedule = getattr(schedules, name)(*SCHEDULES[name])
    axes = figure.subplots()
    axes.plot([float(schedule(count)) for count in range(100)], color=INK)
    axes.set(xlabel="steps", ylabel="learning rate", ylim=(-0.05, 1.1))
    shown = ", ".join(map(repr, SCHEDULES[name]))
    return _saved(figure, folder, name, f"The learning rate of {name}({shown}) over 100 steps")


def _activation(spec: OpSpec, figure: Figure) -> str:
    x = ops.array(np.linspace(-4, 4, 321, dtype="float32"))
    given = (1.0, -1.0)[: sum(p.default is EMPTY for p in spec.parameters) - 1]
    slope = ops.grad(lambda x: ops.sum(spec.function(x, *given)))(x)
    axes = figure.subplots()
    axes.axhline(0, color="gray", linewidth=0.5)
    axes.axvline(0, color="gray", linewidth=0.5)
    axes.plot(x, spec.function(x, *given), color=INK, label=spec.name)
    axes.plot(x, slope, color=SECOND, linestyle="--", label="derivative")
    axes.legend(frameon=False)
    return f"{spec.name} and its derivative from -4 to 4"


def _window(spec: OpSpec, figure: Figure) -> str:
    given = (8.6,)[: sum(p.default is EMPTY for p in spec.parameters) - 1]
    axes = figure.subplots()
    axes.plot(spec.function(65, *given), color=INK)
    axes.set(xlabel="point", ylim=(-0.05, 1.05))
    return f"The window {spec.name} of 65 points"


def _image(call: str, figure: Figure) -> str:
    image = scene()
    x, y = np.meshgrid(*[np.linspace(-1, 1, 48, dtype="float32")] * 2)
    swirl = np.stack([x * np.cos(y) - y * np.sin(x), x * np.sin(y) + y * np.cos(x)], axis=-1)
    corners = [[0, 0], [47, 0], [0, 47], [47, 47]]
    result = eval(call, {"ops": ops, "image": image, "swirl": swirl, "corners": corners})
    for axes, shown, title in zip(figure.subplots(1, 2), (image, result), ("image", "result"), strict=True):
        axes.imshow(np.squeeze(ops.to_numpy(shown)), cmap="gray", vmin=0, vmax=1, interpolation="nearest")
        axes.set(title=title)
        axes.set_axis_off()
    return f"An image, and the result of {call}"


def scene() -> Any:
    """Returns an image (48, 48, 3) with a sky, a sun and a hill."""
    y, x = np.mgrid[0:48, 0:48] / 47.0
    image = np.stack([0.4 + 0.3 * y, 0.6 + 0.2 * y, 1.0 - 0.2 * y], axis=-1)
    image[(x - 0.7) ** 2 + (y - 0.3) ** 2 < 0.03] = (1.0, 0.85, 0.2)
    image[y > 0.75 - 0.25 * np.sin(3 * x)] = (0.2, 0.5, 0.25)
    return ops.array(image.astype("float32"))


def _saved(figure: Figure, folder: Path, name: str, text: str) -> str:
    (folder / "pictures").mkdir(exist_ok=True, parents=True)
    figure.savefig(folder / "pictures" / f"{name}.svg", metadata={"Date": None}, facecolor="white")
    return f"```{{figure}} pictures/{name}.svg\n:alt: {text}\n\n{text}\n```"
