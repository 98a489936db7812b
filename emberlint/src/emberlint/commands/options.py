"""Command-line options that several subcommands of emberlint share."""

import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeVar

import click

from emberlint.commands.request import codes_for as codes_for
from emberlint.commands.request import display_path as display_path
from emberlint.commands.request import files_for as files_for
from emberlint.commands.request import findings_with_shown_paths as findings_with_shown_paths
from emberlint.commands.request import nested_projects as nested_projects
from emberlint.commands.request import rule_choice as rule_choice
from emberlint.commands.request import settings_at as settings_at
from emberlint.commands.request import settings_for as settings_for
from emberlint.config.groups import GROUPS
from emberlint.config.presets import PRESETS
from emberlint.config.tiers import Tier

FunctionT = TypeVar("FunctionT", bound=Callable[..., Any])


def add_selection_options(function: FunctionT) -> FunctionT:
    """Adds the argument PATHS and the options that choose rules to a command."""
    for group, codes in [*GROUPS.items()][::-1]:
        add_flag = click.option(
            f"--{group}-only", "groups", flag_value=group, multiple=True, help=f"Only {', '.join(codes)}."
        )
        function = add_flag(function)
    function = click.option(
        "--min-tier", type=click.Choice([*Tier.__members__]), help="Lowest tier of evidence to report."
    )(function)
    function = click.option("--ignore", multiple=True, help="Rules to skip: codes, names or prefixes; commas allowed.")(
        function
    )
    function = click.option(
        "--extend-select", multiple=True, help="Rules to run besides the selected ones; commas allowed."
    )(function)
    function = click.option(
        "--exclude", multiple=True, help="Patterns of paths to skip, besides those of the settings; commas allowed."
    )(function)
    function = click.option(
        "--target-version", help="The oldest Python that the code is for, such as py311; newer syntax is EMB000."
    )(function)
    function = click.option("--preset", type=click.Choice([*PRESETS]), help="Settings for a kind of project.")(function)
    function = click.option("--select", multiple=True, help="Rules to run: codes, names or prefixes; commas allowed.")(
        function
    )
    return click.argument("paths", nargs=-1, type=click.Path(path_type=Path, allow_dash=True))(function)


def read_stdin() -> bytes:
    """Returns the bytes of standard input."""
    return sys.stdin.buffer.read()
