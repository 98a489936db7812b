"""`emberharmony demo`: trainings that switch the backend on the way, and the same trainings on NumPy alone."""

import time
from typing import Any

import click

from emberharmony.backend.discovery import BUILTIN, install_line, is_installed
from emberharmony.cli.drawing import progress, table
from emberharmony.cli.submission import check_writable, device_option, report_option, use_device, write_report
from emberharmony.demo import digits, gpt, pictures


@click.command()
@click.option("--backend", "names", multiple=True, help="Train on this backend (repeatable); default: all installed.")
@click.option(
    "--seed", default=0, show_default=True, type=click.IntRange(0), help="Seed of the split and of the initial weights."
)
@click.option(
    "--steps", default=60, show_default=True, type=click.IntRange(1), help="Steps of the regression on each backend."
)
@click.option(
    "--gpt-steps", default=20, show_default=True, type=click.IntRange(0), help="Steps of the GPT on each backend."
)
@click.option(
    "--plot",
    type=click.Path(dir_okay=False, writable=True),
    help="Also draw the loss curves and write them to this file.",
)
@device_option
@report_option
def demo(
    names: tuple[str, ...],
    seed: int,
    steps: int,
    gpt_steps: int,
    plot: str | None,
    device: str | None,
    report_file: str | None,
) -> None:
    """Train a regression and a small GPT, and switch the backend during the training.

    The regression learns 1,797 handwritten digits. The GPT learns sonnets, letter by letter, with AdamW and dropout.
    The same trainings then run on NumPy alone, and all results are compared. With --device, NumPy and the backends that
    have the device take part.
    """
    chosen_names = list(names) or [name for name in BUILTIN if is_installed(name)]
    check_writable(report_file)
    start_time = time.perf_counter()
    with use_device([name for name in chosen_names if name != "numpy"] or chosen_names, device) as names_with_device:
        chosen_names = [name for name in chosen_names if name in (*names_with_device, "numpy")]
        agrees, result_by_task = _run_demo(chosen_names, seed, steps, gpt_steps, plot)
    if report_file:
        write_report(report_file, "demo", chosen_names, device, time.perf_counter() - start_time, result_by_task)
    if not agrees:
        raise SystemExit(1)


def _run_demo(
    chosen_names: list[str], seed: int, steps: int, gpt_steps: int, plot: str | None
) -> tuple[bool, dict[str, Any]]:
    """Makes the trainings and shows them; returns whether all agree, and the results for a report."""
    if plot:
        pictures.check_picture(plot)
    loss_curves = []
    result_by_task: dict[str, Any] = {}
    with progress(2 * steps * len(chosen_names), "training on digits") as advance:
        digits_result = digits.run(chosen_names, seed=seed, steps=steps, advance=advance)
    agrees = _show_digits(digits_result, chosen_names, steps)
    loss_curves.append(_loss_curves("softmax regression on digits", digits_result))
    result_by_task["digits"] = {
        "agrees": agrees,
        "difference": digits_result.difference,
        "legs": _legs_as_json(digits_result),
    }
    if gpt_steps:
        with progress(2 * gpt_steps * len(chosen_names), "training a GPT") as advance:
            gpt_result = gpt.run(chosen_names, seed=seed, steps=gpt_steps, advance=advance)
        agrees = _show_gpt(gpt_result, chosen_names, gpt_steps) and agrees
        loss_curves.append(_loss_curves("a small GPT on sonnets", gpt_result))
        result_by_task["gpt"] = {
            **gpt_result.differences._asdict(),
            "agrees": gpt_result.differences.agrees,
            "legs": _legs_as_json(gpt_result),
        }
    for name in BUILTIN:
        if not is_installed(name):
            click.echo(f"{name} is not installed; to install it: {install_line(name)}")
    if plot:
        pictures.draw(loss_curves, plot)
        click.echo(f"loss curves: {plot}")
    return agrees, result_by_task


def _legs_as_json(result: digits.Result | gpt.Result) -> list[dict[str, Any]]:
    """Returns the backend, last loss and seconds of each part of a training, and of the run on NumPy alone."""
    all_legs = [*result.legs, result.reference]
    return [{"backend": x.backend, "loss": x.losses[-1], "seconds": round(x.seconds, 3)} for x in all_legs]


def _loss_curves(title: str, result: digits.Result | gpt.Result) -> pictures.Curves:
    return pictures.Curves(title, [(leg.backend, leg.losses) for leg in result.legs], result.reference.losses)


def _verdict_text(agrees: bool) -> str:
    return "AGREES" if agrees else "DIFFERS"


def _show_digits(result: digits.Result, chosen_names: list[str], steps: int) -> bool:
    click.echo(f"softmax regression on {result.images} images, {steps} steps on each of: {' -> '.join(chosen_names)}")
    names_and_legs = [*((leg.backend, leg) for leg in result.legs), ("numpy alone", result.reference)]
    table_rows = [
        (name, leg.steps, f"{leg.loss:.6f}", f"{leg.accuracy:.4f}", f"{leg.seconds:.3f}")
        for name, leg in names_and_legs
    ]
    click.echo(table(("backend", "steps", "loss", "accuracy on held-out images", "seconds"), table_rows))
    click.echo(
        f"{_verdict_text(result.agrees)}: the weights differ by at most {result.difference:.2e}, tolerance "
        f"{digits.TOLERANCE:.0e}"
    )
    return result.agrees


def _show_gpt(result: gpt.Result, chosen_names: list[str], steps: int) -> bool:
    click.echo(
        f"\na GPT of {result.parameters:,} parameters with AdamW and dropout, {steps} steps on each of: "
        f"{' -> '.join(chosen_names)}"
    )
    all_legs = [*result.legs, result.reference]
    table_rows = [(leg.backend, leg.steps, f"{leg.losses[-1]:.6f}", f"{leg.seconds:.1f}") for leg in all_legs]
    click.echo(table(("backend", "steps", "loss", "seconds"), table_rows))
    gaps = result.differences
    masks_text = "equal" if gaps.masks else "different"
    click.echo(
        f"{_verdict_text(gaps.agrees)}: losses differ by at most {gaps.loss:.2e} (tolerance {gpt.LOSS:.0e}), weights "
        f"by {gaps.weights:.2e} ({gpt.WEIGHTS:.0e}), the optimizer's state by {gaps.state:.2e} of its largest elements "
        f"({gpt.STATE:.0e}); dropout masks are {masks_text}"
    )
    return gaps.agrees
