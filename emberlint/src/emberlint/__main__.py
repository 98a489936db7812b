"""The entry point of the command `emberlint` and of `python -m emberlint`."""

import sys

from emberlint.fast_path import is_clean


def main() -> None:
    """Runs the command."""
    try:
        if is_clean(sys.argv[1:]):
            sys.exit(0)
        try:
            from emberlint.cli import main as command
        except ImportError as error:
            if error.name not in ("click", "rich"):
                raise
            sys.stderr.write(f"emberlint needs {error.name}: pip install emberlint\n")
            sys.exit(2)
        command(prog_name="emberlint")
    except KeyboardInterrupt:  # an interrupt before click handles it, or after
        sys.exit(130)


if __name__ == "__main__":
    main()
