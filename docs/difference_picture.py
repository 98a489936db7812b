"""Makes the picture of a report: `python docs/difference_picture.py` writes docs/difference.png with headless Chromium.

The program is that of `docs/differences.md`: a layer normalisation on NumPy that rounds its input to half precision.
"""

import shutil
import subprocess
import tempfile
from pathlib import Path

PROGRAM = """\
import numpy as np
import emberharmony
from emberharmony import nn, ops

class Net(nn.Module):
    def __init__(self, rng):
        self.inner = nn.Linear(8, 16, rng=rng)
        self.norm = nn.LayerNorm(16)
        self.outer = nn.Linear(16, 4, rng=rng)

    def __call__(self, x):
        return self.outer(ops.gelu(self.norm(self.inner(x))))

class Faulty(type(emberharmony.create_backend("numpy"))):
    def layer_normalization(self, x, *args, **kwargs):
        x = ops.cast(ops.cast(x, "float16"), "float32")
        return super().layer_normalization(x, *args, **kwargs)

x = np.random.default_rng(0).normal(size=(32, 8)).astype("float32")
net = Net(ops.random.Generator(0))
report = emberharmony.compare(net, x, backends=(Faulty(), "torch"), stop="all")
"""


def main() -> None:
    """Writes the picture."""
    browser = shutil.which("chromium") or shutil.which("google-chrome")
    if browser is None:
        raise SystemExit("the picture needs chromium or google-chrome")
    names: dict[str, object] = {"__name__": "net"}
    exec(compile(PROGRAM, "net.py", "exec"), names)
    with tempfile.TemporaryDirectory() as folder:
        page = Path(folder, "report.html")
        names["report"].html(str(page))  # type: ignore[attr-defined]
        size = "--window-size=1000,740"
        to = f"--screenshot={Path(__file__).with_name('difference.png')}"
        options = ("--headless", "--no-sandbox", "--disable-gpu", "--hide-scrollbars")
        subprocess.run([browser, *options, size, to, page.as_uri()], check=True)


if __name__ == "__main__":
    main()
