"""`emberharmony demo`: one training run that switches the backend on the way, and the same run on NumPy alone."""

import click
from rich.console import Console
from rich.progress import Progress
from rich.table import Table

from emberharmony import demo as program
from emberharmony.backend.discovery import BUILTIN, install_line, is_installed


@click.command()
@click.option("--backend", "names", multiple=True, help="Train on this backend (repeatable); default: all installed.")
@click.option(
    "--seed", default=0, show_default=True, type=click.IntRange(0), help="Seed of the split and of the initial weights."
)
@click.option("--steps", default=60, show_default=True, type=click.IntRange(1), help="Steps on each backend.")
@click.option(
    "--plot",
    type=click.Path(dir_okay=False, writable=True),
    help="Also draw the loss curves and write them to this file.",
)
def demo(names: tuple[str, ...], seed: int, steps: int, plot: str | None) -> None:
    """Train on 1,797 handwritten digits, and switch the backend during the training."""
    console = Console()
    chosen = list(names) or [name for name in BUILTIN if is_installed(name)]
    if plot:
        program.check_picture(plot)
    with Progress(console=console, transient=True, disable=not console.is_terminal) as progress:
        bar = progress.add_task("training", total=2 * steps * len(chosen))
        result = program.run(chosen, seed=seed, steps=steps, advance=lambda: progress.advance(bar))
    console.print(f"softmax regression on {result.images} images, {steps} steps on each of: {' -> '.join(chosen)}")
    table = Table("backend", "steps", "loss", "accuracy on held-out images", "seconds")
    for leg in result.legs:
        table.add_row(leg.backend, leg.steps, f"{leg.loss:.6f}", f"{leg.accuracy:.4f}", f"{leg.seconds:.3f}")
    reference = result.reference
    table.add_row(
        "numpy alone", reference.steps, f"{reference.loss:.6f}", f"{reference.accuracy:.4f}", f"{reference.seconds:.3f}"
    )
    console.print(table)
    verdict = "AGREES" if result.agrees else "DIFFERS"
    console.print(
        f"{verdict}: the weights differ by at most {result.difference:.2e}, tolerance {program.TOLERANCE:.0e}"
    )
    for name in BUILTIN:
        if not is_installed(name):
            console.print(f"{name} is not installed; to install it: {install_line(name)}", markup=False)
    if plot:
        program.draw(result, plot)
        console.print(f"loss curves: {plot}")
    if not result.agrees:
        raise SystemExit(1)
