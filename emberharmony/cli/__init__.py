"""The `emberharmony` command."""

import sys
import warnings


def main() -> None:
    """Runs the command, or says how to install click and rich if one of them is missing."""
    warnings.formatwarning = _in_one_line
    try:
        from emberharmony.cli.main import command
    except ImportError as error:
        if error.name not in ("click", "rich"):
            raise
        sys.exit(f'The emberharmony command needs {error.name}: pip install "emberharmony[cli]"')
    command()


def _in_one_line(
    message: Warning | str, category: type[Warning], filename: str, lineno: int, line: str | None = None
) -> str:
    return f"Warning: {message}\n"
