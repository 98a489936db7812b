"""`emberlint check --watch`: checks again whenever a file changes."""

import sys
import time
from collections.abc import Callable, Iterable
from pathlib import Path

import click

from emberlint.config.errors import UsageError

INTERVAL = 0.5  # seconds between two looks at the files
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
            start_time = time.perf_counter()
            current_state, error_message = _result_or_message(look)
            look_seconds = time.perf_counter() - start_time
            if current_state != last_state:
                last_state = current_state
                if sys.stdout.isatty():
                    click.clear()
                error_message = error_message or _result_or_message(act)[1]
                if error_message:
                    click.echo(f"emberlint: {error_message}", err=True)
            time.sleep(max(INTERVAL, SHARE * look_seconds))
    except KeyboardInterrupt:
        click.echo(err=True)  # ends the line on which the terminal shows ^C
        raise


def stamps(files: Iterable[Path]) -> list[tuple[str, int, int]]:
    """Returns the path, modification time and size of each file that exists."""
    file_stamps = []
    for file in files:
        try:
            file_status = file.stat()
        except OSError:
            continue
        file_stamps.append((str(file), file_status.st_mtime_ns, file_status.st_size))
    return file_stamps


def _result_or_message(function: Callable[[], object]) -> tuple[object, str]:
    """Returns the result of a function, or the message of its UsageError twice, so that a new error is a change."""
    try:
        return function(), ""
    except UsageError as error:
        return str(error), str(error)
