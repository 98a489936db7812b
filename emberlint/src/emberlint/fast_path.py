"""Answers the most common call, a check of unchanged files without findings, without importing the other modules.

Importing the command-line options takes longer than that check.
"""

import sys
from collections.abc import Sequence
from pathlib import Path

from emberlint.commands import COMMANDS
from emberlint.commands.request import choice, files_for, settings_for
from emberlint.config.errors import UsageError
from emberlint.reporters.text import summary
from emberlint.run.run_cache import RunCache

FLAGS = {"--exit-zero", "--verbose", "-v"}  # they change nothing if there are no findings


def is_clean(words: Sequence[str]) -> bool:
    """Returns whether the call checks files whose last run found nothing; if so, prints the summary."""
    if words and words[0] in COMMANDS and words[0] != "check":
        return False
    paths = [word for word in words[words[:1] == ["check"] :] if word not in FLAGS]
    if any(word.startswith("-") for word in paths):
        return False
    places = [Path(word) for word in paths]
    try:
        settings = settings_for(places)
        files = files_for(places, settings)
        known = None if settings.baseline else RunCache(settings, choice(settings, (), (), ()).words, files).recall()
    except UsageError:
        return False  # the full command reports the error
    if known != [] or settings.output_format != "text":
        return False
    sys.stderr.write(f"{summary(0, len(files))}\n")
    return True
