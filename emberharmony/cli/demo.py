"""`emberharmony demo`: one training run that switches the backend on the way, and the same run on NumPy alone."""

import click

from emberharmony import demo as program
from emberharmony.backend.discovery import BUILTIN, install_line, is_installed
from emberharmony.cli.drawing import progress, table


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
    chosen = list(names) or [name for name in BUILTIN if is_installed(name)]
    if plot:
        program.check_picture(plot)
    with progress(2 * steps * len(chosen), "training") as advance:
        result = program.run(chosen, seed=seed, steps=steps, advance=advance)
    click.echo(f"softmax regression on {result.images} images, {steps} steps on each of: {' -> '.join(chosen)}")
    legs = [*((leg.backend, leg) for leg in result.legs), ("numpy alone", result.reference)]
    rows = [(name, leg.steps, f"{leg.loss:.6f}", f"{leg.accuracy:.4f}", f"{leg.seconds:.3f}") for name, leg in legs]
    click.echo(table(("backend", "steps", "loss", "accuracy on held-out images", "seconds"), rows))
    verdict = "AGREES" if result.agrees else "DIFFERS"
    click.echo(f"{verdict}: the weights differ by at most {result.difference:.2e}, tolerance {program.TOLERANCE:.0e}")
    for name in BUILTIN:
        if not is_installed(name):
            click.echo(f"{name} is not installed; to install it: {install_line(name)}")
    if plot:
        program.draw(result, plot)
        click.echo(f"loss curves: {plot}")
    if not result.agrees:
        raise SystemExit(1)
