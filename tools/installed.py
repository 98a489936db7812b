"""Installs the package as a user does and checks it from outside of the checkout: `python tools/installed.py [WHEEL]`.

It makes an empty environment, installs a wheel with its requirements, or with `--editable` the checkout, and trains a
network on NumPy there. mypy, pyright and jedi of the calling environment then look at the same program.
"""

import argparse
import importlib
import subprocess
import sys
import tempfile
import venv
from pathlib import Path

ROOT = Path(__file__).parents[1]
PROGRAM = '''"""Trains a network on NumPy."""

from emberharmony import Tensor, nn, ops, optim


class Network(nn.Module):
    """Two layers."""

    def __init__(self) -> None:
        super().__init__()
        self.first = nn.Linear(4, 8)
        self.second = nn.Linear(8, 1)

    def __call__(self, x: Tensor) -> Tensor:
        """Returns the predictions, of shape (batch, 1)."""
        return self.second(ops.tanh(self.first(x)))


network = Network()
optimizer = optim.AdamW(network, lr=1e-2)
x, y = ops.random.normal((16, 4)), ops.ones((16, 1))
values: list[float] = []
for _ in range(5):
    loss = ops.backward(lambda: nn.losses.mse(network(x), y), network)
    optimizer.step()
    values.append(loss.item())
assert values[-1] < values[0], values
'''
COMPLETED = ("ops.softmax", "ops.linalg.svd", "nn.Linear", "optim.AdamW", "io.load")


def run_command(*command: str | Path, cwd: Path) -> None:
    """Runs a command and prints it; its failure ends the check."""
    sys.stdout.write(" ".join(map(str, command)) + "\n")
    sys.stdout.flush()
    subprocess.run(command, cwd=cwd, check=True)


def check_completion(python: Path) -> None:
    """Checks that jedi knows the signature and the docstring of some names of the package in an environment."""
    jedi = importlib.import_module("jedi")  # it has no types

    environment = jedi.create_environment(python.parents[1], safe=False)
    for name in COMPLETED:
        source = f"from emberharmony import {name.partition('.')[0]}\n{name}("
        (signature, *_) = jedi.Script(source, environment=environment).get_signatures() or [None]
        if signature is None or not signature.docstring(raw=True).strip():
            sys.exit(f"jedi finds no signature of {name}, or no docstring")
        sys.stdout.write(
            f"{signature.to_string():.100}: {signature.docstring(raw=True):.60}\n".replace("\n", " ") + "\n"
        )


def check_installation(folder: Path, installed: list[str]) -> None:
    """Makes an empty environment in a folder, lets pip install into it, and checks the package there."""
    python = folder / "environment" / ("Scripts" if sys.platform == "win32" else "bin") / "python"
    venv.create(python.parents[1], with_pip=True)
    run_command(python, "-m", "pip", "install", "--quiet", *installed, cwd=folder)
    (folder / "program.py").write_text(PROGRAM, encoding="utf-8")
    run_command(python, "program.py", cwd=folder)
    run_command(python, "-m", "emberharmony", "info", cwd=folder)
    run_command(sys.executable, "-m", "mypy", "--strict", "--python-executable", python, "program.py", cwd=folder)
    run_command(sys.executable, "-m", "pyright", "--pythonpath", python, "program.py", cwd=folder)
    check_completion(python)


def main() -> None:
    """Checks a wheel, by default one that it builds, or the checkout."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("wheel", nargs="?", type=Path, help="the wheel; by default one is built")
    parser.add_argument("--editable", action="store_true", help="install the checkout instead")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder_name:
        folder = Path(folder_name)
        if options.editable:
            check_installation(folder, ["--editable", str(ROOT)])
            return
        if options.wheel is None:
            run_command(sys.executable, "-m", "build", "--wheel", "--outdir", folder, ROOT, cwd=ROOT)
        check_installation(folder, [str((options.wheel or next(folder.glob("*.whl"))).resolve())])


if __name__ == "__main__":
    main()
