"""`emberlint fix`: a short name for `check --fix`."""

import click

from emberlint.commands.check import check

fix = click.Command(
    "fix",
    callback=check.callback,
    params=[
        option
        for option in check.params
        if option.name not in ("fix", "add_ignore", "baseline_update", "watch", "show_settings")
    ],
    help="Make the safe repairs, and report the rest.",
)
