"""The `emberharmony` command."""

import sys


def main() -> None:
    """Runs the command; without click and rich it says how to install them."""
    try:
        from emberharmony.cli.main import command
    except ImportError as error:
        if error.name not in ("click", "rich"):
            raise
        sys.exit(f'The emberharmony command needs {error.name}: pip install "emberharmony[cli]"')
    command()
