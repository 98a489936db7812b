"""The `emberharmony` command."""

import warnings

from emberharmony.cli.main import command


def main() -> None:
    """Runs the command `emberharmony` with the arguments of the process."""
    warnings.formatwarning = _format_warning
    command()


def _format_warning(
    message: Warning | str, category: type[Warning], filename: str, lineno: int, line: str | None = None
) -> str:
    return f"Warning: {message}\n"
