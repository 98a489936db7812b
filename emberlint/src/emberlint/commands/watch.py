"""`emberlint check --watch`: checks again whenever a file changes."""

import sys
import time
from collections.abc import Callable, Iterable
from pathlib import Path

import click

from emberlint.config.errors import UsageError

INTERVAL = 0.5  # seconds between two looks
SHARE = 20  # looking at many files for changes may take 1 / SHARE of the time


def watch(look: Callable[[], object], act: Callable[[], object]) -> None:
    """Runs `act` now, and whenever what `look` returns has changed, until the user interrupts.

    Raises:
        UsageError: by the first round; a later one, as for settings that are being edited, is only reported.
    """
    last_state = look()
    act()
    try:
        while True:
            start = time.perf_counter()
            state, error = _result_or_message(look)
            time_of_look = time.perf_counter() - start
            if state != last_state:
                last_state = state
                if sys.stdout.isatty():
                    click.clear()
                error = error or _result_or_message(act)[1]
                if error:
                    click.echo(f"emberlint: {error}", err=True)
            time.sleep(max(INTERVAL, SHARE * time_of_look))
    except KeyboardInterrupt:
        click.echo(err=True)  # ends the line on which the terminal shows ^C
        raise


def stamps(files: Iterable[Path]) -> list[tuple[str, int, int]]:
    """Returns the time and the size of each file that exists."""
    file_stamps = []
    for file in files:
        try:
            stat = file.stat()
        except OSError:
            continue
        file_stamps.append((str(file), stat.st_mtime_ns, stat.st_size))
    return file_stamps


def _result_or_message(function: Callable[[], object]) -> tuple[object, str]:
    """Returns the result of a function, or the message of its UsageError twice, so that a new error is a change."""
    try:
        return function(), ""
    except UsageError as error:
        return str(error), str(error)
