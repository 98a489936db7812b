"""`emberlint fix`: `check --fix` by a shorter name."""

import click

from emberlint.commands.check import check

fix = click.Command(
    "fix",
    callback=check.callback,
    params=[option for option in check.params if option.name not in ("fix", "baseline_update", "show_settings")],
    help="Repair what can be repaired safely, and report the rest.",
)
